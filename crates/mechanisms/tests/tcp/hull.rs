//! The exact numbers of the HULL study's ns-2 runs that one connection alone decides.

use plimsoll_mechanisms::tcp::controller::DctcpParams;
use plimsoll_mechanisms::tcp::{
    BackoffReset, CutBase, EceGrowth, FastRetransmitGuard, Growth, Kind, LossAfterEcn, Recovery, RttError,
    RttSampling, TransportParams, WindowUnit,
};
use plimsoll_units::{Bytes, Rate, Span};

use crate::net::{End, Hop, Net};

/// ns-2's FullTcp as that study set it.
pub fn full_tcp() -> TransportParams {
    TransportParams {
        recovery: Recovery::Reno,
        growth: Growth::Count,
        segment: Bytes::new(950),
        initial_window: 2,
        max_window: 1256,
        initial_ssthresh: Some(1256),
        window_unit: WindowUnit::Segments,
        cut_from: CutBase::Window,
        app_limited_growth: true,
        idle_restart: false,
        restart_on_write: true,
        min_rto: Span::from_ms(10),
        initial_rto: Span::from_secs(3),
        rto_granularity: Span::from_ns(10),
        rtt_sampling: RttSampling::OnePerWindow,
        rtt_error: RttError::Int16,
        backoff_reset: BackoffReset::Ack,
        fast_retransmit_guard: FastRetransmitGuard::AfterTimeout,
        limited_transmit: false,
        loss_after_ecn: LossAfterEcn::KeepSsthresh,
        ack_every: 1,
        ecn_on_acks: true,
        echo_marked_acks: true,
        ece_growth: EceGrowth::AfterFirst,
        dctcp: DctcpParams { initial_alpha: 0.0, ..DctcpParams::default() },
        ..TransportParams::default()
    }
}

pub fn star(params: &TransportParams) -> Net {
    let (rate, delay) = (Rate::from_gbps(1), Span::from_us(5));
    let path = || vec![Hop::new(rate, delay, 1000), Hop::new(rate, delay, 499)];
    Net::new(params.resolve().expect("valid parameters"), path(), path())
}

/// A request of 100 B and its response: microseconds until the last byte is there.
fn transfer(net: &mut Net, bytes: u64) -> f64 {
    let start = net.now;
    let (asked, had) = (net.server.received() + 100, net.client.received());
    net.write(End::Client, 100);
    net.run_until_received(End::Server, asked);
    net.write(End::Server, bytes);
    let end = net.run_until_received(End::Client, had + bytes);
    net.run_until_quiet();
    (end - start).as_us_f64()
}

#[test]
fn small_response() {
    let mut net = star(&full_tcp());
    assert_eq!(transfer(&mut net, 900), 59.20);
    assert_eq!(transfer(&mut net, 900), 37.60);
}

#[test]
fn a_large_response_stalls_once_on_a_new_connection() {
    // Slow start overflows the sender's own NIC queue, which loses every other segment of the last
    // round; one loss is repaired by fast retransmit, the others wait for the timer (10 ms) and
    // go-back-N. From then on the connection sends at line rate once its window has grown again, for
    // which the link idles 20.64 and then 4.80 us. The study's runs, which had other traffic too, show
    // 97.50 ms and then 83.42 to 83.44 ms.
    for kind in [Kind::Tcp, Kind::Dctcp] {
        let mut net = star(&TransportParams { kind, ..full_tcp() });
        assert_eq!(transfer(&mut net, 10_000_000), 97_488.72);
        let counters = net.server.counters();
        assert_eq!((net.to_client[0].drops, net.to_client[1].drops), (252, 0));
        assert_eq!((counters.fast_retransmits, counters.timeouts), (1, 1));
        for _ in 0..3 {
            assert_eq!(transfer(&mut net, 10_000_000), 83_424.56);
        }
        assert_eq!(net.server.counters().timeouts, 1);
    }
}

#[test]
fn line_rate_is_what_the_links_allow() {
    // Request and ACK, 10526 full segments, the 300 B that are left, two links, four times 5 us.
    let request = 2.0 * 1.12 + 10.0 + 0.32;
    let response = 10_526.0 * 7.92 + 2.72 + 7.92 + 10.0;
    assert!((request + response - 83_399.12f64).abs() < 1e-6);
}

#[test]
fn every_response_begins_with_the_initial_window() {
    // Two segments, and the third when the first is acknowledged: in the study's runs a 2800 B response
    // takes 61.52 us and never the 41.28 us of three segments in a row, however short the pause.
    let mut net = star(&full_tcp());
    let request = 2.0 * 1.12 + 10.0 + 0.32;
    transfer(&mut net, 2800);
    for _ in 0..3 {
        let response = transfer(&mut net, 2800) - request;
        assert!((response - 61.52).abs() < 1e-6, "{response}");
    }
}
