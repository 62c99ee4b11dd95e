//! The variants of several runs side by side, in one summary.

use std::collections::BTreeSet;

use plimsoll_results::summary::Options;
use plimsoll_results::{PointOutcome, Summary};

/// Two runs have nothing in common.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name} cannot be compared with {first}: {why}")]
pub struct Incomparable {
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
) -> Result<(Summary, Vec<PointOutcome>), Incomparable> {
    for (run, name) in runs.iter().zip(names).skip(1) {
        if let Some(why) = in_common(&runs[0], run) {
            return Err(Incomparable { name: name.clone(), first: names[0].clone(), why });
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
