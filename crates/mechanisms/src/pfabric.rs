//! pFabric's queue (SIGCOMM 2013): the packet of the flow with the fewest remaining bytes is served first, and when the
//! buffer is full the packet of the flow with the most remaining bytes is dropped.
//!
//! ```text
//! push   over the limit: drop the packet of the largest rank, the newest among equals
//!        (which may be the arriving one)
//! pop    find the smallest rank, the oldest among equals; send the *oldest packet of that flow*
//! ```
//!
//! A packet's rank is the flow's remaining size when it was sent, so later packets of a flow have smaller ranks.
//! Sending the flow's oldest packet keeps them in order and gives all of them the flow's newest rank.
//!
//! Packets are kept by flow, and each flow's most urgent ranks beside it, so that a pop looks at the flows that wait,
//! not at their packets. That pays where all packets of a flow have one rank, as under QJump: its most urgent one
//! leaves at each pop. A push that drops looks at every packet's rank. Buffers are short (24 to 153 full packets in the
//! QJump authors' runs, from a handful of flows); a heap would not help with a flow's oldest packet.

use std::collections::VecDeque;

use plimsoll_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::ecn::Compare;
use crate::mechanism::{EngineNeed, Mechanism, Section, Table};

/// pFabric's queue in place of a port's FIFO.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PfabricParams {
    /// The buffer, more than 0. The packet in transmission does not count. Default 36 KB, 24 packets of
    /// 1500 B (the authors' scripts, for 10 Gb/s and an RTT of about 15 us).
    pub limit: Bytes,
    /// When the buffer is full, counting the arriving packet: `more` than `limit`, or `at-least` `limit`
    /// (the authors' ns-2 code, where 36 KB hold 23 full packets). Default `more`.
    pub overflow: Compare,
    /// The packets that are dropped then: `as-needed`, packets by falling rank until the rest fits; `one`, the one
    /// packet of the largest rank whose removal makes the rest fit (the authors' ns-2 code). They differ only if packet
    /// sizes do. Default `as-needed`.
    pub eviction: Eviction,
}

impl Default for PfabricParams {
    fn default() -> PfabricParams {
        PfabricParams { limit: Bytes::new(36_000), overflow: Compare::More, eviction: Eviction::AsNeeded }
    }
}

impl Mechanism for PfabricParams {
    const TABLE: Table = Table::replaced_whole(
        Section::Port,
        "pfabric",
        "`order` and `buffer` decide the order of service and the drops",
    )
    .needs(EngineNeed::GeneralHere)
    .limits_queue();

    fn validate(&self) -> Result<(), InvalidParam> {
        InvalidParam::unless(self.limit > Bytes::ZERO, "limit", self.limit, "more than 0B")
    }
}

/// Chooses the packets that a full buffer drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Eviction {
    /// Packets are dropped by falling rank until the rest fits.
    AsNeeded,
    /// One packet is dropped that makes the rest fit.
    One,
}

/// The rank of an acknowledgement, a SYN, and all else that carries no data: before all data.
pub const CONTROL_RANK: u64 = 0;

/// The rank of a data packet sent while `remaining_bytes` of its flow are neither acknowledged nor
/// selectively acknowledged (the authors' ns-2 code; the offset keeps data behind control packets).
pub fn data_rank(remaining_bytes: u64) -> u64 {
    remaining_bytes.saturating_add(10)
}

/// Queues the packets of a port, which are of type `T`.
#[derive(Clone, Debug)]
pub struct PfabricQueue<T> {
    params: PfabricParams,
    /// The flows with packets here; empty ones are kept in `spare`.
    flows: Vec<RankedFlow<T>>,
    spare: Vec<RankedFlow<T>>,
    /// The next packet that joins gets this number.
    arrival: u64,
    len: usize,
    bytes: u64,
}

/// Rank and arrival of a packet: the smaller one is more urgent.
type Place = (u64, u64);

#[derive(Clone, Debug)]
struct RankedFlow<T> {
    key: u64,
    /// The most urgent place of all. A search among the flows reads this alone.
    first: Place,
    /// The places behind `first` without a more urgent one behind: each is the most urgent once the ones before it have
    /// left. Empty where each packet of the flow is more urgent than the one before.
    later: VecDeque<Place>,
    /// The packets, in order of arrival.
    packets: VecDeque<RankedPacket<T>>,
}

#[derive(Clone, Debug)]
struct RankedPacket<T> {
    place: Place,
    bytes: u64,
    item: T,
}

