//! Tests which frames the program of AF_XDP sockets redirects. Without sockets, it returns FRAME_DROP for these frames.

use std::net::SocketAddr;

use plimsoll_bpf::shared::{FRAME_DROP, FRAME_PASS};
use plimsoll_bpf::{DatagramRedirect, RedirectOptions};

use crate::{frames, loaded};

const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const UDP: u8 = 17;

fn load(places: &[&str]) -> Option<DatagramRedirect> {
    let places: Vec<SocketAddr> = places.iter().map(|place| place.parse().unwrap()).collect();
    let options = RedirectOptions { without_socket: FRAME_DROP, ..RedirectOptions::new(HARDWARE, places, 1) };
    loaded(DatagramRedirect::load(&options))
}

/// Returns a datagram to `place`; `spoil` changes the frame.
fn frame(place: &str, spoil: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let place: SocketAddr = place.parse().unwrap();
    let source = if place.is_ipv4() { "192.0.2.9:4242" } else { "[2001:db8::9]:4242" };
    // UDP has its ports at the same offset as TCP.
    let mut frame = frames::tcp(source.parse().unwrap(), place, 0, 4);
    frame[..6].copy_from_slice(&HARDWARE);
    let protocol = if place.is_ipv4() { 23 } else { 20 };
    frame[protocol] = UDP;
    spoil(&mut frame);
    frame
}

#[test]
fn only_plain_datagrams_for_the_server_are_taken() {
    let (v4, v6) = ("192.0.2.1:11211", "[2001:db8::1]:11211");
    let Some(redirect) = load(&[v4, v6, "192.0.2.2:5"]) else { return };
    let answer = |frame: &[u8]| redirect.program().test_frame(frame).unwrap();
    for place in [v4, v6, "192.0.2.2:5"] {
        assert_eq!(answer(&frame(place, |_| {})), FRAME_DROP, "{place}");
    }
    for place in
        ["192.0.2.1:5", "192.0.2.2:11211", "192.0.2.3:11211", "[2001:db8::2]:11211", "[2001:db8::1]:5"]
    {
        assert_eq!(answer(&frame(place, |_| {})), FRAME_PASS, "{place}");
    }
    // Wrong lengths and checksums do not matter: the server counts them.
    for (name, frame) in [
        ("checksum", frame(v4, |frame| frame[24] ^= 1)),
        ("IPv4's length", frame(v4, |frame| frame[17] = 255)),
        ("IPv6's length", frame(v6, |frame| frame[19] = 255)),
        ("not to be fragmented", frame(v4, |frame| frame[20] = 0x40)),
        ("congestion was experienced", frame(v4, |frame| frame[15] = 3)),
        ("from a group", frame(v4, |frame| frame[6] |= 1)),
        ("UDP's header and no more", frame(v4, |frame| frame.truncate(42))),
        ("the same, IPv6", frame(v6, |frame| frame.truncate(62))),
    ] {
        assert_eq!(answer(&frame), FRAME_DROP, "{name}");
    }
    for (name, frame) in [
        ("another's Ethernet address", frame(v4, |frame| frame[5] = 2)),
        ("everybody's", frame(v6, |frame| frame[..6].fill(0xff))),
        ("ARP", frame(v4, |frame| frame[13] = 6)),
        ("a tag of 802.1Q", frame(v4, |frame| drop(frame.splice(12..12, [0x81, 0, 0, 5])))),
        ("a tag of 802.1ad", frame(v6, |frame| drop(frame.splice(12..12, [0x88, 0xa8, 0, 5])))),
        ("IPv4 with options", frame(v4, |frame| frame[14] = 0x46)),
        ("IPv4 with a short header", frame(v4, |frame| frame[14] = 0x44)),
        ("TCP", frame(v4, |frame| frame[23] = 6)),
        ("TCP, IPv6", frame(v6, |frame| frame[20] = 6)),
        ("the first fragment", frame(v4, |frame| frame[20] = 0x20)),
        ("another fragment", frame(v4, |frame| frame[21] = 1)),
        ("a fragment of IPv6", frame(v6, |frame| frame[20] = 44)),
        ("hop-by-hop options", frame(v6, |frame| frame[20] = 0)),
        ("IPv4's type before IPv6", frame(v6, |frame| frame[12..14].copy_from_slice(&[8, 0]))),
        ("IPv6's type before IPv4", frame(v4, |frame| frame[12..14].copy_from_slice(&[0x86, 0xdd]))),
    ] {
        assert_eq!(answer(&frame), FRAME_PASS, "{name}");
    }
}

#[test]
fn what_is_cut_off_stays_with_the_kernel() {
    let (v4, v6) = ("192.0.2.1:11211", "[2001:db8::1]:11211");
    let Some(redirect) = load(&[v4, v6]) else { return };
    for (place, headers) in [(v4, 42), (v6, 62)] {
        // The kernel's test rejects a frame that is shorter than an Ethernet header.
        for length in 14..headers {
            let cut = frame(place, |frame| frame.truncate(length));
            assert_eq!(redirect.program().test_frame(&cut).unwrap(), FRAME_PASS, "{place}, {length} bytes");
        }
    }
}

#[test]
fn without_sockets_everything_stays_with_the_kernel() {
    let options = RedirectOptions::new(HARDWARE, vec!["192.0.2.1:11211".parse().unwrap()], 1);
    let Some(redirect) = loaded(DatagramRedirect::load(&options)) else { return };
    let ours = frame("192.0.2.1:11211", |_| {});
    assert_eq!(redirect.program().test_frame(&ours).unwrap(), FRAME_PASS);
}
