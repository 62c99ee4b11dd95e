//! [`PacketRecorder`]: keeps every hop of every packet in a window of the run, for a replay.
//!
//! The fabric reports when a host sends a packet, when a packet has completed a link, and when it is lost. Everything
//! else follows: a packet enters the next port's queue when it arrives, starts to be sent a serialisation before it has
//! left, and was marked by the port if it comes from there with CE and came without. Which packet it is, is known by
//! its header; duplicate acknowledgements and repeated segments, which have the same one, are distinguished by their
//! waiting.

use std::collections::BTreeMap;

use plimsoll_fabric::LostAt;
use plimsoll_fabric::net::topology::Link;
use plimsoll_fabric::net::{EcnField, Flags, Network, Node, Packet, PortId, WaitPlace};
use plimsoll_mechanisms::pfc::{PauseState, Signal};
use plimsoll_results::replay::{Fate, HOPS_MAX, Hop, PacketKind, ReplayWindow};
use plimsoll_units::{Span, Time};

use crate::hosts::datagram_workload;

/// Follows all packets from the start of the run, and keeps the hops of the window.
#[derive(Debug)]
pub(crate) struct PacketRecorder {
    window: ReplayWindow,
    links: Vec<Link>,
    /// Where each packet in the network is, by its header. Packets of one header are in the order in which they were
    /// sent.
    inside: BTreeMap<Header, Vec<Whereabouts>>,
    pub(crate) packets: Vec<KeptPacket>,
    pub(crate) hops: Vec<Hop>,
    /// The links that were paused, with the start and the end.
    pub(crate) pauses: Vec<(PortId, Time, Time)>,
    /// By link: which priorities are paused, and since when any is.
    paused: Vec<(PauseState, Time)>,
    /// When there were more hops than a recording may have.
    full: Option<Time>,
}

/// A packet of the recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptPacket {
    pub(crate) header: Packet,
    pub(crate) kind: PacketKind,
}

/// The fields by which a packet is known from port to port: none of them changes on the way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Header {
    flow: u32,
    seq: u32,
    ack: u32,
    rank: u32,
    ends: (u32, u32),
    size: u16,
    len: u16,
    priority: u8,
    flags: u8,
}

/// Where a packet is, and since when.
#[derive(Clone, Copy, Debug)]
struct Whereabouts {
    at: Node,
    entered: Time,
    /// How long it had waited in all when it came there.
    waited: Span,
    is_marked: bool,
    /// Its number in the recording, once it has one.
    number: Option<u32>,
}

impl PacketRecorder {
    pub(crate) fn new(window: ReplayWindow, network: &Network) -> PacketRecorder {
        PacketRecorder {
            window,
            links: network.links().to_vec(),
            inside: BTreeMap::new(),
            packets: Vec::new(),
            hops: Vec::new(),
            pauses: Vec::new(),
            paused: vec![(PauseState::default(), Time::ZERO); network.links().len()],
            full: None,
        }
    }

    /// A host sends a packet.
    pub(crate) fn on_sent(&mut self, now: Time, packet: &Packet) {
        let whereabouts = Whereabouts {
            at: Node::Host(packet.src),
            entered: now,
            waited: Span::ZERO,
            is_marked: packet.ecn == EcnField::Ce,
            number: None,
        };
        self.inside.entry(Header::of(packet)).or_default().push(whereabouts);
    }

    /// A packet has arrived over the link of `port`, which its last bit left at `left`.
    pub(crate) fn on_hop(&mut self, left: Time, port: PortId, packet: &Packet) {
        let link = self.links[port.0 as usize];
        let starts = self.start(left, port, packet);
        let Some(mut found) = self.take_that_starts(packet, link.from, starts) else { return };
        let is_marked = packet.ecn == EcnField::Ce;
        let arrives = left + link.propagation;
        let fate = if is_marked && !found.is_marked { Fate::Marked } else { Fate::Arrives };
        self.keep(&mut found, packet, port, starts, arrives, fate);
        if let Node::Switch(_) = link.to {
            let next =
                Whereabouts { at: link.to, entered: arrives, waited: waited(packet), is_marked, ..found };
            self.inside.entry(Header::of(packet)).or_default().push(next);
        }
    }

    /// A packet is lost, and its last hop ends there.
    pub(crate) fn on_lost(&mut self, now: Time, at: LostAt, packet: &Packet) {
        match at {
            LostAt::Host | LostAt::Port(_) => {
                let (port, fate) = match at {
                    LostAt::Port(port) => (port, Fate::Dropped),
                    _ => (PortId(packet.src.0), Fate::LostByHost),
                };
                let from = self.links[port.0 as usize].from;
                // A packet that a host refuses to send has entered no port.
                let sent = || Whereabouts {
                    at: from,
                    entered: now,
                    waited: Span::ZERO,
                    is_marked: false,
                    number: None,
                };
                let mut found = self.take(packet, from).unwrap_or_else(sent);
                self.keep(&mut found, packet, port, now, now, fate);
            }
            LostAt::Link(port) => {
                let link = self.links[port.0 as usize];
                let Some(mut found) = self.take(packet, link.from) else { return };
                let left = Time::from_ps(now.as_ps().saturating_sub(link.propagation.as_ps()));
                self.keep(&mut found, packet, port, self.start(left, port, packet), now, Fate::LostOnLink);
            }
            LostAt::FarEnd(port) => {
                // It has just been seen to arrive.
                let found = self.take(packet, self.links[port.0 as usize].to);
                let number = found.and_then(|found| found.number);
                if let Some(hop) = self.hops.iter_mut().rev().find(|hop| Some(hop.packet) == number) {
                    hop.fate = Fate::LostOnLink;
                }
            }
        }
    }

