//! [`Slo`]: one objective, such as `p99(query) < 1ms`: a [`Measure`], an operator and a limit.

use plimsoll_report::chart::Format;
use plimsoll_results::outcome::Outcome;
use plimsoll_results::stats::Estimate;
use plimsoll_scenario::model::Model;
use plimsoll_stats::expression::{Aggregate, BadExpression, Operator, Word};
use serde::{Deserialize, Serialize};

use crate::measure::{Measure, Unit};

/// The number that an objective limits, by how it is judged.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The mean completion time.
    Mean,
    /// A percentile of the completion time, as a share (0..1).
    Percentile(f64),
    /// The longest completion time.
    Max,
    /// The completed payload per second.
    Goodput,
    /// The share of the messages, or of the responses of queries, that met their deadline.
    Deadline,
    /// Any other measure: one number a run.
    Number,
    /// Any measure that has to be a number exactly, in every run.
    Exact,
}

/// A service level objective: a limit for one number of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Slo {
    /// The text of the objective, with single spaces.
    pub text: String,
    /// The measured number that the objective limits.
    pub measure: Measure,
    /// The way in which runs are judged by it.
    pub metric: Metric,
    /// The workload that the objective is about, or another subject.
    pub workload: String,
    /// The limit: us for times, Mb/s for goodput, a share (0..=1) for deadlines, else in the measure's own unit.
    pub limit: f64,
    /// The operator between the measured number and the limit: `<`, `<=`, `>`, `>=` or `==`.
    pub operator: Operator,
}

/// An objective as results have it.
#[derive(Serialize, Deserialize)]
struct Written {
    text: String,
    metric: Metric,
    workload: String,
    limit: f64,
    strict: bool,
}

impl TryFrom<Written> for Slo {
    type Error = BadExpression;

    fn try_from(written: Written) -> Result<Slo, BadExpression> {
        Slo::parse(&written.text)
    }
}

impl From<Slo> for Written {
    fn from(slo: Slo) -> Written {
        let strict = slo.operator.is_strict();
        Written { text: slo.text, metric: slo.metric, workload: slo.workload, limit: slo.limit, strict }
    }
}

impl Slo {
    /// Reads an objective.
    ///
    /// # Errors
    /// Returns the reason and the position.
    pub fn parse(text: &str) -> Result<Slo, BadExpression> {
        let text = text.trim();
        let form = "METRIC(WORKLOAD) < LIMIT, such as p99(query) < 1ms";
        // A measure may have a condition of its own, so the comparison is what follows its end.
        let end = text.rfind(')').map_or(0, |at| at + 1);
        let Some((rest, operator, right)) = Operator::split(&text[end..]) else {
            return Err(BadExpression::new(text, Word::of(text, text).at, "this compares nothing", form));
        };
        let left = &text[..end + rest.len()];
        if !left.contains('(') || !rest.trim().is_empty() {
            let at = Word::of(text, left).at;
            return Err(BadExpression::new(text, at, "this names no metric of a workload", form));
        }
        let measure = Measure::parse_part(text, left)?;
        let is_exact = operator == Operator::Equal;
        let metric = if is_exact { Metric::Exact } else { Metric::of(&measure) };
        let sign = &text[end + rest.len()..text.len() - right.len()];
        let floors = matches!(metric, Metric::Goodput | Metric::Deadline);
        if is_exact && measure.unit() != Unit::Count {
            let message = format!("`{}` is no count, which alone can be held by `==`", measure.head());
            let allowed = "< <= > >= or a count, such as drops(lossless) == 0";
            return Err(BadExpression::new(text, Word::of(text, sign).at, message, allowed));
        }
        if !is_exact && metric != Metric::Number && operator.is_floor() != floors {
            let allowed = if floors { "> or >=" } else { "< or <=" };
            let message = format!("`{}` cannot be held by `{sign}`", measure.head());
            return Err(BadExpression::new(text, Word::of(text, sign).at, message, allowed));
        }
        let word = Word::of(text, right);
        let limit = measure.unit().read(text, &word)?;
        let is_whole = limit >= 0.0 && limit.fract() == 0.0;
        if is_exact && !is_whole {
            return Err(BadExpression::new(
                text,
                word.at,
                "this is no count",
                "a whole number, such as == 0",
            ));
        }
        // How near a number is to its limit is their quotient.
        if !is_exact && limit <= 0.0 {
            return Err(BadExpression::new(text, word.at, "a limit of nothing", "more than 0, such as < 1"));
        }
        let limit = if metric == Metric::Deadline { limit / 100.0 } else { limit };
        let workload = measure.subject().to_owned();
        let text = format!("{} {sign} {}", measure.text(), right.trim());
        Ok(Slo { text, measure, metric, workload, limit, operator })
    }

    /// The metric and its workload: `p99(query)`.
    pub fn subject(&self) -> &str {
        self.measure.text()
    }

