//! Tests of [`super`]: the paper's numbers, and the limiter against the guarantees of the rule.

use super::*;
use proptest::prelude::*;

const TEN_GIG: Rate = Rate::from_gbps(10);

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn params(text: &str) -> QjumpParams {
    toml::from_str(text).unwrap()
}

/// Levels of 1000 and 3000 B in an epoch of 100 us.
fn limiter(excess: Excess) -> Limiter {
    let params = params("epoch = '100us'\npacket = '1000B'\nlevels = ['3x', '1x']");
    Limiter::new(&params.resolve(12, TEN_GIG).unwrap(), excess)
}

// ---- levels ----

#[test]
fn a_thousand_hosts() {
    let params = params("epsilon = '0s'\nlevels = ['10x', '1x']");
    let levels = params.resolve(1_000, TEN_GIG).unwrap();
    assert_eq!(levels.epoch, Span::from_ns(409_600));
    let [ten, one] = levels.levels[..] else { panic!("{levels:?}") };
    // 256 B in 409.6 us: 5 Mb/s, R / 2n.
    assert_eq!((one.bucket, one.rate), (Bytes::new(256), Rate::from_mbps(5)));
    assert_eq!(one.latency_bound, Some(Span::from_ns(204_800)));
    assert_eq!((ten.bucket, ten.rate), (Bytes::new(2_560), Rate::from_mbps(50)));
    assert_eq!(ten.latency_bound, Some(Span::from_ns(20_480)));
}

/// Fig. 11: ten hypervisors with six guests, and eps = 4 us x 3.
#[test]
fn sixty_senders() {
    let packet = Bytes::new(256);
    let bound = latency_bound(60, packet, packet, TEN_GIG, Span::from_us(12));
    assert_eq!(bound, Span::from_ns(24_288));
}

#[test]
fn target_rates() {
    // The testbed: 12 hosts; memcached's 5 Gb/s make f = 6, Hadoop has f = n.
    let text = "hosts = 12\npacket = '1500B'\nepsilon = '0s'\nlevels = ['12x', '5Gbps', '10Gbps', '1x']";
    let levels = params(text).resolve(144, TEN_GIG).unwrap();
    assert_eq!(levels.epoch, Span::from_ns(28_800));
    let buckets: Vec<_> = levels.levels.iter().map(|level| level.bucket.get() / 1_500).collect();
    assert_eq!(buckets, [12, 6, 12, 1]);
    // Half of the target, for Eq. 2's epoch is twice as long as Eq. 4 assumes.
    assert_eq!(levels.levels[1].rate, Rate::from_mbps(2_500));
}

/// Two-phase commit: 1518 B and 30 us are 12 hosts, and a factor of 24 is line rate.
#[test]
fn twice_n_is_line_rate() {
    let text = "packet = '1518B'\nepsilon = '0s'\nlevels = ['24x', '10x', '5x', '4x', '2x', '1x']";
    let levels = params(text).resolve(12, TEN_GIG).unwrap();
    assert!(levels.epoch < Span::from_us(30) && levels.epoch > Span::from_us(29));
    assert_eq!(levels.levels[0].rate, TEN_GIG);
    assert_eq!(levels.levels[0].latency_bound, Some(Bytes::new(1_518).time_at(TEN_GIG)));
}

/// Fig. 9: an epoch of n P / R, rounded up, and buckets in bits.
#[test]
fn the_144_hosts_of_ns_2() {
    let bits = [10_500_000, 8_004_000, 1_596_000, 636_000, 396_000, 228_000, 156_000, 72_000];
    let levels: Vec<_> = bits.iter().map(|bits| LevelShare::Bytes(Bytes::new(bits / 8))).collect();
    let packet = Bytes::new(9_000);
    let epoch = Some(Span::from_us(1_050));
    let params = QjumpParams { packet, epoch, levels, ..QjumpParams::default() };
    let levels = params.resolve(144, TEN_GIG).unwrap();
    let packets: Vec<_> = levels.levels.iter().map(|level| level.bucket.get() / 1_500).collect();
    assert_eq!(packets, [875, 667, 133, 53, 33, 19, 13, 6]);
    assert_eq!(levels.levels[0].rate, TEN_GIG);
    assert!((packet * 144).time_at(TEN_GIG) < levels.epoch);
}

