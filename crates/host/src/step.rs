//! [`Step`]: one change of the host, with its way back; and [`System`], which makes and undoes it.

use std::fmt;
use std::path::PathBuf;

use plimsoll_units::{Bytes, Rate, Span};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::names::{DeviceName, Prefix, UnitName};
use crate::policy::{Pacer, PhantomQueue, Qjump, Side};

/// One change, with what was there before.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "change")]
pub enum Step {
    /// A cgroup is made.
    Cgroup {
        /// Its folder.
        folder: PathBuf,
    },
    /// The most segments in what TCP hands to a device at once.
    Segments {
        /// The device.
        device: DeviceName,
        /// Until now.
        before: u32,
        /// From now on.
        after: u32,
    },
    /// A device gets a clsact queue, which holds filters and delays nothing.
    Clsact {
        /// The device.
        device: DeviceName,
    },
    /// A device whose queue is the kernel's default gets fq, which keeps departure times.
    Departures {
        /// The device.
        device: DeviceName,
        /// Until now.
        before: String,
    },
    /// A device whose queue is the kernel's default gets HTB, which passes packets on, and for those of one of its classes
    /// a TBF.
    Shaper {
        /// The device.
        device: DeviceName,
        /// Until now.
        before: String,
        /// The TBF's.
        shape: Shape,
    },
    /// A program at a device.
    Program {
        /// The device.
        device: DeviceName,
        /// Which packets it sees.
        side: Side,
        /// The program.
        program: PortProgram,
        /// What holds it there.
        hold: Hold,
        /// The folder of its pins.
        pins: PathBuf,
    },
    /// What leaves the sockets of programs gets a level.
    Level {
        /// The level.
        level: u8,
        /// Whose.
        members: Vec<Member>,
        /// What the level may send in an epoch, where TCP connections pace themselves to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share: Option<(Bytes, Span)>,
        /// The folder of its pins.
        pins: PathBuf,
    },
    /// systemd gives a unit the level at every start.
    DropIn {
        /// The unit.
        unit: UnitName,
        /// The level.
        level: u8,
        /// The file that tells systemd so.
        file: PathBuf,
        /// What is in it.
        text: String,
    },
    /// DCTCP is registered with the kernel's TCP.
    Dctcp {
        /// The folder of its pins.
        pins: PathBuf,
    },
    /// A route gets a congestion control.
    Route {
        /// The network.
        prefix: Prefix,
        /// The route to precisely this network, in the words of `ip route`; none if there was none.
        before: Option<String>,
        /// From now on.
        after: String,
    },
    /// A setting in /proc/sys.
    Sysctl {
        /// Its name with dots.
        name: String,
        /// Until now.
        before: String,
        /// From now on.
        after: String,
    },
}

/// A cgroup whose programs have a level.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its folder.
    pub cgroup: PathBuf,
    /// The unit whose cgroup it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitName>,
}

/// A token bucket filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shape {
    /// The link's rate, which it has until a process sets it to the pacer's.
    pub rate: Rate,
    /// What leaves back to back: a frame at least.
    pub burst: Bytes,
}

/// A program at a device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortProgram {
    /// Levels by port.
    Ports(Vec<(u16, u8)>),
    /// QJump's limiter.
    Limiter(Qjump),
    /// A phantom queue.
    PhantomQueue(PhantomQueue),
    /// HULL's pacer.
    Pacer {
        /// The policy's.
        pacer: Pacer,
        /// Where cgroups are mounted.
        root: PathBuf,
        /// The folders of the cgroups that are paced.
        cgroups: Vec<PathBuf>,
        /// Whether packets are put into the class of a [`Step::Shaper`].
        #[serde(default)]
        shaped: bool,
    },
    /// What associates connections with the pacer.
    PacerFeedback {
        /// The policy's.
        pacer: Pacer,
        /// Where the pacer's flows are pinned.
        flows: PathBuf,
    },
}

/// What holds a program at a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// A link of its own (tcx), behind the programs that are there.
    Link,
    /// A filter of the device's clsact queue.
    Filter {
        /// The lowest is first.
        priority: u32,
    },
}

impl Step {
    /// The folder of its pins, if it has any.
    pub(crate) fn pins(&self) -> Option<&PathBuf> {
        match self {
            Step::Program { pins, .. } | Step::Level { pins, .. } | Step::Dctcp { pins } => Some(pins),
            _ => None,
        }
    }

    /// Whether all that it changes is in a network namespace, and goes with it.
    pub(crate) fn is_of_network(&self) -> bool {
        match self {
            Step::Segments { .. }
            | Step::Clsact { .. }
            | Step::Departures { .. }
            | Step::Shaper { .. }
            | Step::Route { .. }
            | Step::Sysctl { .. } => true,
            // Pins are not.
            Step::Program { .. }
            | Step::Cgroup { .. }
            | Step::Level { .. }
            | Step::DropIn { .. }
            | Step::Dctcp { .. } => false,
        }
    }
}

impl PortProgram {
    /// What the kernel calls it.
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

impl Side {
    /// As `tc` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Side::Ingress => "ingress",
            Side::Egress => "egress",
        }
    }
}

/// As a line of a diff.
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
                    "- qdisc   {before} at {device} root\n  + qdisc   htb at {device} root, and a tbf for what is paced"
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
                let line = |member: &Member| {
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

/// How undoing a step went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Undone {
    /// It is as before.
    Restored,
    /// It stays as it is: somebody else has changed it since, in these words.
    Left(String),
}

/// What makes steps and undoes them.
pub trait System {
    /// Whether the step is likely to succeed, as far as can be told without a change.
    ///
    /// # Errors
    /// Why it would not.
    fn check(&self, step: &Step) -> Result<(), Error>;

    /// Makes the change.
    ///
    /// # Errors
    /// If the system refuses; what was done until then, [`System::undo`] undoes.
    fn act(&mut self, step: &Step) -> Result<(), Error>;

    /// Undoes the change, wholly or half made, or not made at all; once or often.
    ///
    /// # Errors
    /// If the system refuses.
    fn undo(&mut self, step: &Step) -> Result<Undone, Error>;
}
