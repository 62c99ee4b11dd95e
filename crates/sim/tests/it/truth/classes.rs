//! Queues by class: strict ones are priorities, weighted ones share, and limits concern their own class.

use plimsoll_units::{Span, Time};

use plimsoll_sim::run_in_parts;

use crate::truth::lab::{Run, model, run};

fn congested(switch: &str, transport: &str) -> Run {
    run(&scenario(switch, transport))
}

fn scenario(switch: &str, transport: &str) -> String {
    format!(
        "version = 1\ntitle = 'classes'\n[run]\nduration = '50ms'\n[topology]\nkind = 'rack'\nhosts = 5\n\
         rate = '1Gbps'\ndelay = '5us'\n[port.switch]\nbuffer = '400KB'\n{switch}\n[host]\n\
         priority = {{ low = 1, high = 6 }}\n[transport]\n{transport}\nmin_rto = '2ms'\n\
         [workload.low]\nkind = 'flows'\nfrom = ['h1', 'h2']\nto = 'h0'\n\
         [workload.high]\nkind = 'flows'\nfrom = ['h3', 'h4']\nto = 'h0'\n[observe]\ngoodput_every = '1ms'\n"
    )
}

/// The bytes that a workload's receivers got, its marked packets, and its retransmitted packets.
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

/// A map gives code points their priorities, at every port; without an entry a code point has its upper three bits.
#[test]
fn code_points_are_the_priorities_of_their_map() {
    let switch = "classes = { priority = { '6' = {}, '0..5' = { weight = 1, buffer = '100KB' } } }";
    let text = scenario(switch, "kind = 'dctcp'");
    let with = |host: &str| {
        let digest = run(&text.replace("priority = { low = 1, high = 6 }", host)).digest();
        (digest == run(&text).digest(), digest)
    };
    assert!(with("dscp = { low = 'CS1', high = 'EF' }\ndscp_to_priority = { '40..47' = 6 }").0);
    assert!(with("dscp = { low = 'AF11', high = 63 }\ndscp_to_priority = { CS7 = 0, '57..63' = 6 }").0);
    let unmapped = with("dscp = { low = 'AF11', high = 'EF' }");
    assert!(!unmapped.0);
    assert_eq!(unmapped, with("priority = { low = 1, high = 5 }"));
}

/// The throughput of endless flows and of messages counts bytes delivered between the warm-up and the end of sending.
#[test]
fn delivered_payload_is_that_of_the_measurement_window() {
    let text = scenario("classes = { priority = { '6' = { weight = 2 } } }", "kind = 'dctcp'")
        .replace("duration = '50ms'", "duration = '50ms'\nwarmup = '20ms'");
    let run = run(&text);
    assert_eq!(run.delivered.observed, Span::from_ms(30));
    for (number, delivered) in run.delivered.bytes.iter().enumerate() {
        let intervals = run.goodput.iter().filter(|of| usize::from(of.workload) == number);
        let measured = intervals.filter(|of| of.time >= Time::ZERO + Span::from_ms(20));
        let bytes: u64 = measured.map(|of| of.delivered.get()).sum();
        assert!(*delivered > 0 && *delivered == bytes, "{number}: {delivered} and {bytes}");
    }
    let parts = run_in_parts(&model(&text, None, None), 4, &mut |_| true).unwrap();
    assert_eq!(parts.delivered, run.delivered);
    let datagrams = "version = 1\ntitle = 'datagrams'\n[run]\nduration = '50ms'\nwarmup = '10ms'\n[topology]\n\
                     kind = 'rack'\nhosts = 2\nrate = '1Gbps'\ndelay = '5us'\n[workload.w]\nkind = 'packets'\n\
                     from = 'h1'\nto = 'h0'\nsize = '1000B'\nload = '80Mbps'\n";
    let run = crate::truth::lab::run(datagrams);
    let sent = run.messages.iter().filter(|message| message.created >= Time::ZERO + Span::from_ms(10));
    let sent: u64 = sent.map(|message| message.bytes).sum();
    assert!(
        sent > 300_000 && run.delivered.bytes[0].abs_diff(sent) <= 1_000,
        "{:?} of {sent}",
        run.delivered
    );
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
