//! One long flow over a virtual bottleneck.

use plimsoll_mechanisms::tcp::controller::CubicParams;
use plimsoll_mechanisms::tcp::{Endpoint, Flags, Kind, Recovery, TcpConfig, TcpSegment, TransportParams};
use plimsoll_units::{Bytes, Rate, Span, Time};

use crate::net::{End, Hop, Net};

/// 100 Mb/s, 2 ms round trip (17 packets), room for 30 packets.
fn narrow(params: &TransportParams) -> Net {
    let rate = Rate::from_mbps(100);
    let hop = |limit| vec![Hop::new(rate, Span::from_ms(1), limit)];
    Net::new(params.resolve().expect("valid parameters"), hop(1000), hop(30))
}

#[test]
fn every_controller_fills_the_link() {
    for kind in [Kind::Tcp, Kind::Cubic, Kind::Dctcp] {
        for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
            let mut net = narrow(&TransportParams {
                kind,
                recovery,
                handshake: false,
                min_rto: Span::from_ms(10),
                ..TransportParams::default()
            });
            let bytes = 100_000_000;
            net.write(End::Server, bytes);
            let took = net.run_until_received(End::Client, bytes);
            let ideal = Bytes::new(bytes / 1460 * 1500).time_at(Rate::from_mbps(100));
            let share = ideal.as_secs_f64() / took.as_secs_f64();
            // Reno without a second fast retransmit stalls where a window loses several packets.
            let floor = if recovery == Recovery::Reno { 0.90 } else { 0.97 };
            assert!(
                (floor..=1.0).contains(&share),
                "{kind:?} {recovery:?}: {share:.4}, {:?}",
                net.server.counters()
            );
            assert!(net.to_client[0].drops > 0, "{kind:?} {recovery:?} never reached the limit");
            net.run_until_quiet();
            assert!(net.server.is_idle() && net.client.is_idle());
        }
    }
}

#[test]
fn dctcp_holds_the_queue_at_the_threshold() {
    // 10 Gb/s, 100 us, K = 65: C x RTT + K = 148 packets of 1500 B.
    let (rate, delay) = (Rate::from_gbps(10), Span::from_us(50));
    let params = TransportParams {
        kind: Kind::Dctcp,
        handshake: false,
        ack_every: 1,
        min_rto: Span::from_ms(10),
        ..TransportParams::default()
    };
    // The sender's own link is faster, so that the queue is at the bottleneck.
    let path = vec![Hop::new(Rate::from_gbps(40), Span::ZERO, 1000), Hop::new(rate, delay, 1000).marking(65)];
    let mut net =
        Net::new(params.resolve().expect("valid parameters"), vec![Hop::new(rate, delay, 1000)], path);
    net.write(End::Server, 200_000_000);
    net.run_until_received(End::Client, 20_000_000);
    net.to_client[1].longest = 0;
    let (start, mut windows, mut alphas) = (net.now, Vec::new(), Vec::new());
    while net.client.received() < 150_000_000 {
        net.step();
        windows.push(net.server.window().cwnd_bytes / 1460);
        alphas.push(net.server.window().alpha);
    }
    let rate_used = 130_000_000.0 * 8.0 * 1500.0 / 1460.0 / (net.now - start).as_secs_f64() / 1e10;
    assert!(rate_used > 0.999, "{rate_used}");
    assert_eq!(net.to_client[1].drops, 0);
    let longest = net.to_client[1].longest;
    assert!((65..=70).contains(&longest), "{longest} packets");
    let (low, high) = (windows.iter().min().unwrap(), windows.iter().max().unwrap());
    assert!((130..150).contains(low) && (148..155).contains(high), "{low} to {high} segments");
    // Section 3.3 of the DCTCP paper: alpha is about sqrt(2 / 148) = 0.116 for one flow.
    let alpha = alphas.iter().sum::<f64>() / alphas.len() as f64;
    assert!((0.08..0.16).contains(&alpha), "{alpha}");
}

/// A sender whose ACKs all come back a round trip later, at once.
struct RoundTrips {
    config: TcpConfig,
    end: Endpoint,
    now: Time,
}

impl RoundTrips {
    fn new(params: TransportParams) -> RoundTrips {
        let config = params.resolve().expect("valid parameters");
        let mut end = Endpoint::new(&config);
        end.write(&config, Time::ZERO, 1 << 40);
        RoundTrips { config, end, now: Time::ZERO }
    }

    fn send(&mut self) -> Vec<TcpSegment> {
        std::iter::from_fn(|| self.end.poll_transmit(&self.config, self.now)).collect()
    }

