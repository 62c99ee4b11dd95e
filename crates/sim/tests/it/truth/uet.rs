//! Ultra Ethernet in whole runs: times that follow from the rates, and trouble of every kind, in which all messages
//! end.

use plimsoll_units::{Span, Time};

use crate::truth::lab::{Run, run};
use crate::truth::roce_reliability::{ends_on_any_threads, meet_trouble};

/// The network of the published runs with 16 hosts: 100 Gb/s, three tiers, 1 us a link.
const FAT_TREE: &str = "[topology]\nkind = 'fat-tree'\nk = 4\nrate = '100Gbps'\ndelay = '1us'\n";

/// Messages of `bytes` from h0 to h15, one after the other in one connection, with a `preset`; complete when
/// acknowledged.
fn across(preset: &str, messages: u32, bytes: u32) -> Run {
    run(&format!(
        "version = 1\ntitle = 'across pods'\npreset = '{preset}'\n[run]\nduration = '1s'\n{FAT_TREE}\
         [observe]\ncompletion = 'acknowledged'\n\
         [workload.w]\nkind = 'incast'\nfrom = 'h0'\nto = 'h15'\nsize = '{bytes}B'\nevery = '1ps'\n\
         rounds = {messages}\n"
    ))
}

/// When the last message was complete, in microseconds.
fn end(run: &Run) -> f64 {
    let ends = run.messages.iter().map(|message| message.completed.expect("it ends"));
    (ends.max().unwrap() - Time::ZERO).as_us_f64()
}

#[test]
fn a_lone_flow_takes_the_time_that_its_bytes_and_links_give() {
    // (2,000,000 + 490 x 64) x 8 / 100 Gb/s for the packets, five further links of a full packet, six delays of a link
    // there and back, and the acknowledgement of 64 bytes on six links.
    let nscc = end(&across("uet-nscc", 1, 2_000_000));
    assert!((nscc - 176.199_52).abs() < 1e-6, "{nscc}");
    assert!((end(&across("uet-nscc", 1, 40_860)) - 17.010_72).abs() < 1e-6);
    assert!((end(&across("uet-nscc", 1, 408_600)) - 46.890_72).abs() < 1e-6);
    // The published simulator prints 177.368 for receivers' credit.
    let rccc = end(&across("uet-rccc", 1, 2_000_000));
    assert!((rccc / 177.368 - 1.0).abs() < 2e-4, "{rccc}");
}

#[test]
fn eqds_gives_a_large_flow_the_share_of_the_link_that_its_credit_is() {
    // Ten further megabytes: credit of 4,096 B comes every 0.99 x (4,150 + 38) B of the link's time, for packets of
    // 4,150 B with 4,086 B of payload.
    let further = end(&across("eqds", 1, 20_000_000)) - end(&across("eqds", 1, 10_000_000));
    let payload_gbps = 100.0 * 4_096.0 / (0.99 * 4_188.0) * 4_086.0 / 4_150.0;
    let expected = 80_000.0 / payload_gbps;
    assert!((further / expected - 1.0).abs() < 1e-3, "{further} {expected}");
}

#[test]
fn messages_share_a_connection_without_losing_time() {
    let one = end(&across("uet-nscc", 1, 408_600));
    let ten = end(&across("uet-nscc", 10, 40_860));
    // They are written a picosecond apart.
    assert!((ten - one).abs() < 1e-4, "{ten} {one}");
}

/// Messages of ten packets from h0 to h15, the second to seventh of which are lost on the last link; `others` are
/// further keys of the transport. Returns when each arrived, in microseconds.
fn behind_a_gap(messages: u32, others: &str) -> Vec<f64> {
    let run = run(&format!(
        "version = 1\ntitle = 'a gap'\n[run]\nduration = '1s'\n{FAT_TREE}\
         [transport]\nkind = 'uet-nscc'\nsegment = '4086B'\nheader = '64B'\n\
         uet = {{ trimming = false, {others} }}\n[[fault]]\nfrom = 'edge7'\nto = 'h15'\n\
         at = '8.5us'\nuntil = '9us'\ndown = true\n[paths]\nconvergence_delay = '10ms'\n\
         [workload.w]\nkind = 'incast'\nfrom = 'h0'\nto = 'h15'\nsize = '40860B'\nevery = '1ps'\n\
         rounds = {messages}\n"
    ));
    run.messages.iter().map(|message| (message.completed.unwrap() - Time::ZERO).as_us_f64()).collect()
}

