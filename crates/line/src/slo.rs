//! [`Slo`]: one objective, such as `p99(query) < 1ms`.
//!
//! ```text
//! p99(query) < 1ms     pN, mean or max of the completion time, in us, ms or s; `<` or `<=`
//! goodput(bulk) > 800Mbps                         completed payload; `>` or `>=`
//! deadline(query) > 99%            share of the messages that met their deadline; `>` or `>=`
//! ```

use std::fmt;

use plimsoll_results::outcome::Supply;
use plimsoll_scenario::did_you_mean;
use plimsoll_scenario::model::Model;
use plimsoll_units::{PERCENTILES, Rate, Span, parse_percentile, parse_share};
use serde::{Deserialize, Serialize};

/// The metrics that an objective can limit.
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
}

/// A service level objective: a limit for one number of a workload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Slo {
    /// The text of the objective, with single spaces.
    pub text: String,
    /// The metric that the objective limits.
    pub metric: Metric,
    /// The workload that the objective is about.
    pub workload: String,
    /// The limit: us for completion times, Mb/s for goodput, a share (0..=1) for deadlines.
    pub limit: f64,
    /// Whether the limit itself violates the objective: `<` and `>` rather than `<=` and `>=`.
    pub strict: bool,
}

/// The reason why a text is no objective of a scenario.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct SloError {
    /// The objective as it was given.
    pub text: String,
    /// The characters at fault, counted from 0.
    pub at: std::ops::Range<usize>,
    /// The reason why the text is no objective.
    pub message: String,
    /// The texts that are allowed; it may be empty.
    pub allowed: String,
    /// The nearest spelling.
    pub help: Option<String>,
}

impl fmt::Display for SloError {
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

const METRICS: &str = "mean, max, pN (p50, p99, p99.9, ...), goodput, deadline";

impl Slo {
    /// Reads an objective.
    ///
    /// # Errors
    /// Returns the reason and the position.
    pub fn parse(text: &str) -> Result<Slo, SloError> {
        let text = text.trim();
        let whole = 0..text.chars().count();
        let form = "METRIC(WORKLOAD) < LIMIT, such as p99(query) < 1ms";
        let Some((left, operator, right)) = split(text) else {
            return Err(fail(text, whole, "this compares nothing", form));
        };
        let parts = left.trim().strip_suffix(')').and_then(|inside| inside.split_once('('));
        let Some((name, workload)) = parts else {
            return Err(fail(text, place(text, left), "this names no metric of a workload", form));
        };
        let metric = metric(text, name)?;
        let higher_is_better = matches!(metric, Metric::Goodput | Metric::Deadline);
        if operator.starts_with('>') != higher_is_better {
            let allowed = if higher_is_better { "> or >=" } else { "< or <=" };
            let message = format!("`{}` cannot be held by `{operator}`", name.trim());
            return Err(fail(text, place(text, operator), message, allowed));
        }
        let limit = limit(text, metric, right)?;
        let workload = workload.trim().to_owned();
        let text = format!("{}({workload}) {operator} {}", name.trim(), right.trim());
        Ok(Slo { text, metric, workload, limit, strict: operator.len() == 1 })
    }

    /// The metric and its workload: `p99(query)`.
    pub fn subject(&self) -> &str {
        self.text.split_once(')').map_or(&self.text, |(before, _)| &self.text[..before.len() + 1])
    }

    /// Checks that these runs observe the metric.
    ///
    /// # Errors
    /// Fails if a run has no such workload, or one whose messages have no such number.
    pub fn check<'a>(&self, models: impl IntoIterator<Item = &'a Model>) -> Result<(), SloError> {
        for model in models {
            let start = self.text.chars().take_while(|&c| c != '(').count() + 1;
            let here = start..start + self.workload.chars().count();
            let fail = |message: String, allowed: &str| fail(&self.text, here.clone(), message, allowed);
            let names = || model.workload.keys().map(String::as_str);
            let Some(workload) = model.workload.get(&self.workload) else {
                let mut error = fail(
                    format!("the scenario has no workload `{}`", self.workload),
                    &names().collect::<Vec<_>>().join(", "),
                );
                error.help = did_you_mean(&self.workload, names());
                return Err(error);
            };
            if workload.params().supply() == Supply::Endless {
                return Err(fail(
                    format!("the flows of `{}` have no end, so nothing of them completes", self.workload),
                    "a workload whose messages have a size",
                ));
            }
            if self.metric == Metric::Deadline && workload.params().deadline().is_none() {
                let with = model.workload.iter().filter(|(_, other)| other.params().deadline().is_some());
                let with: Vec<&str> = with.map(|(name, _)| name.as_str()).collect();
                let allowed = match with.is_empty() {
                    true => {
                        "a workload with the key `deadline`; no workload of the scenario has one".to_owned()
                    }
                    false => format!("a workload with the key `deadline`: {}", with.join(", ")),
                };
                return Err(fail(format!("the messages of `{}` have no deadline", self.workload), &allowed));
            }
        }
        Ok(())
    }

