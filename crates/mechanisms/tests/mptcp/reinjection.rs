//! Actions of the other subflows when one has timed out.

use plimsoll_mechanisms::mptcp::{Coupling, MptcpParams};
use plimsoll_mechanisms::tcp::TransportParams;
use plimsoll_units::{Span, Time};

use crate::net::{MSS, Net, config, tcp};

fn net() -> Net {
    let tcp = TransportParams { initial_window: 4, ..tcp() };
    let mptcp = MptcpParams { coupling: Coupling::Uncoupled, ..MptcpParams::default() };
    Net::new(config(&tcp, &mptcp), &[100, 400])
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

#[test]
fn a_subflow_that_timed_out_has_its_data_sent_by_the_other() {
    let mut net = net();
    net.loses = Box::new(|now, sent| sent.subflow == 0 && now >= at(150));
    // Four segments a subflow; the ACKs of subflow 0 are the first that are lost.
    net.write(0, 8 * MSS);
    net.run(at(9_999));
    assert_eq!(net.ends[1].received(), 8 * MSS);
    assert_eq!(net.ends[0].acknowledged(), 8 * MSS, "the data ACK came by the other subflow");
    net.write(0, 8 * MSS);
    let before = net.log.len();
    net.run(at(30_000));
    assert_eq!(net.ends[1].received(), 16 * MSS, "the rest went by the other subflow");
    let again: Vec<_> = net.log[before..].iter().filter(|(_, sent)| sent.reinjected).collect();
    assert!(again.iter().all(|(_, sent)| sent.subflow == 1));
    assert_eq!(net.ends[0].acknowledged(), 16 * MSS);
    assert!(!net.ends[0].is_idle(), "subflow 0 still repeats what it sent");
}

#[test]
fn data_is_reinjected_when_the_timer_fires_and_once() {
    let mut net = net();
    net.loses = Box::new(|now, sent| sent.subflow == 0 && now < at(25_000));
    net.write(0, 4 * MSS);
    net.run(at(9_999));
    assert_eq!((net.ends[1].received(), net.ends[0].reinjections()), (0, 0));
    // The RTO is 10 ms; the other path takes 0.4 ms.
    net.run(at(10_400));
    assert_eq!((net.ends[1].received(), net.ends[0].reinjections()), (4 * MSS, 4));
    let times: Vec<Time> = net.log.iter().filter(|(_, sent)| sent.reinjected).map(|(now, _)| *now).collect();
    assert_eq!(times, [at(10_000); 4]);
    // The path works again from 25 ms on; the second timeout is at 30 ms, and subflow 0 sends its data to the end.
    net.run(Time::MAX);
    assert_eq!(net.ends[0].reinjections(), 4, "not once more for the second timeout");
    assert_eq!(net.ends[1].subflow(0).received(), 4 * MSS);
    assert!(net.ends[0].is_idle());
    // It has received an ACK, so the scheduler uses it again: its RTT is lower.
    let before = net.log.len();
    net.write(0, MSS);
    assert_eq!(net.log[before].1.subflow, 0);
}

/// Fast retransmit repairs a loss, and nothing is reinjected.
#[test]
fn a_loss_without_a_timeout_stays_with_its_subflow() {
    let mut net = net();
    let mut lost = false;
    net.loses = Box::new(move |_, sent| {
        let first = sent.subflow == 0 && sent.segment.len > 0 && !std::mem::replace(&mut lost, true);
        first && sent.segment.seq == 0
    });
    net.write(0, 40 * MSS);
    net.run(Time::MAX);
    assert_eq!(net.ends[1].received(), 40 * MSS);
    assert_eq!(net.ends[0].reinjections(), 0);
    assert!(net.ends[0].subflow(0).counters().fast_retransmits == 1);
}

/// The other path takes longer than the timer that fires again: its copies are on their way, and no more are sent.
#[test]
fn a_second_timeout_reinjects_nothing_again() {
    let tcp = TransportParams { initial_window: 8, initial_rto: Span::from_ms(300), ..tcp() };
    let mptcp = MptcpParams { coupling: Coupling::Uncoupled, ..MptcpParams::default() };
    let mut net = Net::new(config(&tcp, &mptcp), &[100, 40_000]);
    // Both RTTs are measured.
    net.write(0, 12 * MSS);
    net.run(Time::MAX);
    let dead_from = net.now;
    net.loses = Box::new(move |now, sent| sent.subflow == 0 && now >= dead_from);
    net.write(0, 4 * MSS);
    net.run(dead_from + Span::from_ms(75));
    let timeouts = net.ends[0].subflow(0).counters().timeouts;
    assert_eq!((timeouts, net.ends[0].reinjections()), (3, 4), "at 10, 30 and 70 ms");
    assert_eq!(net.ends[1].received(), 16 * MSS);
}
