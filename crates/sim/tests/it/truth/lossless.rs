//! Lossless buffers in whole runs: nothing of a lossless priority is lost, headroom is needed, and frames take time.

use plimsoll_results::Digest;
use plimsoll_sim::{RunError, run_in_parts};
use plimsoll_units::Span;

use crate::truth::fabrics::ring;
use crate::truth::lab::{Run, model, run};

/// Windows of 300 KB from seven hosts at once into a switch of 400 KB.
fn incast(lossless: &str, rest: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'lossless'\n[run]\nduration = '20ms'\ndrain = '2s'\n[topology]\nkind = 'rack'\n\
         hosts = 8\nrate = '10Gbps'\ndelay = '1us'\n[transport]\nack_every = 1\nhandshake = false\n\
         initial_window = 200\nmin_rto = '200ms'\n[port.switch]\nlossless = {{ {lossless} }}\n{rest}\
         [observe]\nlinks = true\n[workload.bulk]\nkind = 'incast'\nsize = '300KB'\nevery = '10ms'\n"
    ))
}

/// The same into ports of another kind.
fn incast_beside(queue: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'beside'\n[run]\nduration = '5ms'\ndrain = '2s'\n[topology]\nkind = 'rack'\n\
         hosts = 8\nrate = '10Gbps'\ndelay = '1us'\n[transport]\nhandshake = false\nmin_rto = '1ms'\n\
         [port.switch]\n{queue}\n[workload.bulk]\nkind = 'incast'\nsize = '30KB'\nevery = '1ms'\n"
    ))
}

fn pauses(run: &Run) -> u64 {
    run.links.iter().map(|link| link.pauses).sum()
}

fn assert_whole(run: &Run) {
    assert!(run.messages.iter().all(|message| message.completed.is_some()));
    assert_eq!(run.counters.packets_accounted_for(), run.counters.packets_sent);
}

#[test]
fn an_incast_is_paused_and_keeps_the_link_busy() {
    for lossless in
        ["memory = '400KB'", "memory = '400KB', threshold = '8KB'", "memory = '2MB', alpha = 0.01"]
    {
        let run = incast(lossless, "");
        assert_eq!((run.counters.switch_drops, run.counters.retransmissions), (0, 0), "{lossless}");
        assert!(pauses(&run) > 10, "{lossless}: {}", pauses(&run));
        assert_whole(&run);
        let last = run.of("bulk").filter_map(|message| message.latency()).max().unwrap();
        // 7 x 206 packets of 1500 B one after the other: pauses do not idle the link.
        let busy = Span::from_ns(7 * 206 * 1200);
        assert!(last < busy + Span::from_us(30) && last + Span::from_us(20) > busy, "{lossless}: {last}");
    }
    let roomy = incast("memory = '32MB'", "");
    assert_eq!((pauses(&roomy), roomy.counters.switch_drops), (0, 0), "it fits the threshold");
}

#[test]
fn without_headroom_packets_are_lost() {
    let run = incast("memory = '400KB', headroom = '2KB', may_drop = true", "");
    assert!(run.counters.switch_drops > 0 && pauses(&run) > 0, "{:?}", run.counters);
    assert_whole(&run);
}

#[test]
fn only_lossless_priorities_are_lossless() {
    let text = "memory = '400KB', priorities = '7', reserve = '2KB'";
    let lossy = incast(text, "[host]\nack_priority = 7\n");
    assert!(lossy.counters.switch_drops > 100 && pauses(&lossy) == 0, "{:?}", lossy.counters);
    assert_whole(&lossy);
    let lossless = incast(text, "[host]\npriority = { bulk = 7 }\n");
    assert_eq!(lossless.counters.switch_drops, 0);
    assert!(pauses(&lossless) > 10);
    // The egress threshold of a lossy priority is the memory's, whatever the ingress' is.
    let drops = |egress: &str| {
        incast(&format!("{text}, alpha = 8.0, egress_alpha = {egress}"), "[host]\nack_priority = 7\n")
            .counters
    };
    assert!(drops("0.02").switch_drops > drops("8.0").switch_drops);
}

