//! Starts servers for a measurement, stores every key in them, and runs clients against them.

use std::sync::Arc;

use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

use crate::options::{Clients, RequestMix, ValidityOptions};
use crate::phase::ClientThreads;
use crate::process::{Recipe, ServerProcess, ServerTransport, Stopwatch};
use crate::report::{Report, SuspectLimits};
use crate::setup::{LoadPhase, Setup};

/// A set of servers that run until this value is dropped.
#[derive(Debug)]
pub struct ServerSet {
    servers: Vec<ServerProcess>,
    helpers: Vec<u32>,
    setup: Arc<Setup>,
    client_threads: ClientThreads,
    limits: SuspectLimits,
}

/// The results of a phase, on both sides.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PhaseResults {
    /// The results that the clients measured.
    pub report: Report,
    /// The servers' processor time per operation, in microseconds.
    pub server_us_per_operation: f64,
    /// The number of processors that the servers kept busy.
    pub server_busy: f64,
    /// The time per second in which the servers' threads were runnable, but other threads had their processors.
    pub server_waited: f64,
}

impl ServerSet {
    /// Starts a server for each of `recipes` on `cpus`, and stores all keys.
    ///
    /// # Errors
    /// Returns an error if options contradict each other, a server does not start, or a server does not store the keys.
    pub fn start(
        recipes: &[Recipe],
        transport: ServerTransport,
        cpus: &[usize],
        workload: &RequestMix,
        clients: &Clients,
        validity: ValidityOptions,
    ) -> anyhow::Result<ServerSet> {
        let start = |recipe| ServerProcess::start(recipe, transport, cpus);
        let servers = recipes.iter().map(start).collect::<anyhow::Result<Vec<ServerProcess>>>()?;
        let endpoints: Vec<_> = servers.iter().map(|server| server.endpoint.clone()).collect();
        let setup = workload.setup(&endpoints, clients.connections)?;
        let client_threads = clients.client_threads(endpoints);
        if workload.loads() {
            client_threads.store(&setup)?;
        }
        Ok(ServerSet { servers, helpers: Vec::new(), setup, client_threads, limits: validity.limits() })
    }

    /// Returns the processes of the servers, in the order of the recipes.
    pub fn processes(&self) -> Vec<u32> {
        self.servers.iter().map(ServerProcess::process).collect()
    }

    /// Counts the processor time of these tasks as the servers', such as threads of the kernel that receive for them.
    pub fn count_also(&mut self, tasks: Vec<u32>) {
        self.helpers = tasks;
    }

    /// Runs `phase` and measures the servers' processor time.
    ///
    /// # Errors
    /// Returns an error if a server has ended, or a processor does not exist.
    pub fn measure(&self, phase: LoadPhase) -> anyhow::Result<PhaseResults> {
        let mut watch = Stopwatch::of(&self.servers, &self.helpers);
        let book = self.client_threads.run(&self.setup, phase, |edge| watch.look(edge))?;
        let taken = watch.taken()?;
        let report = Report::new(&book, &phase, self.client_threads.threads, self.limits);
        let operations = report.rate * report.seconds;
        let of_each = |span: Span| if operations > 0.0 { span.as_us_f64() / operations } else { 0.0 };
        Ok(PhaseResults {
            server_us_per_operation: of_each(taken.ran),
            server_busy: taken.ran.as_secs_f64() / report.seconds,
            server_waited: taken.waited.as_secs_f64() / report.seconds,
            report,
        })
    }
}
