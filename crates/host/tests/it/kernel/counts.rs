//! Checks the counts of passed, refused and marked packets in the status.

use std::net::UdpSocket;

use crate::kernel::world::World;

const TIGHT: &str = r#"
[qjump]
device = "near"
hosts = 2
rate = "1Gbps"
epoch = "1000s"
levels = ["line", "line", "10000B"]
excess = "refuse"
[[qjump.assign]]
level = 2
port = 4791
[[phantom-queue]]
device = "far"
direction = "ingress"
rate = "1Mbps"
threshold = "1KB"
"#;

/// The length of the Ethernet, IPv4 and UDP headers.
const HEADERS: u64 = 14 + 20 + 8;

#[test]
fn a_level_by_port_has_its_budget_and_no_more() {
    let Some(world) = World::enter("counts::a_level_by_port_has_its_budget_and_no_more") else { return };
    world.apply(TIGHT);
    let socket = UdpSocket::bind("198.18.9.1:0").unwrap();
    for _ in 0..30 {
        socket.send_to(&[0; 1000 - HEADERS as usize], "198.18.9.2:4791").unwrap();
    }
    for _ in 0..3 {
        socket.send_to(&[0; 100], "198.18.9.2:4792").unwrap();
    }
    let status = world.status();
    let level = &status.levels[2];
    assert_eq!((level.passed_packets, level.passed_bytes, level.refused_packets), (10, 10_000, 20));
    assert_eq!(level.budget_bytes, Some(10_000));
    // Other senders, such as the kernel itself, have level 0.
    assert!(status.levels[0].passed_packets >= 3 && status.levels[0].budget_bytes.is_none(), "{status}");
    // These UDP packets are not ECN-capable: 10 kB at 1 Mb/s filled the phantom queue over its threshold. On a slow
    // machine it is empty again by now.
    let queue = &status.phantom_queues[0];
    assert!(queue.attached && queue.not_capable_packets > 0, "{status}");
    let text = status.to_string();
    assert!(text.contains("Sent 10000 bytes 10 pkt (refused 20)"), "{text}");
    let metrics = plimsoll_host::open_metrics(&[status], &plimsoll_host::HostCounters::default());
    let sample = "device=\"near\",level=\"2\",verdict=\"refused\"} 20";
    assert!(metrics.contains(sample) && metrics.ends_with("# EOF\n"), "{metrics}");
    world.rollback();
}
