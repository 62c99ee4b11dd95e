//! Bursts of packets on a link, as BulletTrains measures them: packets with less than 40 ns between the end of one and
//! the beginning of the next.
//!
//! ```text
//! link   |pkt|pkt|pkt|....|pkt|pkt|      two bursts, if the dots take 40 ns or more
//! ```
//!
//! Lengths of the bursts of a link are in packets of the link's largest size; lengths of bursts from one host to
//! another are in packets, as in `plimsoll bursts`.

use std::collections::BTreeMap;

use plimsoll_bursts::{OpenRuns, scaled_gap};
use plimsoll_results::capture::PacketRecord;
use plimsoll_results::outcome::QueueObservation;
use plimsoll_units::{Rate, Span, Time};

use super::asked::QuantityQuestion;

/// Returns the lengths of a link's bursts in time.
pub(super) fn lengths(of: &QuantityQuestion<'_>) -> Vec<f64> {
    bursts(of).into_iter().map(|(us, _)| of.us(us)).collect()
}

/// Returns the bytes of a link's bursts over the size of the largest packet of the link.
pub(super) fn packets(of: &QuantityQuestion<'_>) -> Vec<f64> {
    bursts(of).into_iter().map(|(_, packets)| packets).collect()
}

/// Returns the bursts of a link that begin after the warm-up, but for the last one, whose end the run may have cut: the
/// time from its first bit to its last in us, and its length in packets.
fn bursts(of: &QuantityQuestion<'_>) -> Vec<(f64, f64)> {
    let Some((queue, packets)) = captured(of) else { return Vec::new() };
    let packets: Vec<PacketRecord<'_>> = packets.collect();
    let largest = f64::from(packets.iter().map(|packet| packet.size).max().unwrap_or(1));
    let gap = scaled_gap(Rate::from_gbps(10));
    let mut runs = OpenRuns::default();
    let finished = packets
        .iter()
        .filter_map(|packet| runs.on_frame(begin(queue, packet), packet.time, u64::from(packet.size), gap));
    let begun = finished.filter(|run| run.start.as_ps() >= of.warmup.as_ps());
    begun.map(|run| (run.duration().as_us_f64(), run.bytes as f64 / largest)).collect()
}

pub(super) fn of_pairs(of: &QuantityQuestion<'_>) -> Vec<f64> {
    pairs(of, |_| true)
}

/// Returns the bursts of pairs without packets that have no data: these neither are bursts nor end any.
pub(super) fn of_pairs_with_data(of: &QuantityQuestion<'_>) -> Vec<f64> {
    pairs(of, has_data)
}

/// Returns the lengths, in packets, of the bursts from one host to another that pass a link and begin after the
/// warm-up, but for the last one of each pair.
fn pairs(of: &QuantityQuestion<'_>, counts: fn(&PacketRecord<'_>) -> bool) -> Vec<f64> {
    let Some((queue, packets)) = captured(of) else { return Vec::new() };
    let gap = scaled_gap(queue.rate);
    let warmup = of.outcome.warmup.max(of.warmup);
    let mut pairs: BTreeMap<(u32, u32), OpenRuns> = BTreeMap::new();
    let finished = packets.filter(counts).filter_map(|packet| {
        let runs = pairs.entry((packet.source, packet.destination)).or_default();
        runs.on_frame(begin(queue, &packet), packet.time, u64::from(packet.size), gap)
    });
    finished.filter(|run| run.start.as_ps() >= warmup.as_ps()).map(|run| run.packets as f64).collect()
}

/// Returns the mean number of data kilobytes that a pure acknowledgement on a link acknowledges anew, after the
/// warm-up; `None` without acknowledgements.
pub(super) fn ack_ratio(of: &QuantityQuestion<'_>) -> Option<f64> {
    // By connection and sender: the first and the last number, and how many acknowledged something new.
    let mut flows: BTreeMap<(u64, u32), (u64, u64, u64)> = BTreeMap::new();
    for packet in captured(of)?.1.filter(|packet| packet.payload == 0 && is_warm(of, packet.time)) {
        let Some(ack) = packet.ack else { continue };
        let (_, last, count) = flows.entry((packet.flow, packet.source)).or_insert((ack, ack, 0));
        *count += u64::from(ack > *last);
        *last = ack.max(*last);
    }
    let (bytes, count) =
        flows.values().fold((0, 0), |(bytes, count), of| (bytes + of.1 - of.0, count + of.2));
    (count > 0).then(|| bytes as f64 / count as f64 * 1e-3)
}

