//! [`Scheduler`]: a demand becomes a schedule.

use std::fmt;
use std::sync::Arc;

use plimsoll_units::{Rate, Span};

use crate::demand::Demand;
use crate::schedule::Schedule;

/// The properties of the two switches that a scheduler needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switching {
    /// The rate of a circuit.
    pub circuit_rate: Rate,
    /// The rate at which a port sends to the packet switch, and receives from it.
    pub packet_rate: Rate,
    /// Time for which the circuit switch is dark when it changes its matching.
    pub night: Span,
    /// The accumulation period of the demand. A scheduler that serves as much as it can in a given time takes this.
    pub window: Span,
}

/// The reason why two switches can have no schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SwitchingError {
    /// A circuit without capacity.
    #[error("a circuit rate of 0 carries nothing; allowed: more than 0")]
    NoRate,
    /// A night that leaves no time for a day.
    #[error(
        "a night of {night} leaves no day in a window of {window}; allowed: a night shorter than the window"
    )]
    NoDay {
        /// Time for which the circuit switch is dark.
        night: Span,
        /// The accumulation period.
        window: Span,
    },
    /// A schedule beyond the range of time.
    #[error(
        "a schedule of this demand at {rate} may take more than 213 days, which is the longest time there is"
    )]
    TooLong {
        /// The rate of a circuit.
        rate: Rate,
    },
}

impl Switching {
    /// The switches of Solstice's evaluation.
    pub const PAPER: Switching = Switching {
        circuit_rate: Rate::from_gbps(100),
        packet_rate: Rate::from_gbps(10),
        night: Span::from_us(20),
        window: Span::from_ms(3),
    };

    /// Checks that a schedule of this demand is possible.
    ///
    /// # Errors
    /// Returns an error if a circuit carries nothing, a window has no day, or a schedule can be longer than time.
    pub fn check(&self, demand: &Demand) -> Result<(), SwitchingError> {
        if self.circuit_rate == Rate::ZERO {
            return Err(SwitchingError::NoRate);
        }
        if self.night >= self.window {
            return Err(SwitchingError::NoDay { night: self.night, window: self.window });
        }
        // A decomposition has at most a configuration for each pair of ports, and each byte is in at most one day.
        let pairs = (demand.ports() * demand.ports()) as u64;
        let days = self.circuit_time(demand.total()).as_ps();
        let all = days.checked_add(self.night.saturating_mul(pairs).as_ps());
        match all {
            Some(all) if all < u64::MAX => Ok(()),
            _ => Err(SwitchingError::TooLong { rate: self.circuit_rate }),
        }
    }

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

/// Makes a schedule of a demand. A scheduler may keep memory between calls to avoid allocation, but its result depends
/// on its arguments alone, except where it ignores the demand and continues where it stopped.
pub trait Scheduler: fmt::Debug + Send {
    /// Returns configurations that serve `demand`, and the residue.
    fn schedule(&mut self, demand: &Demand, switching: &Switching) -> Schedule;

    /// Returns whether the configurations are the same for every demand, so that circuits without demand are meant.
    fn is_oblivious(&self) -> bool {
        false
    }
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
