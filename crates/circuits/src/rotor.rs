//! [`Rotor`]: every pair of ports in turn, for any demand.

use plimsoll_units::Span;

use crate::demand::Demand;
use crate::matching::Matching;
use crate::schedule::Schedule;
use crate::scheduler::{Scheduler, Switching};

/// Serves all pairs of ports in a fixed order for the same time each: in configuration `k` of 1 to n - 1, port i has a
/// circuit to port i + k modulo n. A window holds as many configurations as there are other ports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rotor;

impl Scheduler for Rotor {
    fn schedule(&mut self, demand: &Demand, switching: &Switching) -> Schedule {
        let ports = demand.ports();
        let turns = ports.saturating_sub(1).max(1) as u64;
        let turn = Span::from_ps(switching.window.as_ps() / turns);
        let duration = turn.saturating_sub(switching.night);
        let mut schedule = Schedule::of(demand);
        for step in 1..ports {
            let receivers = (0..ports).map(|sender| Some(((sender + step) % ports) as u32));
            schedule.hold(Matching::new(receivers.collect()), duration, switching);
        }
        schedule
    }

    fn is_oblivious(&self) -> bool {
        true
    }
}
