//! A noisy neighbour: a job on a server's host that receives bulk streams, as in section 6.3 of the Chronos
//! dissertation, where six clients sent 440 Mb/s each to a job beside memcached.
//!
//! Streams are TCP over the loopback. Receiver and sender run on the disturbed server's processors, because on the
//! loopback a sender's processor also does the receiver's work in the kernel.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::phase::pin;

/// The load on the neighbour.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NeighbourLoad {
    /// The number of connections; at least 1.
    pub count: usize,
    /// The bits a second of each connection, above 0. Bits beyond the capacity of the processors are not sent later.
    pub bits_per_s: f64,
}

/// A job that receives streams until this value is dropped.
#[derive(Debug)]
pub struct Neighbour {
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Neighbour {
    /// Starts the job and its sender on `cpus`.
    ///
    /// # Errors
    /// Returns an error if a rate or a number is not above 0, a processor does not exist, or the system rejects a
    /// connection.
    pub fn start(streams: NeighbourLoad, cpus: &[usize]) -> anyhow::Result<Neighbour> {
        let NeighbourLoad { count, bits_per_s } = streams;
        ensure!(
            count > 0 && bits_per_s > 0.0 && bits_per_s.is_finite(),
            "{count} streams of {bits_per_s} bits a second: write numbers above 0"
        );
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
        let address = listener.local_addr().context("cannot listen")?;
        let (stop, received) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut neighbour = Neighbour { stop, received, threads: Vec::new() };
        let mut senders = Vec::new();
        for _ in 0..count {
            let sender = TcpStream::connect(address).context("cannot connect")?;
            sender.set_nonblocking(true).context("cannot connect")?;
            senders.push(sender);
            let (mut receiver, _) = listener.accept().context("cannot accept")?;
            let received = Arc::clone(&neighbour.received);
            neighbour.spawn(cpus, move || receive(&mut receiver, &received))?;
        }
        let stop = Arc::clone(&neighbour.stop);
        // Dropping the senders ends the receivers.
        neighbour.spawn(cpus, move || send(&mut senders, bits_per_s * count as f64, &stop))?;
        Ok(neighbour)
    }

    /// Starts a thread on `cpus`; a missing processor is reported before the thread begins.
    fn spawn(
        &mut self,
        cpus: &[usize],
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let (pinned, is_pinned) = std::sync::mpsc::sync_channel(1);
        let cpus = cpus.to_vec();
        let thread = thread::Builder::new().spawn(move || {
            let done = if cpus.is_empty() { Ok(()) } else { pin(&cpus) };
            let goes_on = done.is_ok();
            // The receiver of this message is waiting for it.
            let _ = pinned.send(done);
            if goes_on { work() } else { Ok(()) }
        });
        self.threads.push(thread.context("cannot start the neighbour's thread")?);
        Ok(is_pinned.recv().context("the neighbour's thread has ended")??)
    }

    /// Returns the bytes that the job has received so far.
    pub fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A broken stream sends less, which `received_bytes` shows.
            let _ = thread.join();
        }
    }
}

fn receive(stream: &mut TcpStream, received: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            bytes => received.fetch_add(bytes as u64, Ordering::Relaxed),
        };
    }
}

/// Sends a chunk to each stream in turn, at `bits_per_s` in all. A stream whose buffer is full is skipped.
fn send(streams: &mut [TcpStream], bits_per_s: f64, stop: &AtomicBool) -> io::Result<()> {
    let chunk = vec![0; CHUNK_BYTES];
    let gap = Duration::from_secs_f64(CHUNK_BYTES as f64 * 8.0 / bits_per_s);
    let mut due = Instant::now();
    for turn in (0..streams.len()).cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match streams[turn].write(&chunk) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Ok(_) | Err(_) => {}
        }
        due = (due + gap).max(Instant::now());
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// The bytes of each send and receive call.
const CHUNK_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_receives_what_it_is_sent_and_ends() {
        let neighbour = Neighbour::start(NeighbourLoad { count: 3, bits_per_s: 80e6 }, &[]).unwrap();
        while neighbour.received_bytes() < 1 << 20 {
            thread::yield_now();
        }
        let Neighbour { stop, received, .. } = &neighbour;
        let (stop, received) = (Arc::clone(stop), Arc::clone(received));
        drop(neighbour);
        assert!(stop.load(Ordering::Relaxed));
        assert_eq!((Arc::strong_count(&stop), Arc::strong_count(&received)), (1, 1), "no thread is left");
    }

    #[test]
    fn no_stream_and_no_such_processor_are_told() {
        let none =
            Neighbour::start(NeighbourLoad { count: 0, bits_per_s: 1e6 }, &[]).unwrap_err().to_string();
        assert!(none.contains("0 streams of 1000000"), "{none}");
        let bad = Neighbour::start(NeighbourLoad { count: 1, bits_per_s: 1e6 }, &[100_000])
            .unwrap_err()
            .to_string();
        assert!(bad.contains("processor 100000"), "{bad}");
    }
}
