//! Tasks of studies that only code can do: real servers that take turns, TCP between network namespaces, and how long
//! a step of a mechanism takes on this machine.
//!
//! ```text
//! study.toml: task, with, servers ──> plimsoll-reproduce ──read(name, Parameters)──> MakeTask ──point──> Task
//!                                            ^                                                            │
//!                                            └────────────── Measured: numbers of each scheme ────────────┘
//! ```
//!
//! `plimsoll-reproduce` depends on this crate and finds a task here by its name. This crate knows no study, no row and
//! no published value: which servers take turns, and under which load, is in the study's file. The registry is a
//! function ([`read`]), so that neither the command nor a test has to hand anything in. On systems and in builds that
//! cannot carry out a task, the same name gives a task whose check says why.

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod bursts;
#[cfg(target_os = "linux")]
mod controllers;
mod costs;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod lock_counter;
#[cfg(not(all(target_os = "linux", feature = "kernel")))]
mod missing;
pub mod parameters;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod rounds;
mod task;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod trace;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod traced;
#[cfg(target_os = "linux")]
mod turns;
#[cfg(target_os = "linux")]
mod veth;
#[cfg(target_os = "linux")]
mod wake_up;

pub use parameters::Parameters;
pub use task::{MakeTask, Measured, Task, TaskPoint, ratio_name};

/// Returns what makes the tasks of a figure: the task by its name, with the figure's parameters.
///
/// # Errors
/// Returns an error if no task has the name, or if the parameters do not fit it.
pub fn read(name: &str, parameters: Parameters) -> Result<MakeTask, String> {
    let read: fn(Parameters) -> Result<MakeTask, String> = match name {
        "schedule-cost" => costs::schedules,
        "limiter-cost" => costs::packets,
        #[cfg(target_os = "linux")]
        "controllers" => controllers::read,
        #[cfg(target_os = "linux")]
        "tcp-bursts" => bursts::read,
        #[cfg(target_os = "linux")]
        "turns" => turns::read,
        #[cfg(all(target_os = "linux", feature = "kernel"))]
        "traced-turns" => traced::read,
        #[cfg(not(target_os = "linux"))]
        "controllers" | "tcp-bursts" | "turns" => {
            |_| Ok(missing::missing("only Linux has the polling and the namespaces that this needs"))
        }
        #[cfg(not(all(target_os = "linux", feature = "kernel")))]
        "traced-turns" => |_| Ok(missing::missing(WITHOUT_PROGRAMS)),
        _ => return Err(format!("there is no task `{name}`; allowed: {}", NAMES.join(", "))),
    };
    read(parameters)
}

/// The names of all tasks.
pub const NAMES: [&str; 6] =
    ["controllers", "limiter-cost", "schedule-cost", "tcp-bursts", "traced-turns", "turns"];

/// The reason why a build without eBPF cannot trace servers or run the limiter.
#[cfg(not(all(target_os = "linux", feature = "kernel")))]
const WITHOUT_PROGRAMS: &str =
    "this plimsoll was built without the eBPF programs; `make kernel` builds one with them, on Linux";
