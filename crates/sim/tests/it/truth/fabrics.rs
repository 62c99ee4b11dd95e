//! Fabrics: many paths, priorities, flow control. Lossless networks lose nothing, the first class goes first,
//! and a circle of pauses is found.

use plimsoll_sim::RunError;
use plimsoll_units::Span;
use proptest::prelude::*;
use proptest::sample::select;

use crate::truth::arbitrary::config;
use crate::truth::lab::{Run, model, run, run_variant};

/// QJump's and pFabric's 144 hosts.
const FABRIC: &str = "
    version = 1
    title = 'fabric'
    [topology]
    kind = 'leaf-spine'
    leaves = 9
    spines = 4
    hosts_per_leaf = 16
    rate = '10Gbps'
    fabric_rate = '40Gbps'
    delay = '2.7us'
    fabric_delay = '0.2us'
    [transport]
    segment = '1460B'
    header = '40B'
    initial_window = 20
    ack_every = 1
    handshake = false
    connections = 'per-message'
    ";

/// The ideal completion times of the 144-host study: 1.2 us for each further packet, and 13.264 us in the rack
/// or 14.680 us across it, of data one way and an acknowledgement back.
#[test]
fn idle_paths_take_what_the_study_says() {
    for paths in ["", "spray = { by = 'round-robin' }", "spray = {}", "flowlet = {}", "adaptive = {}"] {
        for (to, packets, us) in
            [("h1", 1, 13.264), ("h16", 1, 14.680), ("h15", 9, 22.864), ("h143", 9, 24.280)]
        {
            let bytes = 1460 * packets;
            let text = format!(
                "{FABRIC}[paths]\n{paths}\n[observe]\ncompletion = 'acknowledged'\n\
                 [workload.flow]\nkind = 'flows'\nfrom = ['h0']\nto = '{to}'\nsize = '{bytes}B'\n"
            );
            let run = run(&text);
            let message = run.of("flow").next().unwrap();
            let expected = Span::from_ps((us * 1e6) as u64);
            assert_eq!((message.latency(), message.ideal), (Some(expected), expected), "{paths}");
        }
    }
}

#[test]
fn delivered_is_an_acknowledgement_earlier() {
    let text =
        format!("{FABRIC}[workload.flow]\nkind = 'flows'\nfrom = ['h0']\nto = 'h16'\nsize = '1460B'\n");
    let run = run(&text);
    // 40 B back: 2 x 32 ns and 2 x 8 ns, and 5.8 us of propagation.
    assert_eq!(run.of("flow").next().unwrap().latency(), Some(Span::from_ns(14_680 - 80 - 5_800)));
}

/// A small request beside a standing queue waits, at its own priority, for one packet at each port at most.
#[test]
fn the_highest_priority_waits_for_the_packet_in_service() {
    const TEXT: &str = "
        version = 1
        title = 'priorities'
        [run]
        duration = '20ms'
        [topology]
        kind = 'rack'
        hosts = 4
        rate = '1Gbps'
        delay = '1us'
        [transport]
        ack_every = 1
        handshake = false
        [workload.bulk]
        kind = 'flows'
        from = ['h1', 'h2']
        to = 'h0'
        [workload.ask]
        kind = 'rpc'
        client = 'h0'
        servers = ['h3']
        request = '40B'
        response = '100B'
        load = '1Mbps'
        start = '2ms'
        [variant.fifo]
        port.switch.buffer = '100KB'
        [variant.priorities]
        port.switch = { buffer = '100KB', order = 'priorities' }
        port.host.order = 'priorities'
        host.priority = { ask = 7 }
        ";
    let worst = |name: &str| {
        let run = run_variant(TEXT, name);
        let worst = run.of("ask").map(|message| message.split.tier[0]).max().unwrap();
        (worst, run.of("ask").count())
    };
    let full_packet = Span::from_us(12);
    let (fifo, asked) = worst("fifo");
    assert!(fifo > full_packet * 20 && asked > 15, "{fifo} of {asked}");
    let (priorities, _) = worst("priorities");
    assert!(priorities <= full_packet && priorities > Span::ZERO, "{priorities}");
}

fn lossless(rest: &str) -> String {
    format!(
        "version = 1\ntitle = 'lossless'\n[run]\nduration = '3ms'\n[transport]\nack_every = 1\nhandshake = false\n\
         initial_window = 200\nmin_rto = '200ms'\n[port.switch]\nbuffer = '100KB'\npfc = {{}}\n{rest}"
    )
}

fn assert_lossless(run: &Run) {
    assert_eq!((run.counters.switch_drops, run.counters.nic_drops), (0, 0));
    assert_eq!((run.counters.retransmissions, run.counters.timeouts), (0, 0), "nothing was lost");
}

