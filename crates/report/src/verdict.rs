//! One sentence a variant: the change of each workload from the first variant.
//!
//! A difference is named only where the paired 95 % confidence interval excludes zero; where it does not, the sentence
//! says so with the interval. The statistic is the 99th percentile where the pairs are enough for one, and the mean
//! elsewhere. Over a sweep the sentence gives the range over its points and the number of points with a difference.

use plimsoll_results::Summary;
use plimsoll_results::stats::paired::{Change, Direction};
use plimsoll_results::stats::samples_needed;
use plimsoll_results::summary::{Comparison, WorkloadChange};

use crate::figures;

/// Writes the sentences: first the faults of links, where there were any, then one a variant in their order; none where
/// there is nothing to compare.
pub fn sentences(summary: &Summary) -> Vec<String> {
    faults(summary).into_iter().chain(comparisons(summary)).collect()
}

/// Returns the variant that all others are compared with; `None` where runs are compared, each variant with itself in
/// the first of them.
pub(crate) fn base(summary: &Summary) -> Option<&str> {
    let first = &summary.comparisons.first()?.base;
    summary.comparisons.iter().all(|other| other.base == *first).then_some(first)
}

/// The name of what variants are compared with where there is no [`base`].
pub(crate) const FIRST_RUN: &str = "the first run";

/// Writes one sentence for all variants if they have the same faults, else one for each that has any.
fn faults(summary: &Summary) -> Vec<String> {
    let Some(first) = summary.cells.first() else { return Vec::new() };
    let sentence = |name: &str, faults: &[String]| format!("{name}: {}.", faults.join("; "));
    if summary.cells.iter().all(|cell| cell.faults == first.faults) {
        return if first.faults.is_empty() { Vec::new() } else { vec![sentence("Faults", &first.faults)] };
    }
    let mut sentences: Vec<String> = Vec::new();
    for cell in summary.cells.iter().filter(|cell| !cell.faults.is_empty()) {
        let sentence = sentence(&format!("Faults of {}", cell.variant), &cell.faults);
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}

fn comparisons(summary: &Summary) -> Vec<String> {
    summary
        .variants
        .iter()
        .skip(1)
        .filter_map(|variant| {
            let points: Vec<&Comparison> =
                summary.comparisons.iter().filter(|c| &c.variant == variant).collect();
            let base = &points.first()?.base;
            let clauses: Vec<Clause> =
                summary.workloads().iter().filter_map(|workload| clause(workload, &points)).collect();
            Some(sentence(variant, base, &clauses))
        })
        .collect()
}

/// The statistic of a workload that a sentence compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Headline {
    /// The sentence compares the 99th percentile.
    P99,
    /// The sentence compares the mean.
    Mean,
}

impl Headline {
    /// Chooses the statistic that this many pairs allow.
    pub fn for_pairs(pairs: u64) -> Headline {
        if pairs >= samples_needed(0.99) { Headline::P99 } else { Headline::Mean }
    }

    /// The name of the statistic: `p99` or `mean`.
    pub fn name(self) -> &'static str {
        match self {
            Headline::P99 => "p99",
            Headline::Mean => "mean",
        }
    }

    /// Returns the change of this statistic.
    pub fn of(self, change: &WorkloadChange) -> &Change {
        match self {
            Headline::P99 => &change.p99,
            Headline::Mean => &change.mean,
        }
    }
}

struct Clause {
    /// The statistic and its workload: `p99(small)`.
    what: String,
    /// The change, such as `4.2x lower`; `None` where no difference was seen.
    seen: Option<String>,
}

fn clause(workload: &str, points: &[&Comparison]) -> Option<Clause> {
    let changes: Vec<&WorkloadChange> = points
        .iter()
        .filter_map(|point| point.workloads.iter().find(|change| change.name == workload))
        .collect();
    let headline = Headline::for_pairs(changes.iter().map(|change| change.pairs).min()?);
    let mut what = format!("{}({workload})", headline.name());
    let changes: Vec<&Change> = changes.iter().map(|change| headline.of(change)).collect();
    let lower = ratios(&changes, Direction::Lower);
    let higher = ratios(&changes, Direction::Higher);
    let parts: Vec<String> = [(lower, "lower"), (higher, "higher")]
        .into_iter()
        .filter(|(ratios, _)| !ratios.is_empty())
        .map(|(ratios, word)| {
            let range = range(&ratios, word);
            if ratios.len() < changes.len() {
                format!("{range} at {} of {} points", ratios.len(), changes.len())
            } else {
                range
            }
        })
        .collect();
    if let ([change], true) = (changes.as_slice(), parts.is_empty()) {
        what.push_str(&format!(" ({})", interval(change)));
    }
    Some(Clause { what, seen: (!parts.is_empty()).then(|| parts.join(" and ")) })
}

/// Writes the interval of the difference: `-1.20 us .. 3.40 us`.
pub(crate) fn interval(change: &Change) -> String {
    match change.difference.interval {
        Some(interval) => format!("{} .. {}", figures::time(interval.low), figures::time(interval.high)),
        None => "too few to tell".to_owned(),
    }
}

/// Writes the direction of a change in one or two words.
pub(crate) fn word(change: &Change) -> &'static str {
    match (change.direction(), change.difference.interval) {
        (Direction::Lower, _) => "lower",
        (Direction::Higher, _) => "higher",
        (Direction::NotSeen, Some(_)) => "no difference seen",
        (Direction::NotSeen, None) => "too few to tell",
    }
}

/// Returns the ratios of the changes in this direction.
fn ratios(changes: &[&Change], direction: Direction) -> Vec<f64> {
    let seen = changes.iter().filter(|change| change.direction() == direction);
    seen.map(|change| match change.ratio {
        Some(ratio) => ratio.value,
        // From or to nothing at all: there is no factor.
        None if direction == Direction::Lower => 0.0,
        None => f64::INFINITY,
    })
    .collect()
}

/// Writes the range from the smallest change to the largest: `2.5x to 2.6x lower`.
fn range(ratios: &[f64], word: &str) -> String {
    let size = |ratio: &f64| if *ratio < 1.0 { 1.0 / ratio } else { *ratio };
    let mut by_size = ratios.to_vec();
    by_size.sort_unstable_by(|a, b| size(a).total_cmp(&size(b)));
    let written: Vec<String> = by_size.iter().map(|&ratio| figures::change(ratio)).collect();
    match (written.first(), written.last()) {
        (Some(least), Some(most)) if least != most && least != word => {
            let least = least.trim_end_matches(word).trim_end();
            format!("{least} to {most}")
        }
        (Some(same), _) => same.clone(),
        _ => String::new(),
    }
}

fn sentence(variant: &str, base: &str, clauses: &[Clause]) -> String {
    let mut seen: Vec<String> = Vec::new();
    let mut unseen: Vec<&str> = Vec::new();
    for clause in clauses {
        match &clause.seen {
            Some(how) if seen.is_empty() => seen.push(format!("{} {how} than {base}", clause.what)),
            Some(how) => seen.push(format!("{} {how}", clause.what)),
            None => unseen.push(&clause.what),
        }
    }
    match (seen.is_empty(), unseen.is_empty()) {
        (true, true) => format!("{variant}: no message completed under both it and {base}"),
        (true, false) => format!("{variant}: no difference from {base} seen in {}", unseen.join(", ")),
        (false, true) => format!("{variant}: {}", seen.join(", ")),
        (false, false) => {
            format!("{variant}: {}; no difference seen in {}", seen.join(", "), unseen.join(", "))
        }
    }
}
