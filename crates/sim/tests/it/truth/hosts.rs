//! What hosts do to packets: random loss, days and nights, and reorder buffers at the receiver.

use plimsoll_sim::RunError;

use crate::truth::fabrics::ring;
use crate::truth::lab::{Run, model, run, run_with_seed};

/// A packet of 1250 B every 10 us from h0 and, if `also`, from h1 to h2; each takes 1 us a link, and 4 us in all.
fn packets(also: bool, host: &str) -> String {
    let table = |name: &str, from: &str| {
        format!(
            "[workload.{name}]\nkind = 'packets'\nfrom = ['{from}']\nto = 'h2'\nsize = '1250B'\nload = 0.1\n\
             arrivals = 'constant'\ncount = 2000\n"
        )
    };
    let second = if also { table("others", "h1") } else { String::new() };
    let first = table("packets", "h0");
    format!(
        "version = 1\ntitle = 'packets'\n[topology]\nkind = 'rack'\nhosts = 3\nrate = '10Gbps'\ndelay = '1us'\n\
         [host]\n{host}\n{first}{second}"
    )
}

/// Which packets of h0 arrived, by the time at which they were created, in us.
fn of_h0(run: &Run) -> Vec<u64> {
    let messages = run.of("packets").filter(|message| message.completed.is_some());
    messages.map(|message| message.created.as_ps() / 1_000_000).collect()
}

#[test]
fn hosts_lose_a_share_of_their_packets() {
    let whole = run(&packets(false, ""));
    assert_eq!((whole.counters.host_drops, whole.counters.packets_delivered), (0, 2_000));
    assert_eq!(run(&packets(false, "loss = 0.0")).digest(), whole.digest());
    for (probability, least, most) in [("0.01", 5, 40), ("0.1", 140, 260), ("1.0", 2_000, 2_000)] {
        let lossy = run(&packets(false, &format!("loss = {probability}")));
        let counters = lossy.counters;
        assert!((least..=most).contains(&counters.host_drops), "{probability}: {counters:?}");
        assert_eq!(counters.packets_delivered + counters.host_drops, counters.packets_sent);
        assert_eq!((counters.nic_drops, counters.switch_drops, counters.link_drops), (0, 0, 0));
    }
}

#[test]
fn a_hosts_losses_are_its_own() {
    let lossy = "loss = 0.1";
    let alone = run(&packets(false, lossy));
    let beside = run(&packets(true, lossy));
    assert_eq!(of_h0(&alone), of_h0(&beside), "the number of a packet decides, whatever h1 sends");
    assert!(beside.counters.host_drops > alone.counters.host_drops + 100, "h1 loses as well");
    assert_ne!(run_with_seed(&packets(false, lossy), 2).digest(), alone.digest());
}

/// One flow of 2 MB between two hosts.
fn flow(rest: &str) -> String {
    format!(
        "version = 1\ntitle = 'a flow'\n[topology]\nkind = 'rack'\nhosts = 2\nrate = '10Gbps'\ndelay = '5us'\n\
         [workload.bulk]\nkind = 'flows'\nfrom = 'h1'\nto = 'h0'\nsize = '2MB'\n{rest}"
    )
}

const FAST: &str = "[transport]\nmin_rto = '1ms'\ninitial_rto = '1ms'\nrto_granularity = '10us'\n";

#[test]
fn tcp_repairs_what_hosts_lose() {
    let lossy = run(&flow(&format!("[host]\nloss = 0.01\n{FAST}")));
    assert!(lossy.counters.host_drops > 5 && lossy.counters.retransmissions > 5, "{:?}", lossy.counters);
    assert!(lossy.of("bulk").all(|message| message.completed.is_some()));
}

/// The waiting times of packets of h0 in their NIC that are not 0, in us.
fn waited(run: &Run, workload: &str) -> Vec<(u64, u64)> {
    let us = |ps: u64| ps / 1_000_000;
    let held = run.of(workload).filter(|message| message.split.nic.as_ps() > 0);
    held.map(|message| (us(message.created.as_ps()), us(message.split.nic.as_ps()))).collect()
}

#[test]
fn at_night_nics_hold_what_they_have() {
    // A packet every 10 us; night from 93 us to 123 us, from 216 us to 246 us, and so on.
    let text = packets(false, "tdma = { day = '93us', night = '30us' }").replace("2000", "40");
    let run = run(&text);
    // They leave one after the other when the day breaks, and the packet of 370 us finds the NIC at work.
    let first = [(100, 23), (110, 14), (120, 5)];
    let second = [(220, 26), (230, 17), (240, 8)];
    let third = [(340, 29), (350, 20), (360, 11), (370, 2)];
    let expected = [&first[..], &second, &third].concat();
    assert_eq!(waited(&run, "packets"), expected);
    assert_eq!(run.counters.packets_delivered, 40);
    assert!(run.of("packets").all(|message| message.latency().unwrap() == message.split.total()));
}

