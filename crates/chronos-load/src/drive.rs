//! Runs a [`Generator`] on sockets and the wall clock.
//!
//! In each iteration, due operations become requests; each connection with output gets one write; then readable sockets
//! are read, and the requests that follow from their replies are sent at once. A thread that spins polls the kernel
//! without waiting; one that blocks sleeps until a reply or the next request.

mod alarm;
mod datagrams;

use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::ValueEnum;
use plimsoll_units::{Span, Time};
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use socket2::Socket;

use crate::book::Book;
use crate::generator::Generator;
use crate::process::ProcessorTime;
use alarm::Alarm;
use datagrams::{BATCH, ReceiveBuffers};

/// The behaviour of a thread without work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum IdleWait {
    /// It polls continuously: there is no wake-up delay, but the processor is never free.
    Spin,
    /// It sleeps until the next event.
    Block,
}

/// The wall clock, counted from the start of a phase.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Creates a clock that starts now.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Returns the time since the start.
    pub fn now(self) -> Time {
        Time::ZERO + Span::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}

/// The socket of one of the generator's connections.
struct ClientSocket {
    /// The socket; none once it is closed.
    socket: Option<Socket>,
    /// Whether the socket's send buffer is full, so that epoll reports when it has space.
    is_full: bool,
}

/// A generator, its sockets, and their read buffers.
struct SocketDriver {
    generator: Generator,
    sockets: Vec<ClientSocket>,
    poll: OwnedFd,
    alarm: Alarm,
    clock: Clock,
    buffer: Vec<u8>,
    /// The receive buffers of datagrams.
    batch: Option<ReceiveBuffers>,
}

/// Runs `generator` until it is over, or `stop` is set. `sockets` are its connections, in its order.
///
/// # Errors
/// Returns an error if the system rejects the poll. A server that closes a connection is not an error; it is counted.
pub fn drive(
    generator: Generator,
    sockets: Vec<Socket>,
    datagrams: bool,
    wait: IdleWait,
    clock: Clock,
    until: Time,
    stop: &AtomicBool,
) -> io::Result<Book> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let alarm = Alarm::new(&poll)?;
    for (index, socket) in sockets.iter().enumerate() {
        epoll::add(&poll, socket, epoll::EventData::new_u64(index as u64), LISTENED)?;
    }
    let sockets =
        sockets.into_iter().map(|socket| ClientSocket { socket: Some(socket), is_full: false }).collect();
    let batch = datagrams.then(ReceiveBuffers::new);
    let buffer = vec![0; READ_BYTES];
    let mut driver = SocketDriver { generator, sockets, poll, alarm, clock, buffer, batch };
    let before = ProcessorTime::of_this_thread().unwrap_or_default();
    driver.run(wait, until, stop)?;
    let after = ProcessorTime::of_this_thread().unwrap_or_default();
    driver.generator.book().waited = after.waited.saturating_sub(before.waited);
    Ok(driver.generator.finish())
}

