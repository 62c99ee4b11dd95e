//! Implements `plimsoll explore`, which serves a page on which one turns a scenario's knobs and sees what comes of it.
//!
//! ```text
//! scenario ──> knobs ──> page (crate report) ──> browser ── turn ──> gate ──> server ──> Session: one worker
//!    ^                                              ^                                      │ run, line, record
//!    └── saved: the scenario with the changes       └── state: results rendered <──────────┘
//! ```
//!
//! A change is laid over the scenario as `--set` does it, so whatever is shown can be saved, and has its digest. Of a
//! sweep, the first point is shown: its values are laid over the scenario in the same way, which ends the sweep.

mod gate;
mod knobs;
mod line_watch;
mod server;
mod session;

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use plimsoll_http::{Listener, Reach};
use plimsoll_process::note;
use plimsoll_report::html::{self, ExplorePage};
use plimsoll_scenario::{Overrides, Point, Registry, Scenario, Warning};
use plimsoll_sim::estimate;
use plimsoll_units::whole;

use crate::batch;
use crate::job;
use crate::memory::{Budget, Work};
use crate::output::{self, Done};
use crate::signals::Interrupt;
use crate::source::{BadScenario, Source};

use gate::Gate;
use session::Session;

/// Explore a scenario in the browser: turn its keys as knobs, and see tail, breakdown, load line and packets at once.
///
/// Serves one page on this machine only, at the address that it prints, until Ctrl-C. A first look takes about a
/// second; longer runs follow until the scenario has been run as it is. What is shown can be saved as a scenario, and
/// repeats with the same digest.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Port of the page; any free one by default.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = whole::<u16>(..))]
    port: u16,
    /// Number of concurrent runs; all cores by default. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    budget: Budget,
}

/// The interval at which the command looks whether it is to end.
const LOOK_UP: Duration = Duration::from_millis(100);

pub fn run(args: &Args, registry: &Registry) -> Done {
    let memory = args.budget.watch(Work::Explore)?;
    let scenario = args.source.load(registry)?;
    let points = session::first_points(&scenario);
    for point in &points {
        estimate::check(&point.model, memory.limit()).with_context(|| job::label(point))?;
    }
    let page = page(&scenario, &points);
    let listener = Listener::bind(&format!("127.0.0.1:{}", args.port), Reach::Loopback)
        .with_context(|| format!("cannot listen on 127.0.0.1, port {}", args.port))?;
    let port = listener.address().rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(args.port);
    let gate = Gate::new(port).context("cannot draw a token")?;
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    let threads = batch::threads(args.threads.map(usize::from));
    let (source, scenario) = at_first_point(&args.source, scenario)?;
    let session = Arc::new(Session::new(source, scenario, threads, memory));
    let address = format!("{}\n", gate.address());
    let served = Arc::clone(&session);
    // It ends with the process, whatever its clients do.
    let server = thread::Builder::new()
        .spawn(move || server::serve(&listener, &gate, &served, &page))
        .context("cannot start a thread that serves the page")?;
    thread::scope(|scope| {
        let worker = thread::Builder::new().spawn_scoped(scope, || session.work());
        worker.context("cannot start a thread that runs the scenario")?;
        let printed = output::print(&address);
        if printed.is_ok() {
            note!("Open this address in a browser on this machine. Ctrl-C ends it.");
            while interrupt.signal().is_none() && !server.is_finished() {
                thread::sleep(LOOK_UP);
            }
        }
        session.end();
        printed
    })?;
    if server.is_finished()
        && let Ok(Err(error)) = server.join()
    {
        return Err(anyhow::Error::from(error).context("the page is served no longer"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the first sweep point as a scenario without a sweep, and its source. The values of the point come before
/// the other overrides, as in the sweep.
///
/// # Errors
/// Returns the errors of the scenario without its sweep.
fn at_first_point(source: &Source, scenario: Scenario) -> anyhow::Result<(Source, Scenario)> {
    let mut source = source.clone();
    let Some(point) = scenario.points().first().filter(|point| !point.sweep.is_empty()) else {
        return Ok((source, scenario));
    };
    // A result names a long list by its length, so the values are those of the settings; a table has several there.
    let settings = point.settings();
    let written = |key: &str| settings.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    let values = point.sweep.iter().map(|(key, value)| format!("{key}={}", written(key).unwrap_or(value)));
    source.set.splice(0..0, values);
    let overrides = Overrides { set: source.set.clone(), ..scenario.overrides().clone() };
    let scenario = scenario
        .with_overrides(&overrides)
        .map_err(|errors| BadScenario::new(scenario.name().to_owned(), "run", errors))?;
    Ok((source, scenario))
}

/// Renders the page of a scenario.
fn page(scenario: &Scenario, points: &[&Point]) -> String {
    let of_first_replicate: Vec<&Point> =
        points.iter().copied().filter(|point| point.replicate == 0).collect();
    let knobs = knobs::knobs(&of_first_replicate, &plimsoll_scenario::schema());
    let variants: Vec<String> = of_first_replicate.iter().map(|point| point.variant.clone()).collect();
    let first = points.first().map(|point| &point.model);
    let objectives: Vec<String> = scenario.objectives().iter().map(|(_, text)| text.clone()).collect();
    let workloads: Vec<String> =
        first.map(|model| model.workload.keys().cloned().collect()).unwrap_or_default();
    let mut notes: Vec<String> = scenario.warnings().iter().map(Warning::brief).collect();
    if let Some(point) = points.first().filter(|point| !point.sweep.is_empty()) {
        let at: Vec<String> = point.sweep.iter().map(|(key, value)| format!("`{key} = {value}`")).collect();
        notes.push(format!(
            "The sweep is not run: the page begins at its first point, {}. What is saved or copied is the point \
             that is shown.",
            at.join(", ")
        ));
    }
    html::explore(&ExplorePage {
        title: scenario.title(),
        description: first.map_or("", |model| &model.description),
        knobs: &knobs,
        variants: &variants,
        objectives: &objectives,
        workloads: &workloads,
        replay_from: &first.map(|model| model.run.warmup.to_string()).unwrap_or_default(),
        notes: &notes,
    })
}
