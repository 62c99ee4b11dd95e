//! A worker's connections: they begin, receive bytes, have their requests run, and end.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::net::{SendFlags, send};

use super::{IoDriver, Worker};
use crate::connection::{Connection, ConnectionOrigin, InputBytes};
use crate::engine::Halt;
use crate::mail::{Newcomer, ThreadMessage};
use crate::memory::{Holding, MemoryLevel};
use crate::output::Output;
use crate::tls::TlsStream;
use crate::{Service, SessionTransport};

impl<S: Service> Worker<S> {
    /// Adds a connection; None if the server stops.
    pub(crate) fn add(&mut self, link: ConnectionOrigin, transport: SessionTransport) -> u32 {
        self.incarnations = self.incarnations.wrapping_add(1);
        self.datagrams += usize::from(matches!(link, ConnectionOrigin::Datagram { .. }));
        let entry = self.connections.vacant_entry();
        let key = entry.key() as u32;
        entry.insert(Connection {
            key,
            incarnation: self.incarnations,
            session: self.engine.service.open(transport),
            input: InputBytes::default(),
            output: Output::default(),
            replies: self.engine.reply_budget.replies(),
            holding: Holding::new(self.engine.now.since_start),
            received: 0,
            everywhere: None,
            link,
            tls: None,
            _seat: None,
            active_at: self.engine.now.since_start,
            unsent_when_idle: None,
            is_blocked: false,
            gave_way_in: None,
            is_closing: false,
            is_ended: false,
            is_listed: false,
        });
        key
    }

    /// Deals an accepted connection to the threads in turn, unless there are too many.
    pub(crate) fn deal<D: IoDriver<S>>(&mut self, driver: &mut D, mut newcomer: Newcomer) -> io::Result<()> {
        let shared = &self.engine.shared;
        let per_address = self.engine.limits.connections_per_address;
        let is_counted = per_address < usize::MAX && newcomer.transport == SessionTransport::Tcp;
        if is_counted {
            newcomer.seat = shared.sources.admit(&newcomer.socket, per_address);
        }
        let is_one_too_many = is_counted && newcomer.seat.is_none();
        let before = shared.connections.fetch_add(1, Ordering::Relaxed);
        if is_one_too_many || before >= self.engine.limits.connections {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            self.engine.counters().refused.add(1);
            if newcomer.tls.is_some() {
                return Ok(());
            }
            // A client that reads learns the reason.
            let _ = send(
                &newcomer.socket,
                self.engine.service.refusal(),
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            );
            return Ok(());
        }
        let thread = self.next_thread;
        self.next_thread = (thread + 1) % shared.threads();
        if thread == self.engine.me {
            return self.open(driver, newcomer);
        }
        self.engine.mail.send(thread, ThreadMessage::Connection(newcomer));
        Ok(())
    }

    /// Opens a connection that was dealt to this thread.
    pub(crate) fn open<D: IoDriver<S>>(&mut self, driver: &mut D, newcomer: Newcomer) -> io::Result<()> {
        if self.stop_at.is_some() {
            self.engine.shared.connections.fetch_sub(1, Ordering::Relaxed);
            return Ok(());
        }
        self.engine.counters().opened.add(1);
        let key = self.add(ConnectionOrigin::stream(newcomer.socket, newcomer.transport), newcomer.transport);
        let connection = &mut self.connections[key as usize];
        connection._seat = newcomer.seat;
        if let ConnectionOrigin::Stream(stream) = &connection.link {
            self.engine.service.connected(&mut connection.session, stream.socket.as_fd(), self.engine.now);
        }
        if let Some(tls) = &newcomer.tls {
            match TlsStream::new(tls) {
                Ok(tls) => self.connections[key as usize].tls = Some(Box::new(tls)),
                // The configuration was accepted but cannot be used: the connection is closed rather than served in the
                // clear.
                Err(_) => self.connections[key as usize].is_closing = true,
            }
        }
        driver.open(self, key)
    }

    /// Removes a connection.
    pub(crate) fn remove(&mut self, key: u32) -> Connection<S> {
        let connection = self.connections.remove(key as usize);
        self.engine.reply_budget.forget(&connection.replies);
        self.engine.memory.forget(&connection.holding);
        match connection.link {
            ConnectionOrigin::Stream(_) => {
                self.engine.shared.connections.fetch_sub(1, Ordering::Relaxed);
                self.engine.counters().closed.add(1);
            }
            ConnectionOrigin::Datagram { .. } => self.datagrams -= 1,
        }
        connection
    }

    /// Handles bytes that arrived on a connection.
    pub(crate) fn on_bytes(&mut self, key: u32, bytes: &[u8]) {
        let connection = &mut self.connections[key as usize];
        connection.active_at = self.engine.now.since_start;
        connection.note_received(bytes.len());
        self.engine.counters().received_bytes.add(bytes.len() as u64);
        let Some(tls) = &mut connection.tls else { return self.on_plain(key, bytes) };
        let mut plain = self.engine.buffers.take();
        match tls.receive(bytes, &mut plain) {
            Ok(has_ended) => connection.is_ended |= has_ended,
            // An alert informs the client.
            Err(_) => connection.is_closing = true,
        }
        if !connection.is_closing {
            self.on_plain(key, &plain);
        }
        self.engine.buffers.give(plain);
    }

