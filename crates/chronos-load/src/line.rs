//! Searches the highest rate at which servers meet every objective: their load line.
//!
//! Each rate has 4, 8, 16, ... rounds of an open loop, until the interval over the rounds decides
//! ([`plimsoll_stats::verdict`]); the rates are bisected until the interval of the line is as narrow as the resolution
//! ([`plimsoll_stats::search`], as for `plimsoll line`). A round in which the generator itself was too slow decides
//! nothing: it is repeated, and a rate at which that is the rule stays undecided. Its lag matters where it exceeds half
//! of the latency and half of the limit: latencies include it, so a smaller one does not turn a verdict.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::ensure;
use plimsoll_stats::search::{self, Ask, Found, Line, Search, SearchRange, SearchState};
use plimsoll_stats::verdict::{self, MessageShare, Verdict};
use plimsoll_stats::{Interval, LEVEL, mean_interval};
use serde::Serialize;

use crate::book::Book;
use crate::objective::{Objective, ObjectiveSample};
use crate::report::{Report, SuspectLimits};

/// The results of a phase of load, and whether they show the servers' limits.
#[derive(Clone, Debug)]
pub struct MeasuredPhase {
    /// The counts and distributions of all generators.
    pub book: Book,
    /// The report of these counts.
    pub report: Report,
    /// The reasons why a generator, rather than the servers, was too slow; empty if none was.
    pub generator: Vec<String>,
}

/// The measurements of one round of a rate.
#[derive(Clone, Debug)]
pub struct RateRound {
    /// Fewer operations ended than were due: the queue grows as long as the round lasts.
    overloaded: bool,
    /// The measurements for each objective.
    samples: Vec<ObjectiveSample>,
}

/// The objectives of a search.
#[derive(Clone, Debug)]
struct LoadObjectives(Vec<Objective>);

impl search::Objectives for LoadObjectives {
    type Run = RateRound;

    fn count(&self) -> usize {
        self.0.len()
    }

    /// A stall at the end of one round is not yet an overload, so most rounds have to agree.
    fn is_overloaded(&self, rounds: &[&RateRound]) -> bool {
        2 * rounds.iter().filter(|round| round.overloaded).count() > rounds.len()
    }

    fn judge(&self, objective: usize, rounds: &[&RateRound], level: f64) -> Verdict {
        let objective = (&self.0[objective], objective);
        let strains = strains(objective, rounds);
        if strains.len() < rounds.len() {
            return Verdict::Open;
        }
        let share = objective.0.allowed().map(|allowed| {
            let samples = rounds.iter().map(|round| round.samples[objective.1]);
            let (messages, over) =
                samples.fold((0, 0), |(of, over), sample| (of + sample.operations, over + sample.over));
            MessageShare { messages, over, allowed }
        });
        verdict::judge(&strains, share, level)
    }

    /// A mean has no rare rounds that are far over its limit.
    fn confirms(&self, objective: usize, rounds: &[&RateRound], level: f64) -> bool {
        let objective = (&self.0[objective], objective);
        objective.0.allowed().is_none() || verdict::confirms(&strains(objective, rounds), level)
    }

    fn may_decide(&self, objective: usize, rounds: &[&RateRound], most: u32, level: f64) -> bool {
        verdict::may_decide(&strains((&self.0[objective], objective), rounds), most, level)
    }

    fn strain(&self, objective: usize, rounds: &[&RateRound]) -> Option<f64> {
        plimsoll_stats::mean(&strains((&self.0[objective], objective), rounds))
    }
}

fn strains((objective, number): (&Objective, usize), rounds: &[&RateRound]) -> Vec<f64> {
    rounds.iter().filter_map(|round| objective.strain(&round.samples[number])).collect()
}

/// The line of servers, with all rates that were tried.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ServerLine {
    /// The result in a sentence.
    pub sentence: String,
    /// The objectives that a rate has to meet.
    pub slos: Vec<String>,
    /// The lowest rate that was to be tried, in operations a second.
    pub from: f64,
    /// The highest rate that was to be tried.
    pub to: f64,
    /// The wanted width of the interval, as a share of the rate.
    pub resolution: f64,
    /// The greatest number of rounds of a rate.
    pub rounds_max: u32,
    /// The line; its loads are rates in operations a second.
    #[serde(flatten)]
    pub line: Line,
    /// The rates that were tried, ascending.
    pub rates: Vec<AtRate>,
}

/// A rate that was tried.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AtRate {
    /// The rate in operations a second.
    pub rate: f64,
    /// Whether it meets every objective: `met`, `violated` or `undecided`.
    pub verdict: &'static str,
    /// The number of rounds that counted.
    pub rounds: usize,
    /// The number of rounds that decided nothing, since a generator was too slow.
    pub suspect_rounds: usize,
    /// The reasons of the first of them.
    pub suspect: Vec<String>,
    /// The measurements for each objective.
    pub objectives: Vec<AtObjective>,
}

