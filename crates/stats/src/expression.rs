//! [`Expression`]: the text that names a number, such as `p99(small)` or `slowdown.p99(flows, 0..100KB)`.
//!
//! ```text
//! [QUANTITY.]AGGREGATE(SUBJECT, ARGUMENT...)     slowdown.p99(flows, 0..100KB)
//! QUANTITY(SUBJECT, ARGUMENT...)                 goodput(bulk): the mean, or the one number that there is
//! ... OPERATOR LIMIT                             p99(small) < 1ms, an objective
//! ```
//!
//! This is the grammar alone. The caller defines the quantities and their subjects: a simulated run has others than a
//! server.

use std::fmt;
use std::ops::Range;

use plimsoll_text::spelling::did_you_mean;
use plimsoll_units::{PERCENTILES, parse_percentile};
use serde::{Deserialize, Serialize};

use crate::{Estimate, Interval, REPLICATES_FOR_INTERVAL, Samples, Statistic, section_interval};

/// The statistic that represents many samples.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// The arithmetic mean of the samples.
    Mean,
    /// The root of the mean square.
    Rms,
    /// A percentile, as a share (0 to 1), interpolated between order statistics.
    Percentile(f64),
    /// A percentile, as a share (0 to 1): the order statistic at or above it.
    PercentileAbove(f64),
    /// The largest of the samples.
    Max,
    /// The smallest of the samples.
    Min,
    /// The mean over the smallest hundredth of the samples.
    WorstPercent,
    /// The number of samples in a hundred that meet the condition.
    Percent,
    /// The number of samples in a million that meet the condition.
    PerMillion,
}

/// The names of aggregates that are no percentile.
const NAMED: [(&str, Aggregate); 7] = [
    ("mean", Aggregate::Mean),
    ("rms", Aggregate::Rms),
    ("max", Aggregate::Max),
    ("min", Aggregate::Min),
    ("worst_percent", Aggregate::WorstPercent),
    ("percent", Aggregate::Percent),
    ("per_million", Aggregate::PerMillion),
];

/// Suffix of a percentile's name whose order statistic is the one above.
const ABOVE: &str = "_above";

/// A part of a text, and its place there.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Word {
    /// The part, without blanks around it.
    pub text: String,
    /// The characters of the whole text that it is, counted from 0.
    pub at: Range<usize>,
}

/// A comparison of a number with a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Operator {
    /// The value is below the limit.
    Less,
    /// The value is the limit or below it.
    AtMost,
    /// The value is above the limit.
    Greater,
    /// The value is the limit or above it.
    AtLeast,
    /// The value is the limit.
    Equal,
}

/// The parts of a text that names a number.
#[derive(Clone, PartialEq, Debug)]
pub struct Expression {
    /// The text that the parts were read from.
    pub text: String,
    /// The name of the quantity, where it is given.
    pub quantity: Option<Word>,
    /// The statistic that represents its samples; the mean where none is given.
    pub aggregate: Aggregate,
    /// The name of the aggregate, or of the quantity if the text has only one name.
    pub head: Word,
    /// The words between the parentheses: the subject and the arguments. It may be empty.
    pub arguments: Vec<Word>,
    /// The condition among the arguments: its operator and its limit.
    pub condition: Option<(Operator, Word)>,
}

/// The reason why a text is wrong, with the place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadExpression {
    /// The text in which something is wrong.
    pub text: String,
    /// The characters at fault, counted from 0.
    pub at: Range<usize>,
    /// The reason why it is wrong.
    pub message: String,
    /// The texts that are allowed; it may be empty.
    pub allowed: String,
    /// The nearest spelling, as a question.
    pub help: Option<String>,
}

impl std::error::Error for BadExpression {}

impl fmt::Display for BadExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = " ".repeat(self.at.start);
        let mark = "^".repeat(self.at.len().max(1));
        write!(f, "{}\n  {}\n  {space}{mark}", self.message, self.text)?;
        if !self.allowed.is_empty() {
            write!(f, "\n  allowed: {}", self.allowed)?;
        }
        match &self.help {
            Some(help) => write!(f, "\n  {help}"),
            None => Ok(()),
        }
    }
}

