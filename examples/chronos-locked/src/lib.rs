//! Lock baselines, for measurements only: [`Locked`] runs a service of Chronos on the same runtime and the same
//! sockets, but every thread runs every request, under a lock. The difference to the service itself is the gain by
//! steering.
//!
//! ```text
//! bytes ──> the service's parse, on the connection's thread ──> request for partition p
//!       ──> Locked: the same thread takes the lock of p ──> the service's execute ──> reply
//! ```
//!
//! To the runtime, each thread has one partition, a [`Slot`], for which all requests of its connections are; so nothing
//! is forwarded, and the runtime needs no knowledge of locks. The partitions of the service are in `Locked`.
//!
//! | [`Lock`] | who waits for whom |
//! |---|---|
//! | `Global` | one request runs at a time |
//! | `ReaderWriter` | requests that change nothing run together ([`SharedRead`]), all others alone |
//! | `Partition` | one request of a partition runs at a time |

mod memcached;
mod search;

use std::cell::Cell;
use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use anyhow::{Context, Result, bail};
use plimsoll_chronos::{
    Config, Now, PartitionId, RunningServer, Runtime, RuntimeStats, Service, SessionTransport, StartError,
    Step,
};

/// The lock under which requests run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// One lock over all partitions.
    Global,
    /// One lock over all partitions, which requests that change nothing share.
    ReaderWriter,
    /// A lock for each partition.
    Partition,
}

impl Lock {
    /// All kinds, with their names on a command line.
    pub const ALL: [(&'static str, Lock); 3] =
        [("global", Lock::Global), ("rwlock", Lock::ReaderWriter), ("partition", Lock::Partition)];

    /// Takes the option `--lock=KIND` out of a command line, and returns it with the other arguments.
    ///
    /// # Errors
    /// If the option is missing, or names no lock.
    pub fn from_arguments(arguments: impl Iterator<Item = OsString>) -> Result<(Lock, Vec<OsString>)> {
        let names = Lock::ALL.map(|(name, _)| name).join(", ");
        let mut lock = None;
        let mut others = Vec::new();
        for argument in arguments {
            let Some(value) = argument.to_str().and_then(|text| text.strip_prefix("--lock=")) else {
                others.push(argument);
                continue;
            };
            let Some((_, found)) = Lock::ALL.into_iter().find(|&(name, _)| name == value) else {
                bail!("invalid value \"{value}\" for --lock: expected one of {names}");
            };
            lock = Some(found);
        }
        let lock = lock.with_context(|| format!("--lock=KIND is required, where KIND is one of {names}"))?;
        Ok((lock, others))
    }
}

/// A service some of whose requests change nothing, so that several threads may run them on a partition at a time.
pub trait SharedRead: Service<Partition: Sync> {
    /// The statistics of shared reads of one partition, counted by several threads.
    type Reads: Send + Sync + 'static;

    /// Creates the statistics of a partition.
    fn reads(&self, partition: &Self::Partition) -> Self::Reads;

    /// Runs a request that changes nothing. Returns false, with nothing appended to `reply`, if the request needs
    /// [`Service::execute`].
    fn read(
        &self,
        partition: &Self::Partition,
        reads: &Self::Reads,
        request: &Self::Request<'_>,
        now: Now,
        reply: &mut Vec<u8>,
    ) -> bool;

    /// Adds the statistics of shared reads to the partition's, if `request` is about to report or reset them.
    fn settle(
        &self,
        _partition: &mut Self::Partition,
        _reads: &mut Self::Reads,
        _request: &Self::Request<'_>,
    ) {
    }
}

/// A service whose partitions are under locks.
pub struct Locked<S: SharedRead> {
    service: S,
    partitions: Partitions<S>,
}

/// The partitions of the service, under the locks of a [`Lock`].
enum Partitions<S: SharedRead> {
    Global(Mutex<Vec<Shared<S>>>),
    ReaderWriter(RwLock<Vec<Shared<S>>>),
    Each(Vec<OwnLine<Mutex<Shared<S>>>>),
}

/// A partition, and the statistics of shared reads.
struct Shared<S: SharedRead> {
    state: S::Partition,
    reads: S::Reads,
}

/// A value on cache lines of its own.
#[repr(align(128))]
struct OwnLine<T>(T);

/// The partition that the runtime has for each thread: the progress of the thread's housekeeping.
#[derive(Debug)]
pub struct Slot {
    /// True for the thread that does the housekeeping of all partitions.
    is_first: bool,
    /// The partition whose turn it is.
    next: u32,
}

/// A request, and the partition of the service that it is for.
pub struct Request<'a, S: SharedRead> {
    partition: u32,
    request: S::Request<'a>,
}

thread_local! {
    /// The slot of this thread, which the runtime has built on it.
    static SLOT: Cell<u32> = const { Cell::new(0) };
}

impl<S: SharedRead> Locked<S> {
    /// Puts the partitions of a service under locks.
    pub fn new(service: S, lock: Lock, partitions: u32) -> Locked<S> {
        let all = (0..partitions).map(|partition| {
            let state = service.partition(PartitionId(partition));
            Shared { reads: service.reads(&state), state }
        });
        let partitions = match lock {
            Lock::Global => Partitions::Global(Mutex::new(all.collect())),
            Lock::ReaderWriter => Partitions::ReaderWriter(RwLock::new(all.collect())),
            Lock::Partition => Partitions::Each(all.map(|shared| OwnLine(Mutex::new(shared))).collect()),
        };
        Locked { service, partitions }
    }

