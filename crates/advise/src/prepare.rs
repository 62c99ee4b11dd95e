//! [`PreparedAdvice`]: the scenario of a search, with a variant for each candidate that the fabric can have.

use plimsoll_experiment::Slo;
use plimsoll_experiment::question::{self, QuestionError};
use plimsoll_line::measure::Run;
use plimsoll_line::question::LineQuestionError;
use plimsoll_line::{AskedLine, LineQuestion, Over, SearchStop};
use plimsoll_scenario::model::{Model, Run as RunTimes};
use plimsoll_scenario::{Point, Registry, Scenario, ScenarioError};
use plimsoll_units::Span;

use crate::candidates::{AND, Candidate, Have, candidates, capabilities};
use crate::search::AdviseWatch;
use crate::variants::{AdviseBase, settings};

/// A question for advice, as a user writes it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AdviseQuestion {
    /// The objectives; if empty, those of the scenario's table `slo`.
    pub slo: Vec<String>,
    /// The load to search, by its key or its workload.
    pub over: Option<String>,
    /// The variant to start from; the first if `None`.
    pub from: Option<String>,
    /// The capabilities of the fabric.
    pub have: Have,
    /// The messages of each objective's workload that a run shall have; by default enough for its percentile.
    pub messages: Option<u64>,
    /// The wanted width of a line's interval, as a share of the load; the default of `plimsoll line` if `None`.
    pub precision: Option<f64>,
    /// The greatest number of runs of one load; the default of `plimsoll line` if `None`.
    pub replicates_max: Option<u32>,
}

/// A candidate that is tried.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tried {
    pub(crate) candidate: Candidate,
    /// The lines of its variant.
    pub(crate) lines: String,
    /// The names and lines of its tuned forms.
    pub(crate) tuned: Vec<(String, String)>,
}

/// A question that can be searched.
#[derive(Clone, Debug)]
pub struct PreparedAdvice {
    /// The scenario of all variants.
    pub scenario: Scenario,
    pub(crate) base: AdviseBase,
    pub(crate) from: String,
    pub(crate) question: LineQuestion,
    pub(crate) tried: Vec<Tried>,
    pub(crate) untried: Vec<(String, String)>,
    pub(crate) notes: Vec<String>,
    /// The length of a run; the scenario's own if `None`.
    pub(crate) length: Option<Span>,
    /// The numbers of other workloads that candidates may cost.
    pub(crate) others: Vec<Slo>,
}

