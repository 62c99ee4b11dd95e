//! Swept keys and values that a file has twice: their runs would count as independent samples.

use std::collections::BTreeMap;

use crate::error::Report;
use crate::node::{ValueNode, dotted};
use crate::overlay::SweepAxis;
use crate::source::{ScenarioTexts, ValueOrigin};

/// Reports the keys that have two lists of values, as `"a.b"` and `a.b` are one key.
pub(super) fn keys(sources: &ScenarioTexts, axes: &[SweepAxis]) -> Vec<Report> {
    let again = axes.iter().enumerate().filter_map(|(number, axis)| {
        let first = axes[..number].iter().find(|known| known.path == axis.path)?;
        let (origin, known) = (&axis.values.first()?.key, &first.values.first()?.key);
        let key = dotted(&axis.path);
        let report = Report::at(sources, origin, format!("sweep.{key}"), format!("`{key}` is swept twice"));
        Some(report.allowed("one list of values for each key").help(first_place(sources, known)))
    });
    again.collect()
}

/// Reports the values of an axis that make the same runs as an earlier one in every variant, however they are written.
/// `digests` are the digests of the runs' inputs, one for every variant and combination, the last axis turning fastest.
pub(super) fn values(
    sources: &ScenarioTexts,
    axes: &[SweepAxis],
    digests: impl Iterator<Item = u64>,
) -> Vec<Report> {
    let mut reports = Vec::new();
    if axes.iter().all(|axis| axis.values.len() < 2) {
        return reports;
    }
    let digests: Vec<u64> = digests.collect();
    let mut turns = 1;
    for axis in axes.iter().rev() {
        let count = axis.values.len();
        let mut known: BTreeMap<Vec<u64>, &ValueNode> = BTreeMap::new();
        for (number, value) in axis.values.iter().enumerate() {
            let runs = digests.chunks(turns).skip(number).step_by(count).flatten().copied().collect();
            match known.get(&runs) {
                Some(first) => reports.push(same(sources, axis, first, value)),
                None => {
                    known.insert(runs, value);
                }
            }
        }
        turns *= count;
    }
    reports
}

fn same(sources: &ScenarioTexts, axis: &SweepAxis, first: &ValueNode, value: &ValueNode) -> Report {
    let (literal, before) = (value.literal(), first.literal());
    let message = match literal == before {
        true => format!("{literal} is swept twice"),
        false => format!("{literal} makes the same runs as {before}, so it is swept twice"),
    };
    let report = Report::at(sources, &value.origin, format!("sweep.{}", dotted(&axis.path)), message);
    report.allowed("each value once").help(first_place(sources, &first.origin))
}

fn first_place(sources: &ScenarioTexts, first: &ValueOrigin) -> String {
    let place = sources.place(first);
    format!("remove one of the two; the first is at {}:{}:{}", place.file, place.line, place.column)
}
