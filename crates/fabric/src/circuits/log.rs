//! [`CircuitLog`]: observations of the circuit switches and their controller.
//!
//! In a parallel run each logical process has the log of all weeks and circuits, with the counts of the packets that
//! pass its own switches; the logs are added at the end.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Range};

use plimsoll_circuits::{Demand, Matching};
use plimsoll_units::{Rate, Span, Time};

use crate::net::{HostId, Packet};

/// Reasons for which the circuit switch lost packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CircuitLosses {
    /// Packets that arrived, or had begun to, while the switch was dark.
    pub dark: u64,
    /// Packets whose sender's circuit led to another host, or whose sender had none.
    pub unmatched: u64,
}

impl CircuitLosses {
    /// Returns the number of packets lost.
    pub fn total(&self) -> u64 {
        self.dark + self.unmatched
    }
}

impl AddAssign for CircuitLosses {
    fn add_assign(&mut self, other: CircuitLosses) {
        self.dark += other.dark;
        self.unmatched += other.unmatched;
    }
}

/// Use of one circuit while it was established.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CircuitUse {
    /// The number of the week, from 1.
    pub week: u64,
    /// The number of the configuration in the run, from 0: circuits of the same number were established at the same
    /// time.
    pub configuration: u64,
    /// When the circuit was established.
    pub from: Time,
    /// When it was taken down, or the week ended, or the run.
    pub until: Time,
    /// The host that sends by it.
    pub sender: HostId,
    /// The host that receives by it.
    pub receiver: HostId,
    /// When the first packet that it carried reached the circuit switch.
    pub first: Option<Time>,
    /// When the sender had sent the first data to the receiver, after two weeks at least without any, as of `first`.
    pub onset: Option<Time>,
    /// The packets that it carried.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
    /// The rate at which its sender may send by circuits.
    pub rate: Rate,
}

impl CircuitUse {
    /// Returns the time for which the circuit was established.
    pub fn stood(&self) -> Span {
        self.until.saturating_since(self.from)
    }

    /// Returns the number of bytes that fit into the time for which the circuit was established.
    pub fn capacity(&self) -> f64 {
        self.rate.as_bps() as f64 / 8.0 * self.stood().as_secs_f64()
    }

    /// Returns the share of its capacity that the circuit carried, at most 1; zero if it was established for no time. A
    /// packet counts where its last bit arrives, so one that arrives early in a short circuit may be more than fits.
    pub fn filled(&self) -> f64 {
        if self.stood().is_zero() { 0.0 } else { (self.bytes as f64 / self.capacity()).min(1.0) }
    }
}

/// One week of the control loop, and the traffic that bypassed its circuits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CircuitWeek {
    /// The number of the week, from 0; week 0 has no schedule, as its demand is unknown.
    pub week: u64,
    /// When its schedule was made; none for week 0.
    pub made: Option<ScheduleTimes>,
    /// The time at which the week began.
    pub begins: Time,
    /// When the next week began, or the run ended.
    pub ends: Time,
    /// The configurations of its schedule.
    pub configurations: u64,
    /// The bytes that its schedule was made for: the demand that was read, of all pairs of hosts.
    pub known_bytes: u64,
    /// The part of `known_bytes` that had been sent by the end of the week, by either switch and with headers.
    pub known_sent_bytes: u64,
    /// The packets that passed the packet switch between racks.
    pub packet_packets: u64,
    /// The bytes of these packets.
    pub packet_bytes: u64,
    /// The packets that the circuit switch lost while it was dark.
    pub lost_dark: u64,
    /// The packets that the circuit switch lost because their sender had no circuit to their receiver.
    pub lost_unmatched: u64,
}

/// The moments at which a schedule was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScheduleTimes {
    /// When hosts began to sum up their demand.
    pub read: Time,
    /// When the controller had the demand of all hosts.
    pub gathered: Time,
    /// When the schedule was ready.
    pub ready: Time,
}

