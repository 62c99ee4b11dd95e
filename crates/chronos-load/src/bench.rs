//! Servers that are started for a measurement, with every key stored in them, and the clients that ask them.

use std::sync::Arc;

use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

use crate::options::{Belief, Clients, Workload};
use crate::phase::Crew;
use crate::process::{Recipe, Server, Stopwatch, Transport};
use crate::report::{Doubts, Report};
use crate::setup::{Phase, Setup};

/// Servers that run until this is dropped.
#[derive(Debug)]
pub struct Bench {
    servers: Vec<Server>,
    setup: Arc<Setup>,
    crew: Crew,
    doubts: Doubts,
}

/// What a phase came to, on both sides.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measure {
    /// What the clients saw.
    pub report: Report,
    /// Microseconds of processor time that the servers took for an operation.
    pub server_us_per_operation: f64,
    /// Processors that the servers kept busy.
    pub server_busy: f64,
    /// Seconds a second in which their threads could have run, but others had their processors.
    pub server_waited: f64,
}

impl Bench {
    /// Starts a server for each of `recipes` on `cpus`, and stores all keys.
    ///
    /// # Errors
    /// If options contradict each other, a server does not start, or one does not take the keys.
    pub fn start(
        recipes: &[Recipe],
        transport: Transport,
        cpus: &[usize],
        workload: &Workload,
        clients: &Clients,
        belief: Belief,
    ) -> anyhow::Result<Bench> {
        let start = |recipe| Server::start(recipe, transport, cpus);
        let servers = recipes.iter().map(start).collect::<anyhow::Result<Vec<Server>>>()?;
        let endpoints: Vec<_> = servers.iter().map(|server| server.endpoint.clone()).collect();
        let setup = workload.setup(&endpoints, clients.connections)?;
        let crew = clients.crew(endpoints);
        if workload.loads() {
            crew.store(&setup)?;
        }
        Ok(Bench { servers, setup, crew, doubts: belief.doubts() })
    }

    /// Runs `phase`.
    ///
    /// # Errors
    /// If a server has ended, or a processor is not there.
    pub fn measure(&self, phase: Phase) -> anyhow::Result<Measure> {
        let mut watch = Stopwatch::of(&self.servers);
        let book = self.crew.run(&self.setup, phase, |moment| watch.look(moment))?;
        let taken = watch.taken()?;
        let report = Report::new(&book, &phase, self.crew.threads, self.doubts);
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
