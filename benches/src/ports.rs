//! Each kind of port beside an express port.

use anyhow::Result;
use plimsoll_process::outln;

use crate::cases;
use crate::instructions::per_hop;
use crate::markdown::{Table, median, number};
use crate::one::{OneArguments, Report};

const SCENARIO: &str = "ports";
/// The simulated seconds of the two runs whose difference is counted.
const COUNTED_S: (f64, f64) = (0.000_2, 0.000_4);
/// Fat-trees of these `k`, and the simulated seconds of a timed run.
const TIMED: [(u32, f64); 2] = [(8, 0.006), (32, 0.000_3)];

/// Counts the instructions of a packet-hop with each kind of port, and times it beside one with express ports, in turns
/// and `rounds` times. A variant runs as many packet-hops as its own traffic has, so costs are for each.
pub fn run(rounds: u32, only: Option<&str>) -> Result<()> {
    let variants = cases::variants(SCENARIO)?;
    let [express, others @ ..] = &variants[..] else { return Ok(()) };
    let columns = ["ports", "instructions a hop", "of express", "time, k = 8", "k = 32", "marked or trimmed"];
    let mut table = Table::new(&columns);
    let of_express = per_hop(&one(express, 8, 0.0), COUNTED_S)?;
    table.row([express.clone(), number(of_express), "1".into(), "1".into(), "1".into(), String::new()]);
    for variant in others.iter().filter(|variant| only.is_none_or(|only| only == **variant)) {
        let count = per_hop(&one(variant, 8, 0.0), COUNTED_S)?;
        let mut row = vec![variant.clone(), number(count), number(count / of_express)];
        let mut last = None;
        for (k, seconds) in TIMED {
            let mut ratios = Vec::new();
            for _ in 0..rounds {
                let before = one(express, k, seconds).in_child()?;
                let after = one(variant, k, seconds).in_child()?;
                ratios.push(ns_per_hop(&after) / ns_per_hop(&before));
                last = Some(after);
            }
            row.push(if rounds > 0 { number(median(ratios)) } else { "-".to_owned() });
        }
        let share = last.map(|run| run.cut_or_marked as f64 / run.packet_hops as f64);
        row.push(share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} % of hops", share * 100.0)));
        table.row(row);
    }
    outln!("### Ports of a fat-tree, 10 Gb/s, two permutations of DCTCP\n");
    table.print();
    Ok(())
}

fn one(variant: &str, k: u32, seconds: f64) -> OneArguments {
    OneArguments {
        variant: Some(variant.to_owned()),
        set: vec![format!("topology.k={k}")],
        ..OneArguments::new(SCENARIO, seconds)
    }
}

fn ns_per_hop(run: &Report) -> f64 {
    run.cpu_s * 1e9 / run.packet_hops as f64
}
