//! Growth of the window, and the data that may leave with it.

use plimsoll_mechanisms::tcp::{
    Ack, CongestionControl, Cut, CutBase, EcnField, Endpoint, Growth, Limits, MakeController, Offer,
    Recovery, TcpConfig, TransportParams, Window, WindowUnit,
};
use plimsoll_units::Span;

use crate::script::{MSS, Script, params};

/// A sender with everything in view: window 2, no slow start.
fn avoiding(growth: Growth) -> Script {
    Script::new(TransportParams { initial_window: 4, initial_ssthresh: Some(4), growth, ..params() })
}

#[test]
fn slow_start_doubles_in_a_round_trip() {
    let mut s = Script::new(TransportParams { initial_window: 2, ..params() });
    s.write(100 * MSS).sends(0, 2).silent();
    s.at(100).ack(1000).cwnd(3000).sends(2000, 2).silent();
    s.at(101).ack(2000).cwnd(4000).sends(4000, 2).silent();
    for index in 0..4 {
        s.at(200 + index)
            .ack(3000 + 1000 * index)
            .cwnd(5000 + 1000 * index)
            .sends(6000 + 2000 * index, 2)
            .silent();
    }
}

#[test]
fn slow_start_counts_at_most_a_segment_an_ack() {
    // RFC 5681, equation 2: min(N, SMSS).
    let mut s = Script::new(TransportParams { initial_window: 4, ..params() });
    s.write(100 * MSS).sends(0, 4);
    s.at(100).ack(4000).cwnd(5000);
    s.sends(4000, 5).at(200).ack(4300).cwnd(5300);
    // ns-2 adds a segment even for an ACK of a few bytes.
    let mut s = Script::new(TransportParams { initial_window: 4, growth: Growth::Count, ..params() });
    s.write(100 * MSS).sends(0, 4);
    s.at(100).ack(300).cwnd(5000);
    // Linux adds all of it.
    let mut s = Script::new(TransportParams { initial_window: 4, growth: Growth::Acked, ..params() });
    s.write(100 * MSS).sends(0, 4);
    s.at(100).ack(4000).cwnd(8000);
    s.sends(4000, 8).at(200).ack(4300).cwnd(8300);
}

#[test]
fn growth_by_what_is_acknowledged_takes_no_notice_of_delayed_acks() {
    let mut s = avoiding(Growth::Acked);
    s.write(100 * MSS).sends(0, 4);
    // One ACK for the window: a segment more.
    s.at(100).ack(4000).cwnd(5000).sends(4000, 5);
    // Two of five segments are two fifths of one.
    s.at(200).ack(6000).cwnd(5400);
}

#[test]
fn an_offer_is_the_new_data_that_may_leave() {
    let newreno = TransportParams { recovery: Recovery::NewReno, ..params() };
    let mut s = Script::new(TransportParams { initial_window: 4, ..newreno });
    assert_eq!(s.end.offer(&s.config), None);
    s.write(10 * MSS + 1);
    let first = Offer { allowed: 4000, window: 4000, in_flight: 0, more_data: true };
    assert_eq!(s.end.offer(&s.config), Some(first));
    s.sends(0, 3);
    let rest = Offer { allowed: 1000, in_flight: 3000, ..first };
    assert_eq!(s.end.offer(&s.config), Some(rest));
    s.sends(3000, 1);
    assert_eq!(s.end.offer(&s.config), None);
    // A pending acknowledgement is sent first.
    s.at(100).ack(1000).data(0, 1000, EcnField::NotEct);
    assert_eq!(s.end.offer(&s.config), None);
    s.acks(1000);
    assert_eq!(s.end.offer(&s.config), Some(Offer { allowed: 2000, window: 5000, ..rest }));
    // So does data that is sent again.
    s.ack(1000).ack(1000).ack(1000);
    assert_eq!(s.end.offer(&s.config), None);
}

#[test]
fn a_last_short_segment_is_offered_whole() {
    let mut s = Script::new(TransportParams { initial_window: 4, ..params() });
    s.write(2 * MSS + 1);
    let offer = Offer { allowed: 2001, window: 4000, in_flight: 0, more_data: false };
    assert_eq!(s.end.offer(&s.config), Some(offer));
}

