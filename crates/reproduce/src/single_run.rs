//! One run of a scenario of a study, beside its figures: for values that theory settles.

use std::path::Path;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::{Overrides, Scenario};

use crate::error::ReproduceError;
use crate::study::Study;

/// Runs a scenario of a study, with the settings of its first base and others, with the scheme `series`.
pub(crate) fn run_once(
    study: &Study,
    name: &str,
    series: &str,
    set: &[&str],
    seed: u64,
    folder: &Path,
) -> Result<Outcome, ReproduceError> {
    let set = set.iter().map(|&set| set.to_owned()).collect();
    let overrides = Overrides { set, seed: Some(seed), replicates: 1, ..Overrides::default() };
    let scenario = load(name, &study.text(name, study.bases[0]), folder, &overrides)?;
    let point = scenario.points().iter().find(|point| point.variant == series);
    let point = point.expect("the scenario has a variant of that name");
    let outcome = plimsoll_sim::run(&point.model, &mut |_| true);
    outcome.map_err(|error| ReproduceError::Batch(error.into()))
}

/// Reads the scenario `text`, which is named `name`, with these overrides; it finds included files in `folder`.
pub(crate) fn load(
    name: &str,
    text: &str,
    folder: &Path,
    overrides: &Overrides,
) -> Result<Scenario, ReproduceError> {
    Scenario::parse_with(name, text, folder, overrides).map_err(|errors| ReproduceError::Scenario {
        name: name.to_owned(),
        problem: errors.first().map(ToString::to_string).unwrap_or_default(),
    })
}
