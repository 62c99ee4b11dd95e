//! [`EpollDriver`]: connections by readiness, edge-triggered: each socket is registered once, and the kernel reports
//! when it becomes readable or writable, not that it still is.
//!
//! A connection is read at most once a turn, and written once after its requests have run. A read that fills less than
//! its buffer has emptied the socket, so no further read is made just to find it empty.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use rustix::time::Timespec;

use crate::connection::{ConnectionOrigin, Stream};
use crate::datagrams::Datagrams;
use crate::mail::Newcomer;
use crate::shared::Shared;
use crate::sockets::{ACCEPT_PAUSE, ServerSocket, accept};
use crate::worker::{IoDriver, Worker};
use crate::{Service, StartError};

/// One thread's epoll instance.
pub(crate) struct EpollDriver {
    epoll: OwnedFd,
    events: Vec<Event>,
    /// Buffer for reads of connections that have no bytes left from before.
    scratch: Box<[u8]>,
    /// Connections that may have more to read.
    again: Vec<u32>,
    /// The memory of the previous list, for reuse.
    unused: Vec<u32>,
    listeners: Vec<ServerSocket>,
    datagrams: Datagrams,
    /// The time before which no connection is accepted (for lack of file descriptors, for example).
    accept_after: Option<Duration>,
}

/// Events fetched by one call.
const EVENTS: usize = 256;
/// The largest number of bytes that one call reads.
const SCRATCH_BYTES: usize = 64 * 1024;
/// Connections accepted in one turn.
const ACCEPTS: usize = 64;
/// Slices written by one call; the kernel takes up to 1024.
const SLICES: usize = 64;
/// Token of the thread's alarm, above the numbers of connections.
const ALARM: u64 = 1 << 32;
/// Token of a listener, whose number is in the lower half.
const LISTENER: u64 = 2 << 32;
/// Token of a port for datagrams, whose number is in the lower half.
const DATAGRAMS: u64 = 3 << 32;