    /// Returns the configuration by which the runtime serves partitions under locks: each thread has one slot, and
    /// nothing moves.
    pub fn config(config: &Config) -> Config {
        Config {
            partitions: Some(config.threads),
            balancing: None,
            datagram_steering: None,
            ..config.clone()
        }
    }

    /// Starts a server with the number of partitions that `config` has, under locks.
    ///
    /// # Errors
    /// As for [`Runtime::start`].
    pub fn start(service: S, lock: Lock, config: &Config) -> Result<RunningServer, StartError> {
        config.check()?;
        let locked = Locked::new(service, lock, config.partitions());
        Runtime::start(locked, &Locked::<S>::config(config))
    }

    /// Returns the service without its partitions.
    pub fn into_service(self) -> S {
        self.service
    }

    fn count(&self) -> u32 {
        let count = match &self.partitions {
            Partitions::Global(all) => all.lock().unwrap_or_else(PoisonError::into_inner).len(),
            Partitions::ReaderWriter(all) => all.read().unwrap_or_else(PoisonError::into_inner).len(),
            Partitions::Each(all) => all.len(),
        };
        count as u32
    }

    /// Runs a request under the lock.
    fn run(&self, partition: u32, request: &S::Request<'_>, now: Now, reply: &mut Vec<u8>) {
        if let Partitions::ReaderWriter(all) = &self.partitions {
            let all = all.read().unwrap_or_else(PoisonError::into_inner);
            let Shared { state, reads } = &all[partition as usize];
            if self.service.read(state, reads, request, now, reply) {
                return;
            }
        }
        self.with(partition, |Shared { state, reads }| {
            self.service.settle(state, reads, request);
            self.service.execute(state, request, now, reply);
        });
    }