/// The reasons why a scenario gets no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// A part of the question is invalid.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// The scenario has no load to search, or no objective.
    #[error(transparent)]
    Line(#[from] LineQuestionError),
    /// The scenario cannot be written with its candidates.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Scenario(Vec<ScenarioError>),
    /// A run failed, or the search was cancelled.
    #[error(transparent)]
    Search(#[from] SearchStop),
}

/// The messages by which a rate of messages is measured.
const ENOUGH: u64 = 200;
/// The part of the scenario's run that is measured first.
const PART: u64 = 16;
/// The messages over the limit that a run at its line shall have.
const OVER: f64 = 40.0;
/// The messages of a run whose objectives are about no share of them.
const MESSAGES: u64 = 2_000;
/// The most other workloads whose numbers are compared.
const OTHERS_MAX: usize = 8;

/// Returns why a candidate is none for the scenario of `model`, if its transport is carried out elsewhere: TCP by the
/// hosts, RoCE and Ultra Ethernet by their NICs.
fn other_family(model: &Model, candidate: &Model) -> Option<String> {
    let [own, other] = [model, candidate].map(|model| model.transport.kind.describe().family);
    (own.carrier != other.carrier)
        .then(|| format!("its transport is of {}, and the scenario's of {}", other.name, own.name))
}

/// Makes the variants of a scenario, and measures how long a run has to be.
///
/// # Errors
/// Returns an error for an invalid question, and if the scenario as it is cannot run.
pub fn prepare(
    registry: &Registry,
    scenario: &Scenario,
    question: &AdviseQuestion,
    watch: &dyn AdviseWatch,
) -> Result<PreparedAdvice, AdviseError> {
    question::check_variants(scenario.points(), question.from.as_slice())?;
    let slos = question::objectives(scenario, &question.slo)?;
    let is_from = |point: &&Point| question.from.as_ref().is_none_or(|from| point.variant == *from);
    let point = scenario.points().iter().find(is_from).ok_or(LineQuestionError::NoObjective)?;
    let mut asks = LineQuestion {
        slo: slos.iter().map(|slo| slo.text.clone()).collect(),
        over: question.over.clone(),
        ..LineQuestion::default()
    };
    asks.precision = question.precision.unwrap_or(asks.precision);
    asks.replicates_max = question.replicates_max.unwrap_or(asks.replicates_max);
    // Reports a question that no variant can answer before the first run.
    let over = asks.clone().ask(scenario)?.over;
    let base = AdviseBase::of(registry, scenario, point, &slos);
    let length = length(&point.model, &slos, question.messages, watch)?;
    // The ends of the loads, as far as the scenario as it is is valid there.
    let mut loads = vec![over.low, over.high];
    loads.retain(|load| at_load(scenario, &over, *load).is_ok());
    let is_valid = |made: &Scenario| loads.iter().try_for_each(|load| at_load(made, &over, *load));
    let (mut tried, mut untried, mut variants) = (Vec::new(), Vec::new(), Vec::new());
    for candidate in candidates() {
        let lacks = question.have.lacks(&candidate).join(", ");
        if !lacks.is_empty() {
            untried.push((candidate.name, format!("needs {lacks}")));
            continue;
        }
        let lines = base.lines(&candidate);
        if lines.is_empty() {
            untried.push((candidate.name, "the scenario has no value that it could change".to_owned()));
            continue;
        }
        let made = base.scenario(length, &[(candidate.name.clone(), lines.clone())]);
        match made.and_then(|made| is_valid(&made).map(|()| made)) {
            Err(errors) => untried.push((candidate.name, reason(&errors))),
            Ok(made) => {
                let own = made.points().iter().find(|point| point.variant == candidate.name);
                if let Some(other) = own.and_then(|own| other_family(&point.model, &own.model)) {
                    untried.push((candidate.name, other));
                    continue;
                }
                let mut tuned = own.map_or_else(Vec::new, |point| base.tuned(&candidate, &lines, point));
                tuned.retain(|one| {
                    let made = base.scenario(length, std::slice::from_ref(one));
                    made.is_ok_and(|made| is_valid(&made).is_ok())
                });
                variants.push((candidate.name.clone(), lines.clone()));
                variants.extend(tuned.iter().cloned());
                tried.push(Tried { candidate, lines, tuned });
            }
        }
    }
    let made = base.scenario(length, &variants).map_err(AdviseError::Scenario)?;
    let mut notes = Vec::new();
    if question.have.is_assumed() {
        notes.push(format!(
            "assumed that the fabric has everything that a candidate needs; `--have 'ecn, 8 queues, linux hosts'` \
             restricts it, by {}",
            capabilities()
        ));
    }
    let others = others(&made, &slos);
    let from = point.label();
    Ok(PreparedAdvice { scenario: made, base, from, question: asks, tried, untried, notes, length, others })
}

/// Checks a scenario at this load.
fn at_load(scenario: &Scenario, over: &Over, load: f64) -> Result<(), Vec<ScenarioError>> {
    let mut overrides = scenario.overrides().clone();
    overrides.set.push(format!("{}={}", over.key, over.written(load)));
    scenario.with_overrides(&overrides).map(drop)
}

/// Returns the first line of the first error.
pub(crate) fn reason(errors: &[ScenarioError]) -> String {
    let text = errors.first().map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Returns the goodput and the mean time of the workloads without an objective, as far as every variant has them.
fn others(scenario: &Scenario, slos: &[Slo]) -> Vec<Slo> {
    let Some(first) = scenario.points().first() else { return Vec::new() };
    let is_other = |name: &&String| slos.iter().all(|slo| slo.workload != **name);
    let texts = first
        .model
        .workload
        .keys()
        .filter(is_other)
        .take(OTHERS_MAX)
        .flat_map(|name| [format!("goodput({name}) > 1bps"), format!("mean({name}) < 1000s")]);
    let observed = |text: String| {
        let slo = Slo::parse(&text).ok()?;
        slo.check(scenario.points().iter().map(|point| &point.model)).is_ok().then_some(slo)
    };
    texts.filter_map(observed).collect()
}

/// Measures the length of a run that has the wanted messages, by simulated time: the same scenario has the same length
/// on every machine. It is at most that of the scenario; `None` where runs end by themselves.
fn length(
    model: &Model,
    slos: &[Slo],
    messages: Option<u64>,
    watch: &dyn AdviseWatch,
) -> Result<Option<Span>, SearchStop> {
    let Some(whole) = model.run.duration else { return Ok(None) };
    let per_run = |slo: &Slo| slo.budget().map_or(MESSAGES, |budget| (OVER / budget.max(1e-5)).ceil() as u64);
    let wanted = messages.or_else(|| slos.iter().map(per_run).max()).unwrap_or(MESSAGES);
    let warmup = model.run.warmup;
    let mut counted = (whole - warmup) / PART;
    loop {
        let run = RunTimes { duration: Some(warmup + counted), ..model.run.clone() };
        let outcome = plimsoll_sim::run(&Model { run, ..model.clone() }, &mut |_| watch.goes_on())
            .map_err(|error| if watch.goes_on() { error.into() } else { SearchStop::Cancelled })?;
        let run = Run::of(&outcome, slos, true);
        let of_messages = slos.iter().zip(&run.samples).filter(|(slo, _)| slo.is_of_messages());
        let Some(fewest) = of_messages.map(|(_, sample)| sample.messages).min() else {
            return Ok(Some(whole));
        };
        if fewest >= ENOUGH.min(wanted) {
            let length = counted.as_secs_f64() * wanted as f64 / fewest as f64;
            return Ok(Some((warmup + Span::from_secs_f64(length)).min(whole)));
        }
        if counted * 4 > whole - warmup {
            return Ok(Some(whole));
        }
        counted = counted * 4;
    }
}

impl PreparedAdvice {
    /// Asks the scenario of all variants for lines.
    ///
    /// # Errors
    /// Returns an error if it has no such load or objective.
    pub fn ask(&self) -> Result<AskedLine<'_>, AdviseError> {
        Ok(self.question.clone().ask(&self.scenario)?)
    }

    /// Returns the candidate of a variant, with the lines of the variant; a combination has the lines of both.
    pub(crate) fn find(&self, name: &str) -> Option<(Candidate, String)> {
        if let Some((one, other)) = name.split_once(AND) {
            let ((one, lines), (other, more)) = (self.find(one)?, self.find(other)?);
            return Some((one.with(other), lines + &more));
        }
        self.tried.iter().find_map(|tried| {
            let tuned = || tried.tuned.iter().find(|(known, _)| known == name).map(|(_, lines)| lines);
            let lines = if tried.candidate.name == name { Some(&tried.lines) } else { tuned() };
            Some((tried.candidate.clone(), lines?.clone()))
        })
    }

    /// Makes the scenario of the base and one variant alone.
    pub(crate) fn beside_base(&self, name: &str, lines: &str) -> Result<Scenario, Vec<ScenarioError>> {
        self.base.scenario(self.length, &[(name.to_owned(), lines.to_owned())])
    }

    /// Returns the settings of a variant, one key a line, with its model.
    pub(crate) fn settings(&self, name: &str) -> Option<(String, Model)> {
        let of = |scenario: &Scenario| {
            let point = scenario.points().iter().find(|point| point.variant == name)?;
            Some((settings(point), point.model.clone()))
        };
        of(&self.scenario).or_else(|| of(&self.beside_base(name, &self.find(name)?.1).ok()?))
    }
}
