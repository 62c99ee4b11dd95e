//! Every link type before every stack of tags, labels and tunnels, and captures that no clock or parser likes.

use plimsoll_bursts::{Options, Report};

use crate::made::*;

/// Headers of the links, each with the bytes before the EtherType or IP, by whether IP is version 6.
fn links(is_v6: bool) -> Vec<(u32, Vec<u8>, bool)> {
    let family = if is_v6 { 10 } else { 2 };
    let ppp = if is_v6 { 0x57 } else { 0x21 };
    vec![
        (1, vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], true),
        (113, vec![0; 14], true),
        (104, vec![0x0f, 0], true),
        (101, vec![], false),
        (0, vec![family, 0, 0, 0], false),
        (108, vec![0, 0, 0, family], false),
        (9, vec![0xff, 0x03, 0, ppp], false),
        (9, vec![ppp], false),
    ]
}

/// Layers that may lie between an EtherType's place and IP: tags, labels, PPPoE, LLC with SNAP.
fn stacks(is_v6: bool) -> Vec<Vec<u8>> {
    let ip: [u8; 2] = if is_v6 { [0x86, 0xdd] } else { [0x08, 0] };
    let ppp = if is_v6 { 0x57 } else { 0x21 };
    vec![
        ip.to_vec(),
        [&[0x81, 0, 0, 7][..], &ip].concat(),
        [&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 0x81, 0, 0, 9][..], &ip].concat(),
        [&[0x91, 0, 0, 7, 0x92, 0, 0, 7][..], &ip].concat(),
        vec![0x88, 0x47, 0, 0, 0x10, 64, 0, 0, 0x21, 64],
        [&[0x81, 0, 0, 7, 0x88, 0x48, 0, 0, 0x21, 64][..]].concat(),
        // A label, a control word, and an Ethernet frame with a tag.
        [&[0x88, 0x47, 0, 0, 0x21, 64, 0, 0, 0, 0][..], &[9; 12], &[0x81, 0, 0, 7], &ip].concat(),
        vec![0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0, ppp],
        [&[0x05, 0xdc, 0xaa, 0xaa, 3, 0, 0, 0][..], &ip].concat(),
    ]
}

fn one(link: u32, packet: Vec<u8>, options: Options) -> Report {
    report(&Form { link, ..PCAP }.file(&[(0, packet)]), options)
}

#[test]
fn links_tags_and_labels_stack_freely() {
    for is_v6 in [false, true] {
        let ip = if is_v6 { DATA.ipv6() } else { DATA.ipv4() };
        let hosts = if is_v6 { ("fd00::1", "fd00::2") } else { ("10.0.0.1", "10.0.0.2") };
        for (link, head, is_typed) in links(is_v6) {
            let stacks = if is_typed { stacks(is_v6) } else { vec![Vec::new()] };
            for stack in stacks {
                let found = one(link, [&head[..], &stack, &ip].concat(), Options::default());
                let case = format!("link type {link}, {stack:02x?}, IPv6 {is_v6}");
                let [pair] = &found.pairs[..] else { panic!("{case}: {found:?}") };
                assert_eq!((&*pair.source, &*pair.destination), hosts, "{case}");
                assert_eq!((pair.losses.segments, found.unknown_frames), (1, 0), "{case}");
            }
        }
    }
    // The second form of cooked captures has the EtherType first, and tags behind its header.
    let cooked = [&[0x81, 0][..], &[0; 18], &[0, 7, 0x08, 0], &DATA.ipv4()].concat();
    assert_eq!(one(276, cooked, Options::default()).pairs[0].source, "10.0.0.1");
}

