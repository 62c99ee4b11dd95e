//! Implements `plimsoll replay`, which repeats a run and draws the packets of a moment on one page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, anyhow, bail};
use plimsoll_experiment::question::{key, label, quoted};
use plimsoll_experiment::replay::{Drawn, LENGTH, page, record, worst};
use plimsoll_process::note;
use plimsoll_results::PointOutcome;
use plimsoll_results::replay::{Recording, ReplayWindow};
use plimsoll_results::run_dir::Status;
use plimsoll_scenario::model::Model;
use plimsoll_scenario::{Point, Registry, Scenario, did_you_mean};
use plimsoll_sim::{Extent, Progress, RecordError, RunError, estimate};
use plimsoll_units::{Span, Time, whole};

use crate::memory::{Budget, Work};
use crate::output::{self, Done};
use crate::signals::Interrupt;
use crate::source::Source;

/// Draw the packets of a moment of a run on one page: on the links, in the queues, marked, dropped and paused.
///
/// The run is repeated in the simulator, which gives the same packets. The page needs no network and no server; it
/// plays, and steps by event and by microsecond.
#[derive(clap::Args)]
// One run is drawn, whatever their number; SCENARIO may be a run directory too.
#[command(mut_arg("path", |path| path.help("Scenario file, or the run directory of a simulated run")))]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Variant to draw; the first by default.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Point of a sweep to draw, one swept key a flag: `--at workload.background.load=0.4`. By default the first.
    #[arg(long, value_name = "KEY=VALUE")]
    at: Vec<String>,
    /// Replicate to draw, counted from 0.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u32>(..))]
    replicate: u32,
    /// First instant to draw, from the start of the run; by default shortly before the message that was delayed most by
    /// its time on idle links, which the run is repeated to find.
    #[arg(long, value_name = "TIME", value_parser = span)]
    from: Option<Span>,
    /// Length to draw, 200us by default; without `--from` as long as that message takes, if it fits the page. A page
    /// holds at most 100,000 packet-hops.
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    length: Option<Span>,
    /// Repeat the run to its end, and check its digest against that in the run directory.
    #[arg(long)]
    whole: bool,
    /// Page to write, an HTML file that is not there yet.
    #[arg(long, value_name = "FILE", default_value = "replay.html")]
    out: PathBuf,
    #[command(flatten)]
    budget: Budget,
}