/// A leaf trims and its spine is lossless: the headers have a priority of their own, which the spine has room for.
#[test]
fn headers_from_another_tier_have_room() {
    for spine in ["lossless = { memory = '160KB', reserve = '500B' }", "pfc = {}\nbuffer = '30KB'"] {
        let run = run(&format!(
            "version = 1\ntitle = 'tiers'\n[run]\nduration = '2ms'\ndrain = '1s'\n[topology]\nkind = 'leaf-spine'\n\
             leaves = 3\nspines = 1\nhosts_per_leaf = 6\nrate = '25Gbps'\nfabric_rate = '25Gbps'\ndelay = '1us'\n\
             [transport]\nkind = 'cubic'\nack_every = 1\nhandshake = false\ninitial_window = 100\n\
             min_rto = '1ms'\ninitial_rto = '1ms'\n[port.leaf]\nbuffer = '6KB'\n\
             trim = {{ bounce = true, queue = '100KB', header = '512B' }}\n[port.spine]\n{spine}\n\
             [observe]\nlinks = true\n\
             [workload.w]\nkind = 'incast'\nto = 'h0'\nsize = '100KB'\nevery = '500us'\nrounds = 3\n"
        ));
        assert!(run.counters.trimmed > 100 && pauses(&run) > 10, "{:?}", run.counters);
        let at_spine = run.links.iter().filter(|link| link.from == "spine0");
        assert_eq!(at_spine.map(|link| link.drops).sum::<u64>(), 0, "{spine}");
        assert_whole(&run);
    }
}

/// The headroom has room for the largest packet, whether it is the transport's or one without a transport.
#[test]
fn raw_packets_have_headroom() {
    for (size, queue) in [
        ("'9000B'", "lossless = { memory = '400KB', reserve = '0B' }"),
        (
            "{ kind = 'uniform', min = '64B', max = '9000B' }",
            "lossless = { memory = '400KB', reserve = '0B' }",
        ),
        ("'9000B'", "buffer = '60KB'\npfc = {}"),
    ] {
        let run = run(&format!(
            "version = 1\ntitle = 'raw'\n[run]\nduration = '1ms'\ndrain = '1s'\n[topology]\nkind = 'rack'\n\
             hosts = 5\nrate = '25Gbps'\ndelay = '1us'\n[port.switch]\n{queue}\n[observe]\nlinks = true\n\
             [workload.a]\nkind = 'packets'\nfrom = ['h1', 'h2', 'h3', 'h4']\nto = 'h0'\nsize = {size}\n\
             load = '24Gbps'\n"
        ));
        assert!(pauses(&run) > 10, "{queue} {size}");
        assert_eq!(run.counters.packets_lost(), 0, "{queue} {size}");
    }
}

/// The priorities of packets share a memory, and no others: one of 70 KB is enough for one priority of four links.
#[test]
fn memory_is_divided_by_the_priorities_of_packets() {
    let text = |host: &str| {
        format!(
            "version = 1\ntitle = 'one'\n[run]\nduration = '1ms'\n[topology]\nkind = 'rack'\nhosts = 4\n\
             rate = '25Gbps'\ndelay = '1us'\n[host]\n{host}[port.switch.lossless]\nmemory = '70KB'\n\
             [workload.w]\nkind = 'all-to-all'\nsize = '50KB'\nload = 0.3\n"
        )
    };
    for host in ["", "priority = { w = 3 }\n", "priority = { w = 3 }\nack_priority = 3\n"] {
        let run = run(&text(host));
        assert_eq!(run.counters.switch_drops, 0, "{host}");
    }
    let two = text("priority = { w = 3 }\nack_priority = 7\n");
    assert!(plimsoll_scenario::Scenario::parse("two", &two, std::path::Path::new(".")).is_err());
}

