//! Homa in whole runs: the ideal times of the paper's network, the order in which messages are sent and granted, and
//! trouble of every kind, in which all messages end.

use plimsoll_units::{Span, Time};

use crate::truth::lab::{Run, run};
use crate::truth::roce_reliability::{ends_on_any_threads, meet_trouble};

/// The network of the paper: the delay of a host's link is half of what software, NICs and one switch take, that of
/// others what a switch takes.
const NETWORK: &str = "[topology]\nkind = 'leaf-spine'\nleaves = 9\nspines = 4\nhosts_per_leaf = 16\nrate = '10Gbps'\n\
                       fabric_rate = '40Gbps'\ndelay = '0.875us'\nfabric_delay = '0.25us'\n";

/// One message of `bytes` from h0 to `to`, alone in the network of the paper.
fn alone(to: &str, bytes: u64) -> (f64, f64) {
    let run = run(&format!(
        "version = 1\ntitle = 'one message'\npreset = 'homa'\n[run]\nduration = '1ms'\ndrain = '20ms'\n{NETWORK}\
         [workload.w]\nkind = 'flows'\nfrom = 'h0'\nto = '{to}'\nsize = '{bytes}B'\n"
    ));
    let message = &run.messages[0];
    let took = message.completed.expect("it ends") - Time::ZERO;
    (message.ideal.as_us_f64(), took.as_us_f64())
}

#[test]
fn ideal_times_are_those_of_the_authors() {
    for (bytes, other_rack, same_rack) in [
        (1, 2.418, 1.634_4),
        (100, 2.582, 1.765_6),
        (1_442, 5.266, 3.912_8),
        (1_472, 5.326, 3.960_8),
        (10_000, 12.465_2, 11.1),
        (100_000, 87.686, 86.320_8),
        (10_000_000, 8_362.818_8, 8_361.453_6),
    ] {
        // The authors' formula leaves out the switch of the own rack; here its 0.25 us count.
        for (to, oracle) in [("h143", other_rack), ("h15", same_rack + 0.25)] {
            let (ideal, took) = alone(to, bytes);
            assert!((ideal - oracle).abs() < 1e-6, "{bytes} B to {to}: {ideal} {oracle}");
            // The ideal leaves out Homa's header.
            let slowdown = took / ideal;
            assert!((1.0..1.05).contains(&slowdown), "{bytes} B to {to}: {slowdown}");
            if bytes <= 1_442 {
                assert!((1.01..1.03).contains(&slowdown), "{bytes} B to {to}: {slowdown}");
            }
        }
    }
}

/// When the messages of a workload were complete, in microseconds.
fn ends(run: &Run, workload: &str) -> Vec<f64> {
    let end = |message: Option<Time>| (message.expect("it ends") - Time::ZERO).as_us_f64();
    run.of(workload).map(|message| end(message.completed)).collect()
}

/// Flows in a rack of five hosts, with the preset; `keys` are of `[transport.homa]`.
fn rack(keys: &str, flows: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'a rack'\npreset = 'homa'\n[run]\nduration = '1ms'\ndrain = '100ms'\n\
         [topology]\nkind = 'rack'\nhosts = 5\nrate = '10Gbps'\ndelay = '0.875us'\n[transport.homa]\n{keys}\n{flows}"
    ))
}

#[test]
fn a_sender_sends_the_message_with_the_fewest_bytes_left_first() {
    let run = rack(
        "",
        "[workload.long]\nkind = 'flows'\nfrom = 'h0'\nto = 'h1'\nsize = '1MB'\n\
         [workload.short]\nkind = 'flows'\nfrom = 'h0'\nto = 'h2'\nsize = '10KB'\nstart = '100us'\n",
    );
    let (long, short) = (ends(&run, "long")[0], ends(&run, "short")[0]);
    // At most two packets of the long message are before it, which takes its own time and no more afterwards.
    assert!(short > 111.0 && short < 111.4 + 2.0 * 1.24, "{short}");
    assert!(long > 845.0 + 8.0 && long < 870.0, "{long}");
}

#[test]
fn a_receiver_grants_the_message_with_the_fewest_bytes_left_first() {
    let run = rack(
        "",
        "[workload.long]\nkind = 'flows'\nfrom = 'h1'\nto = 'h0'\nsize = '1MB'\n\
         [workload.short]\nkind = 'flows'\nfrom = 'h2'\nto = 'h0'\nsize = '100KB'\nstart = '100us'\n",
    );
    let (long, short) = (ends(&run, "long")[0], ends(&run, "short")[0]);
    // It overtakes by the slot above: what waits of the long message delays it by its first packets only.
    assert!(short > 186.0 && short < 200.0, "{short}");
    assert!(long > 930.0 && long < 960.0, "{long}");
}

