//! [`HomaEnd`]: one end of a connection of Homa, and the order in which its packets leave.

use plimsoll_units::{Span, Time};

use super::config::HomaConfig;
use super::receiver::ReceiveSide;
use super::sender::SendSide;
use super::wire::PacketKind;
use crate::tcp::{Counters, Delivered, TcpConfig, TcpSegment, WindowState};
use crate::transports::nearest;
use crate::transports::nic_end::NicEnd;
use crate::transports::packet_types::PacketTypes;

/// One end of a connection of Homa.
///
/// After every [`write`](HomaEnd::write), [`on_segment`](HomaEnd::on_segment), [`grant`](HomaEnd::grant) and
/// [`on_deadline`](HomaEnd::on_deadline), call [`next_control`](HomaEnd::next_control) until it returns `None`, and
/// call `on_deadline` at [`deadline`](HomaEnd::deadline). Data leaves by [`next_data`](HomaEnd::next_data), when the
/// host's [`SenderQueue`](super::SenderQueue) says so.
#[derive(Debug, Default)]
pub struct HomaEnd {
    send: SendSide,
    receive: ReceiveSide,
    /// Data has arrived since the last call of [`take_arrival`](HomaEnd::take_arrival).
    has_arrival: bool,
    sent: u64,
    heard: u64,
    types: PacketTypes,
}

impl HomaEnd {
    /// A segment of the other end arrived.
    pub fn on_segment(&mut self, config: &HomaConfig, now: Time, segment: &TcpSegment) -> Delivered {
        self.heard += 1;
        self.types.of(segment.len, segment.flags).received += 1;
        let mut delivered = Delivered::default();
        match PacketKind::of(segment) {
            PacketKind::Data => {
                delivered.new_bytes = self.receive.on_data(config, now, segment);
                self.has_arrival = true;
            }
            PacketKind::Grant => self.send.on_grant(now, segment.ack, segment.seq as u8 & 7),
            PacketKind::Ack => delivered.acked = self.send.on_ack(now, segment.ack),
            PacketKind::Resend => {
                self.send.on_resend(now, segment.ack, u64::from(segment.seq as u32));
            }
            PacketKind::Probe => {
                self.receive.on_probe(config, now, nearest::<32>(segment.ack, self.receive.received()));
            }
        }
        delivered
    }

    /// Returns the next packet without data: a grant, a RESEND, an acknowledgement or a probe.
    pub fn next_control(&mut self) -> Option<TcpSegment> {
        let segment = self.receive.take_control().or_else(|| self.send.take_probe())?;
        self.counts_sent(&segment);
        Some(segment)
    }

    /// Returns the next data packet with its priority, if one may leave now.
    pub fn next_data(&mut self, config: &HomaConfig, now: Time) -> Option<(TcpSegment, u8)> {
        let (segment, priority) = self.send.next_packet(config, now)?;
        self.counts_sent(&segment);
        Some((segment, priority))
    }

    /// Returns the bytes left of the message whose packet may leave, and the packet's priority.
    pub fn ready(&self, config: &HomaConfig) -> Option<(u64, u8)> {
        self.send.ready(config)
    }

    fn counts_sent(&mut self, segment: &TcpSegment) {
        self.sent += 1;
        self.types.of(segment.len, segment.flags).sent += 1;
    }

    // ---- grants ----

    /// Returns the bytes that are left to grant to the other end.
    pub fn left_to_grant(&self) -> u64 {
        self.receive.left_to_grant()
    }

    /// Returns whether a packet may be granted, as far as the bytes in flight say.
    pub fn may_grant(&self, config: &HomaConfig) -> bool {
        self.receive.may_grant(config)
    }

    /// Grants the next packet in `slot`. Returns its bytes on the wire.
    pub fn grant(&mut self, config: &HomaConfig, now: Time, slot: usize) -> u64 {
        self.receive.grant(config, now, slot)
    }

    /// Returns whether data has arrived since the last call.
    pub fn take_arrival(&mut self) -> bool {
        std::mem::take(&mut self.has_arrival)
    }
}

impl NicEnd for HomaEnd {
    type Config = HomaConfig;

    fn config(config: &TcpConfig) -> &HomaConfig {
        &config.homa
    }

    fn write(&mut self, _config: &HomaConfig, now: Time, bytes: u64) {
        self.send.write(now, bytes);
    }

    fn poll_transmit(&mut self, config: &HomaConfig, now: Time) -> Option<TcpSegment> {
        self.next_control().or_else(|| self.next_data(config, now).map(|(segment, _)| segment))
    }

    fn owes_answer(&self) -> bool {
        self.receive.owes_control() || self.send.owes_probe()
    }

    fn offers_data(&self, config: &HomaConfig, _now: Time) -> bool {
        !self.owes_answer() && self.ready(config).is_some()
    }

    fn awaits_answer(&self, config: &HomaConfig) -> bool {
        self.ready(config).is_none()
    }

    fn deadline(&self, config: &HomaConfig, _now: Time) -> Time {
        self.send.deadline(config).min(self.receive.deadline(config))
    }

    fn on_deadline(&mut self, config: &HomaConfig, now: Time) {
        self.send.on_deadline(config, now);
        self.receive.on_deadline(config, now);
    }

    fn received(&self) -> u64 {
        self.receive.received()
    }

    fn acknowledged(&self) -> u64 {
        self.send.acknowledged()
    }

    fn sent(&self) -> u64 {
        self.send.sent()
    }

    fn written(&self) -> u64 {
        self.send.written()
    }

    fn is_idle(&self) -> bool {
        self.acknowledged() == self.written() && self.receive.is_whole() && !self.owes_answer()
    }

    fn window(&self, config: &HomaConfig) -> WindowState {
        WindowState {
            cwnd_bytes: config.unscheduled_bytes(),
            ssthresh_bytes: u64::MAX,
            alpha: 0.0,
            srtt: Span::ZERO,
            rto: config.params.resend_after,
        }
    }

    fn counters(&self) -> Counters {
        Counters {
            segments_sent: self.sent,
            segments_received: self.heard,
            fast_retransmits: self.receive.resends(),
            types: self.types,
            ..self.send.counters()
        }
    }
}

#[cfg(test)]
mod tests;