/// A packet that a switch has no room for is dropped at the port of that switch by which it was to leave.
#[test]
fn drops_are_counted_where_they_happen() {
    for spine in [
        "buffer = '30KB'\npfc = { headroom = '1B' }",
        "lossless = { memory = '100KB', reserve = '0B', headroom = '1B', threshold = '20KB', may_drop = true }",
    ] {
        let run = run(&format!(
            "version = 1\ntitle = 'drops'\n[run]\nduration = '1ms'\ndrain = '1s'\n[topology]\nkind = 'leaf-spine'\n\
             leaves = 3\nspines = 1\nhosts_per_leaf = 4\nrate = '25Gbps'\ndelay = '1us'\n[transport]\n\
             ack_every = 1\nhandshake = false\ninitial_window = 100\nmin_rto = '1ms'\ninitial_rto = '1ms'\n\
             [port.spine]\n{spine}\n[observe]\nlinks = true\n\
             [workload.a]\nkind = 'incast'\nto = 'h0'\nsize = '100KB'\nevery = '1ms'\n"
        ));
        let drops: Vec<_> = run.links.iter().filter(|link| link.drops > 0).collect();
        let ends: Vec<_> = drops.iter().map(|link| (link.from.as_str(), link.to.as_str())).collect();
        assert_eq!(ends, [("spine0", "leaf0")], "{spine}");
        assert_eq!(drops[0].drops, run.counters.switch_drops, "{spine}");
    }
}

/// Two hosts send to a third and are paused by turns, while another sends 500 KB to the first of them: each frame takes
/// its time from these. `pfc` lets frames overtake for free.
#[test]
fn pause_frames_take_their_time() {
    let latency = |queue: &str| {
        let run = run(&format!(
            "version = 1\ntitle = 'frames'\n[run]\nduration = '4ms'\ndrain = '1s'\n[topology]\nkind = 'rack'\n\
             hosts = 4\nrate = '10Gbps'\ndelay = '100ns'\n[port.switch]\n{queue}\n[observe]\nlinks = true\n\
             [transport]\nhandshake = false\ninitial_window = 400\nmin_rto = '200ms'\n\
             [workload.in]\nkind = 'packets'\nfrom = ['h1', 'h2']\nto = 'h0'\nsize = '1000B'\nload = 0.9\n\
             count = 2000\n[workload.out]\nkind = 'flows'\nfrom = ['h3']\nto = 'h1'\nsize = '500KB'\n"
        ));
        assert_eq!((run.counters.switch_drops, run.counters.retransmissions), (0, 0));
        let link = run.links.iter().find(|link| link.from == "h1").unwrap();
        (run.of("out").next().unwrap().latency().unwrap(), link.pauses)
    };
    let (free, none) = latency("lossless = { memory = '100MB' }");
    let (taken, some) = latency("lossless = { memory = '100MB', reserve = '0B', threshold = '1KB' }");
    assert!(none == 0 && some > 100, "{none} {some}");
    // A pause and a resume of 84 B each, or both in one frame, and none before the data or after.
    let frame = Span::from_ps(84 * 800);
    assert!(taken > free + frame * 20 && taken <= free + frame * (2 * some), "{free} {taken}, {some} pauses");
    let (pfc, many) = latency("buffer = '50KB'\npfc = { xoff = '1KB' }");
    assert!(pfc == free && many > 100, "{free} {pfc}, {many} pauses");
}

/// Switches in a ring whose memories are full of each other's packets.
#[test]
fn a_circle_of_pauses_is_found() {
    for lossless in ["{ memory = '150KB' }", "{ memory = '2MB', threshold = '30KB', reserve = '0B' }"] {
        let with = |flows| ring(flows).replace("pfc = {}", &format!("lossless = {lossless}"));
        let error = plimsoll_sim::run(&model(&with(5), None, None), &mut |_| true).unwrap_err();
        let RunError::Deadlock { links, .. } = &error else { panic!("{error}") };
        assert_eq!(links.len(), 5, "{lossless}: {error}");
        let open = run(&with(4));
        assert_eq!(open.counters.packets_lost(), 0, "{lossless}");
    }
}

