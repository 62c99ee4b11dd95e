//! The program `chronos-load`: its command line and exit status.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use plimsoll_chronos_load::commands::{
    agent::AgentArguments,
    compare::CompareArguments,
    line::LoadLine,
    openflow::{CompareOpenFlow, OpenFlowArguments},
    run::Run,
    saturate::Saturate,
};
use plimsoll_process::note;

/// Load generator for memcached, chronos-memcached, chronos-search and OpenFlow controllers; latencies count from the
/// time at which each request should have been sent.
#[derive(Parser)]
#[command(name = "chronos-load", version, arg_required_else_help = true)]
#[command(after_help = "\
Results go to stdout, progress and messages to stderr.
Exit status: 0, 1 (a run is SUSPECT: it says why), 2 (an error).")]
struct LoadCli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Run),
    Saturate(Saturate),
    Line(LoadLine),
    Agent(AgentArguments),
    Compare(CompareArguments),
    #[command(name = "openflow")]
    OpenFlow(OpenFlowArguments),
    #[command(name = "compare-openflow")]
    CompareOpenFlow(CompareOpenFlow),
}

fn main() -> ExitCode {
    let cli: LoadCli = plimsoll_command_line::parse(std::env::args_os());
    let done = match cli.command {
        Command::Run(run) => run.execute(),
        Command::Saturate(saturate) => saturate.execute(),
        Command::Line(line) => line.execute(),
        Command::Agent(agent) => agent.execute(),
        Command::Compare(compare) => compare.execute(),
        Command::OpenFlow(openflow) => openflow.execute(),
        Command::CompareOpenFlow(compare) => compare.execute(),
    };
    done.unwrap_or_else(|error| {
        note!("error: {error:#}");
        ExitCode::from(ERROR)
    })
}

/// The exit status of an error.
const ERROR: u8 = 2;

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// An option without a heading of its own would get that of the group that was declared before it.
    #[test]
    fn options_are_grouped_by_what_they_do() {
        let groups: [(&str, &[&str]); 13] = [
            ("Servers", &["servers", "transport", "server_cpus"]),
            ("Controller", &["controller"]),
            ("Controllers", &["servers", "server_cpus"]),
            ("Comparison", &["pairs"]),
            ("Search", &["slos", "from", "to", "resolution", "rounds"]),
            ("Agents", &["agents", "listen", "token_file"]),
            (
                "Keys and values",
                &["keys", "key_size", "key_prefix", "terms", "popularity", "value_size", "no_load"],
            ),
            (
                "Requests",
                &[
                    "protocol",
                    "ratio",
                    "multi_get",
                    "vbuckets",
                    "fan_out",
                    "chain",
                    "replicas",
                    "hedge",
                    "retry",
                    "sharding",
                    "seed",
                ],
            ),
            ("Load", &["rate", "outstanding", "outstanding_max", "arrivals", "at", "no_saturation", "mode"]),
            ("Clients", &["connections", "threads", "cpus", "cpu", "wait", "congestion"]),
            ("Switches", &["openflow_version", "switches", "macs", "unbuffered"]),
            ("Time", &["warm_up", "time", "timeout"]),
            ("Validity", &["lag_share", "shared_cpus", "no_check"]),
        ];
        for command in LoadCli::command().get_subcommands() {
            for argument in command.get_arguments() {
                let (name, heading) = (argument.get_id().as_str(), argument.get_help_heading());
                let fits = match heading {
                    Some("Output") => ["format", "json", "hdr"].contains(&name),
                    Some(heading) => {
                        groups.iter().any(|(group, names)| *group == heading && names.contains(&name))
                    }
                    None => name == "help",
                };
                assert!(fits, "{} --{name} stands under {heading:?}", command.get_name());
            }
        }
    }

    #[test]
    fn the_manual_page_is_up_to_date() {
        plimsoll_testing::manuals::are_up_to_date("chronos-load", |folder| {
            clap_mangen::generate_to(plimsoll_command_line::command::<LoadCli>(), folder)
        });
    }

    #[test]
    fn bounds_are_told_in_words() {
        for arguments in [
            ["saturate", "--outstanding=0"],
            ["compare", "--pairs=0"],
            ["run", "--connections=0"],
            ["run", "--multi-get=9999999999999"],
            ["openflow", "--macs=-1"],
        ] {
            let Err(error) = LoadCli::try_parse_from([&["chronos-load"], &arguments[..]].concat()) else {
                unreachable!()
            };
            let said = error.to_string();
            assert!(said.contains("write a whole number from") && !said.contains(".."), "{said}");
        }
    }
}
