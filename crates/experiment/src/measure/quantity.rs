//! [`QUANTITIES`]: everything that can be measured in a run, with the subject, the unit and the samples of each.

use plimsoll_results::by_rank::Ranks;
use plimsoll_stats::expression::{BadExpression, Word};
use plimsoll_units::{Rate, Span, parse_share};

use super::asked::{ALL, LOSSLESS, QUEUE, QuantityQuestion, SizeLimit, Value, number_of_host, pair_of_hosts};
use super::{bursts, circuits, hosts, links, samples, windows};

/// Something that a run has samples of.
pub struct Quantity {
    /// The name of the quantity in a measure, such as `goodput`.
    pub name: &'static str,
    /// The meaning of the samples, as the reference explains it.
    pub doc: &'static str,
    /// The unit in which its samples are counted.
    pub unit: Unit,
    /// Whether a run has one number of it rather than samples.
    pub is_one: bool,
    /// Whether it is of messages that complete, which flows without an end never do.
    pub needs_end: bool,
    pub(super) of: Of,
    pub(super) arguments: &'static [Argument],
    pub(super) samples: Samples,
    /// For each message that did not complete, a value that its sample would have exceeded; `None` where such a message
    /// has none.
    pub(super) so_far: Option<fn(&QuantityQuestion<'_>) -> Vec<f64>>,
}

/// The function that answers a question.
#[derive(Clone, Copy)]
pub(super) enum Samples {
    One(fn(&QuantityQuestion<'_>) -> Option<f64>),
    Many(fn(&QuantityQuestion<'_>) -> Vec<f64>),
}

impl Samples {
    pub(super) fn of(self, asked: &QuantityQuestion<'_>) -> Vec<f64> {
        match self {
            Samples::One(number) => number(asked).into_iter().collect(),
            Samples::Many(samples) => samples(asked),
        }
    }
}

impl std::fmt::Debug for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The unit of a quantity's samples, in which limits are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Microseconds, unless another unit of time is requested.
    Time,
    /// A count of something.
    Count,
    /// Samples are in this unit.
    Fixed(&'static str),
}

/// The kind of subject that a quantity has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    Workload,
    WorkloadOrQueue,
    Queue,
    /// A watched queue, or all buffers that promise to drop nothing.
    QueueOrLossless,
    Host,
    /// A tier of switches, whose links are all that lead to or from it, or the two tiers that links connect.
    Tier,
    Pair,
    Run,
}

/// The type of an argument of a quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Argument {
    Count,
    Bytes,
    Span,
    Sizes,
    Numbers,
    Group,
}

impl Quantity {
    /// Returns how a measure of it is written: `slowdown.AGGREGATE(WORKLOAD, SIZES)`.
    pub fn form(&self) -> String {
        let subject = match self.of {
            Of::Workload => "WORKLOAD",
            Of::WorkloadOrQueue => "WORKLOAD or queue.NAME",
            Of::Queue => "queue.NAME",
            Of::QueueOrLossless => "queue.NAME or lossless",
            Of::Host => "host.NUMBER",
            Of::Tier => "TIER or TIER -> TIER",
            Of::Pair => "host.NUMBER -> host.NUMBER",
            Of::Run => "",
        };
        let arguments = self.arguments.iter().map(|argument| match argument {
            Argument::Count => "COUNT",
            Argument::Bytes => "SIZE",
            Argument::Span => "TIME",
            Argument::Sizes => "SIZE..SIZE or rank SHARE..SHARE",
            Argument::Numbers => "FIRST..END",
            Argument::Group => "GROUP",
        });
        let inside: Vec<&str> =
            std::iter::once(subject).filter(|of| !of.is_empty()).chain(arguments).collect();
        let aggregate = if self.is_one { "" } else { ".AGGREGATE" };
        format!("{}{aggregate}({})", self.name, inside.join(", "))
    }
}

impl Unit {
    /// Returns the allowed units in words, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Time => "us, ms",
            Unit::Count => "any",
            Unit::Fixed(name) => name,
        }
    }

