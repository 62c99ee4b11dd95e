//! [`Question`]: the requested points of a scenario, and the run directory to which they belong.
//!
//! ```text
//! Scenario (with overrides) ──> Question ──points──> store: which are missing ──> Bench ──outcomes──> store
//!                                  └──plan──> run directory                measures and summary <──────┘
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;

use plimsoll_results::run_dir::{Columns, PlannedPoint, RunPlan, SIMULATOR};
use plimsoll_results::{Digest, PointKey, RunDir};
use plimsoll_scenario::{Overrides, Point, Scenario, ScenarioWarning, did_you_mean};
use plimsoll_text::printable;

use crate::slo::Slo;

/// A shard: `1/3` is the first of three.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    number: u32,
    of: u32,
}

impl FromStr for Shard {
    type Err = String;
    fn from_str(text: &str) -> Result<Shard, String> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err("write I/N with I from 1 to N, such as 1/3".to_owned()),
        }
    }
}

/// The requested points of a scenario: all, or the points of a shard or of some variants.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    scenario: &'a Scenario,
    shard: Option<Shard>,
    variants: &'a [String],
}

/// The reason why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QuestionError {
    /// The scenario has no such variant.
    #[error(
        "unknown variant `{name}`: expected one of {known}{}",
        hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"))
    )]
    Variant {
        /// The name that was asked for.
        name: String,
        /// The names of the scenario's variants.
        known: String,
        /// The nearest spelling.
        hint: Option<String>,
    },
    /// A part of the question is invalid.
    #[error("{place}: {reason}")]
    Part {
        /// The place of the part: a key of the scenario or an option.
        place: String,
        /// The reason, and the allowed values.
        reason: String,
    },
}

impl<'a> Question<'a> {
    /// Asks for this shard's points of these variants, or of all variants if none is named.
    ///
    /// # Errors
    /// Returns an error for an unknown variant.
    pub fn new(
        scenario: &'a Scenario,
        shard: Option<Shard>,
        variants: &'a [String],
    ) -> Result<Question<'a>, QuestionError> {
        check_variants(scenario.points(), variants)?;
        Ok(Question { scenario, shard, variants })
    }

    /// Returns the points of this shard and of the selected variants, each once.
    pub fn share(&self) -> Vec<&'a Point> {
        let mut known = BTreeSet::new();
        let is_asked = |(index, point): &(usize, &Point)| {
            self.shard.is_none_or(|shard| *index as u32 % shard.of + 1 == shard.number)
                && (self.variants.is_empty() || self.variants.contains(&point.variant))
                && known.insert(key(point))
        };
        self.scenario.points().iter().enumerate().filter(is_asked).map(|(_, point)| point).collect()
    }

    /// Returns the plan that a run directory records of the question. `command` repeats the run, `commit` is the
    /// build's.
    pub fn plan(&self, mut command: String, commit: Option<&str>) -> RunPlan {
        if let Some(Shard { number, of }) = self.shard {
            command.push_str(&format!(" --shard {number}/{of}"));
        }
        for variant in self.variants {
            command.push_str(&format!(" --variant {}", quoted(variant)));
        }
        let points = self.scenario.points();
        RunPlan {
            scenario: record(self.scenario),
            shard: self.shard.map(|shard| (shard.number, shard.of)),
            points: points.iter().map(|p| PlannedPoint { key: key(p), seed: p.seed }).collect(),
            ..plan(self.scenario, command, commit)
        }
    }

    /// Returns the default run directory: the same for the same scenario and overrides, so that the same command
    /// resumes the run.
    pub fn default_dir(&self) -> PathBuf {
        let shard = self.shard.map_or_else(String::new, |s| format!("-shard-{}-of-{}", s.number, s.of));
        default_dir("", self.scenario, &record(self.scenario), &shard)
    }

    /// Returns whether a run directory holds results of this question.
    pub fn is_of(&self, run: &RunDir) -> bool {
        run.manifest().scenario_digest == Digest::of_text(&record(self.scenario))
    }
}

/// Returns the plan that a run directory records of a scenario, without its points.
pub fn plan(scenario: &Scenario, command: String, commit: Option<&str>) -> RunPlan {
    let first = scenario.points().first();
    RunPlan {
        title: scenario.title().to_owned(),
        description: first.map_or_else(String::new, |point| point.model.description.clone()),
        carrier: SIMULATOR.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit.map(str::to_owned),
        command,
        seed: first.map_or(0, |point| point.seed),
        scenario: String::new(),
        shard: None,
        points: Vec::new(),
        warnings: scenario.warnings().iter().map(ScenarioWarning::brief).collect(),
        columns: Columns::default(),
    }
}

/// Reads the objectives `given` by the option `--slo`, or else the objectives of the scenario's table `slo`.
///
/// # Errors
/// Returns an error for the first that cannot be read, or be observed in every variant.
pub fn objectives(scenario: &Scenario, given: &[String]) -> Result<Vec<Slo>, QuestionError> {
    let own = scenario.objectives().iter().map(|(name, text)| (format!("slo.{name}"), text));
    let given_texts = given.iter().map(|text| ("--slo".to_owned(), text));
    let texts: Vec<(String, &String)> = if given.is_empty() { own.collect() } else { given_texts.collect() };
    let read = |(place, text): (String, &String)| {
        let models = scenario.points().iter().map(|point| &point.model);
        let slo = Slo::parse(text).and_then(|slo| slo.check(models).map(|()| slo));
        slo.map_err(|error| QuestionError::Part { place, reason: error.to_string() })
    };
    texts.into_iter().map(read).collect()
}

