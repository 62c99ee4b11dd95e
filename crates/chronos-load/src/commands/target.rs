//! The servers under load, and the load.

use std::sync::Arc;

use clap::Args;

use crate::book::Book;
use crate::endpoint::Endpoint;
use crate::options::{Clients, Times, ValidityOptions, Workload};
use crate::phase::{ClientThreads, phase};
use crate::report::Report;
use crate::setup::{Pace, Setup};

/// The servers, their requests, the clients and the length of the run.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// Address of a server: HOST:PORT, udp:HOST:PORT, or unix:PATH; once for each server
    #[arg(help_heading = "Servers", long = "server", required = true, value_name = "SERVER")]
    servers: Vec<Endpoint>,
    #[command(flatten)]
    workload: Workload,
    #[command(flatten)]
    clients: Clients,
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    validity: ValidityOptions,
}

/// Servers in which all keys are stored.
pub(super) struct Ready<'a> {
    target: &'a Target,
    setup: Arc<Setup>,
    client_threads: ClientThreads,
}

impl Target {
    /// Stores all keys in the servers.
    ///
    /// # Errors
    /// Returns an error if options contradict each other, or a server cannot be reached.
    pub(super) fn prepare(&self) -> anyhow::Result<Ready<'_>> {
        let setup = self.workload.setup(&self.servers, self.clients.connections)?;
        let client_threads = self.clients.client_threads(self.servers.clone());
        if self.workload.loads() {
            client_threads.store(&setup)?;
        }
        Ok(Ready { target: self, setup, client_threads })
    }
}

impl Ready<'_> {
    /// Runs the phase of this index at `pace`.
    ///
    /// # Errors
    /// Returns an error if a server has ended, or a processor does not exist.
    pub(super) fn run(&self, index: u8, pace: Pace) -> anyhow::Result<(Book, Report)> {
        let Target { times, validity, .. } = self.target;
        let phase = phase(index, pace, times.warm_up, times.time);
        let book = self.client_threads.run(&self.setup, phase, |_| ())?;
        let report = Report::new(&book, &phase, self.client_threads.threads, validity.limits());
        Ok((book, report))
    }
}
