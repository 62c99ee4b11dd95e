use proptest::prelude::*;

use super::*;

/// A datagram that a test makes, part by part; all other fields are right unless a test changes them.
#[derive(Clone)]
struct Made {
    source: IpAddr,
    destination: IpAddr,
    ports: [u16; 2],
    payload: Vec<u8>,
    /// The parts that UDP's checksum covers.
    checksum: Sum,
}

#[derive(Clone, Copy)]
enum Sum {
    /// The checksum is right.
    Whole,
    /// Of the pseudo-header alone, not complemented: the rest is left to the network card, as Linux does.
    Partial,
    Other(u16),
}

const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 0xc1];
const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 0x5e];

fn made(v6: bool) -> Made {
    let (source, destination) =
        if v6 { ("2001:db8::c1", "2001:db8::5e") } else { ("192.0.2.193", "192.0.2.94") };
    Made {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        ports: [50_000, 11_211],
        payload: b"a request".to_vec(),
        checksum: Sum::Whole,
    }
}

/// RFC 1071 as it is written: 16 bits at a time, in the order of the network.
fn reference_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

impl Made {
    fn pseudo_header(&self) -> Vec<u8> {
        let length = (8 + self.payload.len()) as u16;
        let mut bytes = Vec::new();
        for address in [self.source, self.destination] {
            match address {
                IpAddr::V4(address) => bytes.extend(address.octets()),
                IpAddr::V6(address) => bytes.extend(address.octets()),
            }
        }
        bytes.extend([0, 17]);
        bytes.extend(length.to_be_bytes());
        bytes
    }

    fn udp(&self) -> Vec<u8> {
        let length = (8 + self.payload.len()) as u16;
        let mut bytes: Vec<u8> = [self.ports[0], self.ports[1], length, 0]
            .iter()
            .flat_map(|number| number.to_be_bytes())
            .collect();
        bytes.extend(&self.payload);
        let checksum = match self.checksum {
            Sum::Whole => match !reference_sum(&[&self.pseudo_header()[..], &bytes].concat()) {
                0 => 0xffff,
                sum => sum,
            },
            Sum::Partial => reference_sum(&self.pseudo_header()),
            Sum::Other(sum) => sum,
        };
        bytes[6..8].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    fn frame(&self) -> Vec<u8> {
        let udp = self.udp();
        let mut frame = [SERVER, CLIENT].concat();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                frame.extend([0x08, 0x00]);
                let mut header = vec![0x45, 3];
                header.extend((20 + udp.len() as u16).to_be_bytes());
                header.extend([0x12, 0x34, 0x40, 0, 55, 17, 0, 0]);
                header.extend(source.octets());
                header.extend(destination.octets());
                frame.extend(header);
                fix_ipv4(&mut frame);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                frame.extend([0x86, 0xdd, 0x60, 0x31, 0x23, 0x45]);
                frame.extend((udp.len() as u16).to_be_bytes());
                frame.extend([17, 55]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
            }
            _ => panic!("one family"),
        }
        frame.extend(udp);
        frame
    }
}

/// Puts the header's right checksum in.
fn fix_ipv4(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let checksum = !reference_sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}

fn with(frame: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = frame.to_vec();
    change(&mut frame);
    frame
}

/// An IPv4 frame that was changed, with the right checksum of its header.
fn with_ipv4(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    with(&made(false).frame(), |frame| {
        change(frame);
        fix_ipv4(frame);
    })
}

#[test]
fn a_request_is_found_and_its_reply_goes_back() {
    for v6 in [false, true] {
        let request = made(v6);
        let frame = request.frame();
        let (route, payload) = parse(&frame).unwrap();
        assert_eq!(payload, request.payload);
        let mut reply = [0xaa; 1514];
        let length = route.write(b"the reply", &mut reply).unwrap();
        let reply = &reply[..length];
        // The frame that the other side would have sent, except for ECN, the identification, hops and the flow label.
        let expected = Made {
            source: request.destination,
            destination: request.source,
            ports: [11_211, 50_000],
            payload: b"the reply".to_vec(),
            checksum: Sum::Whole,
        };
        let expected = with(&expected.frame(), |frame| {
            frame[..12].copy_from_slice(&[CLIENT, SERVER].concat());
            if v6 {
                frame[14..18].copy_from_slice(&[0x60, 0, 0, 0]);
                frame[21] = 64;
            } else {
                frame[15] = 0;
                frame[18..20].fill(0);
                frame[22] = 64;
                fix_ipv4(frame);
            }
        });
        assert_eq!(reply, expected);
        // The reply is a valid request in turn.
        let (back, payload) = parse(reply).unwrap();
        assert_eq!(payload, b"the reply");
        assert_eq!((back.to, back.from), (route.from, route.to));
    }
}

