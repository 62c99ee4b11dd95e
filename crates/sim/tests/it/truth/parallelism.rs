//! What more threads could gain, as `plimsoll run --plan` prints it.

use plimsoll_results::Digest;
use plimsoll_sim::{DividedLoad, Parallelism, ProcessLoad, plan};
use plimsoll_units::Span;

use crate::truth::lab::model;

/// One packet of 1,000 bytes in each direction, from rack to rack: 0.8 us and 1 us a link, without acknowledgements.
const BOTH_WAYS: &str = "
version = 1
title = 'both ways'
[run]
duration = '100us'
[topology]
kind = 'leaf-spine'
leaves = 2
spines = 1
hosts_per_leaf = 1
rate = '10Gbps'
delay = '1us'
[transport]
kind = 'datagram'
segment = '960B'
header = '40B'
[workload.there]
kind = 'flows'
size = '960B'
from = ['h0']
to = 'h1'
[workload.back]
kind = 'flows'
size = '960B'
from = ['h1']
to = 'h0'
";

fn divided(text: &str, threads: usize) -> DividedLoad {
    match plan(&model(text, None, None), threads, &mut |_| true).unwrap() {
        Parallelism::Divided(load) => load,
        Parallelism::Whole(reason) => panic!("{reason}"),
    }
}

fn reason(text: &str, threads: usize) -> String {
    match plan(&model(text, None, None), threads, &mut |_| true).unwrap() {
        Parallelism::Whole(reason) => reason,
        Parallelism::Divided(load) => panic!("{load:?}"),
    }
}

/// Process 0 has a rack, process 1 the other and the spine. The two workloads act at the start in both; then both
/// packets are at each of their four hops at once, and at the spine both are in process 1:
///
/// ```text
/// window    0  1  2  3  4
/// process 0 2  1  0  1  1
/// process 1 2  1  2  1  1
/// work      2  1  2  1  2.3
/// ```
#[test]
fn events_are_counted_by_process_and_window() {
    let load = divided(BOTH_WAYS, 2);
    let part = |switches, events, work| ProcessLoad { hosts: 1, switches, events, work };
    assert_eq!(load.processes, [part(1, 5, 63), part(2, 7, 83)]);
    assert_eq!((load.cut_links, load.lookahead), (2, Span::from_us(1)));
    assert_eq!((load.events, load.packet_hops, load.windows, load.messages), (10, 8, 5, 2));
    assert_eq!((load.window_events_p10(), load.is_worth_it, &load.hosts_together), (1, false, &None));
    assert_eq!((load.work, load.busiest_work), (126, 83));
    assert_eq!((load.window_events(), load.window_messages()), (1.2, 0.4));
    assert_eq!((load.speed_up_bound(), load.imbalance()), (126.0 / 83.0, 166.0 / 146.0));
}

/// Only the first two of eight racks send, to each other. Divided by numbers alone, one process of two would have all
/// of it but half of the spines.
const SKEWED: &str = "
version = 1
title = 'two of eight racks'
[run]
duration = '1800us'
[topology]
kind = 'leaf-spine'
leaves = 8
spines = 2
hosts_per_leaf = 16
rate = '10Gbps'
fabric_rate = '100Gbps'
delay = '1us'
[transport]
kind = 'dctcp'
segment = '460B'
[port.switch]
ecn = { threshold = '30 packets' }
[workload.between]
kind = 'stride'
hosts = 'h0..h31'
stride = 16
";

#[test]
fn the_work_is_divided_by_the_load_that_was_measured() {
    let load = divided(SKEWED, 2);
    assert!(load.is_worth_it, "{load:?}");
    let [first, second] = load.processes[..] else { panic!("{:?}", load.processes) };
    assert_eq!((first.hosts, second.hosts), (16, 112));
    assert!(first.work.abs_diff(second.work) * 10 < load.work, "{first:?} {second:?}");

    let model = model(SKEWED, None, None);
    let alone = plimsoll_sim::run(&model, &mut |_| true).unwrap();
    let outcome = plimsoll_sim::run_on(&model, 2, &mut |_| true).unwrap();
    assert_eq!(outcome.counters, alone.counters);
    assert_eq!(Digest::of(&outcome), Digest::of(&alone));
}

/// What is uneven at first does not last: the other racks send later, and by then more.
#[test]
fn a_division_is_not_by_a_few_events_alone() {
    let later = "[workload.later]\nkind = 'stride'\nstride = 64\nstart = '100us'\n";
    let load =
        divided(&SKEWED.replace("1800us", "800us").replace("[workload", &format!("{later}[workload")), 2);
    assert!(load.events > 1 << 20, "{}", load.events);
    assert_eq!(load.processes.iter().map(|process| process.hosts).collect::<Vec<_>>(), [64, 64]);
}

/// Requests keep all hosts in one process, so that no event is handled twice.
#[test]
fn events_sum_to_those_of_the_run() {
    let text = BOTH_WAYS.replace("'datagram'", "'tcp'").replace("hosts_per_leaf = 1", "hosts_per_leaf = 4")
        + "[workload.rpc]\nkind = 'rpc'\nrequest = '100B'\nresponse = '20KB'\nload = 0.2\n";
    let run = plimsoll_sim::run(&model(&text, None, None), &mut |_| true).unwrap();
    for threads in [2, 3, 64] {
        let load = divided(&text, threads);
        assert_eq!((load.events, load.packet_hops), (run.counters.events, run.counters.packet_hops));
        let events: u64 = load.processes.iter().map(|process| process.events).sum();
        assert_eq!((load.processes.len(), events), (threads.min(4), load.events), "{threads} threads");
        assert!(load.speed_up_bound() > 1.1 && load.speed_up_bound() < threads as f64);
        assert!(load.imbalance() >= 1.0);
        let together = load.hosts_together.as_deref();
        assert_eq!(together, Some("`workload.rpc` acts at other hosts when a message has arrived"));
    }
}

#[test]
fn what_keeps_a_run_on_one_thread_is_named() {
    let ping = "[workload.ping]\nkind = 'ping'\nfrom = 'h0'\nto = 'h1'\ninterval = '10us'\n";
    for (text, threads, said) in [
        (BOTH_WAYS.to_owned(), 1, "one thread was asked for"),
        (format!("{BOTH_WAYS}{ping}"), 2, "`workload.ping`: raw packets learn at once of their drops"),
        (
            BOTH_WAYS.replace("delay = '1us'", "delay = '0ns'"),
            2,
            "a link between processes has no propagation delay",
        ),
        (
            format!("{BOTH_WAYS}[observe]\npackets = 10\n"),
            2,
            "`observe.packets`: packets are captured in the order of the whole network",
        ),
    ] {
        assert_eq!(reason(&text, threads), said);
    }
}