#[test]
fn a_message_need_not_wait_for_one_before_it_that_has_a_gap() {
    let [first, second] = behind_a_gap(2, "ordered = false")[..] else { panic!("two messages") };
    // Twenty packets, five further links of a full packet, and six delays.
    assert!((second - (25.0 * 0.332 + 6.0)).abs() < 1e-4, "{second}");
    assert!(first > 100.0, "a timeout repairs it: {first}");
    let in_order = behind_a_gap(2, "ordered = true");
    assert!((in_order[0] - first).abs() < 1e-4 && (in_order[1] - first).abs() < 1e-4, "{in_order:?} {first}");
}

#[test]
fn a_probe_finds_losses_two_round_trips_after_the_last_answer() {
    let (packet, control) = (0.332, 0.005_12);
    let last_answer = 15.0 * packet + 6.0 + 6.0 * (1.0 + control);
    // R, and without trimming as much for the queue that is aimed at; the probe, its answer, and six packets again.
    let silence = 2.0 * (6.0 * (packet + control) + 12.0);
    let probe = 12.0 * (1.0 + control);
    let expected = last_answer + silence + probe + 11.0 * packet + 6.0;
    let found = behind_a_gap(1, "probes = true")[0];
    assert!((found - expected).abs() < 1e-4, "{found} {expected}");
    assert!(behind_a_gap(1, "probes = false")[0] > 100.0);
}

#[test]
fn receivers_in_an_oversubscribed_fabric_grant_less_than_their_links() {
    let permutation = |others: &str| {
        run(&format!(
            "version = 1\ntitle = 'oversubscribed'\npreset = 'uet-rccc'\n[topology]\nkind = 'leaf-spine'\n\
             leaves = 4\nspines = 2\nhosts_per_leaf = 8\nrate = '100Gbps'\nfabric_rate = '100Gbps'\n\
             delay = '1us'\n[transport]\n{others}\n[workload.w]\nkind = 'permutation'\nsize = '2MB'\n"
        ))
    };
    let (whole, less) = (permutation(""), permutation("uet.rccc.oversubscription = 4"));
    let trimmed = [&whole, &less].map(|run| run.counters.naks_sent);
    assert!(trimmed[0] > 5 * trimmed[1], "{trimmed:?}");
    // A rack receives what its two links to spines carry, and at least 0.8 of that.
    let ideal = 8.0 * (2e6 + 490.0 * 64.0) * 8.0 / 200e3;
    assert!(end(&less) < ideal / 0.8 + 50.0, "{} {ideal}", end(&less));
}

#[test]
fn an_incast_keeps_the_last_link_full_and_receivers_credit_trims_the_first_window_alone() {
    let incast = |preset: &str| {
        run(&format!(
            "version = 1\ntitle = 'incast'\npreset = '{preset}'\n[run]\ndrain = '1s'\n{FAT_TREE}\
             [observe]\ncompletion = 'acknowledged'\n\
             [workload.w]\nkind = 'incast'\nto = 'h0'\nfrom = 'h1..h15'\nsize = '1MB'\nevery = '1s'\n"
        ))
    };
    // 15 flows of 245 packets, of which the last has 3,016 bytes of payload.
    let bytes = 15.0 * (1_000_000.0 + 245.0 * 64.0);
    for (preset, rate, first_window) in
        [("uet-nscc", 100.0, false), ("uet-rccc", 99.0, true), ("uet", 99.0, true)]
    {
        let run = incast(preset);
        let ideal = bytes * 8.0 / (rate * 1e3);
        let (last, trimmed) = (end(&run), run.counters.naks_sent);
        assert!(last > ideal && last < 1.04 * ideal + 20.0, "{preset}: {last} {ideal}");
        assert_eq!(run.counters.packets_lost(), 0, "{preset}");
        // An answer that was asked for may come with a packet that is trimmed, late in the run.
        assert!(run.counters.timeouts < 5, "{preset}: {}", run.counters.timeouts);
        // 64 packets each are the first window; the queue and the link take some of them.
        assert!(trimmed > 300 && (!first_window || trimmed < 15 * 64), "{preset}: {trimmed}");
    }
}

