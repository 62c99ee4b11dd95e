//! Fits costs of a host's processor to Table 3.1 of BulletTrains: the throughput of all-to-all traffic with
//! segmentation and receive offload on and off, four numbers.
//!
//! ```sh
//! cargo run --release -p plimsoll-reproduce --example fit_processor
//! cargo run --release -p plimsoll-reproduce --example fit_processor -- 'host.processor.interrupt="6us"'
//! ```
//!
//! Arguments are settings that hold in all runs, as `--set` takes them.
//!
//! The costs are of a packet, the same for sending and receiving, of a sent segment and of a call that sends; a
//! second fit does without the last. A pattern search multiplies and divides each cost by a factor, from 2 on, of which
//! it takes the square root where that no longer helps, down to 1.02. It minimises the sum of the squared logarithms of
//! simulated / published, all four alike. Nothing is drawn: the result is the same on every machine.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_scenario::{Overrides, Scenario};

/// Table 3.1: the variant of `scenarios/bullettrains/all-to-all.toml`, and its mean throughput in Gb/s.
const TABLE_3_1: [(&str, f64); 4] = [("tso-lro", 8.7), ("tso", 7.1), ("lro", 5.5), ("none", 2.4)];

/// The costs at which the search begins, in ps.
const BEGIN: [u64; 3] = [1_000_000; 3];

/// The number of hosts that send.
const HOSTS: f64 = 7.0;

type Costs = Vec<u64>;

fn main() {
    let more: Vec<String> = std::env::args().skip(1).collect();
    for costs in [3, 2] {
        let mut tried = BTreeMap::new();
        let mut best = BEGIN[..costs].to_vec();
        let mut error = measure(&best, &more, &mut tried);
        let mut factor = 2.0_f64;
        while factor > 1.01 {
            let around = (0..costs).flat_map(|which| [factor, 1.0 / factor].map(|by| (which, by)));
            let better = around.map(|(which, by)| {
                let mut costs = best.clone();
                costs[which] = (costs[which] as f64 * by / 1_000.0).round() as u64 * 1_000;
                (measure(&costs, &more, &mut tried), costs)
            });
            match better.min_by(|a, b| a.0.total_cmp(&b.0)).filter(|(other, _)| *other < error) {
                Some((other, costs)) => (error, best) = (other, costs),
                None => factor = factor.sqrt(),
            }
        }
        let names = ["packet", "send.segment", "send_call"];
        let fitted: Vec<String> =
            names.iter().zip(&best).map(|(name, ps)| format!("{name} {} ns", ps / 1_000)).collect();
        plimsoll_process::outln!("{}: error {error:.4}, {} points tried", fitted.join(", "), tried.len());
        for ((variant, published), simulated) in TABLE_3_1.iter().zip(throughputs(&best, &more)) {
            plimsoll_process::outln!("  {variant}: {simulated:.2} Gb/s, published {published}");
        }
    }
}

/// Returns the sum of the squared logarithms, which is computed once for each set of costs.
fn measure(costs: &[u64], more: &[String], tried: &mut BTreeMap<Costs, f64>) -> f64 {
    if let Some(error) = tried.get(costs) {
        return *error;
    }
    let error = TABLE_3_1.iter().zip(throughputs(costs, more));
    let error = error.map(|((_, published), simulated)| (simulated / published).ln().powi(2)).sum();
    tried.insert(costs.to_vec(), error);
    error
}

/// Returns the simulated throughput of each variant in Gb/s, with these costs and further settings.
fn throughputs(costs: &[u64], more: &[String]) -> Vec<f64> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/bullettrains/all-to-all.toml");
    let ns = |ps: u64| format!("{}ns", ps / 1_000);
    let mut set = vec![
        format!("host.processor.send.packet=\"{}\"", ns(costs[0])),
        format!("host.processor.receive.packet=\"{}\"", ns(costs[0])),
        format!("host.processor.send.segment=\"{}\"", ns(costs[1])),
        format!("host.processor.send_call=\"{}\"", ns(costs.get(2).copied().unwrap_or(0))),
        "observe.packets=1".to_owned(),
    ];
    set.extend_from_slice(more);
    let scenario = Scenario::load_with(file, &Overrides { set, ..Overrides::default() });
    let scenario = scenario.unwrap_or_else(|errors| panic!("{}", errors[0]));
    let run = |variant: &str| {
        let point = scenario.points().iter().find(|point| point.variant == variant).expect("it is a variant");
        let outcome = plimsoll_sim::run(&point.model, &mut |_| true).expect("the scenario runs");
        let counted =
            outcome.goodput.iter().filter(|interval| interval.time.as_ps() >= outcome.warmup.as_ps());
        let (mut bytes, mut until) = (0, outcome.warmup.as_secs_f64());
        for interval in counted {
            bytes += interval.delivered.get();
            until = interval.time.as_secs_f64() + interval.length.as_secs_f64();
        }
        bytes as f64 * 8e-9 / (until - outcome.warmup.as_secs_f64()) / HOSTS
    };
    std::thread::scope(|scope| {
        let threads = TABLE_3_1.map(|(variant, _)| scope.spawn(move || run(variant)));
        threads.into_iter().map(|thread| thread.join().expect("no run panics")).collect()
    })
}
