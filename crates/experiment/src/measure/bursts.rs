//! Bursts of packets on a link, as BulletTrains measures them: packets with less than 40 ns between the end of one and
//! the beginning of the next.
//!
//! ```text
//! link   |pkt|pkt|pkt|....|pkt|pkt|      two bursts, if the dots take 40 ns or more
//! ```
//!
//! [`bursts`] are those of a link, and their lengths are in packets of the link's largest size; [`pair_bursts`] are
//! those from one host to another, in packets, as in `plimsoll bursts`.

use std::collections::BTreeMap;

use plimsoll_bursts::{Run, Runs, scaled_gap};
use plimsoll_results::capture::PacketRecord;
use plimsoll_results::outcome::{Outcome, Queue};
use plimsoll_units::{Rate, Span, Time};

/// A burst of packets on a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Burst {
    /// The time from its first bit to its last, in us.
    pub(super) us: f64,
    /// Its bytes over the size of the largest packet of the link.
    pub(super) packets: f64,
}

/// Returns the bursts of the link of the watched queue `name` that begin after the `warmup`, but for the last one,
/// whose end the run may have cut.
pub(super) fn bursts(outcome: &Outcome, name: &str, warmup: Span) -> impl Iterator<Item = Burst> {
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
pub(super) fn pair_bursts(outcome: &Outcome, name: &str, warmup: Span, data_only: bool) -> Vec<u64> {
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
pub(super) fn ack_ratio(outcome: &Outcome, name: &str) -> Option<f64> {
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

/// Returns how many percent of the packets on the link of the watched queue `name`, after the warm-up, are to one of
/// the `entries` destinations that were used last; `None` if there is no packet.
pub(super) fn path_cache_percent(outcome: &Outcome, name: &str, entries: usize) -> Option<f64> {
    let (_, interface) = watched(outcome, name)?;
    let (mut cache, mut hits, mut packets) = (Vec::with_capacity(entries), 0u64, 0u64);
    for packet in outcome.capture.packets.iter().map(|packet| packet.record()) {
        if packet.interface != interface || packet.time.as_ps() < outcome.warmup.as_ps() {
            continue;
        }
        let held = cache.iter().position(|destination| *destination == packet.destination);
        hits += u64::from(held.is_some());
        packets += 1;
        held.map(|place| cache.remove(place));
        cache.insert(0, packet.destination);
        cache.truncate(entries);
    }
    (packets > 0).then(|| 100.0 * hits as f64 / packets as f64)
}

/// Returns how many pauses of a connection there are in each megabyte of data on the link of the watched queue `name`,
/// after the warm-up, that exceed `gap` from one packet with data to the next: where a switch that selects paths by
/// flowlets of that gap may change the path. `None` if there is no data.
pub(super) fn path_changes_per_mb(outcome: &Outcome, name: &str, gap: Span) -> Option<f64> {
    let (_, interface) = watched(outcome, name)?;
    // By connection and sender: the time of the last packet.
    let mut flows: BTreeMap<(u64, u32), Time> = BTreeMap::new();
    let (mut changes, mut bytes) = (0u64, 0u64);
    let packets = outcome.capture.packets.iter().map(|packet| packet.record());
    for packet in packets.filter(|packet| packet.interface == interface && packet.payload > 0) {
        let last = flows.insert((packet.flow, packet.source), packet.time);
        if packet.time.as_ps() >= outcome.warmup.as_ps() {
            changes += u64::from(last.is_some_and(|last| packet.time.saturating_since(last) > gap));
            bytes += u64::from(packet.payload);
        }
    }
    (bytes > 0).then(|| 1e6 * changes as f64 / bytes as f64)
}

/// Returns how far each day of a host's circuit would be filled by what passes the link of the watched queue `name`
/// after the warm-up, in percent of the link's rate. The host has one circuit: it opens to where the next packet with
/// data goes as that begins to leave, and stands for `day`; data to other destinations does not fill it. The last day,
/// which the run may have cut, does not count.
pub(super) fn days_filled_percent(outcome: &Outcome, name: &str, day: Span) -> Vec<f64> {
    let Some((queue, interface)) = watched(outcome, name) else { return Vec::new() };
    // The end of the day, the destination of its circuit, and how long data to that has taken.
    let mut today: Option<(Time, u32, Span)> = None;
    let mut filled = Vec::new();
    let packets = outcome.capture.packets.iter().map(|packet| packet.record());
    for packet in packets.filter(|packet| packet.interface == interface && packet.payload > 0) {
        let time = queue.rate.byte_time().span(u64::from(packet.size));
        let begins = Time::from_ps(packet.time.as_ps().saturating_sub(time.as_ps()));
        if begins.as_ps() < outcome.warmup.as_ps() {
            continue;
        }
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

    /// Host 0 sends to 1, 1, 2, an acknowledgement to 3, and to 2; 1500 B take 1200 ns, 100 B 80 ns.
    #[test]
    fn bursts_of_pairs_end_at_packets_to_others() {
        let queue = Queue {
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
                ecn: Ecn::NotEct,
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
        assert_eq!(pair_bursts(&outcome, "nic", Span::ZERO, true), [1, 2, 1]);
        assert_eq!(pair_bursts(&outcome, "nic", Span::ZERO, false), [1, 1, 2, 1, 2]);
        // From 1,000 to 7,000 by two acknowledgements that are new.
        assert_eq!(ack_ratio(&outcome, "nic"), Some(3_000.0));
        // 1; then 2 after 3; then 3 once more: of ten packets.
        assert_eq!(path_cache_percent(&outcome, "nic", 1), Some(20.0));
        assert_eq!(path_cache_percent(&outcome, "nic", 3), Some(70.0));
        assert_eq!(ack_ratio(&outcome, "other"), None);
        // The flow to 1 has gaps of 1.2 and 6.6 us, that to 2 of 1.28 and 7.12 us, in six packets of 1,422 B.
        let changes = |ns| path_changes_per_mb(&outcome, "nic", Span::from_ns(ns)).expect("there is data");
        let counts = [1_000, 1_250, 6_599, 6_600, 8_000].map(|ns| (changes(ns) * 6.0 * 1_422e-6).round());
        assert_eq!(counts, [4.0, 3.0, 2.0, 1.0, 0.0]);
        assert_eq!(path_changes_per_mb(&outcome, "other", Span::ZERO), None);
        // Days to 1 from 0 us on, of which two packets fill 2,400 ns; then to 2 from 3.68 us on; to 1; to 2.
        assert_eq!(days_filled_percent(&outcome, "nic", Span::from_ns(3_000)), [80.0, 40.0, 40.0]);
        // Of a packet that the end of a day cuts, a part counts: 600 of 1,200 ns in the first, 520 ns in the second.
        let filled = days_filled_percent(&outcome, "nic", Span::from_ns(1_800));
        assert_eq!(filled.iter().map(|percent| percent.round()).collect::<Vec<_>>(), [100.0, 96.0, 67.0]);
    }
}
