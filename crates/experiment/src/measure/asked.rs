//! [`QuantityQuestion`]: a question to a run, which each [`super::Quantity`] answers with its samples.

use std::ops::Range;

use plimsoll_results::by_rank::Ranks;
use plimsoll_results::outcome::{MessageRecord, Outcome, QueueObservation};
use plimsoll_units::{Bytes, Span, Time};

/// The unit in which times are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// Times are in microseconds.
    Us,
    /// Times are in milliseconds.
    Ms,
}

impl TimeUnit {
    /// Returns a length of time in this unit.
    pub fn of(self, span: Span) -> f64 {
        match self {
            TimeUnit::Us => span.as_us_f64(),
            TimeUnit::Ms => span.as_ms_f64(),
        }
    }

    /// Returns microseconds in this unit.
    fn of_us(self, us: f64) -> f64 {
        match self {
            TimeUnit::Us => us,
            TimeUnit::Ms => us / 1e3,
        }
    }

    /// Returns milliseconds in this unit.
    fn of_ms(self, ms: f64) -> f64 {
        match self {
            TimeUnit::Us => ms * 1e3,
            TimeUnit::Ms => ms,
        }
    }
}

/// The value of an argument, by the type that the quantity takes.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Count(u64),
    Bytes(Bytes),
    Span(Span),
    /// Sizes of messages from above the first to the second.
    Sizes(SizeLimit, SizeLimit),
    /// Messages by the rank of their size.
    Ranks(Ranks),
    /// Numbers from the first to before the second.
    Numbers(Range<u64>),
    /// The name of a part of the subject.
    Name(String),
}

/// A limit for the size of a message.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum SizeLimit {
    Bytes(u64),
    /// Packets of 1460 B of payload.
    Packets(u64),
    Unlimited,
}

/// The prefix of a subject that is a watched queue.
pub(super) const QUEUE: &str = "queue.";
/// The prefix of a subject that is a host.
const HOST: &str = "host.";
/// The subject that means all buffers of lossless ports together.
pub(super) const LOSSLESS: &str = "lossless";
/// The subject that means all workloads, queues or hosts together.
pub(super) const ALL: &str = "*";

/// A question to a run, for one quantity.
pub(super) struct QuantityQuestion<'a> {
    pub(super) outcome: &'a Outcome,
    /// Samples that began earlier do not count.
    pub(super) warmup: Span,
    /// The subject: a workload, `queue.NAME`, `host.NUMBER`, a tier or a pair of hosts.
    pub(super) subject: &'a str,
    pub(super) arguments: &'a [Value],
    pub(super) time_unit: TimeUnit,
}

impl<'a> QuantityQuestion<'a> {
    pub(super) fn is_all(&self) -> bool {
        self.subject == ALL
    }

    /// Returns the number of the workload; `None` if the run has none of that name.
    pub(super) fn workload(&self) -> Option<usize> {
        self.outcome.workloads.iter().position(|info| info.name == self.subject)
    }

    /// Returns whether a record of the workload of this number counts.
    pub(super) fn has(&self, workload: u16) -> bool {
        self.is_all() || self.workload() == Some(usize::from(workload))
    }

    pub(super) fn counts(&self, created: Time) -> bool {
        created.as_ps() >= self.warmup.as_ps()
    }

    pub(super) fn queue_name(&self) -> &'a str {
        queue_name(self.subject)
    }

    pub(super) fn queue(&self) -> Option<&'a QueueObservation> {
        self.outcome.queues.iter().find(|queue| queue.name == self.queue_name())
    }

    pub(super) fn host(&self) -> u32 {
        number_of_host(self.subject).expect("checked when it was read")
    }

    pub(super) fn pair(&self) -> (u32, u32) {
        pair_of_hosts(self.subject).expect("checked when it was read")
    }

    pub(super) fn time(&self, span: Span) -> f64 {
        self.time_unit.of(span)
    }

    pub(super) fn us(&self, us: f64) -> f64 {
        self.time_unit.of_us(us)
    }

    pub(super) fn ms(&self, ms: f64) -> f64 {
        self.time_unit.of_ms(ms)
    }

    pub(super) fn span(&self, place: usize) -> Span {
        match self.arguments[place] {
            Value::Span(span) => span,
            ref other => unreachable!("argument {place} is {other:?}"),
        }
    }

    pub(super) fn bytes(&self, place: usize) -> u64 {
        match self.arguments[place] {
            Value::Bytes(bytes) => bytes.get(),
            ref other => unreachable!("argument {place} is {other:?}"),
        }
    }

    pub(super) fn count(&self, place: usize) -> u64 {
        match self.arguments[place] {
            Value::Count(count) => count,
            ref other => unreachable!("argument {place} is {other:?}"),
        }
    }

    pub(super) fn numbers(&self, place: usize) -> Range<u64> {
        match &self.arguments[place] {
            Value::Numbers(range) => range.clone(),
            other => unreachable!("argument {place} is {other:?}"),
        }
    }

    /// Returns the messages of the workload that count and that the argument selects by their size, or by the rank of
    /// their size among all that count, in order of creation.
    pub(super) fn messages(&self) -> Vec<&'a MessageRecord> {
        let counted = self.outcome.messages.iter();
        let counted = counted.filter(|message| self.has(message.workload) && self.counts(message.created));
        match self.arguments.first() {
            Some(Value::Ranks(ranks)) => ranks.of(counted),
            Some(&Value::Sizes(over, up_to)) => {
                let is_within = |bytes| over.is_below(bytes) && !up_to.is_below(bytes);
                counted.filter(|message| is_within(message.bytes)).collect()
            }
            _ => counted.collect(),
        }
    }
}

impl SizeLimit {
    pub(super) fn read(text: &str) -> Option<SizeLimit> {
        let text = text.trim();
        match text.strip_suffix("packets") {
            Some(count) => count.trim().parse().ok().map(SizeLimit::Packets),
            None => text.parse::<Bytes>().ok().map(|bytes| SizeLimit::Bytes(bytes.get())),
        }
    }

    /// Returns whether a message of `bytes` is larger.
    pub(super) fn is_below(self, bytes: u64) -> bool {
        match self {
            SizeLimit::Bytes(limit) => bytes > limit,
            SizeLimit::Packets(limit) => bytes.div_ceil(SEGMENT_BYTES) > limit,
            SizeLimit::Unlimited => false,
        }
    }
}

/// Payload of a full packet of 1500 B.
pub const SEGMENT_BYTES: u64 = 1460;

/// Returns the name of a watched queue.
pub(super) fn queue_name(subject: &str) -> &str {
    subject.strip_prefix(QUEUE).unwrap_or(subject)
}

pub(super) fn number_of_host(text: &str) -> Option<u32> {
    text.trim().strip_prefix(HOST)?.parse().ok()
}

pub(super) fn pair_of_hosts(text: &str) -> Option<(u32, u32)> {
    let (from, to) = text.split_once("->")?;
    Some((number_of_host(from)?, number_of_host(to)?))
}
