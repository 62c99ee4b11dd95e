//! [`SchedulerKind`]: the registry of the schedulers that a scenario and the command line can name.

use std::fmt;
use std::str::FromStr;

use plimsoll_text::printable;
use plimsoll_text::spelling::did_you_mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bvn::Bvn;
use crate::eclipse::Eclipse;
use crate::islip::Islip;
use crate::rotor::Rotor;
use crate::scheduler::Scheduler;
use crate::solstice::Solstice;
use crate::tms::Tms;

/// The schedulers, by the name that a scenario and the command line give them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerKind {
    /// Solstice: few long configurations that serve all with the help of the packet switch.
    #[default]
    Solstice,
    /// Birkhoff and von Neumann: permutations of the stuffed demand, in the order in which they are found.
    Bvn,
    /// iSLIP: round-robin matchings of the remaining demand, as in the crossbar of a packet switch.
    Islip,
    /// TMS: heaviest matchings of the demand scaled to even rows and columns, which share the window.
    Tms,
    /// Eclipse: the matchings and days that serve most bytes a unit of time, in the window.
    Eclipse,
    /// Every pair of ports in turn for the same time, for any demand.
    Rotor,
}

impl SchedulerKind {
    /// All schedulers, in the order in which tables have them.
    pub const ALL: [SchedulerKind; 6] = [
        SchedulerKind::Solstice,
        SchedulerKind::Bvn,
        SchedulerKind::Islip,
        SchedulerKind::Tms,
        SchedulerKind::Eclipse,
        SchedulerKind::Rotor,
    ];

    /// Returns a scheduler of this kind.
    pub fn make(self) -> Box<dyn Scheduler> {
        match self {
            SchedulerKind::Solstice => Box::new(Solstice::default()),
            SchedulerKind::Bvn => Box::new(Bvn::default()),
            SchedulerKind::Islip => Box::new(Islip::default()),
            SchedulerKind::Tms => Box::new(Tms::default()),
            SchedulerKind::Eclipse => Box::new(Eclipse::default()),
            SchedulerKind::Rotor => Box::new(Rotor),
        }
    }

    /// Returns the name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            SchedulerKind::Solstice => "solstice",
            SchedulerKind::Bvn => "bvn",
            SchedulerKind::Islip => "islip",
            SchedulerKind::Tms => "tms",
            SchedulerKind::Eclipse => "eclipse",
            SchedulerKind::Rotor => "rotor",
        }
    }
}

impl fmt::Display for SchedulerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SchedulerKind {
    type Err = UnknownScheduler;

    fn from_str(name: &str) -> Result<SchedulerKind, UnknownScheduler> {
        let mut all = SchedulerKind::ALL.into_iter();
        all.find(|kind| kind.name() == name).ok_or_else(|| UnknownScheduler(name.to_owned()))
    }
}

/// A name that no scheduler has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownScheduler(String);

impl std::error::Error for UnknownScheduler {}

impl fmt::Display for UnknownScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = SchedulerKind::ALL.map(SchedulerKind::name);
        write!(f, "there is no scheduler `{}`; allowed: {}", printable(&self.0), names.join(", "))?;
        did_you_mean(&self.0, names).map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}
