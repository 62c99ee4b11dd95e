//! Traces the server until the time is over, a signal comes, or the server ends, and shows the report.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use plimsoll_breakdown::{Error, Recorder, Request, Sampler, Session, Symbols, Target, privileges};
use plimsoll_process::note;
use plimsoll_text::printable_json;
use plimsoll_units::Rate;
use serde_json::{Map, Value, json};

use super::cost::Meter;
use super::server::{POLL, Server};
use super::shown::Shown;
use super::slices::{SLICE, Slices};
use super::{Args, overhead, page, tables, timeline};
use crate::output::{self, Done, Format};
use crate::signals::Interrupt;
use plimsoll_experiment::question::quoted;

/// Traces the server and shows the report.
pub(super) fn run(args: &Args) -> Done {
    check_extension("--out", args.out.as_deref(), "html")?;
    check_extension("--timeline", args.timeline.as_deref(), "json")?;
    privileges::check()?;
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    let mut server = if args.command.is_empty() { None } else { Some(Server::start(&args.command)?) };
    let target = match &mut server {
        Some(server) => server.target(args.port, &interrupt)?,
        None => find(args)?,
    };
    if let Some(pairs) = args.overhead {
        return overhead::run(args, &target, pairs, &interrupt);
    }
    let mut trace = Trace::begin(args, &target)?;
    let ended = trace.follow(args, &target, &interrupt)?;
    trace.end()?;
    let Trace { session, recorder, first, meter, sampler, .. } = trace;
    let mut symbols = Symbols::default();
    let profile =
        sampler.and_then(|sampler| sampler.end(FUNCTIONS, &mut symbols)).map_err(|error| error.to_string());
    let shown = Shown {
        report: recorder.report(session.matcher().unmatched(), session.seconds()),
        rate: args.rate.or_else(|| rate_of_device(&target)),
        sample: args.sample,
        duty: args.duty,
        lost_records: session.lost(),
        records: session.records(),
        locks: session.longest_locks(LOCKS, &mut symbols),
        profile,
        cost: meter.cost(),
        ended: ended.clone(),
        target,
    };
    drop(session);
    drop(server);
    if shown.report.requests == 0 {
        return Err(nothing_seen(&shown));
    }
    show(args, &shown, &first)?;
    match (interrupt.signal(), ended) {
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

/// A trace in progress, with what it has found.
struct Trace {
    session: Session,
    recorder: Recorder,
    /// The first requests, for the timeline.
    first: Vec<Request>,
    meter: Meter,
    slices: Slices,
    /// Samples all the time, also between slices.
    sampler: Result<Sampler, Error>,
}

impl Trace {
    fn begin(args: &Args, target: &Target) -> anyhow::Result<Trace> {
        let meter = Meter::new(if args.duty < 1.0 { SLICE.min(length(args)) } else { length(args) });
        let mut session = Session::load(target, args.sample)?;
        let slices = Slices::begin(args.duty, &mut session)?;
        let sampler = Sampler::begin(target);
        let ports: Vec<String> = target.ports.iter().map(ToString::to_string).collect();
        note!(
            "Tracing  {} (process {}), {}, for {}",
            target.name,
            target.processes[0],
            ports.join(", "),
            args.duration
        );
        let recorder = Recorder::new(SLOWEST_KEPT);
        Ok(Trace { session, recorder, first: Vec::new(), meter, slices, sampler })
    }

    /// Traces; returns why it ended before the time was over.
    fn follow(
        &mut self,
        args: &Args,
        target: &Target,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Option<String>> {
        let until = length(args);
        let begin = Instant::now();
        while begin.elapsed() < until {
            if interrupt.signal().is_some() {
                return Ok(Some("stopped by a signal".to_owned()));
            }
            if !target.is_alive() {
                return Ok(Some(format!("{} (process {}) ended", target.name, target.processes[0])));
            }
            std::thread::sleep(POLL);
            let requests = self.slices.poll(&mut self.session)?;
            self.take(args, requests);
            self.meter.poll(begin.elapsed(), &mut self.session, &self.recorder, target)?;
        }
        Ok(None)
    }

    fn end(&mut self) -> anyhow::Result<()> {
        for request in self.session.finish()? {
            self.recorder.add(request);
        }
        Ok(())
    }

    fn take(&mut self, args: &Args, requests: Vec<Request>) {
        for request in requests {
            if args.timeline.is_some() && self.first.len() < timeline::FIRST {
                self.first.push(request.clone());
            }
            self.recorder.add(request);
        }
    }
}

/// Returns how long to trace.
fn length(args: &Args) -> Duration {
    Duration::from_nanos(args.duration.as_ps() / PS_PER_NS)
}

/// Explains a trace without a request.
fn nothing_seen(shown: &Shown) -> anyhow::Error {
    let Shown { report, target, sample, ended, .. } = shown;
    let ports: Vec<String> = target.ports.iter().map(ToString::to_string).collect();
    let why = match (report.unmatched.requests, report.unmatched.cut_off) {
        (0, 0) if *sample > 1 => format!(
            "no request arrived at {} on the connections that --sample {sample} chooses",
            ports.join(", ")
        ),
        (0, 0) => format!("no request arrived at {}", ports.join(", ")),
        (unmatched, cut_off) => format!(
            "no request could be matched: {}",
            tables::reasons(report).unwrap_or_else(|| format!("{unmatched} unmatched, {cut_off} cut off"))
        ),
    };
    match ended {
        Some(ended) => anyhow!("{ended}; {why}"),
        None => anyhow!("{why}"),
    }
}

/// Prints the report and writes the files.
fn show(args: &Args, shown: &Shown, first: &[Request]) -> anyhow::Result<()> {
    let slowest = args.slowest as usize;
    let printed = match args.format {
        Format::Json => as_json(shown)?,
        Format::Csv => tables::csv(&shown.report),
        Format::Table => {
            let mut text = tables::sentence(shown) + "\n\n";
            for grid in tables::grids(shown, slowest) {
                text += &(grid.to_terminal(&output::style()) + "\n");
            }
            text += &(tables::cost(shown) + "\n");
            tables::warnings(shown).iter().for_each(|warning| text += &format!("warning: {warning}\n"));
            text
        }
        Format::Md => {
            let grids: Vec<String> =
                tables::grids(shown, slowest).iter().map(plimsoll_report::table::Grid::to_markdown).collect();
            let warnings = tables::warnings(shown).into_iter().map(|text| format!("\n**Warning:** {text}\n"));
            let cost = tables::cost(shown);
            format!(
                "{}\n\n{}\n{cost}\n{}",
                tables::sentence(shown),
                grids.join("\n"),
                warnings.collect::<String>()
            )
        }
    };
    output::print(&printed)?;
    if let Some(path) = &args.out {
        output::write_whole(path, &page::render(shown, &command(args), slowest))?;
        note!("Page     {}", path.display());
    }
    if let Some(path) = &args.timeline {
        output::write_whole(path, &timeline::render(shown, first))?;
        note!("Timeline {} (open it in https://ui.perfetto.dev)", path.display());
    }
    Ok(())
}

/// Returns the report as JSON, after what it is of.
fn as_json(shown: &Shown) -> anyhow::Result<String> {
    let Shown { report, target, rate, sample, duty, lost_records, records, locks, profile, cost, ended } =
        shown;
    let mut whole = Map::new();
    whole.insert("server".to_owned(), json!(target.name));
    whole.insert("processes".to_owned(), json!(target.processes));
    let ports: Vec<String> = target.ports.iter().map(ToString::to_string).collect();
    whole.insert("ports".to_owned(), json!(ports));
    whole.insert("sample".to_owned(), json!(sample));
    whole.insert("duty".to_owned(), json!(duty));
    whole.insert("ended".to_owned(), json!(ended));
    whole.insert("records".to_owned(), json!(records));
    whole.insert("lost_records".to_owned(), json!(lost_records));
    whole.insert("cost".to_owned(), json!(cost));
    whole.insert(
        "serialisation_ns".to_owned(),
        json!(rate.map(|rate| report.serialisation_ns(rate.as_bps()))),
    );
    if let Value::Object(numbers) = serde_json::to_value(report).context("the report is no JSON object")? {
        whole.extend(numbers);
    }
    whole.insert("locks".to_owned(), json!(locks));
    whole.insert("profile".to_owned(), json!(profile.as_ref().ok()));
    Ok(format!("{}\n", printable_json(&format!("{:#}", Value::Object(whole)))))
}

/// Returns the rate that the only device with a rate reports, in this network namespace.
fn rate_of_device(target: &Target) -> Option<Rate> {
    let folder = format!("/proc/{}/root/sys/class/net", target.processes.first()?);
    let rates = fs::read_dir(folder).ok()?.filter_map(|entry| {
        let text = fs::read_to_string(entry.ok()?.path().join("speed")).ok()?;
        text.trim().parse::<u64>().ok().filter(|mbps| *mbps > 0)
    });
    let rates: Vec<u64> = rates.collect();
    match rates.as_slice() {
        [mbps] => format!("{mbps}Mbps").parse().ok(),
        _ => None,
    }
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

fn check_extension(option: &str, path: Option<&Path>, wanted: &str) -> anyhow::Result<()> {
    match path {
        Some(path) if path.extension().is_none_or(|extension| extension != wanted) => {
            Err(anyhow!("{option} {}: allowed: a name that ends in .{wanted}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The slowest requests that are kept with all their spans.
const SLOWEST_KEPT: usize = 1_000;
/// The futexes that are listed.
const LOCKS: usize = 10;
/// The functions that are listed.
const FUNCTIONS: usize = 25;
const PS_PER_NS: u64 = 1_000;
