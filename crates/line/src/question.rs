//! [`LineQuestion`]: the objectives of a search, the load or other key that it searches, and how exact the line shall
//! be.

use plimsoll_experiment::question::{self, QuestionError, check_variants, quoted};
use plimsoll_experiment::slo::Slo;
use plimsoll_report::{Format, TableStyle};
use plimsoll_results::RunDir;
use plimsoll_results::run_dir::{self, RunPlan};
use plimsoll_scenario::{Overrides, Scenario, ScenarioError};

use crate::lines::Lines;
use crate::over::{Over, OverError, Unit};
use crate::page::PageTexts;
use crate::search::ExpectedLines;

/// A question for a load line, as a user writes it.
#[derive(Clone, PartialEq, Debug)]
pub struct LineQuestion {
    /// The objectives, such as `p99(query) < 1ms`; if empty, the objectives of the scenario's table `slo`.
    pub slo: Vec<String>,
    /// The load to search, by its key or its workload, or any other key of a number.
    pub over: Option<String>,
    /// The value to judge beside the line, as the scenario writes it; the scenario's own if `None`.
    pub at: Option<String>,
    /// The lowest and the highest value of the search: `LOW..HIGH`. A key that is no load needs them.
    pub within: Option<String>,
    /// The wanted width of a line's interval, as a share of the load.
    pub precision: f64,
    /// The greatest number of runs of one load.
    pub replicates_max: u32,
    /// The messages of each objective's workload that a run shall have; the scenario's own run length if `None`.
    pub messages: Option<u64>,
    /// The variants to search, by name; all if empty.
    pub variants: Vec<String>,
}

impl Default for LineQuestion {
    fn default() -> LineQuestion {
        LineQuestion {
            slo: Vec::new(),
            over: None,
            at: None,
            within: None,
            precision: PRECISION,
            replicates_max: REPLICATES_MAX,
            messages: None,
            variants: Vec::new(),
        }
    }
}

const PRECISION: f64 = 0.05;
const REPLICATES_MAX: u32 = 32;

/// A question that a scenario can answer.
#[derive(Clone, Debug)]
pub struct AskedLine<'a> {
    /// The scenario whose variants are searched.
    pub scenario: &'a Scenario,
    /// The objectives, each of which every variant has.
    pub slos: Vec<Slo>,
    /// The key of the scenario whose value is searched.
    pub over: Over,
    /// The value to judge beside the line, in the unit of `over`; today's if `None`.
    pub at: Option<f64>,
    /// The lines that a search of a smaller network found, by variant, with which this one begins.
    pub expected: ExpectedLines,
    /// The question as it was asked, before defaults were filled in.
    pub question: LineQuestion,
}

/// The reason why a scenario cannot answer a question.
#[derive(Debug, thiserror::Error)]
pub enum LineQuestionError {
    /// A part of the question is invalid.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// The scenario has no load that can be searched.
    #[error(transparent)]
    Over(#[from] OverError),
    /// The scenario has no such key, or is invalid with its value at an end of the range.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Scenario(Vec<ScenarioError>),
    /// The question names no objective, and neither does the scenario.
    #[error("no objective; give one with `--slo 'p99(NAME) < 1ms'`, or in the scenario's table `slo`")]
    NoObjective,
}

impl LineQuestion {
    /// Asks a scenario.
    ///
    /// # Errors
    /// Returns an error for an unknown variant, for an objective that cannot be read or observed or if there is none,
    /// for a load that the scenario does not have, and for a range without room.
    pub fn ask(self, scenario: &Scenario) -> Result<AskedLine<'_>, LineQuestionError> {
        check_variants(scenario.points(), &self.variants)?;
        let slos = question::objectives(scenario, &self.slo)?;
        if slos.is_empty() {
            return Err(LineQuestionError::NoObjective);
        }
        let part = |place: &str, reason: String| QuestionError::Part { place: place.to_owned(), reason };
        let mut swept = scenario.points().iter().flat_map(|point| &point.sweep);
        if self.messages.is_some() && swept.any(|(key, _)| key == "run.duration") {
            let reason = "the scenario sweeps `run.duration`, which this chooses; omit `--messages`, or set one \
                          duration with `--set run.duration=...`";
            return Err(part("--messages", reason.to_owned()).into());
        }
        let over = self.searched(scenario)?;
        let at = self.at.as_deref().map(|text| over.parse(text).map_err(|reason| part("--at", reason)));
        Ok(AskedLine {
            scenario,
            slos,
            at: at.transpose()?,
            over,
            expected: ExpectedLines::new(),
            question: self,
        })
    }

    /// Returns the overrides of a run of the search, before a value is set: of its variants alone.
    pub(crate) fn overrides(&self, scenario: &Scenario) -> Overrides {
        Overrides { replicates: 1, variants: self.variants.clone(), ..scenario.overrides().clone() }
    }

