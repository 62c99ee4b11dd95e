//! The fabric with a clock made up by the test.

use std::path::Path;

use plimsoll_scenario::Scenario;
use proptest::prelude::*;

use super::*;

const RACK: &str = "[topology]\nkind = 'rack'\nhosts = 4\nrate = '1Gbps'\ndelay = '1us'\n";
const LEAF_SPINE: &str = "[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
                          rate = '1Gbps'\ndelay = '1us'\n";

fn model(text: &str) -> Model {
    let text = format!(
        "version = 1\ntitle = 'live'\n{text}\
         [workload.all]\nkind = 'all-to-all'\nsize = '1KB'\nload = 0.1\ncount = 1\n"
    );
    let scenario =
        Scenario::parse("live", &text, Path::new(".")).unwrap_or_else(|errors| panic!("{errors:?}"));
    scenario.points()[0].model.clone()
}

fn header(to: u32, flow: u32) -> Header {
    Header {
        to: HostId(to),
        flow,
        from_larger: false,
        priority: (flow % 8) as u8,
        ecn: Ecn::Ect,
        payload: 1000,
        ece: false,
    }
}

/// What left, when and how.
#[derive(Debug, Default)]
struct Seen {
    left: Vec<(u64, u32, bool)>,
    lost: Vec<u32>,
}

impl Out for Seen {
    fn delivered(&mut self, egress: Egress) {
        self.left.push((egress.at.as_ps(), egress.frame, egress.marked));
    }
    fn dropped(&mut self, frame: u32) {
        self.lost.push(frame);
    }
}

/// 1000 bytes take 8 us a link, and each of the two links 1 us to cross.
#[test]
fn a_frame_takes_what_the_links_take() {
    let mut fabric = LiveFabric::new(&model(RACK)).unwrap();
    let mut seen = Seen::default();
    let at = Time::ZERO + Span::from_us(5);
    let entry = fabric.on_frame(at, HostId(0), header(1, 1), 1000, 7, &mut seen);
    assert_eq!(entry.at, at);
    fabric.advance(at + Span::from_us(18) - TICK, &mut seen);
    assert!(seen.left.is_empty());
    fabric.advance(at + Span::from_us(18), &mut seen);
    assert_eq!(seen.left, [((at + Span::from_us(18)).as_ps(), 7, false)]);
}

/// Two senders at line rate into one port with room for 10 packets and a threshold of 3.
#[test]
fn queues_drop_and_mark_as_the_scenario_says() {
    let text = format!("{RACK}[port.switch]\nbuffer = '10 packets'\necn = {{ threshold = '3 packets' }}\n");
    let text = text.replace("'3 packets'", "'3KB'");
    let mut fabric = LiveFabric::new(&model(&text)).unwrap();
    let mut seen = Seen::default();
    for round in 0..40u32 {
        let at = Time::ZERO + Span::from_us(8) * u64::from(round);
        for from in [1, 2] {
            fabric.on_frame(at, HostId(from), header(0, from), 1000, round * 2 + from - 1, &mut seen);
        }
    }
    fabric.advance(Time::ZERO + Span::from_ms(10), &mut seen);
    assert_eq!(seen.left.len() + seen.lost.len(), 80);
    assert!(!seen.lost.is_empty() && seen.left.iter().any(|(.., marked)| *marked), "{seen:?}");
    let counters = fabric.counters();
    assert_eq!((counters.switch_drops, counters.packets_in_flight), (seen.lost.len() as u64, 0));
    assert!(seen.left.windows(2).all(|pair| pair[0].0 + Span::from_us(8).as_ps() <= pair[1].0));
}

#[test]
fn a_nic_with_backpressure_holds_its_host() {
    let text = format!("{RACK}[host]\nbackpressure = true\n[port.host]\nbuffer = '2 packets'\n");
    let mut fabric = LiveFabric::new(&model(&text)).unwrap();
    for _ in 0..3 {
        assert!(!fabric.holds(Time::ZERO, HostId(0)));
        fabric.on_frame(Time::ZERO, HostId(0), header(1, 1), 1500, 0, &mut Nowhere);
    }
    assert!(fabric.holds(Time::ZERO, HostId(0)) && !fabric.holds(Time::ZERO, HostId(1)));
    fabric.advance(Time::ZERO + Span::from_us(13), &mut Nowhere);
    assert!(!fabric.holds(Time::ZERO + Span::from_us(13), HostId(0)));
}

/// Two hosts send to a third at line rate and never look whether they are held: nothing is lost, and both are.
#[test]
fn a_paused_nic_holds_its_host() {
    let text = format!("{RACK}[port.switch]\nbuffer = '200KB'\npfc = {{}}\n");
    let mut fabric = LiveFabric::new(&model(&text)).unwrap();
    let mut seen = Seen::default();
    let mut held = 0;
    for round in 0..400u32 {
        let at = Time::ZERO + Span::from_us(12) * u64::from(round);
        for from in [1, 2] {
            held += u32::from(fabric.holds(at, HostId(from)));
            fabric.on_frame(at, HostId(from), header(0, 0), 1500, 0, &mut seen);
        }
    }
    fabric.advance(Time::ZERO + Span::from_ms(100), &mut seen);
    assert_eq!((seen.left.len(), seen.lost.len()), (800, 0));
    assert!(held > 100, "{held}");
}

