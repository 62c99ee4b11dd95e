//! Datagrams as a sans-IO state machine: messages in packets that are paced, and neither acknowledged nor repaired, as
//! applications use UDP.
//!
//! ```text
//! write(bytes) ──> DatagramSender ──one packet a turn──> poll_transmit() ──> DatagramPacket ──> the network
//!                   deadline(): the next packet may leave                                        │
//!          the message is whole <── DatagramReceiver: packets counted by message <── on_packet() ┘
//! ```
//!
//! A packet says to which message it belongs, how many packets of it are left, and whether it is the first. So a
//! receiver knows from any order of arrival when a message is whole. A message that has lost a packet never is.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_units::{ByteTime, Time};

use super::describe::{Carrier, Description, Family, Feature};

/// The description of the family.
pub const FAMILY: Family = Family {
    name: "datagram",
    setting: "transport.kind",
    one_thread: None,
    acknowledges: false,
    carrier: Carrier::Stack,
    excludes: &[
        (Feature::RestartOnWrite, "datagrams have no window"),
        (Feature::Segmentation, "segmentation offload of datagrams is not modelled"),
        (Feature::HostStack, "the stack of a host that has paced datagrams is not modelled"),
        (Feature::Subflows, "subflows are TCP connections"),
    ],
    host_wide: &[],
};

/// The description of its only kind.
pub const DATAGRAM: Description = Description {
    name: "datagram",
    family: &FAMILY,
    kernel_name: None,
    delays_acks: false,
    needs_marks: false,
    needs_stamps: false,
};

/// The payload and the headers of a full packet, from `transport.segment` and `transport.header`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramSizes {
    /// The payload of a full packet, in bytes.
    pub segment: u64,
    /// The bytes of all headers of a packet.
    pub header: u32,
}

/// A part of a message, in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramPacket {
    /// The number of the message, from zero on, in the order in which its sender wrote them.
    pub message: u32,
    /// The packets of the message from this one on: 1 for the last. Saturates.
    pub left: u32,
    /// The bytes of payload.
    pub len: u32,
    /// Whether it is the first packet of the message.
    pub is_first: bool,
}

/// The sending end: messages in the order in which they were written.
#[derive(Debug, Default)]
pub struct DatagramSender {
    waiting: VecDeque<WaitingMessage>,
    /// The number of the next message.
    next: u32,
    /// The bytes in `waiting`.
    unsent: u64,
    /// The time before which no packet leaves.
    ready: Time,
}

#[derive(Debug)]
struct WaitingMessage {
    bytes: u64,
    sent: u64,
}

impl DatagramSender {
    /// Appends a message of `bytes` bytes.
    pub fn write(&mut self, bytes: u64) {
        self.waiting.push_back(WaitingMessage { bytes, sent: 0 });
        self.next = self.next.wrapping_add(1);
        self.unsent += bytes;
    }

    /// Returns the next packet, if one may leave at `now`. The one after it may leave when this one has had its time on
    /// a link of `pace`, headers included.
    pub fn poll_transmit(
        &mut self,
        sizes: DatagramSizes,
        now: Time,
        pace: ByteTime,
    ) -> Option<DatagramPacket> {
        let message = self.next.wrapping_sub(self.waiting.len() as u32);
        let first = self.waiting.front_mut().filter(|_| self.ready <= now)?;
        let left = first.bytes - first.sent;
        let len = left.min(sizes.segment);
        let packet = DatagramPacket {
            message,
            left: u32::try_from(left.div_ceil(sizes.segment).max(1)).unwrap_or(u32::MAX),
            len: len as u32,
            is_first: first.sent == 0,
        };
        first.sent += len;
        if first.sent == first.bytes {
            self.waiting.pop_front();
        }
        self.unsent -= len;
        self.ready = now + pace.span(len + u64::from(sizes.header));
        Some(packet)
    }

    /// Returns when the next packet may leave; [`Time::MAX`] if there is none.
    pub fn deadline(&self) -> Time {
        if self.waiting.is_empty() { Time::MAX } else { self.ready }
    }

    /// Returns the bytes that have been written and not been sent.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }
}

/// The receiving end: the messages of which some packets have arrived.
#[derive(Debug, Default)]
pub struct DatagramReceiver {
    open: BTreeMap<u32, OpenMessage>,
}