#[test]
fn tunnels_are_looked_through_where_that_is_asked_for() {
    let inner = DATA.ipv4();
    let frame = [&[2; 12][..], &[0x81, 0, 0, 7, 0x08, 0], &inner].concat();
    let udp = |port: u16, inside: &[u8]| {
        let length = 8 + inside.len() as u16;
        (17, [&[0xc0, 1][..], &port.to_be_bytes(), &length.to_be_bytes(), &[0, 0], inside].concat())
    };
    let cases: [(&str, (u8, Vec<u8>)); 10] = [
        ("VXLAN", udp(4_789, &[&[8, 0, 0, 0, 0, 0, 9, 0][..], &frame].concat())),
        (
            "GENEVE with options",
            udp(6_081, &[&[1, 0, 0x65, 0x58, 0, 0, 9, 0, 1, 1, 1, 0][..], &frame].concat()),
        ),
        ("GRE", (47, [&[0, 0, 0x08, 0][..], &inner].concat())),
        ("GRE, key and sequence", (47, [&[0x30, 0, 0x08, 0, 0, 0, 0, 1, 0, 0, 0, 2][..], &inner].concat())),
        ("GRE, Ethernet", (47, [&[0, 0, 0x65, 0x58][..], &frame].concat())),
        ("ERSPAN I", (47, [&[0, 0, 0x88, 0xbe][..], &frame].concat())),
        ("ERSPAN II", (47, [&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1][..], &[0; 8], &frame].concat())),
        ("ERSPAN III", (47, [&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1][..], &[0; 12], &frame].concat())),
        ("IP in IP", (4, inner.clone())),
        ("IPv6 in IP", (41, DATA.ipv6())),
    ];
    for (name, (protocol, payload)) in cases {
        let mut outer = vec![0x45, 0];
        outer.extend((20 + payload.len() as u16).to_be_bytes());
        outer.extend([0, 1, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        outer.extend(payload);
        let packet = [&[2; 12][..], &[0x08, 0], &outer].concat();
        let closed = one(1, packet.clone(), Options::default());
        assert_eq!(closed.pairs[0].source, "192.0.2.1", "{name}");
        let opened = one(1, packet, Options { decapsulate: true, ..Options::default() });
        let pair = &opened.pairs[0];
        assert!(["10.0.0.1", "fd00::1"].contains(&&*pair.source), "{name}: {}", pair.source);
        assert_eq!((pair.losses.segments, pair.bytes), (1, closed.pairs[0].bytes), "{name}");
    }
}

/// Frames without hosts do not form a pair, which would join unrelated frames.
#[test]
fn frames_without_hosts_are_counted_apart() {
    let arp = [&[0; 14][..], &[8, 6], &[0; 28]].concat();
    let data = [&[0; 14][..], &[8, 0], &DATA.ipv4()].concat();
    let packets = [(0, arp.clone()), (100, data), (200, arp), (300, vec![1, 2, 3])];
    let found = report(&Form { link: 113, ..PCAP }.file(&packets), Options::default());
    assert_eq!((found.frames, found.unknown_frames, found.pairs.len(), found.bursts), (4, 3, 1, 1));
}

/// The times of a capture, in seconds, as microseconds of a pcapng file.
fn at_seconds(seconds: &[u64]) -> Report {
    let form = Form { decimals: 6, ..PCAPNG };
    let mut file = form.head();
    for (number, &at) in seconds.iter().enumerate() {
        let frame = Tcp { sequence: 1 + 1_460 * number as u32, ..DATA }.frame();
        let ticks = at * 1_000_000;
        let mut body = vec![0; 4];
        body.extend(((ticks >> 32) as u32).to_le_bytes());
        body.extend((ticks as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend(frame);
        form.block(6, &body, &mut file);
    }
    report(&file, Options::default())
}

#[test]
fn times_that_are_far_apart_are_never_one_burst() {
    const NOW: u64 = 1_700_000_000;
    const YEAR: u64 = 365 * 86_400;
    for (name, seconds, jumps) in [
        ("a first stamp of 0", [0, NOW, NOW + 1, NOW + 2, NOW + 3], 1),
        ("a last stamp of 0", [NOW, NOW + 1, NOW + 2, NOW + 3, 0], 1),
        ("one of 0 between others", [NOW, NOW + 1, 0, NOW + 2, NOW + 3], 2),
        ("years forth", [NOW, NOW + YEAR, NOW + 2 * YEAR, NOW + 3 * YEAR, NOW + 4 * YEAR], 4),
        ("years back", [NOW, NOW - YEAR, NOW - 2 * YEAR, NOW - 3 * YEAR, NOW - 4 * YEAR], 4),
        ("two hours back, a second apart", [NOW, NOW - 7_200, NOW - 7_199, NOW - 7_198, NOW - 7_197], 1),
        ("half a year", [NOW, NOW + 1, NOW + 2, NOW + 3, NOW + YEAR / 2], 0),
    ] {
        let found = at_seconds(&seconds);
        let lengths: Vec<_> = found.lengths_packets.clone().into_iter().collect();
        assert_eq!((lengths, found.timestamps.jumps), (vec![(1, 5)], jumps), "{name}");
    }
}

/// Interfaces of a section with other link types, packet blocks of each kind, and a section in the other byte order.
#[test]
fn blocks_that_cannot_be_analysed_are_counted_and_skipped() {
    let (bluetooth, little) = (Form { link: 201, ..PCAPNG }, PCAPNG);
    let big = Form { is_big: true, ..PCAPNG };
    let frame =
        |number: u32| (u64::from(number) * 10_000, Tcp { sequence: 1 + number * 1_460, ..DATA }.frame());
    let mut file = bluetooth.file(&[frame(0), frame(1)]);
    file.extend(little.file(&[frame(2)]));
    file.extend(big.file(&[frame(3)]));
    // A simple packet block has no time, and an obsolete packet block has all that is needed.
    let (_, bytes) = frame(4);
    let length = big.word(bytes.len() as u32);
    big.block(3, &[&length[..], &bytes].concat(), &mut file);
    let ticks = 1_700_000_000u64 * 1_000_000_000 + 40_000;
    let head = [big.half(0), big.half(5)].concat();
    let stamp = [big.word((ticks >> 32) as u32), big.word(ticks as u32)].concat();
    big.block(2, &[&head[..], &stamp, &length, &length, &bytes].concat(), &mut file);
    let found = report(&file, Options::default());
    assert_eq!((found.frames, found.unsupported_frames, found.untimed_frames), (3, 2, 1));
    assert_eq!(found.unsupported_link_types.into_iter().collect::<Vec<_>>(), [201]);
    assert_eq!(found.lengths_packets.into_iter().collect::<Vec<_>>(), [(1, 3)]);
}