#[test]
fn more_than_one_path_carries_a_permutation() {
    let last = |choice: &str| {
        let mut ends: Vec<f64> = (1..=5)
            .map(|seed| {
                end(&run(&format!(
                    "version = 1\ntitle = 'permutation'\npreset = 'uet-nscc'\n[run]\nseed = {seed}\n{FAT_TREE}\
                     [observe]\ncompletion = 'acknowledged'\n[transport.uet.paths]\nchoice = '{choice}'\n\
                     [workload.w]\nkind = 'permutation'\nsize = '2MB'\n"
                )))
            })
            .collect();
        ends.sort_by(f64::total_cmp);
        ends[2]
    };
    let all = ["mixed", "bitmap", "reps", "oblivious", "flow"].map(last);
    let [mixed, bitmap, reps, oblivious, flow] = all;
    // The published run with `mixed` took 194.0 us, and with one path 527.8 us.
    assert!((mixed / 194.0 - 1.0).abs() < 0.04, "{all:?}");
    assert!([bitmap, reps, oblivious].iter().all(|end| *end < 240.0), "{all:?}");
    assert!(flow > 1.5 * oblivious, "{all:?}");
}

/// The transports of the matrix: a name, keys of `[transport]`, and of `[port.switch]`.
const KINDS: &[(&str, &str, &str)] = &[
    // Headers of a thousand senders would starve the data of a link of 25 Gb/s, if they always went first.
    ("NSCC", "kind = 'uet-nscc'", "trim = { service = '10:1' }\n"),
    ("RCCC", "kind = 'uet-rccc'", "trim = { service = '10:1' }\n"),
    ("both", "kind = 'uet'", "trim = { service = '10:1' }\n"),
    (
        "both, REPS, a connection for each message",
        "kind = 'uet'\nconnections = 'per-message'\nuet.paths.choice = 'reps'\nuet.ack_after = '1B'",
        "trim = { service = '10:1' }\n",
    ),
    ("both, one path", "kind = 'uet'\nuet.paths.choice = 'flow'", "trim = { service = '10:1' }\n"),
    ("both, without trimming", "kind = 'uet'\nconnections = 'per-message'\nuet.trimming = false", ""),
    ("NSCC, overtaken", "kind = 'uet-nscc'\nuet.trimming = false\nuet.overtaken_is_lost = true", ""),
];

/// Runs `network` with each of [`KINDS`] on one, two and four threads. `others` is added to the scenario.
fn all_end(case: &str, network: &str, others: &str) {
    for (name, transport, port) in KINDS {
        let text = format!(
            "version = 1\ntitle = '{case}, {name}'\n[run]\nduration = '1ms'\ndrain = '200ms'\n{network}\
             [port.switch]\nbuffer = '60KB'\necn = {{ threshold = '20KB' }}\n{port}\
             [transport]\nsegment = '1000B'\nheader = '64B'\n{transport}\n{others}"
        );
        ends_on_any_threads(&format!("{case}, {name}"), &text, None);
    }
}

#[test]
fn all_messages_end_in_trouble_of_every_kind() {
    meet_trouble(all_end);
}

#[test]
fn messages_to_a_receiver_that_never_comes_back_are_told() {
    let text = format!(
        "version = 1\ntitle = 'a dead receiver'\npreset = 'uet'\n[run]\nduration = '1ms'\ndrain = '4ms'\n{FAT_TREE}\
         [[fault]]\nfrom = 'edge0'\nto = 'h0'\nat = '50us'\ndown = true\n\
         [workload.w]\nkind = 'incast'\nto = 'h0'\nfrom = 'h1..h15'\nsize = '100KB'\nevery = '1s'\n"
    );
    let run = run(&text);
    let late = run.messages.iter().filter(|message| message.completed.is_none()).count();
    let told = format!("{late} of 15 messages");
    assert!(
        late > 0 && run.warnings.iter().any(|warning| warning.contains(&told)),
        "{late} {:?}",
        run.warnings
    );
    // Timeouts double their wait: the run does not fill up with repeats.
    let span = Span::from_ms(5).as_us_f64();
    assert!(run.counters.timeouts < (15.0 * 64.0 * span / 100.0 / 8.0) as u64, "{}", run.counters.timeouts);
}