/// The packets of a message that have arrived.
#[derive(Debug, Default)]
struct OpenMessage {
    packets: u32,
    /// How many there are, from the first one on.
    total: Option<u32>,
}

/// How many messages may be open; with more, the oldest is given up. A message stays open for ever if one of its
/// packets is lost.
const OPEN_MAX: usize = 1_024;

impl DatagramReceiver {
    /// A packet has arrived. Returns whether its message is whole with it.
    pub fn on_packet(&mut self, packet: &DatagramPacket) -> bool {
        if packet.is_first && packet.left == 1 {
            return true;
        }
        let open = self.open.entry(packet.message).or_default();
        open.packets += 1;
        if packet.is_first {
            open.total = Some(packet.left);
        }
        if open.total == Some(open.packets) {
            self.open.remove(&packet.message);
            return true;
        }
        if self.open.len() > OPEN_MAX {
            self.open.pop_first();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_units::Rate;
    use proptest::prelude::*;

    use super::*;

    const SIZES: DatagramSizes = DatagramSizes { segment: 1_000, header: 28 };

    /// All packets that `sender` sends, each at the time at which it may.
    fn sent(sender: &mut DatagramSender, pace: ByteTime) -> Vec<(Time, DatagramPacket)> {
        let mut packets = Vec::new();
        while sender.deadline() < Time::MAX {
            let now = sender.deadline();
            packets.push((now, sender.poll_transmit(SIZES, now, pace).expect("it is due")));
            assert_eq!(sender.poll_transmit(SIZES, now, pace), None, "paced");
        }
        packets
    }

    #[test]
    fn packets_leave_one_by_one_at_the_pace() {
        let pace = Rate::from_gbps(1).byte_time();
        let mut sender = DatagramSender::default();
        [2_500, 1, 1_000].into_iter().for_each(|bytes| sender.write(bytes));
        assert_eq!(sender.unsent(), 3_501);
        let packets = sent(&mut sender, pace);
        assert_eq!(sender.unsent(), 0);
        let shape = packets.iter().map(|(at, packet)| {
            (at.as_ps() / 8_000, packet.message, packet.left, packet.len, packet.is_first)
        });
        // A byte takes 8 ns, and a header has 28 bytes.
        assert_eq!(
            shape.collect::<Vec<_>>(),
            [
                (0, 0, 3, 1_000, true),
                (1_028, 0, 2, 1_000, false),
                (2_056, 0, 1, 500, false),
                (2_584, 1, 1, 1, true),
                (2_613, 2, 1, 1_000, true),
            ]
        );
    }

    proptest! {
        /// In any order, and with any packets lost, exactly the messages become whole of which all packets arrive, each
        /// with the last of its packets.
        #[test]
        fn a_message_is_whole_with_its_last_packet(
            sizes in prop::collection::vec(1u64..6_000, 1..20),
            order in prop::collection::vec((any::<u32>(), prop::bool::weighted(0.9)), 140),
        ) {
            let mut sender = DatagramSender::default();
            sizes.iter().for_each(|bytes| sender.write(*bytes));
            let packets = sent(&mut sender, Rate::from_gbps(1).byte_time());
            let mut arriving: Vec<_> = packets.iter().zip(&order).collect();
            arriving.sort_by_key(|(_, (place, _))| *place);
            let mut left: Vec<u64> = sizes.iter().map(|bytes| bytes.div_ceil(1_000)).collect();
            let mut receiver = DatagramReceiver::default();
            for ((_, packet), _) in arriving.into_iter().filter(|(_, (_, arrives))| *arrives) {
                let left = &mut left[packet.message as usize];
                *left -= 1;
                prop_assert_eq!(receiver.on_packet(packet), *left == 0);
            }
        }
    }

    #[test]
    fn messages_that_lost_a_packet_are_given_up() {
        let mut receiver = DatagramReceiver::default();
        for message in 0..10_000 {
            receiver.on_packet(&DatagramPacket { message, left: 2, len: 1, is_first: true });
        }
        assert_eq!(receiver.open.len(), OPEN_MAX);
        assert!(receiver.on_packet(&DatagramPacket { message: 9_999, left: 1, len: 1, is_first: false }));
        assert!(!receiver.on_packet(&DatagramPacket { message: 0, left: 1, len: 1, is_first: false }));
    }
}
