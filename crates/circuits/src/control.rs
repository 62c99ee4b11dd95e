//! [`CircuitController`]: the loop that turns demand into circuits, week after week.
//!
//! ```text
//! week k - 1                            week k
//! ──────────────────────────┬─────────┬───────────────────────────────────────────────
//!              read demand ─┘  lead   └─ Begin  pause   dark   day 1    pause  dark  day 2 ...
//!                  └─ schedule of week k ─┘       └drain┴ reconfiguration
//! ```
//!
//! The controller is a state machine without a clock: its caller calls [`CircuitController::on_due`] when
//! [`CircuitController::next_due`] has come, and carries out the instruction. It is stateless in the sense of its
//! sources: a week's schedule depends on the demand that was read for that week alone.

use std::collections::VecDeque;

use plimsoll_units::{Span, Time};

use crate::demand::Demand;
use crate::matching::Matching;
use crate::params::ControlParams;
use crate::schedule::{Configuration, Schedule};
use crate::scheduler::{Scheduler, Switching};

/// Instruction to the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Instruction {
    /// Read the demand of all hosts and pass it to [`CircuitController::on_demand`].
    ReadDemand,
    /// Send hosts the plan of the week that begins: [`CircuitController::plan`].
    Begin,
    /// Have hosts pause sending by circuits.
    Pause,
    /// Take the circuits down.
    Darken,
    /// Put up these circuits and have hosts send by them.
    Light(Matching),
}

/// Turns demand into circuits, week after week.
#[derive(Debug)]
pub struct CircuitController {
    scheduler: Box<dyn Scheduler>,
    switching: Switching,
    lead: Span,
    drain: Span,
    /// The week that began last; the circuits of week 0 are dark, as its demand is unknown.
    week: u64,
    /// When the demand of the next week is read; [`Time::MAX`] once it has been.
    reads: Time,
    /// The schedule of the next week.
    next: Schedule,
    /// The schedule of this week.
    plan: Schedule,
    /// The configurations of this week that have not begun.
    to_come: VecDeque<Configuration>,
    /// The established matching; the empty one where the circuit switch is dark.
    matching: Matching,
    /// The next step within the week.
    step: Step,
    step_at: Time,
}

/// A step within a week.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    /// The next configuration begins, or the last one stays.
    Next,
    /// The circuit switch is dark from then on.
    Darken(Configuration),
    /// The configuration's day begins.
    Light(Configuration),
    /// The last configuration of the week stays until the next one begins.
    Stand,
}

impl CircuitController {
    /// Returns a controller of `ports` ports that are dark. `switching.night` is the whole time from pausing one
    /// circuit to the next, of which `drain` passes before the circuit switch goes dark, and `switching.window` is the
    /// week. `params` has been validated.
    pub fn new(
        params: &ControlParams,
        switching: Switching,
        drain: Span,
        scheduler: Box<dyn Scheduler>,
        ports: usize,
    ) -> CircuitController {
        let empty = Schedule { configurations: Vec::new(), residue: Demand::new(ports) };
        CircuitController {
            scheduler,
            lead: params.lead,
            drain,
            week: 0,
            reads: Time::ZERO + (switching.window - params.lead),
            next: empty.clone(),
            plan: empty,
            to_come: VecDeque::new(),
            matching: Matching::dark(ports),
            step: Step::Stand,
            step_at: Time::MAX,
            switching,
        }
    }

    /// Returns when [`CircuitController::on_due`] is to be called next.
    pub fn next_due(&self) -> Time {
        self.reads.min(self.begins()).min(self.step_at)
    }

    /// Returns the schedule of the week that has begun last.
    pub fn plan(&self) -> &Schedule {
        &self.plan
    }

    /// Returns the number of the week that has begun last.
    pub fn week(&self) -> u64 {
        self.week
    }

    /// Returns the matching of the configuration whose night has begun; none between nights.
    pub fn coming(&self) -> Option<&Matching> {
        match &self.step {
            Step::Darken(next) | Step::Light(next) => Some(&next.matching),
            Step::Next | Step::Stand => None,
        }
    }

    /// Returns the parameters of the switches on which schedules are based.
    pub fn switching(&self) -> &Switching {
        &self.switching
    }