impl<T> RankedFlow<T> {
    /// The first packet has joined the flow, which was empty.
    fn begin(&mut self, packet: RankedPacket<T>) {
        self.first = packet.place;
        self.packets.push_back(packet);
    }

    /// Another packet has joined.
    fn join(&mut self, packet: RankedPacket<T>) {
        self.outranks(packet.place);
        self.packets.push_back(packet);
    }

    /// Removes the oldest packet.
    fn take_oldest(&mut self) -> Option<RankedPacket<T>> {
        let oldest = self.packets.pop_front()?;
        if oldest.place == self.first
            && let Some(next) = self.later.pop_front()
        {
            self.first = next;
        }
        Some(oldest)
    }

    /// Removes any packet, to be dropped.
    fn take_any(&mut self, index: usize) -> Option<RankedPacket<T>> {
        let taken = self.packets.remove(index)?;
        self.later.clear();
        for index in 0..self.packets.len() {
            let place = self.packets[index].place;
            if index == 0 {
                self.first = place;
            } else {
                self.outranks(place);
            }
        }
        Some(taken)
    }

    /// `place`, which joined behind all others, replaces the less urgent ones.
    fn outranks(&mut self, place: Place) {
        if place.0 < self.first.0 {
            self.later.clear();
            self.first = place;
        } else {
            while self.later.pop_back_if(|earlier| earlier.0 > place.0).is_some() {}
            self.later.push_back(place);
        }
    }
}

impl<T> PfabricQueue<T> {
    /// Makes an empty queue. `params` must be valid.
    pub fn new(params: &PfabricParams) -> PfabricQueue<T> {
        PfabricQueue { params: *params, flows: Vec::new(), spare: Vec::new(), arrival: 0, len: 0, bytes: 0 }
    }

    /// A packet of `bytes` bytes with rank `rank` (a smaller one is more urgent) of flow `flow` joins.
    /// `dropped` is handed every packet that it costs, which may be itself.
    pub fn push(&mut self, rank: u64, flow: u64, bytes: u64, item: T, mut dropped: impl FnMut(T)) {
        let packet = RankedPacket { place: (rank, self.arrival), bytes, item };
        self.arrival += 1;
        match self.flows.iter_mut().find(|known| known.key == flow) {
            Some(flow) => flow.join(packet),
            None => self.open(flow).begin(packet),
        }
        self.len += 1;
        self.bytes += bytes;
        // The packets before the arriving one fit, and that one is always a candidate, so this ends.
        while self.bytes > self.largest()
            && let Some((flow, index)) = self.victim()
        {
            dropped(self.take(flow, |flow| flow.take_any(index)));
        }
    }

    /// The next packet to send, which leaves the queue.
    pub fn pop(&mut self) -> Option<T> {
        self.pop_if(|_| true)
    }

    /// The next packet to send leaves the queue, if it `may`.
    pub fn pop_if(&mut self, may: impl FnOnce(&T) -> bool) -> Option<T> {
        let flow = self.next()?;
        let oldest = self.flows[flow].packets.front()?;
        may(&oldest.item).then(|| self.take(flow, RankedFlow::take_oldest))
    }

    /// Returns the packet that is sent next, without removing it.
    pub fn peek(&self) -> Option<&T> {
        self.next().and_then(|flow| self.flows[flow].packets.front()).map(|packet| &packet.item)
    }

