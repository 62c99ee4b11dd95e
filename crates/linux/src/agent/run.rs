//! [`Agents`]: the threads that carry a plan out.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_units::{Span, Time};
use plimsoll_workloads::Workload;
use socket2::{Domain, Protocol, Socket, Type};

use super::driver::{Driver, Place, Records};
use super::pace::{Pace, Shares};
use super::plan::{Lane, Plan};
use super::sockets::{self, FIRST_PORT};
use crate::clock::Clock;
use crate::namespaces::{self, DEVICE};

/// What all connections have in common.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The kernel's name of the congestion control.
    pub(crate) congestion_control: String,
    /// Connections are of MPTCP.
    pub(crate) multipath: bool,
    /// When workloads begin, on the fabric's clock.
    pub(crate) origin: Span,
    pub(crate) clock: Clock,
    /// What QJump's levels may send.
    pub(crate) shares: Arc<Shares>,
}

/// A message that is whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    /// Number of its connection in the plan, and its own there.
    pub(crate) lane: usize,
    pub(crate) item: usize,
    /// On the workloads' clock.
    pub(crate) completed: Time,
}

/// What a host's kernel counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    /// Frames that its device lost, which nobody had read in time.
    pub(crate) lost: u64,
    /// Datagrams that its sockets lost, which nobody had read in time.
    pub(crate) unread: u64,
}

impl Settings {
    /// What connections are made of.
    pub(super) fn protocol(&self) -> Protocol {
        if self.multipath { Protocol::MPTCP } else { Protocol::TCP }
    }

    /// Now, on the workloads' clock: zero before they begin.
    pub(crate) fn now(&self) -> Time {
        Time::ZERO + self.clock.now().saturating_since(Time::ZERO + self.origin)
    }
}

/// What all threads see.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(super) stop: AtomicBool,
    listening: AtomicUsize,
    /// Connections, and driven sources with all of theirs, that are ready.
    pub(super) connected: AtomicUsize,
    /// Messages not yet whole, and driven sources not finished.
    pub(super) open: AtomicUsize,
    /// Bytes delivered, by connection.
    delivered: Vec<AtomicU64>,
    failure: Mutex<Option<String>>,
}

/// The threads of a run; ended when dropped, with all their sockets.
#[derive(Debug)]
pub(crate) struct Agents {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Vec<Done>>>,
    drivers: Vec<JoinHandle<Records>>,
}

/// One end of one connection.
#[derive(Clone)]
struct End {
    shared: Arc<Shared>,
    plan: Arc<Plan>,
    settings: Settings,
    number: usize,
    namespace: String,
    /// One request at a time, by workload and server.
    serving: Arc<Mutex<()>>,
}

/// How often a thread that waits for a socket looks whether the run is over.
pub(super) const PATIENCE: Duration = Duration::from_millis(200);
/// A connection that is not open by then fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes written or read at once.
pub(super) const PIECE: usize = 64 << 10;

impl Agents {
    /// Starts the threads of `plan`, whose driven sources are in `sources` by number.
    pub(crate) fn start(
        plan: &Arc<Plan>,
        place: &Arc<Place>,
        mut sources: Vec<Option<Box<dyn Workload>>>,
    ) -> Agents {
        raise_descriptor_limit();
        let items = || plan.lanes.iter().flat_map(|lane| &lane.items);
        let shared = Arc::new(Shared {
            open: AtomicUsize::new(items().filter(|item| item.bytes.is_some()).count() + plan.driven.len()),
            delivered: plan.lanes.iter().map(|_| AtomicU64::new(0)).collect(),
            ..Shared::default()
        });
        let mut serving: BTreeMap<(u16, u32), Arc<Mutex<()>>> = BTreeMap::new();
        let mut threads = Vec::new();
        for (number, lane) in plan.lanes.iter().enumerate() {
            let end = |host: u32, serving: Arc<Mutex<()>>| End {
                shared: Arc::clone(&shared),
                plan: Arc::clone(plan),
                settings: place.settings.clone(),
                number,
                namespace: place.names[host as usize].clone(),
                serving,
            };
            let serving = Arc::clone(serving.entry((lane.workload, lane.server)).or_default());
            let server = end(lane.server, Arc::clone(&serving));
            threads.push(thread::spawn(move || server.act("server", End::serve)));
            let client = end(lane.client, serving);
            threads.push(thread::spawn(move || client.act("client", End::ask)));
        }
        let sources = plan
            .driven
            .iter()
            .filter_map(|driven| Some((*driven, sources.get_mut(usize::from(driven.number))?.take()?)));
        let drivers = sources.map(|(driven, source)| {
            let (plan, place, shared) = (Arc::clone(plan), Arc::clone(place), Arc::clone(&shared));
            thread::spawn(move || {
                let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
                let driver = Driver::new(&place, &shared, driven, source);
                driver.and_then(Driver::run).unwrap_or_else(|error| {
                    let name = &plan.workloads[usize::from(driven.number)].name;
                    shared.fail(format!("workload `{name}`: {error}"));
                    Records::default()
                })
            })
        });
        let drivers = drivers.collect();
        Agents { shared, threads, drivers }
    }

