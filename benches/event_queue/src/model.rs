//! The load: a closed network of packets that hop from link to link, with nothing in it but what
//! decides the times of the events and the memory that a hop touches.
//!
//! The links are in tiers (host up, edge up, ..., host down). An arrival takes the packet off the
//! ring of its link, draws a link of the next tier and appends it there: its arrival time follows
//! from when that link is free, as in the express port engine. Below the last tier a data packet
//! turns into an acknowledgement and the other way round. One arrival in 64 waits for a timer of
//! its host first (10 us to 5 ms), and each connection has a timer that is always armed (1 ms to
//! 10 s): both are owners of their own.

use std::collections::VecDeque;

use plimsoll_units::{ByteTime, Bytes, Rate, Span, Time};

use crate::candidates::EventQueue;

/// One size of network and one load.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// As printed.
    pub name: &'static str,
    /// Links in a tier; also the number of hosts.
    pub tier: u32,
    /// Tiers that a packet passes.
    pub tiers: u32,
    /// Timers that are always armed.
    pub connections: u32,
    /// Packets on their way.
    pub packets: u32,
    /// Of every link, in Gb/s.
    pub gbps: u64,
    /// Of every link.
    pub delay: Span,
}

/// What is measured.
pub const CASES: [Case; 6] = [
    Case { packets: 8, ..RACK },
    Case { name: "rack, busy", packets: 100, ..RACK },
    Case { packets: 200, ..FAT_TREE_8 },
    Case { name: "k=8, busy", packets: 4_000, ..FAT_TREE_8 },
    Case { packets: 12_000, ..FAT_TREE_32 },
    Case { name: "k=32, busy", packets: 250_000, ..FAT_TREE_32 },
];

const RACK: Case = Case {
    name: "rack, sparse",
    tier: 11,
    tiers: 2,
    connections: 10,
    packets: 8,
    gbps: 1,
    delay: Span::from_us(5),
};
const FAT_TREE_8: Case = Case {
    name: "k=8, sparse",
    tier: 128,
    tiers: 6,
    connections: 128,
    packets: 200,
    gbps: 10,
    delay: Span::from_us(1),
};
const FAT_TREE_32: Case =
    Case { name: "k=32, sparse", tier: 8_192, connections: 8_192, packets: 12_000, ..FAT_TREE_8 };

impl Case {
    /// Links.
    pub fn lanes(&self) -> u32 {
        self.tier * self.tiers
    }
    /// Links, one think timer a host, one timer a connection.
    fn owners(&self) -> u32 {
        self.lanes() + self.tier + self.connections
    }
}

/// 64 bytes, the size of a packet of the fabric.
#[derive(Clone, Copy)]
struct Packet {
    at: Time,
    bytes: u32,
    host: u32,
    draw: u64,
    rest: [u64; 5],
}

const _: () = assert!(size_of::<Packet>() == 64);

struct Lane {
    ring: VecDeque<Packet>,
    free_at: Time,
}

/// The state of one run.
pub struct World<Q> {
    case: Case,
    queue: Q,
    lanes: Vec<Lane>,
    /// The packet that waits for the think timer of a host.
    thinking: Vec<Option<Packet>>,
    byte_time: ByteTime,
    draw: u64,
    /// Folds every pop, so that two queues with the same digest popped the same sequence.
    digest: u64,
}

impl<Q: EventQueue> World<Q> {
    /// All packets at their hosts, every connection timer armed.
    pub fn new(case: Case) -> Self {
        World::with_queue(case, Q::new(case.owners()))
    }

    /// [`World::new`] on a queue that is made elsewhere.
    pub fn with_queue(case: Case, queue: Q) -> Self {
        let lane = || Lane { ring: VecDeque::new(), free_at: Time::ZERO };
        let mut world = World {
            case,
            queue,
            lanes: std::iter::repeat_with(lane).take(case.lanes() as usize).collect(),
            thinking: vec![None; case.tier as usize],
            byte_time: Rate::from_gbps(case.gbps).byte_time(),
            draw: 1,
            digest: 0,
        };
        for number in 0..case.packets {
            let host = number % case.tier;
            let draw = world.draw();
            // Hosts start spread over 12 us, not all at once.
            let at = Time::from_ps(draw % 12_000_000);
            world.lanes[host as usize].free_at = world.lanes[host as usize].free_at.max(at);
            world.send(Time::ZERO, host, Packet { at, bytes: DATA, host, draw, rest: [draw; 5] });
        }
        for owner in case.owners() - case.connections..case.owners() {
            let at = Time::ZERO + world.wait(30, 14);
            world.queue.push(at, owner);
        }
        world
    }

