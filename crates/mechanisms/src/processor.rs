//! The processor of a host: the costs of its network stack, and the order of its work (BulletTrains, chapter 3 of seed
//! 002: without offloads "the kernel cannot keep up with the rate of packets").
//!
//! ```text
//!            interrupt core (first)                     application core (the same, or a second)
//! send       call, segment + packet for each piece  <── byte, once a call of the application
//! receive    packet, once a frame of the NIC ──> segment, once a segment of TCP ──> byte, for the copy
//! ```
//!
//! A frame is the unit that passes between the NIC and the host: with segmentation offload or LRO a large one,
//! otherwise a packet. A segment is the unit that passes between the stack and TCP: GRO makes one of several frames. An
//! acknowledgement without data costs a frame and no segment. A core does its work in the order of its arrival, without
//! preemption.

use std::collections::VecDeque;

use plimsoll_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::mechanism::{Mechanism, Section, Table};

/// The processor that runs a host's network stack. Without this table the stack takes no time. Data that it holds
/// counts as waiting in the NIC. It hands data to the NIC piece by piece, as `host.bursts` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessorParams {
    /// The number of cores: 1, or 2 where interrupts and the stack have one and applications the other. Default 1.
    pub cores: u32,
    /// The cost of an interrupt, with any number of frames: at most 1 ms. Default 1 us (an assumption).
    pub interrupt: Span,
    /// How many frames the stack takes from the NIC at a time before other work has its turn: 1 to 65536. Default 64
    /// (NAPI's weight).
    pub budget: u32,
    /// How many packets the NIC holds until the stack takes them, 1 to 65536; a packet that finds no room is lost.
    /// Default 512 (the receive ring of Linux's ixgbe).
    pub ring: u32,
    /// The cost of each time that TCP sends data, on an acknowledgement, a timer or a call of the application, for any
    /// number of segments: at most 1 ms. Default 0 s.
    pub send_call: Span,
    /// The costs of the sending direction, for each packet, segment and byte.
    pub send: StackCosts,
    /// The costs of the receiving direction, for each packet, segment and byte.
    pub receive: StackCosts,
}

/// The costs of one direction of a host's stack, each at most 1 ms. Default none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StackCosts {
    /// The cost of a frame that passes between the NIC and the host, with data or without.
    pub packet: Span,
    /// The cost of a segment of data that passes between the stack and TCP.
    pub segment: Span,
    /// The cost of a byte that is copied from or to the application, on the application's core.
    pub byte: Span,
}

impl Default for ProcessorParams {
    fn default() -> ProcessorParams {
        ProcessorParams {
            cores: 1,
            interrupt: Span::from_us(1),
            budget: 64,
            ring: 512,
            send_call: Span::ZERO,
            send: StackCosts::default(),
            receive: StackCosts::default(),
        }
    }
}

impl Mechanism for ProcessorParams {
    const TABLE: Table = Table::replaced_whole(Section::Host, "processor", "the host's stack takes no time");

    fn validate(&self) -> Result<(), InvalidParam> {
        InvalidParam::unless((1..=2).contains(&self.cores), "cores", self.cores, "1 or 2")?;
        let counts = 1..=65_536;
        InvalidParam::unless(counts.contains(&self.budget), "budget", self.budget, "1 to 65536 frames")?;
        InvalidParam::unless(counts.contains(&self.ring), "ring", self.ring, "1 to 65536 packets")?;
        for (key, cost) in [
            ("interrupt", self.interrupt),
            ("send_call", self.send_call),
            ("send.packet", self.send.packet),
            ("send.segment", self.send.segment),
            ("send.byte", self.send.byte),
            ("receive.packet", self.receive.packet),
            ("receive.segment", self.receive.segment),
            ("receive.byte", self.receive.byte),
        ] {
            InvalidParam::unless(cost <= Span::from_ms(1), key, cost, "at most 1ms")?;
        }
        Ok(())
    }
}

