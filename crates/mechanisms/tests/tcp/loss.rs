//! Packet loss: fast retransmit and recovery by scheme, reordering, and go-back-N.

use plimsoll_mechanisms::tcp::{CutBase, FastRetransmitGuard, Growth, Recovery, TransportParams};

use crate::script::{MSS, Script, params};

fn with(recovery: Recovery) -> TransportParams {
    TransportParams { recovery, limited_transmit: false, ..params() }
}

/// Ten segments are outstanding, and there is more to send.
fn ten_out(params: TransportParams) -> Script {
    let mut s = Script::new(params);
    s.write(100 * MSS).sends(0, 10).silent().at(100);
    s
}

fn dup_acks(s: &mut Script, ack: u64, count: u64) {
    for _ in 0..count {
        s.ack(ack).silent();
    }
}

#[test]
fn two_duplicates_are_reordering() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut s = ten_out(with(recovery));
        dup_acks(&mut s, 0, 2);
        s.ack(3000).cwnd(11_000);
        assert_eq!(s.end.counters().retransmissions, 0);
    }
    let mut s = ten_out(with(Recovery::Sack));
    s.sack(0, &[(1000, 2000)]).silent().sack(0, &[(1000, 3000)]).silent();
    s.sack(3000, &[]).cwnd(11_000);
    assert_eq!(s.end.counters().fast_retransmits, 0);
}

#[test]
fn reno_single_loss() {
    let mut s = ten_out(with(Recovery::Reno));
    dup_acks(&mut s, 0, 2);
    // Half of the flight and three segments; the lost one again.
    s.ack(0).ssthresh(5000).cwnd(8000).resends(0, 1000).silent();
    s.ack(0).cwnd(9000).silent().ack(0).cwnd(10_000).silent();
    // Four more inflate the window beyond the flight: new data.
    for index in 0..4 {
        s.ack(0).cwnd(11_000 + 1000 * index).sends(10_000 + 1000 * index, 1).silent();
    }
    // The retransmission fills the hole: cwnd = ssthresh, and this ACK opens it.
    s.at(200).ack(10_000).cwnd(5200).sends(14_000, 1).silent();
    assert_eq!(s.end.counters().fast_retransmits, 1);
    assert_eq!(s.end.counters().retransmissions, 1);
}

#[test]
fn reno_leaves_recovery_on_a_partial_ack() {
    // 0 and 5 are lost. The second loss is in the same window: no second fast retransmit.
    let mut s = ten_out(with(Recovery::Reno));
    dup_acks(&mut s, 0, 2);
    s.ack(0).resends(0, 1000);
    dup_acks(&mut s, 0, 2);
    for index in 0..3 {
        s.ack(0).sends(10_000 + 1000 * index, 1).silent();
    }
    s.cwnd(13_000).at(200).ack(5000).cwnd(5200).silent();
    dup_acks(&mut s, 5000, 3);
    s.cwnd(5200).deadline(1_000_200);
    // The timer repairs it.
    s.expire().cwnd(1000).ssthresh(4000).resends(5000, 1000).silent();
    assert_eq!(s.end.counters().fast_retransmits, 1);
}