fn span(text: &str) -> Result<Span, <Span as FromStr>::Err> {
    text.parse()
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    if args.out.is_file() {
        bail!("{} is there already; choose another file with `--out`", args.out.display());
    }
    let memory = args.budget.watch(Work::Replay)?;
    let scenario = scenario_of(&args.source).load(registry)?;
    let point = choose(args, &scenario)?;
    estimate::check(&point.model, memory.limit()).with_context(|| label(point))?;
    if args.length.is_some_and(Span::is_zero) {
        bail!("--for 0s: expected a length above zero, such as 200us");
    }
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    let extent = if args.whole { Extent::Whole } else { Extent::Window };
    let asked = memory.asked();
    let mut goes_on = |_| interrupt.signal().is_none() && !memory.is_exceeded();
    let recorded = window(args, &point.model, &mut goes_on)
        .and_then(|window| record(&point.model, window, extent, args.length.is_none(), &mut goes_on));
    drop(asked);
    let (recording, outcome) = match recorded {
        Err(RecordError::Run(RunError::Cancelled)) if memory.is_exceeded() => {
            return Err(memory.error().into());
        }
        Err(RecordError::Run(RunError::Cancelled)) => {
            return Ok(ExitCode::from(128 + interrupt.signal().unwrap_or_default()));
        }
        Err(error @ RecordError::TooMany { .. }) => return Err(anyhow!("{error}: shorten it with `--for`")),
        Err(error @ RecordError::TooLate { .. }) => {
            return Err(anyhow!("{error}: choose an earlier `--from`"));
        }
        other => other?,
    };
    let outcome = outcome.map(|outcome| PointOutcome::new(key(point), point.seed, outcome));
    if let Some(outcome) = &outcome {
        check(&args.source.path, outcome)?;
    }
    let page = page(&Drawn {
        scenario: &scenario,
        point,
        recording: &recording,
        command: &command(args, &scenario, point, &recording),
        digest: outcome.map(|outcome| outcome.digest),
        commit: output::commit(),
    });
    output::write_whole(&args.out, &page)?;
    let packets = recording.packets.size.len();
    let [from, length] = [recording.from, recording.length].map(Span::from_ps);
    let hops = recording.hops.packet.len();
    note!("{packets} packets on {hops} hops of {}, from {from} for {length}", label(point));
    output::print(&format!("{}\n", args.out.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the source with the scenario of a run directory in its place.
fn scenario_of(source: &Source) -> Source {
    let path = if source.path.is_dir() { source.path.join("scenario.toml") } else { source.path.clone() };
    Source { path, ..source.clone() }
}

/// Returns the point that is to be drawn.
fn choose<'a>(args: &Args, scenario: &'a Scenario) -> anyhow::Result<&'a Point> {
    let points = scenario.points();
    let mut variants: Vec<&str> = points.iter().map(|point| point.variant.as_str()).collect();
    variants.dedup();
    let wanted = args.variant.as_deref().or(variants.first().copied()).unwrap_or_default();
    if !variants.contains(&wanted) {
        let near = did_you_mean(wanted, variants.iter().copied())
            .map_or_else(String::new, |near| format!("; {near}"));
        bail!("unknown variant `{wanted}`: expected one of {}{near}", variants.join(", "));
    }
    let mut left: Vec<&Point> = points.iter().filter(|point| point.variant == wanted).collect();
    for at in &args.at {
        let (key, value) = at.split_once('=').ok_or_else(|| anyhow!("--at {at}: write KEY=VALUE"))?;
        let values: Vec<String> = left
            .iter()
            .flat_map(|point| point.sweep.iter().filter(|(swept, _)| swept == key.trim()))
            .map(|(_, value)| value.clone())
            .collect();
        if values.is_empty() {
            let swept: Vec<&str> =
                points.iter().flat_map(|point| &point.sweep).map(|(key, _)| key.as_str()).collect();
            let near =
                did_you_mean(key, swept.iter().copied()).map_or_else(String::new, |near| format!("; {near}"));
            bail!("--at {at}: `{key}` is not swept by this scenario{near}");
        }
        let is_same = |other: &str| other == value.trim() || other.trim_matches('"') == value.trim();
        left.retain(|point| point.sweep.iter().any(|(swept, other)| swept == key.trim() && is_same(other)));
        if left.is_empty() {
            bail!("--at {at}: expected one of {}", values.join(", "));
        }
    }
    let replicates = left.iter().map(|point| point.replicate).max().unwrap_or(0);
    left.into_iter().find(|point| point.replicate == args.replicate).ok_or_else(|| {
        anyhow!(
            "there is no replicate {}: expected one from 0 to {replicates}; see `--replicates`",
            args.replicate
        )
    })
}

/// Returns the window that the options name, or the one around the message that was delayed most.
fn window(
    args: &Args,
    model: &Model,
    goes_on: &mut dyn FnMut(Progress) -> bool,
) -> Result<ReplayWindow, RecordError> {
    let named = |from: Span| ReplayWindow { from: Time::ZERO + from, length: LENGTH };
    let window = match args.from {
        Some(from) => named(from),
        None => worst(&plimsoll_sim::run(model, goes_on)?).unwrap_or_else(|| named(model.run.warmup)),
    };
    Ok(ReplayWindow { length: args.length.unwrap_or(window.length), ..window })
}

/// Compares the digest of the repeated run with that in its run directory, if it is from one.
fn check(path: &Path, outcome: &PointOutcome) -> anyhow::Result<()> {
    note!("digest {}", outcome.digest);
    if !path.is_dir() {
        return Ok(());
    }
    let run = output::open_run(path)?;
    let kept = run.status().into_iter().find(|(point, _)| point.key == outcome.key);
    match kept {
        Some((_, Status::Done(digest))) if digest != outcome.digest => {
            bail!("{} has the digest {digest} for this point: another build has run it", path.display())
        }
        Some((_, Status::Done(_))) => note!("as in {}", path.display()),
        _ => note!("{} has not finished this point", path.display()),
    }
    Ok(())
}

/// Returns the command that makes the page again.
fn command(args: &Args, scenario: &Scenario, point: &Point, recording: &Recording) -> String {
    // The seed of a replicate is made of that of the first point.
    let mut command = args.source.command_of("replay", scenario.points());
    command.push_str(&format!(" --variant {}", quoted(&point.variant)));
    for (key, value) in &point.sweep {
        command.push_str(&format!(" --at {}", quoted(&format!("{key}={}", value.trim_matches('"')))));
    }
    if point.replicate > 0 {
        command.push_str(&format!(" --replicate {}", point.replicate));
    }
    let [from, length] = [recording.from, recording.length].map(Span::from_ps);
    command.push_str(&format!(" --from {from} --for {length}"));
    if args.whole {
        command.push_str(" --whole");
    }
    command
}