/// The measurements of a rate for one objective, over all rounds that counted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AtObjective {
    /// The number that the objective limits, in microseconds.
    pub value_us: f64,
    /// The mean over the rounds of 'measured over allowed': above 1 violates the objective.
    pub strain: Option<f64>,
    /// The 95 % confidence interval of the strain.
    pub interval: Option<Interval>,
}

/// The measurements at one rate.
#[derive(Default)]
struct RateRounds {
    book: Book,
    counted: usize,
    suspect_rounds: usize,
    suspect: Vec<String>,
}

impl MeasuredPhase {
    /// Creates the results of generators that are one: this machine.
    pub fn new(book: Book, report: Report, limits: SuspectLimits) -> MeasuredPhase {
        let generator = generator_faults(&report, limits);
        MeasuredPhase { book, report, generator }
    }
}

/// Returns the reasons why the generator, rather than the server, was too slow.
///
/// Requests also leave late where the server reads too slowly for its sockets: then fewer operations end than are due,
/// and the generator has time left.
pub fn generator_faults(report: &Report, limits: SuspectLimits) -> Vec<String> {
    let has_time = report.generator_busy < BUSY && report.generator_waited <= limits.waited_share;
    if falls_short(report) && has_time { Vec::new() } else { report.generator_reasons(limits) }
}

/// Returns whether fewer operations ended than were due, beyond the few that a short round leaves open by chance.
fn falls_short(report: &Report) -> bool {
    let (due, completed) = (report.counts.due as f64, report.counts.completed as f64);
    due - completed > (SuspectLimits::default().short_share * due).max(4.0 * due.sqrt())
}

/// Searches the line: `measure` runs a round, of an index from 1, at a rate; `tell` is called when a rate is decided.
///
/// # Errors
/// Returns the error of a round, or an error if the server returned wrong values.
pub fn search(
    objectives: &[Objective],
    range: SearchRange,
    mut measure: impl FnMut(u8, f64) -> anyhow::Result<MeasuredPhase>,
    mut tell: impl FnMut(&str),
) -> anyhow::Result<ServerLine> {
    let mut search = Search::new(LoadObjectives(objectives.to_vec()), range);
    let mut rates: BTreeMap<u64, RateRounds> = BTreeMap::new();
    loop {
        let asks = search.asks();
        let Some(rate) = asks.first().map(|ask| ask.load) else { break };
        let rounds = rates.entry(rate.to_bits()).or_default();
        for ask in asks.into_iter().filter(|ask| ask.load == rate) {
            if !run(objectives, ask, rounds, &mut search, &mut measure)? {
                search.abandon(rate);
                break;
            }
        }
        match search.state_of(rate) {
            SearchState::Running => {}
            state => tell(&format!("{rate} operations/s: {}{}", word(state), rounds.note())),
        }
    }
    Ok(ServerLine::new(objectives, range, &search, &rates))
}

/// Runs a round until the generator was fast enough in it; false if it is too slow for this rate.
fn run(
    objectives: &[Objective],
    ask: Ask,
    rounds: &mut RateRounds,
    search: &mut Search<LoadObjectives>,
    measure: &mut impl FnMut(u8, f64) -> anyhow::Result<MeasuredPhase>,
) -> anyhow::Result<bool> {
    loop {
        let index = u8::try_from(ask.replicate + 1).expect("there are few rounds");
        let MeasuredPhase { book, report, generator } = measure(index, ask.load)?;
        ensure!(
            report.counts.wrong == 0,
            "at {} operations/s, {} values are wrong: {}",
            ask.load,
            report.counts.wrong,
            report.examples.join("; ")
        );
        if generator.is_empty() {
            let samples = objectives.iter().map(|objective| objective.measure(&book)).collect();
            search.take(ask, RateRound { overloaded: falls_short(&report), samples });
            rounds.book.add(&book);
            rounds.counted += 1;
            return Ok(true);
        }
        rounds.suspect_rounds += 1;
        if rounds.suspect.is_empty() {
            rounds.suspect = generator;
        }
        if rounds.suspect_rounds >= SUSPECT_ROUNDS_MAX && rounds.suspect_rounds > rounds.counted {
            return Ok(false);
        }
    }
}

impl RateRounds {
    fn note(&self) -> String {
        match self.suspect_rounds {
            0 => String::new(),
            count => format!(" ({} did not count: {})", rounds_in_words(count), self.suspect.join("; ")),
        }
    }
}