    /// Whether every message is whole.
    pub(crate) fn is_done(&self) -> bool {
        self.shared.open.load(Ordering::Relaxed) == 0
    }

    /// Whether a thread has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure().is_some()
    }

    /// Why a thread has failed, if one has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connections and sources that should be ready before the workloads begin and are not: none once all is ready.
    pub(crate) fn missing(&self, plan: &Plan) -> usize {
        let early = plan.lanes.iter().filter(|lane| !lane.fresh).count();
        (early + plan.driven.len()).saturating_sub(self.shared.connected.load(Ordering::Relaxed))
    }

    /// Ends the threads: what they have completed, the bytes delivered by connection, and what sources recorded.
    pub(crate) fn finish(mut self) -> (Vec<Done>, Vec<u64>, Vec<Records>) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let done = self.threads.drain(..).flat_map(|thread| thread.join().unwrap_or_default()).collect();
        let delivered = self.shared.delivered.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect();
        let records = self.drivers.drain(..).map(|driver| driver.join().unwrap_or_default()).collect();
        (done, delivered, records)
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        for driver in self.drivers.drain(..) {
            let _ = driver.join();
        }
    }
}

/// As many sockets as this process may have: a run has two for each connection.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it stays low, a socket too many is an error that says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

impl Shared {
    /// Notes why a thread has failed, unless the run is over.
    fn fail(&self, text: String) {
        if !self.stop.load(Ordering::Relaxed) {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(text);
        }
    }
}

impl Counts {
    /// Those of the namespace that this thread is in.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub(crate) fn read() -> io::Result<Counts> {
        let value = |path: &str, table: &str, column: &str| -> io::Result<u64> {
            let text = fs::read_to_string(path)?;
            let mut lines = text.lines().filter(|line| line.starts_with(table));
            let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
            let at = names.split_whitespace().position(|name| name == column);
            let value = at.and_then(|at| values.split_whitespace().nth(at)?.parse().ok());
            value.ok_or_else(|| io::Error::other(format!("{path} has no {column}")))
        };
        Ok(Counts {
            retransmissions: value("/proc/thread-self/net/snmp", "Tcp:", "RetransSegs")?,
            timeouts: value("/proc/thread-self/net/netstat", "TcpExt:", "TCPTimeouts")?,
            unread: value("/proc/thread-self/net/snmp", "Udp:", "RcvbufErrors")?,
            lost: lost(&fs::read_to_string("/proc/thread-self/net/dev")?)
                .ok_or_else(|| io::Error::other("/proc/net/dev does not have the host's device"))?,
        })
    }
}

/// Packets that a host's device did not send, from `/proc/net/dev`.
fn lost(devices: &str) -> Option<u64> {
    let device = devices.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    device.split_whitespace().nth(SENT_DROPPED)?.parse().ok()
}

/// Column of what was dropped in sending, after eight of what was received.
const SENT_DROPPED: usize = 11;

impl End {
    fn lane(&self) -> &Lane {
        &self.plan.lanes[self.number]
    }

    /// Acts in its namespace; a failure is noted for the whole run, unless it is over.
    fn act(&self, role: &str, act: impl FnOnce(&End) -> io::Result<Vec<Done>>) -> Vec<Done> {
        // A thread that wakes up 50 us late, the kernel's default, would send late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let acted = namespaces::enter(&self.namespace).and_then(|()| act(self));
        acted.unwrap_or_else(|error| {
            let Lane { client, server, workload, .. } = self.lane();
            let name = &self.plan.workloads[usize::from(*workload)].name;
            self.shared
                .fail(format!("workload `{name}`, connection h{client} -> h{server}, {role}: {error}"));
            Vec::new()
        })
    }

    fn is_over(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Waits until `at`; false if the run is over before.
    fn wait_until(&self, at: Time) -> bool {
        let due = at + self.settings.origin;
        while !self.is_over() {
            let left = due.saturating_since(self.settings.clock.now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(Duration::from_nanos(left.as_ps() / 1_000).min(PATIENCE));
        }
        false
    }

    fn address(&self) -> SocketAddr {
        sockets::address(self.lane().server, FIRST_PORT + self.number as u16)
    }

    fn socket(&self) -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(self.settings.protocol()))?;
        socket.set_tcp_congestion(self.settings.congestion_control.as_bytes())?;
        sockets::prepare(&socket, self.lane().priority)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(socket)
    }

    /// Whether an error only says that it took long.
    fn is_patience(error: &io::Error) -> bool {
        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
    }

