//! Approximate runs beside whole ones: the same flows, on a grid of sizes, oversubscription and load.

use anyhow::{Context, Result, ensure};
use plimsoll_process::outln;
use plimsoll_results::outcome::{Approximation, Outcome};
use plimsoll_results::stats::percentile;

use crate::cases::model;
use crate::markdown::{Table, number};

const SIZES: [&str; 2] = ["websearch", "facebook-hadoop"];
/// Aggregation switches of a pod: at 4 the links upwards carry what the hosts can send, at 1 a quarter.
const AGGREGATIONS: [u32; 3] = [4, 2, 1];
const LOADS: [f64; 4] = [0.25, 0.42, 0.55, 0.65];

/// Ranges of sizes, and all sizes.
const RANGES: [(&str, u64, u64); 5] = [
    ("all", 0, u64::MAX),
    ("10KB", 0, 10_000),
    ("100KB", 10_000, 100_000),
    ("1MB", 100_000, 1_000_000),
    ("larger", 1_000_000, u64::MAX),
];

/// Messages beyond a percentile from which on it counts.
const BEYOND: f64 = 3.0;

/// The load of the busiest link of a run; the least and the most difference of each percentile, over all ranges.
type Differences = (f64, [(f64, f64); 3]);

/// The bias that runs print, measured with [`PODS`].
const KNOWN: &str = include_str!("../../crates/sim/src/approximate/bias.csv");
/// The pods of the networks that it was measured with.
pub const PODS: [u32; 3] = [4, 16, 32];

/// Compares both on networks of so many pods of 32 hosts, and prints the bias over all of them.
///
/// # Errors
/// Fails if it is not the one that runs print.
pub fn run(pods: &[u32], threads: usize) -> Result<()> {
    let mut differences = Vec::new();
    for &pods in pods {
        differences.extend(compare(pods, threads)?);
    }
    let bias = bias(&differences);
    outln!("```csv\n{bias}```");
    ensure!(pods != PODS || bias == KNOWN, "crates/sim/src/approximate/bias.csv has another bias");
    Ok(())
}

/// The least and the most difference up to some loads, as runs read them.
fn bias(differences: &[Differences]) -> String {
    let mut csv = "load,p50_low,p50_high,p90_low,p90_high,p99_low,p99_high\n".to_owned();
    for up_to in [0.3, 0.5, 0.6] {
        let within = differences.iter().filter(|(busiest, _)| *busiest <= up_to);
        let mut ends = [(0.0_f64, 0.0_f64); 3];
        for (_, of) in within {
            for (ends, of) in ends.iter_mut().zip(of) {
                *ends = (ends.0.min(of.0), ends.1.max(of.1));
            }
        }
        let cells: Vec<_> = ends.iter().map(|(low, high)| format!("{low:.2},{high:.2}")).collect();
        csv += &format!("{up_to},{}\n", cells.join(","));
    }
    csv
}

fn compare(pods: u32, threads: usize) -> Result<Vec<Differences>> {
    outln!("### {} hosts at 10 Gb/s under links of 40 Gb/s, DCTCP\n", pods * 32);
    let ranges = RANGES.map(|(name, ..)| name);
    let mut columns = vec!["sizes", "oversubscribed", "busiest link", "messages"];
    let heads: Vec<String> = ["p50", "p90", "p99"]
        .iter()
        .flat_map(|share| ranges.iter().map(move |range| format!("{share} {range}")))
        .collect();
    columns.extend(heads.iter().map(String::as_str));
    columns.push("largest gap");
    let mut table = Table::new(&columns);
    let mut bias = Vec::new();
    for sizes in SIZES {
        for aggregations in AGGREGATIONS {
            for load in LOADS {
                let leaves_rack = f64::from(pods * 32 - 16) / f64::from(pods * 32 - 1);
                let host_load = load / (4.0 / f64::from(aggregations) * leaves_rack).max(1.0);
                let set = [
                    format!("topology.pods={pods}"),
                    format!("topology.aggregations={aggregations}"),
                    format!("workload.flows.load={host_load}"),
                    format!("workload.flows.size.cdf={sizes}"),
                ];
                let whole = outcome(&set, threads)?;
                let mut approximate = set.to_vec();
                approximate.push("run.approximate={ links = 1000000 }".to_owned());
                // Sizes with a long tail may make a short run busier than asked for.
                let Ok(parts) = outcome(&approximate, threads) else { continue };
                let known = parts.approximation.as_ref().context("it was an approximate run")?;
                let mut row = vec![
                    sizes.to_owned(),
                    format!("{}:1", 4 / aggregations),
                    number(known.busiest),
                    whole.messages.len().to_string(),
                ];
                let mut ends = [(f64::INFINITY, f64::NEG_INFINITY); 3];
                for (share, ends) in Approximation::SHARES.into_iter().zip(&mut ends) {
                    for (_, above, up_to) in RANGES {
                        let [whole, parts] = [&whole, &parts].map(|of| slowdowns(of, above, up_to));
                        let counts = whole.len() as f64 * (1.0 - share) >= BEYOND;
                        let both =
                            percentile(&whole, share).zip(percentile(&parts, share)).filter(|_| counts);
                        row.push(both.map_or("-".to_owned(), |(whole, parts)| {
                            let difference = parts / whole - 1.0;
                            *ends = (ends.0.min(difference), ends.1.max(difference));
                            format!("{:+.0} %", difference * 100.0)
                        }));
                    }
                }
                row.push(number(gap(&slowdowns(&whole, 0, u64::MAX), &slowdowns(&parts, 0, u64::MAX))));
                bias.push((known.busiest, ends));
                table.row(row);
            }
        }
    }
    table.print();
    Ok(bias)
}

fn outcome(set: &[String], threads: usize) -> Result<Outcome> {
    Ok(plimsoll_sim::run_on(&model("approximate", None, set.to_vec())?, threads, &mut |_| true)?)
}

/// Returns the slowdowns of messages of some sizes, ascending.
fn slowdowns(outcome: &Outcome, above: u64, up_to: u64) -> Vec<f64> {
    let of_size = outcome.messages.iter().filter(|message| above < message.bytes && message.bytes <= up_to);
    let mut slowdowns: Vec<f64> = of_size.filter_map(|message| message.slowdown()).collect();
    slowdowns.sort_unstable_by(f64::total_cmp);
    slowdowns
}

/// Returns the largest difference of two distributions' shares at any value (Kolmogorov and Smirnov).
fn gap(one: &[f64], other: &[f64]) -> f64 {
    let share =
        |of: &[f64], up_to: f64| of.partition_point(|value| *value <= up_to) as f64 / of.len().max(1) as f64;
    let gaps = one.iter().chain(other).map(|value| (share(one, *value) - share(other, *value)).abs());
    gaps.fold(0.0, f64::max)
}
