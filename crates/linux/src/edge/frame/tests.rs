//! Frames in, frames out.

use proptest::prelude::*;

use super::*;

/// Checksum over an IPv4 header: zero when it is right.
fn check(frame: &[u8], at: usize) -> u16 {
    let header = &frame[at..at + 20];
    !ones_complement(header.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])))
}

/// A TCP segment of 100 bytes from h1 to h2 with the traffic class and tags given.
fn tcp(class: u8, tags: &[u8], from: u32, to: u32, ports: (u16, u16)) -> Vec<u8> {
    let (from, to) = (HostId(from), HostId(to));
    let mut frame = [mac(to), mac(from)].concat();
    frame.extend_from_slice(tags);
    let at = frame.len() + 2;
    frame.extend_from_slice(&[8, 0, 0x45, class, 0, 140, 0, 1, 0x40, 0, 64, TCP, 0, 0]);
    frame.extend_from_slice(&ipv4(from).octets());
    frame.extend_from_slice(&ipv4(to).octets());
    let sum = check(&frame, at);
    frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
    frame.extend_from_slice(&ports.0.to_be_bytes());
    frame.extend_from_slice(&ports.1.to_be_bytes());
    frame.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.extend_from_slice(&[7; 100]);
    frame
}

/// A VLAN tag with priority (PCP) 5 and VLAN 3.
const TAG: [u8; 4] = [0x81, 0, 5 << 5, 3];

#[test]
fn headers_say_what_frames_say() {
    for (class, tags, ecn, tag_priority) in [
        (0, &[][..], EcnField::NotEct, None),
        (0b0110_0010, &[], EcnField::Ect, None),
        (0b1010_0001, &[], EcnField::Ect, None),
        (0b0010_0011, &[], EcnField::Ce, None),
        (0b0010_0010, &TAG, EcnField::Ect, Some(5)),
    ] {
        let header = Header::parse(&tcp(class, tags, 1, 2, (80, 5000)), 3).unwrap();
        assert_eq!(
            (header.to, header.ecn, header.tag_priority),
            (HostId(2), ecn, tag_priority),
            "{class:#b}"
        );
        assert_eq!(header.dscp, class >> 2);
        assert_eq!((header.payload, header.ece), (100, false));
    }
}

/// An alias of either end, the lower bits of the DSCP and the lack of a payload say how a frame travels in a hybrid
/// network.
#[test]
fn headers_keep_what_binds_a_frame_to_a_switch() {
    let parse = |frame: &[u8]| Header::parse(frame, 3).unwrap();
    let plain = parse(&tcp(0, &[], 1, 2, (80, 5000)));
    assert_eq!((plain.alias, plain.pool(), plain.is_control), (0, 0, false));
    for (number, source) in [(1, true), (2, false), (15, true)] {
        let mut frame = tcp(5 << 5 | PACKET_ONLY << 2 | 2, &[], 1, 2, (80, 5000));
        let at = if source { 26 } else { 30 };
        let host = HostId(if source { 1 } else { 2 });
        frame[at..at + 4].copy_from_slice(&alias(host, number).octets());
        let header = parse(&frame);
        assert_eq!((header.alias, header.pool(), header.dscp), (number, PACKET_ONLY, 5 << 3 | PACKET_ONLY));
        assert_eq!(host_at(alias(host, number), 3), Some(host));
    }
    let whole = tcp(0, &[], 1, 2, (80, 5000));
    assert!(parse(&whole[..whole.len() - 100]).is_control);
    let mut datagram = whole.clone();
    datagram[23] = UDP;
    assert!(!parse(&datagram[..ETHERNET + 28]).is_control, "a datagram without payload acknowledges nothing");
}

#[test]
fn both_directions_are_one_flow() {
    let there = Header::parse(&tcp(0, &[], 1, 2, (80, 5000)), 3).unwrap();
    let back = Header::parse(&tcp(0, &[], 2, 1, (5000, 80)), 3).unwrap();
    assert_eq!(there.flow, back.flow);
    assert!(there.from_larger != back.from_larger);
    assert!(there.flow != Header::parse(&tcp(0, &[], 1, 2, (81, 5000)), 3).unwrap().flow);
}

#[test]
fn hosts_that_there_are_not_get_nothing() {
    assert_eq!(Header::parse(&tcp(0, &[], 1, 2, (1, 2)), 2), None);
    let mut group = tcp(0, &[], 1, 2, (1, 2));
    group[..6].fill(0xff);
    assert_eq!(Header::parse(&group, 3), None);
}