impl BadExpression {
    /// Returns the error of a part of `text`.
    pub fn new(text: &str, at: Range<usize>, message: impl Into<String>, allowed: &str) -> BadExpression {
        let (message, allowed) = (message.into(), allowed.to_owned());
        BadExpression { text: text.to_owned(), at, message, allowed, help: None }
    }
}

impl Word {
    /// Returns a part of `text`, which must be a slice of it.
    pub fn of(text: &str, part: &str) -> Word {
        let trimmed = part.trim();
        // Parts are slices of the text, so the distance of the two is their place.
        let start = (trimmed.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
        let before = text.get(..start).map_or(0, |before| before.chars().count());
        Word { text: trimmed.to_owned(), at: before..before + trimmed.chars().count().max(1) }
    }
}

impl Operator {
    /// Returns whether `value` compares with `limit` as the operator says.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Operator::Less => value < limit,
            Operator::AtMost => value <= limit,
            Operator::Greater => value > limit,
            Operator::AtLeast => value >= limit,
            Operator::Equal => value == limit,
        }
    }

    /// Returns whether the limit itself does not meet the comparison.
    pub fn is_strict(self) -> bool {
        matches!(self, Operator::Less | Operator::Greater)
    }

    /// Returns whether larger values meet the comparison.
    pub fn is_floor(self) -> bool {
        matches!(self, Operator::Greater | Operator::AtLeast)
    }

    /// Returns whether smaller values meet the comparison.
    pub fn is_ceiling(self) -> bool {
        matches!(self, Operator::Less | Operator::AtMost)
    }

    /// Returns the sign of the operator.
    pub fn sign(self) -> &'static str {
        match self {
            Operator::Less => "<",
            Operator::AtMost => "<=",
            Operator::Greater => ">",
            Operator::AtLeast => ">=",
            Operator::Equal => "==",
        }
    }

    /// Splits a text at its first comparison: the left side, the operator and the right side.
    pub fn split(text: &str) -> Option<(&str, Operator, &str)> {
        let starts = [text.find(['<', '>']), text.find(Operator::Equal.sign())];
        let (left, rest) = text.split_at(starts.into_iter().flatten().min()?);
        let signs = [Operator::AtMost, Operator::AtLeast, Operator::Less, Operator::Greater, Operator::Equal];
        signs.into_iter().find_map(|operator| Some((left, operator, rest.strip_prefix(operator.sign())?)))
    }
}

impl Aggregate {
    /// Parses the name of an aggregate in `text`; `None` where the word neither is such a name nor looks like one.
    ///
    /// # Errors
    /// Returns the reason and the place where it looks like a percentile and is not one.
    pub fn read(text: &str, word: &Word) -> Result<Option<Aggregate>, BadExpression> {
        if let Some((_, aggregate)) = NAMED.iter().find(|(name, _)| *name == word.text) {
            return Ok(Some(*aggregate));
        }
        if !word.text.starts_with(['p', 'P']) || !word.text.contains(char::is_numeric) {
            return Ok(None);
        }
        let above = word.text.strip_suffix(ABOVE);
        let share = parse_percentile(above.unwrap_or(&word.text)).map_err(|error| {
            let help = error.meant().map(|meant| format!("did you mean `{meant}`?"));
            BadExpression {
                help,
                ..BadExpression::new(text, word.at.clone(), error.to_string(), PERCENTILES)
            }
        })?;
        let is_above = above.is_some();
        Ok(Some(if is_above { Aggregate::PercentileAbove(share) } else { Aggregate::Percentile(share) }))
    }

    /// Returns the aggregate of one run's samples, in order of creation; `condition` selects the samples that count.
    /// `None` without samples.
    pub fn of(self, mut samples: Vec<f64>, condition: Option<(Operator, f64)>) -> Option<Estimate> {
        let meets = |sample: f64| condition.is_none_or(|(operator, limit)| operator.holds(sample, limit));
        let whole = match self {
            Aggregate::Percent => 100.0,
            Aggregate::PerMillion => 1e6,
            _ => {
                samples.retain(|sample| meets(*sample));
                return self.of_all(samples);
            }
        };
        let all = samples.len() as u64;
        let meeting = samples.iter().filter(|sample| meets(**sample)).count() as f64;
        (all > 0).then(|| Estimate::bare(whole * meeting / all as f64, all))
    }

