//! The formulas of `plimsoll.model`.

use plimsoll_models::questions;
use pyo3::prelude::*;

use crate::errors;

/// Returns the answer of a model as JSON; `options` is a JSON object of those that differ from their defaults.
#[pyfunction]
pub(crate) fn answer(py: Python<'_>, model: &str, options: &str) -> PyResult<String> {
    py.detach(|| {
        let options = serde_json::from_str(options).map_err(|error| errors::model(&error))?;
        questions::answer(model, &options).map_err(|error| errors::model(&error))
    })
}
