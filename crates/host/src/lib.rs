//! Installs mechanisms on a real Linux host, and removes them again.
//!
//! ```text
//! policy.toml ──parse, check──> Policy ──with the host's properties (HostFacts)──> ApplyPlan: an ordered list of Steps
//!                                                                           │
//!   plan:     print the plan as a diff; change nothing                      │
//!   change:   apply only the steps in which a changed policy differs from its applied version (`change.rs`)
//!   apply:    check every step, write the plan to disk (Journal) ───────────┤──> for each step: record, then make it
//!   rollback: undo the steps that have begun, in reverse order <────────────┘    (System, in `kernel`)
//!   status:   read the maps that the programs have pinned
//! ```
//!
//! * **A step holds its undo information**: the state before it. Undoing a step is idempotent, also after a partial
//!   change, and leaves later changes by others alone.
//! * **One change at a time**: planning, applying, confirming and rolling back hold the lock, so that the recorded
//!   earlier state and the other policies' state are current. The commands that they start hold it too, in case they
//!   outlive their parent.
//! * **The journal is in /run**, which a reboot empties as it undoes all that a policy changes. Only root can write it,
//!   a rollback trusts only steps that follow from its policy, and it records the network namespace in which its policy
//!   is rolled back.
//! * **Programs, links and maps are pinned** under /sys/fs/bpf/plimsoll, so no process has to keep running.
//! * **Privileged operations** are in `kernel.rs` and `commands.rs`: a few fixed commands of iproute2, without a shell
//!   and with a PATH of their own, files in /sys and /proc, and libbpf through `plimsoll-bpf`. Their arguments have the
//!   types of `names.rs`.
//!
//! Without the feature `kernel`, a policy can be parsed and planned, but not applied.

mod apply;
mod change;
mod commands;
mod counters;
mod error;
mod example;
mod facts;
mod folders;
mod here;
mod journal;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(feature = "kernel")]
mod launch;
#[cfg(feature = "kernel")]
mod levels;
mod lock;
mod metrics;
mod names;
#[cfg(feature = "kernel")]
mod observe;
mod plan;
mod policy;
mod rollout;
#[cfg(feature = "kernel")]
mod shaper;
mod status;
mod step;

pub use apply::{ApplyProgress, RolledBack, apply, confirm, roll_back_plan, rollback, rollback_rest};
pub use change::{PlanChange, apply_change, plan_change, roll_back_last};
pub use counters::{HostCounters, PauseCounter};
pub use error::Error;
pub use example::ExampleHost;
pub use facts::{Device, Host, HostFacts, HostRoute, RootQueue, Unit};
pub use folders::StateFolders;
pub use here::{Entered, Here};
pub use journal::{Applied, PendingChange, PolicyJournal};
#[cfg(feature = "kernel")]
pub use kernel::Kernel;
#[cfg(feature = "kernel")]
pub use launch::{Launch, launch};
#[cfg(feature = "kernel")]
pub use levels::attach_unit;
pub use lock::HostLock;
pub use metrics::{bind, open_metrics, serve};
pub use names::{CgroupPath, DeviceName, InvalidName, PolicyName, Prefix, UnitName};
#[cfg(feature = "kernel")]
pub use observe::observe;
pub use plan::{ApplyPlan, Difference, PlanMove, plan};
#[cfg(feature = "kernel")]
pub use plimsoll_bpf::ConnectionOptions;
pub use policy::{Dctcp, DeviceSide, Pacer, PacerQueue, Policy, PolicyError, QjumpPolicy, in_line};
pub use rollout::{HostCommand, HostReply, Rollout, RolloutState, WaveSizes};
#[cfg(feature = "kernel")]
pub use shaper::{pace, pace_nothing};
pub use status::{AssignmentStatus, DctcpStatus, LevelStatus, PacerStatus, PhantomQueueStatus, PolicyStatus};
pub use step::{Hold, LevelCgroup, PortProgram, Shape, Step, System, Undone};