    /// Returns the aggregate of all replicates' samples. From [`REPLICATES_FOR_INTERVAL`] replicates on, the interval
    /// is that of their own aggregates, except of an extreme, which has none. `None` without samples.
    pub fn of_replicates(
        self,
        replicates: Vec<Vec<f64>>,
        condition: Option<(Operator, f64)>,
    ) -> Option<Estimate> {
        let own = |samples: &Vec<f64>| Some(self.of(samples.clone(), condition)?.value);
        let each: Vec<f64> = replicates.iter().filter_map(own).collect();
        let all = self.of(replicates.concat(), condition)?;
        if matches!(self, Aggregate::Max | Aggregate::Min) || each.len() < REPLICATES_FOR_INTERVAL {
            return Some(all);
        }
        let around = section_interval(all.value, &each);
        Some(Estimate { interval: around.map(|i| Interval { low: i.low.max(0.0), ..i }), ..all })
    }

    fn of_all(self, samples: Vec<f64>) -> Option<Estimate> {
        match self {
            Aggregate::Mean | Aggregate::Percent | Aggregate::PerMillion => {
                Samples::new(vec![samples]).estimate(Statistic::Mean)
            }
            Aggregate::Percentile(share) => {
                Samples::new(vec![samples]).estimate(Statistic::Percentile(share))
            }
            Aggregate::PercentileAbove(share) => percentile_above(samples, share),
            Aggregate::Rms => rms(&samples),
            Aggregate::WorstPercent => worst_percent(samples),
            Aggregate::Max => extreme(&samples, f64::max),
            Aggregate::Min => extreme(&samples, f64::min),
        }
    }
}

fn extreme(samples: &[f64], further: fn(f64, f64) -> f64) -> Option<Estimate> {
    let value = samples.iter().copied().reduce(further)?;
    Some(Estimate::bare(value, samples.len() as u64))
}

/// Computes the root of the mean square, with the interval of the mean square.
fn rms(samples: &[f64]) -> Option<Estimate> {
    let squares = samples.iter().map(|sample| sample * sample).collect();
    let Estimate { value, interval, samples } = Samples::new(vec![squares]).estimate(Statistic::Mean)?;
    let root = |i: Interval| Interval { low: i.low.max(0.0).sqrt(), high: i.high.max(0.0).sqrt() };
    Some(Estimate { value: value.sqrt(), interval: interval.map(root), samples })
}

fn percentile_above(samples: Vec<f64>, share: f64) -> Option<Estimate> {
    let samples = Samples::new(vec![samples]);
    let estimate = samples.estimate(Statistic::Percentile(share))?;
    // In whole numbers of a billionth, the finest percentile: no rounding decides which sample it is.
    let (parts, whole) = ((share * 1e11).round() as u128, 100_000_000_000);
    let rank = (parts * (samples.len() as u128 - 1)).div_ceil(whole) as usize;
    let value = samples.sorted()[rank];
    let around = |i: Interval| Interval { low: i.low.min(value), high: i.high.max(value) };
    Some(Estimate { value, interval: estimate.interval.map(around), samples: estimate.samples })
}

fn worst_percent(mut samples: Vec<f64>) -> Option<Estimate> {
    samples.sort_unstable_by(f64::total_cmp);
    let count = (samples.len() / 100).max(1).min(samples.len());
    let worst = Samples::new(vec![samples[..count].to_vec()]);
    let all = samples.len() as u64;
    worst.estimate(Statistic::Mean).map(|estimate| Estimate::bare(estimate.value, all))
}