#[test]
fn congestion_avoidance_by_fraction() {
    let mut s = avoiding(Growth::Fraction);
    s.write(100 * MSS).sends(0, 4);
    let mut cwnd = 4000;
    for index in 1..=4 {
        cwnd += 1_000_000 / cwnd;
        s.at(100 + index).ack(1000 * index).cwnd(cwnd);
        s.sends(3000 + 1000 * index, 1);
    }
    // 4000, 4250, 4485, 4707, 4919: a round trip adds a little less than one segment, so that the
    // fifth full segment does not fit yet.
    s.cwnd(4919).silent();
    s.at(200).ack(5000).cwnd(5122).sends(8000, 2).silent();
}

#[test]
fn congestion_avoidance_by_count() {
    let mut s = avoiding(Growth::Count);
    s.write(100 * MSS).sends(0, 4);
    for index in 1..=3 {
        s.at(100 + index).ack(1000 * index).cwnd(4000).sends(3000 + 1000 * index, 1).silent();
    }
    s.at(104).ack(4000).cwnd(5000).sends(7000, 2).silent();
    for index in 5..=8 {
        s.at(200 + index).ack(1000 * index).cwnd(5000);
    }
    s.at(209).ack(9000).cwnd(6000);
}

#[test]
fn a_cut_resets_the_count() {
    let mut s = avoiding(Growth::Count);
    s.write(100 * MSS).sends(0, 4).at(100).ack(1000).ack(2000).ack(3000).sends(4000, 3);
    s.at(200).expire().cwnd(1000).resends(3000, 1000);
    s.at(3_000_000).ack(7000).cwnd(2000).sends(7000, 2);
    s.at(3_000_100).ack(8000).cwnd(2000).ack(9000).cwnd(3000);
}

#[test]
fn max_window_caps_what_is_outstanding_and_cwnd() {
    let mut s = Script::new(TransportParams { initial_window: 3, max_window: 4, ..params() });
    s.write(100 * MSS).sends(0, 3);
    s.at(100).ack(3000).cwnd(4000).sends(3000, 4).silent();
    s.at(200).ack(7000).cwnd(4000).sends(7000, 4).silent();
}

#[test]
fn only_full_segments_leave_the_middle_of_the_stream() {
    let mut s = Script::new(TransportParams { initial_window: 2, initial_ssthresh: Some(2), ..params() });
    s.write(1500).sends(0, 1).sends_part(1000, 500).silent();
    // 500 B of window are left: not enough for a full segment, so nothing leaves.
    s.write(5000).silent();
    s.at(100).ack(1000).cwnd(2500).sends(1500, 2).silent();
    // The last bytes may leave if they fit as they are.
    s.at(200).ack(3500).sends(3500, 2).silent();
    s.at(300).ack(4500).sends(5500, 1).silent();
    s.at(301).ack(6500).no_deadline();
    assert!(s.end.is_idle());
}

#[test]
fn writes_share_segments() {
    let mut s = Script::new(TransportParams { initial_window: 1, ..params() });
    s.write(MSS).sends(0, 1).write(300).write(300).write(900).silent();
    s.at(100).ack(1000).sends(1000, 1).sends_part(2000, 500).silent();
}

#[test]
fn nagle_holds_a_short_segment_while_data_is_outstanding() {
    let mut s = Script::new(TransportParams { nagle: true, ..params() });
    s.write(100).sends_part(0, 100).write(100).write(100).silent();
    s.at(100).ack(100).sends_part(100, 200).write(1100).sends(300, 1).silent();
    s.at(200).ack(1300).sends_part(1300, 100).silent();
}

#[test]
fn windows_in_whole_segments() {
    // 4.25 segments in bytes hold a fifth short one; in segments they are 4.
    for (unit, fits) in [(WindowUnit::Bytes, true), (WindowUnit::Segments, false)] {
        let mut s = Script::new(TransportParams {
            initial_window: 4,
            initial_ssthresh: Some(4),
            window_unit: unit,
            ..params()
        });
        s.write(5250).sends(0, 4).at(100).ack(1000).cwnd(4250).sends(4000, 1);
        if fits {
            s.sends_part(5000, 250);
        }
        s.silent();
    }
}

#[test]
fn cuts_start_from_flight_or_window() {
    // 10 segments of window, 5 outstanding.
    for (cut_from, ssthresh) in [(CutBase::Flight, 2500), (CutBase::Window, 5000)] {
        let mut s = Script::new(TransportParams { cut_from, ..params() });
        s.write(5 * MSS).sends(0, 5).expire().ssthresh(ssthresh).cwnd(1000);
    }
    let floor = TransportParams { min_ssthresh: 3, ..params() };
    Script::new(floor).write(MSS).sends(0, 1).expire().ssthresh(3000);
    let whole = TransportParams { window_unit: WindowUnit::Segments, ..params() };
    Script::new(whole).write(5 * MSS).sends(0, 5).expire().ssthresh(2000);
}