/// Two hosts flood a third at a priority, of two that workloads have: they are held once both are paused.
#[test]
fn a_host_with_a_priority_that_may_go_is_not_held() {
    let text = format!(
        "{RACK}[port.switch]\nbuffer = '400KB'\norder = 'priorities'\npfc = {{ xoff = '16KB' }}\n\
         [port.host]\norder = 'priorities'\n[host]\npriority = {{ urgent = 7 }}\n\
         [workload.urgent]\nkind = 'all-to-all'\nsize = '1KB'\nload = 0.1\ncount = 1\n"
    );
    let held = |priorities: &[u32]| {
        let mut fabric = LiveFabric::new(&model(&text)).unwrap();
        let mut held = 0;
        for round in 0..400u32 {
            let at = Time::ZERO + Span::from_us(12) * u64::from(round);
            for from in [1, 2] {
                held += u32::from(fabric.holds(at, HostId(from)));
                let flow = priorities[round as usize % priorities.len()];
                fabric.on_frame(at, HostId(from), header(0, flow), 1500, 0, &mut Nowhere);
            }
        }
        held
    };
    assert_eq!((held(&[0]), held(&[7])), (0, 0));
    // What is urgent waits for what is urgent of the other host, and all else for it.
    assert!(held(&[0, 7, 7]) > 0);
}

/// Both forms of the pacer take a host's packets apart once congestion has been echoed to it, and only that host's.
#[test]
fn pacers_are_those_of_the_scenario() {
    for form in ["paper", "source"] {
        let text = format!(
            "{RACK}[host.pacer]\nform = '{form}'\nassociation_probability = 1.0\ninitial_rate = '100Mbps'\n"
        );
        let mut fabric = LiveFabric::new(&model(&text)).unwrap();
        let mut seen = Seen::default();
        let echo = Header { ece: true, from_larger: true, payload: 0, ..header(0, 5) };
        fabric.on_frame(Time::ZERO, HostId(1), echo, 60, 0, &mut seen);
        let start = Time::ZERO + Span::from_us(100);
        for frame in 1..=20 {
            fabric.on_frame(start, HostId(0), header(1, 5), 1500, frame, &mut seen);
            fabric.on_frame(start, HostId(2), header(3, 6), 1500, 100 + frame, &mut seen);
        }
        fabric.advance(start + Span::from_ms(50), &mut seen);
        let last = |from: u32| {
            let of = seen.left.iter().filter(|(_, frame, _)| frame / 100 == from / 100 && *frame > 0);
            of.map(|(at, ..)| *at).max().unwrap() - start.as_ps()
        };
        assert_eq!(seen.left.len(), 41, "{form}");
        // Twenty frames take 240 us at the line's rate.
        assert!(last(100) < Span::from_us(300).as_ps(), "{form}: {} ps", last(100));
        assert!(last(0) > Span::from_us(500).as_ps(), "{form}: {} ps", last(0));
    }
}

/// Frames of 1250 B every 10 us between two leaves; a link takes each 10 us and 1 us of propagation. The link to the
/// spine that the flow takes is dead from 503 us to 603 us, and routing follows 25 us later.
#[test]
fn frames_are_lost_until_routing_goes_around_a_dead_link() {
    let text = |spine: u32| {
        format!(
            "{LEAF_SPINE}[paths]\nconvergence_delay = '25us'\n\
             [[fault]]\nfrom = 'leaf0'\nto = 'spine{spine}'\ndown = true\nat = '503us'\nuntil = '603us'\n"
        )
    };
    let arrived = |spine: u32| {
        let model = model(&text(spine));
        let mut fabric = LiveFabric::new(&model).unwrap();
        let (mut seen, mut log) = (Seen::default(), Vec::new());
        for frame in 0..100u32 {
            let at = Time::ZERO + Span::from_us(10) * u64::from(frame);
            log.push(fabric.on_frame(at, HostId(0), header(2, 5), 1250, frame, &mut seen));
        }
        let end = Time::ZERO + Span::from_ms(10);
        fabric.advance(end, &mut seen);
        assert_eq!(replay(&model, &log, end).unwrap(), fabric.digest());
        let counters = fabric.counters();
        assert_eq!(counters.link_drops, seen.lost.len() as u64);
        assert_eq!((counters.switch_drops, counters.no_route_drops, counters.packets_in_flight), (0, 0, 0));
        (seen.left.iter().map(|(_, frame, _)| *frame).collect::<Vec<_>>(), seen.lost)
    };
    let (mut one, mut other) = (arrived(0), arrived(1));
    if one.1.is_empty() {
        std::mem::swap(&mut one, &mut other);
    }
    assert_eq!(other.0, Vec::from_iter(0..100), "the other spine is not the flow's");
    // Frame n reaches the leaf at 10 n + 11 us and has left it 10 us later. So 48 has crossed when the link dies, and
    // 49 is cut off, which is known at the far end; 50 and 51 come to a dead port before routing knows.
    assert_eq!(one.1, [50, 49, 51]);
    assert_eq!(one.0.len(), 97);
}