    fn ack(&mut self, ack: u64, blocks: &[(u64, u64)]) {
        let sack = blocks.iter().copied().collect();
        self.end.on_segment(
            &self.config,
            self.now,
            &TcpSegment { ack, flags: Flags::ACK, sack, ..TcpSegment::default() },
        );
    }

    /// One round trip without loss.
    fn turn(&mut self, rtt: Span) {
        let sent = self.send();
        self.now += rtt;
        sent.iter().for_each(|segment| self.ack(segment.end(), &[]));
    }

    /// One round trip in which the first segment is lost, and one in which that is repaired.
    fn lose(&mut self, rtt: Span) {
        let (una, mss) = (self.end.acknowledged(), self.config.segment);
        self.send();
        let end = self.end.sent();
        self.now += rtt;
        self.ack(una, &[(una + mss, una + 5 * mss)]);
        self.ack(una, &[(una + mss, una + 6 * mss)]);
        self.ack(una, &[(una + mss, end)]);
        self.send();
        self.now += rtt;
        self.ack(end, &[]);
    }

    fn window(&self) -> f64 {
        self.end.window().cwnd_bytes as f64 / self.config.segment as f64
    }
}

fn cubic(window: u32, segment: u64) -> TransportParams {
    TransportParams {
        kind: Kind::Cubic,
        handshake: false,
        segment: Bytes::new(segment),
        initial_window: window,
        initial_ssthresh: Some(window),
        limited_transmit: false,
        ..TransportParams::default()
    }
}

#[test]
fn cubic_follows_its_curve() {
    // RTT 100 ms, a loss at 1000 segments: K = cbrt(300 / 0.4) = 9.086 s.
    let rtt = Span::from_ms(100);
    let mut flow = RoundTrips::new(cubic(1000, 1000));
    flow.lose(rtt);
    assert!((flow.window() - 700.0).abs() < 1.0, "{}", flow.window());
    flow.turn(rtt);
    let k = (300.0f64 / 0.4).cbrt();
    let start = flow.now;
    flow.turn(rtt);
    for round in 1..180 {
        let t = (flow.now - start).as_secs_f64() + 0.1;
        let expected = 0.4 * (t - k).powi(3) + 1000.0;
        let off = (flow.window() - expected).abs() / expected;
        assert!(off < 0.01, "round {round}, {t} s: {} segments, not {expected}", flow.window());
        flow.turn(rtt);
    }
    // Past the plateau: convex growth.
    assert!(flow.window() > 1250.0, "{}", flow.window());
}

#[test]
fn cubic_is_not_slower_than_reno() {
    // RTT 1 ms, 100 segments: the Reno-friendly region, 3 x 0.3 / 1.7 segments a round trip, and one
    // once it is back at 100.
    let rtt = Span::from_ms(1);
    let mut flow = RoundTrips::new(cubic(100, 1000));
    flow.lose(rtt);
    flow.turn(rtt);
    let first = flow.window();
    for _ in 0..40 {
        flow.turn(rtt);
    }
    let slope = (flow.window() - first) / 40.0;
    assert!((slope - 0.529).abs() < 0.04, "{slope}");
    while flow.window() < 105.0 {
        flow.turn(rtt);
    }
    let before = flow.window();
    for _ in 0..40 {
        flow.turn(rtt);
    }
    let slope = (flow.window() - before) / 40.0;
    assert!((slope - 1.0).abs() < 0.03, "{slope}");
}

#[test]
fn cubic_gives_way_faster_while_it_shrinks() {
    // A second loss before the window is back at the first one's: W_max = 0.85 x, RFC 9438, 4.7.
    for (fast_convergence, k) in
        [(true, ((0.85 - 0.7) * 700.0f64 / 0.4).cbrt()), (false, (0.3 * 700.0f64 / 0.4).cbrt())]
    {
        let rtt = Span::from_ms(100);
        let mut flow = RoundTrips::new(TransportParams {
            cubic: CubicParams { fast_convergence, ..CubicParams::default() },
            ..cubic(1000, 1000)
        });
        flow.lose(rtt);
        flow.turn(rtt);
        flow.lose(rtt);
        assert!((flow.window() - 490.0).abs() < 1.0, "{}", flow.window());
        flow.turn(rtt);
        let start = flow.now;
        while (flow.now - start).as_secs_f64() < k - 0.1 {
            flow.turn(rtt);
        }
        let plateau = if fast_convergence { 595.0 } else { 700.0 };
        assert!((flow.window() - plateau).abs() < 3.0, "{} of {plateau}", flow.window());
    }
}