    /// Reads a limit in this unit: us, Mb/s, Gb/s, percent, or a plain number.
    ///
    /// # Errors
    /// Returns the reason and the place in `text`.
    pub fn read(self, text: &str, word: &Word) -> Result<f64, BadExpression> {
        let here = word.text.as_str();
        let rate = |scale: f64| {
            here.parse::<Rate>().map(|rate| rate.as_mbps_f64() * scale).map_err(|e| e.to_string())
        };
        let fail =
            |message: String, allowed: &str| BadExpression::new(text, word.at.clone(), message, allowed);
        let read = match self {
            Unit::Time => here.parse::<Span>().map(Span::as_us_f64).map_err(|error| error.to_string()),
            Unit::Fixed("Mb/s") => rate(1.0),
            Unit::Fixed("Gb/s") => rate(1e-3),
            Unit::Fixed("%") => {
                let is_plain = here.bytes().all(|byte| byte.is_ascii_digit() || b".% ".contains(&byte));
                let share = parse_share(here).ok().filter(|_| is_plain && here.ends_with('%'));
                return share
                    .filter(|share| (0.0..1.0).contains(share))
                    .map(|share| 100.0 * share)
                    .ok_or_else(|| {
                        fail(format!("`{here}` does not fit"), "a percentage below 100%, such as 99%")
                    });
            }
            Unit::Count | Unit::Fixed(_) => {
                let number = here.parse().ok().filter(|number: &f64| number.is_finite());
                return number.ok_or_else(|| fail(format!("`{here}` does not fit"), "a number"));
            }
        };
        match read {
            Ok(limit) if limit > 0.0 => Ok(limit),
            Ok(_) => Err(fail("a limit of nothing".to_owned(), "more than 0")),
            Err(message) => Err(fail(message, "")),
        }
    }
}

impl Of {
    /// Checks the form of a subject.
    pub(super) fn check(self, text: &str, subject: &Word) -> Result<(), BadExpression> {
        let name = subject.text.as_str();
        let fits = match self {
            Of::Workload => !name.is_empty() && !name.starts_with(QUEUE),
            Of::WorkloadOrQueue => !name.is_empty(),
            Of::QueueOrLossless if name == LOSSLESS => true,
            Of::Queue | Of::QueueOrLossless => name.strip_prefix(QUEUE).is_some_and(|name| !name.is_empty()),
            Of::Host => number_of_host(name).is_some(),
            Of::Tier => !name.is_empty(),
            Of::Pair => pair_of_hosts(name).is_some(),
            Of::Run => name.is_empty() || name == ALL,
        };
        let allowed = match self {
            Of::Workload => "the name of a workload, or * for all",
            Of::WorkloadOrQueue => "the name of a workload, queue.NAME, or * for all",
            Of::Queue => "queue.NAME, a queue that [observe] watches",
            Of::QueueOrLossless => {
                "queue.NAME, a queue that [observe] watches, or lossless: all buffers of `port.*.lossless` together"
            }
            Of::Host => "host.NUMBER",
            Of::Tier => {
                "a tier, such as leaf, the tiers that links connect, such as leaf -> spine, or * for all links"
            }
            Of::Pair => "host.NUMBER -> host.NUMBER",
            Of::Run => "nothing",
        };
        let message = || match name.is_empty() {
            true => "this names no subject".to_owned(),
            false => format!("`{name}` is no subject of this number"),
        };
        if fits { Ok(()) } else { Err(BadExpression::new(text, subject.at.clone(), message(), allowed)) }
    }
}

impl Argument {
    pub(super) fn is_optional(self) -> bool {
        matches!(self, Argument::Sizes | Argument::Group)
    }

    pub(super) fn allowed(self) -> &'static str {
        match self {
            Argument::Count => "a whole number",
            Argument::Bytes => "a size, such as 100KB",
            Argument::Span => "a time, such as 1.5ms",
            Argument::Sizes => {
                "sizes from above the first to the second, such as 0..100KB, 6666packets.., or ranks by size, such as \
                 rank 0..65%"
            }
            Argument::Numbers => "whole numbers from the first to before the second, such as 20..60",
            Argument::Group => "the name of a communication group of the job, such as dp",
        }
    }

