//! [`Warning`]: facts that the reader must know before relying on a number, with the flag to try.

use std::fmt;

use plimsoll_text::grouped;
use plimsoll_units::Time;
use serde::{Deserialize, Serialize};

use super::{Cell, WorkloadSummary};
use crate::outcome::{MessageRecord, Supply};
use crate::point::{PointOutcome, sweep_label};
use crate::stats::{self, Statistic};

/// Jain's index of endless flows below which some of them are starved.
const UNFAIR: f64 = 0.5;

/// Share of unfinished messages above which the completed ones do not represent all messages.
const UNFINISHED_TOLERATED: f64 = 0.01;

/// One warning. Its text (`Display`) states the problem, the reason, and the flag to try.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// A percentile rests on too few samples.
    TooFewSamples {
        /// The name of the workload.
        workload: String,
        /// The percentile: `p99` or `p99.9`.
        statistic: String,
        /// The fewest samples that any variant and sweep point has.
        samples: u64,
        /// The number of samples that it should have.
        needed: u64,
        /// The number of variants and sweep points that have too few.
        cells: u64,
        /// The option that gives more samples.
        #[serde(default)]
        remedy: Remedy,
    },
    /// Many messages had not completed when the run ended.
    Unfinished {
        /// The name of the variant.
        variant: String,
        /// The sweep point in words; empty without a sweep.
        at: String,
        /// The name of the workload.
        workload: String,
        /// Messages not completed.
        unfinished: u64,
        /// The number of messages in all.
        messages: u64,
        /// Remedy by which more of them complete.
        #[serde(default)]
        remedy: Remedy,
    },
    /// A workload has no completed message at all.
    NothingCompleted {
        /// The name of the variant.
        variant: String,
        /// The sweep point in words; empty without a sweep.
        at: String,
        /// The name of the workload.
        workload: String,
        /// Remedy by which some of them complete.
        #[serde(default)]
        remedy: Remedy,
    },
    /// Flows without an end have very unequal shares, so a mean of their throughput represents few of them.
    Unfair {
        /// The name of the variant.
        variant: String,
        /// The sweep point in words; empty without a sweep.
        at: String,
        /// The name of the workload.
        workload: String,
        /// Jain's index of the throughput of its connections (0..=1).
        fairness: f64,
    },
    /// A warning of a run itself.
    Run {
        /// The first variant with this warning.
        variant: String,
        /// The number of runs with this warning.
        runs: u64,
        /// The text of the warning.
        text: String,
        /// The variants and sweep points with this warning, in words, each once.
        #[serde(default)]
        places: Vec<String>,
    },
}

/// Action that the user can take, where one helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// No action is known to help.
    #[default]
    None,
    /// A longer run gives more samples.
    Duration,
    /// More runs give more samples.
    Replicates,
    /// A longer run, or more of them.
    DurationOrReplicates,
    /// More time after the last arrival.
    Drain,
    /// Less time that does not count.
    Warmup,
    /// Less time that does not count, or more that does.
    WarmupOrDuration,
}

impl Remedy {
    /// Returns a sentence, after a space; empty where the user can do nothing.
    fn sentence(self) -> &'static str {
        match self {
            Remedy::None => "",
            Remedy::Duration => ". Make the run longer with `--set run.duration=...`",
            Remedy::Replicates => ". Repeat it with `--replicates N`",
            Remedy::DurationOrReplicates => {
                ". Make the run longer with `--set run.duration=...` or repeat it with `--replicates N`"
            }
            Remedy::Drain => ". Allow more time with `--set run.drain=...`",
            Remedy::Warmup => ". Its messages were all created during the warm-up: shorten `run.warmup`",
            Remedy::WarmupOrDuration => {
                ". Its messages were all created during the warm-up: shorten `run.warmup`, or make the run longer \
                 with `--set run.duration=...`"
            }
        }
    }
}

/// A variant and its sweep point in words.
fn place(variant: &str, at: &str) -> String {
    match at {
        "" => variant.to_owned(),
        at => format!("{variant} at {at}"),
    }
}

