//! [`SentPackets`]: the messages of a sender, cut into numbered packets, and what has become of each.
//!
//! ```text
//! packets: first ........................... next number   stream: ........ sent ........ written
//!          acknowledged, in flight or lost   to be made                     cut into packets, messages apart
//! ```
//!
//! A packet keeps its number and its bytes when it is sent again. The sender says which packets are lost, and in which
//! order they are repeated.

use std::collections::VecDeque;

use plimsoll_units::Time;

/// A packet that was sent and is not known to have arrived, or waits behind such a one.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentPacket {
    offset: u64,
    len: u16,
    state: State,
    /// The value by which its last transmission chose the path.
    pub(super) entropy: u16,
    /// How often it was sent.
    pub(super) transmissions: u32,
    /// When it was last sent.
    pub(super) at: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    InFlight,
    Lost,
    Arrived,
}

/// The packet that may leave next: a lost one, or the next of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NextPacket {
    /// The number of a packet that is repeated; `None` for a new one.
    pub(super) repeats: Option<u64>,
    /// The stream offset of its first byte.
    pub(super) offset: u64,
    /// The bytes of its payload.
    pub(super) len: u64,
}

/// The place of a lost packet among those to be repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RepeatPlace {
    First,
    Last,
    ByNumber,
}

/// The packets of a sender, from the first that is not known to have arrived.
#[derive(Debug, Default)]
pub(super) struct SentPackets {
    written: u64,
    /// The ends of the messages that are not acknowledged to their last byte.
    ends: VecDeque<u64>,
    /// The end of the message of which a packet is made next; `max` if there is none.
    next_end: u64,
    /// The end of what was sent at least once, and of what is acknowledged.
    max: u64,
    una: u64,
    /// The packets from number `first` on.
    packets: VecDeque<SentPacket>,
    first: u64,
    /// The numbers of those that are lost, in the order in which they are repeated.
    lost: VecDeque<u64>,
    lost_bytes: u64,
    /// Transmissions in the order of their times: the packet's number, and which of its transmissions it was.
    in_order: VecDeque<(u64, u32)>,
    /// The packets in flight, and their payload.
    in_flight: u64,
    in_flight_bytes: u64,
}

impl SentPackets {
    /// The application writes a message of `bytes` bytes.
    pub(super) fn write(&mut self, bytes: u64) {
        self.written += bytes;
        self.ends.push_back(self.written);
        self.find_next_end();
    }

    fn find_next_end(&mut self) {
        let next = self.ends.get(self.ends.partition_point(|end| *end <= self.max));
        self.next_end = next.copied().unwrap_or(self.max);
    }

    // ---- feedback ----

    /// The packets before number `next` have arrived.
    pub(super) fn arrive_before(&mut self, next: u64) {
        let next = next.min(self.next_number());
        (self.first..next).for_each(|number| self.arrives(number));
    }

    /// Packet `number` has arrived.
    pub(super) fn arrives(&mut self, number: u64) {
        let Some(place) = number.checked_sub(self.first) else { return };
        let Some(sent) = self.packets.get_mut(place as usize) else { return };
        let len = u64::from(sent.len);
        match std::mem::replace(&mut sent.state, State::Arrived) {
            State::Arrived => {}
            State::InFlight => self.leaves_flight(len),
            State::Lost => {
                self.lost.retain(|lost| *lost != number);
                self.lost_bytes -= len;
            }
        }
    }

    /// Forgets the packets at the front that have arrived. Returns the bytes newly acknowledged.
    pub(super) fn acknowledge(&mut self) -> u64 {
        let before = self.una;
        while let Some(sent) = self.packets.pop_front_if(|sent| sent.state == State::Arrived) {
            self.first += 1;
            self.una = sent.offset + u64::from(sent.len);
        }
        while self.ends.pop_front_if(|end| *end <= self.una).is_some() {}
        self.una - before
    }

    /// Packet `number` is lost, if it is in flight. Returns the bytes of its payload; `None` if it is not in flight.
    pub(super) fn lose(&mut self, number: u64, place: RepeatPlace) -> Option<u64> {
        let sent = self.packets.get_mut(number.checked_sub(self.first)? as usize)?;
        if sent.state != State::InFlight {
            return None;
        }
        sent.state = State::Lost;
        let len = u64::from(sent.len);
        self.lost_bytes += len;
        match place {
            RepeatPlace::First => self.lost.push_front(number),
            RepeatPlace::Last => self.lost.push_back(number),
            RepeatPlace::ByNumber => {
                let place = self.lost.partition_point(|lost| *lost < number);
                self.lost.insert(place, number);
            }
        }
        self.leaves_flight(len);
        Some(len)
    }

    fn leaves_flight(&mut self, len: u64) {
        self.in_flight -= 1;
        self.in_flight_bytes -= len;
    }

    /// Forgets the transmissions that are no longer in flight. Returns the oldest one that is, with its packet.
    pub(super) fn oldest_in_flight(&mut self) -> Option<(u64, SentPacket)> {
        while let Some((number, transmission)) = self.in_order.front() {
            if let Some(sent) = self.get(*number)
                && sent.state == State::InFlight
                && sent.transmissions == *transmission
            {
                return Some((*number, *sent));
            }
            self.in_order.pop_front();
        }
        None
    }

    // ---- sending ----

    /// Returns the lost packet that is to be repeated first.
    pub(super) fn next_lost(&self) -> Option<NextPacket> {
        let number = *self.lost.front()?;
        let sent = &self.packets[(number - self.first) as usize];
        Some(NextPacket { repeats: Some(number), offset: sent.offset, len: sent.len.into() })
    }

