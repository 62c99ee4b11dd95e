//! Builds frames, and computes the frames to expect: an independent reference for headers.

use std::net::{IpAddr, SocketAddr};

use plimsoll_bpf::{Inputs, LimiterProgram, Packet, PacketClassifier};
use plimsoll_mechanisms::qjump::{Excess, QjumpParams};
use plimsoll_units::Rate;

use crate::loaded;

const ETHERNET: usize = 14;
const CE: u8 = 0b11;
const TCP: u8 = 6;
const TCP_HEADER: usize = 20;

/// Returns an IPv4 packet with this ECN field and DSCP, and `payload` bytes behind its header.
pub fn ipv4(ecn: u8, dscp: u8, payload: usize) -> Vec<u8> {
    let mut frame = vec![0x02; 12];
    frame.extend([0x08, 0x00]);
    let length = (20 + payload) as u16;
    let [high, low] = length.to_be_bytes();
    frame.extend([0x45, dscp << 2 | ecn, high, low, 0x12, 0x34, 0x40, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    write_checksum(&mut frame);
    frame.extend((0..payload).map(|byte| byte as u8));
    frame
}

/// Returns an IPv6 packet with this ECN field, DSCP and flow label, and `payload` bytes behind its header.
pub fn ipv6(ecn: u8, dscp: u8, flow: u32, payload: usize) -> Vec<u8> {
    let mut frame = vec![0x02; 12];
    frame.extend([0x86, 0xdd]);
    let class = u32::from(dscp << 2 | ecn);
    frame.extend((6 << 28 | class << 20 | flow).to_be_bytes());
    frame.extend((payload as u16).to_be_bytes());
    frame.extend([17, 64]);
    frame.extend([0xfd; 32]);
    frame.extend((0..payload).map(|byte| byte as u8));
    frame
}

/// Returns a TCP packet with these flags, and `payload` bytes behind its header.
pub fn tcp(source: SocketAddr, destination: SocketAddr, flags: u8, payload: usize) -> Vec<u8> {
    let mut frame = match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut frame = ipv4(0b10, 0, TCP_HEADER + payload);
            frame[ETHERNET + 9] = TCP;
            frame[ETHERNET + 12..ETHERNET + 20]
                .copy_from_slice(&[source.octets(), destination.octets()].concat());
            write_checksum(&mut frame);
            frame
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut frame = ipv6(0b10, 0, 0, TCP_HEADER + payload);
            frame[ETHERNET + 6] = TCP;
            frame[ETHERNET + 8..ETHERNET + 40]
                .copy_from_slice(&[source.octets(), destination.octets()].concat());
            frame
        }
        _ => panic!("{source} and {destination} are of two kinds"),
    };
    let at = frame.len() - TCP_HEADER - payload;
    frame[at..at + 2].copy_from_slice(&source.port().to_be_bytes());
    frame[at + 2..at + 4].copy_from_slice(&destination.port().to_be_bytes());
    frame[at + 12] = (TCP_HEADER as u8 / 4) << 4;
    frame[at + 13] = flags;
    frame
}

/// Returns the traffic class: DSCP and ECN. Returns none if the frame is neither IPv4 nor IPv6.
pub fn class(frame: &[u8]) -> Option<u8> {
    match frame[12..14] {
        [0x08, 0x00] => Some(frame[ETHERNET + 1]),
        [0x86, 0xdd] => Some(frame[ETHERNET] << 4 | frame[ETHERNET + 1] >> 4),
        _ => None,
    }
}

/// Returns the frame with another traffic class and a checksum to match.
pub fn with_class(frame: &[u8], class: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    match frame[12..14] {
        [0x08, 0x00] => {
            frame[ETHERNET + 1] = class;
            write_checksum(&mut frame);
        }
        [0x86, 0xdd] => {
            frame[ETHERNET] = frame[ETHERNET] & 0xf0 | class >> 4;
            frame[ETHERNET + 1] = class << 4 | frame[ETHERNET + 1] & 0x0f;
        }
        _ => {}
    }
    frame
}

/// Returns the frame with CE set if it can carry a mark (ECT), else unchanged.
pub fn marked(frame: &[u8]) -> Vec<u8> {
    match class(frame) {
        Some(class) if class & CE != 0 => with_class(frame, class | CE),
        _ => frame.to_vec(),
    }
}

/// Computes the checksum over the whole header (RFC 1071), not as an update.
fn write_checksum(frame: &mut [u8]) {
    let header = &mut frame[ETHERNET..ETHERNET + 20];
    header[10..12].fill(0);
    let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

/// Returns frames with every traffic class in both families, and frames without one.
pub fn all_classes() -> Vec<Vec<u8>> {
    let mut frames = vec![arp(), ipv4(0b10, 0, 0)];
    for class in 0..=u8::MAX {
        let (ecn, dscp) = (class & CE, class >> 2);
        frames.push(ipv4(ecn, dscp, usize::from(class) * 5));
        frames.push(ipv6(ecn, dscp, 0xabcde ^ u32::from(class), usize::from(class) * 5));
    }
    frames
}

/// Returns a frame that has no traffic class.
pub fn arp() -> Vec<u8> {
    let mut frame = vec![0xff; 12];
    frame.extend([0x08, 0x06]);
    frame.extend([0x11; 46]);
    frame
}

#[test]
fn the_reference_knows_a_checksum() {
    // The example of RFC 1071 on Wikipedia has the sum b861.
    let mut frame = vec![0; 14];
    frame.extend([0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7]);
    write_checksum(&mut frame);
    assert_eq!(frame[24..26], [0xb8, 0x61]);
}

#[test]
fn the_limiter_writes_the_level_into_dscp_and_keeps_ecn() {
    let levels = QjumpParams::default().resolve(12, Rate::from_gbps(10)).unwrap();
    let Some(limiter) = loaded(LimiterProgram::load(&levels, Excess::Refuse, true, Inputs::Packet)) else {
        return;
    };
    let all = all_classes();
    for (index, frame) in all.iter().enumerate() {
        for level in 0..8u8 {
            limiter.reset().unwrap();
            let packet = Packet { priority: u32::from(level), ..Packet::new(frame) };
            let run = limiter.program().test_run(&packet).unwrap();
            let fits = frame.len() as u64 <= levels.levels[usize::from(level)].bucket.get();
            let expected = match class(frame) {
                Some(class) if fits => with_class(frame, level << 5 | class & CE),
                _ => frame.clone(),
            };
            assert_eq!(run.frame, expected, "frame {index}, level {level}");
        }
    }
}

#[test]
fn the_switch_reads_the_level_from_dscp() {
    let Some(classifier) = loaded(PacketClassifier::load()) else { return };
    for (index, frame) in all_classes().iter().enumerate() {
        let run = classifier.program().test_run(&Packet { priority: 77, ..Packet::new(frame) }).unwrap();
        let expected = class(frame).map_or(77, |class| u32::from(class >> 5));
        assert_eq!((run.priority, &run.frame), (expected, frame), "frame {index}");
    }
}
