//! The servers under load, the load, and the generators that send it: this process, or agents.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Args;
use plimsoll_units::Span;

use crate::agent::{Agents, Token};
use crate::book::Book;
use crate::endpoint::ServerAddress;
use crate::line::{MeasuredPhase, generator_faults};
use crate::options::{Clients, Recorded, RequestMix, Times, ValidityOptions};
use crate::phase::{ClientThreads, phase};
use crate::report::{Report, SuspectLimits};
use crate::setup::{LoadPhase, Pace, Setup};

/// The servers, their requests, the clients and the length of the run.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// Address of a server: HOST:PORT, udp:HOST:PORT, or unix:PATH; once for each server
    #[arg(help_heading = "Servers", long = "server", required = true, value_name = "SERVER")]
    servers: Vec<ServerAddress>,
    #[command(flatten)]
    sent: Recorded<SentLoad>,
    #[command(flatten)]
    generators: AgentOptions,
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    validity: ValidityOptions,
}

/// The load that generators send.
#[derive(Debug, Args)]
struct SentLoad {
    #[command(flatten)]
    workload: RequestMix,
    #[command(flatten)]
    clients: Clients,
}

/// The other machines that send the load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Agents")]
struct AgentOptions {
    /// Have these agents (`chronos-load agent`) send the load instead, each with --connections and --threads of its own
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', requires = "token_file")]
    agents: Vec<String>,
    /// File whose first line is the agents' token
    #[arg(long, value_name = "FILE", requires = "agents")]
    token_file: Option<PathBuf>,
}

/// Servers in which all keys are stored.
pub(super) struct Ready<'a> {
    target: &'a Target,
    generators: Generators,
    limits: SuspectLimits,
}

enum Generators {
    Here { setup: Arc<Setup>, client_threads: ClientThreads },
    There(Agents),
}

impl Target {
    /// Stores all keys in the servers.
    ///
    /// # Errors
    /// Returns an error if options contradict each other, or a server or an agent cannot be reached.
    pub(super) fn prepare(&self) -> anyhow::Result<Ready<'_>> {
        let SentLoad { workload, clients } = &self.sent.options;
        let setup = workload.setup(&self.servers, clients.connections)?;
        let generators = match &self.generators.token_file {
            Some(path) => {
                ensure!(workload.terms.is_none(), "--terms: agents read no files");
                let is_unix = |server: &ServerAddress| matches!(server, ServerAddress::Unix(_));
                ensure!(!self.servers.iter().any(is_unix), "--server: agents do not connect to UNIX sockets");
                let mut agents = Agents::connect(&self.generators.agents, &Token::read(path)?)?;
                agents.prepare(&self.servers, &self.sent.words)?;
                Generators::There(agents)
            }
            None => {
                let client_threads = clients.client_threads(self.servers.clone());
                if workload.loads() {
                    client_threads.store(&setup)?;
                }
                Generators::Here { setup, client_threads }
            }
        };
        Ok(Ready { target: self, generators, limits: self.validity.limits() })
    }

    /// Returns the servers as they were given.
    pub(super) fn servers(&self) -> String {
        self.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl Ready<'_> {
    /// Has lags of the generator up to `limit` times the allowed share count for nothing: latencies, which include
    /// them, are compared with this limit.
    pub(super) fn compare_with(&mut self, limit: Span) {
        self.limits.lag_us = self.limits.lag_share * limit.as_us_f64();
    }

    /// Runs the phase of this index at `pace`.
    ///
    /// # Errors
    /// Returns an error if a server has ended, a processor does not exist, or an agent is lost.
    pub(super) fn run(&mut self, index: u8, pace: Pace) -> anyhow::Result<MeasuredPhase> {
        let (Target { times, sent, .. }, limits) = (self.target, self.limits);
        let phase = phase(index, pace, times.warm_up, times.time);
        let clients = &sent.options.clients;
        let threads = clients.threads.min(clients.connections);
        let agents = match &mut self.generators {
            Generators::Here { setup, client_threads } => {
                let book = client_threads.run(setup, phase, |_| ())?;
                let report = Report::new(&book, &phase, threads, limits);
                return Ok(MeasuredPhase::new(book, report, limits));
            }
            Generators::There(agents) => agents,
        };
        let books = agents.run(phase, sent.options.workload.timeout).context("a round has no result")?;
        let mut all = Book::default();
        let mut generator = Vec::new();
        for (agent, book) in books.iter().enumerate() {
            all.add(book);
            // The mean of several generators hides the one that was too slow.
            let report = Report::new(book, &share(phase, agents.count()), threads, limits);
            let faults = generator_faults(&report, limits);
            generator.extend(faults.into_iter().map(|why| format!("agent {}: {why}", agents.address(agent))));
        }
        let mut report = Report::new(&all, &phase, threads * agents.count(), limits);
        let more = generator.iter().filter(|why| !report.suspect.contains(why)).cloned();
        report.suspect.extend(more.collect::<Vec<_>>());
        Ok(MeasuredPhase { book: all, report, generator })
    }
}

/// Returns the phase of one of `agents` generators.
fn share(phase: LoadPhase, agents: u32) -> LoadPhase {
    match phase.pace {
        Pace::Open(arrivals, rate) => {
            LoadPhase { pace: Pace::Open(arrivals, rate / f64::from(agents)), ..phase }
        }
        Pace::Closed(_) | Pace::Load(_) => phase,
    }
}
