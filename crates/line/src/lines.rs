//! [`Lines`]: the result of a search for every variant, with all values of its tables and figures.

use std::collections::BTreeSet;

use plimsoll_experiment::slo::{Metric, Slo};
use plimsoll_report::figures;
use plimsoll_results::stats::{Estimate, Interval};
use plimsoll_scenario::ScenarioWarning;
use serde::{Deserialize, Serialize};

use crate::measure::{Run, SloSample, estimate, slow_when_idle, strain};
use crate::over::Over;
use crate::question::AskedLine;
use crate::reach::Reach;
use plimsoll_stats::search::{Judged, Side};

use crate::search::{ExpectedLines, Found, Line, SearchState, VariantSearch};

/// The load lines of all variants, with the question that they answer: the content of `lines.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Lines {
    /// The scenario's title.
    pub title: String,
    /// The key of the scenario whose value was searched, with its unit and range.
    pub over: Over,
    /// The objectives that every variant is searched for.
    pub slos: Vec<Slo>,
    /// The value that the headroom is measured from; `None` for a key that the scenario does not have.
    pub at: Option<f64>,
    /// The wanted width of an interval, as a share of the load.
    pub precision: f64,
    /// The greatest number of runs of one load.
    pub replicates_max: u32,
    /// The lines of the variants, in the order of the scenario.
    pub variants: Vec<LineVariant>,
    /// The warnings about the scenario, as `plimsoll run` prints them.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// The load line of one variant, with the runs that decided it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LineVariant {
    /// The variant, with its point of a sweep if there is one.
    pub name: String,
    /// The line that the search found, or the reason why there is none.
    #[serde(flatten)]
    pub line: Line,
    /// The line divided by today's load, or the inverse for a key whose larger values meet the objectives: above 1
    /// there is headroom.
    pub headroom: Option<f64>,
    /// Whether the load of today meets every objective.
    pub today: SearchState,
    /// The load below which too little is offered for a goodput objective, where that is in the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// The reason why no load meets every objective, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The bottleneck: the component of the latency that grew most.
    pub part: Option<Part>,
    /// A workload that the network did not carry at the lowest violated load: its messages were still open when the run
    /// ended.
    pub undrained: Option<String>,
    /// The reason why the interval is wider than the wanted one, where the time ended the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    /// The paired difference from the first variant, where the intervals of the two overlap.
    pub versus: Option<Versus>,
    /// Whether the key has no effect in the variant: each run at one end of the range equals that at the other end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_without_effect: bool,
    /// Every load that was run, ascending, with its verdict.
    pub loads: Vec<AtLoad>,
}

/// The component of the latency that grew most on the way to the line, among the messages that the binding
/// objective is about.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The name of the component, as in the tables of `plimsoll run`.
    pub name: String,
    /// The growth of the component, in us a message.
    pub grew_us: f64,
    /// Its share of the growth of all components (0..=1).
    pub share: f64,
    /// The load at which the growth begins: the one farthest from the line where the objectives are met.
    pub from: f64,
    /// The load at which the growth ends: the one nearest to the line that violates an objective.
    pub to: f64,
}

/// Two variants at one load, run by run with the same messages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Versus {
    /// The load at which both variants were run.
    pub load: f64,
    /// The index of the objective in [`Lines::slos`].
    pub slo: usize,
    /// The number of pairs of runs with the same seed.
    pub runs: usize,
    /// The distance of the first variant from the limit there: measured over allowed.
    pub base: f64,
    /// The paired difference from the first variant: the mean over runs of the difference of 'measured over allowed'.
    pub difference: f64,
    /// The 95 % confidence interval of the difference.
    pub interval: Option<Interval>,
}

