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
        tag_priority: Some((flow % 8) as u8),
        ecn: EcnField::Ect,
        payload: 1000,
        ece: false,
        is_control: false,
        alias: 0,
        dscp: 0,
    }
}

/// Departures, with their times and marks.
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

/// Two hosts send to a third at line rate and never test whether they are held: nothing is lost, and both are held.
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

/// Frames of real hosts have Ethernet's header, which the packets of a scenario need not have: a headroom has room for
/// the longest, so that a host that obeys late loses nothing.
#[test]
fn a_headroom_has_room_for_whole_frames() {
    let text = format!(
        "{RACK}[port.switch]\nlossless = {{ memory = '100KB', reserve = '0B', threshold = '1KB' }}\n"
    );
    let mut fabric = LiveFabric::new(&model(&text)).unwrap();
    let mut seen = Seen::default();
    let size = frame_max(&model(&text)) as u16;
    for round in 0..400u32 {
        let at = Time::ZERO + Span::from_us(12) * u64::from(round);
        for from in 1..4 {
            fabric.on_frame(at, HostId(from), header(0, 0), size, 0, &mut seen);
        }
    }
    fabric.advance(Time::ZERO + Span::from_ms(100), &mut seen);
    assert_eq!((seen.left.len(), seen.lost.len()), (1200, 0));
    let exact = text.replace("reserve", "headroom = '4884B', reserve");
    let refused = LiveFabric::new(&model(&exact)).unwrap_err();
    assert!(refused.problem.contains("less than the link needs"), "{refused}");
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
    // Urgent frames wait for the other host's urgent frames, and all others for these.
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
            log.push(FrameEntry::Frame(fabric.on_frame(at, HostId(0), header(2, 5), 1250, frame, &mut seen)));
        }
        let end = Time::ZERO + Span::from_ms(10);
        fabric.advance(end, &mut seen);
        assert_eq!(replay(LiveFabric::new(&model).unwrap(), &log, end), fabric.digest());
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
    // 49 is cut off, which is known at the far end; 50 and 51 reach a dead port before routing reacts.
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

/// A link that degrades takes longer for frames sent from then on: 1000 B in 80 us at 100 Mb/s.
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

const HYBRID: &str = "[topology]\nkind = 'hybrid'\nracks = 4\nrate = '1Gbps'\npacket_rate = '100Mbps'\ndelay = '1us'\n\
                      [circuits]\nweek = '3ms'\nreconfiguration = '60us'\nlead = '500us'\n\
                      [host]\nbackpressure = true\n[port.host]\nbuffer = '4MB'\n";

/// Demand from one host to another alone.
fn sockets(from: usize, to: usize, bytes: u64) -> Demand {
    let mut demand = Demand::new(4);
    *demand.get_mut(from, to) = bytes;
    demand
}

/// Bytes that wait in sockets count from their time on: a reading a picosecond after the controller's, at 2.5 ms,
/// counts a week later. Without it a frame takes the packet switch at once.
#[test]
fn the_controller_gets_the_last_reading_before_its_own() {
    let model = model(HYBRID);
    let first_week = |read: Span| {
        let mut fabric = LiveFabric::new(&model).unwrap();
        fabric.on_frame(Time::ZERO, HostId(0), header(1, 1), 1000, 0, &mut Nowhere);
        fabric.on_socket_demand(Time::ZERO + read, sockets(0, 1, 300_000), &mut Nowhere);
        fabric.advance(Time::ZERO + Span::from_ms(20), &mut Nowhere);
        let (circuits, _) = fabric.take_circuits(Span::ZERO, Time::ZERO + Span::from_ms(20));
        let leads = |circuit: &&CircuitUse| (circuit.sender, circuit.receiver) == (HostId(0), HostId(1));
        circuits.iter().find(leads).map(|circuit| (circuit.week, circuit.from, circuit.packets))
    };
    let at = |us| Time::ZERO + Span::from_us(us);
    assert_eq!(first_week(Span::from_us(2_500) - TICK), Some((1, at(3_060), 0)));
    assert_eq!(first_week(Span::from_us(2_500) + TICK), Some((2, at(6_060), 0)));
}