    /// Handles `pops` events and returns the digest of all events so far. `IN_PLACE` tells the
    /// queue the next head of a lane before the arrival is handled, not after.
    pub fn run<const IN_PLACE: bool>(&mut self, pops: u64) -> u64 {
        for _ in 0..pops {
            let lanes = &mut self.lanes;
            let mut packet = None;
            let take = |_: Time, owner: u32| {
                let ring = &mut lanes.get_mut(owner as usize)?.ring;
                packet = ring.pop_front();
                ring.front().map(|next| next.at)
            };
            let (at, owner) = if IN_PLACE { self.queue.pop_and_push_next(take) } else { self.queue.pop() }
                .expect("the connection timers are always armed");
            self.digest = (self.digest.rotate_left(5) ^ at.as_ps() ^ u64::from(owner) << 40)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if owner >= self.case.lanes() {
                self.on_timer(at, owner);
            } else if IN_PLACE {
                self.on_arrival(at, owner, packet.expect("a lane in the queue has a head"));
            } else {
                let ring = &mut self.lanes[owner as usize].ring;
                let packet = ring.pop_front().expect("a lane in the queue has a head");
                if let Some(next) = ring.front() {
                    self.queue.push(next.at, owner);
                }
                self.on_arrival(at, owner, packet);
            }
        }
        self.digest
    }

    #[inline]
    fn on_arrival(&mut self, now: Time, owner: u32, mut packet: Packet) {
        packet.draw = mix(packet.draw);
        packet.rest[0] += 1;
        let tier = owner / self.case.tier;
        if tier + 1 < self.case.tiers {
            // The rows of the last tier are the hosts.
            let row = (packet.draw % u64::from(self.case.tier)) as u32;
            return self.send(now, (tier + 1) * self.case.tier + row, packet);
        }
        packet.host = owner % self.case.tier;
        packet.bytes = if packet.bytes == DATA { ACK } else { DATA };
        let thinking = &mut self.thinking[packet.host as usize];
        if packet.draw >> 58 == 0 && thinking.is_none() {
            *thinking = Some(packet);
            let at = now + self.wait(23, 9);
            self.queue.push(at, self.case.lanes() + packet.host);
        } else {
            self.send(now, packet.host, packet);
        }
    }

    fn on_timer(&mut self, now: Time, owner: u32) {
        let host = owner - self.case.lanes();
        if let Some(thinking) = self.thinking.get_mut(host as usize) {
            let packet = thinking.take().expect("its timer was armed");
            self.send(now, host, packet);
        } else {
            let at = now + self.wait(30, 14);
            self.queue.push(at, owner);
        }
    }

    #[inline]
    fn send(&mut self, now: Time, lane_number: u32, mut packet: Packet) {
        let lane = &mut self.lanes[lane_number as usize];
        lane.free_at = lane.free_at.max(now) + self.byte_time.span(u64::from(packet.bytes));
        packet.at = lane.free_at + self.case.delay;
        if lane.ring.is_empty() {
            self.queue.push(packet.at, lane_number);
        }
        lane.ring.push_back(packet);
    }

    /// Between 2^`least` ps and 2^`octaves` times as much, every octave equally likely.
    fn wait(&mut self, least: u32, octaves: u64) -> Span {
        let draw = self.draw();
        let least_ps = 1u64 << (u64::from(least) + draw % octaves);
        Span::from_ps(least_ps + (draw >> 8) % least_ps)
    }

    fn draw(&mut self) -> u64 {
        self.draw = self.draw.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.draw)
    }
}

/// Steele, Lea and Flood's splitmix64 finaliser.
fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Bytes of a data packet on the wire.
const DATA: u32 = Bytes::new(1_500).get() as u32;
/// Bytes of an acknowledgement.
const ACK: u32 = 40;
