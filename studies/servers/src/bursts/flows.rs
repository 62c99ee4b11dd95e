//! [`StarFlows`]: connections between the hosts of a star, with a thread for each end.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plimsoll_chronos_load::process::ServerProcess;
use plimsoll_fabric::net::HostId;
use plimsoll_linux::frame::ipv6;
use plimsoll_linux::{Star, clamp_window, set_low_water};

use super::arm::{Arm, Pattern};

/// The bytes of a call that sends: iperf's, a choice.
const SEND: usize = 128 << 10;
/// The bytes of a call that receives.
const RECEIVE: usize = 128 << 10;
/// The same, of a receiver that lets data gather.
const LATE_RECEIVE: usize = 4 << 20;
/// How long all hosts of `Pstride` have one destination.
const PERIOD: Duration = Duration::from_millis(100);
/// The bytes that a flow of `Hstride` sends to a destination before it turns to the next.
const FLOW_BYTES: usize = 2 << 20;
/// Threads do little but call the kernel.
const STACK: usize = 128 << 10;

/// Connections that send all the time; gone when dropped.
#[derive(Default)]
pub(super) struct StarFlows {
    pub(super) streams: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) received: Arc<AtomicU64>,
    /// The memcached that the hosts ask, if they do.
    pub(super) server: Option<ServerProcess>,
}

/// When a sender turns to its next destination.
#[derive(Clone, Copy)]
enum DestinationTurn {
    /// It turns at times that are the same for all.
    Periods(Instant),
    /// It turns after this number of bytes.
    Bytes(usize),
}

impl StarFlows {
    /// Opens the connections of a pattern, and begins to send.
    ///
    /// # Errors
    /// If a host does not listen, connect or accept.
    pub(super) fn start(star: &Star, arm: &Arm) -> io::Result<StarFlows> {
        let Arm { hosts, low_water, .. } = *arm;
        let listen = |host| {
            let listener = star.inside(host, || TcpListener::bind((ipv6(HostId(host)), 0)))?;
            // Before a connection is asked for: it scales its window by it.
            arm.first_window_bytes().map_or(Ok(()), |bytes| clamp_window(&listener, bytes))?;
            Ok(listener)
        };
        let listeners: Vec<TcpListener> = (0..hosts).map(listen).collect::<io::Result<_>>()?;
        let mut flows = StarFlows::default();
        flows.start_services(star, arm, &listeners)?;
        let mut senders = Vec::new();
        for (host, destinations, turn) in senders_of(arm, Instant::now()) {
            let mut streams = Vec::new();
            for to in destinations {
                let at = listeners[to as usize].local_addr()?;
                let sending = star.inside(host, || TcpStream::connect(at))?;
                let (receiving, _) = listeners[to as usize].accept()?;
                low_water.map_or(Ok(()), |bytes| set_low_water(&receiving, bytes))?;
                flows.streams.extend([sending.try_clone()?, receiving.try_clone()?]);
                flows.receive(receiving, arm)?;
                streams.push(sending);
            }
            senders.push((streams, turn));
        }
        // All connections are open before the first byte is sent.
        senders.into_iter().try_for_each(|(streams, turn)| flows.send(streams, turn))?;
        Ok(flows)
    }

    /// Has receivers offer the window of the arm, where that is smaller than the one that they began with.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn narrow_windows(&self, arm: &Arm) -> io::Result<()> {
        let bytes = arm.window.map(|segments| arm.window_bytes(segments));
        let Some(bytes) = bytes.filter(|_| bytes < arm.first_window_bytes()) else { return Ok(()) };
        // Of each connection, the receiving end is the second.
        let mut receiving = self.streams.iter().skip(1).step_by(2);
        receiving.try_for_each(|stream| clamp_window(stream, bytes))
    }

    /// Returns the bytes that all hosts have received so far.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    fn receive(&mut self, mut stream: TcpStream, arm: &Arm) -> io::Result<()> {
        let received = Arc::clone(&self.received);
        // A window that is read in two parts would open in two parts.
        let bytes = arm.first_window_bytes().map_or(RECEIVE, |window| RECEIVE.max(window as usize));
        let pause = Duration::from_nanos(arm.read_every.as_ps() / 1_000);
        let bytes = if pause.is_zero() { bytes } else { LATE_RECEIVE };
        let work = move || {
            let mut buffer = vec![0; bytes];
            while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
                received.fetch_add(bytes as u64, Ordering::Relaxed);
                thread::sleep(pause);
            }
        };
        self.spawn(work)
    }

    /// Starts a thread, which ends when all connections are shut down.
    pub(super) fn spawn(&mut self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(thread::Builder::new().stack_size(STACK).spawn(work)?);
        Ok(())
    }

    fn send(&mut self, mut streams: Vec<TcpStream>, turn: DestinationTurn) -> io::Result<()> {
        let stop = Arc::clone(&self.stop);
        let work = move || {
            let buffer = vec![0; SEND];
            let mut sent = 0;
            while !stop.load(Ordering::Relaxed) {
                let turns = match turn {
                    DestinationTurn::Periods(begin) => {
                        (begin.elapsed().as_nanos() / PERIOD.as_nanos()) as usize
                    }
                    DestinationTurn::Bytes(each) => sent / each,
                };
                let place = turns % streams.len();
                // An error is the end of the connection, which is that of the run.
                if streams[place].write_all(&buffer).is_err() {
                    break;
                }
                sent += SEND;
            }
        };
        self.spawn(work)
    }
}

impl Drop for StarFlows {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for stream in &self.streams {
            // It ends calls that wait; a connection that has ended needs no more.
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Returns the senders of a pattern: host, destinations in their order, and when it turns to the next.
fn senders_of(arm: &Arm, begin: Instant) -> Vec<(u32, Vec<u32>, DestinationTurn)> {
    let Arm { hosts, pattern, flows, .. } = *arm;
    let others = |host: u32| (1..hosts).map(move |place| (host + place) % hosts);
    let never = DestinationTurn::Bytes(usize::MAX);
    let each = |host: u32| -> Vec<(u32, Vec<u32>, DestinationTurn)> {
        match pattern {
            Pattern::Stride => vec![(host, vec![(host + 1) % hosts], never)],
            Pattern::Pstride => vec![(host, others(host).collect(), DestinationTurn::Periods(begin))],
            Pattern::Hstride => (0..flows)
                .map(|_| (host, others(host).collect(), DestinationTurn::Bytes(FLOW_BYTES)))
                .collect(),
            Pattern::AllToAll => others(host).map(|to| (host, vec![to], never)).collect(),
            Pattern::OneToAll if host == 0 => others(host).map(|to| (host, vec![to], never)).collect(),
            Pattern::One if host == 0 => vec![(0, vec![1], never)],
            Pattern::OneToAll | Pattern::One => Vec::new(),
            // Their data is asked for.
            Pattern::FileService | Pattern::Sort | Pattern::Memcached => Vec::new(),
        }
    };
    (0..hosts).flat_map(each).collect()
}
