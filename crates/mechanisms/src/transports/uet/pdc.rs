//! [`Pdc`]: one end of a packet delivery context, and the order in which its packets leave.

use plimsoll_units::{Rate, Span, Time};

use super::config::UetConfig;
use super::credit_rate::{ArrivedCounts, Oversubscription};
use super::receiver::ReceiveSide;
use super::sender::SendSide;
use super::wire::PacketKind;
use crate::tcp::{Counters, Delivered, EcnField, Flags, TcpConfig, TcpSegment, WindowState};
use crate::transports::credit::CreditWant;
use crate::transports::nic_end::NicEnd;
use crate::transports::packet_types::PacketTypes;

/// One end of a packet delivery context of Ultra Ethernet.
///
/// After every [`write`](Pdc::write), [`on_segment`](Pdc::on_segment), [`grant`](Pdc::grant) and
/// [`on_deadline`](Pdc::on_deadline), call [`poll_transmit`](Pdc::poll_transmit) until it returns `None`, ask
/// [`enlists`](Pdc::enlists), and call `on_deadline` at [`deadline`](Pdc::deadline).
#[derive(Debug)]
pub struct Pdc {
    send: SendSide,
    receive: ReceiveSide,
    /// A grant is to leave as a PULL.
    pull_due: bool,
    /// Its NIC counts this end among its senders.
    counts_as_sender: bool,
    sent: u64,
    heard: u64,
    marked: u64,
    types: PacketTypes,
    /// The data packets that have arrived since the last call of [`take_arrived`](Pdc::take_arrived).
    arrived: ArrivedCounts,
}

impl Pdc {
    /// Makes an end whose NIC and network [`set_path`](Pdc::set_path) says.
    pub fn new(config: &UetConfig) -> Pdc {
        Pdc {
            send: SendSide::new(config),
            receive: ReceiveSide::default(),
            pull_due: false,
            counts_as_sender: false,
            sent: 0,
            heard: 0,
            marked: 0,
            types: PacketTypes::default(),
            arrived: ArrivedCounts::default(),
        }
    }

    /// The end's NIC sends at `rate`, the network's longest idle round trip is `round_trip`, and the choice of paths
    /// depends on `seed` alone.
    pub fn set_path(&mut self, config: &UetConfig, rate: Rate, round_trip: Span, seed: u64) {
        self.send.set_path(config, rate, round_trip, seed);
    }

    /// `share` ends at this NIC have data to send: each asks for its share of credit.
    pub fn set_share(&mut self, share: u32) {
        self.send.set_share(share);
    }

    /// A segment arrived; one with TRIMMED has lost its payload on the way.
    pub fn on_segment(&mut self, config: &UetConfig, now: Time, segment: &TcpSegment) -> Delivered {
        self.heard += 1;
        self.types.of(segment.len, segment.flags).received += 1;
        let mut delivered = Delivered::default();
        match PacketKind::of(segment) {
            PacketKind::Data => {
                self.marked += u64::from(segment.ecn == EcnField::Ce);
                self.counts_arrived(segment);
                delivered.new_bytes = self.receive.on_data(config, segment);
                delivered.is_ahead = !config.params.ordered && self.receive.took_ahead();
            }
            PacketKind::Ack | PacketKind::Nack => delivered.acked = self.send.on_answer(config, now, segment),
            PacketKind::Pull => self.send.on_pull(now, segment.seq as u32),
            PacketKind::Request => {
                self.receive.on_request(segment);
                // A PULL may have been lost: the number of granted quanta is sent again.
                self.pull_due |= config.has_credit && self.wants_credit(config) != Some(CreditWant::Backlog);
            }
            PacketKind::Probe => self.receive.on_probe(segment),
        }
        delivered
    }

    /// Returns whether a message has arrived whole, whose bytes from `start` to `end` of the stream include those of
    /// `segment`, which has just arrived.
    pub fn has_whole(&self, config: &UetConfig, segment: &TcpSegment, start: u64, end: u64) -> bool {
        self.receive.has_whole(config, segment, start, end)
    }

    /// Returns whether data is to be sent, now or later.
    pub fn has_data(&self) -> bool {
        self.send.has_data()
    }

    /// Returns whether the end has begun to have data to send, or has ceased to, since the last call.
    pub fn data_change(&mut self) -> Option<bool> {
        let has_data = self.has_data();
        let before = std::mem::replace(&mut self.counts_as_sender, has_data);
        (before != has_data).then_some(has_data)
    }

    // ---- credit ----