    /// Returns the number of packets that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Empties the queue, in order of arrival: its link has failed.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        (self.len, self.bytes) = (0, 0);
        let mut all: Vec<RankedPacket<T>> = self.flows.drain(..).flat_map(|flow| flow.packets).collect();
        all.sort_by_key(|packet| packet.place.1);
        all.into_iter().map(|packet| packet.item)
    }

    /// Returns the largest number of bytes that the queue may hold.
    #[inline]
    pub fn largest(&self) -> u64 {
        match self.params.overflow {
            Compare::More => self.params.limit.get(),
            Compare::AtLeast => self.params.limit.get().saturating_sub(1),
        }
    }

    /// A place for a flow that has no packet here.
    fn open(&mut self, key: u64) -> &mut RankedFlow<T> {
        let empty = || RankedFlow { key, first: (0, 0), later: VecDeque::new(), packets: VecDeque::new() };
        let mut flow = self.spare.pop().unwrap_or_else(empty);
        flow.key = key;
        self.flows.push_mut(flow)
    }

    /// Largest rank, newest among equals: its flow, and its place there.
    fn victim(&self) -> Option<(usize, usize)> {
        let allowed = |bytes: u64| match self.params.eviction {
            Eviction::AsNeeded => true,
            Eviction::One => self.bytes - bytes <= self.largest(),
        };
        let mut worst: Option<(Place, usize, usize)> = None;
        for (number, flow) in self.flows.iter().enumerate() {
            for (index, &RankedPacket { place, bytes, .. }) in flow.packets.iter().enumerate() {
                if worst.is_none_or(|(worst, ..)| place > worst) && allowed(bytes) {
                    worst = Some((place, number, index));
                }
            }
        }
        worst.map(|(_, flow, index)| (flow, index))
    }

    /// The flow of the smallest rank, the oldest among equals.
    fn next(&self) -> Option<usize> {
        (0..self.flows.len()).min_by_key(|flow| self.flows[*flow].first)
    }

    /// Removes the packet that `take` removes from a flow.
    fn take(&mut self, number: usize, take: impl FnOnce(&mut RankedFlow<T>) -> Option<RankedPacket<T>>) -> T {
        let flow = &mut self.flows[number];
        let RankedPacket { bytes, item, .. } = take(flow).expect("the packet was found in this flow");
        if flow.packets.is_empty() {
            let flow = self.flows.swap_remove(number);
            self.spare.push(flow);
        }
        self.len -= 1;
        self.bytes -= bytes;
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn queue(text: &str) -> PfabricQueue<u32> {
        let params: PfabricParams = toml::from_str(text).unwrap();
        params.validate().unwrap();
        PfabricQueue::new(&params)
    }

    const SOURCE: &str = "overflow = 'at-least'\neviction = 'one'";

    /// Pushes, and returns the dropped packets.
    fn push(queue: &mut PfabricQueue<u32>, rank: u64, flow: u64, bytes: u64, id: u32) -> Vec<u32> {
        let mut dropped = Vec::new();
        queue.push(rank, flow, bytes, id, |id| dropped.push(id));
        dropped
    }

    fn all(queue: &mut PfabricQueue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn the_most_urgent_flow_sends_its_oldest_packet() {
        let mut queue = queue("");
        for (id, (rank, flow)) in [(50, 1), (30, 2), (20, 2), (20, 1), (0, 3)].into_iter().enumerate() {
            push(&mut queue, rank, flow, 100, id as u32);
        }
        assert_eq!((queue.peek(), queue.len(), queue.bytes()), (Some(&4), 5, 500));
        // Rank 0; then rank 20 of flow 2 is older than rank 20 of flow 1, and flow 2's oldest is 1.
        assert_eq!(all(&mut queue), [4, 1, 2, 0, 3]);
        assert!(queue.is_empty() && queue.bytes() == 0);
    }

    #[test]
    fn the_least_urgent_packet_is_dropped() {
        let mut queue = queue("limit = '300B'");
        for id in 0..3 {
            assert!(push(&mut queue, 10 + u64::from(id), 1, 100, id).is_empty());
        }
        assert_eq!(push(&mut queue, 12, 2, 100, 3), [3]); // as bad as the worst, and newer
        assert_eq!(push(&mut queue, 11, 2, 100, 4), [2]);
        assert_eq!(push(&mut queue, 11, 2, 100, 5), [5]);
        assert_eq!(all(&mut queue), [0, 1, 4]);
    }

    #[test]
    fn how_many_full_packets_fit() {
        for (text, packets) in [
            ("limit = '36KB'", 24),
            (SOURCE, 23),
            ("limit = '229.5KB'\noverflow = 'at-least'\neviction = 'one'", 152),
        ] {
            let mut queue = queue(text);
            let kept = (0..200).take_while(|id| push(&mut queue, 1, 1, 1_500, *id).is_empty()).count();
            assert_eq!(kept, packets, "{text}");
        }
    }

    #[test]
    fn what_a_large_packet_costs() {
        let fill = |text: &str| {
            let mut queue = queue(&format!("limit = '1KB'\n{text}"));
            for (id, (rank, bytes)) in [(30, 100), (20, 800), (40, 100)].into_iter().enumerate() {
                push(&mut queue, rank, 1, bytes, id as u32);
            }
            queue
        };
        // The packets of rank 40 and 30 do not make enough room, so the one of rank 20 is dropped too.
        assert_eq!(push(&mut fill(""), 10, 2, 500, 9), [2, 0, 1]);
        // Only the packet of rank 20 makes enough room.
        assert_eq!(push(&mut fill("eviction = 'one'"), 10, 2, 500, 9), [1]);
        // Or the arriving one, which is worse.
        assert_eq!(push(&mut fill("eviction = 'one'"), 25, 2, 500, 9), [9]);
        // A packet that never fits.
        assert_eq!(push(&mut fill("eviction = 'one'"), 0, 2, 1_001, 9), [9]);
    }

    #[test]
    fn a_failed_link_empties_the_queue() {
        let mut queue = queue("");
        push(&mut queue, 3, 1, 100, 0);
        push(&mut queue, 1, 2, 100, 1);
        assert_eq!(queue.drain().collect::<Vec<_>>(), [0, 1]);
        assert_eq!((queue.len(), queue.bytes(), queue.pop()), (0, 0, None));
    }

    #[test]
    fn ranks() {
        assert!(data_rank(0) > CONTROL_RANK && data_rank(1) > data_rank(0));
        assert_eq!(data_rank(u64::MAX), u64::MAX);
        let params: PfabricParams = toml::from_str("limit = '0B'").unwrap();
        assert_eq!(params.validate().unwrap_err().key, "limit");
    }

    /// The rules by sorting: entries are (arrival, rank, flow, bytes).
    #[derive(Default)]
    struct Model {
        entries: Vec<(u32, u64, u64, u64)>,
    }

    impl Model {
        fn bytes(&self) -> u64 {
            self.entries.iter().map(|entry| entry.3).sum()
        }

        fn push(&mut self, limit: u64, source: bool, entry: (u32, u64, u64, u64)) -> Vec<u32> {
            self.entries.push(entry);
            // Whole bytes: at least `limit` is more than one less.
            let limit = if source { limit - 1 } else { limit };
            let mut dropped = Vec::new();
            while self.bytes() > limit {
                let over = self.bytes() - limit;
                let mut worst: Vec<_> = self.entries.clone();
                worst.retain(|entry| !source || entry.3 >= over);
                worst.sort_by_key(|entry| (entry.1, entry.0));
                let victim = worst[worst.len() - 1].0;
                self.entries.retain(|entry| entry.0 != victim);
                dropped.push(victim);
            }
            dropped
        }

        fn pop(&mut self) -> Option<u32> {
            let best = *self.entries.iter().min_by_key(|entry| (entry.1, entry.0))?;
            let of_flow = self.entries.iter().filter(|entry| entry.2 == best.2);
            let id = of_flow.map(|entry| entry.0).min()?;
            self.entries.retain(|entry| entry.0 != id);
            Some(id)
        }
    }

    proptest! {
        #[test]
        fn follows_the_model(
            limit in 1u64..8_000,
            source in any::<bool>(),
            ops in prop::collection::vec((any::<bool>(), 0u64..6, 0u64..5, 1u64..1_600), 1..200),
        ) {
            let text = if source { SOURCE } else { "" };
            let mut queue = queue(&format!("limit = '{limit}B'\n{text}"));
            let mut model = Model::default();
            for (id, (joins, rank, flow, bytes)) in ops.into_iter().enumerate() {
                let id = id as u32;
                if joins {
                    let expected = model.push(limit, source, (id, rank, flow, bytes));
                    prop_assert!(!source || expected.len() <= 1);
                    prop_assert_eq!(push(&mut queue, rank, flow, bytes, id), expected);
                } else {
                    let expected = model.pop();
                    prop_assert_eq!(queue.peek().copied(), expected);
                    prop_assert_eq!(queue.pop(), expected);
                }
                prop_assert_eq!((queue.bytes(), queue.len()), (model.bytes(), model.entries.len()));
                prop_assert!(queue.bytes() <= limit);
            }
        }

        /// Packets of one flow do not overtake each other.
        #[test]
        fn flows_stay_in_order(packets in prop::collection::vec((0u64..100, 0u64..4), 1..60)) {
            let mut queue = queue("limit = '1MB'");
            for (id, &(rank, flow)) in packets.iter().enumerate() {
                push(&mut queue, rank, flow, 1_500, id as u32);
            }
            let mut last = [None; 4];
            for id in all(&mut queue) {
                let flow = packets[id as usize].1 as usize;
                prop_assert!(last[flow].is_none_or(|last| last < id));
                last[flow] = Some(id);
            }
        }
    }
}