#[test]
fn a_packet_that_has_begun_is_sent_to_its_end() {
    // Each packet takes 9 us of its 10, so every evening finds one on the link.
    let nightly = |day: &str, night: &str| {
        let text = packets(false, &format!("tdma = {{ day = '{day}', night = '{night}' }}"));
        let text = text.replace("load = 0.1", "load = 0.9").replace("2000", "30");
        run(&text.replace("'10Gbps'", "'1Gbps'").replace("1250B", "1125B"))
    };
    // The packet of 50 us ends at 59 us, in the night.
    assert_eq!(waited(&nightly("55us", "5us"), "packets"), []);
    // That of 50 us comes a microsecond after the evening, and leaves with the day.
    assert_eq!(waited(&nightly("49us", "11us"), "packets")[0], (50, 10));
}

#[test]
fn a_night_pauses_the_priorities_that_it_names() {
    let text = |nic: &str, paused: &str| {
        format!(
            "version = 1\ntitle = 'two priorities'\n[topology]\nkind = 'rack'\nhosts = 3\nrate = '10Gbps'\n\
             delay = '1us'\n[port.host]\norder = '{nic}'\n\
             [host]\npriority = {{ low = 0, high = 1 }}\n\
             tdma = {{ day = '93us', night = '30us', priorities = {paused} }}\n\
             [workload.low]\nkind = 'packets'\nfrom = ['h0']\nto = 'h2'\nsize = '1250B'\nload = 0.1\n\
             arrivals = 'constant'\ncount = 20\n\
             [workload.high]\nkind = 'packets'\nfrom = ['h0']\nto = 'h2'\nsize = '125B'\nload = 0.01\n\
             arrivals = 'constant'\ncount = 20\n"
        )
    };
    let long = |run: &Run, workload: &str| waited(run, workload).iter().filter(|(_, us)| *us > 1).count();
    let low = run(&text("priorities", "[0]"));
    assert_eq!((long(&low, "low"), long(&low, "high")), (3, 0));
    let high = run(&text("priorities", "[1]"));
    assert_eq!((long(&high, "low"), long(&high, "high")), (0, 3));
    // In one queue, paused packets hold up the others.
    let both = run(&text("fifo", "[0]"));
    assert!(long(&both, "low") == 3 && long(&both, "high") >= 2);
}

/// Senders whose NICs are paused by the switch and by the night.
const PAUSED: &str = "version = 1\ntitle = 'pauses by night'\n[topology]\nkind = 'rack'\nhosts = 5\nrate = '10Gbps'\n\
     delay = '1us'\n[port.switch]\nbuffer = '60KB'\npfc = {}\n[host]\ntdma = { day = '50us', night = '200us' }\n\
     [workload.incast]\nkind = 'incast'\nsize = '200KB'\nevery = '5ms'\nrounds = 2\n";

#[test]
fn a_night_is_no_deadlock() {
    let run = run(PAUSED);
    assert_eq!(run.counters.packets_lost(), 0);
    assert!(run.messages.iter().all(|message| message.completed.is_some()));
}

#[test]
fn a_deadlock_is_found_by_day() {
    let text = ring(5) + "[host]\ntdma = { day = '50us', night = '20us' }\n";
    let error = plimsoll_sim::run(&model(&text, None, None), &mut |_| true).unwrap_err();
    assert!(matches!(error, RunError::Deadlock { .. }), "{error}");
}

/// A flow whose packets are sprayed over four paths, of which one is slow.
fn sprayed(host: &str, threshold: u32) -> Run {
    run(&format!(
        "version = 1\ntitle = 'overtaking'\n[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 4\n\
         hosts_per_leaf = 3\nrate = '10Gbps'\ndelay = '1us'\n[paths]\nspray = {{ by = 'random' }}\n\
         [[fault]]\nfrom = 'spine0'\nto = 'leaf0'\ndirection = 'forward'\nrate = '3Gbps'\n\
         [host]\n{host}\n[transport]\nmin_rto = '1ms'\ninitial_rto = '1ms'\nrto_granularity = '10us'\n\
         dup_ack_threshold = {threshold}\ninitial_ssthresh = 100\n\
         [workload.bulk]\nkind = 'flows'\nfrom = 'h3'\nto = 'h1'\nsize = '2MB'\n"
    ))
}

