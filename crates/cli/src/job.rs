//! [`Job`] is a selection of a scenario's points, and the run directory to which they belong.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::anyhow;
use plimsoll_results::run_dir::{self, Plan, PlannedPoint, SIMULATOR};
use plimsoll_results::{Digest, PointKey, RunDir};
use plimsoll_scenario::{Point, Scenario, Warning};
use plimsoll_text::printable;
use plimsoll_text::spelling::did_you_mean;

use crate::objectives::check_objectives;
use crate::output;
use crate::source::{Source, quoted};

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

/// The points that `plimsoll run` must run.
#[derive(Debug)]
pub struct Job<'a> {
    scenario: &'a Scenario,
    shard: Option<Shard>,
    variants: &'a [String],
    plan: Plan,
}

impl<'a> Job<'a> {
    /// Creates the job of a checked scenario: this shard's points of these variants, or of all variants if none is
    /// named.
    ///
    /// # Errors
    /// Returns an error for an unknown variant, and for an objective of the scenario that no search could use.
    pub fn new(
        source: &Source,
        scenario: &'a Scenario,
        shard: Option<Shard>,
        variants: &'a [String],
    ) -> anyhow::Result<Job<'a>> {
        let points = scenario.points();
        check_variants(points, variants)?;
        check_objectives(scenario)?;
        let mut command = source.command_of("run", points);
        if let Some(Shard { number, of }) = shard {
            command.push_str(&format!(" --shard {number}/{of}"));
        }
        for variant in variants {
            command.push_str(&format!(" --variant {}", quoted(variant)));
        }
        let plan = plan(scenario, command, shard);
        Ok(Job { scenario, shard, variants, plan })
    }

    /// Returns the plan that is recorded in the run directory.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns all points of the scenario, including those of other shards.
    pub fn points(&self) -> &'a [Point] {
        self.scenario.points()
    }

    /// Returns the selected variants; none stands for all.
    pub fn variants(&self) -> &'a [String] {
        self.variants
    }

    /// Returns the points of this shard and of the selected variants, each once.
    pub fn share(&self) -> Vec<&'a Point> {
        share(self.points(), self.shard, self.variants)
    }

    /// Returns the default run directory: the same for the same scenario and overrides, so that the same command
    /// resumes the run.
    pub fn default_dir(&self) -> PathBuf {
        let shard = self.shard.map_or_else(String::new, |s| format!("-shard-{}-of-{}", s.number, s.of));
        default_dir("", self.scenario, &self.plan.scenario, &shard)
    }

    /// Returns whether a run directory holds results of this job.
    pub fn is_of(&self, run: &RunDir) -> bool {
        run.manifest().scenario_digest == Digest::of_text(&self.plan.scenario)
    }
}

/// Returns what a run directory records of a simulation of all points, or of a shard. `command` repeats it.
pub fn plan(scenario: &Scenario, command: String, shard: Option<Shard>) -> Plan {
    let points = scenario.points();
    Plan {
        title: scenario.title().to_owned(),
        description: points.first().map_or_else(String::new, |point| point.model.description.clone()),
        carrier: SIMULATOR.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: output::commit().map(str::to_owned),
        command,
        seed: points.first().map_or(0, |point| point.seed),
        scenario: record(scenario),
        shard: shard.map(|shard| (shard.number, shard.of)),
        points: points.iter().map(|p| PlannedPoint { key: key(p), seed: p.seed }).collect(),
        warnings: scenario.warnings().iter().map(Warning::brief).collect(),
        columns: run_dir::Columns::default(),
    }
}

/// Returns the points of a shard and of these variants, or of all variants if none is named, each once.
pub fn share<'a>(points: &'a [Point], shard: Option<Shard>, variants: &[String]) -> Vec<&'a Point> {
    let mut share: Vec<&Point> = Vec::new();
    let mut known = BTreeSet::new();
    for (index, point) in points.iter().enumerate() {
        let mine = shard.is_none_or(|shard| index as u32 % shard.of + 1 == shard.number);
        let wanted = variants.is_empty() || variants.contains(&point.variant);
        if mine && wanted && known.insert(key(point)) {
            share.push(point);
        }
    }
    share
}

/// Checks that a scenario has each of these variants.
///
/// # Errors
/// Returns an error that names the first unknown one, and those that there are.
pub fn check_variants(points: &[Point], variants: &[String]) -> anyhow::Result<()> {
    let mut names: Vec<&str> = points.iter().map(|point| point.variant.as_str()).collect();
    names.dedup();
    match variants.iter().find(|variant| !names.contains(&variant.as_str())) {
        Some(variant) => {
            let hint = did_you_mean(variant, names.iter().copied());
            let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
            Err(anyhow!("unknown variant `{variant}`: expected one of {}{hint}", names.join(", ")))
        }
        None => Ok(()),
    }
}

/// Returns `results/<kind><scenario>-<digest of what is recorded><shard>`.
pub fn default_dir(kind: &str, scenario: &Scenario, recorded: &str, shard: &str) -> PathBuf {
    let stem = Path::new(scenario.name()).file_stem().unwrap_or_default().to_string_lossy();
    let digest = Digest::of_text(recorded).to_string();
    Path::new("results").join(format!("{kind}{stem}-{}{shard}", &digest[..8]))
}

/// Returns the coordinates of a point in the results.
pub fn key(point: &Point) -> PointKey {
    PointKey { variant: point.variant.clone(), sweep: point.sweep.clone(), replicate: point.replicate }
}

/// Describes a point, printable on a terminal: `HULL, workload.background.load = 0.2, replicate 1`.
pub fn label(point: &Point) -> String {
    let label = printable(&point.label()).into_owned();
    match point.replicate {
        0 => label,
        replicate => format!("{label}, replicate {replicate}"),
    }
}

/// Returns `scenario.toml` of the run directory: the scenario with all its included files, after a head that names the
/// points. It repeats the run anywhere, and its digest distinguishes runs.
fn record(scenario: &Scenario) -> String {
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
}