/// A memory is its switch's, whichever thread the senders are on.
#[test]
fn any_number_of_threads_gives_the_same_run() {
    for more in
        ["", ", quanta = 100", ", quanta = 60, watchdog = { detection = '20us', restoration = '10us' }"]
    {
        any_number_of_threads(more);
    }
}

fn any_number_of_threads(more: &str) {
    let text = "version = 1\ntitle = 'threads'\n[run]\nduration = '3ms'\ndrain = '1s'\n[topology]\n\
                kind = 'fat-tree'\nk = 4\nrate = '10Gbps'\ndelay = '1us'\n[transport]\nmin_rto = '200ms'\n\
                initial_window = 100\n[observe]\nlinks = true\n[port.switch]\norder = 'priorities'\n\
                lossless = { memory = '1MB', alpha = 0.05, reserve = '1KB' }\n[host]\nack_priority = 7\n\
                [workload.all]\nkind = 'all-to-all'\nsize = '40KB'\nload = 0.5\n\
                [workload.incast]\nkind = 'incast'\nsize = '60KB'\nevery = '1ms'\n";
    let text = text.replace("reserve = '1KB'", &format!("reserve = '1KB'{more}"));
    let model = model(&text, None, Some(3));
    let alone = plimsoll_sim::run(&model, &mut |_| true).unwrap();
    let used = &alone.mechanisms[0];
    assert_eq!(alone.counters.packets_lost() > 0, used.storms > 0, "{more}");
    assert_eq!((used.refreshes > 0, used.storms > 0), (more.contains("quanta"), more.contains("watchdog")));
    assert!(alone.mechanisms[0].acted > 50, "{:?}", alone.mechanisms);
    assert!(!alone.blocked.workloads.is_empty());
    for threads in [1, 2, 4] {
        let outcome = run_in_parts(&model, threads, &mut |_| true).unwrap();
        assert_eq!(outcome.counters, alone.counters, "{threads} threads");
        assert_eq!(Digest::of(&outcome), Digest::of(&alone), "{threads} threads");
        assert_eq!(outcome.mechanisms, alone.mechanisms, "{threads} threads");
        assert_eq!(outcome.blocked, alone.blocked, "{threads} threads");
    }
}

/// With limited pauses the switch refreshes them, by frames that take their time, and nothing is lost. The run is that
/// of pauses without a limit, but for these frames.
#[test]
fn pauses_are_refreshed_before_they_end() {
    let latest = |run: &Run| run.of("bulk").filter_map(|message| message.latency()).max().unwrap();
    let unlimited = incast("memory = '400KB'", "");
    let mut refreshes = Vec::new();
    for quanta in [50, 400, 65_535] {
        let run = incast(&format!("memory = '400KB', quanta = {quanta}"), "");
        assert_eq!((run.counters.switch_drops, run.counters.retransmissions), (0, 0), "{quanta}");
        assert_whole(&run);
        let last = latest(&run);
        assert!(last < latest(&unlimited) + Span::from_us(30), "{quanta}: {last}");
        refreshes.push(run.mechanisms[0].refreshes);
    }
    assert!(refreshes[0] > 4 * refreshes[1] && refreshes[1] > 10 && refreshes[2] == 0, "{refreshes:?}");
    assert_eq!(unlimited.mechanisms[0].refreshes, 0);
}

/// A pause that ends before its refresh lets packets through that exceed the headroom.
#[test]
fn a_pause_that_is_too_short_loses_packets() {
    let run = incast("memory = '400KB', quanta = 1, may_drop = true", "");
    assert!(run.counters.switch_drops > 0 && run.mechanisms[0].dropped > 0, "{:?}", run.counters);
    assert_whole(&run);
}

