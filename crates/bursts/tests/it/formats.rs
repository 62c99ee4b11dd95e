//! Every format gives the same report.

use std::collections::BTreeMap;

use plimsoll_bursts::{Options, Report};
use plimsoll_units::Span;

use crate::made::{DATA, Form, PCAP, PCAPNG, Stamped, Tcp, report, tso};

/// Two bursts of 44, and an acknowledgement.
fn packets() -> Vec<Stamped> {
    let mut packets = tso(0.0, 1);
    packets.push((60_000, Tcp { source: 2, destination: 1, payload: 0, ack: 64_241, ..DATA }.frame()));
    packets.extend(tso(100_000.0, 64_241));
    packets
}

#[test]
fn formats_and_byte_orders_agree() {
    let expected = report(&PCAP.file(&packets()), Options::default());
    assert_eq!(expected.lengths_packets, BTreeMap::from([(1, 1), (44, 2)]));
    assert_eq!(expected.lengths_bytes, BTreeMap::from([(54, 1), (44 * 1_514, 2)]));
    for is_pcapng in [false, true] {
        for is_big in [false, true] {
            // 64 bytes cut TCP's payload off, and 54 leave its header whole.
            for snap in [65_535, 64, 54] {
                let form = Form { is_pcapng, is_big, snap, ..PCAP };
                let mut found = report(&form.file(&packets()), Options::default());
                found.pairs.iter_mut().for_each(|pair| pair.interface_name = None);
                assert_eq!(found, expected, "{form:?}");
            }
        }
    }
}

#[test]
fn a_snap_length_within_the_tcp_header_leaves_the_bursts() {
    let found = report(&Form { snap: 40, ..PCAP }.file(&packets()), Options::default());
    assert_eq!(found.lengths_packets, BTreeMap::from([(1, 1), (44, 2)]));
    assert_eq!((found.acks.pure, found.losses.seen.segments), (0, 0));
}

#[test]
fn picoseconds_are_read() {
    let form = Form { decimals: 9, ..PCAPNG };
    let nanoseconds = form.file(&packets());
    let mut picoseconds = nanoseconds.clone();
    // The value of if_tsresol in the interface description; the ticks are then a thousandth as long.
    let at = picoseconds.windows(5).position(|bytes| bytes == [9, 0, 1, 0, 9]).unwrap() + 4;
    picoseconds[at] = 12;
    let found = report(&picoseconds, Options::default());
    let whole = report(&nanoseconds, Options::default());
    assert!((found.seconds * 1e3 - whole.seconds).abs() < 1e-12, "{} {}", found.seconds, whole.seconds);
}

#[test]
fn binary_resolutions_are_read() {
    let mut file = PCAPNG.file(&packets());
    let at = file.windows(5).position(|bytes| bytes == [9, 0, 1, 0, 9]).unwrap() + 4;
    file[at] = 0x80 | 30;
    let found = report(&file, Options::default());
    // A tick is 2^-30 s instead of 10^-9 s.
    let expected = 152_907e-9 * 1e9 / f64::from(1 << 30);
    assert!((found.seconds - expected).abs() < 1e-9, "{}", found.seconds);
}

#[test]
fn vlan_tags_and_ipv6_are_looked_through() {
    for (tags, is_v6, source, bytes) in [
        (&[][..], false, "10.0.0.1", 1_514),
        (&[0x8100], false, "10.0.0.1", 1_518),
        (&[0x88a8, 0x8100], false, "10.0.0.1", 1_522),
        (&[], true, "fd00::1", 1_534),
        (&[0x8100, 0x8100], true, "fd00::1", 1_542),
    ] {
        let found = report(&PCAP.file(&[(0, DATA.frame_with(tags, is_v6))]), Options::default());
        let pair = &found.pairs[0];
        assert_eq!(
            (&*pair.source, pair.bytes, pair.losses.segments),
            (source, bytes, 1),
            "{tags:x?} {is_v6}"
        );
    }
}

