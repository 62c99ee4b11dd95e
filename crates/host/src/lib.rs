//! Puts mechanisms on a real Linux host, and takes them away again.
//!
//! ```text
//! policy.toml ──parse, check──> Policy ──with what the host has (Facts)──> Plan: an ordered list of Steps
//!                                                                           │
//!   plan:     print the plan as a diff; change nothing                      │
//!   apply:    try what can be tried, keep the plan on disk (Journal) ───────┤──> for each step: note it, then do it
//!   rollback: undo the steps that were begun, the last first <──────────────┘    (System, in `kernel`)
//!   status:   read the maps that the programs left pinned
//! ```
//!
//! * **A step knows its way back**: it holds what was there before. Undoing one is idempotent, also where it was only
//!   half done, and leaves alone what somebody else has changed since.
//! * **One at a time**: who plans, applies, confirms or takes back holds the lock meanwhile, so that what was there before
//!   and what other policies hold is current. So do the commands that it starts, should they outlive it.
//! * **The journal is in /run**, which a reboot empties as it empties all that a policy changes. It is root's alone,
//!   is believed only as far as its policy leads, and says in which network namespace it was written, where its
//!   policy is taken back.
//! * **Programs, links and maps are pinned** under /sys/fs/bpf/plimsoll, so nothing has to keep running.
//! * **What needs privileges** is in `kernel.rs` and `commands.rs`: a handful of fixed commands of iproute2, without a
//!   shell and with a PATH of their own, files in /sys and /proc, and libbpf through `plimsoll-bpf`. What is handed
//!   to them are the types of `names.rs`.
//!
//! Without the feature `kernel` a policy can be parsed and planned, and nothing else.

mod apply;
mod commands;
mod error;
mod facts;
mod here;
mod journal;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(feature = "kernel")]
mod launch;
#[cfg(feature = "kernel")]
mod levels;
mod metrics;
mod names;
#[cfg(feature = "kernel")]
mod observe;
mod plan;
mod policy;
#[cfg(feature = "kernel")]
mod shaper;
mod status;
mod step;

pub use apply::{Moment, RolledBack, apply, confirm, rollback, rollback_rest, take_back};
pub use error::Error;
pub use facts::{Device, Facts, Host, RootQueue, Route, Unit};
pub use here::{Entered, Here};
pub use journal::{Applied, Journal, Lock, Places};
#[cfg(feature = "kernel")]
pub use kernel::Kernel;
#[cfg(feature = "kernel")]
pub use launch::{Launch, launch};
#[cfg(feature = "kernel")]
pub use levels::attach_unit;
pub use metrics::{Listener, open_metrics, serve};
pub use names::{CgroupPath, DeviceName, InvalidName, PolicyName, Prefix, UnitName};
#[cfg(feature = "kernel")]
pub use observe::observe;
pub use plan::{Plan, plan};
#[cfg(feature = "kernel")]
pub use plimsoll_bpf::ConnectionOptions;
pub use policy::{Dctcp, Departure, Pacer, Policy, PolicyError, Qjump, Side};
#[cfg(feature = "kernel")]
pub use shaper::{pace, pace_nothing};
pub use status::{AssignmentStatus, DctcpStatus, LevelStatus, PacerStatus, PhantomQueueStatus, Status};
pub use step::{Hold, Member, PortProgram, Shape, Step, System, Undone};
