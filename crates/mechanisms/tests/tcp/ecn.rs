//! Marks: classic ECN, DCTCP's receiver and sender.

use plimsoll_mechanisms::tcp::controller::DctcpParams;
use plimsoll_mechanisms::tcp::{
    EceGrowth, EcnField, EcnMode, Flags, Kind, LossAfterEcn, Recovery, TcpSegment, TransportParams,
    WindowUnit,
};

use crate::script::{MSS, Script, params};

fn classic() -> TransportParams {
    TransportParams { ecn: EcnMode::On, ..params() }
}

fn dctcp() -> TransportParams {
    TransportParams { kind: Kind::Dctcp, ..params() }
}

fn ece(segment: &TcpSegment) -> bool {
    segment.flags.has(Flags::ECE)
}

#[test]
fn what_can_be_marked() {
    for (ecn_on_acks, other) in [(false, EcnField::NotEct), (true, EcnField::Ect)] {
        let mut s = Script::new(TransportParams { ecn_on_acks, ..dctcp() });
        s.write(5 * MSS);
        assert_eq!(s.poll().unwrap().ecn, EcnField::Ect);
        s.data(0, 100, EcnField::Ect);
        assert_eq!(s.acks(100).ecn, other);
        s.expire();
        assert_eq!(s.poll().unwrap().ecn, other, "a retransmission");
    }
    let mut s = Script::new(params());
    s.write(MSS);
    assert_eq!(s.poll().unwrap().ecn, EcnField::NotEct);
}

#[test]
fn negotiation() {
    let setup = Flags::SYN.with(Flags::ECE).with(Flags::CWR);
    let mut s = Script::new(TransportParams { handshake: true, ..classic() });
    s.write(MSS);
    assert_eq!(s.poll().unwrap().flags, setup);
    s.input(TcpSegment { flags: Flags::SYN.with(Flags::ACK).with(Flags::ECE), ..TcpSegment::default() });
    s.acks(0);
    assert_eq!(s.poll().unwrap().ecn, EcnField::Ect);

    // The other end does not: no ECN.
    let mut s = Script::new(TransportParams { handshake: true, ..classic() });
    s.write(MSS);
    s.poll();
    s.input(TcpSegment { flags: Flags::SYN.with(Flags::ACK), ..TcpSegment::default() });
    s.acks(0);
    assert_eq!(s.poll().unwrap().ecn, EcnField::NotEct);

    let mut s = Script::new(TransportParams { handshake: true, ..classic() });
    s.input(TcpSegment { flags: setup, ..TcpSegment::default() });
    assert_eq!(s.poll().unwrap().flags, Flags::SYN.with(Flags::ACK).with(Flags::ECE));
}

#[test]
fn classic_echo_lasts_until_cwr() {
    let mut s = Script::new(classic());
    s.data(0, 1000, EcnField::Ect);
    assert!(!ece(&s.acks(1000)));
    s.data(1000, 1000, EcnField::Ce);
    assert!(ece(&s.acks(2000)));
    s.data(2000, 1000, EcnField::Ect);
    assert!(ece(&s.acks(3000)));
    s.data_flags(3000, 1000, EcnField::Ect, Flags::CWR);
    assert!(!ece(&s.acks(4000)));
    s.data_flags(4000, 1000, EcnField::Ce, Flags::CWR);
    assert!(ece(&s.acks(5000)));
    assert_eq!(s.end.counters().ce_received, 2);
}

#[test]
fn classic_cut_once_a_window() {
    let mut s = Script::new(classic());
    s.write(100 * MSS).sends(0, 10).at(100);
    s.ack_ece(1000).cwnd(5000).ssthresh(5000).silent();
    // No growth and no cut for the rest of the window.
    for index in 2..=5 {
        s.ack_ece(1000 * index).cwnd(5000).silent();
    }
    // CWR is sent once, on the first new data.
    s.ack_ece(6000).cwnd(5000);
    assert!(s.poll().unwrap().flags.has(Flags::CWR));
    s.ack(7000).cwnd(5200);
    assert!(!s.poll().unwrap().flags.has(Flags::CWR));
    s.ack(10_000).sends(12_000, 3);
    // Data sent after the cut is marked: the next one.
    s.ack_ece(11_000).cwnd(2696).ssthresh(2696);
    assert_eq!((s.end.counters().ecn_cuts, s.end.counters().ece_acks), (2, 7));
}