/// Windows of 300 KB from seven hosts at once into 100 KB buffers.
#[test]
fn flow_control_loses_nothing_and_keeps_the_link_busy() {
    let text = lossless(
        "[topology]\nkind = 'rack'\nhosts = 8\nrate = '10Gbps'\ndelay = '1us'\n\
         [workload.bulk]\nkind = 'incast'\nsize = '300KB'\nevery = '10ms'\n",
    );
    let paused = run(&text);
    assert_lossless(&paused);
    let last = paused.of("bulk").filter_map(|message| message.latency()).max().unwrap();
    // 7 x 206 packets of 1500 B one after the other, and next to nothing else: the link never idles.
    let busy = Span::from_ns(7 * 206 * 1200);
    assert!(last < busy + Span::from_us(20) && last + Span::from_us(20) > busy, "{last} beside {busy}");
    assert!(run(&text.replace("pfc = {}", "")).counters.switch_drops > 100, "without it much is lost");
    let short = text.replace("pfc = {}", "pfc = { headroom = '0B', xoff = '98KB' }");
    assert!(run(&short).counters.switch_drops > 0, "nor can it do without its headroom");
}

/// Thresholds below a packet: every packet pauses its link and, leaving at once, resumes it in the same event.
#[test]
fn a_pause_and_its_end_keep_their_order() {
    let text = lossless(
        "[topology]\nkind = 'rack'\nhosts = 3\nrate = '10Gbps'\ndelay = '1us'\n\
         [workload.bulk]\nkind = 'incast'\nfrom = ['h1']\nsize = '30KB'\nevery = '1ms'\nrounds = 2\n",
    );
    let run = run(&text.replace("pfc = {}", "pfc = { xoff = '1B', xon = '0B' }"));
    assert_lossless(&run);
    let times: Vec<_> = run.of("bulk").map(|message| message.latency()).collect();
    // 21 packets of 1.2 us, the last one's second link, and 2 us: no pause lasts.
    let ideal = run.of("bulk").next().unwrap().ideal;
    assert!(
        times.len() == 2 && times.iter().all(|time| time.is_some_and(|time| time < ideal * 2)),
        "{times:?}"
    );
}

/// Both ends of a link that takes 12 ms a packet pause each other's neighbours: slow is not stuck.
#[test]
fn slow_links_are_no_deadlock() {
    let text = lossless(
        "[topology]\nkind = 'dumbbell'\nleft = 2\nright = 2\nrate = '1Mbps'\ndelay = '1us'\n\
         bottleneck_rate = '1Mbps'\n\
         [workload.there]\nkind = 'flows'\nfrom = ['h0', 'h1']\nto = 'h2'\nsize = '150KB'\n\
         [workload.back]\nkind = 'flows'\nfrom = ['h2', 'h3']\nto = 'h0'\nsize = '150KB'\n",
    );
    let text = text
        .replace("duration = '3ms'", "duration = '20s'")
        .replace("min_rto = '200ms'", "min_rto = '50s'\ninitial_rto = '50s'");
    let run = run(&text.replace("pfc = {}", "pfc = { xoff = '4KB' }"));
    assert_lossless(&run);
    assert!(run.messages.iter().all(|message| message.completed.is_some()));
}

/// Clockwise traffic in a ring of five, of `flows` flows.
pub fn ring(flows: usize) -> String {
    let all = [("a", "c"), ("b", "d"), ("c", "e"), ("d", "a"), ("e", "b")];
    let table = |(from, to): &(&str, &str)| {
        format!("[workload.{from}]\nkind = 'flows'\nfrom = ['{from}']\nto = '{to}'\n")
    };
    let tables: String = all[..flows].iter().map(table).collect();
    lossless(&format!("[topology]\nkind = 'file'\npath = 'ring.toml'\n{tables}"))
}

/// Every switch waits for the next one.
#[test]
fn a_circle_of_pauses_is_found() {
    let text = ring(5);
    let error = plimsoll_sim::run(&model(&text, None, None), &mut |_| true).unwrap_err();
    let RunError::Deadlock { links, .. } = &error else { panic!("{error}") };
    assert_eq!(links.len(), 5, "{error}");
    assert!(error.to_string().contains("s0 -> s1"), "{error}");
    // One flow less leaves the circle open.
    let open = run(&ring(4));
    assert_lossless(&open);
}

/// DeTail's pair: pauses make queues show where downstream is full, and packets go round it.
#[test]
fn adaptive_paths_use_a_lossless_fabric_better_than_hashed_ones() {
    let goodput = |paths: &str| {
        let text = lossless(&format!(
            "[paths]\n{paths}\n[topology]\nkind = 'fat-tree'\nk = 4\nrate = '10Gbps'\ndelay = '1us'\n\
             [workload.bulk]\nkind = 'permutation'\n"
        ));
        // Packets overtake each other, which is not a loss.
        let run = run(&text.replace("ack_every = 1", "ack_every = 1\ndup_ack_threshold = 0"));
        assert_lossless(&run);
        run.connections.iter().map(|connection| connection.delivered).sum::<u64>()
    };
    let (hashed, adaptive) = (goodput(""), goodput("adaptive = {}"));
    assert!(adaptive as f64 > 1.2 * hashed as f64, "{adaptive} beside {hashed}");
}

