//! [`PythonScenario`]: a checked scenario with what was laid over it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_experiment::question;
use plimsoll_scenario::{Overrides, ScenarioError};
use pyo3::prelude::*;

use crate::errors;
use crate::mechanisms::{self, Failure, Mechanisms};

/// A point as Python sees it: variant, swept keys with their values, replicate, seed, name and digest of the input.
type Point = (String, Vec<(String, String)>, u32, u64, String, String);

/// A checked scenario with what was laid over it.
#[pyclass(frozen, name = "Scenario", module = "plimsoll._plimsoll")]
pub(crate) struct PythonScenario {
    pub(crate) scenario: plimsoll_scenario::Scenario,
    /// The file or the built-in scenario; a scenario of a text, or with files from Python, has none.
    path: Option<PathBuf>,
    /// The first exception of a mechanism in Python.
    pub(crate) failure: Failure,
}

#[pymethods]
impl PythonScenario {
    /// Reads and checks a file, or the built-in scenario of that name. `files` has texts that are read in place of
    /// files on the disk.
    #[staticmethod]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        set: Vec<String>,
        seed: Option<u64>,
        replicates: Option<u32>,
        mechanisms: Mechanisms,
        files: BTreeMap<String, String>,
    ) -> PyResult<PythonScenario> {
        let failure = Failure::default();
        let registry = mechanisms::registry(py, &mechanisms, &failure)?;
        let replicates = replicates.unwrap_or(0);
        let overrides = Overrides { set, seed, replicates, files, ..Overrides::default() };
        let loaded = py.detach(|| plimsoll_shipped::load(&registry, &path, &overrides));
        let path = Some(path).filter(|_| overrides.files.is_empty());
        PythonScenario::checked(py, loaded, &mechanisms, path, failure)
    }

    /// Checks a text; paths in it are relative to `folder`.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "Python has keywords for them")]
    fn parse(
        py: Python<'_>,
        name: &str,
        text: &str,
        folder: PathBuf,
        set: Vec<String>,
        seed: Option<u64>,
        replicates: Option<u32>,
        mechanisms: Mechanisms,
        files: BTreeMap<String, String>,
    ) -> PyResult<PythonScenario> {
        let failure = Failure::default();
        let registry = mechanisms::registry(py, &mechanisms, &failure)?;
        let replicates = replicates.unwrap_or(0);
        let overrides = Overrides { set, seed, replicates, files, ..Overrides::default() };
        let parse = || plimsoll_scenario::Scenario::parse_from(&registry, name, text, &folder, &overrides);
        PythonScenario::checked(py, py.detach(parse), &mechanisms, None, failure)
    }

    #[getter]
    fn name(&self) -> &str {
        self.scenario.name()
    }

    #[getter]
    fn title(&self) -> &str {
        self.scenario.title()
    }

    /// The scenario as it was read.
    #[getter]
    fn text(&self) -> &str {
        self.scenario.text()
    }

    /// The scenario with its overrides and with all files that it reads.
    #[getter]
    fn self_contained(&self) -> &str {
        self.scenario.self_contained()
    }

    #[getter]
    fn objectives(&self) -> Vec<(String, String)> {
        self.scenario.objectives().to_vec()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.scenario.warnings().iter().map(ToString::to_string).collect()
    }

    #[getter]
    fn points(&self) -> Vec<Point> {
        let points = self.scenario.points().iter();
        points
            .map(|point| {
                let digest = format!("{:016x}", point.digest);
                let sweep = point.sweep.clone();
                (point.variant.clone(), sweep, point.replicate, point.seed, point.id.clone(), digest)
            })
            .collect()
    }

    /// Returns the text that a run directory records, which repeats the run anywhere.
    fn recorded(&self) -> String {
        question::record(&self.scenario)
    }

    /// Returns a point as it is run: every key, and the source of its value.
    fn show(&self, index: usize) -> PyResult<String> {
        let point = self.scenario.points().get(index);
        let point =
            point.ok_or_else(|| errors::PlimsollError::new_err(format!("there is no point {index}")))?;
        Ok(point.show())
    }
}

impl PythonScenario {
    fn checked(
        py: Python<'_>,
        checked: Result<plimsoll_scenario::Scenario, Vec<ScenarioError>>,
        mechanisms: &Mechanisms,
        path: Option<PathBuf>,
        failure: Failure,
    ) -> PyResult<PythonScenario> {
        let scenario = checked.map_err(|errors| errors::scenario(py, &errors))?;
        mechanisms::check(py, &scenario, mechanisms)?;
        Ok(PythonScenario { scenario, path, failure })
    }

    /// Returns the command that repeats a run or a search of the scenario, whose run directory is `out`.
    pub(crate) fn command(&self, subcommand: &str, out: Option<&Path>) -> String {
        let PythonScenario { scenario, path, .. } = self;
        match path {
            Some(path) => question::command(subcommand, path, scenario.overrides(), scenario.points()),
            // The scenario that is recorded there has its overrides and its seed.
            None => {
                let recorded = out.unwrap_or(Path::new(".")).join("scenario.toml");
                format!("plimsoll {subcommand} {}", question::quoted(&recorded.to_string_lossy()))
            }
        }
    }
}