/// The runs of one variant at one load, and their verdict.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AtLoad {
    /// The load of the runs, in the unit of the search.
    pub load: f64,
    /// Whether the load meets every objective: met, violated or undecided.
    pub state: SearchState,
    /// The number of runs at this load.
    pub runs: usize,
    /// The metric of each objective, in us, Mb/s or as a share.
    pub metrics: Vec<Option<Estimate>>,
    /// For each objective, measured over allowed: above 1 violates it.
    pub strains: Vec<Option<f64>>,
    /// A workload whose messages were still open at the end of a run.
    pub undrained: Option<String>,
    /// Facts that the reader must know before trusting the runs, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Lines {
    /// Returns the lines by variant, as the expectation for a search of a larger network.
    pub fn expected(&self) -> ExpectedLines {
        self.variants.iter().map(|variant| (variant.name.clone(), variant.line.clone())).collect()
    }

    /// The variants whose objectives the load of today violates: significantly, or by the best estimate where it is too
    /// near to the line, or because no load is known to meet them.
    pub fn overloaded(&self) -> Vec<&LineVariant> {
        let over = |variant: &&LineVariant| match variant.today {
            SearchState::Keeps => false,
            SearchState::Sinks => true,
            SearchState::Open | SearchState::Running => {
                !variant.line.is_met() || variant.headroom.is_some_and(|headroom| headroom < 1.0)
            }
        };
        self.variants.iter().filter(over).collect()
    }

    /// Whether some load meets every objective in one variant at least.
    pub fn is_met(&self) -> bool {
        self.variants.iter().any(|variant| variant.line.is_met())
    }

    /// Returns the objectives in words, joined by `and`.
    pub fn objectives(&self) -> String {
        self.slos.iter().map(|slo| slo.text.as_str()).collect::<Vec<_>>().join(" and ")
    }

    /// Writes one sentence a variant, which begins with its name and a colon.
    pub fn sentences(&self) -> Vec<String> {
        self.variants.iter().enumerate().map(|(number, variant)| self.sentence(number, variant)).collect()
    }

    fn sentence(&self, number: usize, variant: &LineVariant) -> String {
        let shown = |load: f64| self.over.shown(load);
        let line = &variant.line;
        let mut text = format!("{}: ", variant.name);
        let (head, is_whole) = if self.over.is_load() { self.of_load(variant) } else { self.of_key(variant) };
        text.push_str(&head);
        if is_whole {
            return text;
        }
        if self.slos.len() > 1
            && let Some(slo) = line.binding().and_then(|slo| self.slos.get(slo))
        {
            text.push_str(&format!("; {} is violated first", slo.text));
        }
        match (&variant.part, &variant.undrained) {
            (_, Some(workload)) => text.push_str(&format!(
                "; at {} the messages of {workload} pile up until the run ends",
                shown(line.violated().unwrap_or(self.over.high))
            )),
            (Some(part), None) => text.push_str(&format!("; the bottleneck is {}", part.words())),
            (None, None) => {}
        }
        if let (Some(versus), Some(base)) = (&variant.versus, self.variants.first()) {
            text.push_str(&versus.words(&self.slos[versus.slo], &base.name, &shown(versus.load)));
        } else if let (Some(mine), Some(base)) = (line.load(), self.variants.first().filter(|_| number > 0))
            && let Some(theirs) = base.line.load()
        {
            let (ratio, word) = if mine > theirs { (mine / theirs, "more") } else { (theirs / mine, "less") };
            text.push_str(&format!("; {}x {word} than {}", figures::number(ratio), base.name));
        }
        if line.is_not_monotone() {
            let is_peak = line.side() == Side::Above
                && variant.loads.last().is_some_and(|at| at.state == SearchState::Sinks);
            text.push_str(match self.over.is_load() {
                true => "; a higher load met them again, so the line is the first to be violated",
                false if is_peak => {
                    "; a value beyond it violated them again, so the knee is the first to meet them"
                }
                false => "; a value beyond it met them again, so the knee is the first to be violated",
            });
        }
        if let Some(unfinished) = &variant.unfinished {
            text.push_str(&format!("; {unfinished}"));
        }
        text
    }

    /// Writes up to which load a variant meets the objectives, and whether that is the whole sentence.
    fn of_load(&self, variant: &LineVariant) -> (String, bool) {
        let shown = |load: f64| self.over.shown(load);
        let (what, line) = (self.objectives(), &variant.line);
        let mut text = String::new();
        match (line.found(), line.load()) {
            (Found::Always, _) => {
                let from =
                    variant.least.map_or_else(String::new, |least| format!(" from about {}", shown(least)));
                let high = shown(self.over.high);
                return (format!("always meets {what},{from} up to {high}, the highest load tried"), true);
            }
            (Found::Line, None) => {
                let low = shown(line.low().unwrap_or(self.over.low));
                text.push_str(&format!("meets {what} at {low}, and what is above is not known"));
                return (variant.unfinished.iter().fold(text, |text, why| text + "; " + why), true);
            }
            (Found::Undecided, None) => {
                let unfinished =
                    variant.unfinished.as_ref().map_or_else(String::new, |why| format!("; {why}"));
                return (self.undecided(variant, &what) + &unfinished, true);
            }
            (Found::Never, _) => {
                let lowest = shown(line.high().unwrap_or(self.over.low));
                match line.is_not_monotone() {
                    true => text.push_str(&format!("violates {what} already at {lowest}")),
                    false => text.push_str(&format!("never meets {what}, not even at {lowest}")),
                }
                if let Some(reason) = &variant.reason {
                    return (format!("{text}: {reason}"), true);
                }
            }
            (Found::Line | Found::Undecided, Some(load)) => {
                let from =
                    variant.least.map_or_else(String::new, |least| format!("from about {} ", shown(least)));
                text.push_str(&format!("meets {what} {from}up to {}{}", shown(load), self.range(line)));
                if let Some((headroom, at)) = variant.headroom.zip(self.at) {
                    text.push_str(&format!("; today's {} is {}", shown(at), room(headroom)));
                }
            }
        }
        (text, false)
    }

    /// Writes on which side of which value of a key other than a load a variant meets the objectives, and whether that
    /// is the whole sentence.
    fn of_key(&self, variant: &LineVariant) -> (String, bool) {
        let shown = |value: f64| self.over.shown(value);
        let (what, line) = (self.objectives(), &variant.line);
        let (low, high) = (shown(self.over.low), shown(self.over.high));
        if variant.is_without_effect {
            let verb = if line.found() == Found::Always { "meets" } else { "does not meet" };
            let key = &self.over.key;
            return (
                format!("{verb} {what}; `{key}` has no effect, as runs at {low} and {high} are equal"),
                true,
            );
        }
        let at_both = |verb: &str, state: SearchState| {
            let agree = variant.loads.iter().filter(|at| at.state == state).count().saturating_sub(2);
            let between = if agree == 1 { "value" } else { "values" };
            format!(
                "{verb} {what} at {low} and at {high}, and at {agree} {between} between them: no change was found"
            )
        };
        let mut text = match (line.found(), line.load()) {
            (Found::Always, _) => return (at_both("meets", SearchState::Keeps), true),
            (Found::Never, _) => at_both("violates", SearchState::Sinks),
            (Found::Line, Some(knee)) => {
                let (knee, range) = (shown(knee), self.range(line));
                match line.side() {
                    Side::Below => format!("meets {what} up to {knee}{range}"),
                    Side::Above => format!("meets {what} from {knee}{range} on"),
                }
            }
            _ => {
                let is_open = |at: &&AtLoad| matches!(at.state, SearchState::Open | SearchState::Running);
                let open: Vec<String> =
                    variant.loads.iter().filter(is_open).map(|at| shown(at.load)).collect();
                let text = format!(
                    "undecided: the runs at {} do not decide {what}; more seeds or longer runs may",
                    open.join(" and ")
                );
                return (variant.unfinished.iter().fold(text, |text, why| text + "; " + why), true);
            }
        };
        let verdict = match variant.today {
            SearchState::Keeps => "meets",
            SearchState::Sinks => "violates",
            SearchState::Open | SearchState::Running => return (text, false),
        };
        if let Some(at) = self.at.filter(|_| line.found() == Found::Line) {
            let them = if self.slos.len() > 1 { "them" } else { "it" };
            text.push_str(&format!("; today's {} {verdict} {them}", shown(at)));
        }
        (text, false)
    }

    /// Writes the result where no load is known to meet the objectives, and the lowest is not known to violate one.
    fn undecided(&self, variant: &LineVariant, what: &str) -> String {
        let shown = |load: f64| self.over.shown(load);
        let lowest = variant.loads.first().map_or(self.over.low, |at| at.load);
        let above = match variant.line.high() {
            Some(high) => format!(" and it is violated from {} on", shown(high)),
            None => String::new(),
        };
        format!(
            "undecided: no load is known to meet {what}; the runs at {}, the lowest load, do not decide{above}; more \
             seeds or longer runs may",
            shown(lowest)
        )
    }

    /// Writes the interval of a line in parentheses, after a space: ` (0.0126 .. 0.0158)`.
    pub fn range(&self, line: &Line) -> String {
        match self.interval(line) {
            interval if interval.is_empty() => interval,
            interval => format!(" ({interval})"),
        }
    }

    /// Writes the interval of a line: `0.0126 .. 0.0158`.
    pub(crate) fn interval(&self, line: &Line) -> String {
        let shown = |load: f64| self.over.shown(load);
        match (line.low(), line.high()) {
            (Some(low), Some(high)) => format!("{} .. {}", shown(low), shown(high)),
            (None, Some(high)) => format!("below {}", shown(high)),
            (Some(low), None) => format!("above {}", shown(low)),
            (None, None) => String::new(),
        }
    }
}