/// Four hosts: if at most two, or one, send to the same host, all may send 2x and 4x the rate.
#[test]
fn assuming_less_contention() {
    let of = |hosts: u32| {
        let params = params("packet = '1500B'\nepsilon = '0s'\nlevels = ['1x']");
        let levels = QjumpParams { hosts: Some(hosts), ..params }.resolve(4, TEN_GIG).unwrap();
        (levels.epoch.as_ps(), levels.levels[0].rate.as_bps(), levels.levels[0].latency_bound)
    };
    let (epoch, rate, _) = of(4);
    assert_eq!(rate, TEN_GIG.as_bps() / 8);
    for hosts in [4, 2, 1] {
        let bound = Bytes::new(1_500 * u64::from(hosts)).time_at(TEN_GIG);
        let times = u64::from(4 / hosts);
        assert_eq!(of(hosts), (epoch / times, rate * times, Some(bound)));
    }
}

#[test]
fn priorities() {
    assert_eq!([0, 3, 7, 200].map(priority_of), [0, 3, 7, 7]);
}

#[test]
fn texts() {
    for text in ["6x", "1.5x", "5Gbps", "9.75KB", "line"] {
        assert_eq!(text.parse::<LevelShare>().unwrap().to_string(), text);
    }
    for text in ["", "6", "0.5x", "x", "-1x", "nanx", "infx", "fast", "5 packets"] {
        assert!(text.parse::<LevelShare>().is_err(), "{text}");
    }
    let default = QjumpParams::default();
    assert_eq!(params(""), default);
    assert_eq!(params(&toml::to_string(&default).unwrap()), default);
    assert_eq!(params("refill = 'periodic'\nexcess = 'drop'").refill, Refill::Periodic);
    assert!(toml::from_str::<QjumpParams>("level = []").is_err());
}

#[test]
fn ranges() {
    assert_eq!(params("").resolve(10, TEN_GIG).unwrap().levels.len(), LEVELS_MAX);
    let unlimited = params("").resolve(10, TEN_GIG).unwrap().levels[0];
    assert_eq!((unlimited.rate, unlimited.latency_bound), (TEN_GIG, None));
    for (key, text) in [
        ("hosts", "hosts = 0"),
        ("packet", "packet = '0B'"),
        ("packet", "packet = '66KB'"),
        ("epsilon", "epsilon = '2s'"),
        ("epoch", "epoch = '0s'"),
        ("levels", "levels = []"),
        ("levels", "levels = ['1x','1x','1x','1x','1x','1x','1x','1x','1x']"),
        ("levels", "levels = ['255B']"),
        ("levels", "levels = ['900Mbps']"), // less than R / n for 10 hosts
    ] {
        assert_eq!(params(text).resolve(10, TEN_GIG).unwrap_err().key, key, "{text}");
    }
}

// ---- limiters ----

#[test]
fn a_bucket_an_epoch() {
    let mut limiter = limiter(Excess::Refuse);
    for (at, level, bytes, verdict) in [
        (7, 1, 600, Verdict::Send),
        (8, 1, 600, Verdict::Refuse),
        (8, 1, 400, Verdict::Send), // what is left
        (106, 1, 1, Verdict::Refuse),
        (107, 1, 1_000, Verdict::Send),     // an epoch after its first packet
        (1_000, 1, 1_000, Verdict::Send),   // long idle
        (1_001, 1, 1_000, Verdict::Refuse), // but no burst
        (1_001, 0, 3_000, Verdict::Send),   // another level
        (1_500, 1, 1_001, Verdict::Refuse), // never fits
        (1_501, 2, 1, Verdict::Refuse),     // no such level
    ] {
        assert_eq!(limiter.on_packet(us(at), level, bytes), verdict, "at {at} us");
    }
}