impl Warning {
    /// Returns the warning in one word where it concerns numbers of `workload` (all of them, if `None`) in `cell`;
    /// `None` where it does not, and for too few samples, for which [`too_few`] decides by percentile.
    pub fn word(&self, cell: &Cell, workload: Option<&str>) -> Option<&'static str> {
        let here = place(&cell.variant, &sweep_label(&cell.sweep));
        let is_of = |name: &str, variant: &str, at: &str| {
            workload.is_none_or(|asked| asked == name) && place(variant, at) == here
        };
        match self {
            Warning::TooFewSamples { .. } => None,
            Warning::Unfinished { variant, at, workload, .. } => {
                is_of(workload, variant, at).then_some("unfinished")
            }
            Warning::NothingCompleted { variant, at, workload, .. } => {
                is_of(workload, variant, at).then_some("nothing-completed")
            }
            Warning::Unfair { variant, at, workload, .. } => is_of(workload, variant, at).then_some("unfair"),
            Warning::Run { text, places, .. } => {
                let word = if text.starts_with("suspect:") { "suspect" } else { "run" };
                places.contains(&here).then_some(word)
            }
        }
    }
}

/// Whether a percentile such as `p99` rests on fewer samples than it needs.
pub fn too_few(percentile: &str, samples: u64) -> bool {
    let share = match percentile {
        "p99" => 0.99,
        "p99.9" => 0.999,
        _ => return false,
    };
    samples < stats::samples_needed(share)
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::TooFewSamples { workload, statistic, samples, needed, remedy, .. } => {
                let needed = counted(*needed, "sample");
                write!(
                    f,
                    "{statistic} of `{workload}` needs at least {needed} (has {})",
                    grouped(&samples.to_string())
                )?;
                write!(f, "{}", remedy.sentence())
            }
            Warning::Unfinished { variant, at, workload, unfinished, messages, remedy } => write!(
                f,
                "{}: {unfinished} of {} of `{workload}` had not completed when the run \
                 ended, so its completion times are those of the luckier ones{}{}",
                place(variant, at),
                counted(*messages, "message"),
                remedy.sentence(),
                if *remedy == Remedy::None {
                    ""
                } else {
                    "; if that does not help, the network is overloaded"
                }
            ),
            Warning::NothingCompleted { variant, at, workload, remedy } => {
                write!(f, "{}: no message of `{workload}` completed{}", place(variant, at), remedy.sentence())
            }
            Warning::Unfair { variant, at, workload, fairness } => write!(
                f,
                "{}: the flows of `{workload}` share unequally (Jain's index {fairness:.2}), and some are starved; a \
                 window of one segment waits for delayed ACKs where `transport.min_window` is 1, and a full drop-tail \
                 queue may lock flows out",
                place(variant, at)
            ),
            Warning::Run { variant, runs, text, .. } => match runs {
                1 => write!(f, "{variant}: {text}"),
                runs => write!(f, "{variant} and {} more: {text}", runs - 1),
            },
        }
    }
}

/// Writes a number with its noun: `1 sample`, `2,000 samples`.
fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(&number.to_string()))
}

/// Everything worth a warning, in the order of the cells.
pub(super) fn collect(cells: &[Cell], points: &[&PointOutcome]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for cell in cells {
        for workload in &cell.workloads {
            completion_warnings(cell, workload, &Supplied::of(workload, cell, points), &mut warnings);
        }
    }
    too_few_samples(cells, points, &mut warnings);
    said_by_runs(points, &mut warnings);
    warnings
}

/// Facts about the messages of a workload in the runs behind a cell.
struct Supplied {
    supply: Supply,
    /// Messages of it that do not count, since they were created before the warm-up's end.
    early: bool,
    /// Another workload has no end, so the run has no time after its last arrival.
    has_no_drain: bool,
}

impl Supplied {
    fn of(workload: &WorkloadSummary, cell: &Cell, points: &[&PointOutcome]) -> Supplied {
        let mut supplied = Supplied { supply: Supply::Unknown, early: false, has_no_drain: false };
        let is_of =
            |point: &&&PointOutcome| point.key.variant == cell.variant && point.key.sweep == cell.sweep;
        for PointOutcome { outcome, .. } in points.iter().filter(is_of) {
            supplied.has_no_drain |= outcome.workloads.iter().any(|info| info.supply == Supply::Endless);
            let Some(index) = outcome.workloads.iter().position(|info| info.name == workload.name) else {
                continue;
            };
            supplied.supply = outcome.workloads[index].supply;
            let warm = Time::ZERO + outcome.warmup;
            let is_early =
                |message: &MessageRecord| usize::from(message.workload) == index && message.created < warm;
            supplied.early |= outcome.messages.iter().any(is_early);
        }
        supplied
    }

    /// Returns the remedy by which messages complete that had not when the run ended.
    fn more_time(&self) -> Remedy {
        if self.has_no_drain { Remedy::Duration } else { Remedy::Drain }
    }