#[test]
fn marks_keep_the_rest() {
    for tags in [&[][..], &TAG] {
        for class in 0..=255u8 {
            let frame = tcp(class, tags, 1, 2, (80, 5000));
            let at = ETHERNET + tags.len();
            let mut marked = frame.clone();
            mark(&mut marked);
            assert_eq!(marked[at + 1], class | 3);
            assert_eq!(check(&marked, at), 0, "{class:#b}");
            let others =
                |frame: &[u8]| [&frame[..at + 1], &frame[at + 2..at + 10], &frame[at + 12..]].concat();
            assert_eq!(others(&marked), others(&frame), "the tag and all else stay");
            let mut coloured = frame.clone();
            set_traffic_class(&mut coloured, 1, Some(46));
            assert_eq!((coloured[at + 1], check(&coloured, at)), (46 << 2 | 1, 0));
        }
    }
}

#[test]
fn ipv6_has_its_traffic_class_across_bytes() {
    let mut frame = [&mac(HostId(0))[..], &mac(HostId(1)), &[0x86, 0xdd]].concat();
    frame.extend_from_slice(&[0x6a, 0x2b, 0xcd, 0xef, 0, 8, UDP, 64]);
    frame.extend_from_slice(&ipv6(HostId(1)).octets());
    frame.extend_from_slice(&ipv6(HostId(0)).octets());
    frame.extend_from_slice(&[0, 53, 0, 54, 0, 8, 0, 0]);
    let header = Header::parse(&frame, 2).unwrap();
    assert_eq!((header.ecn, header.dscp, header.payload), (EcnField::Ect, 0xa2 >> 2, 0));
    mark(&mut frame);
    assert_eq!(frame[14..18], [0x6a, 0x3b, 0xcd, 0xef]);
}

#[test]
fn the_edge_answers_for_hosts_that_there_are() {
    let question = |target: u32| {
        let mut frame = [&[0xff; 6][..], &mac(HostId(1)), &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
        frame.extend_from_slice(&mac(HostId(1)));
        frame.extend_from_slice(&ipv4(HostId(1)).octets());
        frame.extend_from_slice(&[0; 6]);
        frame.extend_from_slice(&ipv4(HostId(target)).octets());
        frame
    };
    let reply = answer(&question(2), 3).unwrap();
    assert_eq!((&reply[..6], &reply[6..12]), (&mac(HostId(1))[..], &mac(HostId(2))[..]));
    assert_eq!(reply[20..22], [0, 2]);
    assert_eq!((&reply[22..28], &reply[28..32]), (&mac(HostId(2))[..], &ipv4(HostId(2)).octets()[..]));
    assert_eq!(answer(&question(3), 3), None);
    assert_eq!(answer(&question(1), 3), None, "nobody else has its own address");
}

#[test]
fn an_advertisement_has_a_right_checksum() {
    let mut frame = [&[0x33, 0x33, 0xff, 0, 0, 1][..], &mac(HostId(1)), &[0x86, 0xdd]].concat();
    frame.extend_from_slice(&[0x60, 0, 0, 0, 0, 24, ICMPV6, 255]);
    frame.extend_from_slice(&ipv6(HostId(1)).octets());
    frame.extend_from_slice(&ipv6(HostId(0)).octets());
    frame.extend_from_slice(&[SOLICITATION, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend_from_slice(&ipv6(HostId(0)).octets());
    let reply = answer(&frame, 2).unwrap();
    let pseudo = [&reply[22..54], &[0, 0, 0, 32, 0, 0, 0, ICMPV6], &reply[54..]].concat();
    assert_eq!(reply.len(), 86);
    assert_eq!(ones_complement(pseudo.chunks_exact(2).map(|p| u16::from_be_bytes([p[0], p[1]]))), 0xffff);
    assert_eq!(reply[80..86], mac(HostId(0)));
}

proptest! {
    /// Any bytes, and valid frames cut anywhere or with a byte changed.
    #[test]
    fn nothing_panics(
        noise in prop::collection::vec(any::<u8>(), 0..120),
        class in any::<u8>(),
        cut in 0usize..160,
        at in 0usize..160,
        byte in any::<u8>(),
        tagged in any::<bool>(),
    ) {
        let mut frame = tcp(class, if tagged { &TAG } else { &[] }, 1, 2, (80, 5000));
        frame.truncate(cut);
        if let Some(place) = frame.get_mut(at) {
            *place = byte;
        }
        for mut frame in [noise, frame] {
            let before = frame.len();
            let _ = Header::parse(&frame, 3);
            let _ = answer(&frame, 3);
            mark(&mut frame);
            prop_assert_eq!(frame.len(), before);
        }
    }
}
