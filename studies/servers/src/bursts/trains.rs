//! The segments that a host hands to its device, and trains of them.
//!
//! ```text
//! handed over   [seg 44]  [seg 44]         [seg 12]           a frame of the packet socket each, not yet cut
//! link          |44 packets|44 packets|....|12|                at 10 Gb/s; a gap of 2 us or more ends a train
//! ```

use std::collections::BTreeMap;

use plimsoll_bursts::{Address, Frame, OpenRuns};
use plimsoll_units::{Rate, Time};

/// Payload of a packet of the MTU: that of the thesis's, 44 of which are a segment of 64 KB.
pub(super) const PACKET_PAYLOAD: u32 = 1_460;
/// The bytes that the thesis's link carries with each packet: headers of 40 B and the 38 B that Ethernet adds.
const PACKET_HEADERS: u32 = 78;
/// The rate of the thesis's links.
pub(super) const LINK: Rate = Rate::from_gbps(10);
/// A gap in which a link could send this number of bytes ends a train: 2 us at 10 Gb/s, above the resolution of
/// software's timestamps (`floor_us`).
const TRAIN_GAP_BYTES: u64 = 2_500;

/// Returns the number of packets that frames with payload from the host `from` are cut to, in their order.
pub(super) fn segments(frames: &[Frame], from: Address) -> Vec<f64> {
    let own = frames.iter().filter(|frame| frame.source == from);
    own.map(|frame| payload(frame).div_ceil(PACKET_PAYLOAD))
        .filter(|packets| *packets > 0)
        .map(f64::from)
        .collect()
}

/// Returns the times, in us, from one frame with payload of the host `from` to its next one to the same destination.
pub(super) fn between_us(frames: &[Frame], from: Address) -> Vec<f64> {
    let mut last: BTreeMap<Address, Time> = BTreeMap::new();
    let own = frames.iter().filter(|frame| frame.source == from && payload(frame) > 0);
    own.filter_map(|frame| {
        let before = last.insert(frame.destination, frame.time)?;
        Some(frame.time.saturating_since(before).as_us_f64())
    })
    .collect()
}

/// Returns the lengths, in packets with payload, of the trains from the host `from` to one destination, if a link of
/// that rate had to carry its frames: a link is free for a frame when it has sent the ones before. A frame with
/// payload to another destination ends a train, as a gap does; if `acks_end`, so does one without. The train that is
/// under way at the end counts.
pub(super) fn trains(frames: &[Frame], from: Address, link: Rate, acks_end: bool) -> Vec<f64> {
    let (byte_time, mut free) = (link.byte_time(), Time::ZERO);
    let gap = byte_time.span(TRAIN_GAP_BYTES);
    let (mut open, mut to) = (OpenRuns::default(), None);
    let mut finished = Vec::new();
    for frame in frames.iter().filter(|frame| frame.source == from) {
        let mut left = payload(frame);
        if to.is_some_and(|to| to != frame.destination) && (left > 0 || acks_end) {
            finished.extend(open.close());
        }
        if left > 0 {
            to = Some(frame.destination);
        }
        loop {
            let payload = left.min(PACKET_PAYLOAD);
            let start = frame.time.max(free);
            free = start.saturating_add(byte_time.span(u64::from(payload + PACKET_HEADERS)));
            if payload > 0 {
                finished.extend(open.on_frame(start, free, u64::from(payload), gap));
            }
            left -= payload;
            if left == 0 {
                break;
            }
        }
    }
    finished.extend(open.close());
    finished.iter().map(|run| run.packets as f64).collect()
}

fn payload(frame: &Frame) -> u32 {
    frame.segment.map_or(0, |segment| segment.payload)
}

#[cfg(test)]
mod tests {
    use plimsoll_bursts::CapturedSegment;
    use plimsoll_units::Span;

    use super::*;

    const OWN: Address = Address::V6(1);

    fn frame(ns: u64, source: Address, destination: u128, payload: u32) -> Frame {
        let segment = CapturedSegment {
            ports: (1, 2),
            sequence: 0,
            ack: Some(1),
            payload,
            window: 1_000,
            identification: None,
            checksum: 0,
            syn: false,
            ends: false,
            is_reset: false,
            is_tls: false,
        };
        Frame {
            time: Time::ZERO + Span::from_ns(ns),
            interface: 0,
            source,
            destination: Address::V6(destination),
            bytes: payload + 74,
            segment: Some(segment),
            datagram: None,
            dscp: 0,
            is_cut: false,
        }
    }

    /// A packet takes 1230.4 ns, so a segment of 44 packets 54.1 us.
    #[test]
    fn segments_that_a_link_sends_back_to_back_are_a_train() {
        let other = Address::V6(9);
        let frames = [
            frame(0, OWN, 2, 44 * 1_460),
            // The link is busy until 54,138 ns; an acknowledgement and another host's frame end no train.
            frame(20_000, OWN, 2, 44 * 1_460),
            frame(30_000, other, 1, 9_000),
            frame(40_000, OWN, 3, 0),
            // 108,338 ns are the end; 1.9 us later the train continues, 2.1 us after that it does not.
            frame(110_200, OWN, 2, 1_461),
            frame(114_000, OWN, 2, 10),
            // To another host behind it, and back: a frame between two frames to a host ends its train.
            frame(114_000, OWN, 3, 10 * 1_460),
            frame(114_000, OWN, 2, 1_460),
            frame(900_000, OWN, 2, 1_460),
            frame(900_000, OWN, 3, 1_460),
        ];
        assert_eq!(segments(&frames, OWN), [44.0, 44.0, 2.0, 1.0, 10.0, 1.0, 1.0, 1.0]);
        assert_eq!(trains(&frames, OWN, LINK, false), [90.0, 1.0, 10.0, 1.0, 1.0, 1.0]);
        assert_eq!(trains(&frames, OWN, LINK, true), [88.0, 2.0, 1.0, 10.0, 1.0, 1.0, 1.0]);
        // At a hundredth of the rate the link never rests, so only frames to others end trains.
        let slow = Rate::from_mbps(100);
        assert_eq!(trains(&frames, OWN, slow, false), [91.0, 10.0, 2.0, 1.0]);
        assert_eq!(between_us(&frames, OWN), [20.0, 90.2, 3.8, 0.0, 786.0, 786.0]);
    }
}
