//! [`Step`] is one change of the host, with its undo information; [`System`] makes and undoes it.

use std::fmt;
use std::path::PathBuf;

use plimsoll_units::{Bytes, Rate, Span};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::names::{DeviceName, Prefix, UnitName};
use crate::policy::{DeviceSide, Pacer, PhantomQueuePolicy, QjumpPolicy};

/// One change of the host, with the state before it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "change")]
pub enum Step {
    /// Creates the folder of a cgroup.
    Cgroup {
        /// The folder of the cgroup.
        folder: PathBuf,
    },
    /// Sets the most segments that TCP may pass to a device at once.
    Segments {
        /// The device whose gso_max_segs is set.
        device: DeviceName,
        /// The value before the change.
        before: u32,
        /// The value after the change.
        after: u32,
    },
    /// Adds a clsact queue to a device, which holds filters and delays nothing.
    Clsact {
        /// The device that gets the queue.
        device: DeviceName,
    },
    /// Replaces a device's default queue by fq, which obeys departure times.
    Departures {
        /// The device whose queue is replaced.
        device: DeviceName,
        /// The queue before the change.
        before: String,
    },
    /// Replaces a device's default queue by HTB, which passes packets on, with a TBF for the packets of one of its
    /// classes.
    Shaper {
        /// The device whose queue is replaced.
        device: DeviceName,
        /// The queue before the change.
        before: String,
        /// The parameters of the TBF.
        shape: Shape,
    },
    /// Attaches a program to a device.
    Program {
        /// The device of the program.
        device: DeviceName,
        /// The direction of the packets that the program handles.
        side: DeviceSide,
        /// The program and its parameters.
        program: PortProgram,
        /// The way in which it is attached.
        hold: Hold,
        /// The folder of its pins.
        pins: PathBuf,
    },
    /// Gives a level to the packets of its members' sockets.
    Level {
        /// The number of the level.
        level: u8,
        /// The cgroups that get the level.
        members: Vec<LevelCgroup>,
        /// The level's share of an epoch, where TCP connections pace themselves to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share: Option<(Bytes, Span)>,
        /// The folder of the program's pins.
        pins: PathBuf,
    },
    /// Configures systemd to give a unit the level at every start.
    DropIn {
        /// The unit that gets the level.
        unit: UnitName,
        /// The number of the level.
        level: u8,
        /// The drop-in file of the unit.
        file: PathBuf,
        /// The content of the file.
        text: String,
    },
    /// Registers DCTCP with the kernel's TCP.
    Dctcp {
        /// The folder of the program's pins.
        pins: PathBuf,
    },
    /// Sets the congestion control of a route.
    Route {
        /// The destination network of the route.
        prefix: Prefix,
        /// The earlier route to exactly this network, in the words of `ip route`; none if there was none.
        before: Option<String>,
        /// The route after the change.
        after: String,
    },
    /// Changes a setting in /proc/sys.
    Sysctl {
        /// The setting's name with dots.
        name: String,
        /// The value before the change.
        before: String,
        /// The value after the change.
        after: String,
    },
}

/// A cgroup whose programs have a level.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LevelCgroup {
    /// The folder of the cgroup.
    pub cgroup: PathBuf,
    /// The unit to which the cgroup belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitName>,
}

/// The parameters of a token bucket filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shape {
    /// The link's rate, which applies until a process sets it to the pacer's.
    pub rate: Rate,
    /// The bytes that leave back to back: at least one frame.
    pub burst: Bytes,
}

/// A program at a device, with its parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortProgram {
    /// Gives levels by port.
    Ports(Vec<(u16, u8)>),
    /// Limits QJump's levels.
    Limiter(QjumpPolicy),
    /// Marks packets by a phantom queue.
    PhantomQueue(PhantomQueuePolicy),
    /// Paces packets by HULL's rate law.
    Pacer {
        /// The section of the policy.
        pacer: Pacer,
        /// The mount point of cgroups.
        root: PathBuf,
        /// The folders of the paced cgroups.
        cgroups: Vec<PathBuf>,
        /// Whether packets are put into the class of a [`Step::Shaper`].
        #[serde(default)]
        shaped: bool,
    },
    /// Associates connections with the pacer.
    PacerFeedback {
        /// The section of the policy.
        pacer: Pacer,
        /// The path of the pinned map of the pacer's flows.
        flows: PathBuf,
    },
}

/// The way in which a program is attached to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// A link of its own (tcx), behind existing programs.
    Link,
    /// A filter of the device's clsact queue.
    Filter {
        /// The filter's priority; the lowest runs first.
        priority: u32,
    },
}

impl Step {
    /// Returns the folder of the step's pins, if it has any.
    pub(crate) fn pins(&self) -> Option<&PathBuf> {
        match self {
            Step::Program { pins, .. } | Step::Level { pins, .. } | Step::Dctcp { pins } => Some(pins),
            _ => None,
        }
    }

