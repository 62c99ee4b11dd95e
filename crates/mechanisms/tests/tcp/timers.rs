//! The retransmission timer, Karn's algorithm, backoff, and the handshake.

use plimsoll_mechanisms::tcp::{
    BackoffReset, EcnField, Flags, Growth, RttError, RttSampling, TcpSegment, TransportParams,
};
use plimsoll_units::Span;

use crate::script::{MSS, Script, params, us};

fn fast() -> TransportParams {
    TransportParams { min_rto: Span::from_us(1), initial_window: 4, ..params() }
}

#[track_caller]
fn estimates(s: &Script, srtt: u64, rto: u64) {
    let window = s.end.window();
    assert_eq!((window.srtt, window.rto), (Span::from_ns(srtt), Span::from_ns(rto)), "at {}", s.now);
}

#[test]
fn estimator_by_hand() {
    let mut s = Script::new(fast());
    s.write(MSS).sends(0, 1).deadline(1_000_000).at(80).ack(1000).no_deadline();
    // SRTT = R, RTTVAR = R/2: RTO = 80 + 4 x 40.
    estimates(&s, 80_000, 240_000);
    s.at(1000).write(MSS).sends(1000, 1).deadline(1240).at(1160).ack(2000);
    // RTTVAR = 40 + (80 - 40)/4 = 50; SRTT = 80 + 80/8 = 90; RTO = 90 + 200.
    estimates(&s, 90_000, 290_000);
}

#[test]
fn bounds_of_the_rto() {
    let mut s = Script::new(TransportParams { rto_granularity: Span::from_us(500), ..fast() });
    s.write(MSS).sends(0, 1).at(80).ack(1000);
    estimates(&s, 80_000, 580_000);
    let mut s = Script::new(TransportParams { min_rto: Span::from_ms(10), ..fast() });
    s.write(MSS).sends(0, 1).at(80).ack(1000);
    estimates(&s, 80_000, 10_000_000);
    let mut s = Script::new(TransportParams { max_rto: Span::from_us(100), ..fast() });
    s.write(MSS).sends(0, 1).deadline(100).at(80).ack(1000);
    estimates(&s, 80_000, 100_000);
}

#[test]
fn backoff_doubles_and_a_sample_ends_it() {
    let mut s = Script::new(TransportParams { max_rto: Span::from_secs(5), ..params() });
    s.write(5 * MSS).sends(0, 5).deadline(1_000_000);
    s.expire().resends(0, 1000).deadline(3_000_000);
    s.expire().resends(0, 1000).deadline(7_000_000);
    s.expire().resends(0, 1000).deadline(12_000_000);
    s.expire().resends(0, 1000).deadline(17_000_000);
    // Karn: the ACK of a retransmission does not count as a sample, so the backoff stays.
    s.at(12_000_100).ack(1000).resends(1000, 1000).resends(2000, 1000).deadline(17_000_100);
    s.at(12_000_200).ack(5000).no_deadline().write(MSS).sends(5000, 1).deadline(17_000_200);
    s.at(12_000_300).ack(6000);
    estimates(&s, 100_000, 1_000_000_000);

    let mut s = Script::new(TransportParams { backoff_reset: BackoffReset::Ack, ..params() });
    s.write(2 * MSS).sends(0, 2).expire().resends(0, 1000).deadline(3_000_000);
    s.at(1_000_100).ack(1000).resends(1000, 1000).deadline(2_000_100);
}

/// pFabric's MinTCP: all losses are left to a constant timer, and after five silent timeouts one byte at a time probes
/// the other end.
fn min_tcp() -> TransportParams {
    let rto = Span::from_us(45);
    TransportParams {
        growth: Growth::Count,
        initial_window: 12,
        dup_ack_threshold: 0,
        limited_transmit: false,
        probe_after: 5,
        min_rto: rto,
        initial_rto: rto,
        max_rto: rto,
        ..params()
    }
}