#[test]
fn excess_is_refused_or_dropped() {
    for (excess, verdict) in [(Excess::Refuse, Verdict::Refuse), (Excess::Drop, Verdict::Drop)] {
        assert_eq!(limiter(excess).on_packet(us(0), 1, 1_001), verdict);
        let mut periodic = PeriodicLimiter::new(Span::from_us(100), excess);
        periodic.activate(us(0), Bytes::new(1_000));
        assert_eq!(periodic.on_packet(us(0), 1_001), verdict);
    }
}

#[test]
fn the_timer_sets_the_bucket() {
    let mut limiter = PeriodicLimiter::new(Span::from_us(100), Excess::Drop);
    assert_eq!(limiter.on_packet(us(3), 1_000_000), Verdict::Send); // not yet active
    limiter.activate(us(30), Bytes::new(1_000));
    for (at, bytes, verdict) in [
        (30, 1_000, Verdict::Send),
        (129, 1, Verdict::Drop),
        (130, 1_000, Verdict::Send),
        (229, 1, Verdict::Drop),
        (580, 1_000, Verdict::Send), // set at 530, not added to
        (629, 1, Verdict::Drop),
        (630, 1_000, Verdict::Send), // on its grid
    ] {
        assert_eq!(limiter.on_packet(us(at), bytes), verdict, "at {at} us");
    }
    // The next flow of the connection has its own size and phase.
    limiter.activate(us(640), Bytes::new(2_000));
    assert_eq!(limiter.on_packet(us(641), 2_000), Verdict::Send);
    assert_eq!(limiter.on_packet(us(731), 1), Verdict::Drop);
    assert_eq!(limiter.ready_at(us(731), 1), Some(us(740)));
    assert_eq!(limiter.on_packet(us(740), 1), Verdict::Send);
}

/// Packets: time since the one before in us, level, bytes.
fn packets() -> impl Strategy<Value = Vec<(u64, u8, u64)>> {
    prop::collection::vec((prop_oneof![0..20u64, 0..400u64], 0..2u8, 1..1_100u64), 1..300)
}

/// The packets that left: time in us and bytes, of one level.
fn sent(limiter: &mut Limiter, packets: &[(u64, u8, u64)], of: u8) -> Vec<(u64, u64)> {
    let mut now = 0;
    let mut sent = Vec::new();
    for &(gap, level, bytes) in packets {
        now += gap;
        let verdict = limiter.on_packet(us(now), level, bytes);
        if verdict == Verdict::Send && level == of {
            sent.push((now, bytes));
        }
    }
    sent
}

