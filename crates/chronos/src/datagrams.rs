//! [`Datagrams`]: one thread's ports for datagrams. Each datagram is a connection of its own until it is answered.
//!
//! ```text
//! socket: recvmmsg ─┬─> Service::unseal ──> requests, as on a stream ──> Service::seal ─┬─> sendmmsg, once a batch
//! device: receive ──┘                                                                   └─> send, once a turn
//! ```

use std::io::IoSlice;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::connection::ConnectionOrigin;
use crate::device::DeviceQueue;
use crate::look_ahead::DISTANCE;
use crate::mmsg::{DatagramSocket, Received};
use crate::port::{DatagramBatch, DatagramPort, DatagramSender};
use crate::worker::Worker;
use crate::{Ahead, Poll, Service, SessionTransport};

/// One thread's ports for datagrams.
pub(crate) struct Datagrams {
    ports: Vec<DatagramPort>,
    /// The buffers into which UDP sockets receive.
    received: Option<Received>,
    /// A reply in one piece.
    whole: Vec<u8>,
    /// The partitions and places that the datagrams of a batch will use.
    seen: Vec<Option<(u32, u64)>>,
    /// True if the thread polls the queues of devices in every turn, so that it needs no notification.
    is_spinning: bool,
    /// True once the server stops: nothing more is received from queues of devices.
    is_stopped: bool,
    /// The time since the server's start at which overruns of devices are counted next.
    next_count: Duration,
}

/// Datagrams of a thread that are not answered yet; at that many, no more are received.
const PENDING_MAX: usize = 1024;
/// The interval at which the datagrams that a device dropped for lack of room are counted.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// The most slices of a reply; a reply with more is put into one piece.
const SLICES: usize = 64;

impl Datagrams {
    /// Creates the ports of a thread that waits by `poll`.
    pub(crate) fn new(sockets: Vec<OwnedFd>, queues: Vec<DeviceQueue>, poll: Poll) -> Datagrams {
        let received = (!sockets.is_empty()).then(Received::new);
        let sockets =
            sockets.into_iter().map(|socket| DatagramPort::Socket(Box::new(DatagramSocket::new(socket))));
        let queues = queues.into_iter().map(|queue| DatagramPort::Device(Some(queue.receiver), queue.sender));
        let ports = sockets.chain(queues).collect();
        Datagrams {
            ports,
            received,
            whole: Vec::new(),
            seen: Vec::new(),
            is_spinning: poll == Poll::Spin,
            is_stopped: false,
            next_count: COUNT_EVERY,
        }
    }

    /// The ports, in the order of their numbers.
    pub(crate) fn ports(&self) -> &[DatagramPort] {
        &self.ports
    }

    /// Returns the numbers and descriptors of the ports for which the thread waits in the kernel.
    pub(crate) fn polled(&self) -> impl Iterator<Item = (u64, BorrowedFd<'_>)> {
        let is_polled = |port: &DatagramPort| !self.is_spinning || matches!(port, DatagramPort::Socket(..));
        let polled = (0..).zip(&self.ports).filter(move |(_, port)| is_polled(port));
        polled.filter_map(|(number, port)| Some((number, port.descriptor()?)))
    }

    /// Receives the datagrams that have arrived in queues of devices: their memory shows them without a system call.
    /// False if there were none.
    pub(crate) fn look<S: Service>(&mut self, worker: &mut Worker<S>) -> bool {
        let mut happened = false;
        for number in 0..self.ports.len() {
            if matches!(&self.ports[number], DatagramPort::Device(Some(receiver), _) if receiver.has_received())
            {
                happened |= !self.is_stopped;
                self.receive(worker, number);
            }
        }
        happened
    }

    /// Receives no more from queues of devices.
    pub(crate) fn stop_looking(&mut self) {
        self.is_stopped = true;
    }

    /// Receives a batch, and runs its requests. A reply that is ready at once is sent at once by a socket, and at the
    /// end of the turn by a device. Nothing is received while too many datagrams wait for replies of other threads.
    /// True if there may be more.
    pub(crate) fn receive<S: Service>(&mut self, worker: &mut Worker<S>, port: usize) -> bool {
        if worker.datagrams >= PENDING_MAX || worker.engine.mail.is_congested() {
            // Datagrams that arrive meanwhile wait in the kernel, which drops the excess. Other threads have to run
            // first.
            std::thread::yield_now();
            return true;
        }
        match self.ports.get_mut(port) {
            Some(DatagramPort::Socket(socket)) => {
                let Some(mut received) = self.received.take() else { return false };
                socket.receive(&mut received);
                worker.engine.counters().datagrams.add(received.count() as u64);
                self.run_batch(worker, port, &received);
                let is_full = received.is_full();
                self.received = Some(received);
                self.flush(worker);
                is_full
            }
            Some(DatagramPort::Device(place, _)) if !self.is_stopped => {
                let Some(mut receiver) = place.take() else { return false };
                let rejected = receiver.receive();
                let counters = worker.engine.counters();
                counters.datagrams.add(receiver.count() as u64);
                counters.bad_checksums.add(rejected.bad_checksums);
                counters.malformed.add(rejected.malformed);
                self.run_batch(worker, port, &*receiver);
                let is_full = receiver.is_full();
                receiver.release();
                if let DatagramPort::Device(place, _) = &mut self.ports[port] {
                    *place = Some(receiver);
                }
                is_full
            }
            _ => false,
        }
    }

