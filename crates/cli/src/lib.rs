//! The `plimsoll` command as a library, with one file a subcommand and no simulation logic in any of them.
//! [`main_with`] runs it with mechanisms from outside (`docs/extending.md`), [`main_of`] and [`printed`] with arguments
//! other than this process's.
//!
//! Results go to stdout; everything else goes to stderr. The exit status is 0, 1 (a finding: a figure is off, a load is
//! above its line), 2 (an error), or 128 plus the signal's number after Ctrl-C.

mod advise;
#[cfg(target_os = "linux")]
mod breakdown;
mod bursts;
mod calibrate;
#[cfg(target_os = "linux")]
mod check;
mod circuits;
mod columns;
mod compare;
mod completions;
mod config;
#[cfg(target_os = "linux")]
mod emulate;
#[cfg(unix)]
mod explore;
mod export;
mod figure;
mod files;
#[cfg(target_os = "linux")]
mod host;
mod import;
mod line;
mod man;
mod measured;
mod memory;
mod merge;
mod model;
mod output;
mod parallelism;
mod progress;
mod raster;
#[cfg(test)]
mod reference_tests;
mod replay;
mod reproduce;
mod run;
#[cfg(target_os = "linux")]
mod run_at_level;
mod sbatch;
mod scenario;
mod signals;
mod source;
mod work;
mod workers;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, Parser, Subcommand};
use plimsoll_experiment::question;
use plimsoll_process::note;
use plimsoll_scenario::Registry;
use plimsoll_text::shortened;
use plimsoll_text::spelling::nearest;

