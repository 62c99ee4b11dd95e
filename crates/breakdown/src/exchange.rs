//! [`RequestExchange`]: a request and its reply on one connection, as its events arrive.

use crate::event::{Flow, Packet, ThreadId};
use crate::part::{Part, Spans};
use crate::request::{Reason, Request};
use crate::threads::{Meaning, Threads};

/// A request and its reply, as far as they were seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestExchange {
    /// The number of requests that it represents: more than one where datagrams of one client overlap.
    pub(crate) requests: u64,
    received: u64,
    last_received: u64,
    packets_in: u32,
    bytes_in: u64,
    bytes_read: u64,
    /// The time at which the socket notified its readers of the latest packet.
    ready: Option<u64>,
    /// Whether a packet arrived after the last read.
    fresh: bool,
    read: Option<(u64, ThreadId)>,
    /// The spans from the last packet in to the read.
    to_read: Spans,
    send: Option<(u64, ThreadId)>,
    /// The system calls that sent.
    sends: u32,
    /// The bytes that remained at the last of them.
    call_bytes: u32,
    /// The spans from the read to the send.
    to_send: Spans,
    queued: Option<u64>,
    /// The spans from the send to the first packet out.
    to_device: Spans,
    transmitted: Option<u64>,
    last_transmitted: u64,
    packets_out: u32,
    bytes_out: u64,
    /// The sequence number and the device of the last packet out.
    last_out: (u32, u32),
    flaw: Option<Reason>,
}

impl RequestExchange {
    /// Begins an exchange with a packet.
    pub(crate) fn received(at: u64, bytes: u32) -> RequestExchange {
        let mut exchange = RequestExchange { requests: 1, received: at, ..RequestExchange::default() };
        exchange.on_received(at, bytes);
        exchange
    }

    /// Begins an exchange whose packets were not seen.
    pub(crate) fn unseen() -> RequestExchange {
        RequestExchange { requests: 1, flaw: Some(Reason::ArrivalNotSeen), ..RequestExchange::default() }
    }

    /// Gives the exchange a reason why it cannot be matched, unless it has one.
    pub(crate) fn spoil(&mut self, reason: Reason) {
        self.flaw.get_or_insert(reason);
    }

    /// Returns whether the server has begun to reply.
    pub(crate) fn replies(&self) -> bool {
        self.send.is_some() || self.transmitted.is_some()
    }

    /// Returns whether a thread has read from the request.
    pub(crate) fn is_read(&self) -> bool {
        self.read.is_some()
    }

    /// Returns whether packets of the request were seen.
    pub(crate) fn is_seen(&self) -> bool {
        self.packets_in > 0
    }