#[test]
fn the_rto_can_be_constant() {
    let mut s = Script::new(TransportParams { probe_after: 0, ..min_tcp() });
    s.write(20 * MSS).sends(0, 12).silent().deadline(45);
    for timeout in 1..=30 {
        s.expire().cwnd(1000).resends(0, 1000).silent().deadline(45 + 45 * timeout);
    }
    s.at(1400).ack(1000).cwnd(2000).resends(1000, 1000).resends(2000, 1000).silent().deadline(1445);
}

#[test]
fn silence_leads_to_probes_of_one_byte() {
    let mut s = Script::new(min_tcp());
    s.write(20 * MSS).sends(0, 12).silent();
    for timeout in 1..5 {
        s.expire().resends(0, 1000).silent().deadline(45 + 45 * timeout);
    }
    for timeout in 5..9 {
        s.expire().resends(0, 1).silent().deadline(45 + 45 * timeout);
    }
    assert_eq!((s.end.counters().timeouts, s.end.counters().retransmissions), (8, 8));
    // The byte is acknowledged: slow start from one segment, from the next byte on.
    s.at(410).ack(1).cwnd(2000).resends(1, 1000).resends(1001, 1000).silent();
    // Five more timeouts are needed.
    for _ in 1..5 {
        s.expire().resends(1, 1000).silent();
    }
    s.expire().resends(1, 1).silent();
}

#[test]
fn anything_that_arrives_ends_the_silence() {
    // A duplicate ACK or data after four timeouts; the next timeout is the first again.
    for with_data in [false, true] {
        let mut s = Script::new(min_tcp());
        s.write(20 * MSS).sends(0, 12);
        for _ in 0..4 {
            s.expire().resends(0, 1000).silent();
        }
        if with_data {
            s.data(0, 100, EcnField::NotEct);
            s.acks(100);
        } else {
            s.ack(0);
        }
        for _ in 0..4 {
            s.expire().resends(0, 1000).silent();
        }
        s.expire().resends(0, 1).silent();
        // While probing, it ends them from the next timeout on.
        s.ack(0).silent().expire().resends(0, 1000).silent();
    }
}

#[test]
fn a_probe_of_the_last_byte() {
    let mut s = Script::new(min_tcp());
    s.write(1).sends_part(0, 1);
    for _ in 0..9 {
        s.expire().resends(0, 1).silent();
    }
    s.ack(1).no_deadline();
    assert!(s.end.is_idle());
}

#[test]
fn ssthresh_is_cut_once_for_a_segment_that_times_out_again() {
    let mut s = Script::new(params());
    s.write(10 * MSS).sends(0, 10).expire().ssthresh(5000).resends(0, 1000);
    s.expire().ssthresh(5000).cwnd(1000).resends(0, 1000);
    assert_eq!(s.end.counters().timeouts, 2);
}

#[test]
fn one_sample_a_window_or_one_an_ack() {
    let one = TransportParams { rtt_sampling: RttSampling::OnePerWindow, ..fast() };
    let mut s = Script::new(one);
    s.write(3 * MSS).sends(0, 1).at(10).sends(1000, 1).at(20).sends(2000, 1);
    s.at(80).ack(1000);
    estimates(&s, 80_000, 240_000);
    s.at(200).ack(2000).at(220).ack(3000);
    estimates(&s, 80_000, 240_000);

    let mut s = Script::new(fast());
    s.write(3 * MSS).sends(0, 1).at(10).sends(1000, 1).at(20).sends(2000, 1);
    s.at(80).ack(1000);
    // One ACK for two segments: the older one counts, 200 - 10.
    s.at(200).ack(3000);
    estimates(&s, 93_750, 93_750 + 4 * 57_500);
}

#[test]
fn the_error_term_of_16_bits_wraps() {
    let ticks = Span::from_ns(10);
    let wrap = TransportParams { rtt_error: RttError::Int16, rto_granularity: ticks, ..fast() };
    let mut s = Script::new(wrap);
    s.write(MSS).sends(0, 1).at(100).ack(1000);
    // 600 us more than SRTT is 60000 ticks: -5536 in 16 bits.
    s.at(1000).write(MSS).sends(1000, 1).at(1700).ack(2000);
    assert_eq!(s.end.window().srtt, Span::from_ns(100_000 - 55_360 / 8));
}

