//! Assignment of data to subflows, by hand.

use plimsoll_mechanisms::mptcp::{Coupling, Mapping, MptcpParams, PathState, SubflowPaths, SubflowScheduler};
use plimsoll_mechanisms::tcp::TransportParams;
use plimsoll_units::{Span, Time};

use crate::net::{MSS, Net, config, tcp};

fn net(scheduler: SubflowScheduler, window: u32, delays_us: &[u64]) -> Net {
    let tcp = TransportParams { initial_window: window, initial_ssthresh: Some(1), ..tcp() };
    let paths =
        if scheduler == SubflowScheduler::ActivePath { SubflowPaths::Classes } else { SubflowPaths::Hash };
    let mptcp = MptcpParams {
        subflows: delays_us.len() as u32,
        scheduler,
        paths,
        coupling: Coupling::Uncoupled,
        workloads: None,
    };
    Net::new(config(&tcp, &mptcp), delays_us)
}

/// The subflow and the data offset of each segment with data since `from`.
fn sent(net: &Net, from: Time) -> Vec<(usize, u64)> {
    let data = net.log.iter().filter(|(now, sent)| *now >= from && sent.segment.len > 0);
    data.map(|(_, sent)| (sent.subflow, sent.mappings[0].data / MSS)).collect()
}

#[test]
fn the_default_fills_the_window_of_the_lowest_rtt_first() {
    let mut net = net(SubflowScheduler::Default, 3, &[200, 100]);
    // Before anything is measured the numbers decide.
    net.write(0, 4 * MSS);
    assert_eq!(sent(&net, Time::ZERO), [(0, 0), (0, 1), (0, 2), (1, 3)]);
    net.run(Time::MAX);
    let from = net.now;
    net.write(0, 5 * MSS);
    assert_eq!(sent(&net, from)[..3], [(1, 4), (1, 5), (1, 6)]);
    assert!(sent(&net, from)[3..].iter().all(|(subflow, _)| *subflow == 0), "{:?}", sent(&net, from));
    net.run(Time::MAX);
    assert_eq!(net.ends[1].received(), 9 * MSS);
}

#[test]
fn round_robin_takes_turns_among_those_with_room() {
    let mut net = net(SubflowScheduler::RoundRobin, 2, &[100, 500, 300]);
    net.write(0, 7 * MSS);
    assert_eq!(sent(&net, Time::ZERO), [(0, 0), (1, 1), (2, 2), (0, 3), (1, 4), (2, 5)]);
    // The window of subflow 0 opens first.
    net.run(Time::ZERO + Span::from_us(200));
    assert_eq!(sent(&net, Time::ZERO)[6..], [(0, 6)]);
    net.run(Time::MAX);
    assert_eq!(net.ends[1].received(), 7 * MSS);
}

#[test]
fn the_active_path_is_the_only_one_for_data() {
    let mut net = net(SubflowScheduler::ActivePath, 4, &[100, 100]);
    net.paths[1].state = PathState::Inactive;
    net.write(0, 8 * MSS);
    assert_eq!(sent(&net, Time::ZERO), [(0, 0), (0, 1), (0, 2), (0, 3)]);
    // The circuit opens before any ACK is back, and closes again.
    net.paths[0].state = PathState::Inactive;
    net.paths[1].state = PathState::Open;
    net.send(0);
    assert_eq!(sent(&net, Time::ZERO)[4..], [(1, 4), (1, 5), (1, 6), (1, 7)]);
    net.paths[1].state = PathState::Full;
    net.paths[0].state = PathState::Open;
    net.run(Time::ZERO + Span::from_us(200));
    assert_eq!(net.ends[1].received(), 8 * MSS);
    // The ACKs of a subflow whose path is full wait for room, at the receiver as well.
    assert_eq!(net.ends[0].acknowledged(), 4 * MSS);
    let from = net.now;
    net.write(0, 2 * MSS);
    assert_eq!(sent(&net, from), [(0, 8), (0, 9)]);
}

/// The data sequence is cut into mappings as the scheduler assigns it, and the data ACK is sent back on every subflow.
#[test]
fn mappings_and_data_acks_are_those_of_the_rfc() {
    let mut net = net(SubflowScheduler::RoundRobin, 10, &[100, 250]);
    net.write(0, 3 * MSS + 300);
    let mappings: Vec<(usize, Mapping)> =
        net.log.iter().map(|(_, sent)| (sent.subflow, sent.mappings[0])).collect();
    let mapping = |subflow, data, len| Mapping { subflow, data, len };
    assert_eq!(
        mappings,
        [
            (0, mapping(0, 0, 1_000)),
            (1, mapping(0, 1_000, 1_000)),
            (0, mapping(1_000, 2_000, 1_000)),
            (1, mapping(1_000, 3_000, 300)),
        ]
    );
    net.run(Time::MAX);
    let acks: Vec<(usize, u64, u64)> =
        net.log[4..].iter().map(|(_, sent)| (sent.subflow, sent.segment.ack, sent.data_ack)).collect();
    // The third segment waits for the second, which takes the longer path.
    assert_eq!(acks, [(0, 1_000, 1_000), (0, 2_000, 1_000), (1, 1_000, 3_000), (1, 1_300, 3_300)]);
}

/// Both subflows have room, and the window that they share has not (RFC 8684, section 3.3.1).
#[test]
fn the_receive_window_is_shared() {
    let tcp = TransportParams { initial_window: 4, max_window: 4, initial_ssthresh: Some(1), ..tcp() };
    let mut net = Net::new(config(&tcp, &MptcpParams::default()), &[100, 100]);
    net.write(0, 20 * MSS);
    assert_eq!(sent(&net, Time::ZERO).len(), 4);
    net.run(Time::MAX);
    assert_eq!(net.ends[1].received(), 20 * MSS);
}