impl Expression {
    /// Parses `part`, a slice of `text`. A name other than an aggregate's is a quantity's, which the caller looks up.
    ///
    /// # Errors
    /// Returns the reason and the place in `text`.
    pub fn parse(text: &str, part: &str) -> Result<Expression, BadExpression> {
        let form = "[QUANTITY.]NAME(SUBJECT), such as p99(query)";
        let whole = Word::of(text, part);
        let inside = part.trim().strip_suffix(')').and_then(|inside| inside.split_once('('));
        let Some((head, arguments)) = inside else {
            return Err(BadExpression::new(text, whole.at, "this names no number of a subject", form));
        };
        let whole_head = Word::of(text, head);
        // A percentile may have a point of its own: `p99.9`.
        let split = match Aggregate::read(text, &whole_head) {
            Ok(Some(_)) => None,
            _ => head.split_once('.'),
        };
        let (quantity, head) = match split {
            Some((quantity, name)) => (Some(Word::of(text, quantity)), Word::of(text, name)),
            None => (None, whole_head),
        };
        let (quantity, aggregate) = match (Aggregate::read(text, &head)?, quantity) {
            (Some(aggregate), quantity) => (quantity, aggregate),
            (None, None) => (Some(head.clone()), Aggregate::Mean),
            (None, Some(_)) => return Err(Expression::no_name(text, &head, [])),
        };
        let (mut words, mut condition) = (Vec::new(), None);
        for argument in arguments.split(',').filter(|_| !arguments.trim().is_empty()) {
            let word = Word::of(text, argument);
            match Operator::split(argument) {
                Some((before, operator, limit)) if before.trim().is_empty() => {
                    if condition.replace((operator, Word::of(text, limit))).is_some() {
                        return Err(BadExpression::new(text, word.at, "this is a second condition", "one"));
                    }
                }
                _ => words.push(word),
            }
        }
        Ok(Expression { text: text.to_owned(), quantity, aggregate, head, arguments: words, condition })
    }