    /// Returns the instruction due at `now`, which is [`CircuitController::next_due`]. More instructions may be due at
    /// the same time.
    pub fn on_due(&mut self, now: Time) -> Option<Instruction> {
        if now >= self.reads {
            self.reads = Time::MAX;
            return Some(Instruction::ReadDemand);
        }
        if now >= self.begins() {
            self.begin(now);
            return Some(Instruction::Begin);
        }
        if now < self.step_at {
            return None;
        }
        self.step_at = Time::MAX;
        match std::mem::replace(&mut self.step, Step::Stand) {
            Step::Next => self.next_configuration(now),
            Step::Darken(next) => {
                self.matching = Matching::dark(next.matching.ports());
                self.wait(now + self.switching.night.saturating_sub(self.drain), Step::Light(next));
                Some(Instruction::Darken)
            }
            Step::Light(Configuration { matching, duration }) => {
                self.matching = matching.clone();
                self.wait(now + duration, Step::Next);
                Some(Instruction::Light(matching))
            }
            Step::Stand => None,
        }
    }

    /// Takes the demand requested by [`Instruction::ReadDemand`], and computes the schedule of the next week. Demand
    /// beyond a week's circuit is cut to that, in proportion; the rest is the demand of weeks to come.
    pub fn on_demand(&mut self, demand: &Demand) {
        self.on_demand_of(demand, |_, _| true);
    }

    /// Takes the demand as [`CircuitController::on_demand`] does. Only a sender and a receiver that `can` have a
    /// circuit get one; the demand of others is left to the packet switch.
    pub fn on_demand_of(&mut self, demand: &Demand, can: impl Fn(usize, usize) -> bool) {
        let all = demand;
        let demand = &all.filtered(&can);
        let week = self.switching.window;
        let most = self.switching.circuit_bytes(week - self.switching.night);
        let diameter = demand.diameter();
        let cut = (diameter > most).then(|| demand.scaled(most, diameter));
        let demand = cut.as_ref().unwrap_or(demand);
        let Schedule { mut configurations, mut residue } = self.scheduler.schedule(demand, &self.switching);
        fit(&mut configurations, week, self.switching.night);
        // A permutation connects all ports; a host without data for its circuit need not wait for it.
        let waits = |sender, receiver| self.scheduler.is_oblivious() || demand.get(sender, receiver) > 0;
        for Configuration { matching, .. } in &mut configurations {
            *matching =
                matching.filtered(|sender, receiver| waits(sender, receiver) && can(sender, receiver));
        }
        // The rest of a shortened day waits for the next week's circuit; demand without any circuit need not wait.
        let mut planned = Demand::new(demand.ports());
        for (sender, receiver) in configurations.iter().flat_map(|day| day.matching.circuits()) {
            *planned.get_mut(sender, receiver) = 1;
        }
        for sender in 0..demand.ports() {
            for receiver in 0..demand.ports() {
                if planned.get(sender, receiver) == 0 {
                    let left = if can(sender, receiver) { demand } else { all };
                    *residue.get_mut(sender, receiver) = left.get(sender, receiver);
                }
            }
        }
        self.next = Schedule { configurations, residue };
    }

    fn begins(&self) -> Time {
        Time::ZERO + self.switching.window * (self.week + 1)
    }

    fn begin(&mut self, now: Time) {
        self.week += 1;
        self.reads = self.begins() - self.lead;
        let empty = Schedule { configurations: Vec::new(), residue: Demand::new(self.matching.ports()) };
        self.plan = std::mem::replace(&mut self.next, empty);
        self.to_come = self.plan.configurations.iter().cloned().collect();
        self.wait(now, Step::Next);
    }

    fn next_configuration(&mut self, now: Time) -> Option<Instruction> {
        let next = self.to_come.pop_front()?;
        if next.matching == self.matching {
            // The circuits are established already: no night.
            self.wait(now + next.duration, Step::Next);
            return None;
        }
        let is_dark = self.matching.circuits().next().is_none();
        let drain = if is_dark { Span::ZERO } else { self.drain };
        self.wait(now + drain, Step::Darken(next));
        Some(Instruction::Pause)
    }

    fn wait(&mut self, until: Time, step: Step) {
        (self.step_at, self.step) = (until, step);
    }
}

/// Makes configurations with a `night` before each fit into a `week`: all days become shorter in proportion, and where
/// the nights alone take too long the last configurations go.
fn fit(configurations: &mut Vec<Configuration>, week: Span, night: Span) {
    let most = week.as_ps() / night.as_ps().max(1);
    configurations.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let days = configurations.iter().map(|configuration| configuration.duration.as_ps()).sum::<u64>();
    let room = week.as_ps() - night.as_ps() * configurations.len() as u64;
    if days > room {
        for configuration in configurations {
            let day = u128::from(configuration.duration.as_ps()) * u128::from(room) / u128::from(days);
            configuration.duration = Span::from_ps(day as u64);
        }
    }
}

#[cfg(test)]
mod tests;
