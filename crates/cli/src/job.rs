//! [`Job`]: the points of a scenario, and the run directory that they belong to.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::anyhow;
use plimsoll_results::run_dir::{Plan, PlannedPoint, SIMULATOR};
use plimsoll_results::{Digest, PointKey, RunDir};
use plimsoll_scenario::{Point, Scenario};
use plimsoll_units::text::printable;

use crate::output;
use crate::source::{Source, quoted};

/// `1/3`: the first of three shares.
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

/// What `plimsoll run` was asked for.
#[derive(Debug)]
pub struct Job<'a> {
    scenario: &'a Scenario,
    shard: Option<Shard>,
    variants: &'a [String],
    plan: Plan,
}

impl<'a> Job<'a> {
    /// The job of a checked scenario: this shard's points of these variants, of all where none is named.
    ///
    /// # Errors
    /// For a variant that there is not.
    pub fn new(
        source: &Source,
        scenario: &'a Scenario,
        shard: Option<Shard>,
        variants: &'a [String],
    ) -> anyhow::Result<Job<'a>> {
        let points = scenario.points();
        check_variants(points, variants)?;
        let seed = points.first().map_or(0, |point| point.seed);
        let mut command = source.command(seed);
        if let Some(Shard { number, of }) = shard {
            command.push_str(&format!(" --shard {number}/{of}"));
        }
        for variant in variants {
            command.push_str(&format!(" --variant {}", quoted(variant)));
        }
        let plan = Plan {
            title: scenario.title().to_owned(),
            description: points.first().map_or_else(String::new, |point| point.model.description.clone()),
            carrier: SIMULATOR.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: output::commit().map(str::to_owned),
            command,
            seed,
            scenario: record(scenario),
            shard: shard.map(|shard| (shard.number, shard.of)),
            points: points.iter().map(|p| PlannedPoint { key: key(p), seed: p.seed }).collect(),
            warnings: scenario.warnings().iter().map(|w| format!("`{}`: {}", w.key, w.message)).collect(),
        };
        Ok(Job { scenario, shard, variants, plan })
    }

    /// What the run directory keeps of it.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Every point of the scenario, those of other shards included.
    pub fn points(&self) -> &'a [Point] {
        self.scenario.points()
    }

    /// Variants that were asked for by name; none means all.
    pub fn variants(&self) -> &'a [String] {
        self.variants
    }

    /// The points of this shard and of the variants asked for, each once.
    pub fn share(&self) -> Vec<&'a Point> {
        let mut share: Vec<&Point> = Vec::new();
        let mut known = BTreeSet::new();
        for (index, point) in self.points().iter().enumerate() {
            let mine = self.shard.is_none_or(|shard| index as u32 % shard.of + 1 == shard.number);
            let wanted = self.variants.is_empty() || self.variants.contains(&point.variant);
            if mine && wanted && known.insert(key(point)) {
                share.push(point);
            }
        }
        share
    }

    /// Where the run is kept unless the user says otherwise: the same for the same scenario and
    /// overrides, so that the same command goes on where it stopped.
    pub fn default_dir(&self) -> PathBuf {
        let shard = self.shard.map_or_else(String::new, |s| format!("-shard-{}-of-{}", s.number, s.of));
        default_dir("", self.scenario, &self.plan.scenario, &shard)
    }

    /// Whether a run directory holds results of this job.
    pub fn is_of(&self, run: &RunDir) -> bool {
        run.manifest().scenario_digest == Digest::of_text(&self.plan.scenario)
    }
}

fn check_variants(points: &[Point], variants: &[String]) -> anyhow::Result<()> {
    let mut names: Vec<&str> = points.iter().map(|point| point.variant.as_str()).collect();
    names.dedup();
    match variants.iter().find(|variant| !names.contains(&variant.as_str())) {
        Some(variant) => Err(anyhow!("there is no variant `{variant}`; there are: {}", names.join(", "))),
        None => Ok(()),
    }
}

/// `results/<kind><scenario>-<digest of what is recorded><shard>`.
pub fn default_dir(kind: &str, scenario: &Scenario, recorded: &str, shard: &str) -> PathBuf {
    let stem = Path::new(scenario.name()).file_stem().unwrap_or_default().to_string_lossy();
    let digest = Digest::of_text(recorded).to_string();
    Path::new("results").join(format!("{kind}{stem}-{}{shard}", &digest[..8]))
}

/// The coordinates of a point as results know them.
pub fn key(point: &Point) -> PointKey {
    PointKey { variant: point.variant.clone(), sweep: point.sweep.clone(), replicate: point.replicate }
}

/// A point in words, fit for a terminal: `HULL, workload.background.load = 0.2, replicate 1`.
pub fn label(point: &Point) -> String {
    let label = printable(&point.label()).into_owned();
    match point.replicate {
        0 => label,
        replicate => format!("{label}, replicate {replicate}"),
    }
}

/// `scenario.toml` of the run directory: the scenario with all that it depends on, after a head that
/// names the points. It repeats the run anywhere, and its digest tells two runs apart.
fn record(scenario: &Scenario) -> String {
    let mut text = HEAD.to_owned();
    for point in scenario.points() {
        text.push_str(&format!("# {:016x}  {}\n", point.digest, point.id));
    }
    text.push('\n');
    text.push_str(&without_head(scenario.self_contained()));
    text
}

const HEAD: &str = "# The scenario as it was run, with all that it depends on: `plimsoll run` of this file repeats it.\n\
                    # The points and the digest of what each runs:\n#\n";

/// A scenario that a run directory has kept gets no second head, so that it is recorded as it is.
fn without_head(text: &str) -> Cow<'_, str> {
    // Before it there are at most keys for the flags; a later one is in the text of a file.
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