proptest! {
    #[test]
    fn at_most_two_buckets_in_an_epoch_long_window(packets in packets()) {
        for (level, full) in [(0, 3_000), (1, 1_000)] {
            let sent = sent(&mut limiter(Excess::Drop), &packets, level);
            for (index, &(start, _)) in sent.iter().enumerate() {
                let window = sent[index..].iter().take_while(|(at, _)| *at < start + 100);
                let bytes: u64 = window.map(|packet| packet.1).sum();
                prop_assert!(bytes <= 2 * full, "{bytes} B from {start} us on");
            }
        }
    }

    /// With any stamps on packets, at most the bucket leaves between two refills, and refills are an epoch apart or
    /// more.
    #[test]
    fn a_stamp_gains_nothing(packets in packets(), stamps in prop::collection::vec(0u64..400, 200)) {
        let mut limiter = limiter(Excess::Drop);
        let (mut now, mut since, mut refilled) = (0, 0, None::<u64>);
        for (&(gap, level, bytes), stamp) in packets.iter().zip(stamps.iter().cycle()) {
            now += gap;
            let (_, before) = limiter.bucket(level);
            let stamp = (stamp % 4 > 0).then(|| us(now.saturating_sub(*stamp)));
            let verdict = limiter.on_stamped_packet(stamp, us(now), level, bytes);
            if level == 1 && limiter.bucket(1).1 != before {
                prop_assert!(refilled.is_none_or(|last| now >= last + 100), "{now} us after {refilled:?}");
                (since, refilled) = (0, Some(now));
            }
            if level == 1 && verdict == Verdict::Send {
                since += bytes;
                prop_assert!(since <= 1_000, "{since} B since {refilled:?}");
            }
        }
    }

    /// After an epoch without a packet, one bucket and no more leaves in the next.
    #[test]
    fn no_burst_after_idleness(packets in packets(), idle in 100u64..10_000) {
        let mut limiter = limiter(Excess::Drop);
        let end: u64 = packets.iter().map(|packet| packet.0).sum();
        sent(&mut limiter, &packets, 1);
        let start = end + idle;
        let sent = (0..100).filter(|at| limiter.on_packet(us(start + at), 1, 250) == Verdict::Send);
        let burst = sent.count() as u64;
        prop_assert_eq!(burst, 4);
    }

    #[test]
    fn levels_are_independent(packets in packets()) {
        let alone: Vec<_> = {
            let mut now = 0;
            let mut last = 0;
            packets.iter().filter_map(|&(gap, level, bytes)| {
                now += gap;
                (level == 1).then(|| { let gap = now - last; last = now; (gap, level, bytes) })
            }).collect()
        };
        let both = sent(&mut limiter(Excess::Drop), &packets, 1);
        prop_assert_eq!(both, sent(&mut limiter(Excess::Drop), &alone, 1));
    }

    /// A sender that waits for the time in the verdict is never refused again.
    #[test]
    fn ready_at_holds(packets in packets()) {
        let mut limiter = limiter(Excess::Refuse);
        let mut now = 0;
        for (gap, level, bytes) in packets {
            now += gap;
            let ready = limiter.ready_at(us(now), level, bytes);
            let verdict = limiter.on_packet(us(now), level, bytes);
            prop_assert_eq!(ready == Some(us(now)), verdict == Verdict::Send);
            if let (Verdict::Refuse, Some(ready)) = (verdict, ready) {
                prop_assert_eq!(limiter.clone().on_packet(ready, level, bytes), Verdict::Send);
            }
        }
    }

    /// Against a timer that is run tick by tick.
    #[test]
    fn the_closed_form_is_the_timer(epoch in 1u64..300, packets in packets(), restart in 0usize..300) {
        let mut limiter = PeriodicLimiter::new(Span::from_us(epoch), Excess::Drop);
        limiter.activate(us(5), Bytes::new(1_000));
        let (mut now, mut left, mut next) = (5, 1_000, 5 + epoch);
        for (index, (gap, _, bytes)) in packets.into_iter().enumerate() {
            now += gap;
            while next <= now {
                left = 1_000;
                next += epoch;
            }
            if index == restart {
                limiter.activate(us(now), Bytes::new(1_000));
                (left, next) = (1_000, now + epoch);
            }
            let fits = bytes <= left;
            if fits {
                left -= bytes;
            }
            prop_assert_eq!(limiter.on_packet(us(now), bytes) == Verdict::Send, fits, "packet {}", index);
        }
    }

    /// The hosts that the bound counts, with two buckets each at once, are served within an epoch.
    #[test]
    fn two_buckets_of_all_contenders_drain_in_an_epoch(
        hosts in 1u32..2_000, factor in 1u32..50, packet in 64u64..9_000, gbps in 1u64..400,
    ) {
        let link = Rate::from_gbps(gbps);
        let levels = vec![LevelShare::Factor(f64::from(factor))];
        let params = QjumpParams { packet: Bytes::new(packet), levels, ..QjumpParams::default() };
        let levels = params.resolve(hosts, link).unwrap();
        let contenders = u64::from(hosts / factor);
        let burst = Bytes::new(2 * contenders * levels.levels[0].bucket.get()).time_at(link);
        prop_assert!(burst + params.epsilon <= levels.epoch);
        // And the paper's bound holds for one packet of each.
        let meeting = Bytes::new(contenders.max(1) * packet).time_at(link) + params.epsilon;
        prop_assert!(meeting <= levels.levels[0].latency_bound.unwrap());
    }
}
