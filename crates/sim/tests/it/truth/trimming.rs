//! Trimming in whole runs: to TCP a trimmed packet is a lost one, and every packet is accounted for.

use plimsoll_results::outcome::{Counters, PriorityCounters};

use crate::truth::lab::{Run, run};

/// What ports with classes or trimming count by priority is all that switches mark, trim and drop here. The data have
/// priority 0 until they are trimmed, and headers and acknowledgements 7.
fn assert_sums(counters: &Counters) {
    let by_priority: Vec<_> = counters.by_priority.iter().collect();
    let sum = |pick: fn(&&PriorityCounters) -> u64| by_priority.iter().map(pick).sum::<u64>();
    assert_eq!(sum(|of| of.marked), counters.marks);
    assert_eq!(sum(|of| of.trimmed), counters.trimmed);
    assert_eq!(sum(|of| of.bounced), counters.bounced);
    assert_eq!(sum(|of| of.dropped), counters.switch_drops);
    assert_eq!((by_priority[0].trimmed, by_priority[7].bounced), (counters.trimmed, counters.bounced));
    assert!(by_priority[0].trimmed_bytes > 64 * counters.trimmed && by_priority[0].trimmed_bytes % 4 == 0);
    assert!(by_priority[7].dropped_bytes <= 64 * by_priority[7].dropped);
}

fn incast(switch: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'trimming'\n[run]\nduration = '20ms'\ndrain = '1s'\n[topology]\nkind = 'leaf-spine'\n\
         leaves = 3\nspines = 2\nhosts_per_leaf = 4\nrate = '10Gbps'\ndelay = '1us'\n[port.switch]\n{switch}\n\
         [host]\nack_priority = 7\n[transport]\nkind = 'tcp'\nmin_rto = '1ms'\n\
         [workload.incast]\nkind = 'incast'\nsize = '60KB'\nevery = '2ms'\nrounds = 8\n"
    ))
}

#[test]
fn to_tcp_a_trimmed_packet_is_a_lost_one() {
    for trim in ["{}", "{ service = '10:1', victim = 'coin-tail', queue = '100 packets' }"] {
        let run = incast(&format!("buffer = '12KB'\ntrim = {trim}"));
        let counters = run.counters;
        assert!(counters.trimmed > 100 && counters.bounced == 0, "{counters:?}");
        assert!(run.messages.iter().all(|message| message.completed.is_some()));
        assert_eq!(counters.packets_accounted_for(), counters.packets_sent);
        assert_sums(&counters);
        // Only trimmed packets and dropped ones are sent again.
        assert!(counters.retransmissions > 0, "{counters:?}");
    }
}

#[test]
fn headers_without_room_go_back_once() {
    let run = incast("buffer = '12KB'\ntrim = { queue = '1 packets', bounce = true }");
    let counters = run.counters;
    assert!(counters.bounced > 0 && counters.bounced <= counters.trimmed, "{counters:?}");
    assert_eq!(counters.packets_accounted_for(), counters.packets_sent);
    assert_sums(&counters);
    let dropped = incast("buffer = '12KB'\ntrim = { queue = '1 packets' }").counters;
    assert_sums(&dropped);
    assert!(dropped.switch_drops > 0 && dropped.bounced == 0, "{dropped:?}");
}

#[test]
fn a_class_may_be_the_header_queue() {
    let classes = "classes = { priority = { '7' = {}, '0..6' = { weight = 1, buffer = '12KB' } } }";
    let victims = ["arriving", "coin-tail"];
    let runs = victims.map(|victim| incast(&format!("{classes}\ntrim = {{ victim = '{victim}' }}")));
    for run in &runs {
        assert!(run.counters.trimmed > 100 && run.counters.switch_drops == 0);
        assert!(run.messages.iter().all(|message| message.completed.is_some()));
        assert_sums(&run.counters);
    }
    assert_ne!(runs[0].digest(), runs[1].digest(), "the coin takes other packets");
    // A class without a limit of its own has twice the port's, as the header queue without classes.
    for counts in ["waiting", "waiting-and-in-service"] {
        let port = format!("buffer = '12KB'\ncounts = '{counts}'\ntrim = {{ bounce = true }}");
        let classes =
            format!("{port}\nclasses = {{ priority = {{ '7' = {{}}, '0..6' = {{ weight = 1 }} }} }}");
        assert_eq!(incast(&port).digest(), incast(&classes).digest());
    }
}

/// Data that have reached the threshold of a shared buffer leave room for headers, which have a limit of their own.
#[test]
fn headers_find_room_in_a_shared_buffer() {
    for classes in ["", "classes = { priority = { '7' = {}, '0..6' = { weight = 1 } } }\n"] {
        for buffer in ["unlimited", "12KB"] {
            let trim = "trim = { bounce = true }\nshared_buffer = { total = '40KB' }";
            let counters = incast(&format!("{classes}buffer = '{buffer}'\n{trim}")).counters;
            assert!(counters.trimmed > 100, "{counters:?}");
            assert_eq!((counters.bounced, counters.switch_drops), (0, 0), "{buffer} {classes}");
            assert_sums(&counters);
        }
    }
}
