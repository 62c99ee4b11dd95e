//! Queues by class: strict ones are priorities, weighted ones share, and limits concern their own class.

use plimsoll_units::{Span, Time};

use crate::truth::lab::{Run, run};

fn congested(switch: &str, transport: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'classes'\n[run]\nduration = '50ms'\n[topology]\nkind = 'rack'\nhosts = 5\n\
         rate = '1Gbps'\ndelay = '5us'\n[port.switch]\nbuffer = '400KB'\n{switch}\n[host]\n\
         priority = {{ low = 1, high = 6 }}\n[transport]\n{transport}\nmin_rto = '2ms'\n\
         [workload.low]\nkind = 'flows'\nfrom = ['h1', 'h2']\nto = 'h0'\n\
         [workload.high]\nkind = 'flows'\nfrom = ['h3', 'h4']\nto = 'h0'\n[observe]\ngoodput_every = '1ms'\n"
    ))
}

/// The bytes that a workload's receivers got, the packets of it that were marked, and those that were sent again.
fn totals(run: &Run, name: &str) -> (f64, u64, u64) {
    let number = run.workloads.iter().position(|info| info.name == name).unwrap();
    let (from, until) = (Time::ZERO + Span::from_ms(15), Time::ZERO + Span::from_ms(45));
    let intervals = run.goodput.iter().filter(|of| usize::from(of.workload) == number);
    let measured = intervals.filter(|of| (from..until).contains(&of.time)).map(|of| of.delivered.get());
    let connections = run.connections.iter().filter(|of| usize::from(of.workload) == number);
    let (marked, again) =
        connections.fold((0, 0), |(marked, again), of| (marked + of.marked, again + of.retransmissions));
    (measured.sum::<u64>() as f64, marked, again)
}

#[test]
fn strict_classes_are_priorities() {
    let strict: Vec<String> = (0..8).map(|priority| format!("'{priority}' = {{}}")).collect();
    let classes =
        congested(&format!("classes = {{ priority = {{ {} }} }}", strict.join(", ")), "kind = 'dctcp'");
    let priorities = congested("order = 'priorities'", "kind = 'dctcp'");
    assert_eq!(classes.digest(), priorities.digest());
    let one = congested("classes = { priority = { '0..7' = {} } }", "kind = 'dctcp'");
    assert_eq!(one.digest(), congested("engine = 'general'", "kind = 'dctcp'").digest());
}

/// Thresholds by class keep both classes backlogged, without losses.
#[test]
fn weights_are_shares_of_the_goodput() {
    for scheduler in ["dwrr", "wfq"] {
        for (low, high) in [(1, 1), (1, 3), (4, 1)] {
            let class = |weight: u32| format!("{{ weight = {weight}, ecn = {{ threshold = '30KB' }} }}");
            let classes = format!(
                "classes = {{ scheduler = '{scheduler}', priority = {{ '0..3' = {}, '4..7' = {} }} }}",
                class(low),
                class(high)
            );
            let run = congested(&classes, "kind = 'dctcp'");
            let ratio = totals(&run, "high").0 / totals(&run, "low").0;
            let expected = f64::from(high) / f64::from(low);
            assert!((ratio / expected - 1.0).abs() < 0.02, "{scheduler} {low}:{high}: {ratio}");
        }
    }
}

#[test]
fn a_class_keeps_its_rate_on_an_idle_link() {
    let run = congested(
        "classes = { priority = { '6' = { rate = '200Mbps', ecn = { threshold = '30KB' } }, '1' = { rate = '300Mbps', \
         burst = '15KB', ecn = { threshold = '30KB' } } } }",
        "kind = 'dctcp'",
    );
    // 30 ms at the rate, less headers of 40 in 1500 bytes.
    let share = |name, mbps: f64| totals(&run, name).0 / (mbps * 1e6 / 8.0 * 0.030 * 1460.0 / 1500.0);
    assert!((share("high", 200.0) - 1.0).abs() < 0.01, "{}", share("high", 200.0));
    assert!((share("low", 300.0) - 1.0).abs() < 0.01, "{}", share("low", 300.0));
}

#[test]
fn buffers_and_thresholds_concern_their_own_class() {
    let run = congested(
        "classes = { priority = { '0..3' = { weight = 1, ecn = { threshold = '20KB' } }, \
         '4..7' = { weight = 1, buffer = '30KB' } } }",
        "kind = 'dctcp'",
    );
    let ((_, low_marked, low_again), (_, high_marked, high_again)) =
        (totals(&run, "low"), totals(&run, "high"));
    assert!(low_marked > 0 && high_again > 0, "{low_marked} {high_again}");
    assert_eq!((high_marked, low_again), (0, 0));
}
