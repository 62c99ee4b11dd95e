//! Traces the server until the time is over, a signal comes, or the server ends, and shows the report.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use plimsoll_breakdown::{
    Overhead, OverheadOptions, Server, Target, Trace, TraceOptions, Traced, privileges,
};
use plimsoll_process::note;
use plimsoll_report::breakdown as shown;
use plimsoll_text::printable_json;
use plimsoll_units::Rate;
use serde_json::json;

use super::Args;
use crate::files;
use crate::output::{self, Done, FINDING, Format};
use crate::signals::Interrupt;
use plimsoll_experiment::question::quoted;

/// Traces the server and shows the report.
pub(super) fn run(args: &Args) -> Done {
    files::check_extension("--out", args.out.as_deref(), "html")?;
    files::check_extension("--timeline", args.timeline.as_deref(), "json")?;
    privileges::check()?;
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    let is_stopped = || interrupt.signal().is_some();
    let mut server = if args.command.is_empty() { None } else { Some(Server::start(&args.command)?) };
    let target = match &mut server {
        Some(server) => server.target(args.port, is_stopped)?,
        None => find(args)?,
    };
    if let Some(pairs) = args.overhead {
        return overhead(args, &target, pairs, &is_stopped);
    }
    let trace = Trace::begin(
        &target,
        TraceOptions {
            sample: args.sample,
            duty: args.duty,
            length: Duration::from_nanos(args.duration.as_ps() / PS_PER_NS),
            first: if args.timeline.is_some() { FIRST } else { 0 },
            link_bps: args.rate.map(Rate::as_bps),
        },
    )?;
    let (ports, process) = (listed(&target), target.processes[0]);
    note!("Tracing  {} (process {process}), {ports}, for {}", target.name, args.duration);
    let traced = trace.follow(target, is_stopped)?;
    drop(server);
    if traced.report.requests == 0 {
        return Err(nothing_seen(&traced));
    }
    show(args, &traced)?;
    match (interrupt.signal(), traced.ended) {
        (Some(signal), _) => Ok(ExitCode::from(128 + signal)),
        (None, Some(reason)) => Err(anyhow!("{reason}; the report is of the time until then")),
        (None, None) => Ok(ExitCode::SUCCESS),
    }
}

/// Finds the server that the options name.
fn find(args: &Args) -> anyhow::Result<Target> {
    Ok(match (args.pid, args.port) {
        (Some(process), None) => Target::of_process(process)?,
        (Some(process), Some(port)) => Target::of_process(process)?.only(port)?,
        (None, Some(port)) => Target::of_port(port)?,
        (None, None) => return Err(anyhow!("name the server: --pid, --port or a command")),
    })
}

/// Lists the ports of a server.
fn listed(target: &Target) -> String {
    target.ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Explains a trace without a request.
fn nothing_seen(traced: &Traced) -> anyhow::Error {
    let Traced { report, target, sample, ended, .. } = traced;
    let ports = listed(target);
    let why = match (report.unmatched.requests, report.unmatched.cut_off) {
        (0, 0) if *sample > 1 => {
            format!("no request arrived at {ports} on the connections that --sample {sample} chooses")
        }
        (0, 0) => format!("no request arrived at {ports}"),
        (unmatched, cut_off) => format!(
            "no request could be matched: {}",
            shown::reasons(report).unwrap_or_else(|| format!("{unmatched} unmatched, {cut_off} cut off"))
        ),
    };
    match ended {
        Some(ended) => anyhow!("{ended}; {why}"),
        None => anyhow!("{why}"),
    }
}

/// Prints the report and writes the files.
fn show(args: &Args, traced: &Traced) -> anyhow::Result<()> {
    let slowest = args.slowest as usize;
    output::print(&match args.format {
        Format::Json => shown::json(traced),
        Format::Csv => shown::csv(&traced.report),
        Format::Table => shown::findings(traced, slowest).to_terminal(&output::style()),
        Format::Md => shown::findings(traced, slowest).to_markdown(),
    })?;
    if let Some(path) = &args.out {
        let page = shown::page(traced, slowest, &command(args), output::VERSION, output::commit());
        output::write_whole(path, &page)?;
        note!("Page     {}", path.display());
    }
    if let Some(path) = &args.timeline {
        output::write_whole(path, &shown::timeline(traced))?;
        note!("Timeline {} (open it in https://ui.perfetto.dev)", path.display());
    }
    if let Some(path) = &args.stacks {
        let profile = traced.profile.as_ref().map_err(|why| anyhow!("--stacks: {why}"))?;
        output::write_whole(path, &profile.folded(&traced.target.name))?;
        note!("Stacks   {} (for flamegraph.pl and other programs that read folded stacks)", path.display());
    }
    Ok(())
}

/// Measures what tracing costs, and prints it.
fn overhead(args: &Args, target: &Target, pairs: u32, is_stopped: &dyn Fn() -> bool) -> Done {
    let load = args.load.as_deref().ok_or_else(|| anyhow!("--overhead needs --load COMMAND"))?;
    let options = OverheadOptions { load, pairs, sample: args.sample, duty: args.duty };
    let on_pair = |pair| note!("Pair     {pair} of {pairs}");
    let measured = Overhead::measure(&options, target, is_stopped, on_pair)?;
    let Overhead { rises, without, with } = &measured;
    if args.format == Format::Json {
        let options = json!({"sample": args.sample, "duty": args.duty});
        let whole =
            json!({"load": load, "options": options, "rises": rises, "without": without, "with": with});
        output::print(&format!("{}\n", printable_json(&format!("{whole:#}"))))?;
    } else {
        let grid = shown::overhead(rises, pairs);
        let text =
            if args.format == Format::Md { grid.to_markdown() } else { grid.to_terminal(&output::style()) };
        let [matched, unmatched, lost] = with.iter().fold([0; 3], |[matched, unmatched, lost], turn| {
            [matched + turn.matched, unmatched + turn.unmatched, lost + turn.lost_records]
        });
        output::print(&format!(
            "{text}\nTraced: {matched} requests matched, {unmatched} not, {lost} records lost.\n"
        ))?;
    }
    Ok(if measured.is_too_much() { ExitCode::from(FINDING) } else { ExitCode::SUCCESS })
}

/// Returns the command that makes the page again.
fn command(args: &Args) -> String {
    let mut words = vec!["plimsoll breakdown".to_owned()];
    words.extend(args.pid.map(|pid| format!("--pid {pid}")));
    words.extend(args.port.map(|port| format!("--port {port}")));
    words.push(format!("--duration {}", args.duration));
    words.push(format!("--duty {}", args.duty));
    if args.sample > 1 {
        words.push(format!("--sample {}", args.sample));
    }
    words.extend(args.rate.map(|rate| format!("--rate {rate}")));
    words.extend(args.out.as_ref().map(|path| format!("--out {}", quoted(&path.to_string_lossy()))));
    if !args.command.is_empty() {
        words.push("--".to_owned());
        words.extend(args.command.iter().map(|word| quoted(&word.to_string_lossy())));
    }
    words.join(" ")
}

/// The first requests of a trace that the timeline has, beside the slowest.
const FIRST: usize = 5_000;
const PS_PER_NS: u64 = 1_000;