/// Observations of the circuit switch and its controller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CircuitLog {
    /// The circuits in the order in which they were established; within one configuration, by sender.
    pub circuits: Vec<CircuitUse>,
    /// The weeks in their order, that which has not ended last.
    pub weeks: Vec<CircuitWeek>,
    /// When the schedule of the next week was made, once its demand has been read.
    pub(super) next_made: Option<ScheduleTimes>,
    /// The demand of the next week, once it has been read.
    pub(super) next_known: Option<Demand>,
    /// The part of this week's demand that has not been sent.
    unsent: Option<Demand>,
    /// The pairs of which something was sent, by week, in one logical process of several.
    shared: Option<SharedCounts>,
    /// The rate of every circuit.
    rate: Rate,
    /// The packets that the circuit switch lost.
    pub losses: CircuitLosses,
    /// The established circuits by circuit switch.
    established: Vec<EstablishedCircuits>,
    /// The configurations so far.
    configurations: u64,
}

/// The established circuits of a circuit switch, as indices of [`CircuitLog::circuits`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct EstablishedCircuits {
    all: Range<usize>,
    /// The circuit of each sender, where it has one.
    of_sender: Vec<Option<u32>>,
}

impl CircuitLog {
    /// Returns the log of `planes` circuit switches whose senders may send at `rate`.
    pub(super) fn new(rate: Rate, planes: usize) -> CircuitLog {
        let established = vec![EstablishedCircuits::default(); planes];
        CircuitLog { rate, established, weeks: vec![CircuitWeek::default()], ..CircuitLog::default() }
    }

    /// Records that a week begins, and the number of configurations in its schedule.
    pub(super) fn begin_week(&mut self, now: Time, week: u64, configurations: usize) {
        self.end_week(now);
        self.unsent = self.next_known.take();
        if let Some(shared) = &mut self.shared {
            shared.known.clone_from(&self.unsent);
        }
        self.weeks.push(CircuitWeek {
            week,
            made: self.next_made.take(),
            begins: now,
            configurations: configurations as u64,
            known_bytes: self.unsent.as_ref().map_or(0, Demand::total),
            ..CircuitWeek::default()
        });
    }

    pub(super) fn end_week(&mut self, now: Time) {
        if let Some(week) = self.weeks.last_mut() {
            week.ends = now;
        }
        if let Some(shared) = &mut self.shared {
            shared.end_week(self.unsent.as_ref());
        }
    }

    /// Returns the week that has begun last.
    fn this_week(&mut self) -> &mut CircuitWeek {
        self.weeks.last_mut().expect("week 0 has begun with the run")
    }

    /// Records that the circuit switch of number `plane` has established a configuration at `now`.
    pub(super) fn put_up(&mut self, now: Time, week: u64, plane: usize, matching: &Matching) {
        let EstablishedCircuits { all, of_sender } = &mut self.established[plane];
        let first = self.circuits.len();
        of_sender.clear();
        of_sender.resize(matching.ports(), None);
        for (sender, receiver) in matching.circuits() {
            of_sender[sender] = Some(self.circuits.len() as u32);
            self.circuits.push(CircuitUse {
                week,
                configuration: self.configurations,
                from: now,
                until: Time::MAX,
                sender: HostId(sender as u32),
                receiver: HostId(receiver as u32),
                first: None,
                onset: None,
                packets: 0,
                bytes: 0,
                rate: self.rate,
            });
        }
        *all = first..self.circuits.len();
        self.configurations += 1;
    }

    /// Records that the established circuits of a circuit switch end at `now`.
    pub(super) fn take_down(&mut self, now: Time, plane: usize) {
        let all = std::mem::take(&mut self.established[plane].all);
        for circuit in &mut self.circuits[all] {
            circuit.until = circuit.until.min(now);
        }
    }

    pub(super) fn lose_dark(&mut self) {
        self.losses.dark += 1;
        self.this_week().lost_dark += 1;
    }

    pub(super) fn lose_unmatched(&mut self) {
        self.losses.unmatched += 1;
        self.this_week().lost_unmatched += 1;
    }

