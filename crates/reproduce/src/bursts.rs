//! Bursts of packets on a link, as BulletTrains measures them: packets with less than 40 ns between the end of one and
//! the beginning of the next.
//!
//! ```text
//! link   |pkt|pkt|pkt|....|pkt|pkt|      two bursts, if the dots take 40 ns or more
//! ```
//!
//! [`bursts`] are those of a link, and their lengths are in packets of the link's largest size; [`pair_bursts`] are those
//! from one host to another, in packets, as in `plimsoll bursts`.

use std::collections::BTreeMap;

use plimsoll_bursts::{Run, Runs, scaled_gap};
use plimsoll_results::capture::PacketRecord;
use plimsoll_results::outcome::{Outcome, Queue};
use plimsoll_units::{Rate, Span, Time};

/// A burst of packets on a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Burst {
    /// The time from its first bit to its last, in us.
    pub(crate) us: f64,
    /// Its bytes over the size of the largest packet of the link.
    pub(crate) packets: f64,
}

/// Returns the bursts of the link of the watched queue `name` that begin after the `warmup`, but for the last one,
/// whose end the run may have cut.
pub(crate) fn bursts(outcome: &Outcome, name: &str, warmup: Span) -> impl Iterator<Item = Burst> {
    let queue = outcome.queues.iter().find(|queue| queue.name == name);
    let interface = queue.and_then(|queue| outcome.capture.ports.iter().position(|port| *port == queue.port));
    let of_link = |packet: &PacketRecord<'_>| Some(packet.interface as usize) == interface;
    let all = outcome.capture.packets.iter().map(|packet| packet.record());
    let packets: Vec<PacketRecord<'_>> = all.filter(of_link).collect();
    let largest = packets.iter().map(|packet| packet.size).max().unwrap_or(1);
    let gap = scaled_gap(Rate::from_gbps(10));
    let mut runs = Runs::default();
    let finished: Vec<Run> = packets
        .iter()
        .filter_map(|packet| {
            let time = queue.map_or(Span::ZERO, |queue| queue.rate.byte_time().span(u64::from(packet.size)));
            let begins = Time::from_ps(packet.time.as_ps().saturating_sub(time.as_ps()));
            runs.on_frame(begins, packet.time, u64::from(packet.size), gap)
        })
        .collect();
    let begun = finished.into_iter().filter(move |run| run.start.as_ps() >= warmup.as_ps());
    begun.map(move |run| Burst {
        us: run.duration().as_us_f64(),
        packets: run.bytes as f64 / f64::from(largest),
    })
}

/// Returns the lengths, in packets, of the bursts from one host to another that pass the link of the watched queue
/// `name` and begin after the warm-up, but for the last one of each pair. With `data_only`, packets without data do not
/// count: they neither are bursts nor end any.
pub(crate) fn pair_bursts(outcome: &Outcome, name: &str, warmup: Span, data_only: bool) -> Vec<u64> {
    let Some((queue, interface)) = watched(outcome, name) else { return Vec::new() };
    let gap = scaled_gap(queue.rate);
    let begin = outcome.warmup.max(warmup);
    let mut pairs: BTreeMap<(u32, u32), Runs> = BTreeMap::new();
    let packets = outcome.capture.packets.iter().map(|packet| packet.record());
    let counted =
        packets.filter(|packet| packet.interface == interface && (!data_only || packet.payload > 0));
    let finished = counted.filter_map(|packet| {
        let time = queue.rate.byte_time().span(u64::from(packet.size));
        let begins = Time::from_ps(packet.time.as_ps().saturating_sub(time.as_ps()));
        let runs = pairs.entry((packet.source, packet.destination)).or_default();
        runs.on_frame(begins, packet.time, u64::from(packet.size), gap)
    });
    finished.filter(|run| run.start.as_ps() >= begin.as_ps()).map(|run| run.packets).collect()
}

/// Returns the mean number of data bytes that a pure acknowledgement on the link of the watched queue `name`
/// acknowledges anew, after the warm-up; `None` if there is none.
pub(crate) fn ack_ratio(outcome: &Outcome, name: &str) -> Option<f64> {
    let (_, interface) = watched(outcome, name)?;
    // By connection and sender: the first and the last number, and how many acknowledged something new.
    let mut flows: BTreeMap<(u64, u32), (u64, u64, u64)> = BTreeMap::new();
    for packet in outcome.capture.packets.iter().map(|packet| packet.record()) {
        let counts = packet.interface == interface
            && packet.payload == 0
            && packet.time.as_ps() >= outcome.warmup.as_ps();
        if let (true, Some(ack)) = (counts, packet.ack) {
            let (_, last, count) = flows.entry((packet.flow, packet.source)).or_insert((ack, ack, 0));
            *count += u64::from(ack > *last);
            *last = ack.max(*last);
        }
    }
    let (bytes, count) =
        flows.values().fold((0, 0), |(bytes, count), of| (bytes + of.1 - of.0, count + of.2));
    (count > 0).then(|| bytes as f64 / count as f64)
}

/// Returns the watched queue `name` and the number of its link's interface in the capture.
fn watched<'a>(outcome: &'a Outcome, name: &str) -> Option<(&'a Queue, u32)> {
    let queue = outcome.queues.iter().find(|queue| queue.name == name)?;
    let interface = outcome.capture.ports.iter().position(|port| *port == queue.port)?;
    Some((queue, interface as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_results::capture::{Capture, CapturedPacket, Ecn, Flags};
    use plimsoll_results::outcome::Queue;

    #[test]
    fn packets_close_together_are_a_burst() {
        let queue = |port: &str| Queue {
            name: port.to_owned(),
            port: port.to_owned(),
            rate: Rate::from_gbps(10),
            every: Span::from_ms(1),
            from: Time::ZERO,
            mean_bytes: Vec::new(),
            max_bytes: Vec::new(),
            time_at: Vec::new(),
            drops: 0,
            marks: 0,
            packets: 0,
            bytes: 0,
        };
        let packet = |interface, ns, size| {
            let (ack, sack, flags, ecn) = (None, &[][..], Flags::default(), Ecn::NotEct);
            let time = Time::ZERO + Span::from_ns(ns);
            let (source, destination, flow, seq, payload) = (0, 1, 0, 0, size);
            CapturedPacket::new(&PacketRecord {
                time,
                interface,
                source,
                destination,
                flow,
                seq,
                ack,
                size,
                payload,
                flags,
                ecn,
                sack,
            })
        };
        // 1500 B take 1200 ns. The third begins 39 ns after the second, the fourth 40 ns after that.
        let packets = vec![
            packet(1, 2_000, 1_500),
            packet(1, 3_200, 1_500),
            packet(0, 3_500, 1_500),
            packet(1, 3_839, 750),
            packet(1, 5_079, 1_500),
            packet(1, 9_000, 1_500),
        ];
        let capture = Capture { ports: vec!["other".to_owned(), "nic".to_owned()], packets };
        let outcome = Outcome { queues: vec![queue("other"), queue("nic")], capture, ..Outcome::default() };
        let seen: Vec<Burst> = bursts(&outcome, "nic", Span::ZERO).collect();
        assert_eq!(seen, [Burst { us: 3.039, packets: 2.5 }, Burst { us: 1.2, packets: 1.0 }]);
        assert_eq!(bursts(&outcome, "nic", Span::from_ns(3_500)).count(), 1);
        assert_eq!(bursts(&outcome, "none", Span::ZERO).count(), 0);
    }
}