impl Part {
    /// Writes the component with its share: `the tor queue, 84 % of the growth`.
    pub fn words(&self) -> String {
        format!("{}, {:.0} % of the growth", self.name, self.share * 100.0)
    }
}

impl Versus {
    fn words(&self, slo: &Slo, base: &str, load: &str) -> String {
        let what = match slo.metric {
            Metric::Mean => "its mean",
            Metric::Goodput => "the limit over its goodput",
            Metric::Percentile(_) | Metric::Max => "its share over the limit",
            Metric::Deadline => "its share past the deadline",
            Metric::Number if slo.operator.is_floor() => "the limit over its number",
            Metric::Number => "its number",
            Metric::Exact => "the share of its runs with another number",
        };
        match self.interval {
            Some(interval) if interval.low > 0.0 || interval.high < 0.0 => {
                let change = figures::change(1.0 + self.difference / self.base);
                format!("; run by run at {load} {what} is {change} than that of {base}")
            }
            _ => format!("; run by run at {load} the difference from {base} is not significant"),
        }
    }
}

/// Writes a headroom in words.
fn room(headroom: f64) -> String {
    if headroom >= 1.0 {
        format!("{:.0} % of it", 100.0 / headroom)
    } else {
        format!("{}x too much", figures::number(1.0 / headroom))
    }
}

