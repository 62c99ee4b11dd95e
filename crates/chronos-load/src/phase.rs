//! One phase of load, on its threads.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::ensure;
use plimsoll_units::{Span, Time};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::book::Book;
use crate::drive::{Clock, Wait, drive};
use crate::endpoint::Endpoint;
use crate::generator::Generator;
use crate::setup::{Pace, Phase, Setup};

/// Who makes the load.
#[derive(Clone, Debug)]
pub struct Crew {
    /// All servers, in the order of the setup's placement.
    pub servers: Vec<Endpoint>,
    /// Clients; each has a connection to every server.
    pub clients: u32,
    /// Threads, at most as many as clients.
    pub threads: u32,
    /// Processors; thread i is put on processor i modulo their number. Empty: where the system likes.
    pub cpus: Vec<usize>,
    /// What threads do when there is nothing to do.
    pub wait: Wait,
    /// The clients' congestion control over TCP; none: the system's.
    pub congestion: Option<String>,
}

/// A moment of a phase that somebody may want to look at the servers in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// What is measured begins.
    From,
    /// What is measured ends.
    To,
}

/// Why a phase was not run.
#[derive(Debug, thiserror::Error)]
pub enum PhaseError {
    /// A connection was refused.
    #[error("cannot connect to {server} (connection {number} of {all})")]
    Connect {
        /// Which.
        server: String,
        /// Counted from 1.
        number: usize,
        /// How many were asked for.
        all: usize,
        /// Why.
        source: io::Error,
    },
    /// The system has no such congestion control.
    #[error("there is no congestion control `{name}`; see net.ipv4.tcp_available_congestion_control")]
    Congestion {
        /// Which.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A thread could not be put on its processor.
    #[error("cannot run on processor {cpu}; give one of those that this process may use")]
    Pin {
        /// Which.
        cpu: usize,
        /// Why.
        source: io::Error,
    },
    /// Polling failed.
    #[error("cannot poll")]
    Poll(#[from] io::Error),
}

impl Crew {
    /// Runs `phase`; `look` is called at its moments, on the caller's thread.
    ///
    /// # Errors
    /// If a server cannot be connected to, or a processor is not there.
    pub fn run(
        &self,
        setup: &Arc<Setup>,
        phase: Phase,
        mut look: impl FnMut(Moment),
    ) -> Result<Book, PhaseError> {
        let loads = matches!(phase.pace, Pace::Load(_));
        // The keys to be loaded are told apart by clients, of one thread.
        let threads = if loads { 1 } else { self.threads.min(self.clients).max(1) };
        let clients = if loads { self.clients.min(LOADERS_MAX) } else { self.clients };
        let mut crews = Vec::new();
        for thread in 0..threads {
            let share = |thread: u32| (u64::from(clients) * u64::from(thread) / u64::from(threads)) as u32;
            let own = share(thread)..share(thread + 1);
            crews.push((self.connect(own.len(), clients as usize)?, own));
        }
        let clock = Clock::start();
        let (ended, all_ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let running: Vec<_> = (0_u32..)
                .zip(crews)
                .map(|(thread, (sockets, own))| {
                    let ended = ended.clone();
                    scope.spawn(move || -> Result<Book, PhaseError> {
                        // Dropped with the thread.
                        let _ended = ended;
                        self.settle(thread)?;
                        let generator = Generator::new(Arc::clone(setup), phase, own, thread, threads);
                        Ok(drive(generator, sockets, setup.datagrams, self.wait, clock, phase.to)?)
                    })
                })
                .collect();
            drop(ended);
            if !loads {
                for (at, moment) in [(phase.from, Moment::From), (phase.to, Moment::To)] {
                    let left = at.saturating_since(clock.now());
                    // Nobody sends: this ends with the time, or with the last thread.
                    let _ = all_ended.recv_timeout(Duration::from_nanos(left.as_ps() / 1_000));
                    look(moment);
                }
            }
            let mut all = Book::default();
            for thread in running {
                all.add(&thread.join().expect("a thread that panics has said why")?);
            }
            Ok(all)
        })
    }

    /// Stores all keys.
    ///
    /// # Errors
    /// If a server cannot be connected to, or does not take a key.
    pub fn store(&self, setup: &Arc<Setup>) -> anyhow::Result<()> {
        let book = self.run(setup, load_phase(), |_| ())?;
        ensure!(
            book.counts.refused == 0 && book.counts.closed == 0,
            "the server did not store all keys: {} of {} stored; {}",
            book.counts.completed,
            setup.choice.keys(),
            book.examples.join("; ")
        );
        Ok(())
    }

    /// The sockets of `clients` clients of `all`.
    fn connect(&self, clients: usize, all: usize) -> Result<Vec<socket2::Socket>, PhaseError> {
        let mut sockets = Vec::new();
        for _ in 0..clients {
            for server in &self.servers {
                let socket = server.connect().map_err(|source| PhaseError::Connect {
                    server: server.to_string(),
                    number: sockets.len() + 1,
                    all: all * self.servers.len(),
                    source,
                })?;
                if let (Some(name), Endpoint::Tcp(_)) = (&self.congestion, server) {
                    socket
                        .set_tcp_congestion(name.as_bytes())
                        .map_err(|source| PhaseError::Congestion { name: name.clone(), source })?;
                }
                sockets.push(socket);
            }
        }
        Ok(sockets)
    }

    /// Puts the calling thread where thread `thread` belongs.
    fn settle(&self, thread: u32) -> Result<(), PhaseError> {
        if !self.cpus.is_empty() {
            pin(&[self.cpus[thread as usize % self.cpus.len()]])?;
        }
        // Without this, the kernel lets a sleeper wait 50 us longer; where it may not be changed, lag shows it.
        let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
        Ok(())
    }
}

/// The processors that the calling thread may run on, in order.
///
/// # Errors
/// If the kernel does not say.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Puts the calling thread, and what it starts, on `cpus`.
///
/// # Errors
/// If one of them is not there.
pub fn pin(cpus: &[usize]) -> Result<(), PhaseError> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(PhaseError::Pin { cpu, source: io::Error::from(io::ErrorKind::InvalidInput) });
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|error| PhaseError::Pin { cpu: cpus[0], source: error.into() })
}

/// The phase that stores every key.
fn load_phase() -> Phase {
    Phase { index: 0, pace: Pace::Load(LOAD_OUTSTANDING), from: Time::ZERO, to: Time::MAX }
}

/// A phase of `measured`, after `warm_up`.
pub fn phase(index: u8, pace: Pace, warm_up: Span, measured: Span) -> Phase {
    let from = Time::ZERO + warm_up;
    Phase { index, pace, from, to: from + measured }
}

/// Connections that keys are stored over.
const LOADERS_MAX: u32 = 8;
/// Sets without a reply on each of them; of few values even a small buffer for datagrams has room.
const LOAD_OUTSTANDING: u32 = 8;