#[test]
fn a_mark_does_not_cut_a_window_that_a_loss_cut() {
    let mut s =
        Script::new(TransportParams { recovery: Recovery::NewReno, limited_transmit: false, ..classic() });
    s.write(100 * MSS).sends(0, 10).at(100).ack(0).ack(0).ack(0).resends(0, 1000).ssthresh(5000);
    s.ack_ece(5000).ssthresh(5000).ack_ece(10_000).ssthresh(5000).cwnd(2000);
    // After a timeout it does.
    let mut s = Script::new(TransportParams { min_window: 1, ..classic() });
    s.write(10 * MSS).sends(0, 10).expire().ssthresh(5000).resends(0, 1000);
    s.ack_ece(1000).ssthresh(2000).cwnd(1000);
}

#[test]
fn floors_of_a_cut() {
    for (min_window, min_ssthresh, cwnd, ssthresh) in
        [(1, 2, 1000, 2000), (2, 2, 2000, 2000), (1, 1, 1000, 1000)]
    {
        let base = TransportParams { initial_window: 1, initial_ssthresh: Some(1), ..classic() };
        let mut s = Script::new(TransportParams { min_window, min_ssthresh, ..base });
        s.write(100 * MSS).sends(0, 1).at(100).ack_ece(1000).cwnd(cwnd).ssthresh(ssthresh);
    }
}

#[test]
fn growth_on_echoes() {
    let mut s = Script::new(TransportParams {
        ece_growth: EceGrowth::AfterFirst,
        app_limited_growth: true,
        dctcp: DctcpParams { gain: 1e-9, initial_alpha: 0.0 },
        ..dctcp()
    });
    // With alpha about 0 a cut changes nothing, so only growth remains: not on the first of a run.
    s.write(100 * MSS).sends(0, 10).at(100);
    s.ack(1000).cwnd(11_000).ack_ece(2000).ssthresh(11_000).cwnd(11_000);
    s.ack_ece(3000).cwnd(11_090).ack_ece(4000).cwnd(11_180);
    s.ack(5000).cwnd(11_269).ack_ece(6000).cwnd(11_269).ack_ece(7000).cwnd(11_357);
}

#[test]
fn alpha_by_hand() {
    let mut s = Script::new(TransportParams {
        dctcp: DctcpParams { initial_alpha: 0.0, ..DctcpParams::default() },
        initial_ssthresh: Some(10),
        ..dctcp()
    });
    s.write(1000 * MSS).sends(0, 10).at(100);
    // The first ACK ends the first window (WindowEnd = 0): M = 0.
    s.ack(1000);
    assert_eq!(s.end.window().alpha, 0.0);
    // WindowEnd = 10000. Nine more segments, three of them marked, and then the ACK beyond.
    s.sends(10_000, 1);
    for index in 2..=7 {
        s.ack(1000 * index);
    }
    s.ack_ece(8000).ack_ece(9000).ack_ece(10_000);
    assert_eq!(s.end.window().alpha, 0.0);
    while s.poll().is_some() {}
    s.ack(11_000);
    // M = 3/10, alpha = 0.3/16 = 0.01875.
    assert!((s.end.window().alpha - 0.01875).abs() < 1e-8, "{}", s.end.window().alpha);
}

#[test]
fn the_cut_is_proportional() {
    // alpha 1: half. alpha 0.5: a quarter off. Once a window.
    for (initial_alpha, cwnd) in [(1.0, 5000), (0.5, 7500), (0.0, 10_000)] {
        let mut s =
            Script::new(TransportParams { dctcp: DctcpParams { gain: 1e-9, initial_alpha }, ..dctcp() });
        s.write(100 * MSS)
            .sends(0, 10)
            .at(100)
            .ack_ece(1000)
            .cwnd(cwnd)
            .ssthresh(cwnd)
            .ack_ece(2000)
            .cwnd(cwnd);
    }
    // In segments: cwnd keeps the fraction, ssthresh is rounded down.
    let whole = TransportParams {
        window_unit: WindowUnit::Segments,
        dctcp: DctcpParams { gain: 1e-9, initial_alpha: 0.5 },
        ..dctcp()
    };
    Script::new(whole).write(100 * MSS).sends(0, 10).ack_ece(1000).cwnd(7500).ssthresh(7000);
}

