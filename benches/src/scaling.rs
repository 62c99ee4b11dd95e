//! Networks of any size, on one thread and on several.

use anyhow::{Result, ensure};
use plimsoll_process::outln;

use crate::markdown::{Table, mebibytes, median, millions, number, ratio};
use crate::one::{OneArguments, Report};

/// Fat-trees of these `k`.
const SIZES: [u32; 5] = [8, 16, 32, 48, 64];

/// Times one millisecond of all-to-all traffic on fat-trees, then the speed-up of a permutation by `threads` threads:
/// in turns, `rounds` times.
pub fn run(rounds: u32, threads: usize) -> Result<()> {
    let all_to_all = |k: u32, seconds: f64, threads: usize| OneArguments {
        set: vec![format!("topology.k={k}")],
        threads,
        ..OneArguments::new("scaling", seconds)
    };
    outln!("### Fat-trees, 10 Gb/s, all-to-all, web search, load 0.5, 1 ms\n");
    let faster = format!("{threads} threads");
    let mut table = Table::new(&[
        "k",
        "hosts",
        "packet-hops",
        "hops/s",
        "wall s",
        &faster,
        "faster",
        "building s",
        "memory",
        "KiB a host",
    ]);
    for k in SIZES {
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            alone.push(all_to_all(k, 0.001, 1).in_child()?);
            together.push(all_to_all(k, 0.001, threads).in_child()?);
        }
        same(&alone, &together)?;
        let hosts = f64::from(k).powi(3) / 4.0;
        let built = all_to_all(k, 1e-12, 1).in_child()?;
        let (hops, seconds) = (alone[0].packet_hops as f64, wall(&alone));
        let memory = median(alone.iter().map(|report| report.peak_bytes as f64));
        table.row([
            k.to_string(),
            hosts.to_string(),
            millions(hops),
            millions(hops / seconds),
            number(seconds),
            number(wall(&together)),
            ratio(faster_by(&alone, &together)),
            number(built.wall_s),
            mebibytes(memory),
            number(memory / hosts / 1024.0),
        ]);
    }
    table.print();
    let permutation = |threads| OneArguments {
        set: vec!["topology.k=16".to_owned()],
        threads,
        ..OneArguments::new("s3", 0.003)
    };
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(5) {
        alone.push(permutation(1).in_child()?);
        together.push(permutation(threads).in_child()?);
    }
    same(&alone, &together)?;
    outln!(
        "A DCTCP permutation on k = 16 takes {} s on one thread and {} s on {threads}: {} as fast (median of \
         pairs).\n",
        number(wall(&alone)),
        number(wall(&together)),
        ratio(faster_by(&alone, &together)),
    );
    Ok(())
}

fn wall(runs: &[Report]) -> f64 {
    median(runs.iter().map(|report| report.wall_s))
}

/// Returns the median of the pairs' ratios: a pair shares its moment on a machine that others use too.
fn faster_by(alone: &[Report], together: &[Report]) -> f64 {
    median(alone.iter().zip(together).map(|(alone, together)| alone.wall_s / together.wall_s))
}

fn same(alone: &[Report], together: &[Report]) -> Result<()> {
    let digest = &alone[0].digest;
    let same = alone.iter().chain(together).all(|report| report.digest == *digest);
    ensure!(same, "the outcome depends on the number of threads");
    Ok(())
}
