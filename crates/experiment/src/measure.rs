//! [`Measure`]: one number of a run, by its name: `p99(small)`, `mean(queue.client)`, `slowdown.p99(flows, 0..100KB)`.
//!
//! A measure is an [`Expression`] whose quantity is one of [`QUANTITIES`], which have the samples. Without a quantity
//! it is the completion time of a workload, or the delay in a watched queue.

mod asked;
mod bursts;
mod circuits;
mod hosts;
mod links;
mod quantity;
mod samples;
mod windows;

use plimsoll_report::chart::Format;
use plimsoll_results::outcome::{Outcome, Supply};
use plimsoll_results::stats::Estimate;
use plimsoll_scenario::did_you_mean;
use plimsoll_scenario::model::Model;
use plimsoll_stats::expression::{Aggregate, BadExpression, Expression, Operator, Word};
use plimsoll_units::Span;
use serde::Deserialize;

use asked::{ALL, LOSSLESS, QUEUE, QuantityQuestion, Value, queue_name};
pub use asked::{SEGMENT_BYTES, TimeUnit};
use links::ARROW;
use quantity::Of;
pub use quantity::{QUANTITIES, Quantity, Unit};

/// One number of a run, read from its text.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Measure {
    text: String,
    quantity: &'static Quantity,
    aggregate: Aggregate,
    subject: Word,
    arguments: Vec<Value>,
    condition: Option<(Operator, f64)>,
    time_unit: TimeUnit,
}

impl PartialEq for Measure {
    fn eq(&self, other: &Measure) -> bool {
        (&self.text, self.time_unit) == (&other.text, other.time_unit)
    }
}

impl TryFrom<String> for Measure {
    type Error = BadExpression;

    fn try_from(text: String) -> Result<Measure, BadExpression> {
        Measure::parse(&text)
    }
}

impl Measure {
    /// Reads a measure; times are in us.
    ///
    /// # Errors
    /// Returns the reason and the place.
    pub fn parse(text: &str) -> Result<Measure, BadExpression> {
        Measure::parse_part(text, text)
    }

    /// Reads a measure from `part`, a slice of `text`; times are in us.
    ///
    /// # Errors
    /// Returns the reason and the place in `text`.
    pub fn parse_part(text: &str, part: &str) -> Result<Measure, BadExpression> {
        let expression = Expression::parse(text, part)?;
        let Expression { quantity, aggregate, head, arguments, condition, .. } = expression;
        let first = arguments.first().map_or("", |word| word.text.as_str());
        let is_queue = first.starts_with(QUEUE);
        let known = |name: &str| QUANTITIES.iter().find(|quantity| quantity.name == name);
        let quantity = match &quantity {
            None => known(if is_queue { "delay" } else { "time" }).expect("both are in the table"),
            Some(word) => known(&word.text).ok_or_else(|| {
                Expression::no_name(text, word, QUANTITIES.iter().map(|quantity| quantity.name))
            })?,
        };
        if quantity.is_one && aggregate != Aggregate::Mean {
            let message = format!("`{}` is one number, of which there is no `{}`", quantity.name, head.text);
            let allowed = format!("{}({first})", quantity.name);
            return Err(BadExpression::new(text, head.at, message, &allowed));
        }
        let mut words = arguments.into_iter().peekable();
        let subject = words.next_if(|word| quantity.of != Of::Run || word.text == ALL);
        let subject = subject.unwrap_or_else(|| Word { text: String::new(), at: head.at.clone() });
        quantity.of.check(text, &subject)?;
        let mut arguments = quantity.arguments.iter();
        let mut values = Vec::new();
        for word in words {
            let Some(argument) = arguments.next() else {
                let message = format!("`{}` takes no argument `{}`", quantity.name, word.text);
                return Err(BadExpression::new(text, word.at, message, &quantity.form()));
            };
            values.push(argument.read(text, &word)?);
        }
        if let Some(missing) = arguments.find(|argument| !argument.is_optional()) {
            let message = format!("`{}` has too few arguments", quantity.name);
            return Err(BadExpression::new(text, head.at, message, missing.allowed()));
        }
        let counts = matches!(aggregate, Aggregate::Percent | Aggregate::PerMillion);
        if counts && condition.is_none() {
            let message = format!("`{}` counts the samples that meet a condition", head.text);
            return Err(BadExpression::new(text, head.at, message, "a condition, such as <= 1ms"));
        }
        if let Some((_, limit)) = condition.as_ref().filter(|_| quantity.is_one) {
            let message = format!("`{}` is one number, which has no condition", quantity.name);
            return Err(BadExpression::new(text, limit.at.clone(), message, &quantity.form()));
        }
        let condition = condition.map(|(operator, word)| Ok((operator, quantity.unit.read(text, &word)?)));
        Ok(Measure {
            text: tidy(part),
            quantity,
            aggregate,
            subject,
            arguments: values,
            condition: condition.transpose()?,
            time_unit: TimeUnit::Us,
        })
    }