    /// Calls `run` with a partition under the lock.
    fn with<T>(&self, partition: u32, run: impl FnOnce(&mut Shared<S>) -> T) -> T {
        let index = partition as usize;
        match &self.partitions {
            Partitions::Global(all) => run(&mut all.lock().unwrap_or_else(PoisonError::into_inner)[index]),
            Partitions::ReaderWriter(all) => {
                run(&mut all.write().unwrap_or_else(PoisonError::into_inner)[index])
            }
            Partitions::Each(all) => run(&mut all[index].0.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

impl<S: SharedRead> Service for Locked<S> {
    type Partition = Slot;
    type Session = S::Session;
    type Request<'a> = Request<'a, S>;

    const TICKS: bool = S::TICKS;

    fn started(&self, stats: Arc<RuntimeStats>) {
        self.service.started(stats);
    }

    fn listens(&self, socket: BorrowedFd<'_>) {
        self.service.listens(socket);
    }

    fn connected(&self, session: &mut S::Session, socket: BorrowedFd<'_>, now: Now) {
        self.service.connected(session, socket, now);
    }

    fn refusal(&self) -> &[u8] {
        self.service.refusal()
    }

    /// Creates the slot of the calling thread, which is the one that has it: nothing moves.
    fn partition(&self, id: PartitionId) -> Slot {
        SLOT.set(id.0);
        Slot { is_first: id.0 == 0, next: 0 }
    }

    fn open(&self, transport: SessionTransport) -> S::Session {
        self.service.open(transport)
    }

    fn tick(&self, session: &mut S::Session, now: Now, reply: &mut Vec<u8>) -> bool {
        self.service.tick(session, now, reply)
    }

    fn parse<'a>(
        &self,
        session: &mut S::Session,
        now: Now,
        input: &'a [u8],
        reply: &mut Vec<u8>,
    ) -> Step<Request<'a, S>> {
        match self.service.parse(session, now, input, reply) {
            Step::Run { consumed, partition: PartitionId(partition), request } => {
                let slot = PartitionId(SLOT.get());
                Step::Run { consumed, partition: slot, request: Request { partition, request } }
            }
            // All earlier requests of the connection have run: `LOOKS_AHEAD` is false, and all are this thread's.
            Step::Everywhere { consumed, request } => {
                let run = |partition| {
                    let mut part = Vec::new();
                    self.run(partition, &request, now, &mut part);
                    part
                };
                let replies: Vec<Vec<u8>> = (0..self.count()).map(run).collect();
                self.service.merge(session, &request, &replies, now, reply);
                Step::Done { consumed }
            }
            Step::Incomplete { total } => Step::Incomplete { total },
            Step::Done { consumed } => Step::Done { consumed },
            Step::Skip { bytes } => Step::Skip { bytes },
            Step::Close => Step::Close,
        }
    }

    fn execute(&self, _slot: &mut Slot, request: &Request<'_, S>, now: Now, reply: &mut Vec<u8>) {
        self.run(request.partition, &request.request, now, reply);
    }

    fn encode(&self, request: &Request<'_, S>, message: &mut Vec<u8>) {
        message.extend_from_slice(&request.partition.to_ne_bytes());
        self.service.encode(&request.request, message);
    }

    fn decode<'a>(&self, message: &'a [u8]) -> Request<'a, S> {
        let (partition, rest) = message.split_first_chunk().expect("a message that encode wrote");
        Request { partition: u32::from_ne_bytes(*partition), request: self.service.decode(rest) }
    }

    /// Does nothing: `parse` has merged the replies of requests to all partitions.
    fn merge(
        &self,
        _session: &mut S::Session,
        _request: &Request<'_, S>,
        _replies: &[Vec<u8>],
        _now: Now,
        _reply: &mut Vec<u8>,
    ) {
    }

    /// One thread does the housekeeping of all partitions.
    fn housekeeping(&self, slot: &mut Slot, now: Now) -> bool {
        if !slot.is_first {
            return false;
        }
        if !self.with(slot.next, |shared| self.service.housekeeping(&mut shared.state, now)) {
            slot.next += 1;
        }
        let has_more = slot.next < self.count();
        if !has_more {
            slot.next = 0;
        }
        has_more
    }

    fn unseal<'a>(&self, datagram: &'a [u8]) -> Option<(u64, &'a [u8])> {
        self.service.unseal(datagram)
    }

    fn cut(&self, session: &S::Session, reply: &mut Vec<u8>) {
        self.service.cut(session, reply);
    }

    fn seal(&self, envelope: u64, reply: &[u8], send: &mut dyn FnMut(&[u8])) {
        self.service.seal(envelope, reply, send);
    }
}