#[test]
fn a_known_packet_has_its_known_checksums() {
    // 192.0.2.1:1 to 192.0.2.2:2, "hi": added up by hand. Header: 4500 + 001e + 4000 + 4011 + c000 + 0201 + c000 + 0202
    // = 24932, 4934 with the carries. UDP: c000 + 0201 + c000 + 0202 + 0011 + 000a + 0001 + 0002 + 000a + 6869 = 1ec94,
    // ec95 with the carry.
    let route = ReplyRoute {
        to: FrameSide { hardware: CLIENT, port: 2 },
        from: FrameSide { hardware: SERVER, port: 1 },
        addresses: FrameAddresses::V4 { to: [192, 0, 2, 2].into(), from: [192, 0, 2, 1].into() },
    };
    let mut frame = [0; 64];
    assert_eq!(route.write(b"hi", &mut frame), Some(44));
    assert_eq!(frame[24..26], (!0x4934_u16).to_be_bytes());
    assert_eq!(frame[40..42], (!0xec95_u16).to_be_bytes());
}

#[test]
fn a_sum_of_zero_is_sent_as_its_other_zero() {
    for v6 in [false, true] {
        let (route, _) = parse(&made(v6).frame()).map(|(route, payload)| (route, payload.len())).unwrap();
        let mut found = 0;
        for number in 0..=u16::MAX {
            let mut frame = [0; 100];
            let length = route.write(&number.to_be_bytes(), &mut frame).unwrap();
            let at = length - 4;
            assert_ne!(frame[at..at + 2], [0, 0], "{number}");
            found += u32::from(frame[at..at + 2] == [0xff, 0xff]);
            assert_eq!(parse(&frame[..length]).map(|(_, payload)| payload.len()), Ok(2), "{number}");
        }
        assert_eq!(found, 1, "one payload of all adds up to zero");
    }
}

#[test]
fn checksums() {
    let table = |v6: bool, checksum: Sum| parse(&Made { checksum, ..made(v6) }.frame()).map(drop);
    for v6 in [false, true] {
        assert_eq!(table(v6, Sum::Whole), Ok(()));
        assert_eq!(table(v6, Sum::Partial), Ok(()), "left to the network card");
        let none = if v6 { Err(FrameRefusal::Checksum) } else { Ok(()) };
        assert_eq!(table(v6, Sum::Other(0)), none, "IPv6 must have one");
        let whole = made(v6).udp();
        let whole = u16::from_be_bytes([whole[6], whole[7]]);
        let partial = reference_sum(&made(v6).pseudo_header());
        let accepted = (1..=u16::MAX).filter(|&sum| table(v6, Sum::Other(sum)).is_ok()).collect::<Vec<_>>();
        let mut expected = [whole, partial];
        expected.sort_unstable();
        assert_eq!(accepted, expected, "no other");
    }
    // The header of IPv4 has its own checksum.
    for bit in 0..16 {
        let frame = with(&made(false).frame(), |frame| frame[24 + bit / 8] ^= 1 << (bit % 8));
        assert_eq!(parse(&frame), Err(FrameRefusal::Checksum));
    }
}

#[test]
fn a_damaged_request_is_not_served() {
    for v6 in [false, true] {
        let frame = made(v6).frame();
        let first = if v6 { 22 } else { 26 };
        for bit in 8 * first..8 * frame.len() {
            let damaged = with(&frame, |frame| frame[bit / 8] ^= 1 << (bit % 8));
            assert!(parse(&damaged).is_err(), "bit {bit}");
        }
    }
}