    /// Returns the measure with its number in `unit`.
    ///
    /// # Errors
    /// Returns the units that are allowed, if this is none.
    pub fn in_unit(mut self, unit: &str) -> Result<Measure, String> {
        match (self.unit(), unit) {
            (Unit::Time, "us") | (Unit::Count, _) => {}
            (Unit::Time, "ms") => {
                self.time_unit = TimeUnit::Ms;
                self.condition = self.condition.map(|(operator, us)| (operator, us / 1e3));
            }
            (Unit::Fixed(fixed), unit) if fixed == unit => {}
            (known, _) => {
                return Err(format!("`{}` is not in `{unit}`; allowed: {}", self.text, known.name()));
            }
        }
        Ok(self)
    }

    /// Returns the text of the measure, such as `p99(small)`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the quantity that is measured, with its unit and its arguments.
    pub fn quantity(&self) -> &'static Quantity {
        self.quantity
    }

    /// Returns the aggregate of the samples, such as the mean or a percentile.
    pub fn aggregate(&self) -> Aggregate {
        self.aggregate
    }

    /// Returns the unit of the number: that of the quantity, unless samples are counted.
    pub fn unit(&self) -> Unit {
        match self.aggregate {
            Aggregate::Percent => Unit::Fixed("%"),
            Aggregate::PerMillion => Unit::Count,
            _ => self.quantity.unit,
        }
    }

    /// Returns the text before the subject: `p99`, `slowdown.p99`.
    pub fn head(&self) -> &str {
        self.text.split_once('(').map_or(&self.text, |(head, _)| head.trim())
    }

    /// Returns the condition that samples have to meet to count.
    pub fn condition(&self) -> Option<(Operator, f64)> {
        self.condition
    }

    /// Returns the subject as it is written: a workload, `queue.NAME`, `host.NUMBER`, a tier or a pair of hosts.
    pub fn subject(&self) -> &str {
        &self.subject.text
    }

    /// Returns the samples of a run, in order of creation, without the samples that began in its first `warmup`; there
    /// are none where the run has no such subject.
    pub fn samples(&self, outcome: &Outcome, warmup: Span) -> Vec<f64> {
        self.quantity.samples.of(&self.question(outcome, warmup))
    }

    /// Returns for each message that a run did not complete a value that its sample would have exceeded, such as the
    /// slowdown that it had reached at the end; nothing where the quantity has no such value.
    pub fn so_far(&self, outcome: &Outcome, warmup: Span) -> Vec<f64> {
        self.quantity.so_far.map_or_else(Vec::new, |so_far| so_far(&self.question(outcome, warmup)))
    }

    fn question<'a>(&'a self, outcome: &'a Outcome, warmup: Span) -> QuantityQuestion<'a> {
        let Measure { subject, arguments, time_unit, .. } = self;
        QuantityQuestion { outcome, warmup, subject: &subject.text, arguments, time_unit: *time_unit }
    }

    /// Returns the number, with an interval where the samples are enough for one; `None` without samples.
    pub fn estimate(&self, outcome: &Outcome, warmup: Span) -> Option<Estimate> {
        self.aggregate.of(self.samples(outcome, warmup), self.condition)
    }

    /// Returns the number of all replicates of a point, with an interval where they, or else their samples, are enough
    /// for one; `None` without samples.
    pub fn of_replicates(&self, outcomes: &[&Outcome]) -> Option<Estimate> {
        let samples = outcomes.iter().map(|outcome| self.samples(outcome, outcome.warmup)).collect();
        self.aggregate.of_replicates(samples, self.condition)
    }

    /// Returns how the number is written.
    pub fn format(&self) -> Format {
        match self.unit() {
            Unit::Time => Format::Time,
            Unit::Fixed("Mb/s") => Format::Rate,
            _ => Format::Number,
        }
    }

    /// Checks that a run of `model` has the subject, and samples of it.
    ///
    /// # Errors
    /// Returns the names that there are, and the nearest.
    pub fn check(&self, text: &str, model: &Model) -> Result<(), BadExpression> {
        let fail = |message: String, allowed: &str| {
            BadExpression::new(text, self.subject.at.clone(), message, allowed)
        };
        let unknown = |what: &str, name: &str, names: Vec<&str>| {
            let error = fail(format!("the scenario has no {what} `{name}`"), &names.join(", "));
            BadExpression { help: did_you_mean(name, names), ..error }
        };
        match self.quantity.of {
            Of::Tier if !model.observe.links => {
                Err(fail("the scenario counts no links".to_owned(), "`observe.links = true` in the scenario"))
            }
            _ if self.subject.text == ALL => Ok(()),
            // Where some variants are lossless, the others have dropped nothing at such ports.
            Of::QueueOrLossless if self.subject.text == LOSSLESS => Ok(()),
            Of::Queue | Of::QueueOrLossless => {
                let name = queue_name(self.subject());
                if model.observe.queue.contains_key(name) {
                    return Ok(());
                }
                Err(unknown("watched queue", name, model.observe.queue.keys().map(String::as_str).collect()))
            }
            Of::Workload | Of::WorkloadOrQueue => {
                if self.subject.text.starts_with(QUEUE) {
                    let name = queue_name(self.subject());
                    let is_there = model.observe.queue.contains_key(name);
                    let names = || model.observe.queue.keys().map(String::as_str).collect();
                    return if is_there { Ok(()) } else { Err(unknown("watched queue", name, names())) };
                }
                let name = self.subject.text.as_str();
                let names = || model.workload.keys().map(String::as_str);
                let Some(workload) = model.workload.get(name) else {
                    return Err(unknown("workload", name, names().collect()));
                };
                if self.quantity.needs_end && workload.params().supply() == Supply::Endless {
                    let message = format!("the flows of `{name}` have no end, so nothing of them completes");
                    let allowed = format!("a workload whose messages have a size, or `throughput({name})`");
                    return Err(fail(message, &allowed));
                }
                if self.quantity.name != "deadline" || workload.params().deadline().is_some() {
                    return Ok(());
                }
                let with = model.workload.iter().filter(|(_, other)| other.params().deadline().is_some());
                let with: Vec<&str> = with.map(|(name, _)| name.as_str()).collect();
                let allowed = match with.is_empty() {
                    true => {
                        "a workload with the key `deadline`; no workload of the scenario has one".to_owned()
                    }
                    false => format!("a workload with the key `deadline`: {}", with.join(", ")),
                };
                Err(fail(format!("the messages of `{name}` have no deadline"), &allowed))
            }
            Of::Tier => {
                let tiers: Vec<&str> = model.topology.tiers().iter().copied().chain(["host"]).collect();
                let mut named = self.subject.text.split(ARROW);
                let missing = named.find(|name| !tiers.contains(name));
                missing.map_or(Ok(()), |name| Err(unknown("tier", name, tiers)))
            }
            Of::Host | Of::Pair | Of::Run => Ok(()),
        }
    }

    /// Checks what one of several models has to have at least: a lossless port, for drops there.
    ///
    /// # Errors
    /// Fails, pointing into `text`, if none has it.
    pub fn check_any<'a>(
        &self,
        text: &str,
        mut models: impl Iterator<Item = &'a Model>,
    ) -> Result<(), BadExpression> {
        let is_lossless = |model: &Model| {
            model.topology.tiers().iter().any(|tier| model.port.of_tier(tier).lossless().is_some())
        };
        let asks = matches!(self.quantity.of, Of::QueueOrLossless) && self.subject.text == LOSSLESS;
        if !asks || models.any(is_lossless) {
            return Ok(());
        }
        let allowed = "a scenario with the table `port.switch.lossless`, or that of a tier";
        let message = "no port of the scenario is lossless".to_owned();
        Err(BadExpression::new(text, self.subject.at.clone(), message, allowed))
    }
}

/// Returns the text of a measure without blanks beside its parentheses.
fn tidy(text: &str) -> String {
    let (head, inside) = text.split_once('(').unwrap_or((text, ""));
    let inside = inside.trim().strip_suffix(')').unwrap_or(inside);
    format!("{}({})", head.trim(), inside.trim())
}

#[cfg(test)]
mod tests;