#[test]
fn the_timer_starts_anew_with_progress_and_stops_when_all_is_acknowledged() {
    let mut s = Script::new(params());
    s.write(3 * MSS).sends(0, 3).deadline(1_000_000);
    s.at(100).ack(1000).deadline(1_000_100).at(200).ack(1000).deadline(1_000_100);
    s.at(300).ack(3000).no_deadline();
    // A call before the deadline does no harm.
    s.write(MSS).sends(3000, 1);
    let now = us(400);
    s.end.on_deadline(&s.config, now);
    assert_eq!(s.end.counters().timeouts, 0);
}

fn handshake() -> TransportParams {
    TransportParams { handshake: true, ..params() }
}

const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);

#[track_caller]
fn control(s: &mut Script, flags: Flags) {
    let segment = s.poll().expect("a segment of the handshake");
    assert_eq!((segment.flags, segment.len, segment.seq), (flags, 0, 0), "at {}", s.now);
}

#[test]
fn the_first_write_opens() {
    let mut s = Script::new(handshake());
    s.silent().write(2500);
    control(&mut s, Flags::SYN);
    s.silent().deadline(1_000_000).at(50).input(TcpSegment { flags: SYN_ACK, ..TcpSegment::default() });
    assert!(s.end.is_established());
    // The ACK of the handshake leaves ahead of the data, and the SYN was a sample.
    s.acks(0);
    s.sends(0, 2).sends_part(2000, 500).silent();
    assert_eq!(s.end.window().srtt, Span::from_us(50));
    assert!(!s.end.is_idle());
}

#[test]
fn the_other_end_answers() {
    let mut s = Script::new(handshake());
    s.input(TcpSegment { flags: Flags::SYN, ..TcpSegment::default() });
    control(&mut s, SYN_ACK);
    s.silent().at(50).ack(0).silent().no_deadline();
    assert!(s.end.is_established() && s.end.is_idle());
    // If the ACK is lost, data opens as well.
    let mut s = Script::new(handshake());
    s.input(TcpSegment { flags: Flags::SYN, ..TcpSegment::default() });
    control(&mut s, SYN_ACK);
    let delivered = s.input(TcpSegment { len: 100, flags: Flags::ACK, ..TcpSegment::default() });
    assert_eq!(delivered.new_bytes, 100);
    s.acks(100);
}

#[test]
fn a_lost_syn_costs_the_initial_rto_and_the_initial_window() {
    let mut s = Script::new(handshake());
    s.write(20 * MSS);
    control(&mut s, Flags::SYN);
    s.deadline(1_000_000).expire();
    control(&mut s, Flags::SYN);
    s.deadline(3_000_000).at(1_000_050).input(TcpSegment { flags: SYN_ACK, ..TcpSegment::default() });
    s.acks(0);
    // RFC 5681, section 3.1: one segment. RFC 6298, section 5.7: 3 s.
    s.cwnd(1000).sends(0, 1).silent().deadline(4_000_050);
    assert_eq!(s.end.counters().timeouts, 1);
}

#[test]
fn a_handshake_segment_again_is_answered() {
    let mut s = Script::new(handshake());
    s.input(TcpSegment { flags: Flags::SYN, ..TcpSegment::default() });
    control(&mut s, SYN_ACK);
    s.input(TcpSegment { flags: Flags::SYN, ..TcpSegment::default() });
    control(&mut s, SYN_ACK);
    s.at(1).write(100).silent().ack(0).sends_part(0, 100);
    s.input(TcpSegment { flags: SYN_ACK, ..TcpSegment::default() });
    s.acks(0);
}

#[test]
fn both_ends_open_at_once() {
    let mut s = Script::new(handshake());
    s.write(100);
    control(&mut s, Flags::SYN);
    s.at(10).input(TcpSegment { flags: Flags::SYN, ..TcpSegment::default() });
    control(&mut s, SYN_ACK);
    s.at(20).input(TcpSegment { flags: SYN_ACK, ..TcpSegment::default() });
    s.acks(0);
    s.sends_part(0, 100);
}