/// Checks that a scenario has each of these variants.
///
/// # Errors Returns an error that names the first unknown one, and the existing ones.
pub fn check_variants(points: &[Point], variants: &[String]) -> Result<(), QuestionError> {
    let mut names: Vec<&str> = points.iter().map(|point| point.variant.as_str()).collect();
    names.dedup();
    let unknown = variants.iter().find(|variant| !names.contains(&variant.as_str()));
    unknown.map_or(Ok(()), |name| {
        let hint = did_you_mean(name, names.iter().copied());
        Err(QuestionError::Variant { name: name.clone(), known: names.join(", "), hint })
    })
}

/// Returns `results/<kind><scenario>-<digest of the record><shard>`.
pub fn default_dir(kind: &str, scenario: &Scenario, recorded: &str, shard: &str) -> PathBuf {
    let stem = Path::new(scenario.name()).file_stem().unwrap_or_default().to_string_lossy();
    let digest = Digest::of_text(recorded).to_string();
    Path::new("results").join(format!("{kind}{stem}-{}{shard}", &digest[..8]))
}

/// Returns the coordinates of a point in the results.
pub fn key(point: &Point) -> PointKey {
    PointKey { variant: point.variant.clone(), sweep: point.sweep.clone(), replicate: point.replicate }
}

/// Returns the number of a point in its scenario, from 0.
pub fn number_of(point: &Point, scenario: &Scenario) -> usize {
    scenario.points().iter().position(|other| key(other) == key(point)).unwrap_or_default()
}

/// Describes a point, printable on a terminal: `HULL, workload.background.load = 0.2, replicate 1`.
pub fn label(point: &Point) -> String {
    let label = printable(&point.label()).into_owned();
    match point.replicate {
        0 => label,
        replicate => format!("{label}, replicate {replicate}"),
    }
}

/// Returns the command that repeats a subcommand with `points` of the scenario at `path` with these overrides, quoted
/// for a shell. It has their seed, except where seeds are swept: one on the command line would end that.
pub fn command(subcommand: &str, path: &Path, overrides: &Overrides, points: &[Point]) -> String {
    let sweeps_seeds = points.iter().flat_map(|point| &point.sweep).any(|(key, _)| key == "run.seed");
    let seed = points.first().map(|first| first.seed).filter(|_| !sweeps_seeds);
    let mut command = format!("{} {subcommand} {}", quoted(program()), quoted(&path.to_string_lossy()));
    for set in &overrides.set {
        command.push_str(&format!(" --set {}", quoted(set)));
    }
    if let Some(seed) = seed.or(overrides.seed) {
        command.push_str(&format!(" --seed {seed}"));
    }
    if overrides.replicates > 0 {
        command.push_str(&format!(" --replicates {}", overrides.replicates));
    }
    command
}

/// The name by which the command line was called: `plimsoll`, or a program that registers its own mechanisms.
static PROGRAM: OnceLock<String> = OnceLock::new();

/// Notes how the command line was called, for commands that repeat a run.
pub fn called(program: &OsStr) {
    let name = Path::new(program).file_name().unwrap_or("plimsoll".as_ref());
    PROGRAM.get_or_init(|| name.to_string_lossy().into_owned());
}

/// Returns the name by which the command line was called.
pub fn program() -> &'static str {
    PROGRAM.get().map_or("plimsoll", String::as_str)
}

/// Quotes a word for a POSIX shell, if it needs quotes.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns `scenario.toml` of the run directory: the scenario with all its included files, after a head that names the
/// points. It repeats the run anywhere, and its digest distinguishes runs.
pub fn record(scenario: &Scenario) -> String {
    let mut text = HEAD.to_owned();
    for point in scenario.points() {
        text.push_str(&format!("# {:016x}  {}\n", point.digest, point.id));
    }
    text.push('\n');
    text.push_str(&without_head(scenario.self_contained()));
    text
}

const HEAD: &str = "# The scenario as it was run, with all that it depends on: `plimsoll run` of this file repeats \
    it.\n\
                    # The points and the digest of what each runs:\n#\n";

/// Removes the head of a recorded scenario, which does not get a second one and is thus recorded unchanged.
fn without_head(text: &str) -> Cow<'_, str> {
    // Only keys of the flags may precede the head; a later head is part of an included file.
    let start = text.find(HEAD).filter(|start| !text[..*start].contains("\n["));
    let end = start.and_then(|start| Some(start + text[start..].find("\n\n")? + 2));
    match start.zip(end) {
        Some((start, end)) => Cow::Owned(format!("{}{}", &text[..start], &text[end..])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_counted_from_one() {
        assert_eq!("1/3".parse(), Ok(Shard { number: 1, of: 3 }));
        for wrong in ["0/3", "4/3", "1", "1/0", "a/b", "-1/2", ""] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn commands_survive_a_shell() {
        let cases = [
            ("a.toml", "a.toml"),
            ("run.duration=1s", "run.duration=1s"),
            ("my file.toml", "'my file.toml'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ];
        for (word, expected) in cases {
            assert_eq!(quoted(word), expected);
        }
    }
}
