//! Links that degrade, fail and come back: which packets are lost, and when the others arrive.

use plimsoll_sim::RunError;
use plimsoll_units::{Span, Time};

use crate::truth::determinism::BUSY;
use crate::truth::lab::{Run, model, run};

/// Packet `i` leaves h0 at `10 us x (i + 1)` for h1 behind the other leaf. Each of the four links takes it 1 us and
/// then 1 us of propagation, so that it is at its leaf after 2 us, at a spine after 4, and at h1 after 8.
fn two_paths(rest: &str) -> String {
    format!(
        "version = 1\ntitle = 'two paths'\n[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\n\
         hosts_per_leaf = 1\nrate = '10Gbps'\ndelay = '1us'\n\
         [workload.packets]\nkind = 'packets'\nfrom = ['h0']\nto = 'h1'\nsize = '1250B'\nload = 0.1\n\
         arrivals = 'constant'\ncount = 60\n\
         [observe]\nqueue.spines = {{ port = 'tier:spine', every = '1ms' }}\n{rest}"
    )
}

/// When the packets left that arrived, in us, and how long they took, in ns.
fn arrived(run: &Run) -> Vec<(u64, u64)> {
    let of = |message: &plimsoll_results::outcome::MessageRecord| {
        let left = message.created.as_ps() / 1_000_000;
        assert_eq!(left, 10 * (message.index + 1), "the account of its time is exact");
        (left, message.latency().unwrap().as_ps() / 1_000)
    };
    run.of("packets").map(of).collect()
}

const NONE: [u64; 0] = [];

fn lost(run: &Run) -> Vec<u64> {
    let arrived = arrived(run);
    (1..=60).map(|i| 10 * i).filter(|left| !arrived.iter().any(|(at, _)| at == left)).collect()
}

/// Packets that a spine has passed on.
fn passed(run: &Run, spine: u32) -> u64 {
    let name = format!("switch {} -> switch 1", 2 + spine);
    run.queues.iter().find(|queue| queue.port == name).unwrap().packets
}

/// The spine that the packets take when all is well.
fn spine_in_use() -> u32 {
    let run = run(&two_paths(""));
    assert!(arrived(&run).iter().all(|(_, took)| *took == 8_000));
    let spine = (0..2).find(|spine| passed(&run, *spine) == 60);
    spine.expect("a flow has one path")
}

#[test]
fn packets_are_lost_until_routing_has_converged() {
    let spine = spine_in_use();
    let fails = |at: &str, delay: &str| {
        run(&two_paths(&format!(
            "[paths]\nconvergence_delay = '{delay}'\n\
             [[fault]]\nfrom = 'spine{spine}'\nto = 'leaf0'\ndown = true\nat = '{at}'\nuntil = '205us'\n"
        )))
    };
    // Packet 100 is on the link from 102 us to 104 us; 110 and 120 come before 103.5 us + 25 us.
    let run = fails("103500ns", "25us");
    assert_eq!(lost(&run), [100, 110, 120]);
    assert_eq!((run.counters.link_drops, run.counters.no_route_drops, run.counters.switch_drops), (3, 0, 0));
    assert!(arrived(&run).iter().all(|(_, took)| *took == 8_000));
    // Packets that reach the leaf from 128.5 us until 205 us + 25 us go the other way: 130 to 220.
    assert_eq!((passed(&run, 1 - spine), passed(&run, spine)), (10, 47));
    // Where routing knows at once, only the packets on the link are lost.
    assert_eq!(lost(&fails("101900ns", "0s")), NONE);
    assert_eq!(lost(&fails("102100ns", "0s")), [100]);
    assert_eq!(lost(&fails("103900ns", "0s")), [100]);
    assert_eq!(lost(&fails("104100ns", "0s")), NONE);
    // Routing never learns of it.
    assert_eq!(lost(&fails("104100ns", "1s")), [110, 120, 130, 140, 150, 160, 170, 180, 190, 200]);
}

#[test]
fn one_direction_fails_alone() {
    let spine = spine_in_use();
    let fails = |direction: &str| {
        run(&two_paths(&format!(
            "[[fault]]\nfrom = 'leaf0'\nto = 'spine{spine}'\ndown = true\nat = '103us'\ndirection = '{direction}'\n"
        )))
    };
    assert_eq!(lost(&fails("forward")), [100]);
    assert_eq!(lost(&fails("backward")), NONE);
}

#[test]
fn a_fault_from_the_beginning_is_known_from_the_beginning() {
    let spine = spine_in_use();
    let run = run(&two_paths(&format!(
        "[paths]\nconvergence_delay = '1ms'\n[[fault]]\nfrom = 'leaf0'\nto = 'spine{spine}'\ndown = true\n"
    )));
    assert_eq!((lost(&run), passed(&run, 1 - spine)), (NONE.to_vec(), 60));
}