#[test]
fn links_without_ethernet_have_its_header_on_the_wire() {
    let ip = DATA.ipv4();
    let mut cooked = vec![0; 14];
    cooked.extend([8, 0]);
    cooked.extend(&ip);
    let mut cooked2 = vec![8, 0];
    cooked2.extend([0; 18]);
    cooked2.extend(&ip);
    for (link, packet) in [(101, ip), (113, cooked), (276, cooked2)] {
        let found = report(&Form { link, ..PCAP }.file(&[(0, packet)]), Options::default());
        let pair = &found.pairs[0];
        assert_eq!((&*pair.source, pair.bytes), ("10.0.0.1", 1_514), "link type {link}");
    }
}

#[test]
fn the_check_sequence_is_not_counted_twice() {
    let with_fcs: Vec<Stamped> = packets()
        .into_iter()
        .map(|(ns, mut frame)| {
            frame.extend([0; 4]);
            (ns, frame)
        })
        .collect();
    // Bit 26 means that there is one, bits 28 to 31 its number of 16-bit words.
    let form = Form { link: 1 | 0x2400_0000, ..PCAP };
    assert_eq!(
        report(&form.file(&with_fcs), Options::default()),
        report(&PCAP.file(&packets()), Options::default())
    );
}

#[test]
fn frames_that_are_not_ip_have_ethernet_addresses() {
    let mut arp = vec![0xff; 6];
    arp.extend([2, 0, 0, 0, 0, 9, 8, 6]);
    arp.extend([0; 28]);
    let found = report(&PCAP.file(&[(0, arp)]), Options::default());
    let pair = &found.pairs[0];
    assert_eq!((&*pair.source, &*pair.destination), ("02:00:00:00:00:09", "ff:ff:ff:ff:ff:ff"));
    // 60 bytes and 24 more at 10 Gb/s, to three digits.
    assert_eq!(pair.mean_on_ns, Some(67.2));
}

#[test]
fn interfaces_are_links_of_their_own() {
    // The same packet passes two interfaces.
    let mut file = PCAPNG.head();
    let mut second = PCAPNG.head();
    let packets = tso(0.0, 1);
    packets.iter().for_each(|packet| PCAPNG.packet(packet, &mut file));
    packets.iter().for_each(|packet| PCAPNG.packet(packet, &mut second));
    // A further section begins, with an interface of its own.
    file.extend(second);
    let found = report(&file, Options { train_gap: Span::from_us(10), ..Options::default() });
    assert_eq!(found.lengths_packets, BTreeMap::from([(44, 2)]));
    assert_eq!(found.pairs.iter().map(|pair| pair.interface).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(found.losses.seen.retransmitted, 0);
}

/// Captures of other programs that were once read wrongly, each with the lengths of its bursts and the error.
#[test]
fn captures_of_other_programs_have_their_right_values() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let read = |name: &str| report(&std::fs::read(folder.join(name)).unwrap(), Options::default());
    let lengths = |found: &Report| found.lengths_packets.clone().into_iter().collect::<Vec<_>>();
    // Ten frames, one second apart, follow one with a stamp of 1970.
    let jump = read("clock-jump.pcap");
    assert_eq!((lengths(&jump), jump.timestamps.jumps), (vec![(1, 11)], 1));
    let cooked = read("cooked-vlan.pcap");
    let pairs: Vec<_> = cooked.pairs.iter().map(|pair| (&*pair.source, &*pair.destination)).collect();
    assert_eq!(pairs, [("10.0.0.1", "10.0.0.9"), ("10.0.0.2", "10.0.0.9")]);
    assert_eq!((lengths(&cooked), cooked.losses.seen.segments), (vec![(1, 10)], 10));
    assert_eq!(read("partly-resent.pcap").losses.seen.retransmitted, 1);
    let acks = read("window-updates.pcap").acks;
    assert_eq!((acks.duplicate, acks.window_updates, acks.keep_alives), (0, 3, 6));
    assert_eq!(read("packet-blocks.pcapng").frames, 4);
}