    fn on_plain(&mut self, key: u32, bytes: &[u8]) {
        let connection = &mut self.connections[key as usize];
        if connection.input.is_empty() && !connection.is_blocked {
            let now = self.engine.now.since_start;
            connection.holding.begin_request(now);
            let (used, halt) = self.engine.consume(connection, bytes);
            if used > 0 {
                connection.holding.end_request(used < bytes.len(), now);
            }
            connection.input.keep(&bytes[used..], &mut self.engine.buffers);
            self.halt(key, halt);
        } else {
            connection.input.keep(bytes, &mut self.engine.buffers);
            self.parse(key);
        }
    }

    /// Handles `count` bytes that were read into the connection's own input.
    pub(crate) fn on_read(&mut self, key: u32, count: usize) {
        let connection = &mut self.connections[key as usize];
        connection.active_at = self.engine.now.since_start;
        connection.note_received(count);
        self.engine.counters().received_bytes.add(count as u64);
        self.parse(key);
    }

    /// Runs the requests of a connection, if it may continue and has enough input.
    pub(crate) fn parse(&mut self, key: u32) {
        let connection = &mut self.connections[key as usize];
        if connection.is_blocked {
            if !self.engine.may_run(connection) || connection.gave_way_in == Some(self.turns) {
                return;
            }
        } else if connection.input.rest().len() < connection.input.wanted {
            return;
        }
        let lent = connection.input.lend();
        let (used, halt) = self.engine.consume(connection, lent.rest());
        connection.input.restore(lent, used, &mut self.engine.buffers);
        if used > 0 {
            connection.holding.end_request(!connection.input.is_empty(), self.engine.now.since_start);
        }
        self.halt(key, halt);
    }

    /// Reports whether a blocked connection may have its next request read. If it waits for the rings only, it is
    /// served once they have room; if it gave way in this turn, in the next.
    pub(crate) fn may_go_on(&mut self, key: u32) -> bool {
        self.recount(key);
        let connection = &mut self.connections[key as usize];
        if !connection.is_blocked || !connection.has_room(&self.engine.reply_budget) {
            return false;
        }
        if !self.engine.memory.is_free() && !self.engine.memory_allows(connection) {
            self.engine.memory.wait(key, &mut connection.holding, self.engine.now.since_start);
            return false;
        }
        if connection.gave_way_in == Some(self.turns) {
            self.list(key);
            return false;
        }
        let is_congested = self.engine.mail.is_congested();
        if is_congested {
            self.congested.push(key);
        }
        !is_congested
    }

    /// Counts the replies of a connection after it has received a request or sent bytes.
    fn recount(&mut self, key: u32) {
        let connection = &mut self.connections[key as usize];
        let (bytes, missing) = (connection.reply_bytes(), connection.output.holes());
        self.engine.reply_budget.recount(&mut connection.replies, bytes, missing);
        connection.output.give_back_empty(&mut self.engine.buffers);
        // Datagrams need little each, and as many as may wait would seem to need all the memory.
        let is_stream = matches!(connection.link, ConnectionOrigin::Stream(_));
        let missing = if is_stream { connection.missing() as usize } else { 0 };
        let coming = connection.replies.expected().saturating_mul(missing);
        let held = connection.held();
        self.engine.memory.recount(&mut connection.holding, held, coming);
        connection.holding.note(connection.moved(), self.engine.now.since_start);
    }

    fn halt(&mut self, key: u32, halt: Halt) {
        self.recount(key);
        let connection = &mut self.connections[key as usize];
        connection.is_blocked = matches!(halt, Halt::Blocked | Halt::Turn);
        connection.gave_way_in = (halt == Halt::Turn).then_some(self.turns);
        if halt == Halt::Turn {
            self.engine.counters().yields.add(1);
            return self.list(key);
        }
        connection.is_closing |= halt == Halt::Close;
        if halt == Halt::Blocked && self.engine.mail.is_congested() {
            self.congested.push(key);
        }
        if halt == Halt::Blocked && !self.engine.memory.is_free() && !self.engine.memory_allows(connection) {
            self.engine.memory.wait(key, &mut connection.holding, self.engine.now.since_start);
        }
    }

    /// Reports whether a connection is not to be read for lack of memory; it is served once there is memory.
    pub(crate) fn is_short_of_memory(&mut self, key: u32) -> bool {
        if self.engine.memory.is_free() || self.engine.memory.level() != MemoryLevel::Full {
            return false;
        }
        let now = self.engine.now.since_start;
        self.engine.memory.wait(key, &mut self.connections[key as usize].holding, now);
        true
    }

    /// Has the connection served before the turn ends.
    pub(crate) fn list(&mut self, key: u32) {
        let connection = &mut self.connections[key as usize];
        if !connection.is_listed {
            connection.is_listed = true;
            self.listed.push(key);
        }
    }
}
