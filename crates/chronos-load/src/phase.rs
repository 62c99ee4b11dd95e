//! Runs one phase of load on its threads.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::ensure;
use plimsoll_units::{Span, Time};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use serde::{Deserialize, Serialize};

use crate::book::Book;
use crate::drive::{Clock, IdleWait, drive};
use crate::endpoint::ServerAddress;
use crate::generator::Generator;
use crate::setup::{LoadPhase, Pace, Setup};

/// The clients and their threads.
#[derive(Clone, Debug)]
pub struct ClientThreads {
    /// All servers, in the order of the setup's placement.
    pub servers: Vec<ServerAddress>,
    /// The number of clients; each has a connection to every server.
    pub clients: u32,
    /// The number of threads, at most the number of clients.
    pub threads: u32,
    /// The processors; thread i runs on processor i modulo their number. Empty leaves the choice to the system.
    pub cpus: Vec<usize>,
    /// The behaviour of threads without work.
    pub wait: IdleWait,
    /// The clients' congestion control over TCP; none for the system's.
    pub congestion: Option<String>,
    /// The share of these clients, if several generators act as one.
    pub share: GeneratorShare,
}

/// The position of a generator among several that together act as one.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GeneratorShare {
    /// The number of the generator, from 0.
    pub index: u32,
    /// The number of generators.
    pub of: u32,
}

impl GeneratorShare {
    /// The share of a generator that has all of the load.
    pub const WHOLE: GeneratorShare = GeneratorShare { index: 0, of: 1 };
}

/// The start or the end of the measured time, at which callers may observe the servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MeasurementEdge {
    /// The measured time begins.
    Start,
    /// The measured time ends.
    End,
}