    /// Returns the device that the step changes by its name; a link is found by its pin.
    pub(crate) fn device(&self) -> Option<DeviceName> {
        match self {
            Step::Segments { device, .. }
            | Step::Clsact { device }
            | Step::Departures { device, .. }
            | Step::Shaper { device, .. }
            | Step::Program { device, hold: Hold::Filter { .. }, .. } => Some(device.clone()),
            Step::Route { after, .. } => {
                after.split_whitespace().skip_while(|word| *word != "dev").nth(1)?.parse().ok()
            }
            Step::Program { hold: Hold::Link, .. }
            | Step::Cgroup { .. }
            | Step::Level { .. }
            | Step::DropIn { .. }
            | Step::Dctcp { .. }
            | Step::Sysctl { .. } => None,
        }
    }

    /// Returns whether the change lies entirely in a network namespace, and vanishes with it.
    pub(crate) fn is_of_network(&self) -> bool {
        match self {
            Step::Segments { .. }
            | Step::Clsact { .. }
            | Step::Departures { .. }
            | Step::Shaper { .. }
            | Step::Route { .. }
            | Step::Sysctl { .. } => true,
            // Pins outlive a network namespace.
            Step::Program { .. }
            | Step::Cgroup { .. }
            | Step::Level { .. }
            | Step::DropIn { .. }
            | Step::Dctcp { .. } => false,
        }
    }
}

impl PortProgram {
    /// Returns the program's name in the kernel.
    pub fn name(&self) -> &'static str {
        match self {
            PortProgram::Ports(_) => "classify_ports",
            PortProgram::Limiter(_) => "qjump",
            PortProgram::PhantomQueue(_) => "phantom_queue",
            PortProgram::Pacer { .. } => "pacer",
            PortProgram::PacerFeedback { .. } => "pacer_feedback",
        }
    }
}

impl DeviceSide {
    /// Returns the direction's name in `tc`.
    pub fn name(self) -> &'static str {
        match self {
            DeviceSide::Ingress => "ingress",
            DeviceSide::Egress => "egress",
        }
    }
}

/// Prints the step as a line of a diff.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Cgroup { folder } => write!(f, "+ cgroup  {}", folder.display()),
            Step::Segments { device, before, after } => {
                write!(f, "~ device  {device} gso_max_segs {before} -> {after}")
            }
            Step::Clsact { device } => write!(f, "+ qdisc   clsact at {device}"),
            Step::Departures { device, before } => {
                write!(f, "- qdisc   {before} at {device} root\n  + qdisc   fq at {device} root")
            }
            Step::Shaper { device, before, .. } => {
                write!(
                    f,
                    "- qdisc   {before} at {device} root\n  + qdisc   htb at {device} root, and a tbf for paced packets"
                )
            }
            Step::Program { device, side, program, hold, .. } => {
                let (name, side) = (program.name(), side.name());
                match hold {
                    Hold::Link => write!(f, "+ link    {name} at {device} {side} (tcx)"),
                    Hold::Filter { priority } => {
                        write!(f, "+ filter  {name} at {device} {side} pref {priority}")
                    }
                }
            }
            Step::Level { level, members, share, .. } => {
                if members.is_empty() {
                    return write!(f, "+ program classify_traffic, level {level}, for systemd to attach");
                }
                let programs =
                    if share.is_some() { "classify_traffic, connections" } else { "classify_traffic" };
                let line = |member: &LevelCgroup| {
                    format!("+ link    {programs}, level {level}, at cgroup {}", member.cgroup.display())
                };
                f.write_str(&members.iter().map(line).collect::<Vec<_>>().join("\n  "))
            }
            Step::DropIn { unit, level, file, .. } => {
                write!(f, "+ file    {}: level {level} for {unit} at every start", file.display())
            }
            Step::Dctcp { .. } => f.write_str("+ link    plimsoll_dctcp, a congestion control of TCP"),
            Step::Route { before: Some(before), after, .. } => {
                write!(f, "- route   {before}\n  + route   {after}")
            }
            Step::Route { before: None, after, .. } => write!(f, "+ route   {after}"),
            Step::Sysctl { name, before, after } => write!(f, "~ sysctl  {name} {before} -> {after}"),
        }
    }
}

/// The result of undoing a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Undone {
    /// The state is as before the step.
    Restored,
    /// The state is left alone, since others have changed it; the text describes it.
    Left(String),
}

/// Makes and undoes steps.
pub trait System {
    /// Checks, without a change, whether the step is likely to succeed. With `replaces`, the object that it makes is
    /// there in an earlier version, which is removed first.
    ///
    /// # Errors
    /// Returns the reason why it would not.
    fn check(&self, step: &Step, replaces: bool) -> Result<(), Error>;

    /// Makes the change of the step.
    ///
    /// # Errors
    /// Returns an error of the system; [`System::undo`] reverts a partial change.
    fn act(&mut self, step: &Step) -> Result<(), Error>;

    /// Undoes the change, whether it was made, made in part or not made; repeating it does no harm.
    ///
    /// # Errors
    /// Returns an error of the system.
    fn undo(&mut self, step: &Step) -> Result<Undone, Error>;
}