    /// Checks that these runs observe the metric.
    ///
    /// # Errors
    /// Fails if a run has no such workload, or one whose messages have no such number.
    pub fn check<'a>(&self, models: impl IntoIterator<Item = &'a Model>) -> Result<(), BadExpression> {
        let models: Vec<&Model> = models.into_iter().collect();
        models.iter().try_for_each(|model| self.measure.check(&self.text, model))?;
        self.measure.check_any(&self.text, models.into_iter())
    }

    /// Returns the share of messages that may be over the limit; `None` for other metrics.
    pub fn budget(&self) -> Option<f64> {
        match self.metric {
            Metric::Percentile(share) => Some(1.0 - share),
            Metric::Deadline => Some(1.0 - self.limit),
            Metric::Mean | Metric::Max | Metric::Goodput | Metric::Number | Metric::Exact => None,
        }
    }

    /// Returns whether the objective is judged message by message, so that a run with more messages says more of it.
    pub fn is_of_messages(&self) -> bool {
        !matches!(self.metric, Metric::Number | Metric::Exact)
    }

    /// Returns the number of a run after its warm-up; `None` without samples. A message that did not complete counts as
    /// one that is over every limit that it has already exceeded.
    pub fn number(&self, outcome: &Outcome) -> Option<Estimate> {
        let Slo { measure, operator, limit, .. } = self;
        let mut samples = measure.samples(outcome, outcome.warmup);
        if !operator.is_floor() {
            let so_far = measure.so_far(outcome, outcome.warmup);
            samples.extend(so_far.into_iter().filter(|value| !operator.holds(*value, *limit)));
        }
        measure.aggregate().of(samples, measure.condition())
    }

    /// Returns how the number and its limit are written.
    pub fn format(&self) -> Format {
        match self.metric {
            Metric::Deadline => Format::Percent,
            _ => self.measure.format(),
        }
    }

    /// Returns whether a completion time in us is over the limit.
    pub fn is_over(&self, us: f64) -> bool {
        !self.operator.holds(us, self.limit)
    }
}

impl Metric {
    fn of(measure: &Measure) -> Metric {
        let is_plain = measure.condition().is_none() && measure.subject() != "*";
        match (measure.quantity().name, measure.aggregate()) {
            ("time", Aggregate::Mean) if is_plain => Metric::Mean,
            ("time", Aggregate::Percentile(share)) if is_plain => Metric::Percentile(share),
            ("time", Aggregate::Max) if is_plain => Metric::Max,
            ("goodput", _) if is_plain => Metric::Goodput,
            ("deadline", _) if is_plain => Metric::Deadline,
            _ => Metric::Number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read() {
        for (text, metric, limit, strict) in [
            ("p99(query) < 1ms", Metric::Percentile(0.99), 1e3, true),
            (" p99.9( query )<=200us ", Metric::Percentile(0.999), 200.0, false),
            ("mean(query) < 1.5s", Metric::Mean, 1.5e6, true),
            ("max(query) <= 10ms", Metric::Max, 1e4, false),
            ("goodput(query) > 800Mbps", Metric::Goodput, 800.0, true),
            ("deadline(query) >= 99%", Metric::Deadline, 0.99, false),
            ("p99(queue.query) < 50us", Metric::Number, 50.0, true),
            ("slowdown.p99(query, 0..100KB) <= 3", Metric::Number, 3.0, false),
            ("percent(query, <= 1ms) > 99%", Metric::Number, 99.0, true),
            ("unfinished(query) == 0", Metric::Exact, 0.0, false),
            ("drops(queue.query) == 12", Metric::Exact, 12.0, false),
        ] {
            let slo = Slo::parse(text).unwrap();
            assert!(slo.workload.ends_with("query"), "{text}");
            assert!((slo.limit - limit).abs() <= 1e-9 * limit, "{text}: {}", slo.limit);
            assert_eq!((slo.metric, slo.operator.is_strict()), (metric, strict), "{text}");
            assert_eq!(Slo::parse(&slo.text), Ok(slo));
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, marked, words) in [
            ("p99(query)", "p99(query)", "METRIC(WORKLOAD) < LIMIT"),
            ("p99 < 1ms", "p99", "names no metric"),
            ("p100(q) < 1ms", "p100", "above 0 and below 100"),
            ("p+99(q) < 1ms", "p+99", "did you mean `p99`?"),
            ("p050(q) < 1ms", "p050", "did you mean `p50`?"),
            ("p1e1(q) < 1ms", "p1e1", "did you mean `p10`?"),
            ("p 99(q) < 1ms", "p 99", "did you mean `p99`?"),
            ("pnan(q) < 1ms", "pnan", "no metric `pnan`"),
            ("p99(q) < 1e3us", "1e3us", "us"),
            ("deadline(q) > 1e1%", "1e1%", "99%"),
            ("deadline(q) > +99%", "+99%", "99%"),
            ("meen(q) < 1ms", "meen", "did you mean `mean`?"),
            ("p99(q) > 1ms", ">", "< or <="),
            ("goodput(q) < 1Gbps", "<", "> or >="),
            ("p99(q) < 1", "1", "unit"),
            ("p99(q) < 1mss", "1mss", "ms"),
            ("p99(q) < 0us", "0us", "more than 0"),
            ("drops(queue.q) <= 0", "0", "more than 0"),
            ("deadline(q) > 0.99", "0.99", "99%"),
            ("p99(q) == 1ms", "==", "is no count"),
            ("pause_time(leaf) == 0%", "==", "drops(lossless) == 0"),
            ("drops(lossless) == 0.5", "0.5", "a whole number"),
            ("drops(lossless) == -1", "-1", "a whole number"),
            ("drops(lossles) == 0", "lossles", "lossless: all buffers"),
            ("", "", "such as"),
        ] {
            let error = Slo::parse(text).unwrap_err();
            let said = error.to_string();
            let at: String = text.chars().skip(error.at.start).take(error.at.len()).collect();
            assert_eq!(at, marked, "{said}");
            assert!(said.contains(words), "{said}");
        }
    }
}
