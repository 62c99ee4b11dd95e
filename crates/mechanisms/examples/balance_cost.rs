//! Measures the time that an epoch of the load balancer takes on its thread, by policy and number of partitions: the
//! policy itself, without reading counters and publishing owners, under a load of which half goes to eight neighbours.
//!
//! `cargo run --release -p plimsoll-mechanisms --example balance_cost`

use std::hint::black_box;
use std::time::{Duration, Instant};

use plimsoll_mechanisms::partition_balancer::{Balance, GreedyBalance, NodeBalance, SplitBalance};
use plimsoll_process::outln;

const THREADS: u32 = 8;
const DEVIATIONS: u32 = 4;
const WAYS: u32 = 8;

fn main() {
    outln!("partitions  Algorithm 1   split:{WAYS}   2 nodes   both (ns an epoch, lowest of the runs)");
    let plain = || GreedyBalance::beyond_noise(DEVIATIONS);
    let split = || SplitBalance::new(WAYS, DEVIATIONS);
    let nodes: Vec<u32> = (0..THREADS).map(|thread| thread % 2).collect();
    for partitions in [64, 256, 1024, 4096] {
        let costs = [
            cost(plain(), partitions),
            cost(split(), partitions),
            cost(NodeBalance::new(&nodes, Some(DEVIATIONS), plain), partitions),
            cost(NodeBalance::new(&nodes, Some(DEVIATIONS), split), partitions),
        ];
        let [plain, split, nodes, both] = costs.map(|cost| cost.as_nanos());
        outln!("{partitions:10} {plain:12} {split:9} {nodes:9} {both:6}");
    }
}

fn cost(mut policy: impl Balance, partitions: u32) -> Duration {
    const RUNS: u32 = 25;
    const EPOCHS: u32 = 200;
    let mut owner = policy.first_owners(partitions, THREADS);
    let load: Vec<u64> = (0..partitions)
        .map(|partition| {
            100 + u64::from(partition % 7) + if partition < 8 { u64::from(partitions) * 12 } else { 0 }
        })
        .collect();
    let requests = load.iter().sum();
    let mut run = || {
        let start = Instant::now();
        for _ in 0..EPOCHS {
            policy.balance(black_box(&load), requests, THREADS, &mut owner);
        }
        start.elapsed() / EPOCHS
    };
    (0..RUNS).map(|_| run()).min().expect("there are runs")
}
