//! Chronos on this machine: the place of the study whose tasks are real servers under a load generator.
//!
//! A measured figure is a `Figure` with `Runs::Task` and the base `Kernel`: `run` gives such a task the machine for
//! itself, one after the other, and keeps its rows in the journal as it does for all. The figures of
//! [`crate::CHRONOS`] have the points, the series and the published values that it measures at; its second base is
//! `Simulated`, the model of a server with the parameters of this machine.
