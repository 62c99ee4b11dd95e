//! Mechanisms in Python: classes under the names that a scenario has for them.
//!
//! A mechanism has no way to fail in the simulator, so the first exception is kept, the run is cancelled, and the call
//! that ran it raises the exception.

use std::sync::{Arc, Mutex};

use plimsoll_fabric::net::port::QueueDiscipline;
use plimsoll_fabric::net::topology::Link;
use plimsoll_mechanisms::tcp::CongestionControl;
use plimsoll_scenario::{Parameters, Registry, Report, Scenario, ScenarioError, did_you_mean};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::controllers::PythonController;
use crate::disciplines::PythonDiscipline;
use crate::errors::{self, PlimsollError};

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
pub(crate) struct ClassArguments(Map<String, Value>);

impl Parameters for ClassArguments {}

impl ClassArguments {
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
pub(crate) fn registry(
    py: Python<'_>,
    (controllers, disciplines): &Mechanisms,
    failure: &Failure,
) -> PyResult<Registry> {
    let mut registry = Registry::new();
    for (name, version, class) in controllers {
        check_name("controller", name, Registry::may_be_controller)?;
        let (class, failure) = (class.clone_ref(py), failure.clone());
        let make = move |arguments: &ClassArguments| -> Box<dyn CongestionControl> {
            Box::new(PythonController::make(&class, arguments, failure.clone()))
        };
        registry = registry.congestion_controller(name, version, make);
    }
    for (name, version, class) in disciplines {
        check_name("discipline", name, Registry::may_be_mechanism)?;
        let (class, failure) = (class.clone_ref(py), failure.clone());
        let make = move |arguments: &ClassArguments, link: &Link| -> Box<dyn QueueDiscipline> {
            Box::new(PythonDiscipline::make(&class, arguments, link, failure.clone()))
        };
        registry = registry.queue_discipline(name, version, make);
    }
    Ok(registry)
}

/// Checks before any run that each class takes the arguments that a scenario has for it. A controller is also made once
/// for each set of arguments, since its class may check their values; a discipline cannot be, since it has no link yet.
pub(crate) fn check(
    py: Python<'_>,
    scenario: &Scenario,
    (controllers, disciplines): &Mechanisms,
) -> PyResult<()> {
    let mut checked: Vec<(String, &Map<String, Value>)> = Vec::new();
    for outside in scenario.points().iter().map(|point| &point.model.outside) {
        let own = outside.controller.iter().chain(outside.workload_controllers.values());
        let own = own.map(|own| (format!("transport.{}", own.name), &own.name, &own.params, controllers));
        let queues = outside.disciplines.iter();
        let queues = queues.map(|(tier, queue)| {
            (format!("port.{tier}.discipline.{}", queue.name), &queue.name, &queue.params, disciplines)
        });
        for (key, name, params, classes) in own.chain(queues) {
            let Some((.., class)) = classes.iter().find(|(known, ..)| known == name) else { continue };
            let use_of_it = (key, params);
            if !checked.contains(&use_of_it) {
                check_arguments(class.bind(py), &use_of_it.0, params, std::ptr::eq(classes, controllers))?;
                checked.push(use_of_it);
            }
        }
    }
    Ok(())
}

/// Checks the arguments of a class, which a scenario has in the table `table`; `make` makes an object of it, too.
fn check_arguments(
    class: &Bound<'_, PyAny>,
    table: &str,
    params: &Map<String, Value>,
    make: bool,
) -> PyResult<()> {
    let py = class.py();
    let arguments = ClassArguments(params.clone());
    // A class without a signature is checked when it is called.
    let Ok(signature) = py.import("inspect")?.call_method1("signature", (class,)) else { return Ok(()) };
    let bound = signature.call_method("bind", (), Some(&arguments.keywords(py)?));
    let Err(error) = bound.and_then(|_| if make { arguments.call(class).map(drop) } else { Ok(()) }) else {
        return Ok(());
    };
    let names = signature.getattr("parameters")?.call_method0("keys")?;
    let names: Vec<String> = names.try_iter()?.map(|name| name?.extract()).collect::<PyResult<_>>()?;
    let allowed = names.join(", ");
    let class: Bound<'_, PyString> = class.getattr("__name__")?.cast_into()?;
    let unknown = params.keys().find(|key| !names.contains(key));
    let report = match unknown {
        Some(key) => Report {
            key: format!("{table}.{key}"),
            message: format!("the class {class} has no argument `{key}`"),
            help: did_you_mean(key, names.iter().map(String::as_str)),
            allowed: Some(if names.is_empty() { "none".to_owned() } else { allowed }),
            ..Report::default()
        },
        None => Report {
            key: table.to_owned(),
            message: format!("the class {class} rejects its arguments: {}", error.value(py)),
            ..Report::default()
        },
    };
    let raised = errors::scenario(py, &[ScenarioError(report)]);
    raised.set_cause(py, Some(error));
    Err(raised)
}

/// Checks a name, since a registry panics if a mechanism cannot have it.
fn check_name(what: &str, name: &str, may_be: fn(&str) -> bool) -> PyResult<()> {
    if may_be(name) {
        return Ok(());
    }
    let allowed = "lower-case letters, digits, `-` and `_`, and no name that Plimsoll has";
    Err(PlimsollError::new_err(format!("a {what} cannot be called {name:?}; allowed: {allowed}")))
}