/// Finds a network's load line: how much load it carries before its tail latency violates an objective, and which
/// mechanism raises the line.
#[derive(Parser)]
#[command(name = "plimsoll", version = output::VERSION, long_version = output::LONG_VERSION)]
#[command(arg_required_else_help = true, help_template = help_template())]
#[command(after_help = "\
Results go to stdout, progress and messages to stderr.
Exit status: 0, 1 (a finding: a figure is off, a load is above its line), 2 (an error), 130 (Ctrl-C).")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Defines the subcommands, one line each below the heading that `--help` lists them under: the variant, and the module
/// that contains its `Args` and its `run`.
macro_rules! subcommands {
    ($($heading:literal { $($(#[$only:meta])* $Variant:ident in $module:ident,)+ })+) => {
        #[derive(Subcommand)]
        enum Command {
            $($($(#[$only])* $Variant($module::Args),)+)+
        }

        impl Command {
            fn run(&self, registry: &Registry) -> output::Done {
                match self {
                    $($($(#[$only])* Command::$Variant(args) => $module::run(args, registry),)+)+
                }
            }
        }

        /// The headings of `--help`, in order, each with the variants below it.
        const HEADINGS: &[(&str, &[&str])] = &[
            $(($heading, &[$($(#[$only])* stringify!($Variant),)+]),)+
        ];
    };
}

subcommands! {
    "Simulate" {
        Run in run,
        Line in line,
        Advise in advise,
        Compare in compare,
        Calibrate in calibrate,
        Figure in figure,
        Replay in replay,
        #[cfg(unix)]
        Explore in explore,
        Reproduce in reproduce,
        Work in work,
    }
    "Kernel and hosts" {
        #[cfg(target_os = "linux")]
        Check in check,
        #[cfg(target_os = "linux")]
        Emulate in emulate,
        #[cfg(target_os = "linux")]
        Host in host,
        #[cfg(target_os = "linux")]
        RunAtLevel in run_at_level,
    }
    "Analyse" {
        Bursts in bursts,
        #[cfg(target_os = "linux")]
        Breakdown in breakdown,
        Model in model,
        Circuits in circuits,
    }
    "Files" {
        Scenario in scenario,
        Config in config,
        Import in import,
        Export in export,
        Merge in merge,
        Sbatch in sbatch,
        Completions in completions,
        Man in man,
    }
}

/// Returns the template of `plimsoll --help`, which lists the subcommands by heading: clap has one list.
fn help_template() -> String {
    let command = Command::augment_subcommands(clap::Command::new("plimsoll"));
    let width = command.get_subcommands().map(|below| below.get_name().len()).max().unwrap_or(0);
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, variants) in HEADINGS {
        text.push_str(&format!("\n{heading}:\n"));
        for below in command.get_subcommands() {
            // The name of a variant differs from its command's by capitals and hyphens alone.
            let name = below.get_name().replace('-', "");
            if variants.iter().any(|variant| variant.eq_ignore_ascii_case(&name)) {
                let about = below.get_about().map(ToString::to_string).unwrap_or_default();
                let first = format!("  {:width$}  ", below.get_name());
                text.push_str(&output::folded(&about, &first, &" ".repeat(width + 4)));
            }
        }
    }
    text + "\nOptions:\n{options}{after-help}"
}

/// Runs the command line of this process. Scenarios may name the mechanisms of `registry`, which every subcommand that
/// reads a scenario then has.
pub fn main_with(registry: &Registry) -> ExitCode {
    main_of(registry, std::env::args_os())
}

/// The most characters of a line of an error, which may quote a line of a file.
const LINE_MAX: usize = 1_000;

/// Runs the command line of these words, the first of which is the name of the program. The words `--help`, and an
/// error in the words, end the process.
pub fn main_of(registry: &Registry, words: impl IntoIterator<Item = OsString>) -> ExitCode {
    memory::end_where_refused();
    signals::outlive_file_size_limit();
    let words: Vec<OsString> = words.into_iter().collect();
    question::called(words.first().map_or("plimsoll".as_ref(), OsString::as_os_str));
    let cli = Cli::try_parse_from(&words).unwrap_or_else(|said| {
        let said = with_suggestion(said, &words);
        plimsoll_process::end(said.print(), said.exit_code())
    });
    cli.command.run(registry).unwrap_or_else(|error| {
        match error.downcast_ref::<source::BadScenario>() {
            // These errors have their own form, with the wrong line.
            Some(bad) => note!("{bad}"),
            None => {
                let reasons = output::reasons(&error);
                // The error of a scenario within another one has the word already.
                let reasons = reasons.strip_prefix("error: ").unwrap_or(&reasons);
                let lines: Vec<_> = reasons.lines().map(|line| shortened(line, LINE_MAX)).collect();
                note!("error: {}", lines.join("\n"));
            }
        }
        ExitCode::from(output::ERROR)
    })
}

/// Adds the nearest subcommand to an error about an unknown one: clap itself does not find `run` for `rnu`.
fn with_suggestion(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let has_suggestion = error.get(ContextKind::SuggestedSubcommand).is_some();
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if has_suggestion {
        return error;
    }
    let mut command = Cli::command();
    for word in words.iter().skip(1).map(|word| word.to_string_lossy()).take_while(|word| word != unknown) {
        if let Some(below) = command.find_subcommand(word.as_ref()).cloned() {
            command = below;
        }
    }
    let names = command.get_subcommands().filter(|below| !below.is_hide_set()).map(clap::Command::get_name);
    if let Some(meant) = nearest(unknown, names) {
        let meant = ContextValue::Strings(vec![meant.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, meant);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_command_below_one_heading() {
        let help = Cli::command().render_help().to_string();
        for below in Cli::command().get_subcommands() {
            let listed = help.lines().filter(|line| line.starts_with(&format!("  {} ", below.get_name())));
            assert_eq!(listed.count(), usize::from(below.get_name() != "help"), "{}", below.get_name());
        }
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }

    /// Gives every option of every command a number that few of them allow.
    #[test]
    fn no_error_shows_a_range_as_rust_writes_it() {
        let mut open = vec![(vec!["plimsoll".to_owned()], Cli::command())];
        let mut bounded = 0;
        while let Some((words, command)) = open.pop() {
            for below in command.get_subcommands() {
                open.push(([&words[..], &[below.get_name().to_owned()]].concat(), below.clone()));
            }
            let flags = command.get_arguments().filter(|argument| argument.get_action().takes_values());
            for flag in flags.filter_map(clap::Arg::get_long) {
                for value in ["-1", "99999999999999999999999"] {
                    let words = words.iter().cloned().chain([format!("--{flag}={value}")]);
                    let Err(error) = Cli::try_parse_from(words) else { continue };
                    let said = error.to_string();
                    bounded += usize::from(said.contains("write a whole number"));
                    assert!(!said.contains("..=") && !said.contains("is not in"), "--{flag}: {said}");
                }
            }
        }
        assert!(bounded > 10, "{bounded} errors name bounds");
    }
}