/// A packet can record 1.1 s at one place; longer waits are attributed all the same.
#[test]
fn waits_of_seconds_are_told_apart() {
    let text = "version = 1\ntitle = 'slow'\n[topology]\nkind = 'rack'\nhosts = 3\nrate = '1Mbps'\ndelay = '1us'\n\
                [transport]\nack_every = 1\nhandshake = false\ninitial_window = 1000\nmin_rto = '50s'\n\
                initial_rto = '50s'\n\
                [workload.bulk]\nkind = 'incast'\nsize = '300KB'\nevery = '1s'\n";
    let run = run(text);
    for message in run.of("bulk") {
        assert_eq!(message.split.total(), message.latency().unwrap());
        let waited = message.split.nic + message.split.tier[0];
        assert!(waited > Span::from_secs(2) && message.split.recovery.is_zero(), "{:?}", message.split);
    }
}

/// One link of several is slow: every part of a flow's time is still attributed, and adaptive paths go round it.
#[test]
fn a_degraded_link_is_avoided_by_those_who_look() {
    let p99 = |paths: &str| {
        let text = format!(
            "version = 1\ntitle = 'degraded'\n[topology]\nkind = 'file'\npath = 'degraded.toml'\n[paths]\n{paths}\n\
             [port.switch]\nbuffer = '100KB'\npfc = {{}}\n[transport]\nack_every = 1\ndup_ack_threshold = 0\n\
             handshake = false\nconnections = 'per-message'\nmin_rto = '50ms'\ninitial_rto = '50ms'\n\
             [workload.all]\nkind = 'all-to-all'\nsize = '30KB'\nload = 0.2\ncount = 400\n"
        );
        let run = run(&text);
        assert_lossless(&run);
        let mut times: Vec<Span> = run.of("all").map(|message| message.latency().unwrap()).collect();
        assert!(run.of("all").all(|message| message.split.total() == message.latency().unwrap()));
        assert!(run.of("all").all(|message| message.ideal <= message.latency().unwrap()));
        times.sort_unstable();
        times[times.len() * 99 / 100]
    };
    let (hashed, sprayed, adaptive) =
        (p99(""), p99("spray = {}"), p99("adaptive = { thresholds = ['3KB', '20KB'] }"));
    assert!(adaptive * 2 < hashed && adaptive * 2 < sprayed, "{adaptive} beside {hashed} and {sprayed}");
}

proptest! {
    #![proptest_config(config(24))]

    /// Whatever the fabric, the priorities and the paths: nothing is lost, and every message arrives.
    #[test]
    fn lossless_means_lossless(
        topology in select(vec![
            "kind = 'fat-tree'\nk = 4\nrate = '10Gbps'\ndelay = '500ns'",
            "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 3\nrate = '10Gbps'\n\
             fabric_rate = '40Gbps'\ndelay = '3us'",
            "kind = 'rack'\nhosts = 6\nrate = '1Gbps'\ndelay = '10us'",
        ]),
        paths in select(vec!["", "spray = {}", "adaptive = {}", "flowlet = { gap = '5us' }"]),
        pauses in select(vec![
            "pfc = {}",
            "pfc = { scope = 'link' }",
            "pfc = { xoff = '4KB', xon = '1KB' }",
            "pfc = { response = '2us' }",
            "lossless = { memory = '3MB', alpha = 0.01 }",
            "lossless = { memory = '3MB', alpha = 0.01, quanta = 300 }",
            "lossless = { memory = '3MB', threshold = '4KB', reserve = '0B', response = '1us' }",
        ]),
        order in select(vec!["fifo", "priorities"]),
        priorities in any::<bool>(),
        load in 0.1f64..0.9,
        seed in any::<u32>(),
    ) {
        let priorities = if priorities { "priority_by_size = ['2KB', '20KB']" } else { "" };
        let text = format!(
            "version = 1\ntitle = 'lossless'\n[run]\nseed = {seed}\n[topology]\n{topology}\n[paths]\n{paths}\n\
             [port.switch]\nbuffer = '240KB'\norder = '{order}'\n{pauses}\n[host]\n{priorities}\n\
             [transport]\nack_every = 1\ndup_ack_threshold = 0\nmin_rto = '200ms'\ninitial_rto = '200ms'\n\
             initial_window = 50\nhandshake = false\nconnections = 'per-message'\n\
             [workload.all]\nkind = 'all-to-all'\nsize = {{ kind = 'exponential', mean = '60KB' }}\nload = {load:.2}\n\
             count = 150\n[workload.incast]\nkind = 'incast'\nsize = '100KB'\nevery = '1ms'\n"
        );
        let run = run(&text);
        assert_lossless(&run);
        prop_assert!(run.messages.iter().all(|message| message.completed.is_some()));
    }
}