/// The search of a variant, with the values that its line needs beside it.
pub(crate) struct Searched<'a> {
    pub(crate) name: &'a str,
    pub(crate) search: &'a VariantSearch<'a>,
    pub(crate) reach: &'a Reach,
    pub(crate) versus: Option<Versus>,
    /// Where the search needs more runs, the line of a first look in short, if there was one.
    pub(crate) unfinished: Option<Option<String>>,
}

pub(crate) fn assemble<'a>(asked: &AskedLine<'_>, found: impl Iterator<Item = Searched<'a>>) -> Lines {
    let AskedLine { scenario, slos, over, question, .. } = asked;
    let at = asked.at.or(over.today).map(|at| over.axis().rounded(at));
    let variants = found.map(|Searched { name, search, reach, versus, unfinished }| {
        let mut line = search.line();
        if unfinished.is_some() && line.violated().is_none() {
            // The highest load so far met the objectives, which says nothing of those above it.
            line = Judged { load: None, ..line.into() }.into();
        }
        let binding = line.binding().or((!slos.is_empty()).then_some(0));
        let sunk = line.violated().and_then(|high| search.loads().find(|(load, ..)| *load == high));
        LineVariant {
            name: name.to_owned(),
            headroom: line.load().zip(at).map(|(load, at)| match line.side() {
                Side::Below => load / at,
                Side::Above => at / load,
            }),
            today: at.map_or(SearchState::Open, |at| today(search, at, &line, reach)),
            least: reach.floor.map(|floor| floor.least),
            reason: reason(search, &line, reach, over, slos),
            part: part(search, &line, binding),
            undrained: sunk.and_then(|(_, _, runs)| undrained(&runs)),
            unfinished: unfinished.map(|looked| ended_early(search, looked)),
            versus,
            is_without_effect: !over.is_load() && has_equal_ends(search, over),
            loads: search.loads().map(|(load, state, runs)| at_load(slos, load, state, &runs)).collect(),
            line,
        }
    });
    Lines {
        title: scenario.title().to_owned(),
        over: over.clone(),
        slos: slos.clone(),
        at,
        precision: question.precision,
        replicates_max: question.replicates_max,
        variants: variants.collect(),
        warnings: scenario.warnings().iter().map(ScenarioWarning::brief).collect(),
    }
}

