//! The peer: ns-3, built and run by its driver in `benches/ns3`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::cases::{Case, repository};
use crate::one::Report;

/// The driver, which has been built.
pub struct Ns3 {
    driver: PathBuf,
    /// The version that ns-3 reports.
    pub version: String,
}

/// The reason that the comparison is skipped.
pub struct Skipped(pub String);

#[derive(Deserialize)]
struct Printed {
    version: String,
    packet_hops: u64,
    cpu_s: f64,
    wall_s: f64,
    max_rss_bytes: u64,
    goodput_bps_total: f64,
    jain: f64,
    queue: Option<Queue>,
    drops: u64,
}

#[derive(Deserialize)]
struct Queue {
    mean_packets: f64,
    p99_packets: Option<f64>,
}

impl Ns3 {
    /// Builds the driver if it does not exist; returns the reason if it cannot.
    pub fn build() -> Result<Result<Ns3, Skipped>> {
        let root = repository();
        let driver = "target/ns3-driver";
        if !root.join(driver).exists() {
            let build = Command::new("sh")
                .arg(root.join("benches/ns3/build.sh"))
                .env("OUT", driver)
                .output()
                .context("cannot start benches/ns3/build.sh")?;
            if build.status.code() == Some(EXIT_SKIP) {
                let why = String::from_utf8_lossy(&build.stderr).trim().to_owned();
                return Ok(Err(Skipped(why)));
            }
            if !build.status.success() {
                bail!("benches/ns3/build.sh failed:\n{}", String::from_utf8_lossy(&build.stderr));
            }
        }
        let mut ns3 = Ns3 { driver: root.join(driver), version: String::new() };
        ns3.version = ns3.print(Case::S2, 0.001, 1, false)?.version;
        Ok(Ok(ns3))
    }

    /// Runs a scenario once, in a process of its own.
    pub fn run(&self, case: Case, seconds: f64, seed: u32, observe: bool) -> Result<Report> {
        let printed = self.print(case, seconds, seed, observe)?;
        let bottleneck = printed.queue.filter(|queue| queue.p99_packets.is_some());
        Ok(Report {
            packet_hops: printed.packet_hops,
            cpu_s: printed.cpu_s,
            wall_s: printed.wall_s,
            peak_bytes: printed.max_rss_bytes,
            goodput_bps: printed.goodput_bps_total,
            jain: printed.jain,
            drops: printed.drops,
            cut_or_marked: 0,
            queue_mean: bottleneck.as_ref().map(|queue| queue.mean_packets),
            queue_p99: bottleneck.as_ref().and_then(|queue| queue.p99_packets),
            digest: String::new(),
        })
    }

    fn print(&self, case: Case, seconds: f64, seed: u32, observe: bool) -> Result<Printed> {
        let output = Command::new(&self.driver)
            .arg(format!("--scenario={}", case.name()))
            .arg(format!("--duration={seconds}"))
            .arg(format!("--seed={seed}"))
            .arg(format!("--observe={}", u8::from(observe)))
            .output()
            .context("cannot start the ns-3 driver")?;
        if !output.status.success() {
            bail!("ns-3 failed on {}: {}", case.name(), String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).context("the ns-3 driver printed something else than JSON")
    }
}

/// The exit status that test runners take for 'skip'.
const EXIT_SKIP: i32 = 77;
