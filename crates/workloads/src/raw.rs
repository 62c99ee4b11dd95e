//! Raw packets without a transport, for queueing theory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_fabric::engine::{Stream, Streams};
use plimsoll_fabric::net::{HostId, Packet};
use plimsoll_results::outcome::{Message, Split};
use plimsoll_scenario::distribution::{Sampler, exponential};
use plimsoll_units::{Bytes, Span, Time};

use super::{Actions, Arrival, Reach, Workload, stretched};

/// Senders of single packets.
#[derive(Debug)]
pub(crate) struct RawPackets {
    pub(crate) workload: u16,
    pub(crate) to: HostId,
    pub(crate) size: Sampler<Bytes>,
    /// Mean seconds between two packets of one sender.
    pub(crate) mean_gap: f64,
    /// Equal gaps instead of exponential ones.
    pub(crate) constant_gaps: bool,
    /// Length of a burst and of the pause after it.
    pub(crate) bursts: Option<(Span, Span)>,
    pub(crate) count: Option<u64>,
    pub(crate) until: Time,
    pub(crate) warmup: Time,
    senders: Vec<Sender>,
    /// When which sender sends next.
    due: BinaryHeap<Reverse<(Time, usize)>>,
    on_the_way: u64,
}

#[derive(Debug)]
struct Sender {
    host: HostId,
    stream: Stream,
    sent: u64,
}

/// Flow numbers of raw packets: the workload's, counted down from the top.
pub(crate) fn raw_flow(workload: u16) -> u32 {
    u32::MAX - u32::from(workload)
}

/// The workload that sent a raw packet, if `flow` is not a connection's.
#[inline]
pub fn workload_of_raw(flow: u32) -> Option<u16> {
    (flow > u32::MAX - u32::from(u16::MAX)).then(|| (u32::MAX - flow) as u16)
}

/// A single packet of a workload, `size` bytes on the wire. Everything that makes single packets makes them
/// here; priority and level are the world's to give, which knows the workload by the flow number.
pub fn raw_packet(workload: u16, from: HostId, to: HostId, size: u16) -> Packet {
    let mut packet = Packet::new(from, to, raw_flow(workload), size);
    packet.len = size;
    packet
}

impl RawPackets {
    #[expect(clippy::too_many_arguments, reason = "one value for each key of the workload")]
    pub(crate) fn new(
        streams: &Streams,
        name: &str,
        workload: u16,
        from: &[HostId],
        to: HostId,
        size: Sampler<Bytes>,
        mean_gap: f64,
        constant_gaps: bool,
        bursts: Option<(Span, Span)>,
        count: Option<u64>,
        until: Time,
        warmup: Time,
    ) -> RawPackets {
        let senders = from
            .iter()
            .map(|&host| Sender {
                host,
                stream: streams.stream(&format!("workload/{name}/sender/{}", host.0)),
                sent: 0,
            })
            .collect();
        let mut packets = RawPackets {
            workload,
            to,
            size,
            mean_gap,
            constant_gaps,
            bursts,
            count,
            until,
            warmup,
            senders,
            due: BinaryHeap::new(),
            on_the_way: 0,
        };
        for sender in 0..packets.senders.len() {
            packets.schedule(sender, Time::ZERO);
        }
        packets
    }

    fn schedule(&mut self, sender: usize, now: Time) {
        let from = &mut self.senders[sender];
        if self.count.is_some_and(|count| from.sent >= count) {
            return;
        }
        let factor = if self.constant_gaps { 1.0 } else { exponential(&mut from.stream) };
        let next = after(now, stretched(self.mean_gap, factor), self.bursts);
        if next < self.until {
            self.due.push(Reverse((next, sender)));
        }
    }
}

/// `gap` after `now` by a clock that stands still in the pauses between bursts; `now` is in a burst.
fn after(now: Time, gap: Span, bursts: Option<(Span, Span)>) -> Time {
    let Some((burst, pause)) = bursts else { return now + gap };
    let period = burst + pause;
    let into = Span::from_ps(now.as_ps() % period.as_ps());
    let awake = (into + gap).as_ps();
    let (whole, rest) = (awake / burst.as_ps(), awake % burst.as_ps());
    let first = Time::from_ps(now.as_ps() - into.as_ps());
    Time::from_ps(first.as_ps().saturating_add(whole.saturating_mul(period.as_ps())).saturating_add(rest))
}

impl Workload for RawPackets {
    fn next_due(&self) -> Time {
        self.due.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        while let Some(&Reverse((at, sender))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            let from = &mut self.senders[sender];
            let size = self.size.sample(&mut from.stream).get().clamp(1, u64::from(u16::MAX)) as u16;
            let mut packet = raw_packet(self.workload, from.host, self.to, size);
            packet.seq = from.sent as u32;
            from.sent += 1;
            self.on_the_way += 1;
            actions.packets.push(packet);
            self.schedule(sender, now);
        }
    }

    fn on_message(&mut self, _: Arrival, _: &mut Actions) {
        unreachable!("raw packets are not messages of a connection")
    }

    fn on_packet(&mut self, now: Time, packet: &Packet, split: Split, actions: &mut Actions) {
        self.on_the_way = self.on_the_way.saturating_sub(1);
        let created = now - split.total();
        if created >= self.warmup {
            actions.messages.push(Message {
                workload: self.workload,
                index: u64::from(packet.src.0) << 32 | u64::from(packet.seq),
                query: None,
                source: packet.src.0,
                destination: packet.dst.0,
                bytes: u64::from(packet.size),
                created,
                completed: Some(now),
                ideal: split.serialisation + split.propagation,
                split,
            });
        }
    }

    fn on_lost(&mut self, _: Time) {
        self.on_the_way = self.on_the_way.saturating_sub(1);
    }

    fn reach(&self) -> Reach {
        Reach::Network
    }

    fn is_finished(&self) -> bool {
        self.due.is_empty() && self.on_the_way == 0
    }

    fn on_end(&mut self, _: &mut Actions) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_that_ends_beyond_a_burst_goes_on_in_the_next() {
        let ms = |ms: u64| Time::ZERO + Span::from_ms(ms);
        let after =
            |now, gap| after(ms(now), Span::from_ms(gap), Some((Span::from_ms(10), Span::from_ms(25))));
        assert_eq!(after(0, 9), ms(9));
        assert_eq!(after(0, 10), ms(35));
        assert_eq!(after(8, 5), ms(38));
        // 7 ms of this burst, all of the next two, and 2 ms of the fourth period.
        assert_eq!(after(38, 29), ms(142));
        assert_eq!(super::after(ms(8), Span::from_ms(5), None), ms(13));
    }
}
