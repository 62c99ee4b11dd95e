//! [`Packet`]: what travels, in one cache line.
//!
//! A packet is `Copy` and 64 bytes. In the network it stays in one [`Slot`], and queues move the slot's number.
//! Sequence numbers are the 32 bits of a real header; the ends unwrap them.

pub use plimsoll_mechanisms::tcp::{EcnField, Flags};
use plimsoll_units::Span;

/// A host, numbered from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId(pub u32);

/// An output port, numbered from zero over the whole network; host `h`'s NIC is port `h`. A port
/// sends on exactly one link, so this also names the link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId(pub u32);

/// The place of a packet in the memory of its network, from when it is sent until it arrives or is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u32);

impl Slot {
    /// Returns the slot of a number.
    #[inline]
    pub const fn new(number: u32) -> Slot {
        Slot(number)
    }

    /// Returns the slot's number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A packet, as it moves through the network.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Packet {
    /// The host that sends the packet.
    pub src: HostId,
    /// The host that the packet is addressed to.
    pub dst: HostId,
    /// Connection, for path hashing and for the receiver.
    pub flow: u32,
    /// Sequence number of the first payload byte, modulo 2^32.
    pub seq: u32,
    /// Next byte expected from the other side, modulo 2^32. When live, the index of the frame behind this packet.
    pub ack: u32,
    /// Urgency where a discipline sorts by it; the smallest is served first. In a packet of an MPTCP subflow, which no
    /// such discipline serves, the data ACK modulo 2^32. In one whose sender chooses its path, [`Packet::entropy`].
    pub rank: u32,
    /// The low bits of [`Packet::transit`], where paths are chosen packet by packet or links change.
    pub payload: u32,
    /// The number of bytes on the wire.
    pub size: u16,
    /// The number of payload bytes.
    pub len: u16,
    /// Port by which the packet entered its current switch.
    pub ingress: u16,
    /// 802.1p priority, 0..=7.
    pub priority: u8,
    /// The ECN bits of the IP header.
    pub ecn: EcnField,
    /// The TCP flags, and the flags of the simulation.
    pub flags: Flags,
    spare: u8,
    tail: [u8; TAIL],
}

/// Bytes of [`Packet`] that hold either waiting times or SACK blocks; the last one holds the number of blocks, the path
/// class and the circuit switch in any case.
const TAIL: usize = 26;
const SACK_COUNT: u8 = 0b0000_0011;
const PATH_CLASS: u8 = 0b0000_1100;
const PATH_CLASS_SHIFT: u32 = 2;
/// The path class of a packet whose sender chooses its path by an entropy value, in networks without circuits.
const HAS_ENTROPY: u8 = 0b0000_1100;
/// In a trimmed packet, which has no SACK blocks to count: its payload was cut at the last switch of its path.
const TRIMMED_LAST: u8 = 0b0000_0001;
const CIRCUIT_PLANE: u8 = 0b1111_0000;
const CIRCUIT_PLANE_SHIFT: u32 = 4;
const WAIT_BYTES: usize = 5;
/// The longest wait that fits, in ps.
const WAIT_MAX: u64 = (1 << (8 * WAIT_BYTES)) - 1;

const _: () = assert!(size_of::<Packet>() == 64, "a packet is one cache line");

/// The switch of a hybrid network by which a packet may travel. Other networks have one, and packets are `Either`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum PathClass {
    /// The switch that its host's queues choose when they send it.
    #[default]
    Either = 0,
    /// The packet switch only.
    Packet = 1,
    /// A circuit only: the packet waits for one.
    Circuit = 2,
}

/// A place where a packet waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum WaitPlace {
    /// In the queue of its host's NIC.
    Nic = 0,
    /// Held by its host's pacer.
    Pacer = 1,
    /// In switches of the first tier (next to the hosts).
    Tier0 = 2,
    /// In switches of the second tier.
    Tier1 = 3,
    /// In switches of the third tier.
    Tier2 = 4,
}

impl WaitPlace {
    /// The switch tiers, from the hosts upwards.
    pub const TIERS: [WaitPlace; 3] = [WaitPlace::Tier0, WaitPlace::Tier1, WaitPlace::Tier2];

    /// The wait for a circuit, in a hybrid network: its third tier is the circuit switch, which has no queue, as
    /// packets wait for it in the hosts.
    pub const CIRCUIT: WaitPlace = WaitPlace::Tier2;
}

impl Default for Packet {
    /// Returns a packet whose fields are all zero.
    fn default() -> Packet {
        Packet::new(HostId(0), HostId(0), 0, 0)
    }
}

impl Packet {
    /// Builds a packet of `size` bytes on the wire from `src` to `dst`; everything else is zero.
    pub fn new(src: HostId, dst: HostId, flow: u32, size: u16) -> Packet {
        Packet {
            src,
            dst,
            flow,
            seq: 0,
            ack: 0,
            rank: 0,
            payload: 0,
            size,
            len: 0,
            ingress: 0,
            priority: 0,
            ecn: EcnField::NotEct,
            flags: Flags::default(),
            spare: 0,
            tail: [0; TAIL],
        }
    }