    /// A data packet arrived, whole or trimmed.
    fn counts_arrived(&mut self, segment: &TcpSegment) {
        let is_trimmed = segment.flags.has(Flags::TRIMMED);
        // The flag that no data packet has says that the last switch trimmed it.
        let before_last = is_trimmed && !segment.flags.has(Flags::ECE);
        self.arrived.all += 1;
        self.arrived.trimmed += u64::from(is_trimmed);
        self.arrived.trimmed_before_last += u64::from(before_last);
        self.arrived.marked += u64::from(!is_trimmed && segment.ecn == EcnField::Ce);
    }

    /// Returns the data packets that have arrived since the last call, if any, by which a host sets its rate of credit.
    pub fn take_arrived(&mut self) -> Option<ArrivedCounts> {
        Some(std::mem::take(&mut self.arrived)).filter(|arrived| arrived.all > 0)
    }

    /// Returns the network in which its host adapts the rate of credit, if it does.
    pub fn oversubscription(&self, config: &UetConfig) -> Option<Oversubscription> {
        let ratio = config.params.rccc.oversubscription?;
        Some(Oversubscription { round_trip: self.send.round_trip(), ratio })
    }

    /// Returns the list of its host's pacer that this end shall join, if it is to join one; it counts as in it from now
    /// on.
    pub fn enlists(&mut self, config: &UetConfig) -> Option<CreditWant> {
        if !config.has_credit {
            return None;
        }
        let wants = self.wants_credit(config)?;
        let grants = &mut self.receive.grants;
        let joins = match (grants.listed, wants) {
            (None, _) | (Some(CreditWant::Advance), CreditWant::Backlog) => true,
            (Some(_), _) => false,
        };
        joins.then(|| {
            grants.listed = Some(wants);
            wants
        })
    }

    /// The turn of this end's other side has come in `list`. Returns the quanta of the grant, which leaves with the
    /// next segments; `None` if the entry was an old one, or no credit is wanted.
    pub fn grant(&mut self, config: &UetConfig, list: CreditWant) -> Option<u64> {
        if self.receive.grants.listed != Some(list) {
            return None;
        }
        self.receive.grants.listed = None;
        self.wants_credit(config)?;
        self.pull_due = true;
        Some(self.receive.grants.grant(&config.params.rccc))
    }

    fn wants_credit(&self, config: &UetConfig) -> Option<CreditWant> {
        self.receive.grants.wants(&config.params.rccc, self.send.max_window())
    }
}

impl NicEnd for Pdc {
    type Config = UetConfig;

    fn config(config: &TcpConfig) -> &UetConfig {
        &config.uet
    }

    fn write(&mut self, _config: &UetConfig, _now: Time, bytes: u64) {
        self.send.write(bytes);
    }

    fn poll_transmit(&mut self, config: &UetConfig, now: Time) -> Option<TcpSegment> {
        let segment = if let Some(answer) = self.receive.take_answer() {
            TcpSegment { entropy: self.send.control_entropy(now), ..answer }
        } else if std::mem::take(&mut self.pull_due) {
            let entropy = self.send.control_entropy(now);
            TcpSegment { seq: self.receive.grants.pulled().into(), entropy, ..TcpSegment::default() }
        } else if let Some(request) = self.send.take_request(config, now) {
            request
        } else if let Some(probe) = self.send.take_probe(config, now) {
            probe
        } else {
            self.send.next_packet(config, now)?
        };
        self.sent += 1;
        self.types.of(segment.len, segment.flags).sent += 1;
        Some(segment)
    }

    fn owes_answer(&self) -> bool {
        self.receive.owes_answer() || self.pull_due || self.send.owes_request()
    }

    fn offers_data(&self, config: &UetConfig, _now: Time) -> bool {
        !self.owes_answer() && self.send.has_packet(config)
    }

    fn is_quiet(&self) -> bool {
        !self.owes_answer() && !self.has_data()
    }

    fn awaits_answer(&self, config: &UetConfig) -> bool {
        self.send.awaits_answer(config)
    }

    fn deadline(&self, config: &UetConfig, now: Time) -> Time {
        self.send.deadline(config, now)
    }

    fn on_deadline(&mut self, config: &UetConfig, now: Time) {
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

    fn window(&self, config: &UetConfig) -> WindowState {
        self.send.window_state(config)
    }

    fn counters(&self) -> Counters {
        Counters {
            segments_sent: self.sent,
            segments_received: self.heard,
            ce_received: self.marked,
            types: self.types,
            ..self.send.counters()
        }
    }
}