#[test]
fn overcommitment_fills_the_link_while_a_sender_sends_elsewhere() {
    // h1 sends to h0 what it would rather send to h4, which takes its shorter message.
    let flows = "[workload.away]\nkind = 'flows'\nfrom = 'h1'\nto = 'h4'\nsize = '400KB'\n\
                 [workload.first]\nkind = 'flows'\nfrom = 'h1'\nto = 'h0'\nsize = '500KB'\n\
                 [workload.second]\nkind = 'flows'\nfrom = 'h2'\nto = 'h0'\nsize = '600KB'\n";
    let of = |degree: u32| ends(&rack(&format!("degree = {degree}"), flows), "second")[0];
    let (one, two) = (of(1), of(2));
    assert!(one > two + 250.0 && two < 1_000.0, "{one} {two}");
}

/// The transports of the matrix: a name, and keys of a scenario's tables.
const KINDS: &[(&str, &str, &str)] = &[
    ("Homa", "", ""),
    ("one level for scheduled packets", "scheduled_levels = 1\ncutoffs = ['1KB', '5KB']", ""),
    ("a degree of one", "degree = 1", ""),
    ("sprayed", "", "[paths.spray]\nby = 'random'\n"),
];

/// Runs `network` with each of [`KINDS`] on one, two and four threads. `others` is added to the scenario.
fn all_end(case: &str, network: &str, others: &str) {
    for (name, keys, tables) in KINDS {
        let text = format!(
            "version = 1\ntitle = '{case}, {name}'\n[run]\nduration = '1ms'\ndrain = '300ms'\n{network}\
             [port.switch]\nbuffer = '60KB'\norder = 'priorities'\n[port.host]\norder = 'priorities'\n\
             [transport]\nkind = 'homa'\nsegment = '1000B'\nheader = '66B'\n\
             [transport.homa]\nrtt_bytes = '20000B'\nresend_after = '500us'\n{keys}\n{tables}{others}"
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
    let text = "version = 1\ntitle = 'a dead receiver'\npreset = 'homa'\n[run]\nduration = '1ms'\ndrain = '100ms'\n\
         [topology]\nkind = 'rack'\nhosts = 16\nrate = '10Gbps'\ndelay = '1us'\n[transport.homa]\nrepair = true\n\
         [[fault]]\nfrom = 'tor0'\nto = 'h0'\nat = '50us'\ndown = true\n\
         [workload.w]\nkind = 'incast'\nto = 'h0'\nfrom = 'h1..h15'\nsize = '100KB'\nevery = '1s'\n";
    let run = run(text);
    let late = run.messages.iter().filter(|message| message.completed.is_none()).count();
    let told = format!("{late} of 15 messages");
    assert!(
        late > 0 && run.warnings.iter().any(|warning| warning.contains(&told)),
        "{late} {:?}",
        run.warnings
    );
    // The receiver asks every 5 ms; a sender that hears nothing asks after 5, 10, 20 and 40 ms.
    let (resends, probes) = (run.counters.naks_sent, run.counters.timeouts);
    assert!((15..=15 * 21).contains(&resends) && (15..=15 * 5).contains(&probes), "{resends} {probes}");
}

#[test]
fn closed_messages_of_a_lossy_network_are_acknowledged() {
    let text = format!(
        "version = 1\ntitle = 'completion'\npreset = 'homa'\n[run]\nduration = '1ms'\ndrain = '100ms'\n{NETWORK}\
         [transport.homa]\nrepair = true\nresend_after = '100us'\n[host]\nloss = 1e-3\n\
         [observe]\ncompletion = 'acknowledged'\n\
         [workload.w]\nkind = 'all-to-all'\nload = 0.3\nsize = {{ kind = 'cdf', cdf = 'homa-w3' }}\n"
    );
    let run = run(&text);
    assert!(run.messages.len() > 1_000 && run.counters.packets_lost() > 10);
    assert!(run.messages.iter().all(|message| message.completed.is_some()));
    let longest =
        run.messages.iter().filter_map(|message| message.completed.map(|end| end - message.created)).max();
    assert!(longest.is_some_and(|longest| longest > Span::from_us(100)), "{longest:?}");
}