#[test]
fn reno_guards() {
    // Where only a timeout blocks, the second loss is retransmitted and cuts again.
    let after_timeout = FastRetransmitGuard::AfterTimeout;
    let base = TransportParams {
        fast_retransmit_guard: after_timeout,
        cut_from: CutBase::Window,
        ..with(Recovery::Reno)
    };
    let mut s = ten_out(base.clone());
    dup_acks(&mut s, 0, 2);
    s.ack(0).resends(0, 1000).ssthresh(5000);
    s.at(200).ack(5000).cwnd(5200).silent();
    dup_acks(&mut s, 5000, 2);
    s.ack(5000).ssthresh(2600).cwnd(5600).resends(5000, 1000);

    // After a timeout nothing is retransmitted, but the window is inflated until the next new ACK.
    let mut s = ten_out(base);
    s.expire().cwnd(1000).ssthresh(5000).resends(0, 1000);
    s.ack(1000).cwnd(2000).resends(1000, 1000).resends(2000, 1000);
    s.ack(1000).ack(1000).ack(1000).cwnd(2000).silent();
    s.ack(1000).cwnd(3000).resends(3000, 1000).silent();
    s.ack(4000).cwnd(4000);
    assert_eq!(s.end.counters().fast_retransmits, 0);

    // Off: even then.
    let off = TransportParams { fast_retransmit_guard: FastRetransmitGuard::Off, ..with(Recovery::Reno) };
    let mut s = ten_out(off);
    s.expire().resends(0, 1000).ack(1000).resends(1000, 1000).resends(2000, 1000);
    s.ack(1000).ack(1000).ack(1000).resends(1000, 1000);
}

#[test]
fn fast_retransmit_can_be_off() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut s = ten_out(TransportParams { dup_ack_threshold: 0, ..with(recovery) });
        dup_acks(&mut s, 0, 9);
        s.cwnd(10_000).deadline(1_000_000).expire().resends(0, 1000).silent();
    }
    let mut s = ten_out(TransportParams { dup_ack_threshold: 0, ..with(Recovery::Sack) });
    for index in 1..10 {
        s.sack(0, &[(1000, 1000 + 1000 * index)]).silent();
    }
    s.expire().resends(0, 1000).ack(10_000).sends(10_000, 2).silent();
}

/// After a timeout, with 1 to 8 reported and 0 and 9 missing.
#[test]
fn what_is_sacked_may_take_room_in_the_window() {
    for sacked_in_window in [false, true] {
        let sack = TransportParams { dup_ack_threshold: 0, sacked_in_window, ..with(Recovery::Sack) };
        let mut s = ten_out(sack);
        s.sack(0, &[(1000, 9000)]).silent();
        assert_eq!(s.end.remaining(), 92_000);
        s.expire().cwnd(1000).resends(0, 1000).silent();
        // The first duplicate of an ACK from before opens nothing: one segment is outstanding either way.
        s.sack(0, &[(1000, 9000)]).silent();
        s.ack(9000).cwnd(2000).resends(9000, 1000).sends(10_000, 1).silent();
    }
    // Two holes: with a window of two segments, the second is out of reach where all counts.
    for (sacked_in_window, reached) in [(false, true), (true, false)] {
        let sack = TransportParams { dup_ack_threshold: 0, sacked_in_window, ..with(Recovery::Sack) };
        let mut s = ten_out(sack);
        s.sack(0, &[(2000, 8000)]).expire().resends(0, 1000).silent();
        s.sack(1000, &[(2000, 8000)]).cwnd(2000).resends(1000, 1000);
        if reached {
            s.resends(8000, 1000);
        }
        s.silent();
    }
}

#[test]
fn newreno_repairs_a_hole_a_round_trip() {
    // 0, 3 and 6 are lost.
    let mut s = ten_out(with(Recovery::NewReno));
    dup_acks(&mut s, 0, 2);
    s.ack(0).ssthresh(5000).cwnd(8000).resends(0, 1000).deadline(1_000_100);
    dup_acks(&mut s, 0, 2);
    s.ack(0).sends(10_000, 1).silent().ack(0).cwnd(12_000).sends(11_000, 1).silent();
    // Partial: 12000 - 3000 + 1000, the next hole, and the timer starts anew.
    s.at(200).ack(3000).cwnd(10_000).resends(3000, 1000).sends(12_000, 1).silent().deadline(1_000_200);
    s.at(201).ack(3000).cwnd(11_000).sends(13_000, 1).silent();
    // The second partial ACK leaves the timer alone.
    s.at(300).ack(6000).cwnd(9000).resends(6000, 1000).sends(14_000, 1).silent().deadline(1_000_200);
    // Full: the smaller of ssthresh and the flight and one segment.
    s.at(400).ack(10_000).cwnd(5000).ssthresh(5000).deadline(1_000_400).silent();
    s.at(401).ack(11_000).cwnd(5200).sends(15_000, 1).silent();
    let counters = s.end.counters();
    assert_eq!((counters.fast_retransmits, counters.retransmissions, counters.timeouts), (1, 3, 0));
}