#[test]
fn what_is_cut_off_is_malformed() {
    for v6 in [false, true] {
        let frame = made(v6).frame();
        for length in 0..frame.len() {
            assert_eq!(parse(&frame[..length]), Err(FrameRefusal::Malformed), "{length} of {}", frame.len());
        }
        // Ethernet's padding belongs to no datagram.
        for more in [1, 46] {
            let padded = with(&frame, |frame| frame.extend(vec![0xee; more]));
            assert_eq!(parse(&padded).map(|(_, payload)| payload), Ok(&b"a request"[..]));
        }
    }
}

#[test]
fn an_empty_datagram_is_one() {
    for v6 in [false, true] {
        let frame = Made { payload: Vec::new(), ..made(v6) }.frame();
        assert_eq!(parse(&frame).map(|(_, payload)| payload.len()), Ok(0));
    }
}

#[test]
fn what_is_not_plain_is_malformed() {
    let v6 = made(true).frame();
    for (name, frame) in [
        ("ARP", with_ipv4(|frame| frame[12..14].copy_from_slice(&[8, 6]))),
        ("IPv4 under IPv6's type", with_ipv4(|frame| frame[12..14].copy_from_slice(&[0x86, 0xdd]))),
        ("IPv6 under IPv4's type", with(&v6, |frame| frame[12..14].copy_from_slice(&[8, 0]))),
        ("a tag of 802.1Q", with_ipv4(|frame| drop(frame.splice(12..12, [0x81, 0, 0, 5])))),
        ("a tag of 802.1ad", with_ipv4(|frame| drop(frame.splice(12..12, [0x88, 0xa8, 0, 5])))),
        ("a length in place of a type", with_ipv4(|frame| frame[12..14].copy_from_slice(&[0, 40]))),
        ("options", with_ipv4(|frame| frame[14] = 0x46)),
        ("a header too short", with_ipv4(|frame| frame[14] = 0x44)),
        ("version 6 in IPv4", with_ipv4(|frame| frame[14] = 0x65)),
        ("version 4 in IPv6", with(&v6, |frame| frame[14] = 0x45)),
        ("TCP", with_ipv4(|frame| frame[23] = 6)),
        ("TCP over IPv6", with(&v6, |frame| frame[20] = 6)),
        ("a fragment, the first", with_ipv4(|frame| frame[20] = 0x20)),
        ("a fragment, the last", with_ipv4(|frame| frame[21] = 1)),
        ("a fragment, far on", with_ipv4(|frame| frame[20] = 0x1f)),
        ("hop-by-hop options", with(&v6, |frame| frame[20] = 0)),
        ("routing", with(&v6, |frame| frame[20] = 43)),
        ("a fragment of IPv6", with(&v6, |frame| frame[20] = 44)),
        ("a jumbogram", with(&v6, |frame| frame[18..20].fill(0))),
    ] {
        assert_eq!(parse(&frame), Err(FrameRefusal::Malformed), "{name}");
    }
}

#[test]
fn lengths_that_do_not_fit_are_malformed() {
    let v4 = made(false).frame();
    let v6 = made(true).frame();
    let udp = made(true).udp().len() as u16;
    let set = |frame: &[u8], at: usize, number: u16| {
        with(frame, |frame| {
            frame[at..at + 2].copy_from_slice(&number.to_be_bytes());
            if frame[12] == 8 {
                fix_ipv4(frame);
            }
        })
    };
    for total in [0, 19, 20, 27, 28, 20 + udp - 1, 20 + udp + 1, u16::MAX] {
        assert_eq!(parse(&set(&v4, 16, total)), Err(FrameRefusal::Malformed), "IPv4 of {total}");
    }
    for length in [0, 7, 8, udp - 1, udp + 1, u16::MAX] {
        assert_eq!(parse(&set(&v6, 18, length)), Err(FrameRefusal::Malformed), "IPv6 of {length}");
    }
    for (frame, at) in [(&v4, 34), (&v6, 54)] {
        for length in [0, 7, udp + 1, u16::MAX] {
            assert_eq!(parse(&set(frame, at + 4, length)), Err(FrameRefusal::Malformed), "UDP of {length}");
        }
        // Shorter than its packet: the bytes behind its end belong to no datagram, but this checksum is then wrong.
        assert_eq!(parse(&set(frame, at + 4, udp - 1)), Err(FrameRefusal::Checksum));
    }
    let shorter = with(&set(&v4, 38, udp - 1), |frame| frame[40..42].fill(0));
    assert_eq!(parse(&shorter).map(|(_, payload)| payload), Ok(&b"a reques"[..]));
}