    /// The server: reads every message, and answers those that have an answer.
    fn serve(&self) -> io::Result<Vec<Done>> {
        let listener = self.socket()?;
        listener.set_reuse_address(true)?;
        listener.bind(&self.address().into())?;
        listener.listen(1)?;
        self.shared.listening.fetch_add(1, Ordering::Relaxed);
        let connection = loop {
            match listener.accept() {
                Ok((connection, _)) => break connection,
                Err(error) if Self::is_patience(&error) && !self.is_over() => {}
                Err(_) if self.is_over() => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        };
        connection.set_tcp_nodelay(true)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        sockets::prepare(&connection, self.lane().priority)?;
        let mut stream = TcpStream::from(connection);
        let mut pace = self.pace(self.lane().server);
        let mut done = Vec::new();
        for (number, item) in self.lane().items.iter().enumerate() {
            if !self.receive(&mut stream, item.bytes)? {
                break;
            }
            let Some((bytes, service)) = item.answer else {
                done.push(self.complete(number));
                continue;
            };
            if !service.is_zero() {
                let _serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
                thread::sleep(Duration::from_nanos(service.as_ps() / 1_000));
            }
            if !self.send(&mut stream, &mut pace, Some(bytes))? {
                break;
            }
        }
        Ok(done)
    }

    /// The client: writes every message at its time; a thread beside it reads the answers.
    fn ask(&self) -> io::Result<Vec<Done>> {
        let lane = self.lane();
        if lane.fresh && !lane.items.first().is_none_or(|first| self.wait_until(first.at)) {
            return Ok(Vec::new());
        }
        while self.shared.listening.load(Ordering::Relaxed) < self.plan.lanes.len() {
            if self.is_over() {
                return Ok(Vec::new());
            }
            thread::sleep(Duration::from_millis(1));
        }
        let socket = self.socket()?;
        socket.connect_timeout(&self.address().into(), CONNECT_TIMEOUT)?;
        let mut stream = TcpStream::from(socket);
        self.shared.connected.fetch_add(usize::from(!lane.fresh), Ordering::Relaxed);
        let answers = stream.try_clone()?;
        let mut pace = self.pace(lane.client);
        thread::scope(|scope| {
            let reader = scope.spawn(|| self.read_answers(answers));
            for item in &lane.items {
                if !self.wait_until(item.at) || !self.send(&mut stream, &mut pace, item.bytes)? {
                    break;
                }
            }
            reader.join().unwrap_or_else(|_| Err(io::Error::other("the reader panicked")))
        })
    }

    fn read_answers(&self, mut stream: TcpStream) -> io::Result<Vec<Done>> {
        let mut done = Vec::new();
        for (number, item) in self.lane().items.iter().enumerate() {
            let Some((bytes, _)) = item.answer else { return Ok(done) };
            if !self.receive(&mut stream, Some(bytes))? {
                break;
            }
            done.push(self.complete(number));
        }
        Ok(done)
    }

    fn pace(&self, host: u32) -> Pace {
        Pace::new(&self.settings.shares, host, self.lane().priority)
    }

    fn complete(&self, item: usize) -> Done {
        let completed = self.settings.now();
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
        Done { lane: self.number, item, completed }
    }

    /// Writes so many bytes, or until the run is over; false if it is.
    fn send(&self, stream: &mut TcpStream, pace: &mut Pace, bytes: Option<u64>) -> io::Result<bool> {
        let mut left = bytes.unwrap_or(u64::MAX);
        while left > 0 {
            if self.is_over() {
                return Ok(false);
            }
            pace.keep(&*stream, self.settings.clock.now())?;
            match stream.write(&ZEROS[..left.min(PIECE as u64) as usize]) {
                Ok(written) => left -= written as u64,
                Err(error) if Self::is_patience(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads so many bytes, or until the run is over; false if it is, or the other end has gone.
    fn receive(&self, stream: &mut TcpStream, bytes: Option<u64>) -> io::Result<bool> {
        let mut left = bytes.unwrap_or(u64::MAX);
        let mut piece = vec![0; left.min(PIECE as u64) as usize];
        while left > 0 {
            if self.is_over() {
                return Ok(false);
            }
            let most = left.min(PIECE as u64) as usize;
            match stream.read(&mut piece[..most]) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    left -= read as u64;
                    self.shared.delivered[self.number].fetch_add(read as u64, Ordering::Relaxed);
                }
                Err(error) if Self::is_patience(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

pub(super) static ZEROS: [u8; PIECE] = [0; PIECE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_devices_losses_are_read() {
        let text = "Inter-| Receive | Transmit\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  \
                    eth0: 1 2 3 4 5 6 7 8 9 10 11 99 13 14 15 16\n";
        assert_eq!(lost(text), Some(99));
        assert_eq!(lost("    lo: 1 2 3"), None);
    }
}
