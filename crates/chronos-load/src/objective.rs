//! [`Objective`]: a limit for the latency of a server's operations, such as `p99 < 1ms`.

use std::str::FromStr;

use plimsoll_stats::expression::{Aggregate, BadExpression, Operator, Word};
use plimsoll_text::spelling::did_you_mean;
use plimsoll_units::{ParseQuantityError, Span};
use serde::Serialize;

use crate::book::Book;

/// The number that an objective limits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LimitedMetric {
    /// The mean of the latency.
    Mean,
    /// A percentile of the latency, as a share (0 to 1).
    Percentile(f64),
}

/// A service level objective for the latency of operations.
#[derive(Clone, PartialEq, Debug)]
pub struct Objective {
    /// The text of the objective, with single spaces.
    pub text: String,
    /// The number that the objective limits.
    pub metric: LimitedMetric,
    /// The limit of the number.
    pub limit: Span,
    /// Whether the limit itself violates the objective: `<` rather than `<=`.
    pub strict: bool,
}

/// The measurements of one round for an objective.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ObjectiveSample {
    /// The operations that were due.
    pub operations: u64,
    /// The number of them that were over the limit, or failed.
    pub over: u64,
    /// The mean latency in microseconds, in which a lost operation counts as its timeout or longer.
    pub mean_us: f64,
}

impl FromStr for Objective {
    type Err = BadExpression;

    fn from_str(text: &str) -> Result<Objective, BadExpression> {
        let text = text.trim();
        let bad = |word: Word, message: String| {
            BadExpression::new(
                text,
                word.at,
                message,
                "METRIC < LIMIT, such as p99 < 1ms (mean, or pN: p50, p99.9)",
            )
        };
        let Some((name, operator, limit)) = Operator::split(text) else {
            return Err(bad(Word::of(text, text), "this compares nothing: it has no `<` or `<=`".to_owned()));
        };
        if !operator.is_ceiling() {
            let message = "a latency has a highest value, not a lowest (`<` or `<=`)";
            return Err(bad(Word::of(text, text), message.to_owned()));
        }
        let (name, limit) = (Word::of(text, name), Word::of(text, limit));
        let metric = match Aggregate::read(text, &name)? {
            Some(Aggregate::Mean) => LimitedMetric::Mean,
            Some(Aggregate::Percentile(share)) => LimitedMetric::Percentile(share),
            _ => {
                let help = did_you_mean(&name.text, ["mean", "p50", "p90", "p99", "p99.9"]);
                let message = format!("there is no metric `{}`", name.text);
                return Err(BadExpression { help, ..bad(name, message) });
            }
        };
        let span: Result<Span, ParseQuantityError> = limit.text.parse();
        let span = span.map_err(|error| bad(limit.clone(), error.to_string()))?;
        if span.is_zero() {
            let message = format!("the limit `{}` is zero", limit.text);
            return Err(bad(limit, message));
        }
        let text = format!("{} {} {}", name.text, operator.sign(), limit.text);
        Ok(Objective { text, metric, limit: span, strict: operator.is_strict() })
    }
}

impl Objective {
    /// Returns the share of operations that may be over the limit; `None` for a mean.
    pub fn allowed(&self) -> Option<f64> {
        match self.metric {
            LimitedMetric::Percentile(share) => Some(1.0 - share),
            LimitedMetric::Mean => None,
        }
    }

    /// Measures the operations of a round. Rejected and unsent operations are over any limit; lost ones took their
    /// timeout or longer.
    pub fn measure(&self, book: &Book) -> ObjectiveSample {
        let waits = book.waits();
        let failed = book.counts.refused + book.counts.unsent;
        let limit_ns = self.limit.as_ps() / 1_000;
        let within_ns = if self.strict { limit_ns.saturating_sub(1) } else { limit_ns };
        let within = waits.count_between(0, within_ns);
        ObjectiveSample {
            operations: waits.len() + failed,
            over: waits.len().saturating_sub(within) + failed,
            mean_us: waits.mean() / 1e3,
        }
    }

    /// Returns the measured number as a multiple of the allowed number; `None` if nothing was measured.
    pub fn strain(&self, sample: &ObjectiveSample) -> Option<f64> {
        if sample.operations == 0 {
            return None;
        }
        Some(match self.allowed() {
            Some(allowed) => sample.over as f64 / sample.operations as f64 / allowed,
            None => sample.mean_us / self.limit.as_us_f64(),
        })
    }

    /// Returns the number that the objective limits, in microseconds, over all operations of `book`.
    pub fn value_us(&self, book: &Book) -> f64 {
        let waits = book.waits();
        match self.metric {
            LimitedMetric::Mean => waits.mean() / 1e3,
            LimitedMetric::Percentile(share) => waits.value_at_quantile(share) as f64 / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read() {
        for (text, metric, limit, strict) in [
            ("p99<1ms", LimitedMetric::Percentile(0.99), Span::from_ms(1), true),
            (" p99.9 <= 200us ", LimitedMetric::Percentile(0.999), Span::from_us(200), false),
            ("mean < 1.5ms", LimitedMetric::Mean, Span::from_us(1_500), true),
        ] {
            let objective: Objective = text.parse().unwrap();
            assert_eq!(
                (objective.metric, objective.limit, objective.strict),
                (metric, limit, strict),
                "{text}"
            );
            assert_eq!(objective.text.parse(), Ok(objective));
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_allowed() {
        for (text, part) in [
            ("p99", "it has no `<`"),
            ("p99 > 1ms", "a latency has a highest value"),
            ("p100 < 1ms", "above 0 and below 100"),
            ("meen < 1ms", "did you mean `mean`?"),
            ("p99 < 1", "unit"),
            ("p99 < 0us", "is zero"),
        ] {
            let error = text.parse::<Objective>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn operations_that_failed_or_were_lost_are_over_the_limit() {
        let mut book = Book::default();
        (0..900).for_each(|_| Book::record(&mut book.latency, Span::from_us(100)));
        (0..70).for_each(|_| Book::record(&mut book.latency, Span::from_us(2_000)));
        (0..10).for_each(|_| Book::record(&mut book.given_up, Span::from_ms(500)));
        (book.counts.refused, book.counts.unsent) = (5, 15);
        let objective: Objective = "p90 < 1ms".parse().unwrap();
        let sample = objective.measure(&book);
        assert_eq!((sample.operations, sample.over), (1_000, 100));
        assert!((objective.strain(&sample).unwrap() - 1.0).abs() < 1e-9);
        let mean: Objective = "mean < 10ms".parse().unwrap();
        assert!(mean.measure(&book).mean_us > 5_000.0, "a lost operation counts with its timeout");
    }
}
