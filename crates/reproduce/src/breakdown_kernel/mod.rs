//! Table 5.1 of Kapoor's dissertation on this machine: where the time of a request to memcached goes, by
//! `plimsoll-breakdown`, and how often its threads find their locks taken.
//!
//! ```text
//! points ──> Turns: a load without and with tracing ──> rows `kernel` ──> published: Table 5.1, and what is held
//!              └── LockCounter: what mutrace counts
//! ```
//!
//! Servers are between network namespaces, as those of `chronos_kernel` over UDP are, and take turns as they do.

mod published;

#[cfg(all(target_os = "linux", feature = "kernel"))]
mod lock_counter;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod points;
#[cfg(not(all(target_os = "linux", feature = "kernel")))]
#[path = "without_programs.rs"]
mod points;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod trace;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod turns;

pub(crate) use points::TASKS;
pub(crate) use published::summary;