/// A host whose link is dead is held where senders wait for room, and sends on as soon as the link is back.
#[test]
fn a_dead_link_holds_its_host() {
    let text = format!(
        "{RACK}[host]\nbackpressure = true\n[[fault]]\nfrom = 'h0'\nto = 'tor0'\ndown = true\nat = '1ms'\n\
         until = '2ms'\n"
    );
    let mut fabric = LiveFabric::new(&model(&text)).unwrap();
    let at = |us| Time::ZERO + Span::from_us(us);
    let held = [500, 1000, 1500, 2000].map(|us| {
        fabric.advance(at(us), &mut Nowhere);
        fabric.holds(at(us), HostId(0))
    });
    assert_eq!(held, [false, true, true, false]);
    assert!(!fabric.holds(at(2000), HostId(1)));
}

/// A link that degrades takes longer for what is sent from then on: 1000 B in 80 us at 100 Mb/s.
#[test]
fn a_slow_link_takes_longer() {
    let text =
        format!("{RACK}[[fault]]\nfrom = 'tor0'\nto = 'h1'\nrate = '100Mbps'\nat = '1ms'\nuntil = '2ms'\n");
    let mut fabric = LiveFabric::new(&model(&text)).unwrap();
    let mut seen = Seen::default();
    let starts = [0, 1000, 2000].map(|us| Time::ZERO + Span::from_us(us));
    for at in starts {
        fabric.on_frame(at, HostId(0), header(1, 1), 1000, 0, &mut seen);
    }
    fabric.advance(Time::ZERO + Span::from_ms(3), &mut seen);
    let took = starts.iter().zip(&seen.left).map(|(start, (at, ..))| (at - start.as_ps()) / 1_000_000);
    assert_eq!(took.collect::<Vec<_>>(), [18, 90, 18]);
}

const FABRICS: [&str; 9] = [
    "",
    "[port.switch]\nbuffer = '8 packets'\n[port.switch.phantom_queue]\n",
    "[port.switch]\norder = 'priorities'\nbuffer = '20KB'\n",
    "[paths.spray]\n",
    "[host.pacer]\nform = 'source'\n",
    "[host.pacer]\nform = 'paper'\n",
    "[paths]\nconvergence_delay = '40us'\n\
     [[fault]]\nfrom = 'leaf0'\nto = 'spine0'\ndown = true\nat = '30us'\nuntil = '90us'\n\
     [[fault]]\nfrom = 'leaf1'\nto = 'spine1'\nrate = '100Mbps'\nat = '50us'\n",
    "[paths.spray]\n[[fault]]\nfrom = 'leaf0'\nto = 'spine1'\ndown = true\nat = '10us'\n",
    "[port.switch]\nbuffer = '60KB'\npfc = {}\n[host]\nbackpressure = true\n\
     [[fault]]\nfrom = 'leaf1'\nto = 'spine0'\ndown = true\nat = '20us'\nuntil = '100us'\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// However often the fabric is told the time in between, and however late it reads: the log replays to the
    /// same digest. Another seed, or a log without its last entry, does not.
    #[test]
    fn a_log_replays_to_the_same_digest(
        kind in 0..FABRICS.len(),
        steps in prop::collection::vec((0u64..30_000_000, 0u32..4, 1u32..4, 60u16..1514, 0u64..40_000_000), 1..200),
    ) {
        let model = model(&format!("{LEAF_SPINE}{}", FABRICS[kind]));
        let mut fabric = LiveFabric::new(&model).unwrap();
        let mut log = Vec::new();
        let mut wall = Time::ZERO;
        let mut seen = Seen::default();
        for (index, (gap, from, other, size, later)) in steps.into_iter().enumerate() {
            wall += Span::from_ps(gap / 8);
            let to = (from + other) % 4;
            log.push(fabric.on_frame(wall, HostId(from), header(to, other), size, index as u32, &mut seen));
            if later % 3 == 0 {
                wall += Span::from_ps(later / 8);
                fabric.advance(wall, &mut seen);
            }
        }
        let end = wall + Span::from_secs(1);
        fabric.advance(end, &mut seen);
        prop_assert_eq!(seen.left.len() + seen.lost.len(), log.len());
        prop_assert_eq!(replay(&model, &log, end).unwrap(), fabric.digest());
        prop_assert!(replay(&model, &log[1..], end).unwrap() != fabric.digest());
        log[0].size += 1;
        prop_assert!(replay(&model, &log, end).unwrap() != fabric.digest());
    }
}