impl SocketDriver {
    fn run(&mut self, wait: IdleWait, until: Time, stop: &AtomicBool) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut busy = Span::ZERO;
        let mut now = self.clock.now();
        loop {
            let began = now;
            self.generator.advance(now);
            let mut worked = self.send_all()?;
            if self.generator.is_over(now) || stop.load(Ordering::Relaxed) {
                break;
            }
            let before_wait = if wait == IdleWait::Block { self.clock.now() } else { now };
            let sleeps = wait == IdleWait::Block && self.set_alarm(before_wait, until)?;
            let timeout = (!sleeps).then(Timespec::default);
            events.clear();
            match epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Err(rustix::io::Errno::INTR) | Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            let waited = match wait {
                IdleWait::Block => self.clock.now().saturating_since(before_wait),
                IdleWait::Spin => Span::ZERO,
            };
            for event in &events {
                if event.data.u64() == Alarm::TOKEN {
                    continue;
                }
                worked = true;
                let (link, flags) = (event.data.u64() as usize, event.flags);
                if flags.contains(epoll::EventFlags::OUT) {
                    self.has_room(link)?;
                }
                if flags.intersects(READABLE) {
                    self.read(link, flags.intersects(ENDING))?;
                }
            }
            now = self.clock.now();
            if worked && began < until {
                busy += now.saturating_since(began).saturating_sub(waited);
            }
        }
        self.generator.book().busy = busy;
        Ok(())
    }

    /// Sets the alarm to the next event; returns false if that is due.
    fn set_alarm(&mut self, now: Time, until: Time) -> io::Result<bool> {
        let end = if now < until { until } else { now.saturating_add(DRAIN_CHECK) };
        let wake = self.generator.next_event().min(end).min(now.saturating_add(SLEEP_MAX));
        self.alarm.set(now, wake)
    }

    /// Sends all output; returns whether there was any.
    fn send_all(&mut self) -> io::Result<bool> {
        let mut any = false;
        while let Some(link) = self.generator.take_sendable() {
            any = true;
            self.send(link)?;
        }
        Ok(any)
    }

    fn send(&mut self, link: usize) -> io::Result<()> {
        let now = self.clock.now();
        let (out, ends) = self.generator.output(link, now);
        let line = &mut self.sockets[link];
        let Some(socket) = &line.socket else { return Ok(()) };
        if line.is_full || out.is_empty() {
            return Ok(());
        }
        let done = match &mut self.batch {
            Some(_) => datagrams::send(socket, out, ends),
            None => {
                let mut socket = socket;
                socket.write(out).map(|bytes| (bytes, 0))
            }
        };
        let all = out.len();
        match done {
            Ok((bytes, datagrams)) => {
                self.generator.sent(link, bytes, datagrams);
                if bytes < all {
                    self.wait_for_room(link, true)?
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_for_room(link, true)?,
            Err(error) => {
                // Replies that arrived before the server closed the connection still count.
                if self.batch.is_none() {
                    self.read_stream(link, true);
                }
                self.close(link, &format!("cannot send: {error}"));
            }
        }
        Ok(())
    }

    /// Starts or stops polling whether `link` accepts more output.
    fn wait_for_room(&mut self, link: usize, is_full: bool) -> io::Result<()> {
        let line = &mut self.sockets[link];
        let Some(socket) = &line.socket else { return Ok(()) };
        line.is_full = is_full;
        let flags = if is_full { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        epoll::modify(&self.poll, socket, epoll::EventData::new_u64(link as u64), flags | LISTENED)?;
        Ok(())
    }

    fn has_room(&mut self, link: usize) -> io::Result<()> {
        self.wait_for_room(link, false)?;
        self.send(link)
    }

    /// Reads `link`, to its end if it `is_ending`, and sends the requests that follow.
    fn read(&mut self, link: usize, is_ending: bool) -> io::Result<()> {
        let read = match self.batch {
            Some(_) => self.read_datagrams(link),
            None => self.read_stream(link, is_ending),
        };
        // Operations that became due during the read are sent before the other connections are read.
        if let Some(now) = read
            && self.generator.next_event() <= now
        {
            self.generator.advance(now);
        }
        self.send_all()?;
        Ok(())
    }

    /// Reads the input of a connection; returns the time of the last read, if there was input.
    fn read_stream(&mut self, link: usize, is_ending: bool) -> Option<Time> {
        let mut read = None;
        let mut buffer = mem::take(&mut self.buffer);
        while let Some(mut socket) = self.sockets[link].socket.as_ref() {
            match socket.read(&mut buffer) {
                Ok(0) => self.close(link, "the server closed it"),
                Ok(bytes) => {
                    let now = self.clock.now();
                    read = Some(now);
                    if let Err(reason) = self.generator.receive(link, now, &buffer[..bytes]) {
                        self.generator.book().counts.refused += 1;
                        self.close(link, &reason);
                    }
                    if bytes < buffer.len() && !is_ending {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.close(link, &format!("cannot receive: {error}")),
            }
        }
        self.buffer = buffer;
        read
    }

    /// Receives the pending datagrams; returns the time, if there were any.
    fn read_datagrams(&mut self, link: usize) -> Option<Time> {
        let Self { generator, sockets, clock, batch, .. } = self;
        let (socket, batch) = (sockets[link].socket.as_ref()?, batch.as_mut()?);
        let mut read = None;
        let failed = loop {
            match batch.receive(socket) {
                Ok(datagrams) => {
                    let now = clock.now();
                    read = Some(now);
                    let count =
                        datagrams.map(|datagram| generator.receive_datagram(link, now, datagram)).count();
                    if count < BATCH {
                        return read;
                    }
                }
                Err(error) => break error,
            }
        };
        if failed.kind() != ErrorKind::WouldBlock {
            self.close(link, &format!("cannot receive: {failed}"));
        }
        read
    }

    fn close(&mut self, link: usize, reason: &str) {
        // Closing the socket removes it from the poll.
        self.sockets[link].socket = None;
        self.generator.close(link, self.clock.now(), reason);
    }
}

/// The poll is edge-triggered: a socket that was read until it was empty is not read again. The end of a connection is
/// a separate flag, because its edge may coincide with that of the last bytes.
const LISTENED: epoll::EventFlags =
    epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);
const ENDING: epoll::EventFlags =
    epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP).union(epoll::EventFlags::ERR);
const READABLE: epoll::EventFlags = epoll::EventFlags::IN.union(ENDING);
/// The bytes of one read: many replies with small values.
const READ_BYTES: usize = 64 * 1024;
const EVENTS_MAX: usize = 256;
/// The interval at which, after the end, the wait for the last replies is checked.
const DRAIN_CHECK: Span = Span::from_ms(10);
const SLEEP_MAX: Span = Span::from_ms(100);
