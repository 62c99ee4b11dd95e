//! [`Flows`]: which byte ranges of which TCP flows were captured, and in which burst, within bounds of memory.
//!
//! A range that is seen again was sent again. The range's first burst is the one whose loss it shows, unless the sender
//! was wrong about the loss.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::frame::Segment;

/// A flow: the pair of hosts, and the ports.
pub(crate) type FlowKey = (u32, u16, u16);

/// What the payload of a segment was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// It brought new bytes, or none.
    New,
    /// Its range was in this burst of the pair before.
    Again(u64),
    /// Its range is older than any that is remembered.
    Forgotten,
    /// Its range fills a hole: it was lost or reordered before it came to where the capture was made.
    Fills,
    /// It is a second copy, in the same burst.
    Copy,
}

/// A contiguous range of one burst.
#[derive(Clone, Copy, Debug)]
struct Range {
    from: u32,
    to: u32,
    burst: u64,
}

/// A flow in one direction.
#[derive(Debug, Default)]
struct Flow {
    /// The byte after the highest one seen.
    highest: Option<u32>,
    ack: Option<u32>,
    ranges: VecDeque<Range>,
    has_forgotten: bool,
}

/// The flows that were active last, in two generations: when the younger is full, the older is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    young: HashMap<FlowKey, Flow>,
    old: HashMap<FlowKey, Flow>,
}

/// The most flows of a generation.
const FLOWS: usize = 16_384;
/// The most ranges that a flow remembers.
const RANGES: usize = 128;

impl Flows {
    /// Registers a segment of the pair's open burst. Returns what its payload was, and the bytes that it acknowledges
    /// beyond the acknowledgement before it, if there was one.
    pub(crate) fn on_segment(&mut self, key: FlowKey, segment: &Segment, burst: u64) -> (Seen, Option<u32>) {
        if self.young.len() >= FLOWS && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        let flow = self.young.entry(key).or_insert_with(|| self.old.remove(&key).unwrap_or_default());
        if segment.syn {
            *flow = Flow::default();
        }
        let acked = segment.ack.and_then(|ack| flow.acknowledge(ack));
        let seen = if segment.payload > 0 { flow.receive(segment, burst) } else { Seen::New };
        (seen, acked)
    }
}

impl Flow {
    fn acknowledge(&mut self, ack: u32) -> Option<u32> {
        let Some(before) = self.ack else {
            self.ack = Some(ack);
            return None;
        };
        let advance = u32::try_from(after(ack, before)).unwrap_or(0);
        if advance > 0 {
            self.ack = Some(ack);
        }
        Some(advance)
    }

    fn receive(&mut self, segment: &Segment, burst: u64) -> Seen {
        let (from, to) = (segment.sequence, segment.sequence.wrapping_add(segment.payload));
        let Some(highest) = self.highest else {
            self.highest = Some(to);
            self.remember(from, to, burst);
            return Seen::New;
        };
        if after(to, highest) > 0 {
            self.highest = Some(to);
            self.remember(from, to, burst);
            return Seen::New;
        }
        // A keep-alive repeats the last byte (RFC 9293, section 3.8.4).
        if segment.payload == 1 && after(highest, from) == 1 {
            return Seen::New;
        }
        let holds = |range: &&Range| after(from, range.from) >= 0 && after(range.to, from) > 0;
        let seen = match self.ranges.iter().rev().find(holds) {
            Some(range) if range.burst == burst => return Seen::Copy,
            Some(range) => Seen::Again(range.burst),
            None if self.has_forgotten
                && self.ranges.front().is_some_and(|oldest| after(oldest.from, from) > 0) =>
            {
                Seen::Forgotten
            }
            None => Seen::Fills,
        };
        self.remember(from, to, burst);
        seen
    }

    fn remember(&mut self, from: u32, to: u32, burst: u64) {
        match self.ranges.back_mut() {
            Some(last) if last.burst == burst && last.to == from => last.to = to,
            _ => {
                if self.ranges.len() == RANGES {
                    self.ranges.pop_front();
                    self.has_forgotten = true;
                }
                self.ranges.push_back(Range { from, to, burst });
            }
        }
    }
}

/// Returns how far `this` is after `that` in TCP's circle of sequence numbers.
fn after(this: u32, that: u32) -> i32 {
    this.wrapping_sub(that) as i32
}
