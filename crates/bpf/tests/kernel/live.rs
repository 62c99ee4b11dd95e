//! Tests the limiter at a device with the kernel's own clock: the errors that the sender gets.

use plimsoll_bpf::{HookDirection, Inputs, LimiterProgram};
use plimsoll_mechanisms::qjump::{Excess, Level, Levels};
use plimsoll_units::{Bytes, Rate, Span};

use crate::loaded;
use crate::namespace::{Namespace, python, python_is_here};

/// The length of a packet: Ethernet, IPv4 and UDP headers with 1,000 bytes.
const PACKET: u64 = 14 + 20 + 8 + 1_000;

/// Sends thirty packets in one epoch with a share of ten.
#[test]
fn a_refused_sender_hears_of_it_and_a_dropped_one_does_not() {
    let level = Level { bucket: Bytes::new(10 * PACKET), rate: Rate::from_gbps(10), latency_bound: None };
    let levels = Levels { epoch: Span::from_secs(1_000), levels: vec![level; 8] };
    for (excess, told) in [(Excess::Refuse, "20"), (Excess::Drop, "0")] {
        let Some(limiter) = loaded(LimiterProgram::load(&levels, excess, true, Inputs::Kernel)) else {
            return;
        };
        let Some(link) = Namespace::new("lim", 3).filter(|_| python_is_here()) else { return };
        // Without ARP, a packet leaves without an answer from the other end.
        assert!(link.run("ip", "link set {device} arp off"));
        let _attached = limiter.program().attach(link.near_ifindex(), HookDirection::Egress).unwrap();
        let sender = python("python3", &[], &SENDER.replace("ADDRESS", &link.address()));
        let output = sender.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), told, "{excess:?}");
        let bucket = limiter.bucket(6).unwrap();
        assert_eq!((bucket.bytes, bucket.excess), (0, 20), "{excess:?}: {bucket:?}");
    }
}

const SENDER: &str = r#"
import errno, socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 6)
IP_RECVERR = 11
sender.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
told = 0
for _ in range(30):
    try:
        sender.sendto(bytes(1000), ("ADDRESS", 9))
    except OSError as error:
        assert error.errno == errno.ENOBUFS, error
        told += 1
print(told, end="")
"#;
