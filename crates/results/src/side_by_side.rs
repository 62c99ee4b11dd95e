//! Runs side by side: which of their samples are the same, and one summary of all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::summary::Options;
use crate::{Digest, PointKey, PointOutcome, Summary};

/// The samples of the run directories so far, each with the first directory that contains it.
#[derive(Clone, Debug, Default)]
pub struct Samples(BTreeMap<Sample, PathBuf>);

/// The identity of a sample: its input and its result. The input alone is not enough, since another build or an
/// emulated run may have another result; neither is the result, which two scenarios may share.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Sample {
    input: String,
    variant: String,
    sweep: Vec<(String, String)>,
    seed: u64,
    result: Digest,
}

impl Samples {
    /// Returns the points of a run directory that none before it contains, and how many others it has of each of those
    /// directories. `inputs` has the digest of each point's input.
    pub fn new_ones(
        &mut self,
        inputs: &BTreeMap<PointKey, String>,
        points: Vec<PointOutcome>,
        path: &Path,
    ) -> (Vec<PointOutcome>, BTreeMap<PathBuf, usize>) {
        let mut again: BTreeMap<PathBuf, usize> = BTreeMap::new();
        let mut new = Vec::new();
        for point in points {
            let sample = Sample {
                input: inputs.get(&point.key).cloned().unwrap_or_default(),
                variant: point.key.variant.clone(),
                sweep: point.key.sweep.clone(),
                seed: point.seed,
                result: point.digest,
            };
            match self.0.get(&sample) {
                Some(first) => *again.entry(first.clone()).or_default() += 1,
                None => {
                    self.0.insert(sample, path.to_owned());
                    new.push(point);
                }
            }
        }
        (new, again)
    }
}

/// Runs cannot be compared, for this reason.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name} cannot be compared with {first}: {why}")]
pub struct NothingInCommon {
    name: String,
    first: String,
    why: String,
}

/// Merges all runs into one summary, with each variant named after its run and compared with the same variant in the
/// first run that has it. Returns it with the points behind it.
///
/// # Errors
/// Returns an error that says why, if a run has nothing in common with the first one.
pub fn side_by_side(
    runs: Vec<Vec<PointOutcome>>,
    names: &[String],
) -> Result<(Summary, Vec<PointOutcome>), NothingInCommon> {
    for (run, name) in runs.iter().zip(names).skip(1) {
        if let Some(why) = in_common(&runs[0], run) {
            return Err(NothingInCommon { name: name.clone(), first: names[0].clone(), why });
        }
    }
    let mut variants: Vec<String> = Vec::new();
    for point in runs.iter().flatten() {
        if !variants.contains(&point.key.variant) {
            variants.push(point.key.variant.clone());
        }
    }
    let mut by_variant: Vec<Vec<PointOutcome>> = variants.iter().map(|_| Vec::new()).collect();
    for (points, name) in runs.into_iter().zip(names) {
        for mut point in points {
            let group = variants.iter().position(|variant| *variant == point.key.variant).unwrap_or(0);
            point.key.variant = format!("{} ({name})", point.key.variant);
            by_variant[group].push(point);
        }
    }
    let options = Options::default();
    let comparisons: Vec<_> =
        by_variant.iter().flat_map(|points| Summary::of(points, &options).comparisons).collect();
    let all: Vec<PointOutcome> = by_variant.into_iter().flatten().collect();
    Ok((Summary { comparisons, ..Summary::of(&all, &options) }, all))
}

/// Returns why two runs have nothing in common, if that is so: no workload, or other swept keys.
fn in_common(first: &[PointOutcome], other: &[PointOutcome]) -> Option<String> {
    fn workloads(points: &[PointOutcome]) -> BTreeSet<&str> {
        points.iter().flat_map(|point| &point.outcome.workloads).map(|workload| &*workload.name).collect()
    }
    fn swept(points: &[PointOutcome]) -> BTreeSet<&str> {
        points.iter().flat_map(|point| &point.key.sweep).map(|(key, _)| &**key).collect()
    }
    let listed = |names: BTreeSet<&str>| match names.is_empty() {
        true => "none".to_owned(),
        false => names.into_iter().collect::<Vec<_>>().join(", "),
    };
    if first.is_empty() || other.is_empty() {
        return None;
    }
    let [ours, theirs] = [first, other].map(workloads);
    if ours.is_disjoint(&theirs) {
        let (ours, theirs) = (listed(ours), listed(theirs));
        return Some(format!("no workload is in both; the first has {ours}, the other {theirs}"));
    }
    let [ours, theirs] = [first, other].map(swept);
    (ours != theirs).then(|| {
        format!("they sweep different keys; the first sweeps {}, the other {}", listed(ours), listed(theirs))
    })
}