    /// Counts a packet against the demand that its week was scheduled for.
    fn count_known(&mut self, packet: &Packet) {
        if let Some(unsent) = &mut self.unsent {
            let unsent = unsent.get_mut(packet.src.0 as usize, packet.dst.0 as usize);
            let sent = u64::from(packet.size).min(*unsent);
            *unsent -= sent;
            self.this_week().known_sent_bytes += sent;
        }
    }

    /// Counts a packet that has reached the packet switch.
    pub(super) fn count_beside(&mut self, packet: &Packet) {
        self.count_known(packet);
        let week = self.this_week();
        week.packet_packets += 1;
        week.packet_bytes += u64::from(packet.size);
    }

    pub(super) fn count(&mut self, now: Time, packet: &Packet, onset: Option<Time>) {
        self.count_known(packet);
        let of_sender = &self.established[packet.circuit_plane() as usize].of_sender;
        if let Some(Some(index)) = of_sender.get(packet.src.0 as usize) {
            let circuit = &mut self.circuits[*index as usize];
            if circuit.first.is_none() {
                (circuit.first, circuit.onset) = (Some(now), onset);
            }
            circuit.packets += 1;
            circuit.bytes += u64::from(packet.size);
        }
    }

    /// Counts from now on what only one logical process of several sees.
    pub(super) fn share(&mut self) {
        self.shared = Some(SharedCounts::default());
    }

    /// Adds the log of another logical process, up to `end`. Both have the same weeks and circuits.
    pub(super) fn absorb(&mut self, mut other: CircuitLog, end: Time) {
        self.end_week(end);
        other.end_week(end);
        assert_eq!(self.weeks.len(), other.weeks.len(), "all processes have the same weeks");
        for (own, other) in self.weeks.iter_mut().zip(other.weeks) {
            own.packet_packets += other.packet_packets;
            own.packet_bytes += other.packet_bytes;
            own.lost_dark += other.lost_dark;
            own.lost_unmatched += other.lost_unmatched;
        }
        for (own, other) in self.circuits.iter_mut().zip(other.circuits) {
            own.packets += other.packets;
            own.bytes += other.bytes;
            own.first = own.first.or(other.first);
        }
        self.losses += other.losses;
        if let (Some(own), Some(other)) = (&mut self.shared, other.shared) {
            own.absorb(other);
        }
    }

    /// Completes the results of the logs of all logical processes together: how much of each week's demand was sent,
    /// and since when circuits had data, by the first times at which pairs had begun to send.
    pub(super) fn complete(&mut self, onsets: impl Fn(HostId, HostId, Time) -> Option<Time>) {
        let Some(shared) = self.shared.take() else { return };
        for (week, pairs) in self.weeks.iter_mut().zip(shared.sent) {
            week.known_sent_bytes = pairs.into_values().map(|(known, sent)| sent.min(known)).sum();
        }
        for circuit in &mut self.circuits {
            circuit.onset = circuit.first.and_then(|first| onsets(circuit.sender, circuit.receiver, first));
        }
    }
}

/// Counts of one logical process of several, from which the bytes of a week's demand follow that all of them have sent:
/// a pair's packets may pass switches of several processes, and no more counts than its demand.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct SharedCounts {
    /// The demand that this week was scheduled for.
    known: Option<Demand>,
    /// By week that has ended: the demand of a pair, and the part of it that was sent, where that is not zero.
    sent: Vec<BTreeMap<(usize, usize), (u64, u64)>>,
}

impl SharedCounts {
    fn end_week(&mut self, unsent: Option<&Demand>) {
        let mut pairs = BTreeMap::new();
        if let (Some(known), Some(unsent)) = (self.known.take(), unsent) {
            for (sender, row) in known.rows().enumerate() {
                for (receiver, &bytes) in row.iter().enumerate() {
                    let sent = bytes - unsent.get(sender, receiver);
                    if sent > 0 {
                        pairs.insert((sender, receiver), (bytes, sent));
                    }
                }
            }
        }
        self.sent.push(pairs);
    }

    fn absorb(&mut self, other: SharedCounts) {
        for (own, other) in self.sent.iter_mut().zip(other.sent) {
            for (pair, (known, sent)) in other {
                own.entry(pair).or_insert((known, 0)).1 += sent;
            }
        }
    }
}