#[test]
fn newreno_full_ack_does_not_burst() {
    let mut s = Script::new(with(Recovery::NewReno));
    s.write(10 * MSS).sends(0, 10).at(100);
    dup_acks(&mut s, 0, 2);
    s.ack(0).resends(0, 1000).at(200).ack(10_000).cwnd(2000).ssthresh(5000);
}

#[test]
fn sack_single_loss() {
    let mut s = ten_out(with(Recovery::Sack));
    s.sack(0, &[(1000, 2000)]).silent().sack(0, &[(1000, 3000)]).silent();
    // Three segments SACKed; the first is lost: pipe = 10 - 3 - 1 lost + 1 sent again = 7 of 5.
    s.sack(0, &[(1000, 4000)]).ssthresh(5000).cwnd(5000).resends(0, 1000).silent();
    s.sack(0, &[(1000, 5000)]).silent().sack(0, &[(1000, 6000)]).silent();
    // pipe 4: one new segment for each further SACK.
    s.sack(0, &[(1000, 7000)]).sends(10_000, 1).silent();
    s.sack(0, &[(1000, 8000)]).sends(11_000, 1).silent();
    s.sack(0, &[(1000, 9000)]).sends(12_000, 1).silent();
    s.sack(0, &[(1000, 10_000)]).sends(13_000, 1).silent();
    s.at(200).ack(10_000).cwnd(5000).sends(14_000, 1).silent();
    s.at(300).ack(11_000).cwnd(5200);
    assert_eq!(s.end.counters().retransmissions, 1);
}

#[test]
fn sack_repairs_a_burst_in_a_round_trip() {
    // 1, 2, 4 and 5 are lost.
    let mut s = ten_out(with(Recovery::Sack));
    s.ack(1000).sends(10_000, 2).silent();
    s.sack(1000, &[(3000, 4000)]).silent();
    s.sack(1000, &[(6000, 7000), (3000, 4000)]).silent();
    // Two ranges of 2000 B: not lost yet by IsLost, but the third duplicate starts recovery.
    s.sack(1000, &[(6000, 8000), (3000, 4000)]).ssthresh(5500).resends(1000, 1000).silent();
    // Lost by then: 1, 2 (3 segments above), not 4 and 5. Outstanding 11, SACKed 3.
    s.sack(1000, &[(6000, 9000), (3000, 4000)]).resends(2000, 1000).silent();
    s.sack(1000, &[(6000, 10_000), (3000, 4000)]).resends(4000, 1000).silent();
    s.sack(1000, &[(6000, 11_000), (3000, 4000)]).resends(5000, 1000).silent();
    s.sack(1000, &[(6000, 12_000), (3000, 4000)]).sends(12_000, 1).silent();
    s.at(200).sack(2000, &[(6000, 12_000), (3000, 4000)]).sends(13_000, 1).silent();
    s.sack(4000, &[(6000, 12_000)]).sends(14_000, 1).silent();
    s.sack(5000, &[(6000, 12_000)]).sends(15_000, 1).silent();
    s.ack(12_000).cwnd(5500).sends(16_000, 1).silent();
    let counters = s.end.counters();
    assert_eq!((counters.retransmissions, counters.timeouts, counters.fast_retransmits), (4, 0, 1));
}

