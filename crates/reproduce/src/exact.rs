//! [`ExactRun`]: a short run of a scenario, whose numbers theory settles.

use plimsoll_experiment::Measure;
use serde::Deserialize;

/// A run of a scenario with each of some schemes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExactRun {
    pub(crate) scenario: String,
    /// The schemes, which are variants of the scenario.
    pub(crate) schemes: Vec<String>,
    /// The settings, as `--set` takes them.
    #[serde(default)]
    pub(crate) set: Vec<String>,
    pub(crate) rows: Vec<ExactRow>,
}

/// A number of the run, and its value by theory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ExactRow {
    #[serde(default = "oracles")]
    pub(crate) figure: String,
    /// The name in rows, where it is not the scheme.
    pub(crate) series: Option<String>,
    pub(crate) x: String,
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) of: Measure,
    pub(crate) value: f64,
    /// The factor within which the number has to be.
    pub(crate) tolerance: f64,
}

fn oracles() -> String {
    "oracles".to_owned()
}

impl ExactRun {
    /// Gives the measures the units of their rows.
    ///
    /// # Errors
    /// Returns an error if a measure is not in the unit of its row.
    pub(crate) fn checked(mut self) -> Result<ExactRun, String> {
        for row in &mut self.rows {
            row.of = row.of.clone().in_unit(&row.unit).map_err(|problem| format!("exact: {problem}"))?;
        }
        Ok(self)
    }
}
