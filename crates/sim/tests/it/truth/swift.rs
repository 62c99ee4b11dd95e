//! An incast of Swift flows, small enough for seconds; `scenarios/swift/incast.toml` is the whole.
//!
//! The delay of a path is its idle delay and the mean queue on it; the target follows from the windows that
//! the flows had. At 1,000 flows a window is a quarter of a segment, and a queue of one segment a flow would take five
//! times the target.

use plimsoll_mechanisms::tcp::controller::SwiftParams;
use plimsoll_units::{Span, Time};

use crate::truth::lab::{Run, run};

/// `flows` Swift flows to one host over a link of 25 Gb/s, watched in the second half of 20 ms.
fn incast(flows: u32) -> Run {
    run(&format!(
        "version = 1\ntitle = 'a Swift incast'\n[run]\nduration = '20ms'\nwarmup = '10ms'\n\
         [topology]\nkind = 'rack'\nhosts = {}\nrate = '25Gbps'\ndelay = '1us'\n\
         [port.switch]\nbuffer = '4MB'\n\
         [transport]\nkind = 'swift'\ninitial_window = 1\nmin_rto = '1ms'\ninitial_rto = '1ms'\n\
         [workload.w]\nkind = 'flows'\nfrom = 'others'\nto = 'client'\nstart_within = '1ms'\n\
         [observe]\nlinks = true\nflow_series = '100us'\n\
         queue.switch = {{ port = 'client', every = '1ms' }}\nqueue.nic = {{ port = 'nic:h1', every = '1ms' }}\n",
        flows + 1
    ))
}

/// The measurements once the flows had settled.
#[derive(Debug)]
struct Measured {
    /// Mean window in segments.
    cwnd: f64,
    /// Mean delay of the path, and the mean of the targets, in us.
    delay: f64,
    target: f64,
    /// Jain's index over the bytes that each flow had acknowledged.
    fairness: f64,
    /// The share of the receiver's link that was in use.
    utilisation: f64,
}

fn measured(run: &Run, flows: u32) -> Measured {
    let settled = Time::ZERO + Span::from_ms(10);
    let points: Vec<_> = run.series.iter().filter(|point| point.time > settled).collect();
    let cwnd = |bytes: u64| bytes as f64 / 1460.0;
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / points.len() as f64;
    let mut rates = vec![0.0; flows as usize];
    for point in &points {
        rates[point.connection as usize] += point.rate.as_bps() as f64;
    }
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let queued = ["switch", "nic"].map(|name| {
        let queue = run.queue(name);
        queue.mean_bytes.iter().sum::<f64>() / queue.mean_bytes.len().max(1) as f64
    });
    // Both ways: two links of 1 us; 1,500 B twice and 40 B twice at 25 Gb/s.
    let idle = 4.0 + 2.0 * 1_540.0 * 8.0 / 25e3;
    let bytes = run.queue("switch").bytes as f64;
    Measured {
        cwnd: mean(&mut points.iter().map(|point| cwnd(point.cwnd))),
        delay: idle + queued.iter().sum::<f64>() * 8.0 / 25e3,
        target: mean(
            &mut points
                .iter()
                .map(|point| SwiftParams::default().target(1, cwnd(point.cwnd)).as_ps() as f64 / 1e6),
        ),
        fairness: sum * sum / squares / f64::from(flows),
        utilisation: bytes * 8.0 / 10e-3 / 25e9,
    }
}

#[test]
fn up_to_a_hundred_flows_hold_the_delay_at_the_target_and_share_the_link() {
    for flows in [1, 2, 10, 100] {
        let run = incast(flows);
        let seen = measured(&run, flows);
        assert!((seen.delay / seen.target - 1.0).abs() < 0.25, "{flows} flows: {seen:?}");
        assert!(seen.fairness > 0.9, "{flows} flows: {seen:?}");
        assert!(seen.utilisation > 0.99, "{flows} flows: {seen:?}");
        assert_eq!((run.counters.switch_drops, run.counters.timeouts), (0, 0), "{flows} flows");
    }
}

#[test]
fn a_thousand_flows_with_windows_below_one_segment_use_the_link_and_lose_nothing() {
    let run = incast(1_000);
    let seen = measured(&run, 1_000);
    assert!(seen.cwnd < 0.5, "{seen:?}");
    assert!(seen.utilisation > 0.9, "{seen:?}");
    assert!(run.counters.switch_drops * 100 < run.counters.packets_sent, "{:?}", run.counters);
    // A segment a flow, the least that a window without a pacer holds, would wait for 480 us.
    assert!(seen.delay < 1.5 * seen.target && seen.delay < 150.0, "{seen:?}");
}

#[test]
fn a_controller_of_a_workload_is_as_that_of_the_transport() {
    let digest = |transport: &str| {
        run(&format!(
            "version = 1\ntitle = 'one workload'\n[run]\nduration = '20ms'\n\
             [topology]\nkind = 'rack'\nhosts = 4\nrate = '1Gbps'\ndelay = '5us'\n\
             [port.switch]\nbuffer = '60 packets'\necn = {{ threshold = '20 packets' }}\n\
             [transport]\n{transport}\nack_every = 1\nmin_rto = '1ms'\n\
             [workload.w]\nkind = 'flows'\nfrom = 'others'\nto = 'client'\n"
        ))
        .digest()
    };
    let kinds = ["tcp", "cubic", "dctcp", "swift"];
    let alone = kinds.map(|kind| digest(&format!("kind = '{kind}'")));
    for (index, kind) in kinds.iter().enumerate() {
        for base in kinds {
            let of_workload = digest(&format!("kind = '{base}'\nworkload.w = '{kind}'"));
            assert_eq!(of_workload, alone[index], "{kind}, beside {base}");
            assert!(alone[index + 1..].iter().all(|other| *other != alone[index]), "{kind}");
        }
    }
}

#[test]
fn workloads_with_controllers_of_their_own_share_a_run() {
    let run = run("version = 1\ntitle = 'two controllers'\n[run]\nduration = '20ms'\n\
         [topology]\nkind = 'rack'\nhosts = 5\nrate = '1Gbps'\ndelay = '5us'\n\
         [port.switch]\nbuffer = '60 packets'\necn = { threshold = '20 packets' }\n\
         [transport]\nkind = 'dctcp'\nack_every = 1\nmin_rto = '1ms'\nworkload.bulk = 'cubic'\n\
         [workload.marked]\nkind = 'flows'\nfrom = 'h1..h2'\nto = 'client'\n\
         [workload.bulk]\nkind = 'flows'\nfrom = 'h3..h4'\nto = 'client'\n\
         [observe]\nflow_series = '1ms'\n");
    for (number, connection) in run.connections.iter().enumerate() {
        let is_dctcp = connection.workload == 0;
        let of_it = run.series.iter().filter(|point| point.connection as usize == number);
        assert!(of_it.clone().any(|point| point.alpha > 0.0) == is_dctcp, "connection {number}");
        // Packets of CUBIC cannot be marked.
        assert_eq!(connection.marked > 0, is_dctcp, "connection {number}");
    }
}