#[test]
fn sack_rescues_a_lost_tail_once() {
    // Segments 0 and 9, the last one, are lost, and all data has been sent.
    let mut s = Script::new(with(Recovery::Sack));
    s.write(10 * MSS).sends(0, 10).at(100);
    s.sack(0, &[(1000, 2000)]).sack(0, &[(1000, 3000)]).sack(0, &[(1000, 4000)]).resends(0, 1000).silent();
    for end in 5..=9 {
        s.sack(0, &[(1000, 1000 * end)]);
        if end == 6 {
            s.silent();
        }
    }
    s.resends(9000, 1000).silent();
    s.at(200).ack(9000).silent().at(201).ack(10_000).no_deadline();
    assert_eq!(s.end.counters().timeouts, 0);
}

#[test]
fn sack_timeout_goes_back_over_the_holes_only() {
    // 0, 4, 5 and 9 are lost, all others are SACKed; then the retransmission is lost too.
    let mut s = ten_out(with(Recovery::Sack));
    let blocks = [(6000, 9000), (1000, 4000)];
    s.sack(0, &[(1000, 2000)]).sack(0, &[(1000, 3000)]).sack(0, &[(1000, 4000)]).resends(0, 1000).silent();
    // pipe 2 of 5: both holes, and one new segment.
    s.sack(0, &blocks).resends(4000, 1000).resends(5000, 1000).sends(10_000, 1).silent();
    s.expire().cwnd(1000).resends(0, 1000).silent();
    s.sack(4000, &blocks[..1]).cwnd(2000).resends(4000, 1000).resends(5000, 1000).silent();
    s.sack(5000, &blocks[..1]).cwnd(3000).resends(9000, 1000).resends(10_000, 1000).silent();
    s.ack(10_000).cwnd(4000).sends(11_000, 3).silent();
}

#[test]
fn limited_transmit() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut s = ten_out(TransportParams { limited_transmit: true, ..with(recovery) });
        s.ack(0).sends(10_000, 1).silent().ack(0).sends(11_000, 1).silent();
        // Data sent so does not count as outstanding when the window is cut.
        s.ack(0).resends(0, 1000).ssthresh(5000).silent();
    }
    // It keeps ACKs coming when the window is too small for three duplicates.
    let mut s =
        Script::new(TransportParams { initial_window: 2, limited_transmit: true, ..with(Recovery::NewReno) });
    s.write(100 * MSS)
        .sends(0, 2)
        .at(100)
        .ack(0)
        .sends(2000, 1)
        .ack(0)
        .sends(3000, 1)
        .ack(0)
        .resends(0, 1000);
}

#[test]
fn tail_loss_waits_for_the_timer() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let mut s = Script::new(with(recovery));
        s.write(3 * MSS).sends(0, 3).at(100).ack(2000).silent().deadline(1_000_100);
        s.expire().resends(2000, 1000).silent().at(1_000_200).ack(3000).no_deadline();
        assert!(s.end.is_idle());
        assert_eq!(s.end.counters().timeouts, 1);
    }
}

#[test]
fn go_back_n_jumps_over_what_the_receiver_kept() {
    // 0, 2 and 4 of ten are lost; ns-2's rules.
    let ns2 = TransportParams {
        growth: Growth::Count,
        cut_from: CutBase::Window,
        app_limited_growth: true,
        ..with(Recovery::Reno)
    };
    let mut s = ten_out(ns2);
    s.expire().cwnd(1000).ssthresh(5000).resends(0, 1000).silent();
    s.at(2_000_000).ack(2000).cwnd(2000).resends(2000, 1000).resends(3000, 1000).silent();
    // 2 was missing, so the ACK is for 4; 3 was there: its duplicate ACK changes nothing.
    s.ack(4000).cwnd(3000).resends(4000, 1000).resends(5000, 1000).resends(6000, 1000).silent();
    s.ack(4000).silent();
    s.ack(10_000).cwnd(4000).sends(10_000, 4).silent();
    assert_eq!(s.end.counters().timeouts, 1);
}

#[test]
fn an_ack_of_data_not_sent_is_ignored() {
    let mut s = ten_out(with(Recovery::NewReno));
    s.ack(10_001).silent();
    assert_eq!(s.end.acknowledged(), 0);
}