    /// Returns the change that would produce messages after the warm-up, where there are none.
    fn first_messages(&self) -> Remedy {
        match (self.early, self.supply) {
            (true, Supply::Duration) => Remedy::WarmupOrDuration,
            (true, _) => Remedy::Warmup,
            (false, Supply::Unknown) => Remedy::None,
            // Its first message comes after the run's end.
            (false, _) => Remedy::Duration,
        }
    }
}

fn completion_warnings(
    cell: &Cell,
    workload: &WorkloadSummary,
    supplied: &Supplied,
    warnings: &mut Vec<Warning>,
) {
    let (variant, at) = (cell.variant.clone(), sweep_label(&cell.sweep));
    let (messages, unfinished) = (workload.messages, workload.unfinished);
    if workload.completion_us.is_none() && workload.waited_us().is_none() {
        if supplied.supply == Supply::Endless {
            // Such a workload exists for its throughput.
            if let Some(fairness) = workload.fairness.filter(|fairness| *fairness < UNFAIR) {
                warnings.push(Warning::Unfair { variant, at, workload: workload.name.clone(), fairness });
            }
            return;
        }
        let remedy = if messages == 0 { supplied.first_messages() } else { supplied.more_time() };
        warnings.push(Warning::NothingCompleted { variant, at, workload: workload.name.clone(), remedy });
    } else if unfinished as f64 > UNFINISHED_TOLERATED * messages as f64 {
        let workload = workload.name.clone();
        let remedy = supplied.more_time();
        warnings.push(Warning::Unfinished { variant, at, workload, unfinished, messages, remedy });
    }
}

/// Adds one warning for each workload and percentile: the worst place and the number of places. Where already the 99th
/// percentile has too few, the warning for the 99.9th is left out.
fn too_few_samples(cells: &[Cell], points: &[&PointOutcome], warnings: &mut Vec<Warning>) {
    let mut names: Vec<&str> = Vec::new();
    for workload in cells.iter().flat_map(|cell| &cell.workloads) {
        if !names.contains(&workload.name.as_str()) {
            names.push(&workload.name);
        }
    }
    for name in names {
        let counts = cells
            .iter()
            .filter_map(|cell| cell.workload(name)?.waited_us())
            .map(|waited| waited.mean.samples)
            .collect::<Vec<u64>>();
        let infos = points.iter().flat_map(|point| &point.outcome.workloads);
        let grows = infos.filter(|info| info.name == name).all(|info| info.supply == Supply::Duration);
        let remedy = if grows { Remedy::DurationOrReplicates } else { Remedy::Replicates };
        for share in [0.99, 0.999] {
            let needed = stats::samples_needed(share);
            let short = counts.iter().filter(|&&samples| samples < needed);
            let Some(&samples) = short.clone().min() else { continue };
            warnings.push(Warning::TooFewSamples {
                workload: name.to_owned(),
                statistic: Statistic::Percentile(share).name(),
                samples,
                needed,
                cells: short.count() as u64,
                remedy,
            });
            break;
        }
    }
}

fn said_by_runs(points: &[&PointOutcome], warnings: &mut Vec<Warning>) {
    for point in points {
        let variant = &point.key.variant;
        let here = place(variant, &sweep_label(&point.key.sweep));
        for said in &point.outcome.warnings {
            let known = warnings.iter_mut().find_map(|warning| match warning {
                Warning::Run { text, runs, places, .. } if text == said => Some((runs, places)),
                _ => None,
            });
            match known {
                Some((runs, places)) => {
                    *runs += 1;
                    if !places.contains(&here) {
                        places.push(here.clone());
                    }
                }
                None => warnings.push(Warning::Run {
                    variant: variant.clone(),
                    runs: 1,
                    text: said.clone(),
                    places: vec![here.clone()],
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let few = |samples, needed| Warning::TooFewSamples {
            workload: "small".into(),
            statistic: "p99".into(),
            samples,
            needed,
            cells: 1,
            remedy: Remedy::None,
        };
        let unfinished = |messages| Warning::Unfinished {
            variant: "TCP".into(),
            at: String::new(),
            workload: "small".into(),
            unfinished: 1,
            messages,
            remedy: Remedy::Drain,
        };
        let cases = [
            (few(0, 1), "p99 of `small` needs at least 1 sample (has 0)"),
            (few(1, 2), "p99 of `small` needs at least 2 samples (has 1)"),
            (few(2000, 10_000), "p99 of `small` needs at least 10,000 samples (has 2,000)"),
            (unfinished(1), "1 of 1 message of `small`"),
            (unfinished(2), "1 of 2 messages of `small`"),
        ];
        for (warning, words) in cases {
            assert!(warning.to_string().contains(words), "{warning}");
        }
    }
}