/// Returns how many percent of the packets on a link, after the warm-up, are to one of the most recently used
/// destinations, of which the argument is the number; `None` without packets.
pub(super) fn path_cache(of: &QuantityQuestion<'_>) -> Option<f64> {
    let entries = of.count(0) as usize;
    let (mut cache, mut hits, mut packets) = (Vec::new(), 0u64, 0u64);
    for packet in captured(of)?.1.filter(|packet| is_warm(of, packet.time)) {
        let held = cache.iter().position(|destination| *destination == packet.destination);
        hits += u64::from(held.is_some());
        packets += 1;
        held.map(|place| cache.remove(place));
        cache.insert(0, packet.destination);
        cache.truncate(entries);
    }
    (packets > 0).then(|| 100.0 * hits as f64 / packets as f64)
}

/// Returns how many pauses of a connection there are in each megabyte of data on a link, after the warm-up, that exceed
/// the argument from one packet with data to the next: where a switch that selects paths by flowlets of that gap may
/// change the path. `None` without data.
pub(super) fn path_changes(of: &QuantityQuestion<'_>) -> Option<f64> {
    // By connection and sender: the time of the last packet.
    let mut flows: BTreeMap<(u64, u32), Time> = BTreeMap::new();
    let (gap, mut changes, mut bytes) = (of.span(0), 0u64, 0u64);
    for packet in captured(of)?.1.filter(has_data) {
        let last = flows.insert((packet.flow, packet.source), packet.time);
        if is_warm(of, packet.time) {
            changes += u64::from(last.is_some_and(|last| packet.time.saturating_since(last) > gap));
            bytes += u64::from(packet.payload);
        }
    }
    (bytes > 0).then(|| 1e6 * changes as f64 / bytes as f64)
}

/// Returns the share of each day of a host's circuit that the traffic of a link after the warm-up would fill, in
/// percent of the link's rate. The host has one circuit: it opens to where the next packet with data goes as that
/// begins to leave, and stays for the argument's time; data to other destinations does not fill it. The last day, which
/// the run may have cut, does not count.
pub(super) fn day_filled(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let Some((queue, packets)) = captured(of) else { return Vec::new() };
    let day = of.span(0);
    // The end of the day, the destination of its circuit, and how long data to that has taken.
    let mut today: Option<(Time, u32, Span)> = None;
    let mut filled = Vec::new();
    for packet in packets.filter(|packet| has_data(packet) && is_warm(of, begin(queue, packet))) {
        let begins = begin(queue, &packet);
        let time = queue.rate.byte_time().span(u64::from(packet.size));
        if let Some((ends, destination, used)) = &mut today
            && begins < *ends
        {
            if packet.destination == *destination {
                *used += time.min(ends.saturating_since(begins));
            }
            continue;
        }
        let tomorrow = (begins + day, packet.destination, time.min(day));
        let over = today.replace(tomorrow).map(|(_, _, used)| 100.0 * used.as_us_f64() / day.as_us_f64());
        filled.extend(over);
    }
    filled
}

/// Returns the watched queue, and the captured packets of its link.
fn captured<'a>(
    of: &QuantityQuestion<'a>,
) -> Option<(&'a QueueObservation, impl Iterator<Item = PacketRecord<'a>>)> {
    let (queue, capture) = (of.queue()?, &of.outcome.capture);
    let interface = capture.ports.iter().position(|port| *port == queue.port)? as u32;
    let packets = capture.packets.iter().map(|packet| packet.record());
    Some((queue, packets.filter(move |packet| packet.interface == interface)))
}

/// Returns when the first bit of a packet was on the link.
fn begin(queue: &QueueObservation, packet: &PacketRecord<'_>) -> Time {
    let time = queue.rate.byte_time().span(u64::from(packet.size));
    Time::from_ps(packet.time.as_ps().saturating_sub(time.as_ps()))
}

fn has_data(packet: &PacketRecord<'_>) -> bool {
    packet.payload > 0
}