/// A core, which does work of type `W` in the order of its arrival.
#[derive(Clone, Debug)]
pub struct Core<W> {
    waiting: VecDeque<(Span, W)>,
    /// The work being done, and when it ends.
    running: Option<(Time, W)>,
    /// From when on time counts as busy.
    counted_from: Time,
    /// The time that work takes or took, up to the end of the work being done.
    busy: Span,
}

impl<W> Core<W> {
    /// Makes an idle core that counts its busy time from `counted_from` on.
    pub fn new(counted_from: Time) -> Core<W> {
        Core { waiting: VecDeque::new(), running: None, counted_from, busy: Span::ZERO }
    }

    /// Adds `work` that takes `cost`, after all that waits. Returns whether it starts at once: ask
    /// [`next_due`](Self::next_due) then.
    pub fn on_work(&mut self, now: Time, cost: Span, work: W) -> bool {
        let starts = self.running.is_none();
        if starts {
            self.start(now, cost, work);
        } else {
            self.waiting.push_back((cost, work));
        }
        starts
    }

    /// Returns when the work being done ends; `None` if the core is idle.
    pub fn next_due(&self) -> Option<Time> {
        self.running.as_ref().map(|(ends, _)| *ends)
    }

    /// Returns the work that has ended by `now`, and starts the next in line.
    pub fn poll(&mut self, now: Time) -> Option<W> {
        let (_, done) = self.running.take_if(|(ends, _)| *ends <= now)?;
        if let Some((cost, work)) = self.waiting.pop_front() {
            self.start(now, cost, work);
        }
        if self.waiting.is_empty() {
            // The ring begins anew, in memory that is in the cache.
            self.waiting.clear();
        }
        Some(done)
    }

    /// Returns how long the core was busy until `now`, from the time on that it counts from.
    pub fn busy(&self, now: Time) -> Span {
        let left =
            self.next_due().map_or(Span::ZERO, |ends| ends.saturating_since(now.max(self.counted_from)));
        self.busy.saturating_sub(left)
    }

    fn start(&mut self, now: Time, cost: Span, work: W) {
        let ends = now.saturating_add(cost);
        self.busy += ends.saturating_since(now.max(self.counted_from));
        self.running = Some((ends, work));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn work_is_done_in_order_and_takes_its_time() {
        let mut core = Core::new(Time::ZERO);
        assert!(core.on_work(at_us(1), Span::from_us(5), 'a'));
        assert!(!core.on_work(at_us(2), Span::from_us(3), 'b'));
        assert_eq!((core.next_due(), core.poll(at_us(5))), (Some(at_us(6)), None));
        assert_eq!((core.poll(at_us(6)), core.next_due()), (Some('a'), Some(at_us(9))));
        assert_eq!((core.poll(at_us(9)), core.next_due()), (Some('b'), None));
        assert_eq!(core.poll(at_us(10)), None);
    }

    #[test]
    fn busy_time_is_counted_up_to_now_and_from_the_warm_up_on() {
        let mut core = Core::new(at_us(10));
        core.on_work(at_us(4), Span::from_us(4), 'a');
        assert_eq!((core.busy(at_us(6)), core.poll(at_us(8))), (Span::ZERO, Some('a')));
        core.on_work(at_us(8), Span::from_us(7), 'b');
        for (us, busy) in [(9, 0), (10, 0), (12, 2), (15, 5), (20, 5)] {
            assert_eq!(core.busy(at_us(us)), Span::from_us(busy), "{us}");
        }
    }

    #[test]
    fn ranges() {
        let default = ProcessorParams::default;
        default().validate().unwrap();
        let slow = StackCosts { byte: Span::from_ms(2), ..StackCosts::default() };
        for (key, params) in [
            ("cores", ProcessorParams { cores: 3, ..default() }),
            ("budget", ProcessorParams { budget: 0, ..default() }),
            ("ring", ProcessorParams { ring: 0, ..default() }),
            ("interrupt", ProcessorParams { interrupt: Span::from_ms(2), ..default() }),
            ("receive.byte", ProcessorParams { receive: slow, ..default() }),
        ] {
            assert_eq!(params.validate().unwrap_err().key, key);
        }
    }
}