    /// Returns the share of messages that may be over the limit; `None` for other metrics.
    pub fn budget(&self) -> Option<f64> {
        match self.metric {
            Metric::Percentile(share) => Some(1.0 - share),
            Metric::Deadline => Some(1.0 - self.limit),
            Metric::Mean | Metric::Max | Metric::Goodput => None,
        }
    }

    /// Whether a completion time in us is over the limit.
    pub(crate) fn is_over(&self, us: f64) -> bool {
        if self.strict { us >= self.limit } else { us > self.limit }
    }

    /// Whether its numbers are completion times in us.
    pub fn is_time(&self) -> bool {
        matches!(self.metric, Metric::Mean | Metric::Percentile(_) | Metric::Max)
    }
}

/// Splits the text into left side, operator and right side.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find(['<', '>'])?;
    let length = 1 + usize::from(text[start + 1..].starts_with('='));
    Some((&text[..start], &text[start..start + length], &text[start + length..]))
}

fn metric(text: &str, name: &str) -> Result<Metric, SloError> {
    let trimmed = name.trim();
    match trimmed {
        "mean" => return Ok(Metric::Mean),
        "max" => return Ok(Metric::Max),
        "goodput" => return Ok(Metric::Goodput),
        "deadline" => return Ok(Metric::Deadline),
        _ => {}
    }
    if trimmed.starts_with(['p', 'P']) && trimmed.contains(char::is_numeric) {
        return parse_percentile(trimmed).map(Metric::Percentile).map_err(|error| {
            let help = error.meant().map(|meant| format!("did you mean `{meant}`?"));
            SloError { help, ..fail(text, place(text, trimmed), error.to_string(), PERCENTILES) }
        });
    }
    let mut error = fail(text, place(text, trimmed), format!("no metric `{trimmed}`"), METRICS);
    error.help = did_you_mean(trimmed, ["mean", "max", "p50", "p90", "p99", "p99.9", "goodput", "deadline"]);
    Err(error)
}

fn limit(text: &str, metric: Metric, right: &str) -> Result<f64, SloError> {
    let trimmed = right.trim();
    let here = || place(text, trimmed);
    let read = match metric {
        Metric::Goodput => trimmed.parse().map(|rate: Rate| rate.as_mbps_f64()).map_err(|e| e.to_string()),
        Metric::Deadline => {
            let is_plain = trimmed.bytes().all(|byte| byte.is_ascii_digit() || b".% ".contains(&byte));
            let share = parse_share(trimmed).ok().filter(|_| is_plain && trimmed.ends_with('%'));
            return share.filter(|share| (0.0..1.0).contains(share)).ok_or_else(|| {
                fail(
                    text,
                    here(),
                    format!("`{trimmed}` does not fit"),
                    "a percentage below 100%, such as 99%",
                )
            });
        }
        _ => trimmed.parse().map(|span: Span| span.as_us_f64()).map_err(|error| error.to_string()),
    };
    match read {
        Ok(limit) if limit > 0.0 => Ok(limit),
        Ok(_) => Err(fail(text, here(), "a limit of nothing", "more than 0")),
        Err(message) => Err(fail(text, here(), message, "")),
    }
}

fn fail(text: &str, at: std::ops::Range<usize>, message: impl Into<String>, allowed: &str) -> SloError {
    SloError { text: text.to_owned(), at, message: message.into(), allowed: allowed.to_owned(), help: None }
}

/// Returns the position of a part of `text` in it, in characters.
fn place(text: &str, part: &str) -> std::ops::Range<usize> {
    // Parts are slices of the text, so the distance of the two is their place.
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
    let before = text.get(..start).map_or(0, |before| before.chars().count());
    before..before + part.trim_end().chars().count().max(1)
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
        ] {
            let slo = Slo::parse(text).unwrap();
            assert_eq!(slo.workload, "query", "{text}");
            assert!((slo.limit - limit).abs() < 1e-9 * limit, "{text}: {}", slo.limit);
            assert_eq!((slo.metric, slo.strict), (metric, strict), "{text}");
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
            ("deadline(q) > 0.99", "0.99", "99%"),
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
