//! Receives and sends: the operations of the kernel for a connection, and their completions.

use std::os::fd::AsRawFd;

use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue};
use rustix::net::{Shutdown, shutdown};

use super::buffers::GROUP;
use super::flight::Flight;
use super::{CANCEL, NUMBER, UringDriver, receive_token};
use crate::Service;
use crate::connection::ConnectionOrigin;
use crate::worker::{IoDriver, Worker};

/// The largest number of pieces that one operation sends.
const PIECES: usize = 64;
/// The most bytes that a connection which may not continue leaves unread in the server before its receiving stops.
const BLOCKED_BYTES: usize = 64 * 1024;

impl UringDriver {
    pub(super) fn on_received<S: Service>(
        &mut self,
        worker: &mut Worker<S>,
        token: u64,
        result: i32,
        flags: u32,
    ) {
        let key = (token & NUMBER) as u32;
        let buffer = cqueue::buffer_select(flags);
        let connection = worker.connections.get_mut(key as usize);
        let connection =
            connection.filter(|found| receive_token(key, found.incarnation) == token && !found.is_closing);
        let Some(connection) = connection else {
            buffer.into_iter().for_each(|number| self.buffers.give(number));
            return;
        };
        if let ConnectionOrigin::Stream(stream) = &mut connection.link
            && !cqueue::more(flags)
        {
            stream.is_receiving = false;
            stream.is_cancelling = false;
        }
        match (buffer, result) {
            (Some(number), 1..) => {
                worker.on_bytes(key, self.buffers.get(number, result as usize));
                self.buffers.give(number);
            }
            (buffer, 0) => {
                connection.is_ended = true;
                buffer.into_iter().for_each(|number| self.buffers.give(number));
            }
            // Cancelled, or out of buffers for the moment: it is armed again below if it is needed.
            (None, result) if [libc::ECANCELED, libc::ENOBUFS, libc::EINTR].contains(&-result) => {}
            _ => return self.close(worker, key),
        }
        self.serve(worker, key);
    }

    pub(super) fn on_sent<S: Service>(&mut self, worker: &mut Worker<S>, number: usize, result: i32) {
        let flight = &mut self.flights[number];
        let connection = worker.connections.get_mut(flight.key as usize);
        let Some(connection) = connection.filter(|found| found.incarnation == flight.incarnation) else {
            let flight = self.flights.remove(number);
            worker.engine.memory.hold(-(flight.held() as isize));
            return;
        };
        let key = flight.key;
        if result <= 0 {
            if let ConnectionOrigin::Stream(stream) = &mut connection.link {
                stream.is_sending = false;
            }
            self.flights.remove(number);
            return self.close(worker, key);
        }
        let sent = result as usize;
        worker.engine.stats.thread(worker.engine.me).sent_bytes.add(sent as u64);
        if let Some((_, output)) = connection.outgoing(&mut worker.engine.buffers) {
            output.on_sent(sent);
        }
        flight.advance(sent);
        if flight.left > 0 {
            let ConnectionOrigin::Stream(stream) = &connection.link else { return };
            let entry = flight.entry(stream.socket.as_raw_fd(), number);
            if self.push(&entry).is_err() {
                self.close(worker, key);
            }
            return;
        }
        if let Some((stream, output)) = connection.outgoing(&mut worker.engine.buffers) {
            stream.is_sending = false;
            output.on_landed();
        }
        let mut flight = self.flights.remove(number);
        flight.pieces.drain(..).for_each(|piece| worker.engine.buffers.give(piece));
        self.ended.push(flight);
        self.serve(worker, key);
    }

    /// Has the kernel send the bytes that are ready, if it is not sending already. False if the operation cannot be
    /// queued.
    pub(super) fn send<S: Service>(&mut self, worker: &mut Worker<S>, key: u32) -> bool {
        let connection = &mut worker.connections[key as usize];
        let incarnation = connection.incarnation;
        let Some((stream, output)) = connection.outgoing(&mut worker.engine.buffers) else { return true };
        if stream.is_sending {
            return true;
        }
        let mut flight = self.ended.pop().unwrap_or_else(Flight::new);
        flight.left = output.detach(&mut flight.pieces, PIECES);
        if flight.left == 0 {
            flight.pieces.drain(..).for_each(|piece| worker.engine.buffers.give(piece));
            self.ended.push(flight);
            return true;
        }
        stream.is_sending = true;
        (flight.key, flight.incarnation) = (key, incarnation);
        flight.aim();
        let number = self.flights.insert(flight);
        let entry = self.flights[number].entry(stream.socket.as_raw_fd(), number);
        self.push(&entry).is_ok()
    }

    /// Starts or stops receiving, as the connection may continue or not. False if the operation cannot be queued.
    pub(super) fn receive<S: Service>(&mut self, worker: &mut Worker<S>, key: u32) -> bool {
        let is_short = worker.is_short_of_memory(key);
        let connection = &mut worker.connections[key as usize];
        let ConnectionOrigin::Stream(stream) = &mut connection.link else { return true };
        let token = receive_token(key, connection.incarnation);
        let may_read = !connection.is_blocked && !connection.is_closing && !connection.is_ended && !is_short;
        if may_read && !stream.is_receiving {
            stream.is_receiving = true;
            let socket = Fd(stream.socket.as_raw_fd());
            // Linux 6.18 may keep the end of a UNIX socket's stream from a multishot receive: a receive that has
            // emptied the socket waits for the next wake-up, and the one for the end has passed by then. A newly queued
            // receive looks.
            let receive = if stream.is_unix {
                let receive = opcode::Recv::new(socket, std::ptr::null_mut(), 0).buf_group(GROUP);
                receive.build().flags(squeue::Flags::BUFFER_SELECT)
            } else {
                opcode::RecvMulti::new(socket, GROUP).build()
            };
            return self.push(&receive.user_data(token)).is_ok();
        }
        let is_too_much = connection.is_blocked && connection.input.rest().len() > BLOCKED_BYTES;
        if (is_too_much || is_short) && stream.is_receiving && !stream.is_cancelling {
            stream.is_cancelling = true;
            return self.push(&opcode::AsyncCancel::new(token).build().user_data(CANCEL)).is_ok();
        }
        true
    }

    pub(super) fn close<S: Service>(&mut self, worker: &mut Worker<S>, key: u32) {
        let connection = worker.remove(key);
        if let ConnectionOrigin::Stream(stream) = &connection.link {
            if stream.is_sending {
                // The bytes that the kernel sends stay until it reports completion.
                let wire = connection.tls.as_ref().map_or(&connection.output, |tls| &tls.wire);
                worker.engine.memory.hold(wire.detached_capacity() as isize);
            }
            // Queued operations name the descriptor, whose number is free after this. If they cannot be submitted the
            // next turn ends the thread.
            let _ = self.submit();
            // The receive that is armed holds the connection open: this ends it.
            let _ = shutdown(&stream.socket, Shutdown::Both);
        }
    }
}