    pub(super) fn read(self, text: &str, word: &Word) -> Result<Value, BadExpression> {
        let read = match self {
            Argument::Count => word.text.parse().ok().map(Value::Count),
            Argument::Bytes => word.text.parse().ok().map(Value::Bytes),
            Argument::Span => word.text.parse().ok().map(Value::Span),
            Argument::Sizes if word.text.starts_with(RANK) => {
                Ranks::read(&word.text[RANK.len()..]).map(Value::Ranks)
            }
            Argument::Sizes => word.text.split_once("..").and_then(|(over, up_to)| {
                let over = if over.trim() == "0" { Some(SizeLimit::Bytes(0)) } else { SizeLimit::read(over) };
                let up_to =
                    if up_to.trim().is_empty() { Some(SizeLimit::Unlimited) } else { SizeLimit::read(up_to) };
                Some(Value::Sizes(over?, up_to?))
            }),
            Argument::Numbers => word.text.split_once("..").and_then(|(first, end)| {
                Some(Value::Numbers(first.trim().parse().ok()?..end.trim().parse().ok()?))
            }),
            Argument::Group => Some(Value::Name(word.text.clone())),
        };
        read.ok_or_else(|| {
            let message = format!("`{}` does not fit", word.text);
            BadExpression::new(text, word.at.clone(), message, self.allowed())
        })
    }
}

/// The word before a range of ranks.
const RANK: &str = "rank ";