/// Returns whether a time is after the warm-up of the run.
fn is_warm(of: &QuantityQuestion<'_>, time: Time) -> bool {
    time.as_ps() >= of.outcome.warmup.as_ps()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measure;
    use plimsoll_results::capture::{Capture, CapturedPacket, EcnField, Flags};
    use plimsoll_results::outcome::Outcome;

    fn samples(outcome: &Outcome, text: &str) -> Vec<f64> {
        Measure::parse(text).unwrap().samples(outcome, Span::ZERO)
    }

    #[test]
    fn packets_close_together_are_a_burst() {
        let queue = |port: &str| QueueObservation {
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
            let (ack, sack, flags, ecn) = (None, &[][..], Flags::default(), EcnField::NotEct);
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
        assert_eq!(samples(&outcome, "burst.mean(queue.nic)"), [3.039, 1.2]);
        assert_eq!(samples(&outcome, "burst_packets.mean(queue.nic)"), [2.5, 1.0]);
        let burst = Measure::parse("burst.mean(queue.nic)").unwrap();
        assert_eq!(burst.samples(&outcome, Span::from_ns(3_500)), [1.2]);
        assert_eq!(samples(&outcome, "burst.mean(queue.none)"), [0.0; 0]);
    }

    /// Host 0 sends to 1, 1, 2, an acknowledgement to 3, and to 2; 1500 B take 1200 ns, 100 B 80 ns.
    #[test]
    fn bursts_of_pairs_end_at_packets_to_others() {
        let queue = QueueObservation {
            name: "nic".to_owned(),
            port: "nic".to_owned(),
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
        let packet = |ns, destination, size, payload, ack| {
            CapturedPacket::new(&PacketRecord {
                time: Time::ZERO + Span::from_ns(ns),
                interface: 0,
                source: 0,
                destination,
                flow: u64::from(destination),
                seq: 0,
                ack,
                size,
                payload,
                flags: Flags::default(),
                ecn: EcnField::NotEct,
                sack: &[],
            })
        };
        let packets = vec![
            packet(1_200, 1, 1_500, 1_422, Some(1)),
            packet(2_400, 1, 1_500, 1_422, Some(1)),
            packet(3_600, 2, 1_500, 1_422, Some(1)),
            packet(3_680, 3, 100, 0, Some(1_000)),
            packet(4_880, 2, 1_500, 1_422, Some(1)),
            packet(4_960, 3, 100, 0, Some(5_000)),
            packet(5_040, 3, 100, 0, Some(5_000)),
            packet(9_000, 1, 1_500, 1_422, Some(1)),
            packet(12_000, 2, 1_500, 1_422, Some(1)),
            packet(13_000, 3, 100, 0, Some(7_000)),
        ];
        let capture = Capture { ports: vec!["nic".to_owned()], packets };
        let outcome = Outcome { queues: vec![queue], capture, ..Outcome::default() };
        // Two to 1, one to 2 on each side of the acknowledgement.
        let samples = |text: &str| samples(&outcome, text);
        assert_eq!(samples("pair_data_burst.mean(queue.nic)"), [1.0, 2.0, 1.0]);
        assert_eq!(samples("pair_burst.mean(queue.nic)"), [1.0, 1.0, 2.0, 1.0, 2.0]);
        // From 1,000 to 7,000 by two acknowledgements that are new.
        assert_eq!(samples("ack_ratio(queue.nic)"), [3.0]);
        // 1; then 2 after 3; then 3 once more: of ten packets.
        assert_eq!(samples("path_cache(queue.nic, 1)"), [20.0]);
        assert_eq!(samples("path_cache(queue.nic, 3)"), [70.0]);
        assert_eq!(samples("ack_ratio(queue.other)"), [0.0; 0]);
        // The flow to 1 has gaps of 1.2 and 6.6 us, that to 2 of 1.28 and 7.12 us, in six packets of 1,422 B.
        let changes = |ns: u64| samples(&format!("path_changes(queue.nic, {ns}ns)"))[0];
        let counts = [1_000, 1_250, 6_599, 6_600, 8_000].map(|ns| (changes(ns) * 6.0 * 1_422e-6).round());
        assert_eq!(counts, [4.0, 3.0, 2.0, 1.0, 0.0]);
        assert_eq!(samples("path_changes(queue.other, 0ns)"), [0.0; 0]);
        // Days to 1 from 0 us on, of which two packets fill 2,400 ns; then to 2 from 3.68 us on; to 1; to 2.
        assert_eq!(samples("day_filled.mean(queue.nic, 3000ns)"), [80.0, 40.0, 40.0]);
        // Of a packet that the end of a day cuts, a part counts: 600 of 1,200 ns in the first, 520 ns in the second.
        let filled = samples("day_filled.mean(queue.nic, 1800ns)");
        assert_eq!(filled.iter().map(|percent| percent.round()).collect::<Vec<_>>(), [100.0, 96.0, 67.0]);
    }
}