#[test]
fn the_application_limits_growth() {
    // 10 segments of window, 3 in use: no growth, unless asked for.
    for (app_limited_growth, cwnd) in [(false, 10_000), (true, 13_000)] {
        let mut s = Script::new(TransportParams { app_limited_growth, ..params() });
        s.write(3 * MSS).sends(0, 3).at(100).ack(1000).ack(2000).ack(3000).cwnd(cwnd);
    }
    // In slow start the window grows to twice the part in use, with all ACKs of that window.
    let mut s = Script::new(params());
    s.write(6 * MSS).sends(0, 6).at(100);
    for index in 1..=6 {
        s.ack(1000 * index).cwnd(10_000 + 1000 * index.min(2));
    }
    // In congestion avoidance all of it.
    let mut s = Script::new(TransportParams { initial_ssthresh: Some(10), ..params() });
    s.write(9 * MSS).sends(0, 9).at(100).ack(9000).cwnd(10_000);
    s.write(10 * MSS).sends(9000, 10).at(200).ack(10_000).cwnd(10_100);
}

#[test]
fn the_window_falls_back_after_an_idle_rto() {
    for (idle_restart, idle, falls) in
        [(true, 1_000_001, true), (true, 1_000_000, false), (false, 9_000_000, false)]
    {
        let mut s = Script::new(TransportParams { idle_restart, ..params() });
        s.write(20 * MSS).sends(0, 10).at(100);
        for index in 1..=5 {
            s.ack(1000 * index).sends(8000 + 2000 * index, 2);
        }
        s.ack(20_000).no_deadline();
        let window = s.end.window();
        assert_eq!((window.cwnd_bytes, window.rto), (16_000, Span::from_secs(1)));
        s.at(100 + idle).write(30 * MSS).sends(20_000, 1).cwnd(if falls { 10_000 } else { 16_000 });
    }
}

#[test]
fn a_write_may_bring_the_initial_window_back() {
    for (restart_on_write, large, small) in [(true, 10_000, 10_000), (false, 12_000, 1000)] {
        let mut s = Script::new(TransportParams { restart_on_write, ..params() });
        s.write(12 * MSS).sends(0, 10).at(100).ack(1000).ack(2000).sends(10_000, 2).cwnd(12_000);
        // With data outstanding, and from below too; ssthresh stays.
        s.write(MSS).cwnd(large).ssthresh(u64::MAX);
        s.expire().cwnd(1000).ssthresh(5000).write(MSS).cwnd(small).ssthresh(5000);
    }
}

#[test]
fn initial_window_and_threshold() {
    let mut s = Script::new(TransportParams { initial_window: 3, initial_ssthresh: Some(4), ..params() });
    s.ssthresh(4000).write(20 * MSS).sends(0, 3).at(100).ack(1000).cwnd(4000).sends(3000, 2);
    s.ack(2000).cwnd(4250);
    Script::new(params()).cwnd(10_000).ssthresh(u64::MAX);
    let reno = TransportParams { recovery: Recovery::Reno, ..params() };
    Script::new(reno).cwnd(10_000);
}

/// Adds 100 B an ACK; a cut leaves three quarters.
#[derive(Debug)]
struct Gentle {
    acks: u64,
}

impl CongestionControl for Gentle {
    fn on_ack(&mut self, _limits: &Limits, _window: &mut Window, _ack: &Ack) {
        self.acks += 1;
    }
    fn grow(&mut self, _limits: &Limits, window: &mut Window, _ack: &Ack) {
        window.cwnd += 100;
    }
    fn cut(&mut self, _limits: &Limits, _window: &Window, cut: &Cut) -> u64 {
        cut.base * 3 / 4
    }
    fn alpha(&self) -> f64 {
        self.acks as f64
    }
}

#[test]
fn a_controller_of_ones_own() {
    let mut s = Script::new(TransportParams { recovery: Recovery::NewReno, ..params() });
    s.config.custom = Some(MakeController::new(|| Box::new(Gentle { acks: 0 })));
    s.end = Endpoint::new(&s.config);
    s.write(100 * MSS).sends(0, 10).at(100).ack(1000).cwnd(10_100).ack(2000).cwnd(10_200);
    assert_eq!(s.end.window().alpha, 2.0);
    s.sends(10_000, 2).expire().ssthresh(7500).cwnd(1000);
}

#[test]
fn endpoints_and_their_configuration_cross_threads() {
    fn crosses<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    crosses::<Endpoint>();
    is_shared::<TcpConfig>();
}