    /// The far end pauses or resumes the link of `port`.
    pub(crate) fn on_signal(&mut self, now: Time, port: PortId, signal: Signal) {
        let (state, since) = &mut self.paused[port.0 as usize];
        let was_paused = !state.paused().is_empty();
        state.on_signal(signal);
        match (was_paused, !state.paused().is_empty()) {
            (false, true) => *since = now,
            (true, false) => {
                let pause = (port, *since, now);
                self.keep_pause(pause);
            }
            _ => {}
        }
    }

    /// Ends the pauses that are not over at the `end` of the recording.
    pub(crate) fn settle(&mut self, end: Time) {
        for port in (0..self.links.len() as u32).map(PortId) {
            let (state, since) = self.paused[port.0 as usize];
            if !state.paused().is_empty() {
                self.keep_pause((port, since, end));
            }
        }
    }

    /// Returns when there were more hops than a recording may have.
    pub(crate) fn full(&self) -> Option<Time> {
        self.full
    }

    /// Returns whether a packet is in the network whose hop has begun in the window.
    pub(crate) fn is_open(&self) -> bool {
        self.inside.values().flatten().any(|packet| packet.entered <= self.window.until())
    }

    fn keep_pause(&mut self, (port, from, until): (PortId, Time, Time)) {
        if until >= self.window.from && from <= self.window.until() {
            self.pauses.push((port, from, until.min(self.window.until())));
        }
    }

    /// Returns when a packet started to be sent by `port` that left at `left`.
    fn start(&self, left: Time, port: PortId, packet: &Packet) -> Time {
        let serialisation = self.links[port.0 as usize].rate.byte_time().span(u64::from(packet.size));
        Time::from_ps(left.as_ps().saturating_sub(serialisation.as_ps()))
    }

    /// Keeps a hop that has a part in the window, and numbers its packet.
    fn keep(
        &mut self,
        found: &mut Whereabouts,
        packet: &Packet,
        port: PortId,
        starts: Time,
        ends: Time,
        fate: Fate,
    ) {
        if ends < self.window.from || found.entered > self.window.until() || self.full.is_some() {
            return;
        }
        if self.hops.len() == HOPS_MAX {
            self.full = Some(ends);
            return;
        }
        let number = *found.number.get_or_insert_with(|| {
            self.packets.push(KeptPacket { header: *packet, kind: kind_of(packet) });
            self.packets.len() as u32 - 1
        });
        let at_host = matches!(found.at, Node::Host(_));
        let paced = if at_host { packet.wait(WaitPlace::Pacer) } else { Span::ZERO };
        let starts = starts.max(found.entered);
        let paced = paced.min(starts.saturating_since(found.entered));
        self.hops.push(Hop { packet: number, link: port.0, entered: found.entered, paced, starts, fate });
    }

    /// Takes the packet with this header that starts to be sent by a port of `node`. Of several, which may leave by
    /// links of different lengths, it is the one whose waiting since it came there accounts for the time best.
    fn take_that_starts(&mut self, packet: &Packet, node: Node, starts: Time) -> Option<Whereabouts> {
        let header = Header::of(packet);
        let alike = self.inside.get_mut(&header)?;
        let off = |known: &Whereabouts| {
            let expected = known.entered + waited(packet).saturating_sub(known.waited);
            expected.max(starts).saturating_since(expected.min(starts))
        };
        let here = (0..alike.len()).filter(|&place| alike[place].at == node);
        let nearest = match packet.flags.has(Flags::SACK) {
            // Such a packet carries no waiting times. The latest match is taken: earlier ones may belong to others.
            true => here.rev().find(|&place| alike[place].entered <= starts),
            false => here.min_by_key(|&place| (alike[place].entered > starts, off(&alike[place]))),
        };
        let Some(place) = nearest else { return self.take(packet, node) };
        let found = alike.remove(place);
        if alike.is_empty() {
            self.inside.remove(&header);
        }
        Some(found)
    }

    /// Takes the packet that has been longest at `node` of those with this header. Where none is there, it is the one
    /// that has arrived last: flow control drops it for the port of another switch.
    fn take(&mut self, packet: &Packet, node: Node) -> Option<Whereabouts> {
        let header = Header::of(packet);
        let alike = self.inside.get_mut(&header)?;
        let last = alike.len().checked_sub(1)?;
        let found = alike.remove(alike.iter().position(|known| known.at == node).unwrap_or(last));
        if alike.is_empty() {
            self.inside.remove(&header);
        }
        Some(found)
    }
}

