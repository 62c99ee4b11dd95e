//! The exact numbers of the HULL study's ns-2 runs that one connection alone decides.

use plimsoll_mechanisms::tcp::{
    BackoffReset, CutBase, EceGrowth, FastRetransmitGuard, Growth, Kind, LossAfterEcn, Recovery, RttError, RttSampling,
    TransportParams, WindowUnit,
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
        initial_alpha: 0.0,
        ..TransportParams::default()
    }
}

pub fn star(params: &TransportParams) -> Net {
    let (rate, delay) = (Rate::from_gbps(1), Span::from_us(5));
    let path = || vec![Hop::new(rate, delay, 1000), Hop::new(rate, delay, 499)];
    Net::new(params.resolve().unwrap(), path(), path())
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
fn explore() {
    for guard in [FastRetransmitGuard::Recover, FastRetransmitGuard::AfterTimeout, FastRetransmitGuard::Off] {
        for error in [RttError::Exact, RttError::Int16] {
            for kind in [Kind::Tcp, Kind::Dctcp] {
                let params = TransportParams { fast_retransmit_guard: guard, rtt_error: error, kind, ..full_tcp() };
                let mut net = star(&params);
                let first = transfer(&mut net, 10_000_000);
                let c = net.server.counters();
                let second = transfer(&mut net, 10_000_000);
                let third = transfer(&mut net, 10_000_000);
                println!(
                    "{guard:?} {error:?} {kind:?}: {first} {second} {third} drops {} {:?} {:?}",
                    net.to_client[0].drops, c, net.server.window()
                );
            }
        }
    }
}