const fn many(
    name: &'static str,
    of: Of,
    unit: Unit,
    samples: fn(&QuantityQuestion<'_>) -> Vec<f64>,
) -> Quantity {
    let samples = Samples::Many(samples);
    Quantity {
        name,
        doc: "",
        unit,
        is_one: false,
        needs_end: false,
        of,
        arguments: &[],
        samples,
        so_far: None,
    }
}

const fn one(
    name: &'static str,
    of: Of,
    unit: Unit,
    number: fn(&QuantityQuestion<'_>) -> Option<f64>,
) -> Quantity {
    let samples = Samples::One(number);
    Quantity {
        name,
        doc: "",
        unit,
        is_one: true,
        needs_end: false,
        of,
        arguments: &[],
        samples,
        so_far: None,
    }
}

impl Quantity {
    const fn with(self, arguments: &'static [Argument]) -> Quantity {
        Quantity { arguments, ..self }
    }

    const fn doc(self, doc: &'static str) -> Quantity {
        Quantity { doc, ..self }
    }

    const fn so_far(self, so_far: fn(&QuantityQuestion<'_>) -> Vec<f64>) -> Quantity {
        Quantity { so_far: Some(so_far), ..self }
    }

    const fn one(self) -> Quantity {
        Quantity { is_one: true, ..self }
    }

    const fn complete(self) -> Quantity {
        Quantity { needs_end: true, ..self }
    }
}

const PERCENT: Unit = Unit::Fixed("%");
const MBPS: Unit = Unit::Fixed("Mb/s");
const GBPS: Unit = Unit::Fixed("Gb/s");
const GBYTES: Unit = Unit::Fixed("GB/s");
const KB: Unit = Unit::Fixed("KB");

/// Everything that can be measured in a run.
pub static QUANTITIES: &[Quantity] = &[
    // Of workloads.
    many("time", Of::Workload, Unit::Time, samples::time).complete().doc(
        "completion times: of queries or rounds where a workload has such, of messages elsewhere; of what it \
             observes, such as a clock's offset, if it does",
    ),
    many("message", Of::Workload, Unit::Time, samples::message)
        .complete()
        .doc("completion times of messages, also of those that are part of a query"),
    many("response", Of::Workload, Unit::Time, samples::response)
        .complete()
        .doc("mean completion time over the servers of a query"),
    many("fastest", Of::Workload, Unit::Time, samples::fastest)
        .complete()
        .doc("completion time of a query's fastest server"),
    many("skew", Of::Workload, Unit::Time, samples::skew)
        .complete()
        .doc("how long after the fastest server of a query, or the first rank of a job, the last one ended"),
    many("stretch", Of::Workload, Unit::Fixed("x ideal"), samples::stretch)
        .complete()
        .doc("time of a job's iteration over that with idle links, but for other messages of the same ends"),
    many("algbw", Of::Workload, GBYTES, samples::algbw)
        .complete()
        .doc("size of a collective operation, or the payload of a job, over the time of its iteration (nccl-tests)"),
    many("busbw", Of::Workload, GBYTES, samples::busbw)
        .complete()
        .doc("what a link carries at least in an iteration of a job, over its time (nccl-tests)"),
    many("exposed", Of::Workload, Unit::Time, samples::exposed)
        .complete()
        .with(&[Argument::Group])
        .doc("time of a rank in an iteration in which it waited for messages of a group and computed nothing"),
    many("in_deadline", Of::Workload, Unit::Count, samples::in_deadline)
        .complete()
        .doc("servers of a query that answered within the deadline"),
    many("shown", Of::Workload, PERCENT, samples::shown)
        .complete()
        .doc("the parts of a query, such as the retrievals of a page, that its answer has"),
    many("paint", Of::Workload, Unit::Time, samples::paint).complete().with(&[Argument::Count]).doc(
        "from a query's creation until so many percent of its parts have come: the first paint of a page that is \
             rendered incrementally",
    ),
    many("age", Of::Workload, Unit::Time, samples::age)
        .complete()
        .doc("age of a query's oldest part, since it has come, when the query is complete"),
    one("unfinished", Of::Workload, Unit::Count, samples::unfinished)
        .complete()
        .doc("queries, and messages that belong to none, that are not complete at the end"),
    many("unfinished_queries", Of::Workload, PERCENT, samples::unfinished_queries)
        .complete()
        .doc("queries that are not complete at the end, of all queries"),
    many("slowdown", Of::Workload, Unit::Fixed("x idle"), samples::slowdown)
        .complete()
        .with(&[Argument::Sizes])
        .so_far(samples::slowdown_so_far)
        .doc(
            "completion time over the one of idle links, of messages of some sizes; `rank 0..65%` are the smallest \
             65 % of all messages, whether complete or not (ties by creation)",
        ),
    one("deadline", Of::Workload, PERCENT, samples::deadline)
        .complete()
        .doc("messages, or responses of queries, that met their deadline"),
    one("goodput", Of::Workload, MBPS, samples::goodput)
        .complete()
        .doc("completed payload over the time in which the workload was active"),
    one("payload", Of::Workload, GBPS, samples::payload)
        .doc("payload of completed messages, from the warm-up to the last creation"),
    one("per_second", Of::Workload, Unit::Fixed("1/s"), samples::per_second)
        .doc("messages, or queries, completed per second, from the warm-up to the last creation"),
    one("recovered", Of::Workload, PERCENT, samples::recovered)
        .doc("messages that waited for a segment sent again"),
    one("retransmissions", Of::Workload, Unit::Count, samples::retransmissions)
        .doc("segments that were sent again"),
    one("timeouts", Of::Workload, Unit::Count, samples::timeouts).doc("retransmission timeouts"),
    many("window", Of::Workload, Unit::Count, windows::segments)
        .with(&[Argument::Bytes])
        .doc("congestion windows of connections in segments of so many bytes; needs observe.flow_series"),
    many("window_cuts", Of::Workload, Unit::Count, windows::cuts)
        .doc("how often the congestion window of a connection was cut; needs observe.flow_series"),
    many("window_kept", Of::Workload, PERCENT, windows::kept).doc(
        "what the congestion window of a connection kept of the largest before; needs observe.flow_series",
    ),
    many("flow_rate", Of::Workload, MBPS, windows::rates).doc(
        "payload of a connection that was acknowledged to its sender in an interval of observe.flow_series after the \
             warm-up, one sample an interval",
    ),
    // Of watched queues and their links.
    many("delay", Of::Queue, Unit::Time, samples::delay)
        .doc("means over intervals of a watched queue, as delay, from its first packet to its last"),
    many("delay_until_done", Of::Queue, Unit::Time, samples::delay_until_done)
        .doc("the same, of all intervals until the last message was complete"),
    many("throughput", Of::WorkloadOrQueue, MBPS, samples::throughput).one().doc(
        "payload that a workload delivered in the measurement window, from the warm-up to run.duration (in simulated \
             runs); or what passed a watched queue; or, of *, what all workloads sent for the first time, by interval",
    ),
    one("drops", Of::QueueOrLossless, Unit::Count, samples::drops).doc(
        "packets that found no room in a watched queue; or, of `lossless`, packets of lossless priorities that found \
             none in any buffer of `port.*.lossless`",
    ),
    one("marks", Of::Queue, Unit::Count, samples::marks).doc("packets that a watched queue marked with CE"),
    one("time_up_to", Of::Queue, PERCENT, samples::time_up_to)
        .with(&[Argument::Bytes])
        .doc("the time in which at most so many bytes waited in a watched queue"),
    many("burst", Of::Queue, Unit::Time, bursts::lengths)
        .doc("bursts of a link: packets with less than 40 ns between them; needs captured packets"),
    many("burst_packets", Of::Queue, Unit::Count, bursts::packets)
        .doc("the same bursts, in packets of full size"),
    many("pair_burst", Of::Queue, Unit::Count, bursts::of_pairs)
        .doc("bursts from one host to another on a link, in packets; needs captured packets"),
    many("pair_data_burst", Of::Queue, Unit::Count, bursts::of_pairs_with_data)
        .doc("the same bursts of packets with data alone"),
    one("ack_ratio", Of::Queue, KB, bursts::ack_ratio)
        .doc("what a pure acknowledgement on a link acknowledges anew; needs captured packets"),
    one("path_cache", Of::Queue, PERCENT, bursts::path_cache)
        .with(&[Argument::Count])
        .doc("packets on a link to one of so many destinations that were used last; needs captured packets"),
    one("path_changes", Of::Queue, Unit::Fixed("/MB"), bursts::path_changes).with(&[Argument::Span]).doc(
        "pauses of connections longer than this, for each megabyte of data on a link; needs captured packets",
    ),
    many("day_filled", Of::Queue, PERCENT, bursts::day_filled).with(&[Argument::Span]).doc(
        "how far days of this length would be filled by data to one destination; needs captured packets",
    ),
    // Of links between tiers.
    one("most_used", Of::Tier, Unit::Fixed("of the mean"), links::most_used).doc(
        "the bytes of the most used link of a tier over the mean of the tier's links; needs observe.links",
    ),
    one("pause_time", Of::Tier, PERCENT, links::pause_time).doc(
        "share of the time, from the warm-up to run.duration, in which links were paused: the mean of all links that \
             lead to or from a tier, or from one tier to another; needs observe.links",
    ),
    // Of all ports with trimming.
    one("trimmed", Of::Run, Unit::Count, samples::trimmed)
        .doc("packets that lost their payload at a full queue, in the whole run"),
    one("bounced", Of::Run, Unit::Count, samples::bounced)
        .doc("trimmed packets that were sent back to their senders, in the whole run"),
    // Of hosts.
    one("processor", Of::Host, PERCENT, hosts::processor).doc("how busy the busiest core of a host was"),
    one("processor_per_kb", Of::Host, Unit::Fixed("ns"), hosts::processor_per_kb)
        .doc("time of all cores of a host for each kilobyte delivered anywhere; needs observe.goodput_every"),
    one("ring_drops", Of::Run, Unit::Count, hosts::ring_drops)
        .doc("packets that found no room in receive rings"),
    one("delivered", Of::Run, GBPS, hosts::delivered)
        .with(&[Argument::Count])
        .doc("payload delivered after the warm-up, for each of so many senders; needs observe.goodput_every"),
    // Of circuits.
    many("circuit", Of::Pair, PERCENT, circuits::percent).doc(
        "what circuits from one host to another carried in a week, of a circuit that stands all the week",
    ),
    one("circuit_rate", Of::Host, MBPS, circuits::rate)
        .with(&[Argument::Span, Argument::Numbers])
        .doc("what circuits to a host carried in these weeks of this length"),
    one("circuits_filled", Of::Run, PERCENT, circuits::filled)
        .doc("what circuits carried of what they could have carried"),
    one("circuits_wasted", Of::Run, PERCENT, circuits::wasted)
        .doc("time of circuits that were filled to less than 90 %"),
    one("packet_switch", Of::Run, Unit::Fixed("MB"), circuits::packet_switch)
        .doc("what passed the packet switch of a hybrid network between racks"),
    many("demand_known", Of::Run, KB, circuits::known)
        .doc("the demand for which a week of circuits was scheduled"),
    one("demand_sent", Of::Run, PERCENT, circuits::known_sent)
        .doc("what of that demand had been sent by the end of its week"),
    many("reaction", Of::Run, Unit::Time, circuits::reaction).with(&[Argument::Span, Argument::Span]).doc(
        "from the first data of an idle pair of hosts to its first packet by a new circuit, with weeks of \
             this length and demand read this long before",
    ),
    many("reaction_reading", Of::Run, Unit::Time, circuits::reaction_reading)
        .with(&[Argument::Span, Argument::Span])
        .doc("the part of a reaction until the demand was read"),
    many("reaction_night", Of::Run, Unit::Time, circuits::reaction_night)
        .with(&[Argument::Span, Argument::Span])
        .doc("the part of a reaction from the week's beginning until the circuit stood"),
    many("reaction_packet", Of::Run, Unit::Time, circuits::reaction_packet)
        .with(&[Argument::Span, Argument::Span])
        .doc("the part of a reaction from then until the packet had reached the circuit switch"),
];