impl Lines {
    /// Returns the warnings of the runs at loads that are met, each once: an overload cannot be their cause there.
    pub fn said(&self) -> Vec<String> {
        let mut said = Vec::new();
        for LineVariant { name, loads, .. } in &self.variants {
            for text in loads.iter().filter(|at| at.state == SearchState::Keeps).flat_map(|at| &at.warnings) {
                let line = format!("{name}: {text}");
                if !said.contains(&line) {
                    said.push(line);
                }
            }
        }
        said
    }
}

/// Returns the state of today's load, which is run unless it is out of range: then the judged loads decide, and a load
/// that offers less than an objective demands violates it.
fn today(search: &VariantSearch<'_>, at: f64, line: &Line, reach: &Reach) -> SearchState {
    match search.state_of(at) {
        SearchState::Running if line.violated().is_some_and(|sunk| !line.side().is_nearer(at, sunk)) => {
            SearchState::Sinks
        }
        SearchState::Running if reach.floor.is_some_and(|floor| at < floor.least) => SearchState::Sinks,
        SearchState::Running
            if line.met().is_some_and(|kept| !line.side().is_nearer(kept, at)) && reach.floor.is_none() =>
        {
            SearchState::Keeps
        }
        SearchState::Running => SearchState::Open,
        known => known,
    }
}

/// Returns the gaps of an interval whose search ended by its time limit, and the result of a first look.
fn ended_early(search: &VariantSearch<'_>, looked: Option<String>) -> String {
    let lower = match search.is_lower_end_confirmed() {
        true => "",
        false => ", and its lower end has too few seeds to exclude rare bad runs",
    };
    let looked =
        looked.map_or_else(String::new, |line| format!(" (a first look, with one run a load: {line})"));
    format!("the time ended before the interval was as narrow as wanted{lower}{looked}")
}

