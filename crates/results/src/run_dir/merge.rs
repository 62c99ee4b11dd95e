//! Merging the shards of one run.

use std::path::{Path, PathBuf};

use super::table_form::Columns;
use super::{Error, Existing, PlannedPoint, RunDir, RunPlan, Status};

/// Takes the finished points of several run directories into one at `into`, which is made or resumed. They must be of
/// the same scenario, carrier, seed and version; a point that two of them have must be the same in both. The caller
/// makes summary and report from [`RunDir::read_points`].
pub fn merge(into: &Path, parts: &[PathBuf], columns: Columns) -> Result<RunDir, Error> {
    let runs: Vec<RunDir> = parts.iter().map(|part| RunDir::open(part)).collect::<Result<_, _>>()?;
    let Some(first) = runs.first() else {
        return Err(Error::NoRun { path: into.to_owned() });
    };
    for run in &runs[1..] {
        if let Some(why) = run.manifest.conflict_with(&first.manifest) {
            return Err(Error::Conflict { path: run.path.clone(), why });
        }
    }
    let merged = RunDir::create(into, &RunPlan { columns, ..plan(first, &runs)? }, Existing::Resume, 0)?;
    for run in &runs {
        for (point, status) in run.status() {
            let Status::Done(digest) = status else { continue };
            match merged.point_status(point) {
                Status::Done(present) if present == digest => {}
                Status::Done(present) => {
                    let why = format!("{} has digest {digest} there and {present} here", point.key);
                    return Err(Error::Conflict { path: run.path.clone(), why });
                }
                _ => merged.write_point(&run.read_point(&point.key)?)?,
            }
        }
    }
    merged.finish()?;
    Ok(merged)
}

fn plan(first: &RunDir, runs: &[RunDir]) -> Result<RunPlan, Error> {
    let mut points: Vec<PlannedPoint> = Vec::new();
    let mut warnings: Vec<String> = Vec::new();
    for run in runs {
        for point in &run.manifest.points {
            let planned = PlannedPoint { key: point.key.clone(), seed: point.seed };
            if !points.contains(&planned) {
                points.push(planned);
            }
        }
        for warning in &run.manifest.warnings {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
    }
    let manifest = &first.manifest;
    Ok(RunPlan {
        title: manifest.title.clone(),
        description: manifest.description.clone(),
        carrier: manifest.carrier.clone(),
        version: manifest.plimsoll.clone(),
        commit: manifest.commit.clone(),
        command: without_shard(&manifest.command),
        seed: manifest.seed,
        scenario: first.scenario()?,
        shard: None,
        points,
        warnings,
        columns: Columns::default(),
    })
}

/// The command that runs all shards at once.
fn without_shard(command: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut skip = false;
    for word in command.split(' ') {
        if skip {
            skip = false;
        } else if word == "--shard" {
            skip = true;
        } else if !word.starts_with("--shard=") {
            words.push(word);
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shard_leaves_the_command() {
        assert_eq!(without_shard("plimsoll run a.toml --shard 1/4 --seed 3"), "plimsoll run a.toml --seed 3");
        assert_eq!(without_shard("plimsoll run a.toml --shard=1/4"), "plimsoll run a.toml");
        assert_eq!(without_shard("plimsoll run a.toml"), "plimsoll run a.toml");
    }
}