    /// Returns whether packets of the request were seen, and nothing of a reply.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_seen() && !self.replies()
    }

    pub(crate) fn on_received(&mut self, at: u64, bytes: u32) {
        self.last_received = at;
        self.packets_in += 1;
        self.bytes_in += u64::from(bytes);
        self.ready = None;
        self.fresh = true;
    }

    pub(crate) fn on_ready(&mut self, at: u64) {
        if self.fresh && self.ready.is_none() {
            self.ready = Some(at);
        }
    }

    /// Notes a read by a thread whose last event before was at `active`. Of several reads without a packet in between,
    /// the first counts: the following time is the application's.
    pub(crate) fn on_read(&mut self, at: u64, thread: ThreadId, bytes: u32, active: u64, threads: &Threads) {
        self.bytes_read += u64::from(bytes);
        if !self.fresh || self.replies() {
            return;
        }
        self.fresh = false;
        self.read = Some((at, thread));
        self.to_read.clear();
        let spans = &mut self.to_read;
        let Some(ready) = self.ready else {
            // The notification was missed, so the end of the stack's part and the begin of the wait are unknown.
            spans.push(Part::Remainder, self.last_received, at);
            return;
        };
        spans.push(Part::Receive, self.last_received, ready);
        let busy = active.clamp(ready.min(at), at);
        let state = |running| Meaning { running, asleep: Part::WakeUp, runnable: Part::RunQueue };
        threads.divide(thread, ready, busy, state(Part::Busy), spans);
        threads.divide(thread, busy, at, state(Part::Read), spans);
    }

    pub(crate) fn on_send(&mut self, at: u64, thread: ThreadId, bytes: u32, threads: &Threads) {
        // A call that fills several packets has fewer bytes left each time; one that fits into a packet ends with it.
        let same_call = self.call_bytes > PACKET_MIN && bytes < self.call_bytes;
        self.sends += u32::from(!same_call);
        self.call_bytes = bytes;
        if self.sends > 1 && self.packets_in > 1 {
            self.spoil(Reason::Pipelined);
        }
        let Some((read, _)) = self.read.filter(|_| self.send.is_none()) else { return };
        if self.bytes_read < self.bytes_in {
            self.spoil(Reason::Pipelined);
        }
        self.send = Some((at, thread));
        let state = Meaning { running: Part::Application, asleep: Part::Blocked, runnable: Part::Preempted };
        threads.divide(thread, read, at, state, &mut self.to_send);
    }

    pub(crate) fn on_queued(&mut self, at: u64) {
        if self.queued.is_none() && self.packets_out <= 1 {
            self.queued = Some(at);
        }
    }

    pub(crate) fn on_transmitted(&mut self, at: u64, packet: &Packet, threads: &Threads) {
        if self.transmitted.is_none() && self.send.is_none() {
            // No tracepoint of the protocol shows the send: the thread's system call takes its place.
            match self.read {
                Some((read, _)) if read <= packet.call && packet.call <= at => {
                    self.on_send(packet.call, packet.thread, packet.bytes, threads);
                }
                _ => self.spoil(Reason::SendNotSeen),
            }
        }
        if self.transmitted.is_none()
            && let Some((send, thread)) = self.send
        {
            let left = self.queued.unwrap_or(at).clamp(send.min(at), at);
            let state = Meaning { running: Part::Send, asleep: Part::Send, runnable: Part::Preempted };
            threads.divide(thread, send, left, state, &mut self.to_device);
            self.to_device.push(Part::Queue, left, at);
        }
        self.transmitted.get_or_insert(at);
        self.queued = None;
        self.last_transmitted = at;
        self.packets_out += 1;
        self.bytes_out += u64::from(packet.bytes);
        self.last_out = (packet.sequence, packet.device);
    }

    /// Notes a packet whose bytes were transmitted before: by a device above this one, or as a retransmission.
    pub(crate) fn on_repeated(&mut self, at: u64, packet: &Packet) {
        let (sequence, device) = self.last_out;
        if self.packets_out == 1 && sequence == packet.sequence && device != packet.device {
            let left = self.queued.take().unwrap_or(at).clamp(self.last_transmitted, at);
            self.to_device.push(Part::Send, self.last_transmitted, left);
            self.to_device.push(Part::Queue, left, at);
            self.transmitted = Some(at);
            self.last_transmitted = at;
            self.last_out = (sequence, packet.device);
        }
    }

    /// Returns the request with its spans, or why there are none.
    pub(crate) fn finish(self, flow: Flow) -> Result<Request, Reason> {
        if let Some(reason) = self.flaw {
            return Err(reason);
        }
        let (Some((read, reader)), Some(transmitted)) = (self.read, self.transmitted) else {
            return Err(Reason::NoReply);
        };
        let Some((send, sender)) = self.send else { return Err(Reason::SendNotSeen) };
        let times = [self.received, self.last_received, read, send, transmitted, self.last_transmitted];
        let ready = self.ready.unwrap_or(self.last_received);
        if !times.is_sorted() || ready < self.last_received || ready > read {
            return Err(Reason::Disorder);
        }
        let mut spans = Spans::default();
        spans.push(Part::Arrival, self.received, self.last_received);
        spans.extend(&self.to_read);
        spans.extend(&self.to_send);
        spans.extend(&self.to_device);
        spans.push(Part::Reply, transmitted, self.last_transmitted);
        let request = Request {
            flow,
            reader,
            sender,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            packets_in: self.packets_in,
            packets_out: self.packets_out,
            parts: spans.sums(),
            spans: spans.as_slice().to_vec(),
            received: self.received,
            latency: self.last_transmitted - self.received,
        };
        request.assert_whole();
        Ok(request)
    }
}

/// The number of a system call's packets is at least its bytes over this, the smallest maximum segment size.
const PACKET_MIN: u32 = 536;
