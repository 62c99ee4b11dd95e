//! The objectives of a scenario's table `slo`, for the commands that check or search them.

use anyhow::anyhow;
use plimsoll_line::Slo;
use plimsoll_scenario::Scenario;

/// Returns the objectives of a scenario's own, each after its place.
pub fn own_objectives(scenario: &Scenario) -> impl Iterator<Item = (String, &str)> {
    scenario.objectives().iter().map(|(name, text)| (format!("slo.{name}"), text.as_str()))
}

/// Reads an objective of the scenario, or of the option `place`.
///
/// # Errors
/// Returns an error if it cannot be read, or observed in every variant.
pub fn objective(place: &str, text: &str, scenario: &Scenario) -> anyhow::Result<Slo> {
    let models = scenario.points().iter().map(|point| &point.model);
    let slo = Slo::parse(text).and_then(|slo| slo.check(models).map(|()| slo));
    slo.map_err(|error| anyhow!("{place}: {error}"))
}

/// Checks that every objective of a scenario's own can be read, and observed in every variant.
///
/// # Errors
/// Returns an error for the first that cannot.
pub fn check_objectives(scenario: &Scenario) -> anyhow::Result<()> {
    own_objectives(scenario).try_for_each(|(place, text)| objective(&place, text, scenario).map(drop))
}