    /// Returns the switches of a hybrid network by which the packet may travel.
    #[inline]
    pub fn path_class(&self) -> PathClass {
        match (self.tail[TAIL - 1] & PATH_CLASS) >> PATH_CLASS_SHIFT {
            1 => PathClass::Packet,
            2 => PathClass::Circuit,
            _ => PathClass::Either,
        }
    }

    /// Restricts the packet to one of a hybrid network's switches.
    #[inline]
    pub fn set_path_class(&mut self, class: PathClass) {
        let last = &mut self.tail[TAIL - 1];
        *last = *last & !PATH_CLASS | (class as u8) << PATH_CLASS_SHIFT;
    }

    /// Returns the value by which the packet's sender chose its path; 0 where the connection has one.
    #[inline]
    pub fn entropy(&self) -> u32 {
        if self.tail[TAIL - 1] & PATH_CLASS == HAS_ENTROPY { self.rank } else { 0 }
    }

    /// Has the packet take the path of `value`.
    #[inline]
    pub fn set_entropy(&mut self, value: u16) {
        self.rank = value.into();
        self.tail[TAIL - 1] |= HAS_ENTROPY;
    }

    /// Returns the number of the circuit switch that carries the packet, if a circuit does.
    #[inline]
    pub fn circuit_plane(&self) -> u32 {
        u32::from((self.tail[TAIL - 1] & CIRCUIT_PLANE) >> CIRCUIT_PLANE_SHIFT)
    }

    /// Has the packet travel by the circuit switch of this number, at most 15.
    #[inline]
    pub fn set_circuit_plane(&mut self, plane: u32) {
        let last = &mut self.tail[TAIL - 1];
        *last = *last & !CIRCUIT_PLANE | (plane as u8) << CIRCUIT_PLANE_SHIFT & CIRCUIT_PLANE;
    }

    /// Sets congestion experienced where the transport is capable of it. Returns whether the mark
    /// is new.
    #[inline]
    pub fn mark(&mut self) -> bool {
        let marks = self.ecn == EcnField::Ect;
        if marks {
            self.ecn = EcnField::Ce;
        }
        marks
    }

    /// Returns whether a switch has cut the payload off.
    #[inline]
    pub fn is_trimmed(&self) -> bool {
        self.flags.has(Flags::TRIMMED)
    }

    /// Returns whether the packet is a READ request of RoCE, which has no data and travels as data does.
    #[inline]
    pub fn is_read_request(&self) -> bool {
        self.len == 0 && self.flags.are_of_read_request()
    }

    /// Returns whether the packet has no payload on the wire.
    #[inline]
    pub fn is_header(&self) -> bool {
        self.len == 0 || self.is_trimmed()
    }

    /// Returns whether the packet is a trimmed one on its way back to its sender.
    #[inline]
    pub fn is_bounced(&self) -> bool {
        self.flags.has(Flags::TRIMMED.with(Flags::SYN))
    }

    /// Cuts the payload off, `at_last` if no other switch follows: `size` bytes remain on the wire. `len` and `seq`
    /// keep the values of the whole payload.
    pub(crate) fn trim(&mut self, size: u16, priority: u8, at_last: bool) {
        (self.size, self.priority) = (size, priority);
        self.flags = self.flags.with(Flags::TRIMMED);
        if at_last {
            self.tail[TAIL - 1] |= TRIMMED_LAST;
        }
    }

    /// Returns whether the payload was cut off at the last switch of the packet's path.
    #[inline]
    pub fn is_trimmed_last(&self) -> bool {
        self.is_trimmed() && self.tail[TAIL - 1] & SACK_COUNT == TRIMMED_LAST
    }

    /// Addresses a trimmed packet to its sender. Its SYN flag, which no packet with data has, says so.
    pub(crate) fn bounce(&mut self) {
        (self.src, self.dst) = (self.dst, self.src);
        self.flags = Flags(self.flags.0 ^ Flags::FROM_SERVER.0).with(Flags::SYN);
    }

    /// Adds to the time waited at `place`. A packet that carries SACK blocks keeps no account.
    /// The sum saturates at 2^40 ps, 1.1 seconds.
    #[inline]
    pub fn add_wait(&mut self, place: WaitPlace, span: Span) {
        if span.is_zero() || self.flags.has(Flags::SACK) {
            return;
        }
        let total = (self.wait(place).as_ps() + span.as_ps()).min(WAIT_MAX);
        let from = place as usize * WAIT_BYTES;
        self.tail[from..from + WAIT_BYTES].copy_from_slice(&total.to_le_bytes()[..WAIT_BYTES]);
    }

    /// Returns the time waited at `place` so far; zero for a packet that carries SACK blocks.
    #[inline]
    pub fn wait(&self, place: WaitPlace) -> Span {
        if self.flags.has(Flags::SACK) {
            return Span::ZERO;
        }
        let from = place as usize * WAIT_BYTES;
        let mut bytes = [0; 8];
        bytes[..WAIT_BYTES].copy_from_slice(&self.tail[from..from + WAIT_BYTES]);
        Span::from_ps(u64::from_le_bytes(bytes))
    }

