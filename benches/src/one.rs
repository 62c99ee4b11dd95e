//! One run in this process, and its report as JSON.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use plimsoll_process::outln;
use plimsoll_results::{Digest, Outcome};
use plimsoll_units::{Bytes, Span};
use serde::{Deserialize, Serialize};

use crate::{cases, process};

/// The scenario to run, and with which settings.
#[derive(Args, Clone, Debug)]
pub struct OneArguments {
    /// The scenario: a file of `benches/scenarios`, without its extension.
    pub scenario: String,
    /// The number of seconds to simulate.
    #[arg(long)]
    pub seconds: f64,
    /// The variant to run; without it the first.
    #[arg(long)]
    pub variant: Option<String>,
    /// Keys of the scenario to set: `key=value`.
    #[arg(long = "set")]
    pub set: Vec<String>,
    /// Watch queues, which costs time.
    #[arg(long)]
    pub observe: bool,
    /// Threads of the run; used even where they do not pay.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Leave the CPU clock alone, which cannot be read under valgrind.
    #[arg(long)]
    pub untimed: bool,
}

/// The cost and the results of a run, of either simulator. Queues hold packets that wait; the one in service does not
/// count.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Packets that completed a link.
    pub packet_hops: u64,
    /// CPU time; for Plimsoll with the building of the network, for ns-3 without.
    pub cpu_s: f64,
    /// The wall time in seconds.
    pub wall_s: f64,
    /// The largest resident size of the process.
    pub peak_bytes: u64,
    /// Payload delivered, in bits a second.
    pub goodput_bps: f64,
    /// Jain's index of the flows' goodputs.
    pub jain: f64,
    /// Packets dropped for lack of room.
    pub drops: u64,
    /// Packets that were marked or trimmed.
    #[serde(default)]
    pub cut_or_marked: u64,
    /// Mean queue of the bottleneck, if there is one and it was watched.
    pub queue_mean: Option<f64>,
    /// 99th percentile of that queue, in time.
    pub queue_p99: Option<f64>,
    /// Everything that the run observed, in 128 bits.
    #[serde(default)]
    pub digest: String,
}

impl OneArguments {
    /// Returns the arguments of a run of `seconds` simulated seconds, on one thread, that watches nothing.
    pub fn new(scenario: &str, seconds: f64) -> OneArguments {
        OneArguments {
            scenario: scenario.to_owned(),
            seconds,
            variant: None,
            set: Vec::new(),
            observe: false,
            threads: 1,
            untimed: false,
        }
    }

    /// Runs the scenario and prints its cost and results.
    pub fn run(&self) -> Result<()> {
        let mut set = vec![format!("run.duration={}ps", (self.seconds * 1e12).round())];
        set.extend(self.set.iter().cloned());
        let mut model = cases::model(&self.scenario, self.variant.as_deref(), set)?;
        if !self.observe {
            model.observe.queue.clear();
        }
        let cpu_seconds = || if self.untimed { 0.0 } else { process::cpu_seconds() };
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        let outcome = plimsoll_sim::run_in_parts(&model, self.threads, &mut |_| true)?;
        let report = Report {
            cpu_s: cpu_seconds() - cpu,
            wall_s: wall.elapsed().as_secs_f64(),
            peak_bytes: process::peak_bytes()?,
            ..observed(&outcome, model.transport.segment + model.transport.header)
        };
        outln!("{}", serde_json::to_string(&report)?);
        Ok(())
    }

    /// Runs in a process of its own.
    pub fn in_child(&self) -> Result<Report> {
        let mut command = Command::new(std::env::current_exe().context("this program's path")?);
        command.args(self.words());
        report_of(command)
    }

    /// Returns the arguments that a child process needs.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec!["one".into(), self.scenario.clone(), format!("--seconds={}", self.seconds)];
        words.push(format!("--threads={}", self.threads));
        words.extend(self.variant.iter().map(|variant| format!("--variant={variant}")));
        words.extend(self.set.iter().map(|set| format!("--set={set}")));
        words.extend(self.observe.then(|| "--observe".to_owned()));
        words.extend(self.untimed.then(|| "--untimed".to_owned()));
        words
    }
}

/// Runs a command and reads the report that it prints.
pub fn report_of(mut command: Command) -> Result<Report> {
    let output = command.output().context("cannot start a run")?;
    if !output.status.success() {
        bail!("a run failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("a run printed something else than its report")
}

fn observed(outcome: &Outcome, packet: Bytes) -> Report {
    let seconds = outcome.end.as_secs_f64();
    let goodputs: Vec<f64> =
        outcome.connections.iter().map(|flow| flow.delivered as f64 * 8.0 / seconds).collect();
    let bottleneck = outcome.queues.first().filter(|_| outcome.queues.len() == 1);
    let packet_bytes = packet.get();
    Report {
        packet_hops: outcome.counters.packet_hops,
        cpu_s: 0.0,
        wall_s: 0.0,
        peak_bytes: 0,
        goodput_bps: goodputs.iter().sum(),
        jain: jain(&goodputs),
        drops: outcome.counters.nic_drops + outcome.counters.switch_drops,
        cut_or_marked: outcome.counters.marks + outcome.counters.trimmed,
        queue_mean: bottleneck.map(|queue| {
            queue.mean_bytes.iter().sum::<f64>() / queue.mean_bytes.len() as f64 / packet_bytes as f64
        }),
        queue_p99: bottleneck.map(|queue| p99_bytes(&queue.time_at) as f64 / packet_bytes as f64),
        digest: Digest::of(outcome).to_string(),
    }
}

/// Computes (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if all but one are 0.
fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    if squares > 0.0 { sum * sum / (values.len() as f64 * squares) } else { 0.0 }
}

/// Returns the length below which a queue is for 99 % of the time; `time_at[i]` is the time at up to `i` bins.
fn p99_bytes(time_at: &[u64]) -> u64 {
    let total: u128 = time_at.iter().map(|&ps| u128::from(ps)).sum();
    let mut below = 0;
    let bin = time_at.iter().position(|&ps| {
        below += u128::from(ps);
        below * 100 >= total * 99
    });
    bin.unwrap_or(0) as u64 * plimsoll_results::outcome::QueueObservation::BIN_BYTES
}

/// Formats a span in words, for headings.
pub fn in_words(seconds: f64) -> String {
    Span::from_ps((seconds * 1e12).round() as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 0.0);
    }

    #[test]
    fn the_99th_percentile_is_one_in_time() {
        assert_eq!(p99_bytes(&[98, 1, 0, 1]), 1_000);
        assert_eq!(p99_bytes(&[90, 1, 0, 9]), 3_000);
        assert_eq!(p99_bytes(&[]), 0);
    }
}
