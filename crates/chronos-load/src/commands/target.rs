//! The servers that a command puts its load on, and what that load is.

use std::sync::Arc;

use clap::Args;

use crate::book::Book;
use crate::endpoint::Endpoint;
use crate::options::{Belief, Clients, Times, Workload};
use crate::phase::{Crew, phase};
use crate::report::Report;
use crate::setup::{Pace, Setup};

/// Which servers are asked what, by whom and for how long.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// Where a server listens: HOST:PORT, udp:HOST:PORT, or unix:PATH; once for each server
    #[arg(help_heading = "Servers", long = "server", required = true, value_name = "SERVER")]
    servers: Vec<Endpoint>,
    #[command(flatten)]
    workload: Workload,
    #[command(flatten)]
    clients: Clients,
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    belief: Belief,
}

/// Servers that have all keys.
pub(super) struct Ready<'a> {
    target: &'a Target,
    setup: Arc<Setup>,
    crew: Crew,
}

impl Target {
    /// Stores all keys.
    ///
    /// # Errors
    /// If options contradict each other, or a server is not there.
    pub(super) fn prepare(&self) -> anyhow::Result<Ready<'_>> {
        let setup = self.workload.setup(&self.servers, self.clients.connections)?;
        let crew = self.clients.crew(self.servers.clone());
        if self.workload.loads() {
            crew.store(&setup)?;
        }
        Ok(Ready { target: self, setup, crew })
    }
}

impl Ready<'_> {
    /// Runs the phase `index`.
    ///
    /// # Errors
    /// If a server has gone, or a processor is not there.
    pub(super) fn run(&self, index: u8, pace: Pace) -> anyhow::Result<(Book, Report)> {
        let Target { times, belief, .. } = self.target;
        let phase = phase(index, pace, times.warm_up, times.time);
        let book = self.crew.run(&self.setup, phase, |_| ())?;
        let report = Report::new(&book, &phase, self.crew.threads, belief.doubts());
        Ok((book, report))
    }
}