#[test]
fn a_minimum_of_two_emerges_from_the_floors() {
    let floors = TransportParams { min_window: 1, min_ssthresh: 2, ..dctcp() };
    let low = TransportParams {
        initial_window: 2,
        initial_ssthresh: Some(2),
        dctcp: DctcpParams { gain: 1e-9, ..DctcpParams::default() },
        ..floors
    };
    let mut s = Script::new(low);
    // alpha is 1: cwnd 1, ssthresh 2. The next ACK is in slow start: back to 2.
    s.write(100 * MSS).sends(0, 2).at(100).ack_ece(1000).cwnd(1000).ssthresh(2000).silent();
    s.ack(2000).cwnd(2000).sends(2000, 2).silent();
}

#[test]
fn ce_state_machine() {
    let mut s = Script::new(TransportParams { ack_every: 2, ..dctcp() });
    // Unmarked, marked: the first is acknowledged without ECE, then the second at once with it.
    s.data(0, 1000, EcnField::Ect);
    s.silent();
    s.data(1000, 1000, EcnField::Ce);
    assert!(!ece(&s.acks(1000)));
    assert!(ece(&s.acks(2000)));
    s.silent();
    // Two marked ones in a row: an ACK for both.
    s.data(2000, 1000, EcnField::Ce);
    s.silent();
    s.data(3000, 1000, EcnField::Ce);
    assert!(ece(&s.acks(4000)));
    // CE ends, with no segment waiting: one ACK.
    s.data(4000, 1000, EcnField::Ect);
    assert!(!ece(&s.acks(5000)));
    s.silent().no_deadline();
}

#[test]
fn marks_on_acks_are_echoed_if_asked() {
    for echo_marked_acks in [false, true] {
        let mut s = Script::new(TransportParams { echo_marked_acks, ..dctcp() });
        s.write(2 * MSS).sends(0, 2);
        s.input(TcpSegment { ack: 1000, flags: Flags::ACK, ecn: EcnField::Ce, ..TcpSegment::default() });
        s.silent().write(MSS);
        assert_eq!(ece(&s.poll().unwrap()), echo_marked_acks);
        // An unmarked ACK does not clear the state, data does.
        s.ack(2000).write(MSS);
        assert_eq!(ece(&s.poll().unwrap()), echo_marked_acks);
        s.data(0, 100, EcnField::Ect);
        assert!(!ece(&s.acks(100)));
    }
}

#[test]
fn a_loss_after_a_mark() {
    let base = TransportParams {
        recovery: Recovery::Reno,
        limited_transmit: false,
        dctcp: DctcpParams { gain: 1e-9, initial_alpha: 0.0 },
        ..dctcp()
    };
    for (loss_after_ecn, cwnd, ssthresh) in
        [(LossAfterEcn::Cut, 7500, 4500), (LossAfterEcn::KeepSsthresh, 5000, 10_000)]
    {
        let mut s = Script::new(TransportParams { loss_after_ecn, ..base.clone() });
        s.write(100 * MSS).sends(0, 10).at(100).ack_ece(1000).cwnd(10_000).ssthresh(10_000);
        s.ack(1000).ack(1000).ack(1000).resends(1000, 1000).cwnd(cwnd).ssthresh(ssthresh);
    }
    for (loss_after_ecn, ssthresh) in [(LossAfterEcn::Cut, 4500), (LossAfterEcn::KeepSsthresh, 10_000)] {
        let mut s = Script::new(TransportParams { loss_after_ecn, ..base.clone() });
        s.write(100 * MSS).sends(0, 10).at(100).ack_ece(1000).expire().cwnd(1000).ssthresh(ssthresh);
    }
}
