//! [`Datagrams`]: one thread's UDP sockets. Each datagram is a connection of its own until it is answered.
//!
//! ```text
//! recvmmsg ──> Service::unseal ──> requests, as on a stream ──> Service::seal ──> sendmmsg, once a turn
//! ```

use std::io::IoSlice;
use std::os::fd::OwnedFd;

use crate::connection::Link;
use crate::look_ahead::DISTANCE;
use crate::mmsg::{Address, Outgoing, Received, is_full};
use crate::worker::Worker;
use crate::{Ahead, Service, Transport};

/// One thread's UDP sockets.
pub(crate) struct Datagrams {
    sockets: Vec<(OwnedFd, Outgoing)>,
    received: Option<Received>,
    /// A reply in one piece.
    whole: Vec<u8>,
    /// What the datagrams of a batch will ask for.
    seen: Vec<Option<(u32, u64)>>,
}

/// Slices of a reply looked at before it is put into one piece.
const SLICES: usize = 64;

impl Datagrams {
    pub(crate) fn new(sockets: Vec<OwnedFd>) -> Datagrams {
        let received = (!sockets.is_empty()).then(Received::new);
        let sockets = sockets.into_iter().map(|socket| (socket, Outgoing::default())).collect();
        Datagrams { sockets, received, whole: Vec::new(), seen: Vec::new() }
    }

    /// The sockets, in the order of their numbers.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &OwnedFd> {
        self.sockets.iter().map(|(socket, _)| socket)
    }

    /// Receives a batch, runs what it asks for, and sends what is answered at once. True if there may be more.
    pub(crate) fn receive<S: Service>(&mut self, worker: &mut Worker<S>, socket: usize) -> bool {
        let (Some(mut received), Some((from, _))) = (self.received.take(), self.sockets.get(socket)) else {
            return false;
        };
        // An error is what an earlier datagram met with (its client is gone, say), not these.
        let count = received.receive(from).unwrap_or_default();
        self.seen.clear();
        if S::LOOKS_AHEAD && count > 1 {
            let service = worker.engine.service.clone();
            let request = |index| service.unseal(received.get(index).1).map(|(_, request)| request);
            self.seen.extend((0..count).map(|index| worker.engine.glance(request(index)?)));
        }
        for &seen in self.seen.iter().take(DISTANCE).flatten() {
            worker.engine.look_ahead(seen, Ahead::Data);
        }
        for index in 0..count {
            if let Some(&Some(seen)) = self.seen.get(index + DISTANCE) {
                worker.engine.look_ahead(seen, Ahead::Data);
            }
            let (client, datagram) = received.get(index);
            self.run(worker, socket, client, datagram);
        }
        self.received = Some(received);
        worker.engine.counters().datagrams.add(count as u64);
        self.flush(worker);
        is_full(count)
    }

    fn run<S: Service>(&mut self, worker: &mut Worker<S>, socket: usize, client: Address, datagram: &[u8]) {
        let service = worker.engine.service.clone();
        let Some((envelope, request)) = service.unseal(datagram) else { return };
        let key = worker.add(Link::Datagram { socket, client, envelope }, Transport::Udp);
        worker.connections[key as usize].is_ended = true;
        worker.on_bytes(key, request);
        self.answer(worker, key);
    }

    /// Answers a datagram, if all its replies are here.
    pub(crate) fn answer<S: Service>(&mut self, worker: &mut Worker<S>, key: u32) {
        while worker.may_go_on(key) {
            worker.parse(key);
        }
        let connection = &worker.connections[key as usize];
        let Link::Datagram { socket, client, envelope } = connection.link else { return };
        // A reply over the limit is cut: nobody can read a little of it to make room for more.
        let is_cut = connection.output.bytes() > worker.engine.limits.output_bytes;
        if !connection.output.is_whole()
            || connection.everywhere.is_some()
            || (connection.is_blocked && !is_cut)
        {
            return;
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        let outgoing = &mut self.sockets[socket].1;
        let send = &mut |datagram: &[u8]| outgoing.push(client, datagram);
        match connection.output.ready(&mut slices) {
            0 => {}
            1 => worker.engine.service.seal(envelope, &slices[0], send),
            _ => {
                self.whole.clear();
                connection.output.copy_to(&mut self.whole);
                worker.engine.service.seal(envelope, &self.whole, send);
            }
        }
        let mut connection = worker.remove(key);
        connection.output.discard(&mut worker.engine.buffers);
    }

    /// Sends what has been answered.
    pub(crate) fn flush<S: Service>(&mut self, worker: &mut Worker<S>) {
        for (socket, outgoing) in &mut self.sockets {
            if outgoing.is_empty() {
                continue;
            }
            let sent = outgoing.send(&*socket);
            let counters = worker.engine.counters();
            counters.sent_bytes.add(sent.bytes);
            counters.dropped.add(sent.dropped);
        }
    }
}