/// Frames of all classes while circuits open and close: with the default drain nothing is lost, the log replays to the
/// same digest, and without its readings of sockets to another.
#[test]
fn circuits_lose_nothing_and_replay() {
    let model = model(HYBRID);
    for binds_subflows in [false, true] {
        let fresh = || {
            let mut fabric = LiveFabric::new(&model).unwrap();
            if binds_subflows {
                fabric.bind_subflows();
            }
            fabric
        };
        let mut fabric = fresh();
        let (mut seen, mut log) = (Seen::default(), Vec::new());
        for frame in 0..2_000_u32 {
            let at = Time::ZERO + Span::from_us(30) * u64::from(frame);
            let (from, to) = (frame % 3, if frame % 7 == 0 { 3 } else { (frame + 1) % 3 });
            if frame % 25 == 0 {
                let demand = sockets(from as usize, to as usize, u64::from(frame % 8) * 100_000);
                log.push(fabric.on_socket_demand(at, demand, &mut seen));
            }
            if from == to || fabric.holds(at, HostId(from)) {
                continue;
            }
            let header = Header { alias: (frame % 2) as u8, dscp: (frame % 8) as u8, ..header(to, from) };
            log.push(FrameEntry::Frame(fabric.on_frame(at, HostId(from), header, 1500, frame, &mut seen)));
        }
        let end = Time::ZERO + Span::from_ms(200);
        // Frames that only circuits carry wait until there is demand for them.
        for week in 20..60_u64 {
            let at = Time::ZERO + Span::from_ms(3) * week;
            log.push(fabric.on_socket_demand(at, sockets(week as usize % 3, 3, 200_000), &mut seen));
        }
        fabric.advance(end, &mut seen);
        let frames = log.iter().filter(|entry| matches!(entry, FrameEntry::Frame(_))).count();
        assert_eq!(
            (seen.left.len() + fabric.counters().packets_in_flight as usize, seen.lost.len()),
            (frames, 0)
        );
        assert_eq!(fabric.circuit_losses(), Some(CircuitLosses::default()));
        let (circuits, _) = fabric.take_circuits(Span::ZERO, end);
        assert!(circuits.iter().map(|circuit| circuit.packets).sum::<u64>() > 500, "{binds_subflows}");
        assert_eq!(replay(fresh(), &log, end), fabric.digest());
        log.retain(|entry| matches!(entry, FrameEntry::Frame(_)));
        assert_ne!(
            replay(fresh(), &log, end),
            fabric.digest(),
            "the readings change what circuits there are"
        );
    }
}

/// Times and weeks count from the begin of the workloads, and earlier ones are left out.
#[test]
fn circuits_count_from_the_origin() {
    let model = model(HYBRID);
    let circuits = |origin: Span| {
        let mut fabric = LiveFabric::new(&model).unwrap();
        for (week, to) in [(1, 1), (3, 2)] {
            let at = Time::ZERO + Span::from_ms(3) * week - Span::from_us(600);
            fabric.on_socket_demand(at, sockets(0, to, 300_000), &mut Nowhere);
            fabric.on_socket_demand(at + Span::from_us(200), Demand::new(4), &mut Nowhere);
        }
        let end = Time::ZERO + Span::from_ms(15);
        fabric.advance(end, &mut Nowhere);
        let (circuits, weeks) = fabric.take_circuits(origin, end);
        assert_eq!(weeks[0].begins, Time::ZERO, "{origin}");
        let of_sender = circuits.into_iter().filter(|circuit| circuit.sender == HostId(0));
        let told =
            |circuit: CircuitUse| (circuit.week, circuit.configuration, circuit.receiver.0, circuit.from);
        of_sender.map(told).collect::<Vec<_>>()
    };
    let all = circuits(Span::ZERO);
    let later = circuits(Span::from_ms(6));
    let (week, _, receiver, from) = *all.iter().find(|(.., receiver, _)| *receiver == 2).unwrap();
    let shifted = *later.iter().find(|(.., receiver, _)| *receiver == 2).unwrap();
    assert_eq!((shifted.0, shifted.2, shifted.3), (week - 2, receiver, from - Span::from_ms(6)));
    assert_eq!((all[0].1, later[0].1), (0, 0), "configurations count from the first that is there");
}

/// The switch of a frame follows from its DSCP, its addresses and whether it is an acknowledgement, where a later one
/// of these takes precedence.
#[test]
fn frames_have_the_class_of_their_subflow_workload_or_acknowledgement() {
    let class = |acks: &str, binds_subflows: bool, header: Header| {
        let text = HYBRID.replace("week =", &format!("acks = '{acks}'\nweek ="));
        let mut fabric = LiveFabric::new(&model(&text)).unwrap();
        if binds_subflows {
            fabric.bind_subflows();
        }
        fabric.hybrid.unwrap().path_class(&header)
    };
    let of = |alias, pool, is_control| Header { alias, dscp: pool, is_control, ..header(1, 1) };
    for (acks, binds, header, expected) in [
        ("as_data", false, of(0, 0, false), PathClass::Either),
        ("as_data", false, of(3, 0, true), PathClass::Either),
        ("as_data", false, of(0, PACKET_ONLY, false), PathClass::Packet),
        ("as_data", false, of(0, CIRCUIT_ONLY, true), PathClass::Circuit),
        ("as_data", true, of(0, 0, false), PathClass::Packet),
        ("as_data", true, of(1, 0, true), PathClass::Circuit),
        ("as_data", true, of(1, PACKET_ONLY, false), PathClass::Packet),
        ("packet", true, of(1, 0, true), PathClass::Packet),
        ("circuit", false, of(0, PACKET_ONLY, true), PathClass::Circuit),
    ] {
        assert_eq!(class(acks, binds, header), expected, "{acks} {binds} {header:?}");
    }
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
    /// However often the fabric advances in between, and however late it reads: the log replays to the same digest.
    /// Another seed, or a log without its last entry, does not.
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
            let entry = fabric.on_frame(wall, HostId(from), header(to, other), size, index as u32, &mut seen);
            log.push(FrameEntry::Frame(entry));
            if later % 3 == 0 {
                wall += Span::from_ps(later / 8);
                fabric.advance(wall, &mut seen);
            }
        }
        let end = wall + Span::from_secs(1);
        fabric.advance(end, &mut seen);
        prop_assert_eq!(seen.left.len() + seen.lost.len(), log.len());
        prop_assert_eq!(replay(LiveFabric::new(&model).unwrap(), &log, end), fabric.digest());
        prop_assert!(replay(LiveFabric::new(&model).unwrap(), &log[1..], end) != fabric.digest());
        if let FrameEntry::Frame(first) = &mut log[0] {
            first.size += 1;
        }
        // The size of a frame that a dead link lost changes nothing.
        if !seen.lost.contains(&0) {
            prop_assert!(replay(LiveFabric::new(&model).unwrap(), &log, end) != fabric.digest());
        }
    }
}