    fn run_batch<S: Service, B: DatagramBatch + ?Sized>(
        &mut self,
        worker: &mut Worker<S>,
        port: usize,
        batch: &B,
    ) {
        let count = batch.count();
        self.seen.clear();
        if S::LOOKS_AHEAD && count > 1 {
            let service = worker.engine.service.clone();
            let request = |index| service.unseal(batch.get(index).1).map(|(_, request)| request);
            self.seen.extend((0..count).map(|index| worker.engine.glance(request(index)?)));
        }
        for &seen in self.seen.iter().take(DISTANCE).flatten() {
            worker.engine.look_ahead(seen, Ahead::Data);
        }
        for index in 0..count {
            if let Some(&Some(seen)) = self.seen.get(index + DISTANCE) {
                worker.engine.look_ahead(seen, Ahead::Data);
            }
            let (client, datagram) = batch.get(index);
            self.run(worker, port, client, datagram);
        }
    }

    fn run<S: Service>(
        &mut self,
        worker: &mut Worker<S>,
        port: usize,
        client: DatagramSender,
        datagram: &[u8],
    ) {
        let service = worker.engine.service.clone();
        let Some((envelope, request)) = service.unseal(datagram) else { return };
        let key = worker.add(ConnectionOrigin::Datagram { port, client, envelope }, SessionTransport::Udp);
        worker.connections[key as usize].is_ended = true;
        worker.on_bytes(key, request);
        self.answer(worker, key);
    }

    /// Answers a datagram once all its replies are here.
    pub(crate) fn answer<S: Service>(&mut self, worker: &mut Worker<S>, key: u32) {
        while worker.may_go_on(key) {
            worker.parse(key);
        }
        let connection = &worker.connections[key as usize];
        let ConnectionOrigin::Datagram { port, client, envelope } = &connection.link else { return };
        // A reply over the limit is cut: a client cannot read a part of it to make room for more.
        let is_over = connection.output.bytes() > worker.engine.limits.output_bytes;
        if !connection.output.is_whole()
            || connection.everywhere.is_some()
            || (connection.is_blocked && !is_over)
        {
            return;
        }
        // A reply that is over the limit and has run to its end is whole.
        let is_cut = connection.is_blocked && !connection.input.is_empty();
        let mut slices = [IoSlice::new(&[]); SLICES];
        let port = &mut self.ports[*port];
        let send = &mut |datagram: &[u8]| port.push(client, datagram);
        match connection.output.ready(&mut slices) {
            0 => {}
            1 if !is_cut => worker.engine.service.seal(*envelope, &slices[0], send),
            _ => {
                self.whole.clear();
                connection.output.copy_to(&mut self.whole);
                if is_cut {
                    worker.engine.service.cut(&connection.session, &mut self.whole);
                }
                worker.engine.service.seal(*envelope, &self.whole, send);
            }
        }
        let mut connection = worker.remove(key);
        connection.output.discard(&mut worker.engine.buffers);
    }

    /// Sends the datagrams that have been answered.
    pub(crate) fn flush<S: Service>(&mut self, worker: &mut Worker<S>) {
        let now = worker.engine.now.since_start;
        for port in self.ports.iter_mut().filter(|port| port.has_to_send()) {
            let sent = port.send(now);
            let counters = worker.engine.counters();
            counters.sent_bytes.add(sent.bytes);
            counters.dropped.add(sent.dropped);
        }
        if now >= self.next_count {
            self.next_count = now + COUNT_EVERY;
            for port in &mut self.ports {
                if let DatagramPort::Device(Some(receiver), _) = port {
                    worker.engine.counters().overruns.add(receiver.overruns());
                }
            }
        }
    }

    /// Reports whether a device could not take all datagrams: the caller sends again soon.
    pub(crate) fn is_stuck(&self) -> bool {
        self.ports.iter().any(DatagramPort::is_stuck)
    }

    /// Reports whether all replies have left.
    pub(crate) fn is_sent(&mut self) -> bool {
        self.ports.iter_mut().all(DatagramPort::is_sent)
    }
}