#[test]
fn a_reorder_buffer_hides_overtaking() {
    let last = |run: &Run| run.of("bulk").map(|message| message.completed.unwrap()).max().unwrap();
    let without = sprayed("", 3);
    assert!(without.counters.retransmissions > 0, "packets overtake each other");
    assert_eq!(without.counters.packets_lost(), 0, "and none is lost");
    let with = sprayed("reorder_buffer = { timeout = '100us' }", 3);
    assert_eq!((with.counters.retransmissions, with.counters.packets_lost()), (0, 0));
    assert!(last(&with) <= last(&without));
    // With receive offload, the buffer holds whole pieces.
    let pieces = sprayed("reorder_buffer = { timeout = '100us' }\nbursts = {}", 3);
    assert_eq!((pieces.counters.retransmissions, pieces.counters.packets_lost()), (0, 0));
    // Too small a buffer, or too short a time, hides less.
    let small = sprayed("reorder_buffer = { timeout = '100us', bytes = '1B' }", 3);
    assert_eq!(small.counters.retransmissions, without.counters.retransmissions);
}

#[test]
fn a_reorder_buffer_delays_the_recovery_of_a_loss() {
    // The first seed with which exactly one packet is lost, in the middle of the data.
    // A window of one round trip: unacknowledged data keeps the sender waiting.
    let text = |host: &str| flow(&format!("{FAST}max_window = 20\n[host]\nloss = 0.0007\n{host}"));
    let one_lost = |run: &Run| {
        run.counters.host_drops == 1 && run.counters.retransmissions == 1 && run.counters.timeouts == 0
    };
    let seed = (1..200).find(|seed| one_lost(&run_with_seed(&text(""), *seed))).unwrap();
    let done = |run: &Run| run.of("bulk").next().unwrap().completed.unwrap();
    let without = run_with_seed(&text(""), seed);
    let mut before = done(&without);
    for timeout in [50, 200] {
        let with = run_with_seed(&text(&format!("reorder_buffer = {{ timeout = '{timeout}us' }}")), seed);
        assert!(one_lost(&with), "{:?}", with.counters);
        assert!(done(&with) >= before, "{timeout} us");
        let later = (done(&with) - done(&without)).as_us_f64();
        assert!(later <= f64::from(timeout), "{timeout} us: {later} us later");
        before = done(&with);
    }
    assert!(before > done(&without), "the recovery begins later");
}

/// A packet of 1250 B every 100 us from a guest of h0 at level 6, beside one every microsecond from a neighbour there,
/// with four packets a bucket and an epoch.
fn guests(guest: &str) -> String {
    let table = |name: &str, load: f64, count: u64| {
        format!(
            "[workload.{name}]\nkind = 'packets'\nfrom = ['h0']\nto = 'h2'\nsize = '1250B'\nload = {load}\n\
             arrivals = 'constant'\ncount = {count}\n"
        )
    };
    format!(
        "version = 1\ntitle = 'guests'\n[topology]\nkind = 'rack'\nhosts = 3\nrate = '10Gbps'\ndelay = '1us'\n\
         [host]\npriority = {{ probe = 6, neighbour = 6 }}\n{guest}\n[host.qjump]\npacket = '1250B'\n\
         excess = 'drop'\nlevels = ['line', 'line', 'line', 'line', 'line', 'line', '4x']\n{}{}",
        table("probe", 0.01, 200),
        table("neighbour", 1.0, 20_000)
    )
}

/// A neighbour at the same level takes the bucket of a host from its other guests, and none of theirs.
#[test]
fn guests_have_buckets_of_their_own() {
    let arrived = |run: &Run, name| run.of(name).filter(|message| message.completed.is_some()).count();
    let shared = run(&guests(""));
    assert!(arrived(&shared, "probe") < 150, "{} of 200", arrived(&shared, "probe"));
    for guest in ["guest = { neighbour = 1 }", "guest = { probe = 2, neighbour = 63 }"] {
        let apart = run(&guests(guest));
        assert_eq!(arrived(&apart, "probe"), 200, "{guest}");
        // Each guest counts as a sender: 2 n P / R + eps, of 4 packets for 3 hosts of 2 or 64 guests.
        let senders = if guest.contains("63") { 192 } else { 6 };
        let epoch_ns = 2 * senders * 1_000 + 4_000;
        let most = 4 * (20_000_000u64.div_ceil(epoch_ns) + 1);
        let passed = arrived(&apart, "neighbour") as u64;
        assert!((most * 9 / 10..=most).contains(&passed), "{guest}: {passed} of {most}");
    }
}
