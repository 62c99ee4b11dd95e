//! [`QueuePair`]: one end of a connection, and the order in which its packets leave.

use plimsoll_units::{Rate, Span, Time};

use super::config::RoceConfig;
use super::reads::ReadSide;
use super::requests::RequestSide;
use super::responses::{Answer, ResponseSide};
use crate::tcp::{Counters, Delivered, EcnField, Flags, TcpConfig, TcpSegment, WindowState};
use crate::telemetry::Stamps;
use crate::transports::nic_end::NicEnd;
use crate::transports::packet_types::PacketTypes;

/// One end of a connection of the RoCE family.
///
/// After every [`write`](QueuePair::write), [`read`](QueuePair::read), [`on_segment`](QueuePair::on_segment) and
/// [`on_deadline`](QueuePair::on_deadline), call [`poll_transmit`](QueuePair::poll_transmit) until it returns `None`,
/// and call `on_deadline` at [`deadline`](QueuePair::deadline).
///
/// On the wire a data packet that asks for an acknowledgement has CWR; an acknowledgement has ACK, a NAK has CWR as
/// well, one that echoes a mark ECE, and the packet that arrived instead as a SACK block if repair is selective; a CNP
/// has ECE and no ACK, and a READ request CWR and no ACK, with its number for an acknowledgement number
/// ([`TcpSegment::is_read_request`]). The acknowledgement number of data is the number of the transmission, which the
/// sequence number of an acknowledgement echoes. As in TCP, ACK on data says that the receiver answers, and so returns
/// telemetry.
#[derive(Debug)]
pub struct QueuePair {
    requests: RequestSide,
    responses: ResponseSide,
    reads: ReadSide,
    sent: u64,
    heard: u64,
    marked: u64,
    types: PacketTypes,
}

impl QueuePair {
    /// Makes a queue pair at a NIC of unlimited rate, until [`set_path`](QueuePair::set_path) says which.
    pub fn new(config: &RoceConfig) -> QueuePair {
        QueuePair {
            requests: RequestSide::new(config),
            responses: ResponseSide::default(),
            reads: ReadSide::default(),
            sent: 0,
            heard: 0,
            marked: 0,
            types: PacketTypes::default(),
        }
    }

    /// The queue pair's NIC sends at `rate`, and an idle path to the other end, by `switches` switches, and back takes
    /// `round_trip`.
    pub fn set_path(&mut self, config: &RoceConfig, rate: Rate, round_trip: Span, switches: u32) {
        self.requests.set_path(config, rate, round_trip, switches);
    }

    /// The application posts a READ of the other end's next message, which has `bytes` bytes and which that end
    /// [writes](QueuePair::write). Only with `roce.operation = "read"`.
    pub fn read(&mut self, config: &RoceConfig, now: Time, bytes: u64) {
        self.reads.post(config, now, bytes);
    }

    /// A segment arrived, with the `stamps` of the ports that the data it acknowledges has passed.
    pub fn on_segment(
        &mut self,
        config: &RoceConfig,
        now: Time,
        segment: &TcpSegment,
        stamps: Option<&Stamps>,
    ) -> Delivered {
        self.heard += 1;
        self.types.of(segment.len, segment.flags).received += 1;
        let mut delivered = Delivered::default();
        if segment.len > 0 {
            self.marked += u64::from(segment.ecn == EcnField::Ce);
            delivered.new_bytes = self.responses.on_data(config, now, segment);
            if delivered.new_bytes > 0 && config.reads() {
                self.reads.on_data(now, self.responses.received());
            }
        } else if segment.flags.has(Flags::ACK) {
            delivered.acked = self.requests.on_ack(config, now, segment, stamps);
        } else if segment.flags.has(Flags::ECE) {
            self.requests.on_cnp(config, now);
        } else if segment.is_read_request() {
            self.requests.on_read_request(segment.ack);
        }
        delivered
    }

    /// Returns whether a data packet may leave now, as far as window and rate say.
    pub fn has_packet(&self, config: &RoceConfig, now: Time) -> bool {
        self.requests.has_packet(config, now)
    }

    /// Returns whether the last data packet that left ended its message.
    pub fn has_ended_message(&self) -> bool {
        self.requests.has_ended_message()
    }

    /// Returns whether data is to be sent, now or later.
    pub fn has_data(&self) -> bool {
        self.requests.has_data()
    }
}

impl NicEnd for QueuePair {
    type Config = RoceConfig;

    fn config(config: &TcpConfig) -> &RoceConfig {
        &config.roce
    }

    fn write(&mut self, config: &RoceConfig, now: Time, bytes: u64) {
        self.requests.write(config, now, bytes);
    }

    fn poll_transmit(&mut self, config: &RoceConfig, now: Time) -> Option<TcpSegment> {
        let segment = match self.responses.take_answer() {
            Some(Answer::Notify) => TcpSegment { flags: Flags::ECE, ..TcpSegment::default() },
            Some(Answer::Ack { next, echo, is_marked }) => {
                let flags = Flags::ACK.with_if(is_marked, Flags::ECE);
                TcpSegment { seq: echo, ack: next, flags, ..TcpSegment::default() }
            }
            Some(Answer::Nak { next, arrived, echo, is_marked }) => TcpSegment {
                seq: echo,
                ack: next,
                flags: Flags::ACK.with(Flags::CWR).with_if(is_marked, Flags::ECE),
                sack: arrived,
                ..TcpSegment::default()
            },
            None => match self.reads.next_request(config, now) {
                Some(request) => request,
                None => self.requests.next_packet(config, now)?,
            },
        };
        self.sent += 1;
        self.types.of(segment.len, segment.flags).sent += 1;
        Some(segment)
    }

    fn owes_answer(&self) -> bool {
        self.responses.owes_answer()
    }

    fn offers_data(&self, config: &RoceConfig, now: Time) -> bool {
        !self.owes_answer() && self.has_packet(config, now) && !self.reads.has_request(config, now)
    }

    fn awaits_answer(&self, _config: &RoceConfig) -> bool {
        self.requests.awaits_answer()
    }

    fn deadline(&self, config: &RoceConfig, now: Time) -> Time {
        self.requests
            .deadline(config, now)
            .min(self.responses.deadline())
            .min(self.reads.deadline(config, now))
    }

    fn on_deadline(&mut self, config: &RoceConfig, now: Time) {
        self.requests.on_deadline(config, now);
        self.responses.on_deadline(now);
        self.reads.on_deadline(config, now);
    }

    fn received(&self) -> u64 {
        self.responses.received()
    }

    fn acknowledged(&self) -> u64 {
        self.requests.acknowledged()
    }

    fn sent(&self) -> u64 {
        self.requests.sent()
    }

    fn written(&self) -> u64 {
        self.requests.written()
    }

    fn is_idle(&self) -> bool {
        self.acknowledged() == self.written() && self.reads.is_idle() && !self.owes_answer()
    }

    fn window(&self, config: &RoceConfig) -> WindowState {
        self.requests.window_state(config)
    }

    fn counters(&self) -> Counters {
        let (of_requests, repeats) = (self.requests.counters(), self.reads.timeouts());
        Counters {
            segments_sent: self.sent,
            segments_received: self.heard,
            ce_received: self.marked,
            types: self.types,
            timeouts: of_requests.timeouts + repeats,
            ..of_requests
        }
    }
}

#[cfg(test)]
mod tests;