/// Refreshes keep a circle of pauses, and a watchdog breaks it: the flows complete, and only it drops packets.
#[test]
fn a_watchdog_breaks_a_circle_of_pauses() {
    let with = |more: &str| {
        let lossless = format!("lossless = {{ memory = '150KB'{more} }}");
        ring(5).replace("pfc = {}", &lossless).replace("\nto = '", "\nsize = '600KB'\nto = '")
    };
    for more in ["", ", quanta = 2000"] {
        let error = plimsoll_sim::run(&model(&with(more), None, None), &mut |_| true).unwrap_err();
        let RunError::Deadlock { links, .. } = &error else { panic!("{error}") };
        assert_eq!(links.len(), 5, "{error}");
    }
    let watchdog =
        |rest: &str| with(&format!(", watchdog = {{ detection = '2ms', restoration = '100us'{rest} }}"));
    for more in ["", ", action = 'forward'"] {
        let text = watchdog(more);
        let model = model(&text, None, None);
        let alone =
            plimsoll_sim::run(&model, &mut |_| true).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(
            alone.messages.iter().all(|message| message.completed.is_some()),
            "{more}: {:?}",
            alone.counters
        );
        let used = &alone.mechanisms[0];
        assert!(used.storms > 0, "{used:?}");
        // Packets forwarded in a storm find room in the headroom here.
        assert_eq!(alone.counters.switch_drops > 0, more.is_empty(), "{more}: {:?}", alone.counters);
        assert_eq!(alone.counters.packets_accounted_for(), alone.counters.packets_sent);
        for threads in [2, 4] {
            let outcome = run_in_parts(&model, threads, &mut |_| true).unwrap();
            assert_eq!(Digest::of(&outcome), Digest::of(&alone), "{threads} threads");
            assert_eq!(outcome.mechanisms, alone.mechanisms, "{threads} threads");
        }
    }
    // Pauses of an incast are shorter than the detection.
    let calm = incast("memory = '400KB', watchdog = { detection = '20ms' }", "");
    assert_eq!((calm.counters.switch_drops, calm.mechanisms[0].storms), (0, 0));
}

/// A configured mechanism that never acted is reported by name, with how close it was to acting.
#[test]
fn a_mechanism_that_never_acted_is_named() {
    let used = |text: &str| {
        let run = run(&format!(
            "version = 1\ntitle = 'used'\n[run]\nduration = '5ms'\n[topology]\nkind = 'rack'\nhosts = 4\n\
             rate = '10Gbps'\ndelay = '1us'\n[port.switch]\n{text}\n[transport]\nkind = 'dctcp'\n\
             [workload.incast]\nkind = 'incast'\nsize = '14KB'\nevery = '1ms'\n"
        ));
        let [used] = &run.mechanisms[..] else { panic!("{:?}", run.mechanisms) };
        used.clone()
    };
    for (text, key) in [
        ("ecn = { threshold = '900KB' }", "ecn"),
        ("trim = {}\nbuffer = '1MB'", "trim"),
        ("shared_buffer = { total = '4MB' }", "shared_buffer"),
        ("red = { min = '800KB', max = '900KB' }", "red"),
    ] {
        let used = used(text);
        assert_eq!((used.key.as_str(), used.acted, used.peak), (key, 0, None), "{text}");
    }
    assert!(used("ecn = { threshold = '3KB' }").acted > 0);
    assert!(used("trim = {}\nbuffer = '3KB'").acted > 0);
    let classes = used("classes = { priority = { '0' = { weight = 1, ecn = { threshold = '900KB' } } } }");
    assert_eq!((classes.key.as_str(), classes.acted), ("classes.priority.*.ecn", 0));
    for (text, acts) in [
        ("pfc = {}\nbuffer = '100KB'", false),
        ("pfc = {}\nbuffer = '12KB'", true),
        ("lossless = { memory = '2MB' }", false),
        ("lossless = { memory = '2MB', alpha = 0.001 }", true),
    ] {
        let used = used(text);
        let peak = used.peak.unwrap();
        assert_eq!(used.acted > 0, acts, "{text}: {used:?}");
        assert!(peak > 0.01 && (peak >= 1.0) == acts, "{text}: {peak}");
    }
}

