//! A page that shows a scenario's keys as knobs, served to the browser of one user, and the runs behind it.
//!
//! ```text
//! scenario ──> knobs ──> page (crate report) ──> browser ── turn ──> gate ──> server ──> Session: one worker
//!    ^                                              ^                                      │ run, line, record
//!    └── saved: the scenario with the changes       └── state: results rendered <──────────┘
//! ```
//!
//! A change is laid over the scenario as by `--set`, so every shown result can be saved as a scenario with the same
//! digest. Of a sweep, the first point is shown: its values are laid over the scenario in the same way, which ends the
//! sweep.

#![cfg(unix)]
#![forbid(unsafe_code)]

mod gate;
mod knobs;
mod line_watch;
mod server;
mod session;

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use plimsoll_experiment::Memory;
use plimsoll_experiment::question::label;
use plimsoll_http::{Listener, ListenerReach};
use plimsoll_report::html::{self, ExplorePage};
use plimsoll_scenario::{Overrides, Point, Scenario, ScenarioError, ScenarioWarning};
use plimsoll_sim::{RunError, estimate};

use gate::Gate;
use session::Session;

/// A running server of the page, with the thread that does its jobs.
pub struct Explorer {
    address: String,
    session: Arc<Session>,
    server: JoinHandle<io::Result<()>>,
    worker: JoinHandle<()>,
}

/// The reason why a page is not served.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    /// A run needs more memory than there is.
    #[error("{0}")]
    Run(String, #[source] RunError),
    /// The scenario is invalid without its sweep.
    #[error("the scenario is invalid without its sweep")]
    Scenario(Vec<ScenarioError>),
    /// The system refused a part of the server.
    #[error("{0}")]
    System(String, #[source] io::Error),
}

/// The interval at which the server checks whether it has to end.
const LOOK_UP: Duration = Duration::from_millis(100);

impl Explorer {
    /// Serves the page of the scenario at `path`, at a port of this machine: any free one for 0.
    ///
    /// # Errors
    /// Returns an error if a run needs more memory than there is, the port is not free, or no thread can be started.
    pub fn new(
        path: &Path,
        scenario: Scenario,
        port: u16,
        threads: usize,
        memory: Memory,
        commit: Option<&'static str>,
    ) -> Result<Explorer, ExploreError> {
        let points = session::first_points(&scenario);
        for point in &points {
            estimate::check(&point.model, memory.limit())
                .map_err(|error| ExploreError::Run(label(point), error))?;
        }
        let page = page(&scenario, &points);
        let cannot = |what: &str| {
            let what = what.to_owned();
            move |error| ExploreError::System(what, error)
        };
        let listener = Listener::bind(&format!("127.0.0.1:{port}"), ListenerReach::Loopback)
            .map_err(cannot(&format!("cannot listen on 127.0.0.1, port {port}")))?;
        let port = listener.address().rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(port);
        let gate = Gate::new(port).map_err(|error| cannot("cannot draw a token")(io::Error::other(error)))?;
        let scenario = at_first_point(scenario).map_err(ExploreError::Scenario)?;
        let session = Arc::new(Session::new(path.to_owned(), scenario, threads, memory, commit));
        let (address, served, worked) = (gate.address(), Arc::clone(&session), Arc::clone(&session));
        // It ends with the process, independently of its clients.
        let server = thread::Builder::new()
            .spawn(move || server::serve(&listener, &gate, &served, &page))
            .map_err(cannot("cannot start a thread that serves the page"))?;
        let worker = thread::Builder::new()
            .spawn(move || worked.work())
            .map_err(cannot("cannot start a thread that runs the scenario"))?;
        Ok(Explorer { address, session, server, worker })
    }

    /// Returns the address of the page.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits as long as `goes_on` returns true; then cancels the running job.
    ///
    /// # Errors
    /// Returns an error if the page cannot be served any more.
    pub fn wait(self, goes_on: impl Fn() -> bool) -> Result<(), ExploreError> {
        while goes_on() && !self.server.is_finished() && !self.worker.is_finished() {
            thread::sleep(LOOK_UP);
        }
        self.session.end();
        self.worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        if self.server.is_finished()
            && let Ok(Err(error)) = self.server.join()
        {
            return Err(ExploreError::System("the page is served no longer".to_owned(), error));
        }
        Ok(())
    }
}

/// Returns the first sweep point as a scenario without a sweep. The values of the point come before the other
/// overrides, as in the sweep.
///
/// # Errors
/// Returns the errors of the scenario without its sweep.
fn at_first_point(scenario: Scenario) -> Result<Scenario, Vec<ScenarioError>> {
    let Some(point) = scenario.points().first().filter(|point| !point.sweep.is_empty()) else {
        return Ok(scenario);
    };
    // A result names a long list by its length, so the values are taken from the settings; a table has several there.
    let settings = point.settings();
    let written = |key: &str| settings.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    let values = point.sweep.iter().map(|(key, value)| format!("{key}={}", written(key).unwrap_or(value)));
    let set = values.chain(scenario.overrides().set.iter().cloned()).collect();
    scenario.with_overrides(&Overrides { set, ..scenario.overrides().clone() })
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
    let mut notes: Vec<String> = scenario.warnings().iter().map(ScenarioWarning::brief).collect();
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
