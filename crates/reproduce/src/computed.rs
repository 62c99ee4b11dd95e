//! The rows of a study that no run of a figure measures: rows that follow from others, and rows of theory.

use std::path::Path;

use plimsoll_units::Span;

use crate::error::ReproduceError;
use crate::exact::{ExactRow, ExactRun};
use crate::machine_model;
use crate::row::StudyRow;
use crate::single_run::run_once;
use crate::study::Study;

impl Study {
    /// Returns whether it has rows that are computed from others.
    pub(crate) fn computes(&self) -> bool {
        !self.claims.is_empty() || self.summary.is_some() || self.has_model()
    }

    fn has_model(&self) -> bool {
        self.figures.iter().any(|figure| figure.model.is_some())
    }

    /// Computes the rows that follow from `rows`: of the model of the machine, of the summary, and of the claims.
    pub(crate) fn computed(&self, rows: &[StudyRow]) -> Vec<StudyRow> {
        let mut computed = if self.has_model() { machine_model::rows(self, rows) } else { Vec::new() };
        let all = [rows, &computed].concat();
        let base = self.bases[0].name();
        computed.extend(self.summary.iter().flat_map(|summary| summary(self, rows)));
        computed.extend(self.claims.iter().flat_map(|claims| claims.rows(base, &self.published, &all)));
        computed
    }

    /// Measures the rows that are settled exactly: a second of work.
    ///
    /// # Errors
    /// If a shipped scenario does not load.
    pub fn measure_exact(&self, seed: u64) -> Result<Vec<StudyRow>, ReproduceError> {
        self.exact_rows(seed, self.laid_out()?.path())
    }

    /// Measures the same with the scenarios that are in a folder.
    pub(crate) fn exact_rows(&self, seed: u64, folder: &Path) -> Result<Vec<StudyRow>, ReproduceError> {
        let mut rows = self.exact.map_or(Ok(Vec::new()), |exact| exact(self, seed, folder))?;
        for run in &self.exact_runs {
            rows.extend(self.exact_run(run, seed, folder)?);
        }
        Ok(rows)
    }

    /// Runs a scenario with each of its schemes.
    fn exact_run(&self, run: &ExactRun, seed: u64, folder: &Path) -> Result<Vec<StudyRow>, ReproduceError> {
        let set: Vec<&str> = run.set.iter().map(String::as_str).collect();
        let mut rows = Vec::new();
        for scheme in &run.schemes {
            let outcome = run_once(self, &run.scenario, scheme, &set, seed, folder)?;
            for ExactRow { figure, series, x, metric, unit, of, value, tolerance } in &run.rows {
                let measured = of.estimate(&outcome, Span::ZERO).map_or(f64::NAN, |found| found.value);
                let series = series.as_ref().unwrap_or(scheme);
                let row = StudyRow::new(figure, self.bases[0].name(), series, x, metric, unit);
                rows.push(StudyRow { measured, ..row }.compare(Some(*value), None, Some(*tolerance)));
            }
        }
        Ok(rows)
    }
}
