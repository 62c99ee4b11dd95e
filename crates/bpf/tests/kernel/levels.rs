//! Tests levels by port, the 802.1Q tag, and the limiter's counts.

use plimsoll_bpf::shared::QjumpCounts;
use plimsoll_bpf::{HookDirection, Inputs, LimitedGuest, LimiterProgram, Packet, PortClassifier, Tag};
use plimsoll_mechanisms::qjump::{Excess, Level, Levels};
use plimsoll_units::{Bytes, Rate, Span};

use crate::namespace::{Namespace, python, python_is_here};
use crate::{frames, loaded};

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;

/// Returns an Ethernet and IPv4 header without options, and two ports.
fn ipv4(protocol: u8, fragment: u16, source: u16, destination: u16) -> Vec<u8> {
    let mut frame = frames::ipv4(0, 0, 20);
    frame[14 + 6..14 + 8].copy_from_slice(&fragment.to_be_bytes());
    frame[14 + 9] = protocol;
    frame[34..36].copy_from_slice(&source.to_be_bytes());
    frame[36..38].copy_from_slice(&destination.to_be_bytes());
    frame
}

fn ipv6(protocol: u8, source: u16, destination: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, protocol, 64]);
    frame.extend([0xfd; 32]);
    frame.extend(source.to_be_bytes());
    frame.extend(destination.to_be_bytes());
    frame.extend([0; 20]);
    frame
}

#[test]
fn a_port_at_either_end_gives_its_level() {
    let Some(classifier) = loaded(PortClassifier::load(&[(319, 7), (11_211, 5), (80, 0)])) else { return };
    let unset = 3;
    let more_fragments = 0x2000;
    let second_fragment = 0x2001;
    for (frame, level) in [
        (ipv4(UDP, 0, 319, 9), 7),
        (ipv4(UDP, 0, 9, 319), 7),
        (ipv4(TCP, 0, 40_000, 11_211), 5),
        (ipv4(TCP, 0, 80, 40_000), 0),
        (ipv4(TCP, 0, 81, 320), unset),
        (ipv4(ICMP, 0, 319, 319), unset),
        (ipv4(UDP, more_fragments, 319, 9), 7),
        (ipv4(UDP, second_fragment, 319, 9), unset),
        (ipv6(UDP, 9, 319), 7),
        (ipv6(TCP, 11_211, 9), 5),
        (ipv6(58, 319, 319), unset),
    ] {
        let run = classifier.program().test_run(&Packet { priority: unset, ..Packet::new(&frame) }).unwrap();
        assert_eq!(run.priority, level, "{frame:02x?}");
        assert_eq!(run.frame, frame);
    }
}

fn levels(bucket: u64) -> Levels {
    let level = Level { bucket: Bytes::new(bucket), rate: Rate::from_gbps(10), latency_bound: None };
    Levels { epoch: Span::from_secs(1_000), levels: vec![level; 8] }
}

#[test]
fn what_passed_and_what_was_refused_is_counted_by_level() {
    let limiter = LimiterProgram::load(&levels(100), Excess::Refuse, false, Inputs::Packet);
    let Some(limiter) = loaded(limiter) else { return };
    let frame = frames::ipv4(0, 0, 0);
    for _ in 0..5 {
        limiter.test_run(&Packet { priority: 6, wire_len: 50, ..Packet::new(&frame) }).unwrap();
    }
    assert_eq!(limiter.counts(6).unwrap(), QjumpCounts { passed: 2, bytes: 100, refused: 3 });
    assert_eq!(limiter.counts(5).unwrap(), QjumpCounts::default());
}

/// A packet that arrives at the other end of a link has the tag, whose priority is the level.
#[test]
fn the_level_is_the_priority_of_the_tag() {
    let limiter =
        LimiterProgram::load_tagging(&levels(1 << 40), Excess::Refuse, Tag::Pcp { vlan: 9 }, Inputs::Kernel);
    let Some(limiter) = loaded(limiter) else { return };
    let Some(link) = Namespace::new("pcp", 7).filter(|_| python_is_here()) else { return };
    assert!(link.run("ip", "link set {device} arp off"));
    let mut receiver = link.python(RECEIVER);
    // The receiver listens once it has printed a line.
    let mut output = std::io::BufReader::new(receiver.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let _attached = limiter.program().attach(link.near_ifindex(), HookDirection::Egress).unwrap();
    let sender = python("python3", &[], &SENDER.replace("ADDRESS", &link.address()));
    assert!(sender.wait_with_output().unwrap().status.success());
    line.clear();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    assert_eq!(line.trim(), format!("{}", 6 << 13 | 9));
    receiver.wait().unwrap();
}

const SENDER: &str = r#"
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 6)
sender.sendto(b"level" * 20, ("ADDRESS", 9))
"#;

/// Prints the tag of the sender's first frame (PACKET_AUXDATA, linux/if_packet.h).
const RECEIVER: &str = r#"
import socket, struct
receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
receiver.bind(("far", 0))
receiver.setsockopt(263, 8, 1)
print("listening", flush=True)
while True:
    frame, about, _, _ = receiver.recvmsg(2000, 256)
    if b"levellevel" in frame:
        data = [data for level, kind, data in about if (level, kind) == (263, 8)][0]
        status, length, captured, mac, net, tag, protocol = struct.unpack("IIIHHHH", data[:20])
        print(tag if status & 16 else "no tag", flush=True)
        break
"#;

/// Two guests and the host send more than their buckets through one device; each has its own bucket of each level.
#[test]
fn guests_behind_one_device_have_buckets_of_their_own() {
    let guest = |last: u64, level| LimitedGuest { address: 0x0254_0000_0000 + last, level };
    let guests = [guest(1, None), guest(2, Some(5))];
    let limiter =
        LimiterProgram::load_for_guests(&levels(300), Excess::Drop, Tag::None, &guests, Inputs::Kernel);
    let Some(limiter) = loaded(limiter) else { return };
    let Some(link) = Namespace::new("gst", 8).filter(|_| python_is_here()) else { return };
    let _attached = limiter.program().attach(link.near_ifindex(), HookDirection::Egress).unwrap();
    let sender = python("python3", &[], &GUESTS.replace("DEVICE", link.near()));
    assert!(sender.wait_with_output().unwrap().status.success());
    let three_of_ten = QjumpCounts { passed: 3, bytes: 300, refused: 7 };
    // The class selector of the frames is 6.
    assert_eq!(limiter.counts_of(1, 6).unwrap(), three_of_ten);
    assert_eq!(limiter.counts_of(2, 5).unwrap(), three_of_ten);
    assert_eq!(limiter.counts(4).unwrap(), three_of_ten);
}

/// Sends ten frames of 100 bytes from each of two guests, and from an address of the host at priority 4.
const GUESTS: &str = r#"
import socket
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("DEVICE", 0))
header = bytes([0x45, 6 << 5, 0, 86, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2])
for last, priority in [(1, 0), (2, 0), (3, 4)]:
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
    frame = bytes([2] * 6 + [2, 0x54, 0, 0, 0, last, 8, 0]) + header
    for _ in range(10):
        sender.send(frame.ljust(100, b"x"))
"#;