    /// Returns the error of a name that is neither an aggregate nor one of the `quantities`.
    pub fn no_name<'a>(
        text: &str,
        word: &Word,
        quantities: impl IntoIterator<Item = &'a str>,
    ) -> BadExpression {
        let aggregates = NAMED.iter().map(|(name, _)| *name);
        let names: Vec<&str> = aggregates.chain(quantities).collect();
        let allowed = format!("pN (p50, p99, p99.9, ...), {}", names.join(", "));
        let near = names.into_iter().chain(["p50", "p90", "p99", "p99.9"]);
        let help = did_you_mean(&word.text, near);
        let message = format!("no metric `{}`", word.text);
        BadExpression { help, ..BadExpression::new(text, word.at.clone(), message, &allowed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Expression, BadExpression> {
        Expression::parse(text, text)
    }

    /// Three replicates have an interval of their own, fewer that of all samples; an extreme has none.
    #[test]
    fn replicates_are_estimated_as_samples_are() {
        let replicate = |first: u32| (0..200).map(|n| f64::from((first + 37 * n) % 101)).collect::<Vec<_>>();
        for replicates in
            [vec![replicate(1), replicate(20), replicate(50)], vec![replicate(1), replicate(20)]]
        {
            for statistic in [Statistic::Mean, Statistic::Percentile(0.9)] {
                let aggregate = match statistic {
                    Statistic::Mean => Aggregate::Mean,
                    Statistic::Percentile(share) => Aggregate::Percentile(share),
                };
                let estimate = aggregate.of_replicates(replicates.clone(), None);
                assert_eq!(estimate, Samples::new(replicates.clone()).estimate(statistic));
                assert!(estimate.is_some_and(|estimate| estimate.interval.is_some()));
            }
            let max = Aggregate::Max.of_replicates(replicates.clone(), None);
            assert_eq!(max, Some(Estimate::bare(100.0, 200 * replicates.len() as u64)));
            let min = Aggregate::Min.of_replicates(replicates.clone(), None);
            assert_eq!(min, Some(Estimate::bare(0.0, 200 * replicates.len() as u64)));
            let below = Aggregate::Percent.of_replicates(replicates.clone(), Some((Operator::Less, 1e3)));
            assert_eq!(below.map(|estimate| estimate.value), Some(100.0));
        }
        assert_eq!(Aggregate::Mean.of_replicates(vec![Vec::new(), Vec::new()], None), None);
    }

    #[test]
    fn expressions_are_read() {
        for (text, quantity, aggregate, arguments) in [
            ("p99(small)", None, Aggregate::Percentile(0.99), &["small"][..]),
            ("p99.9( small )", None, Aggregate::Percentile(0.999), &["small"]),
            ("goodput(bulk)", Some("goodput"), Aggregate::Mean, &["bulk"]),
            (
                "slowdown.p99(flows, 0..100KB)",
                Some("slowdown"),
                Aggregate::Percentile(0.99),
                &["flows", "0..100KB"],
            ),
            ("slowdown.p99.9_above(*)", Some("slowdown"), Aggregate::PercentileAbove(0.999), &["*"]),
            ("circuits_filled()", Some("circuits_filled"), Aggregate::Mean, &[]),
            ("percent(probe, <= 24us)", None, Aggregate::Percent, &["probe"]),
        ] {
            let read = read(text).unwrap();
            assert_eq!(read.quantity.as_ref().map(|word| word.text.as_str()), quantity, "{text}");
            assert_eq!(read.aggregate, aggregate, "{text}");
            let words: Vec<&str> = read.arguments.iter().map(|word| word.text.as_str()).collect();
            assert_eq!(words, arguments, "{text}");
        }
        let (operator, limit) = read("percent(probe, <= 24us)").unwrap().condition.unwrap();
        assert_eq!((operator, limit.text.as_str(), limit.at), (Operator::AtMost, "24us", 18..22));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, marked, words) in [
            ("p99", "p99", "names no number"),
            ("p050(q)", "p050", "did you mean `p50`?"),
            ("p100(q)", "p100", "above 0 and below 100"),
            ("slowdown.meen(q)", "meen", "did you mean `mean`?"),
            ("percent(q, > 1us, < 9us)", "< 9us", "a second condition"),
            ("", " ", "such as p99(query)"),
        ] {
            let error = read(text).unwrap_err();
            let said = error.to_string();
            let at: String =
                text.chars().chain(" ".chars()).skip(error.at.start).take(error.at.len()).collect();
            assert_eq!(at, marked, "{said}");
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn the_first_comparison_splits_a_text() {
        for (text, left, operator, right) in [
            ("a < 1", "a ", Operator::Less, " 1"),
            ("a<=1", "a", Operator::AtMost, "1"),
            ("a == 0", "a ", Operator::Equal, " 0"),
            ("a >= 1 == 2", "a ", Operator::AtLeast, " 1 == 2"),
        ] {
            assert_eq!(Operator::split(text), Some((left, operator, right)), "{text}");
        }
        assert_eq!(Operator::split("a = 1"), None);
        assert!(Operator::Equal.holds(0.0, 0.0) && !Operator::Equal.holds(1.0, 0.0));
    }

    #[test]
    fn the_percentile_above_is_a_sample() {
        let value = |count: u32| percentile_above((0..count).map(f64::from).collect(), 0.99).map(|e| e.value);
        assert_eq!(value(0), None);
        assert_eq!(value(1), Some(0.0));
        assert_eq!(value(101), Some(99.0));
        assert_eq!(value(102), Some(100.0));
    }

    #[test]
    fn the_root_mean_square_weighs_the_large() {
        let of = |samples: &[f64], condition| Aggregate::Rms.of(samples.to_vec(), condition).map(|e| e.value);
        assert_eq!(of(&[3.0, 4.0, 5.0, 0.0], None), Some(12.5f64.sqrt()));
        assert_eq!(of(&[3.0, 4.0, 5.0], Some((Operator::AtMost, 4.0))), Some(12.5f64.sqrt()));
        assert_eq!(of(&[], None), None);
    }

    #[test]
    fn samples_that_meet_a_condition_are_counted() {
        let samples = [1.0, 2.0, 3.0, 4.0];
        let percent = Aggregate::Percent.of(samples.to_vec(), Some((Operator::Less, 2.0)));
        assert_eq!(percent.map(|e| (e.value, e.samples)), Some((25.0, 4)));
        let rare = Aggregate::PerMillion.of(samples.to_vec(), Some((Operator::AtLeast, 3.0)));
        assert_eq!(rare.map(|e| e.value), Some(500_000.0));
    }

    #[test]
    fn the_worst_percent_is_the_mean_of_the_smallest() {
        let samples = (0..200).map(f64::from).collect();
        assert_eq!(worst_percent(samples).map(|estimate| estimate.value), Some(0.5));
    }
}
