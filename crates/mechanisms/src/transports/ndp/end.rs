//! [`NdpEnd`]: one end of a connection of NDP, and the order in which its packets leave.

use plimsoll_units::{Span, Time};

use super::config::NdpConfig;
use super::receiver::ReceiveSide;
use super::sender::SendSide;
use super::wire::PacketKind;
use crate::tcp::{Counters, Delivered, TcpConfig, TcpSegment, WindowState};
use crate::transports::entropy::PathChoices;
use crate::transports::nic_end::NicEnd;
use crate::transports::packet_types::PacketTypes;

/// One end of a connection of NDP.
///
/// After every [`on_segment`](NdpEnd::on_segment), let an answer hold a pull if the host's pacer is free
/// ([`pulls_in_answer`](NdpEnd::pulls_in_answer)). After that, [`write`](NdpEnd::write), [`grant`](NdpEnd::grant) and
/// [`on_deadline`](NdpEnd::on_deadline), call [`poll_transmit`](NdpEnd::poll_transmit) until it returns `None`, ask
/// [`withdraws`](NdpEnd::withdraws) and [`enlists`](NdpEnd::enlists), and call `on_deadline` at
/// [`deadline`](NdpEnd::deadline).
#[derive(Debug)]
pub struct NdpEnd {
    send: SendSide,
    receive: ReceiveSide,
    sent: u64,
    heard: u64,
    types: PacketTypes,
}

impl NdpEnd {
    /// Makes an end whose paths [`set_path`](NdpEnd::set_path) says.
    pub fn new(config: &NdpConfig) -> NdpEnd {
        NdpEnd {
            send: SendSide::new(config),
            receive: ReceiveSide::default(),
            sent: 0,
            heard: 0,
            types: PacketTypes::default(),
        }
    }

    /// An idle path has the round trip `round_trip`, its choices between links are `choices`, where labels can name
    /// them, and the choice of paths depends on `seed` alone.
    pub fn set_path(
        &mut self,
        config: &NdpConfig,
        round_trip: Span,
        choices: Option<PathChoices>,
        seed: u64,
    ) {
        self.send.set_path(config, round_trip, choices, seed);
    }

    /// A segment arrived: one with TRIMMED has lost its payload on the way, and one with SYN, too, was sent back.
    pub fn on_segment(&mut self, config: &NdpConfig, now: Time, segment: &TcpSegment) -> Delivered {
        self.heard += 1;
        self.types.of(segment.len, segment.flags).received += 1;
        let mut delivered = Delivered::default();
        match PacketKind::of(segment) {
            PacketKind::Data => delivered.new_bytes = self.receive.on_data(segment),
            PacketKind::Bounced => self.send.on_bounced(config, now, segment),
            PacketKind::Ack | PacketKind::Nack => delivered.acked = self.send.on_answer(config, now, segment),
            PacketKind::Pull => {
                delivered.acked = self.send.on_pull(config, now, segment.seq as u32, segment.ack as u32);
            }
        }
        delivered
    }

    /// Returns whether data is to be sent, now or later.
    pub fn has_data(&self) -> bool {
        self.send.has_data()
    }

    // ---- pulls ----

    /// Has the latest answer hold a pull, if one is owed: the host's pacer is free. Returns whether it does, for which
    /// the pacer is to be paid.
    pub fn pulls_in_answer(&mut self) -> bool {
        let may_pull = self.receive.may_pull_in_answer();
        if may_pull {
            self.receive.pull_in_answer();
        }
        may_pull
    }

    /// Returns whether this end joins the list of its host's pacer; it counts as in it from now on.
    pub fn enlists(&mut self) -> bool {
        self.receive.enlists()
    }

    /// Returns whether this end leaves the list of its host's pacer, as the other has nothing more to send.
    pub fn withdraws(&mut self) -> bool {
        self.receive.withdraws()
    }

    /// The turn of this end has come. Returns whether it gives a pull, which leaves with the next segments.
    pub fn grant(&mut self) -> bool {
        self.receive.grant()
    }
}

impl NicEnd for NdpEnd {
    type Config = NdpConfig;

    fn config(config: &TcpConfig) -> &NdpConfig {
        &config.ndp
    }

    fn write(&mut self, config: &NdpConfig, now: Time, bytes: u64) {
        self.send.write(config, now, bytes);
    }

    fn poll_transmit(&mut self, config: &NdpConfig, now: Time) -> Option<TcpSegment> {
        let segment = match self.receive.take_answer() {
            Some(answer) => TcpSegment { entropy: self.send.control_entropy(now), ..answer },
            None => self.send.next_packet(config, now)?,
        };
        self.sent += 1;
        self.types.of(segment.len, segment.flags).sent += 1;
        Some(segment)
    }

    fn owes_answer(&self) -> bool {
        self.receive.owes_answer()
    }

    fn offers_data(&self, config: &NdpConfig, _now: Time) -> bool {
        !self.owes_answer() && self.send.has_packet(config)
    }

    fn is_quiet(&self) -> bool {
        !self.owes_answer() && !self.has_data()
    }

    fn awaits_answer(&self, config: &NdpConfig) -> bool {
        self.send.awaits_answer(config)
    }

    fn deadline(&self, config: &NdpConfig, _now: Time) -> Time {
        self.send.deadline(config)
    }

    fn on_deadline(&mut self, config: &NdpConfig, now: Time) {
        self.send.on_deadline(config, now);
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

    fn window(&self, config: &NdpConfig) -> WindowState {
        self.send.window_state(config)
    }

    fn counters(&self) -> Counters {
        Counters {
            segments_sent: self.sent,
            segments_received: self.heard,
            types: self.types,
            ..self.send.counters()
        }
    }
}