/// Ten times as long on one of four links: 17 us for packets that start there in time.
#[test]
fn a_slow_link_is_slow_for_what_starts_on_it() {
    let spine = spine_in_use();
    for (direction, slow) in [("both", true), ("forward", true), ("backward", false)] {
        let run = run(&two_paths(&format!(
            "[[fault]]\nfrom = 'leaf0'\nto = 'spine{spine}'\nrate = '1Gbps'\nat = '102500ns'\nuntil = '203us'\n\
             direction = '{direction}'\n"
        )));
        assert_eq!(lost(&run), NONE);
        // Packet 100 has begun before, and packet 200 ends as slowly as it began.
        let took = |left: u64| if slow && (110..=200).contains(&left) { 17_000 } else { 8_000 };
        assert!(arrived(&run).iter().all(|(left, ns)| *ns == took(*left)), "{:?}", arrived(&run));
    }
}

#[test]
fn one_fault_may_follow_another() {
    let spine = spine_in_use();
    let link = format!("from = 'leaf0'\nto = 'spine{spine}'");
    let run = run(&two_paths(&format!(
        "[[fault]]\n{link}\ndown = true\nat = '203us'\nuntil = '301us'\n\
         [[fault]]\n{link}\nrate = '1Gbps'\nat = '101us'\nuntil = '203us'\n[paths]\nconvergence_delay = '50us'\n"
    )));
    // Slow packet 190 is past by then, and 200 is on the link for 10 us; 210 to 250 come before 253 us.
    assert_eq!(lost(&run), [200, 210, 220, 230, 240, 250]);
    let slow: Vec<u64> =
        arrived(&run).iter().filter(|(_, ns)| *ns == 17_000).map(|(left, _)| *left).collect();
    assert_eq!(slow, [100, 110, 120, 130, 140, 150, 160, 170, 180, 190]);
}

/// Hosts have one link each.
#[test]
fn a_host_without_its_link_is_unreachable() {
    let text = |fault: &str| {
        format!(
            "version = 1\ntitle = 'a host'\n[topology]\nkind = 'rack'\nhosts = 2\nrate = '10Gbps'\ndelay = '1us'\n\
             [workload.packets]\nkind = 'packets'\nfrom = ['h0']\nto = 'h1'\nsize = '1250B'\nload = 0.1\n\
             arrivals = 'constant'\ncount = 60\n[paths]\nconvergence_delay = '25us'\n\
             [[fault]]\nfrom = 'tor0'\n{fault}\ndown = true\nat = '101us'\nuntil = '301us'\n"
        )
    };
    // At the switch after 2 us: 100, 110 and 120 before 126 us, then 130 to 310 until 326 us (320 - 2 = 318).
    let receiver = run(&text("to = 'h1'"));
    assert_eq!((receiver.counters.link_drops, receiver.counters.no_route_drops), (3, 20));
    assert_eq!(receiver.of("packets").count(), 60 - 23);
    // Packet 100 is on the link, and 110 to 300 find it dead, whatever the switch knows.
    let sender = run(&text("to = 'h0'"));
    assert_eq!((sender.counters.link_drops, sender.counters.no_route_drops), (21, 0));
    assert_eq!(sender.of("packets").count(), 60 - 21);
}

/// Connections outlive an outage, and packets that wait for a NIC with backpressure are not lost.
#[test]
fn transports_recover() {
    for (backpressure, fault) in [
        (false, "from = 'leaf0'\nto = 'spine0'"),
        (false, "from = 'h0'\nto = 'leaf0'"),
        (true, "from = 'h0'\nto = 'leaf0'"),
    ] {
        let text = format!(
            "version = 1\ntitle = 'outage'\n[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\n\
             hosts_per_leaf = 2\n\
             rate = '1Gbps'\ndelay = '2us'\n[port.switch]\nbuffer = '100KB'\n[host]\nbackpressure = {backpressure}\n\
             [transport]\nmin_rto = '1ms'\ninitial_rto = '1ms'\n[paths]\nconvergence_delay = '300us'\n\
             [workload.flow]\nkind = 'flows'\nfrom = ['h0', 'h1']\nto = 'h2'\nsize = '500KB'\n\
             [[fault]]\n{fault}\ndown = true\nat = '1ms'\nuntil = '4ms'\n"
        );
        let broken = run(&text);
        assert!(broken.messages.iter().all(|message| message.completed.is_some()), "{fault}");
        assert!(broken.counters.link_drops > 0, "{fault}");
        assert_eq!(broken.counters.nic_drops, 0);
        assert_eq!(broken.digest(), run(&text).digest());
    }
}

