//! Opening of a connection and its subflows.

use plimsoll_mechanisms::mptcp::MptcpParams;
use plimsoll_mechanisms::tcp::{Flags, TransportParams};
use plimsoll_units::{Span, Time};

use crate::net::{InFlight, Net, config, tcp};

/// RFC 8684, section 3.2: a subflow joins a connection that is established, which sends data meanwhile.
#[test]
fn further_subflows_join_once_the_first_is_established() {
    let tcp = TransportParams { handshake: true, ..tcp() };
    let mut net = Net::new(config(&tcp, &MptcpParams::default()), &[100, 300]);
    net.write(0, 100_000);
    net.run(Time::MAX);
    let at = |us: u64| Time::ZERO + Span::from_us(us);
    let first = |subflow: usize, end: usize, what: &dyn Fn(&InFlight) -> bool| {
        let found = net.log.iter().find(|(_, sent)| sent.subflow == subflow && sent.to != end && what(sent));
        found.map(|(now, _)| *now)
    };
    let syn = |sent: &InFlight| sent.segment.flags.has(Flags::SYN);
    let data = |sent: &InFlight| sent.segment.len > 0;
    assert_eq!(first(0, 0, &syn), Some(at(0)));
    assert_eq!(first(0, 1, &syn), Some(at(100)));
    assert_eq!(first(0, 0, &data), Some(at(200)));
    assert_eq!(first(1, 0, &syn), Some(at(200)), "not before the first subflow is established");
    assert_eq!(first(1, 0, &data), Some(at(800)));
    assert_eq!(net.ends[1].received(), 100_000);
}

#[test]
fn the_other_end_answers_on_what_is_open() {
    let tcp = TransportParams { handshake: true, ..tcp() };
    let mut net = Net::new(config(&tcp, &MptcpParams::default()), &[100, 100]);
    net.write(0, 500);
    net.run(Time::MAX);
    net.write(1, 40_000);
    net.run(Time::MAX);
    assert_eq!((net.ends[0].received(), net.ends[1].received()), (40_000, 500));
    assert!(net.ends.iter().all(|end| end.is_idle()));
    assert_eq!(net.ends[1].acknowledged(), 40_000, "the data ACK came back");
}
