//! One sentence a variant: the change of each workload from the first variant.
//!
//! A difference is named only where the paired 95 % confidence interval excludes zero; where it does not, the sentence
//! says so with the interval, and without an interval, that the messages are too few. The statistic is the 99th
//! percentile where the pairs are enough for one, and the mean elsewhere. Over a sweep the sentence gives the range
//! over its points and the number of points with a difference.

use plimsoll_results::Summary;
use plimsoll_results::stats::paired::{Change, ChangeDirection};
use plimsoll_results::stats::samples_needed;
use plimsoll_results::summary::{Comparison, WorkloadChange};

use crate::figures;

/// Writes the sentences: first the faults of links, where there were any, then one a variant in their order; none where
/// there is nothing to compare.
pub fn sentences(summary: &Summary) -> Vec<String> {
    faults(summary).into_iter().chain(comparisons(summary, false)).collect()
}

/// Writes the sentences of runs that longer ones follow: a difference that they do not show is not reported as absent,
/// since that would depend on how long they are.
pub fn sentences_so_far(summary: &Summary) -> Vec<String> {
    faults(summary).into_iter().chain(comparisons(summary, true)).collect()
}

/// Returns the variant that all others are compared with; `None` where runs are compared, each variant with itself in
/// the first of them.
pub(crate) fn base(summary: &Summary) -> Option<&str> {
    let first = &summary.comparisons.first()?.base;
    summary.comparisons.iter().all(|other| other.base == *first).then_some(first)
}

/// The name of the variants' base where [`base`] is `None`.
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

fn comparisons(summary: &Summary, is_early: bool) -> Vec<String> {
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
            Some(if is_early { so_far(variant, base, &clauses) } else { sentence(variant, base, &clauses) })
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

    /// Returns the change of this statistic, with its paired interval.
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
    /// True if there is an interval, without which no difference can be shown.
    is_known: bool,
}

fn clause(workload: &str, points: &[&Comparison]) -> Option<Clause> {
    let changes: Vec<&WorkloadChange> = points
        .iter()
        .filter_map(|point| point.workloads.iter().find(|change| change.name == workload))
        .collect();
    let headline = Headline::for_pairs(changes.iter().map(|change| change.pairs).min()?);
    let mut what = format!("{}({workload})", headline.name());
    let changes: Vec<&Change> = changes.iter().map(|change| headline.of(change)).collect();
    let lower = ratios(&changes, ChangeDirection::Lower);
    let higher = ratios(&changes, ChangeDirection::Higher);
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
    let is_known = changes.iter().any(|change| change.difference.interval.is_some());
    if let ([change], true, true) = (changes.as_slice(), parts.is_empty(), is_known) {
        what.push_str(&format!(" ({})", interval(change)));
    }
    Some(Clause { what, seen: (!parts.is_empty()).then(|| parts.join(" and ")), is_known })
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
        (ChangeDirection::Lower, _) => "lower",
        (ChangeDirection::Higher, _) => "higher",
        (ChangeDirection::NotSeen, Some(_)) => UNSEEN,
        (ChangeDirection::NotSeen, None) => "too few to tell",
    }
}

/// Returns the ratios of the changes in this direction.
fn ratios(changes: &[&Change], direction: ChangeDirection) -> Vec<f64> {
    let seen = changes.iter().filter(|change| change.direction() == direction);
    seen.map(|change| match change.ratio {
        Some(ratio) => ratio.value,
        // From or to zero: the factor does not exist.
        None if direction == ChangeDirection::Lower => 0.0,
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
    let seen = seen(base, clauses);
    let others = |is_known: bool| {
        let others = clauses.iter().filter(|clause| clause.seen.is_none() && clause.is_known == is_known);
        others.map(|clause| clause.what.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut parts = Vec::new();
    let (unseen, unknown) = (others(true), others(false));
    if !seen.is_empty() {
        parts.push(seen.join(", "));
    }
    if !unseen.is_empty() {
        let from =
            if seen.is_empty() { format!("no difference from {base} seen") } else { UNSEEN.to_owned() };
        parts.push(format!("{from} in {unseen}"));
    }
    if !unknown.is_empty() {
        parts.push(format!("too few messages to tell {unknown} from {base}"));
    }
    if parts.is_empty() {
        parts.push(format!("no message completed under both it and {base}"));
    }
    format!("{variant}: {}", parts.join("; "))
}

const UNSEEN: &str = "no difference seen";

/// Writes the differences that runs show which longer ones follow.
fn so_far(variant: &str, base: &str, clauses: &[Clause]) -> String {
    match seen(base, clauses) {
        seen if seen.is_empty() => format!("{variant}: too early to tell from {base}"),
        seen => format!("{variant}: {}", seen.join(", ")),
    }
}

/// Returns the significant differences; the first names the base.
fn seen(base: &str, clauses: &[Clause]) -> Vec<String> {
    let seen = clauses.iter().filter_map(|clause| Some((&clause.what, clause.seen.as_ref()?)));
    seen.enumerate()
        .map(|(number, (what, how))| match number {
            0 => format!("{what} {how} than {base}"),
            _ => format!("{what} {how}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_results::summary::Options;
    use plimsoll_results::synthetic::{self, Shape};

    use super::*;

    #[test]
    fn without_an_interval_nothing_is_said_to_be_absent() {
        let of = |requests: u64| {
            let shape = Shape { requests, transfers: 2, queries: 2, ..Shape::default() };
            Summary::of(&synthetic::experiment(&shape, &["TCP", "HULL"], &[], 1, 1), &Options::default())
        };
        let few = sentences(&of(1_200));
        assert!(
            few[0].ends_with("; too few messages to tell mean(background), mean(search) from TCP"),
            "{few:?}"
        );
        assert!(few[0].starts_with("HULL: p99(small) "), "{few:?}");
        assert_eq!(sentences_so_far(&of(2)), ["HULL: too early to tell from TCP"]);
        let early = sentences_so_far(&of(1_200));
        assert!(early[0].starts_with("HULL: p99(small) ") && !early[0].contains("tell"), "{early:?}");
    }
}