/// Returns the reason why no load meets the objectives: they demand more than the network carries, or they exclude each
/// other.
fn reason(
    search: &VariantSearch<'_>,
    line: &Line,
    reach: &Reach,
    over: &Over,
    slos: &[Slo],
) -> Option<String> {
    if line.found() != Found::Never || line.is_not_monotone() || !over.is_load() {
        return None;
    }
    if let Some(impossible) = &reach.impossible {
        return Some(impossible.clone());
    }
    if let Some(slo) = slow_when_idle(search, slos) {
        return Some(format!("no load can meet {}, as idle links alone take longer", slos[slo].text));
    }
    let floor = reach.floor?;
    let violated = line.binding().filter(|&binding| binding != floor.slo)?;
    Some(format!(
        "no load meets both, as {} needs a load of about {} at least, where {} is violated",
        slos[floor.slo].text,
        over.shown(floor.least),
        slos[violated].text
    ))
}

/// Returns whether the runs at both ends of the range are equal, seed by seed.
fn has_equal_ends(search: &VariantSearch<'_>, over: &Over) -> bool {
    let digests = |end: f64| {
        let (_, _, runs) = search.loads().find(|(load, ..)| *load == over.axis().rounded(end))?;
        Some(runs.into_iter().map(|run| run.digest.as_str()).collect::<Vec<_>>())
    };
    let (low, high) = (digests(over.low), digests(over.high));
    low.zip(high)
        .is_some_and(|(low, high)| !low.is_empty() && low.iter().zip(&high).all(|(low, high)| low == high))
}

fn undrained(runs: &[&Run]) -> Option<String> {
    runs.iter().find_map(|run| run.undrained.clone())
}

fn at_load(slos: &[Slo], load: f64, state: SearchState, runs: &[&Run]) -> AtLoad {
    let samples =
        |slo: usize| runs.iter().filter_map(|run| run.samples.get(slo)).collect::<Vec<&SloSample>>();
    AtLoad {
        load,
        state,
        runs: runs.len(),
        metrics: slos.iter().enumerate().map(|(n, slo)| estimate(slo, &samples(n))).collect(),
        strains: slos.iter().enumerate().map(|(n, slo)| strain(slo, &samples(n))).collect(),
        undrained: undrained(runs),
        warnings: runs
            .iter()
            .flat_map(|run| &run.warnings)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .cloned()
            .collect(),
    }
}

/// Computes the mean components of the messages that an objective is about.
fn parts(runs: &[&Run], slo: usize) -> Vec<f64> {
    let known: Vec<&Vec<f64>> = runs
        .iter()
        .filter_map(|run| run.samples.get(slo))
        .map(|s| &s.parts_us)
        .filter(|p| !p.is_empty())
        .collect();
    let count = known.iter().map(|parts| parts.len()).min().unwrap_or(0);
    (0..count).map(|part| known.iter().map(|p| p[part]).sum::<f64>() / known.len() as f64).collect()
}

/// Returns the component that grew most between the lowest load and the lowest violated one.
fn part(search: &VariantSearch<'_>, line: &Line, binding: Option<usize>) -> Option<Part> {
    let slo = binding?;
    let (lowest, highest) = (search.loads().next()?, search.loads().last()?);
    let (from, _, low) = line.side().ends(lowest, highest).0;
    let (to, _, high) = search.loads().find(|(load, ..)| Some(*load) == line.violated())?;
    let after = parts(&high, slo);
    // Of a line below every load, no growth is known: then the largest component counts, except the links.
    let before = if to != from { parts(&low, slo) } else { vec![0.0; after.len()] };
    let names = &high.first()?.parts;
    let wires = |name: &str| to == from && (name == "serialisation" || name == "propagation");
    let growth: Vec<f64> = after
        .iter()
        .zip(&before)
        .zip(names)
        .map(|((after, before), name)| if wires(name) { 0.0 } else { (after - before).max(0.0) })
        .collect();
    let total: f64 = growth.iter().sum();
    let most = (0..growth.len().min(names.len())).max_by(|&a, &b| growth[a].total_cmp(&growth[b]))?;
    let article = if names[most] == "recovery" || names[most] == "service" { "" } else { "the " };
    let name = format!("{article}{}", names[most]);
    (total > 0.0).then(|| Part { name, grew_us: growth[most], share: growth[most] / total, from, to })
}