/// A port whose link may change keeps its packets, a port whose link never does need not: the same digest.
#[test]
fn a_fault_after_the_end_changes_nothing() {
    let faults = "[[fault]]\nfrom = 'leaf0'\nto = 'spine1'\ndown = true\nat = '100s'\n\
                  [[fault]]\nfrom = 'h2'\nto = 'leaf0'\nrate = '1Mbps'\nat = '100s'\n";
    assert_eq!(run(BUSY).digest(), run(&format!("{BUSY}{faults}")).digest());
}

fn lossless(rest: &str) -> String {
    format!(
        "version = 1\ntitle = 'lossless'\n[run]\nduration = '3ms'\n[transport]\nack_every = 1\nhandshake = false\n\
         initial_window = 200\nmin_rto = '20ms'\ninitial_rto = '20ms'\n[port.switch]\nbuffer = '400KB'\npfc = {{}}\n\
         [topology]\nkind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\nrate = '10Gbps'\ndelay = '1us'\n\
         [workload.bulk]\nkind = 'incast'\nsize = '300KB'\nevery = '4ms'\n{rest}"
    )
}

/// Pauses wait for slow packets, for which there is headroom; so what degrades, in whatever direction, loses
/// nothing.
#[test]
fn flow_control_is_lossless_while_links_degrade() {
    for direction in ["both", "forward", "backward"] {
        let fault = |link: &str, at: u32, until: u32| {
            format!(
                "[[fault]]\n{link}\nrate = '500Mbps'\nat = '{at}us'\nuntil = '{until}us'\ndirection = '{direction}'\n"
            )
        };
        let run = run(&lossless(
            &[
                fault("from = 'leaf1'\nto = 'spine0'", 200, 1_300),
                fault("from = 'leaf0'\nto = 'spine1'", 300, 900),
                fault("from = 'h5'\nto = 'leaf1'", 100, 700),
                fault("from = 'h0'\nto = 'leaf0'", 150, 400),
            ]
            .concat(),
        ));
        assert_eq!((run.counters.switch_drops, run.counters.nic_drops, run.counters.link_drops), (0, 0, 0));
        assert_eq!((run.counters.retransmissions, run.counters.timeouts), (0, 0));
        assert!(run.messages.iter().all(|message| message.completed.is_some()));
    }
}

/// Links that fail while they are paused come back unpaused, and the rest continues.
#[test]
fn a_failed_link_forgets_its_pauses() {
    for direction in ["both", "forward", "backward"] {
        for link in
            ["from = 'leaf1'\nto = 'spine0'", "from = 'leaf0'\nto = 'spine0'", "from = 'h5'\nto = 'leaf1'"]
        {
            let text = lossless(&format!(
                "[[fault]]\n{link}\ndown = true\nat = '300us'\nuntil = '800us'\ndirection = '{direction}'\n"
            ));
            let broken = run(&text);
            assert!(broken.messages.iter().all(|message| message.completed.is_some()), "{link} {direction}");
            assert!(broken.end > Time::ZERO + Span::from_us(800));
            assert_eq!(broken.digest(), run(&text).digest());
        }
    }
}

#[test]
fn too_little_buffer_for_a_slow_way_back_is_an_error() {
    let text = lossless(
        "[[fault]]\nfrom = 'leaf0'\nto = 'spine0'\nrate = '1Mbps'\nat = '1us'\ndirection = 'forward'\n",
    );
    let error = plimsoll_sim::run(&model(&text, None, None), &mut |_| true).unwrap_err();
    let RunError::Build { key, problem } = &error else { panic!("{error}") };
    assert!(key == "port.switch.pfc" && problem.contains("headroom"), "{error}");
}

/// A fat-tree has a way round every link between switches, from the moment routing knows.
#[test]
fn a_fat_tree_loses_nothing_once_routing_has_converged() {
    let text = |fault: &str| {
        format!(
            "version = 1\ntitle = 'fat-tree'\n[topology]\nkind = 'fat-tree'\nk = 4\nrate = '10Gbps'\ndelay = '1us'\n\
             [transport]\nmin_rto = '1ms'\n[paths]\nspray = {{}}\n{fault}\
             [workload.all]\nkind = 'all-to-all'\nsize = '20KB'\nload = 0.3\ncount = 300\n"
        )
    };
    for link in ["from = 'edge0'\nto = 'aggregation1'", "from = 'core3'\nto = 'aggregation5'"] {
        let known = run(&text(&format!("[[fault]]\n{link}\ndown = true\n")));
        assert_eq!((known.counters.link_drops, known.counters.no_route_drops), (0, 0), "{link}");
        assert!(known.messages.iter().all(|message| message.completed.is_some()), "{link}");
        let late =
            run(&text(&format!("convergence_delay = '50us'\n[[fault]]\n{link}\ndown = true\nat = '60us'\n")));
        assert!(late.counters.link_drops > 0 && late.counters.no_route_drops == 0, "{link}");
        assert!(late.messages.iter().all(|message| message.completed.is_some()), "{link}");
    }
}