    /// Returns the key to search: a load, or, within the range that is given, any key of which the scenario accepts the
    /// values at both ends of the range, and one between them.
    fn searched(&self, scenario: &Scenario) -> Result<Over, LineQuestionError> {
        let part = |reason: String| QuestionError::Part { place: "--within".to_owned(), reason };
        match (Over::find(scenario.points(), self.over.as_deref()), &self.within) {
            (Ok(load), None) => Ok(load),
            (Ok(load), Some(within)) => {
                let ends = within.split_once("..");
                let ends = ends.ok_or_else(|| part("write LOW..HIGH, such as 0.05..0.9".to_owned()))?;
                let read = |text: &str| load.parse(text).map_err(part);
                let (low, high) = (read(ends.0)?, read(ends.1)?);
                Ok(load.within(low, high)?)
            }
            (Err(OverError::Unknown { key, .. }), Some(within)) => {
                let over = Over::of_key(scenario.points(), &key, within).map_err(part)?;
                let accepts = |value: f64| {
                    let mut overrides = self.overrides(scenario);
                    overrides.set.push(format!("{key}={}", over.written(value)));
                    scenario.with_overrides(&overrides).map(|_| ())
                };
                for end in [over.low, over.high] {
                    accepts(end).map_err(LineQuestionError::Scenario)?;
                }
                let by_twos = Over { is_power_of_two: true, ..over.clone() };
                let is_power = |value: f64| by_twos.axis().rounded(value) == value;
                // Neighbours between the ends, of which one is even and one odd.
                let between = over.axis().rounded(0.3 * over.low + 0.7 * over.high);
                let mut neighbours = vec![between, (between - 1.0).max(over.low)];
                neighbours.retain(|value| over.unit != Unit::Count || !is_power(*value));
                let refused: Vec<_> = neighbours.iter().filter_map(|value| accepts(*value).err()).collect();
                let Some(reasons) = refused.first() else { return Ok(over) };
                let has_powers = over.unit == Unit::Count && is_power(over.low) && is_power(over.high);
                if has_powers && refused.len() == neighbours.len() {
                    return Ok(by_twos);
                }
                let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                Err(part(format!(
                    "`{key}` does not take all values from {} to {}, which the search tries; choose a range of which \
                     it does\n{}",
                    over.shown(over.low),
                    over.shown(over.high),
                    reasons.join("\n")
                ))
                .into())
            }
            (Err(error), _) => Err(error.into()),
        }
    }
}

impl AskedLine<'_> {
    /// Returns the plan that the run directory records of the search. Its scenario begins with the question, so that
    /// another question is another run; precision and speed are not part of it. `command` is the one that repeats the
    /// search, without the question.
    pub fn plan(&self, mut command: String, commit: Option<&str>) -> RunPlan {
        let AskedLine { scenario, slos, over, question, .. } = self;
        for slo in slos {
            command.push_str(&format!(" --slo {}", quoted(&slo.text)));
        }
        command.push_str(&format!(" --over {}", over.key));
        let mut asked: String = slos.iter().map(|slo| format!("# {}\n", slo.text)).collect();
        asked.push_str(&format!("# over {}\n", over.key));
        let flags = [("at", question.at.as_deref()), ("within", question.within.as_deref())];
        let flags = flags.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
        for (flag, value) in flags.chain(question.variants.iter().map(|name| ("variant", name.as_str()))) {
            command.push_str(&format!(" --{flag} {}", quoted(value)));
        }
        if question.precision != PRECISION {
            command.push_str(&format!(" --precision {}", question.precision));
        }
        if question.replicates_max != REPLICATES_MAX {
            command.push_str(&format!(" --replicates-max {}", question.replicates_max));
        }
        if let Some(messages) = question.messages {
            command.push_str(&format!(" --messages {messages}"));
            asked.push_str(&format!("# runs of {messages} messages"));
            // Another initial load changes the length of a run.
            asked.push_str(&format!(" at {}\n", question.at.as_deref().unwrap_or("today's load")));
        }
        let text = scenario.self_contained();
        RunPlan {
            scenario: format!("# The search for a load line: `plimsoll line` with\n{asked}\n{text}"),
            ..question::plan(scenario, command, commit)
        }
    }
}

impl Lines {
    /// Writes `lines.json` and `report.html` of a search, and returns the latter.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn keep(&self, dir: &RunDir, scenario: &Scenario) -> Result<String, run_dir::Error> {
        let manifest = dir.manifest();
        let page = self.page(&PageTexts {
            description: scenario.points().first().map_or("", |point| &point.model.description),
            command: &manifest.command,
            seed: manifest.seed,
            version: &manifest.plimsoll,
            commit: manifest.commit.as_deref(),
            scenario: scenario.text(),
        });
        dir.write_report(&page)?;
        dir.write_file("lines.json", &self.render(Format::Json, &TableStyle::default()))?;
        Ok(page)
    }
}
