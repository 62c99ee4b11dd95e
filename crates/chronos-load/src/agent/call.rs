//! The caller's side: has several agents act as one generator.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use plimsoll_units::Span;

use super::wire::Wire;
use super::{AGENTS_MAX, AgentMessage, Call, LoadRound, Preparation, RoundPace, Token, VERSION};
use crate::book::Book;
use crate::endpoint::ServerAddress;
use crate::phase::GeneratorShare;
use crate::setup::{LoadPhase, Pace};

/// Agents that act as one generator. They stop when this is dropped.
#[derive(Debug)]
pub struct Agents(Vec<AgentConnection>);

/// A connection to an agent.
#[derive(Debug)]
struct AgentConnection {
    address: String,
    wire: Wire,
}

impl Agents {
    /// Connects to the agents at these addresses.
    ///
    /// # Errors
    /// Returns an error if an agent cannot be reached, or refuses the token.
    pub fn connect(addresses: &[String], token: &Token) -> anyhow::Result<Agents> {
        let most = AGENTS_MAX as usize;
        ensure!(
            (1..=most).contains(&addresses.len()),
            "--agents: {} agents; 1 to {most} are allowed",
            addresses.len()
        );
        addresses
            .iter()
            .map(|address| AgentConnection::connect(address, token))
            .collect::<anyhow::Result<_>>()
            .map(Agents)
    }

    /// Returns the number of agents.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns the address of an agent.
    pub fn address(&self, agent: usize) -> &str {
        &self.0[agent].address
    }

    /// Has all agents prepare a load, with `options` as on a command line. The first stores the keys.
    ///
    /// # Errors
    /// Returns an error if an agent refuses an option, is lost, or cannot store the keys.
    pub fn prepare(&mut self, servers: &[ServerAddress], options: &[String]) -> anyhow::Result<()> {
        let of = self.count();
        let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
        for (index, agent) in (0..).zip(&mut self.0) {
            let preparation = Preparation {
                servers: servers.clone(),
                options: options.to_vec(),
                share: GeneratorShare { index, of },
                stores: index == 0,
            };
            // One after the other: the keys are stored when the first is ready.
            agent.say(&Call::Prepare(preparation))?;
            agent.expect("ready", STORE_PATIENCE, |answer| {
                matches!(answer, AgentMessage::Ready).then_some(())
            })?;
        }
        Ok(())
    }

    /// Runs a phase on all agents, and returns the counts of each. The rate of an open loop is the sum over all agents;
    /// the agents wait for replies up to `timeout` after its end.
    ///
    /// # Errors
    /// Returns an error if an agent is lost, or cannot reach a server.
    pub fn run(&mut self, phase: LoadPhase, timeout: Span) -> anyhow::Result<Vec<Book>> {
        let pace = match phase.pace {
            Pace::Open(arrivals, rate) => RoundPace::Open { arrivals: arrivals.to_string(), rate },
            Pace::Closed(outstanding) => RoundPace::Closed { outstanding },
            Pace::Load(_) => bail!("agents store keys when they prepare"),
        };
        let (warm_up_ps, end_ps) = (phase.from.as_ps(), phase.to.as_ps());
        let round = LoadRound { index: phase.index, pace, warm_up_ps, time_ps: end_ps - warm_up_ps };
        for agent in &mut self.0 {
            agent.say(&Call::Run(round.clone()))?;
        }
        for agent in &mut self.0 {
            agent.expect("connected", CONNECT_PATIENCE, |answer| {
                matches!(answer, AgentMessage::Connected).then_some(())
            })?;
        }
        for agent in &mut self.0 {
            agent.say(&Call::Go)?;
        }
        let length = Duration::from_nanos(end_ps.saturating_add(timeout.as_ps()) / 1_000);
        let done = self.0.iter_mut().map(|agent| {
            let sent = agent.expect("done", length + DONE_PATIENCE, |answer| match answer {
                AgentMessage::Done(book) => Some(book),
                _ => None,
            })?;
            sent.open().with_context(|| format!("agent {}: its results cannot be read", agent.address))
        });
        done.collect()
    }
}

impl AgentConnection {
    fn connect(address: &str, token: &Token) -> anyhow::Result<AgentConnection> {
        let doing = || format!("agent {address}: cannot connect");
        let resolved = address
            .to_socket_addrs()
            .with_context(doing)?
            .next()
            .with_context(|| format!("agent {address}: the name has no address"))?;
        let stream = TcpStream::connect_timeout(&resolved, CONNECT_PATIENCE).with_context(doing)?;
        let mut agent =
            AgentConnection { address: address.to_owned(), wire: Wire::new(stream).with_context(doing)? };
        agent.say(&Call::Hello { version: VERSION, token: token.0.clone() })?;
        agent.expect("welcome", CONNECT_PATIENCE, |answer| {
            matches!(answer, AgentMessage::Welcome).then_some(())
        })?;
        Ok(agent)
    }

    fn say(&mut self, call: &Call) -> anyhow::Result<()> {
        self.wire.send(call).with_context(|| format!("agent {}", self.address))
    }

    fn expect<T>(
        &mut self,
        name: &str,
        patience: Duration,
        wanted: impl FnOnce(AgentMessage) -> Option<T>,
    ) -> anyhow::Result<T> {
        let doing = || format!("agent {}", self.address);
        match self.wire.receive(ANSWER_BYTES_MAX, patience).with_context(doing)? {
            AgentMessage::Error(error) => bail!("agent {}: {error}", self.address),
            answer => {
                wanted(answer).with_context(|| format!("agent {}: its answer is not `{name}`", self.address))
            }
        }
    }
}

const ANSWER_BYTES_MAX: usize = 16 << 20;
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// The longest time that the first agent may take to store the keys.
const STORE_PATIENCE: Duration = Duration::from_secs(600);
/// The longest wait for the last replies after a round.
const DONE_PATIENCE: Duration = Duration::from_secs(60);
