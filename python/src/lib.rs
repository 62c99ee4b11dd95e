//! The Python module `plimsoll._plimsoll`: scenarios, runs, load lines and reproductions as Python calls them.
//!
//! The module converts arguments and results and does nothing else; `python/plimsoll/` gives it the form that users
//! see. Work is done without Python's lock on threads of its own, and the calling thread reports progress and handles
//! signals meanwhile (`watch.rs`).

mod circuits;
mod controllers;
mod disciplines;
mod errors;
mod line;
mod links;
mod mechanisms;
mod models;
mod reproduce;
mod runs;
mod scenario;
mod tables;
mod version;
mod watch;

#[cfg(feature = "command")]
use std::ffi::OsString;
#[cfg(feature = "command")]
use std::process::ExitCode;

use plimsoll_memory::LargePages;
#[cfg(feature = "command")]
use plimsoll_scenario::Registry;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

/// Runs the command line of these words, the first of which is the name of the program, and returns the exit status.
/// The words `--help`, and an error in the words, end the process.
#[cfg(feature = "command")]
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    let ended = py.detach(|| plimsoll_cli::main_of(&Registry::new(), words));
    // The standard library shows an exit status to the system only.
    (0..=u8::MAX).find(|status| ExitCode::from(*status) == ended).unwrap_or(u8::MAX)
}

/// Returns the names of the built-in scenarios and of the files that they include.
#[pyfunction]
fn built_in() -> Vec<String> {
    plimsoll_shipped::names().collect()
}

/// The module's classes, functions and exceptions.
#[pymodule]
fn _plimsoll(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("version", version::VERSION)?;
    module.add_class::<scenario::PythonScenario>()?;
    module.add_class::<controllers::PythonWindow>()?;
    module.add_class::<controllers::NewAck>()?;
    module.add_class::<controllers::WindowCut>()?;
    module.add_class::<disciplines::PythonLink>()?;
    module.add_class::<disciplines::Packet>()?;
    module.add_class::<runs::Outcomes>()?;
    module.add_class::<runs::ComparedRuns>()?;
    module.add_class::<tables::Table>()?;
    module.add_class::<line::Lines>()?;
    #[cfg(feature = "command")]
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(built_in, module)?)?;
    module.add_function(wrap_pyfunction!(runs::run, module)?)?;
    module.add_function(wrap_pyfunction!(links::run_links, module)?)?;
    module.add_function(wrap_pyfunction!(runs::load, module)?)?;
    module.add_function(wrap_pyfunction!(runs::merge, module)?)?;
    module.add_function(wrap_pyfunction!(runs::compare, module)?)?;
    module.add_function(wrap_pyfunction!(line::line, module)?)?;
    module.add_function(wrap_pyfunction!(reproduce::reproduce, module)?)?;
    module.add_function(wrap_pyfunction!(models::answer, module)?)?;
    module.add_function(wrap_pyfunction!(circuits::schedule, module)?)?;
    errors::add(module)
}