#[test]
fn nobody_else_than_the_sender_gets_an_answer() {
    let from = |address: &str| {
        let source: IpAddr = address.parse().unwrap();
        Made { source, ..made(source.is_ipv6()) }.frame()
    };
    for (name, frame) in [
        ("no port", Made { ports: [0, 11_211], ..made(false) }.frame()),
        ("no port, IPv6", Made { ports: [0, 11_211], ..made(true) }.frame()),
        ("a group's Ethernet address", with(&made(false).frame(), |frame| frame[6] |= 1)),
        ("everybody's Ethernet address", with(&made(true).frame(), |frame| frame[6..12].fill(0xff))),
        ("everybody", from("255.255.255.255")),
        ("a group", from("224.0.0.1")),
        ("nobody", from("0.0.0.0")),
        ("loopback", from("127.0.0.1")),
        ("the server itself", from("192.0.2.94")),
        ("a group, IPv6", from("ff02::1")),
        ("nobody, IPv6", from("::")),
        ("loopback, IPv6", from("::1")),
        ("the server itself, IPv6", from("2001:db8::5e")),
    ] {
        assert_eq!(parse(&frame), Err(FrameRefusal::Sender), "{name}");
    }
}

#[test]
fn a_reply_that_does_not_fit_is_not_written() {
    for (v6, headers) in [(false, 42), (true, 62)] {
        let frame = made(v6).frame();
        let (route, _) = parse(&frame).unwrap();
        let mut room = vec![0xaa; 1514];
        assert_eq!(route.write(&vec![1; 1514 - headers], &mut room), Some(1514));
        room.fill(0xaa);
        assert_eq!(route.write(&vec![1; 1514 - headers + 1], &mut room), None);
        assert!(room.iter().all(|&byte| byte == 0xaa), "nothing of it");
        // Longer than any packet.
        let mut room = vec![0; 70_000];
        assert_eq!(route.write(&vec![1; 65_535 + 14 - headers], &mut room), Some(65_549));
        assert_eq!(route.write(&vec![1; 65_535 + 15 - headers], &mut room), None);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_request_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn any_bytes_behind_good_headers_are_a_request_or_none(
        v6: bool, at in 12..70_usize, bytes in prop::collection::vec(any::<u8>(), 1..20),
    ) {
        let mut frame = made(v6).frame();
        let at = at.min(frame.len() - 1);
        let length = bytes.len().min(frame.len() - at);
        frame[at..at + length].copy_from_slice(&bytes[..length]);
        let _ = parse(&frame);
    }

    #[test]
    fn sums_are_those_of_the_reference(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        prop_assert_eq!(u16::from_be(fold(sum(&bytes))), reference_sum(&bytes));
    }

    #[test]
    fn what_is_written_is_read(
        v6: bool, payload in prop::collection::vec(any::<u8>(), 0..1452), ports: [u16; 2], addresses: [u64; 2],
    ) {
        let address = |number: u64| -> IpAddr {
            if v6 {
                Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(number)).into()
            } else {
                Ipv4Addr::from((10 << 24 | number & 0xff_ffff) as u32).into()
            }
        };
        let [source, destination] = addresses.map(address);
        prop_assume!(source != destination);
        let ports = [ports[0].max(1), ports[1]];
        for checksum in [Sum::Whole, Sum::Partial] {
            let request = Made { source, destination, ports, payload: payload.clone(), checksum };
            let frame = request.frame();
            let (route, found) = parse(&frame).unwrap();
            prop_assert_eq!(found, &payload[..]);
            let mut reply = [0; 1514];
            let length = route.write(&payload, &mut reply).unwrap();
            let there = Made {
                source: destination,
                destination: source,
                ports: [ports[1], ports[0]],
                payload: payload.clone(),
                checksum: Sum::Whole,
            };
            prop_assert_eq!(&reply[length - 8 - payload.len()..length], &there.udp()[..]);
        }
    }
}