/// The reason why a phase was not run.
#[derive(Debug, thiserror::Error)]
pub enum PhaseError {
    /// A connection could not be opened.
    #[error("cannot connect to {server} (connection {number} of {all})")]
    Connect {
        /// The address of the server.
        server: String,
        /// The number of the connection, counted from 1.
        number: usize,
        /// The number of connections to open.
        all: usize,
        /// The error of the system.
        source: io::Error,
    },
    /// The system has no such congestion control.
    #[error("the system has no congestion control `{name}`; see net.ipv4.tcp_available_congestion_control")]
    Congestion {
        /// The name of the congestion control.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A thread could not be bound to its processor.
    #[error("cannot run on processor {cpu}; choose one that this process may use")]
    Pin {
        /// The number of the processor.
        cpu: usize,
        /// The error of the system.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread {
        /// The error of the system.
        source: io::Error,
    },
    /// The system call that polls sockets failed.
    #[error("cannot poll")]
    Poll(#[from] io::Error),
}

impl ClientThreads {
    /// Runs `phase`; `look` is called at the start and the end of the measured time, on the caller's thread.
    ///
    /// # Errors
    /// Returns an error if a connection cannot be opened, or a processor does not exist.
    pub fn run(
        &self,
        setup: &Arc<Setup>,
        phase: LoadPhase,
        look: impl FnMut(MeasurementEdge),
    ) -> Result<Book, PhaseError> {
        self.run_after(|| Ok(()), setup, phase, &AtomicBool::new(false), look)
    }

    /// Runs `phase` as [`ClientThreads::run`] does: `begin` is called once all connections are open, and the load ends
    /// early when `stop` is set.
    ///
    /// # Errors
    /// Returns an error if a connection cannot be opened, or a processor does not exist, and the error of `begin`.
    pub fn run_after<E: From<PhaseError>>(
        &self,
        begin: impl FnOnce() -> Result<(), E>,
        setup: &Arc<Setup>,
        phase: LoadPhase,
        stop: &AtomicBool,
        mut look: impl FnMut(MeasurementEdge),
    ) -> Result<Book, E> {
        let loads = matches!(phase.pace, Pace::Load(_));
        // The keys to load are divided among the clients of a single thread.
        let threads = if loads { 1 } else { self.threads.min(self.clients).max(1) };
        let clients = if loads { self.clients.min(LOADERS_MAX) } else { self.clients };
        // Generators that are one number their clients and threads as one would.
        let GeneratorShare { index, of } = if loads { GeneratorShare::WHOLE } else { self.share };
        let (first_client, first_thread, all_threads) = (index * clients, index * threads, of * threads);
        let mut groups = Vec::new();
        for thread in 0..threads {
            let share = |thread: u32| (u64::from(clients) * u64::from(thread) / u64::from(threads)) as u32;
            let own = first_client + share(thread)..first_client + share(thread + 1);
            groups.push((self.connect(own.len(), clients as usize)?, own));
        }
        begin()?;
        let clock = Clock::start();
        let (ended, all_ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let mut running = Vec::new();
            for (thread, (sockets, own)) in (0_u32..).zip(groups) {
                let ended = ended.clone();
                let work = move || -> Result<Book, PhaseError> {
                    // The sender is dropped when the thread ends.
                    let _ended = ended;
                    self.settle(thread)?;
                    let (number, setup) = (first_thread + thread, Arc::clone(setup));
                    let datagrams = setup.datagrams;
                    let generator = Generator::new(setup, phase, own, number, all_threads);
                    Ok(drive(generator, sockets, datagrams, self.wait, clock, phase.to, stop)?)
                };
                let started = thread::Builder::new().spawn_scoped(scope, work).map_err(|source| {
                    // The threads that have started end now.
                    stop.store(true, Ordering::Relaxed);
                    PhaseError::Thread { source }
                });
                running.push(started?);
            }
            drop(ended);
            if !loads {
                for (at, edge) in [(phase.from, MeasurementEdge::Start), (phase.to, MeasurementEdge::End)] {
                    let left = at.saturating_since(clock.now());
                    // No message is ever sent: the call returns after the time, or when the last thread has ended.
                    let _ = all_ended.recv_timeout(Duration::from_nanos(left.as_ps() / 1_000));
                    look(edge);
                }
            }
            let mut all = Book::default();
            for thread in running {
                all.add(&thread.join().expect("a thread that panics has said why")?);
            }
            Ok(all)
        })
    }

    /// Stores all keys in the servers.
    ///
    /// # Errors
    /// Returns an error if a connection cannot be opened, or a server does not store a key.
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

    /// Opens the sockets of `clients` clients of `all`.
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
                if let (Some(name), ServerAddress::Tcp(_)) = (&self.congestion, server) {
                    socket
                        .set_tcp_congestion(name.as_bytes())
                        .map_err(|source| PhaseError::Congestion { name: name.clone(), source })?;
                }
                sockets.push(socket);
            }
        }
        Ok(sockets)
    }

    /// Binds the calling thread to the processor of thread `thread`.
    fn settle(&self, thread: u32) -> Result<(), PhaseError> {
        if !self.cpus.is_empty() {
            pin(&[self.cpus[thread as usize % self.cpus.len()]])?;
        }
        // By default, the kernel delays a timer by up to 50 us; where it may not be changed, lag shows the delay.
        let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
        Ok(())
    }
}

/// Returns the processors on which the calling thread may run, in ascending order.
///
/// # Errors
/// Returns an error if the kernel does not report them.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Binds the calling thread, and the programs that it starts, to `cpus`.
///
/// # Errors
/// Returns an error if one of them does not exist.
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

/// Returns the phase that stores every key.
fn load_phase() -> LoadPhase {
    LoadPhase { index: 0, pace: Pace::Load(LOAD_OUTSTANDING), from: Time::ZERO, to: Time::MAX }
}

/// Creates a phase of `measured`, after `warm_up`.
pub fn phase(index: u8, pace: Pace, warm_up: Span, measured: Span) -> LoadPhase {
    let from = Time::ZERO + warm_up;
    LoadPhase { index, pace, from, to: from + measured }
}

/// The number of connections over which keys are stored.
const LOADERS_MAX: u32 = 8;
/// The sets without a reply on each of them: so few values fit into even a small datagram buffer.
const LOAD_OUTSTANDING: u32 = 8;