impl EpollDriver {
    /// Creates the driver of a thread with these listeners.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        me: u32,
        listeners: Vec<ServerSocket>,
        datagrams: Datagrams,
    ) -> Result<EpollDriver, StartError> {
        let failed = |what| move |errno: Errno| StartError::Worker { what, source: io::Error::from(errno) };
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(failed("epoll_create1"))?;
        // Edge-triggered, so it need not be read.
        epoll::add(&epoll, shared.alarm(me), EventData::new_u64(ALARM), EventFlags::IN | EventFlags::ET)
            .map_err(failed("epoll_ctl"))?;
        for (number, listener) in (0..).zip(&listeners) {
            epoll::add(&epoll, &listener.socket, EventData::new_u64(LISTENER | number), EventFlags::IN)
                .map_err(failed("epoll_ctl"))?;
        }
        for (number, port) in datagrams.polled() {
            epoll::add(&epoll, port, EventData::new_u64(DATAGRAMS | number), EventFlags::IN)
                .map_err(failed("epoll_ctl"))?;
        }
        Ok(EpollDriver {
            epoll,
            events: Vec::with_capacity(EVENTS),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            again: Vec::new(),
            unused: Vec::new(),
            listeners,
            datagrams,
            accept_after: None,
        })
    }

    fn accept<S: Service>(&mut self, worker: &mut Worker<S>, number: usize) -> io::Result<()> {
        for _ in 0..ACCEPTS {
            let Some(listener) = self.listeners.get(number) else { return Ok(()) };
            let (transport, tls) = (listener.transport, listener.tls.clone());
            match accept(listener) {
                Ok(None) => return Ok(()),
                Ok(Some(socket)) => worker.deal(self, Newcomer { socket, transport, tls, seat: None })?,
                // The client has gone, or the network reports an error: the next connection may succeed.
                Err(
                    Errno::CONNABORTED | Errno::INTR | Errno::PROTO | Errno::NETDOWN | Errno::HOSTUNREACH,
                ) => {}
                Err(_) => {
                    worker.engine.counters().accept_errors.add(1);
                    return self.pause_accepting(worker.engine.now.since_start);
                }
            }
        }
        Ok(())
    }

    fn pause_accepting(&mut self, now: Duration) -> io::Result<()> {
        self.accept_after = Some(now.saturating_add(ACCEPT_PAUSE));
        self.watch_listeners(EventFlags::empty())
    }

    fn watch_listeners(&self, flags: EventFlags) -> io::Result<()> {
        for (number, listener) in (0..).zip(&self.listeners) {
            epoll::modify(&self.epoll, &listener.socket, EventData::new_u64(LISTENER | number), flags)?;
        }
        Ok(())
    }

    /// Reads once, and runs the requests that arrived.
    fn receive<S: Service>(&mut self, worker: &mut Worker<S>, key: u32) {
        let connection = &mut worker.connections[key as usize];
        if connection.is_blocked || connection.is_closing || connection.is_ended {
            return;
        }
        if worker.is_short_of_memory(key) {
            return;
        }
        let connection = &mut worker.connections[key as usize];
        let ConnectionOrigin::Stream(stream) = &mut connection.link else { return };
        let is_hung_up = stream.is_hung_up;
        let is_direct = !connection.input.is_empty() && connection.tls.is_none();
        let (result, room) = if !is_direct {
            let result = recv(&stream.socket, &mut self.scratch[..], RecvFlags::empty());
            (result.map(|(count, _)| count), self.scratch.len())
        } else {
            let room = connection.input.room();
            let size = room.capacity() - room.len();
            (recv(&stream.socket, spare_capacity(room), RecvFlags::empty()).map(|(count, _)| count), size)
        };
        match result {
            Ok(0) => {
                stream.is_readable = false;
                connection.is_ended = true;
            }
            Ok(count) => {
                stream.is_readable = count == room || is_hung_up;
                if !is_direct {
                    worker.on_bytes(key, &self.scratch[..count]);
                } else {
                    worker.on_read(key, count);
                }
            }
            Err(Errno::AGAIN) => stream.is_readable = false,
            Err(Errno::INTR) => {}
            Err(_) => drop(worker.remove(key)),
        }
    }

    /// Writes the bytes that are ready. False if the connection is broken.
    fn send<S: Service>(&mut self, worker: &mut Worker<S>, key: u32) -> bool {
        let connection = &mut worker.connections[key as usize];
        let Some((stream, output)) = connection.outgoing(&mut worker.engine.buffers) else { return true };
        while stream.is_writable && output.bytes() > 0 {
            let (size, result) = match output.one_piece() {
                Some(piece) => (piece.len(), send(&stream.socket, piece, SendFlags::NOSIGNAL)),
                None => {
                    let mut slices = [IoSlice::new(&[]); SLICES];
                    let count = output.ready(&mut slices);
                    if count == 0 {
                        return true;
                    }
                    let size = slices[..count].iter().map(|slice| slice.len()).sum();
                    let mut nothing = SendAncillaryBuffer::default();
                    let sent = sendmsg(&stream.socket, &slices[..count], &mut nothing, SendFlags::NOSIGNAL);
                    (size, sent)
                }
            };
            match result {
                Ok(sent) => {
                    stream.is_writable = sent == size;
                    worker.engine.stats.thread(worker.engine.me).sent_bytes.add(sent as u64);
                    output.advance(sent, &mut worker.engine.buffers);
                }
                Err(Errno::AGAIN) => stream.is_writable = false,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn on_connection<S: Service>(&mut self, worker: &mut Worker<S>, key: u32, flags: EventFlags) {
        let Some(connection) = worker.connections.get_mut(key as usize) else { return };
        let ConnectionOrigin::Stream(stream) = &mut connection.link else { return };
        let hang_up = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        stream.is_writable |= flags.contains(EventFlags::OUT);
        stream.is_hung_up |= flags.intersects(hang_up);
        stream.is_readable |= flags.intersects(EventFlags::IN | hang_up);
        if stream.is_readable {
            self.receive(worker, key);
        }
        if worker.connections.contains(key as usize) {
            self.serve(worker, key);
        }
    }
}

impl<S: Service> IoDriver<S> for EpollDriver {
    fn turn(&mut self, worker: &mut Worker<S>, wait: Duration) -> io::Result<bool> {
        let mut again = std::mem::replace(&mut self.again, std::mem::take(&mut self.unused));
        let wait = if again.is_empty() { wait } else { Duration::ZERO };
        let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        worker.tick();
        if !wait.is_zero() {
            worker.engine.counters().sleeps.add(1);
        }
        let happened = self.datagrams.look(worker) || !again.is_empty() || !self.events.is_empty();
        for key in again.drain(..) {
            self.on_connection(worker, key, EventFlags::empty());
        }
        self.unused = again;
        let events = std::mem::take(&mut self.events);
        for event in &events {
            let (token, flags) = (event.data.u64(), event.flags);
            if token < ALARM {
                self.on_connection(worker, token as u32, flags);
            } else if token >= DATAGRAMS {
                // Level-triggered: the kernel reports the rest again.
                self.datagrams.receive(worker, (token & u64::from(u32::MAX)) as usize);
            } else if token >= LISTENER {
                self.accept(worker, (token & u64::from(u32::MAX)) as usize)?;
            }
        }
        self.events = events;
        if self.accept_after.is_some_and(|after| worker.engine.now.since_start >= after) {
            self.accept_after = None;
            self.watch_listeners(EventFlags::IN)?;
        }
        Ok(happened)
    }

    fn open(&mut self, worker: &mut Worker<S>, key: u32) -> io::Result<()> {
        let ConnectionOrigin::Stream(stream) = &worker.connections[key as usize].link else { return Ok(()) };
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        // A newcomer usually has its first request with it, and the kernel reports bytes that are there already.
        if epoll::add(&self.epoll, &stream.socket, EventData::new_u64(u64::from(key)), flags).is_err() {
            drop(worker.remove(key));
        }
        Ok(())
    }

    fn serve(&mut self, worker: &mut Worker<S>, key: u32) {
        if matches!(worker.connections[key as usize].link, ConnectionOrigin::Datagram { .. }) {
            return self.datagrams.answer(worker, key);
        }
        loop {
            if !self.send(worker, key) {
                drop(worker.remove(key));
                return;
            }
            if !worker.may_go_on(key) {
                break;
            }
            worker.parse(key);
        }
        let connection = &worker.connections[key as usize];
        if connection.is_finished() {
            drop(worker.remove(key));
            return;
        }
        let may_read = !connection.is_blocked
            && !connection.is_closing
            && !connection.is_ended
            && !connection.holding.is_waiting;
        if may_read && matches!(&connection.link, ConnectionOrigin::Stream(Stream { is_readable: true, .. }))
        {
            self.again.push(key);
        }
    }

    fn close(&mut self, worker: &mut Worker<S>, key: u32) {
        drop(worker.remove(key));
    }

    fn flush(&mut self, worker: &mut Worker<S>) {
        self.datagrams.flush(worker);
    }

    fn is_busy(&self) -> bool {
        !self.again.is_empty() || self.datagrams.is_stuck()
    }

    fn is_sent(&mut self) -> bool {
        self.datagrams.is_sent()
    }

    fn stop_listening(&mut self) {
        self.listeners.clear();
        self.datagrams.stop_looking();
        for (_, port) in self.datagrams.polled() {
            // The port was added when the thread started.
            let _ = epoll::delete(&self.epoll, port);
        }
    }
}
