//! Plimsoll alone: longer runs, and the cost of a network of 8,192 hosts.

use anyhow::Result;
use plimsoll_process::outln;

use crate::cases::Case;
use crate::compare::Plan;
use crate::markdown::{Table, mebibytes, median, millions, number, ratio};
use crate::one::{OneArguments, Report, in_words};

/// Times every scenario of the plan alone, then the small fat-tree and the large one in turns.
pub fn run(plan: &Plan) -> Result<()> {
    outln!("### Plimsoll alone\n");
    let mut table =
        Table::new(&["", "simulated", "packet-hops", "hops per CPU second", "ns per hop", "peak memory"]);
    for case in plan.cases() {
        let seconds = case.alone_s(plan.quick);
        let runs = times(plan.rounds, &OneArguments::new(&case.scenario(), seconds))?;
        row(&mut table, case.name(), seconds, &runs);
    }
    if plan.only.is_some_and(|only| only != Case::S3) {
        table.print();
        return Ok(());
    }
    let seconds = if plan.quick { 0.000_05 } else { 0.000_3 };
    let fat_tree = |k: u32| OneArguments {
        set: vec![format!("topology.k={k}")],
        ..OneArguments::new(&Case::S3.scenario(), seconds)
    };
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        small.extend(times(5, &fat_tree(8))?);
        large.extend(times(1, &fat_tree(32))?);
    }
    row(&mut table, "S3, k = 8, 128 hosts", seconds, &small);
    row(&mut table, "S3, k = 32, 8192 hosts", seconds, &large);
    table.print();
    let grown = ns_per_hop(&large) / ns_per_hop(&small);
    let per_host = (peak(&large) - peak(&small)) / f64::from(8192 - 128);
    outln!(
        "From 128 to 8192 hosts a packet-hop takes {} the time. A host, with its share of switches, \
         flows and packets in flight, takes {} KiB.\n",
        ratio(grown),
        number(per_host / 1024.0)
    );
    Ok(())
}

fn times(rounds: u32, run: &OneArguments) -> Result<Vec<Report>> {
    (0..rounds).map(|_| run.in_child()).collect()
}

fn ns_per_hop(runs: &[Report]) -> f64 {
    median(runs.iter().map(|report| report.cpu_s * 1e9 / report.packet_hops as f64))
}

fn peak(runs: &[Report]) -> f64 {
    median(runs.iter().map(|report| report.peak_bytes as f64))
}

fn row(table: &mut Table, name: &str, seconds: f64, runs: &[Report]) {
    let hops = median(runs.iter().map(|report| report.packet_hops as f64));
    let ns = ns_per_hop(runs);
    table.row([
        name.to_owned(),
        in_words(seconds),
        millions(hops),
        millions(1e9 / ns),
        number(ns),
        mebibytes(peak(runs)),
    ]);
}