impl ServerLine {
    fn new(
        objectives: &[Objective],
        range: SearchRange,
        search: &Search<LoadObjectives>,
        rounds: &BTreeMap<u64, RateRounds>,
    ) -> ServerLine {
        let line = search.line();
        let taken: BTreeMap<u64, Vec<&RateRound>> =
            search.loads().map(|(rate, _, rounds)| (rate.to_bits(), rounds)).collect();
        let rates = rounds.iter().map(|(bits, rounds)| {
            let rate = f64::from_bits(*bits);
            let taken = taken.get(bits).cloned().unwrap_or_default();
            let at = |(number, objective): (usize, &Objective)| {
                let strains = strains((objective, number), &taken);
                let positive = |interval: Interval| Interval { low: interval.low.max(0.0), ..interval };
                AtObjective {
                    value_us: objective.value_us(&rounds.book),
                    strain: plimsoll_stats::mean(&strains),
                    interval: mean_interval(&strains, LEVEL).map(positive),
                }
            };
            AtRate {
                rate,
                verdict: word(search.state_of(rate)),
                rounds: taken.len(),
                suspect_rounds: rounds.suspect_rounds,
                suspect: rounds.suspect.clone(),
                objectives: objectives.iter().enumerate().map(at).collect(),
            }
        });
        let rates: Vec<AtRate> = rates.collect();
        let slos: Vec<String> = objectives.iter().map(|objective| objective.text.clone()).collect();
        ServerLine {
            sentence: sentence(&slos, &line, &rates),
            slos,
            from: range.low,
            to: range.high,
            resolution: range.precision,
            rounds_max: range.replicates_max,
            line,
            rates,
        }
    }

    /// Returns whether some rate meets every objective for certain.
    pub fn is_met(&self) -> bool {
        self.line.is_met()
    }
}

/// Writes the result in a sentence.
fn sentence(slos: &[String], line: &Line, rates: &[AtRate]) -> String {
    let what = slos.join(" and ");
    let lowest = rates.first().map_or(0.0, |at| at.rate);
    let mut text = match (line.low(), line.high()) {
        (None, Some(high)) if line.found() == Found::Never => {
            return format!("{what} is violated already at {high} operations/s, the lowest rate");
        }
        (None, Some(high)) => format!(
            "{what} is undecided at {lowest} operations/s, the lowest rate, and violated at {high}; no rate is \
             known to meet it"
        ),
        (None, None) => format!("{what} is undecided already at {lowest} operations/s, the lowest rate"),
        (Some(low), None) if line.found() == Found::Always => {
            return format!("{what} is met up to {low} operations/s, the highest rate");
        }
        (Some(low), None) => {
            format!("{what} is met up to {low} operations/s; no rate is known to violate it")
        }
        (Some(low), Some(high)) => {
            let load = search::rounded(line.load().unwrap_or(low));
            format!("{what} is met up to {load} operations/s (95 % interval {low} .. {high})")
        }
    };
    if slos.len() > 1
        && let Some(slo) = line.binding().and_then(|slo| slos.get(slo))
    {
        text.push_str(&format!("; {slo} is violated first"));
    }
    if line.is_not_monotone() {
        text.push_str("; a higher rate met it again, so the line is the first to be violated");
    }
    if let Some(slow) = rates.iter().find(|at| at.suspect_rounds > at.rounds) {
        text.push_str(&format!("; the generator was too slow to measure {} operations/s", slow.rate));
    }
    text
}

fn rounds_in_words(count: usize) -> String {
    if count == 1 { "1 round".to_owned() } else { format!("{count} rounds") }
}

fn word(state: SearchState) -> &'static str {
    match state {
        SearchState::Keeps => "met",
        SearchState::Sinks => "violated",
        SearchState::Open | SearchState::Running => "undecided",
    }
}

impl fmt::Display for ServerLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12}  {:9}  {:>6}  {:>7}", "operations/s", "verdict", "rounds", "suspect")?;
        for slo in &self.slos {
            let name = slo.split(' ').next().unwrap_or(slo);
            write!(f, "  {:>10}  {:>26}", format!("{name} us"), format!("of {slo}"))?;
        }
        writeln!(f)?;
        for at in &self.rates {
            let AtRate { rate, verdict, rounds, suspect_rounds, .. } = at;
            write!(f, "{rate:12}  {verdict:9}  {rounds:6}  {suspect_rounds:7}")?;
            for objective in &at.objectives {
                let strain = match (objective.strain, objective.interval) {
                    (Some(strain), Some(Interval { low, high })) => {
                        format!("{strain:.3}x ({low:.3} .. {high:.3})")
                    }
                    (Some(strain), None) => format!("{strain:.3}x"),
                    (None, _) => String::new(),
                };
                write!(f, "  {:10.1}  {strain:>26}", objective.value_us)?;
            }
            writeln!(f)?;
        }
        for at in &self.rates {
            for reason in &at.suspect {
                let rounds = rounds_in_words(at.suspect_rounds);
                writeln!(f, "SUSPECT: {} operations/s, {rounds}: {reason}", at.rate)?;
            }
        }
        writeln!(f, "{}", self.sentence)
    }
}

/// A generator that is busy for less than this share of the time has time left.
const BUSY: f64 = 0.9;
/// A rate is not measured further once it has this many suspect rounds, and more of them than valid ones.
const SUSPECT_ROUNDS_MAX: usize = 4;

#[cfg(test)]
mod tests;
