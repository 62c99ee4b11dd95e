//! [`Scheduler`]: a demand becomes a schedule.

use std::fmt;
use std::sync::Arc;

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::demand::Demand;
use crate::rotor::Rotor;
use crate::schedule::Schedule;

/// What a scheduler must know of the two switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switching {
    /// The rate of a circuit.
    pub circuit_rate: Rate,
    /// The rate at which a port sends to the packet switch, and receives from it.
    pub packet_rate: Rate,
    /// How long the circuit switch is dark when it changes its matching.
    pub night: Span,
    /// The accumulation period of the demand. A scheduler that serves as much as it can in a given time takes this.
    pub window: Span,
}

impl Switching {
    /// Returns the bytes that a circuit carries in `day`, rounded down.
    pub fn circuit_bytes(&self, day: Span) -> u64 {
        bytes_in(self.circuit_rate, day)
    }

    /// Returns the bytes that a port's link to the packet switch carries in `span`, rounded down.
    pub fn packet_bytes(&self, span: Span) -> u64 {
        bytes_in(self.packet_rate, span)
    }

    /// Returns how long a circuit takes for `bytes`, rounded up to a picosecond.
    pub fn circuit_time(&self, bytes: u64) -> Span {
        let bit_ps = u128::from(bytes) * 8 * PS_PER_SECOND;
        let ps = bit_ps.div_ceil(u128::from(self.circuit_rate.as_bps().max(1)));
        Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

const PS_PER_SECOND: u128 = 1_000_000_000_000;

fn bytes_in(rate: Rate, span: Span) -> u64 {
    let bit_ps = u128::from(rate.as_bps()) * u128::from(span.as_ps());
    u64::try_from(bit_ps / (8 * PS_PER_SECOND)).unwrap_or(u64::MAX)
}

/// Makes a schedule of a demand. A scheduler may keep memory between calls to avoid allocation, but what it returns
/// depends on its arguments alone, except for those that ignore the demand and go on where they stopped.
pub trait Scheduler: fmt::Debug + Send {
    /// Returns configurations that serve `demand`, and what they leave.
    fn schedule(&mut self, demand: &Demand, switching: &Switching) -> Schedule;
}

/// Makes a scheduler from outside: a closure, which may hold parameters.
#[derive(Clone)]
pub struct SchedulerFactory(Arc<dyn Fn() -> Box<dyn Scheduler> + Send + Sync>);

impl SchedulerFactory {
    /// Returns a factory that calls `make` once for each network that is built.
    pub fn new(make: impl Fn() -> Box<dyn Scheduler> + Send + Sync + 'static) -> SchedulerFactory {
        SchedulerFactory(Arc::new(make))
    }

    /// Makes the scheduler of a new network.
    pub fn make(&self) -> Box<dyn Scheduler> {
        (self.0)()
    }
}

impl fmt::Debug for SchedulerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SchedulerFactory")
    }
}

/// The schedulers, by the name that a scenario and the command line give them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerKind {
    /// Every pair of ports in turn for the same time, whatever the demand is.
    #[default]
    Rotor,
}

impl SchedulerKind {
    /// Returns a scheduler of this kind.
    pub fn make(self) -> Box<dyn Scheduler> {
        match self {
            SchedulerKind::Rotor => Box::new(Rotor::default()),
        }
    }
}