    /// Returns the next new packet, of at most `payload` bytes.
    pub(super) fn next_new(&self, payload: u64) -> Option<NextPacket> {
        let len = (self.next_end - self.max).min(payload);
        (len > 0).then_some(NextPacket { repeats: None, offset: self.max, len })
    }

    /// Sends `next`, which must be the present [`next_lost`](SentPackets::next_lost) or
    /// [`next_new`](SentPackets::next_new). Returns its number.
    pub(super) fn send(&mut self, next: &NextPacket, now: Time, entropy: u16) -> u64 {
        let number = next.repeats.unwrap_or_else(|| self.next_number());
        let transmissions = if next.repeats.is_some() {
            let first = self.lost.pop_front();
            assert_eq!(first, Some(number), "the first of the lost packets is repeated");
            self.lost_bytes -= next.len;
            let sent = &mut self.packets[(number - self.first) as usize];
            (sent.state, sent.at, sent.entropy) = (State::InFlight, now, entropy);
            sent.transmissions += 1;
            sent.transmissions
        } else {
            let &NextPacket { offset, len, .. } = next;
            let (len, state) = (len as u16, State::InFlight);
            self.packets.push_back(SentPacket { offset, len, state, entropy, transmissions: 1, at: now });
            self.max = offset + u64::from(len);
            if self.max == self.next_end {
                self.find_next_end();
            }
            1
        };
        self.in_order.push_back((number, transmissions));
        self.in_flight += 1;
        self.in_flight_bytes += next.len;
        number
    }

    // ---- read-outs ----

    pub(super) fn get(&self, number: u64) -> Option<&SentPacket> {
        self.packets.get(number.checked_sub(self.first)? as usize)
    }

    /// Returns the number of the first packet that is not acknowledged.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number that the next new packet gets.
    pub(super) fn next_number(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Returns the highest number that has arrived beyond a gap, and when that packet was sent.
    pub(super) fn highest_arrived(&self) -> Option<(u64, Time)> {
        let place = self.packets.iter().rposition(|sent| sent.state == State::Arrived)?;
        Some((self.first + place as u64, self.packets[place].at))
    }

    /// Returns whether data is to be sent, now or later.
    pub(super) fn has_data(&self) -> bool {
        self.max < self.written || !self.lost.is_empty()
    }

    /// Returns the packets that wait to be repeated.
    pub(super) fn lost(&self) -> u64 {
        self.lost.len() as u64
    }

    pub(super) fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Returns the packets in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns the payload in flight.
    pub(super) fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Returns the bytes that are acknowledged in order.
    pub(super) fn acknowledged(&self) -> u64 {
        self.una
    }

    /// Returns the bytes sent at least once.
    pub(super) fn sent(&self) -> u64 {
        self.max
    }

    /// Returns the bytes that the application wrote.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(packets: u64) -> SentPackets {
        let mut book = SentPackets::default();
        book.write(packets * 10 - 3);
        for number in 0..packets {
            let next = book.next_new(10).unwrap();
            assert_eq!(book.send(&next, Time::from_ps(number), 0), number);
        }
        book
    }

    #[test]
    fn messages_end_in_short_packets_and_a_repeated_packet_keeps_its_number() {
        let mut book = book(3);
        book.write(25);
        let next = book.next_new(10).unwrap();
        assert_eq!((next.offset, next.len), (27, 10));
        assert_eq!(book.lose(2, RepeatPlace::Last), Some(7));
        assert_eq!(book.lose(2, RepeatPlace::Last), None, "it is lost already");
        let lost = book.next_lost().unwrap();
        assert_eq!(lost, NextPacket { repeats: Some(2), offset: 20, len: 7 });
        assert_eq!((book.send(&lost, Time::from_ps(9), 5), book.lost(), book.in_flight()), (2, 0, 3));
        assert_eq!((book.get(2).unwrap().transmissions, book.get(2).unwrap().entropy), (2, 5));
    }

    #[test]
    fn lost_packets_are_repeated_as_the_sender_orders_them() {
        let mut book = book(5);
        for (number, place) in
            [(3, RepeatPlace::Last), (4, RepeatPlace::First), (1, RepeatPlace::Last), (0, RepeatPlace::First)]
        {
            book.lose(number, place);
        }
        assert_eq!(book.lost, [0, 4, 3, 1]);
        book.arrives(3);
        assert_eq!(book.lost, [0, 4, 1]);
        assert_eq!(book.lost_bytes(), 27);
        let mut sorted = self::book(5);
        [3, 1, 4]
            .into_iter()
            .for_each(|number| assert!(sorted.lose(number, RepeatPlace::ByNumber).is_some()));
        assert_eq!(sorted.lost, [1, 3, 4]);
    }

    #[test]
    fn arrivals_beyond_a_gap_are_acknowledged_once_it_closes() {
        let mut book = book(4);
        book.arrives(2);
        assert_eq!((book.acknowledge(), book.highest_arrived()), (0, Some((2, Time::from_ps(2)))));
        assert_eq!(book.oldest_in_flight().unwrap().0, 0);
        book.arrive_before(2);
        assert_eq!((book.acknowledge(), book.first(), book.acknowledged()), (30, 3, 30));
        assert_eq!(book.oldest_in_flight().unwrap().0, 3);
        assert_eq!((book.in_flight(), book.in_flight_bytes()), (1, 7));
    }
}
