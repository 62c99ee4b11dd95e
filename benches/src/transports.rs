//! Transports of NICs beside S3.

use anyhow::Result;
use plimsoll_process::outln;

use crate::cases;
use crate::instructions::per_hop;
use crate::markdown::{Table, median, millions, number};
use crate::one::{OneArguments, Report};

const SCENARIO: &str = "transports";
/// The simulated seconds of the two runs whose difference is counted.
const COUNTED_S: (f64, f64) = (0.000_05, 0.000_1);
/// Fat-trees of these `k`. A run simulates a millisecond, in which all flows end.
const TIMED: [u32; 2] = [8, 16];

/// Counts the instructions of a packet-hop with each transport, and times it beside S3, in turns and `rounds` times.
pub fn run(rounds: u32, only: Option<&str>) -> Result<()> {
    let columns = ["transport", "instructions a hop", "128 hosts", "of S3", "1,024 hosts", "of S3", "S3"];
    let mut table = Table::new(&columns);
    for variant in
        cases::variants(SCENARIO)?.iter().filter(|variant| only.is_none_or(|only| only == **variant))
    {
        let mut row = vec![variant.clone(), number(per_hop(&one(variant, 8, 0.0), COUNTED_S)?)];
        let mut s3 = Vec::new();
        for k in TIMED {
            let (mut rates, mut ratios) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                let beside = hops_per_s(&OneArguments::new("s3", 0.003).in_child()?);
                let rate = hops_per_s(&one(variant, k, 0.001).in_child()?);
                rates.push(rate);
                ratios.push(rate / beside);
                s3.push(beside);
            }
            row.extend([millions(median(rates)), number(median(ratios))]);
        }
        row.push(millions(median(s3)));
        table.row(row);
    }
    outln!("### Packet-hops per CPU second: 2 MB from each host to another, 100 Gb/s, packets of 4,150 B\n");
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

fn hops_per_s(run: &Report) -> f64 {
    run.packet_hops as f64 / run.cpu_s
}