    /// Returns the place where the packet has waited longer than its account can hold, if there is one.
    pub fn saturated(&self) -> Option<WaitPlace> {
        let places = [WaitPlace::Nic, WaitPlace::Pacer].into_iter().chain(WaitPlace::TIERS);
        places.into_iter().find(|place| self.wait(*place).as_ps() == WAIT_MAX)
    }

    /// Adds the time that a link takes when nothing is in the way: serialisation and propagation. For a packet whose
    /// path is not its flow's. The sum saturates at 2^40 ps, 1.1 seconds.
    #[inline]
    pub fn add_transit(&mut self, span: Span) {
        let total = (self.transit().as_ps() + span.as_ps()).min(WAIT_MAX);
        (self.payload, self.spare) = (total as u32, (total >> 32) as u8);
    }

    /// Returns the sum of the times passed to [`Packet::add_transit`].
    #[inline]
    pub fn transit(&self) -> Span {
        Span::from_ps(u64::from(self.spare) << 32 | u64::from(self.payload))
    }

    /// Attaches up to three SACK blocks (RFC 2018), modulo 2^32, most recent first.
    pub fn set_sack(&mut self, blocks: impl Iterator<Item = (u32, u32)>) {
        for (index, (start, end)) in blocks.take(3).enumerate() {
            let at = index * 8;
            self.tail[at..at + 4].copy_from_slice(&start.to_le_bytes());
            self.tail[at + 4..at + 8].copy_from_slice(&end.to_le_bytes());
            self.tail[TAIL - 1] = self.tail[TAIL - 1] & !SACK_COUNT | (index as u8 + 1);
            self.flags = self.flags.with(Flags::SACK);
        }
    }

    /// Returns the SACK blocks, most recent first.
    pub fn sack(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let count =
            if self.flags.has(Flags::SACK) { usize::from(self.tail[TAIL - 1] & SACK_COUNT) } else { 0 };
        let word = |at: usize| {
            let bytes = &self.tail[at..at + 4];
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        (0..count).map(move |index| (word(index * 8), word(index * 8 + 4)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_kept_apart_and_exact() {
        let mut packet = Packet::new(HostId(0), HostId(1), 0, 1500);
        packet.add_wait(WaitPlace::Nic, Span::from_ps(7));
        packet.add_wait(WaitPlace::Tier2, Span::from_ms(900));
        packet.add_wait(WaitPlace::Nic, Span::from_us(3));
        assert_eq!(packet.wait(WaitPlace::Nic), Span::from_ps(3_000_007));
        assert_eq!(packet.wait(WaitPlace::Tier2), Span::from_ms(900));
        assert_eq!(packet.wait(WaitPlace::Pacer), Span::ZERO);
    }

    #[test]
    fn sack_blocks_replace_waits() {
        let mut packet = Packet::new(HostId(0), HostId(1), 0, 40);
        packet.set_sack([(1, 2), (3, u32::MAX)].into_iter());
        packet.add_wait(WaitPlace::Nic, Span::from_us(3));
        assert_eq!(packet.sack().collect::<Vec<_>>(), [(1, 2), (3, u32::MAX)]);
        assert_eq!(packet.wait(WaitPlace::Nic), Span::ZERO);
    }

    #[test]
    fn path_class_stands_beside_waits_and_sack_blocks() {
        let mut packet = Packet::new(HostId(0), HostId(1), 0, 40);
        packet.add_wait(WaitPlace::Tier2, Span::from_ps(WAIT_MAX - 1));
        assert_eq!(packet.path_class(), PathClass::Either);
        packet.set_path_class(PathClass::Circuit);
        assert_eq!(
            (packet.path_class(), packet.wait(WaitPlace::Tier2).as_ps()),
            (PathClass::Circuit, WAIT_MAX - 1)
        );
        packet.set_circuit_plane(13);
        packet.set_sack([(1, 2), (3, 4), (5, 6)].into_iter());
        packet.set_path_class(PathClass::Packet);
        assert_eq!((packet.path_class(), packet.sack().count()), (PathClass::Packet, 3));
        assert_eq!(packet.circuit_plane(), 13);
    }

    #[test]
    fn transit_is_a_sum_of_its_own() {
        let mut packet = Packet::new(HostId(0), HostId(1), 0, 1500);
        packet.add_wait(WaitPlace::Tier2, Span::from_ms(900));
        packet.add_transit(Span::from_ms(20));
        packet.add_transit(Span::from_ps(7));
        assert_eq!(packet.transit(), Span::from_ps(20_000_000_007));
        assert_eq!(packet.wait(WaitPlace::Tier2), Span::from_ms(900));
        packet.add_transit(Span::from_secs(9));
        assert_eq!(packet.transit(), Span::from_ps((1 << 40) - 1));
    }

    #[test]
    fn only_capable_packets_are_marked() {
        let mut packet = Packet::new(HostId(0), HostId(1), 0, 40);
        assert!(!packet.mark());
        packet.ecn = EcnField::Ect;
        assert!(packet.mark() && !packet.mark());
        assert_eq!(packet.ecn, EcnField::Ce);
    }
}
