//! Starts servers for a measurement, stores every key in them, and runs clients against them.

use std::sync::Arc;

use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

use crate::options::{Clients, ValidityOptions, Workload};
use crate::phase::ClientThreads;
use crate::process::{Recipe, Server, Stopwatch, Transport};
use crate::report::{Report, SuspectLimits};
use crate::setup::{Phase, Setup};

/// A set of servers that run until this value is dropped.
#[derive(Debug)]
pub struct Bench {
    servers: Vec<Server>,
    helpers: Vec<u32>,
    setup: Arc<Setup>,
    client_threads: ClientThreads,
    limits: SuspectLimits,
}

/// The results of a phase, on both sides.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measure {
    /// The results that the clients measured.
    pub report: Report,
    /// The servers' processor time per operation, in microseconds.
    pub server_us_per_operation: f64,
    /// The number of processors that the servers kept busy.
    pub server_busy: f64,
    /// The time per second in which the servers' threads were runnable, but other threads had their processors.
    pub server_waited: f64,
}

impl Bench {
    /// Starts a server for each of `recipes` on `cpus`, and stores all keys.
    ///
    /// # Errors
    /// Returns an error if options contradict each other, a server does not start, or a server does not store the keys.
    pub fn start(
        recipes: &[Recipe],
        transport: Transport,
        cpus: &[usize],
        workload: &Workload,
        clients: &Clients,
        validity: ValidityOptions,
    ) -> anyhow::Result<Bench> {
        let start = |recipe| Server::start(recipe, transport, cpus);
        let servers = recipes.iter().map(start).collect::<anyhow::Result<Vec<Server>>>()?;
        let endpoints: Vec<_> = servers.iter().map(|server| server.endpoint.clone()).collect();
        let setup = workload.setup(&endpoints, clients.connections)?;
        let client_threads = clients.client_threads(endpoints);
        if workload.loads() {
            client_threads.store(&setup)?;
        }
        Ok(Bench { servers, helpers: Vec::new(), setup, client_threads, limits: validity.limits() })
    }

    /// Returns the processes of the servers, in the order of the recipes.
    pub fn processes(&self) -> Vec<u32> {
        self.servers.iter().map(Server::process).collect()
    }

    /// Counts the processor time of these tasks as the servers', such as threads of the kernel that receive for them.
    pub fn count_also(&mut self, tasks: Vec<u32>) {
        self.helpers = tasks;
    }

    /// Runs `phase` and measures the servers' processor time.
    ///
    /// # Errors
    /// Returns an error if a server has ended, or a processor does not exist.
    pub fn measure(&self, phase: Phase) -> anyhow::Result<Measure> {
        let mut watch = Stopwatch::of(&self.servers, &self.helpers);
        let book = self.client_threads.run(&self.setup, phase, |edge| watch.look(edge))?;
        let taken = watch.taken()?;
        let report = Report::new(&book, &phase, self.client_threads.threads, self.limits);
        let operations = report.rate * report.seconds;
        let of_each = |span: Span| if operations > 0.0 { span.as_us_f64() / operations } else { 0.0 };
        Ok(Measure {
            server_us_per_operation: of_each(taken.ran),
            server_busy: taken.ran.as_secs_f64() / report.seconds,
            server_waited: taken.waited.as_secs_f64() / report.seconds,
            report,
        })
    }
}