impl Header {
    fn of(packet: &Packet) -> Header {
        Header {
            flow: packet.flow,
            seq: packet.seq,
            ack: packet.ack,
            rank: packet.rank,
            ends: (packet.src.0, packet.dst.0),
            size: packet.size,
            len: packet.len,
            priority: packet.priority,
            flags: packet.flags.0,
        }
    }
}

/// Returns how long a packet has waited in all.
fn waited(packet: &Packet) -> Span {
    [WaitPlace::Nic, WaitPlace::Pacer]
        .into_iter()
        .chain(WaitPlace::TIERS)
        .map(|place| packet.wait(place))
        .sum()
}

fn kind_of(packet: &Packet) -> PacketKind {
    if datagram_workload(packet.flow).is_some() {
        PacketKind::Datagram
    } else if packet.flags.has(Flags::RETRANSMISSION) {
        PacketKind::Retransmission
    } else if packet.len > 0 {
        PacketKind::Data
    } else if packet.flags.has(Flags::SYN) || packet.is_read_request() {
        PacketKind::Control
    } else {
        PacketKind::Ack
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_fabric::net::HostId;
    use plimsoll_fabric::net::topology::LinkClass;
    use plimsoll_units::Rate;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// A rack of 1 Gb/s and 1 us, of which 100 us are recorded from 10 us on.
    fn recorder() -> PacketRecorder {
        let class = LinkClass { rate: Rate::from_gbps(1), propagation: Span::from_us(1) };
        let window = ReplayWindow { from: at(10), length: Span::from_us(100) };
        PacketRecorder::new(window, &Network::rack(3, class))
    }

    /// 1,000 bytes, which take 8 us.
    fn packet(seq: u32) -> Packet {
        let mut packet = Packet::new(HostId(1), HostId(0), 7, 1_000);
        (packet.seq, packet.len, packet.ecn) = (seq, 950, EcnField::Ect);
        packet
    }

    const NIC: PortId = PortId(1);
    const TO_H0: PortId = PortId(3);

    #[test]
    fn a_hop_begins_where_the_one_before_ended() {
        let mut recorder = recorder();
        let mut packet = packet(0);
        recorder.on_sent(at(10), &packet);
        recorder.on_hop(at(20), NIC, &packet);
        assert!(recorder.is_open());
        packet.ecn = EcnField::Ce;
        recorder.on_hop(at(40), TO_H0, &packet);
        assert!(!recorder.is_open());
        let seen: Vec<_> =
            recorder.hops.iter().map(|hop| (hop.packet, hop.entered, hop.starts, hop.fate)).collect();
        assert_eq!(seen, [(0, at(10), at(12), Fate::Arrives), (0, at(21), at(32), Fate::Marked)]);
    }

    #[test]
    fn only_the_window_is_kept() {
        let mut recorder = recorder();
        for (seq, sent) in [(0, 0), (1, 109), (2, 111)] {
            recorder.on_sent(at(sent), &packet(seq));
            recorder.on_hop(at(sent + 8), NIC, &packet(seq));
        }
        assert_eq!(recorder.hops.iter().map(|hop| hop.entered).collect::<Vec<_>>(), [at(109)]);
        assert_eq!(recorder.packets.len(), 1);
    }

    #[test]
    fn alike_packets_leave_a_node_in_the_order_in_which_they_came() {
        let mut recorder = recorder();
        for sent in [10, 18] {
            recorder.on_sent(at(sent), &packet(0));
        }
        for left in [18, 26] {
            recorder.on_hop(at(left), NIC, &packet(0));
        }
        recorder.on_lost(at(50), LostAt::Port(TO_H0), &packet(0));
        recorder.on_hop(at(60), TO_H0, &packet(0));
        let seen: Vec<_> = recorder.hops.iter().map(|hop| (hop.packet, hop.entered, hop.fate)).collect();
        let [arrives, dropped] = [Fate::Arrives, Fate::Dropped];
        assert_eq!(seen[..2], [(0, at(10), arrives), (1, at(18), arrives)]);
        assert_eq!(seen[2..], [(0, at(19), dropped), (1, at(27), arrives)]);
    }

    #[test]
    fn a_loss_at_the_end_of_a_link_is_of_the_hop_that_led_there() {
        let mut recorder = recorder();
        recorder.on_sent(at(10), &packet(0));
        recorder.on_lost(at(19), LostAt::Link(NIC), &packet(0));
        recorder.on_sent(at(30), &packet(1));
        recorder.on_hop(at(38), NIC, &packet(1));
        recorder.on_lost(at(39), LostAt::FarEnd(NIC), &packet(1));
        let seen: Vec<_> = recorder.hops.iter().map(|hop| (hop.packet, hop.starts, hop.fate)).collect();
        assert_eq!(seen, [(0, at(10), Fate::LostOnLink), (1, at(30), Fate::LostOnLink)]);
        assert!(!recorder.is_open());
    }
}