/// A shared buffer acts where a packet without room in it is trimmed.
#[test]
fn a_shared_buffer_that_causes_trims_has_acted() {
    let run = incast_beside("shared_buffer = { total = '30KB' }\ntrim = { queue = '100KB' }");
    let acted = |key: &str| run.mechanisms.iter().find(|used| used.key == key).unwrap().acted;
    assert!(run.counters.trimmed > 0 && acted("trim") == run.counters.trimmed, "{:?}", run.counters);
    assert_eq!(acted("shared_buffer"), run.counters.trimmed + run.counters.switch_drops);
}

/// A report says what lossless buffers dropped, also beside pauses and without headroom.
#[test]
fn drops_of_lossless_buffers_are_in_their_use() {
    let none = incast("memory = '2MB', reserve = '0B', alpha = 0.01, headroom = '0B', may_drop = true", "");
    let [used] = &none.mechanisms[..] else { panic!("{:?}", none.mechanisms) };
    assert!(used.dropped > 0 && used.headroom == 0, "{used:?}");
    let lossy = incast("memory = '400KB', priorities = '7', reserve = '2KB'", "[host]\nack_priority = 7\n");
    let [used] = &lossy.mechanisms[..] else { panic!("{:?}", lossy.mechanisms) };
    assert_eq!(used.dropped_lossy, lossy.counters.switch_drops);
    let full = incast("memory = '400KB'", "");
    let used = &full.mechanisms[0];
    assert!(used.headroom_peak > 0 && used.headroom_peak <= used.headroom, "{used:?}");
}

/// Hosts 1 to 5 send to host 0, and host 1 to host 6 as well, at the same priority.
fn with_a_victim(queue: &str, topology: &str) -> String {
    format!(
        "version = 1\ntitle = 'victims'\n[run]\nduration = '5ms'\ndrain = '1s'\n[topology]\n{topology}\n\
         rate = '10Gbps'\ndelay = '1us'\n[transport]\nack_every = 1\nhandshake = false\ninitial_window = 200\n\
         min_rto = '200ms'\n[port.switch]\n{queue}\n[observe]\nlinks = true\n\
         [workload.incast]\nkind = 'flows'\nfrom = ['h1', 'h2', 'h3', 'h4', 'h5']\nto = 'h0'\nsize = '300KB'\n\
         [workload.victim]\nkind = 'flows'\nfrom = ['h1']\nto = 'h6'\nsize = '300KB'\n\
         [workload.beside]\nkind = 'flows'\nfrom = ['h7']\nto = 'h6'\nsize = '10KB'\n"
    )
}

/// The flow that shares a NIC with one of an incast, and goes to an idle host, is the victim; the flows of the incast
/// are not, and a flow that no pause stopped is not blocked.
#[test]
fn victims_wait_for_the_congestion_of_others() {
    for (queue, topology) in [
        ("lossless = { memory = '400KB' }", "kind = 'rack'\nhosts = 8"),
        ("buffer = '60KB'\npfc = {}", "kind = 'rack'\nhosts = 8"),
        // Between switches the pause is passed on.
        (
            "lossless = { memory = '400KB' }",
            "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4",
        ),
    ] {
        let blocked = run(&with_a_victim(queue, topology)).outcome.blocked;
        let of = |name: &str| blocked.workloads.iter().find(|blocked| blocked.workload == name);
        let victim = of("victim").unwrap_or_else(|| panic!("{queue}: {blocked:?}"));
        assert_eq!((victim.flows, victim.victims), (1, 1), "{queue} {topology}: {blocked:?}");
        assert!(victim.victims_blocked_ns == victim.blocked_ns && victim.blocked_ns > 1_000);
        let incast = of("incast").unwrap();
        assert_eq!((incast.flows > 0, incast.victims, incast.victims_blocked_ns), (true, 0, 0), "{queue}");
        assert!(of("beside").is_none(), "{queue}: {blocked:?}");
        let into_leaf = blocked.tiers.iter().find(|tier| tier.tier.starts_with("host -> ")).unwrap();
        assert!(into_leaf.blocked_ns > 1_000, "{blocked:?}");
    }
    let roomy = run(&with_a_victim("lossless = { memory = '32MB' }", "kind = 'rack'\nhosts = 8"));
    assert!(roomy.outcome.blocked.is_empty());
}
