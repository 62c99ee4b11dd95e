//! Mechanisms in Python: classes under the names that a scenario has for them.
//!
//! A mechanism has no way to fail in the simulator, so the first exception is kept, the run is cancelled, and the call
//! that ran it raises the exception.

use std::sync::{Arc, Mutex};

use plimsoll_fabric::net::port::QueueDiscipline;
use plimsoll_fabric::net::topology::Link;
use plimsoll_mechanisms::tcp::CongestionControl;
use plimsoll_scenario::{Parameters, Registry};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::controllers::Controller;
use crate::disciplines::Discipline;
use crate::errors::PlimsollError;

/// The congestion controllers and the queue disciplines of a scenario: name, version and class of each.
pub(crate) type Mechanisms = (Vec<Class>, Vec<Class>);

type Class = (String, String, Py<PyAny>);

/// The first exception of a scenario's mechanisms.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    pub(crate) fn is_set(&self) -> bool {
        self.0.lock().is_ok_and(|failure| failure.is_some())
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().ok()?.take()
    }

    pub(crate) fn set(&self, error: PyErr) {
        if let Ok(mut failure) = self.0.lock() {
            failure.get_or_insert(error);
        }
    }
}

/// The table of a mechanism in a scenario, whose keys are the arguments of its class.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Arguments(Map<String, Value>);

impl Parameters for Arguments {}

impl Arguments {
    /// Returns a new object of a class.
    pub(crate) fn call<'py>(&self, class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        class.call((), Some(&self.keywords(class.py())?))
    }

    /// Returns a new object of a class, which `prepare` is handed before it is initialised.
    pub(crate) fn call_with(
        &self,
        class: &Bound<'_, PyAny>,
        prepare: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>,
    ) -> PyResult<Py<PyAny>> {
        let object = class.call_method1(intern!(class.py(), "__new__"), (class,))?;
        prepare(&object)?;
        let initialise = intern!(class.py(), "__init__");
        object.call_method(initialise, (), Some(&self.keywords(class.py())?))?;
        Ok(object.unbind())
    }

    fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let text = serde_json::to_string(self).unwrap_or_default();
        Ok(py.import("json")?.call_method1("loads", (text,))?.cast_into::<PyDict>()?)
    }
}

/// Returns a registry with these mechanisms.
pub(crate) fn registry((controllers, disciplines): Mechanisms, failure: &Failure) -> PyResult<Registry> {
    let mut registry = Registry::new();
    for (name, version, class) in controllers {
        check_name("controller", &name, Registry::may_be_controller)?;
        let failure = failure.clone();
        let make = move |arguments: &Arguments| -> Box<dyn CongestionControl> {
            Box::new(Controller::make(&class, arguments, failure.clone()))
        };
        registry = registry.congestion_controller(&name, &version, make);
    }
    for (name, version, class) in disciplines {
        check_name("discipline", &name, Registry::may_be_mechanism)?;
        let failure = failure.clone();
        let make = move |arguments: &Arguments, link: &Link| -> Box<dyn QueueDiscipline> {
            Box::new(Discipline::make(&class, arguments, link, failure.clone()))
        };
        registry = registry.queue_discipline(&name, &version, make);
    }
    Ok(registry)
}

/// Checks a name, since a registry panics if a mechanism cannot have it.
fn check_name(what: &str, name: &str, may_be: fn(&str) -> bool) -> PyResult<()> {
    if may_be(name) {
        return Ok(());
    }
    let allowed = "lower-case letters, digits, `-` and `_`, and no name that Plimsoll has";
    Err(PlimsollError::new_err(format!("a {what} cannot be called {name:?}; allowed: {allowed}")))
}