/// A workload's packets have the priority of its transport where the host gives it none, for pauses too.
#[test]
fn priorities_are_those_of_workloads_and_their_transports() {
    let text = "version = 1\ntitle = 'classes'\n[topology]\nkind = 'rack'\nhosts = 3\nrate = '1Gbps'\ndelay = '1us'\n\
                [host.priority]\nb = 5\n[transports.own]\npriority = 3\n\
                [workload.a]\nkind = 'incast'\nsize = '1KB'\nevery = '1s'\ntransport = 'own'\n\
                [workload.b]\nkind = 'incast'\nsize = '1KB'\nevery = '1s'\ntransport = 'own'\n";
    let scenario = Scenario::parse("classes", text, Path::new(".")).unwrap();
    let expected = Priorities::default().with(3).with(5);
    assert_eq!(priorities(&scenario.points()[0].model), expected);
}

/// The map of DSCPs gives a frame its priority, unless a VLAN tag has one.
#[test]
fn frames_have_the_priority_of_their_code_point_or_tag() {
    let switch =
        "[port.switch]\nclasses = { priority = { '2' = { buffer = '1KB' }, '5' = { buffer = '1KB' } } }\n";
    let text = format!("{RACK}{switch}[host.dscp_to_priority]\nEF = 2\n");
    let mut fabric = LiveFabric::new(&model(&text)).unwrap();
    let mut now = Time::ZERO;
    // Of three frames at a time one is sent, one waits, and the classes of priorities 2 and 5 drop the last.
    for (tag_priority, dscp) in [(None, 46), (None, 40), (Some(0), 46), (Some(5), 0), (None, 8)] {
        let header = Header { tag_priority, dscp, ..header(1, 1) };
        for from in [0, 2, 3] {
            fabric.on_frame(now, HostId(from), header, 1_000, 0, &mut Seen::default());
        }
        now += Span::from_ms(100);
        fabric.advance(now, &mut Seen::default());
    }
    let dropped: Vec<u64> = fabric.counters().by_priority.iter().map(|of| of.dropped).collect();
    assert_eq!(dropped, [0, 0, 1, 0, 0, 2, 0, 0]);
}

/// A night of 2 ms in each 3 ms pauses acknowledgements alone, whose priority is not that of data: a segment without
/// payload waits for the next day, and data does not.
#[test]
fn acknowledgements_are_paused_apart_from_data() {
    let text = format!(
        "{RACK}[host]\nack_priority = 1\ntdma = {{ day = '1ms', night = '2ms', priorities = [1] }}\n\
         [port.host]\norder = 'priorities'\n"
    );
    let mut fabric = LiveFabric::new(&model(&text)).unwrap();
    let mut seen = Seen::default();
    let night = Time::ZERO + Span::from_us(1_500);
    let data = Header { tag_priority: None, ..header(1, 1) };
    fabric.on_frame(night, HostId(0), Header { is_control: true, payload: 0, ..data }, 60, 1, &mut seen);
    fabric.on_frame(night, HostId(0), data, 1000, 2, &mut seen);
    assert!(!fabric.holds(night, HostId(0)), "data may leave");
    fabric.advance(Time::ZERO + Span::from_us(2_900), &mut seen);
    assert_eq!(seen.left.iter().map(|left| left.1).collect::<Vec<_>>(), [2]);
    fabric.advance(Time::ZERO + Span::from_us(3_100), &mut seen);
    assert_eq!(seen.left.iter().map(|left| left.1).collect::<Vec<_>>(), [2, 1]);
}
