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
//!
//! A host may have an uplink to each of several circuit switches, the *planes*. One schedule is made for all of them:
//! for that many weeks, which is then cut into weeks that run at once ([`share_out`]). So a port has at most one
//! circuit in each plane, to different destinations or to one, and no demand is served twice.

use std::collections::VecDeque;

use plimsoll_units::{Rate, Span, Time};

use crate::demand::Demand;
use crate::matching::Matching;
use crate::params::ControlParams;
use crate::schedule::{Configuration, Schedule, after};
use crate::scheduler::{Scheduler, Switching};

/// Instruction to the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Instruction {
    /// Read the demand of all hosts and pass it to [`CircuitController::on_demand`].
    ReadDemand,
    /// Send hosts the plan of the week that begins: [`CircuitController::plan`].
    Begin,
    /// Have hosts pause sending by the circuits of this plane.
    Pause(usize),
    /// Take the circuits of this plane down.
    Darken(usize),
    /// Put up these circuits of this plane and have hosts send by them.
    Light(usize, Matching),
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
    /// The schedule of the next week, with the configurations of one plane after the other.
    next: Schedule,
    /// The number of configurations of each plane in `next`.
    next_of_planes: Vec<usize>,
    /// The schedule of this week.
    plan: Schedule,
    planes: Vec<Plane>,
}

/// One circuit switch in the course of a week.
#[derive(Clone, Debug)]
struct Plane {
    /// The configurations of this week that have not begun.
    to_come: VecDeque<Configuration>,
    /// The established matching; the empty one where the circuit switch is dark.
    matching: Matching,
    /// The next step within the week.
    step: Step,
    step_at: Time,
}

impl Plane {
    fn dark(ports: usize) -> Plane {
        Plane {
            to_come: VecDeque::new(),
            matching: Matching::dark(ports),
            step: Step::Stand,
            step_at: Time::MAX,
        }
    }

    fn wait(&mut self, until: Time, step: Step) {
        (self.step_at, self.step) = (until, step);
    }

    fn next_configuration(&mut self, now: Time, drain: Span) -> bool {
        let Some(next) = self.to_come.pop_front() else { return false };
        if next.matching == self.matching {
            // The circuits are established already: no night.
            self.wait(now + next.duration, Step::Next);
            return false;
        }
        let is_dark = self.matching.circuits().next().is_none();
        self.wait(now + if is_dark { Span::ZERO } else { drain }, Step::Darken(next));
        true
    }
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
            next_of_planes: Vec::new(),
            plan: empty,
            planes: vec![Plane::dark(ports)],
            switching,
        }
    }

    /// Returns the same controller for `planes` circuit switches, at least one; every port has an uplink to each.
    pub fn with_planes(mut self, planes: usize) -> CircuitController {
        self.planes.resize(planes, self.planes[0].clone());
        self
    }

    /// Returns when [`CircuitController::on_due`] is to be called next.
    pub fn next_due(&self) -> Time {
        let step = self.planes.iter().map(|plane| plane.step_at).min();
        self.reads.min(self.begins()).min(step.unwrap_or(Time::MAX))
    }

    /// Returns the time from the reading of a week's demand to its beginning.
    pub fn lead(&self) -> Span {
        self.lead
    }

    /// Returns the schedule of the week that has begun last.
    pub fn plan(&self) -> &Schedule {
        &self.plan
    }

    /// Returns the number of the week that has begun last.
    pub fn week(&self) -> u64 {
        self.week
    }

    /// Returns the matching of the first plane's configuration whose night has begun; none between nights.
    pub fn coming(&self) -> Option<&Matching> {
        match &self.planes[0].step {
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
        let number = self.planes.iter().position(|plane| plane.step_at <= now)?;
        let plane = &mut self.planes[number];
        plane.step_at = Time::MAX;
        match std::mem::replace(&mut plane.step, Step::Stand) {
            Step::Next => plane.next_configuration(now, self.drain).then_some(Instruction::Pause(number)),
            Step::Darken(next) => {
                plane.matching = Matching::dark(next.matching.ports());
                plane.wait(now + self.switching.night.saturating_sub(self.drain), Step::Light(next));
                Some(Instruction::Darken(number))
            }
            Step::Light(Configuration { matching, duration }) => {
                plane.matching = matching.clone();
                plane.wait(now + duration, Step::Next);
                Some(Instruction::Light(number, matching))
            }
            Step::Stand => None,
        }
    }

    /// Takes the demand requested by [`Instruction::ReadDemand`], and computes the schedule of the next week. Demand
    /// beyond a week's circuits is cut to that, in proportion; the rest is the demand of weeks to come.
    pub fn on_demand(&mut self, demand: &Demand) {
        self.on_demand_of(demand, |_, _| true);
    }

    /// Takes the demand as [`CircuitController::on_demand`] does. Only a sender and a receiver that `can` have a
    /// circuit get one; the demand of others is left to the packet switch.
    pub fn on_demand_of(&mut self, demand: &Demand, can: impl Fn(usize, usize) -> bool) {
        let all = demand;
        let demand = &all.filtered(&can);
        let (week, planes) = (self.switching.window, self.planes.len() as u64);
        let most = self.switching.circuit_bytes(week - self.switching.night).saturating_mul(planes);
        let diameter = demand.diameter();
        let cut = (diameter > most).then(|| demand.scaled(most, diameter));
        let demand = cut.as_ref().unwrap_or(demand);
        // As many weeks as there are planes: the packet switch has one of them only.
        let in_turn = Switching {
            packet_rate: Rate::from_bps(self.switching.packet_rate.as_bps() / planes),
            window: week * planes,
            ..self.switching
        };
        let Schedule { configurations, mut residue } = self.scheduler.schedule(demand, &in_turn);
        let mut of_planes = share_out(configurations, self.planes.len(), self.switching.night);
        of_planes.iter_mut().for_each(|configurations| fit(configurations, week, self.switching.night));
        self.next_of_planes = of_planes.iter().map(Vec::len).collect();
        let mut configurations = of_planes.concat();
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
        let ports = self.plan.residue.ports();
        let empty = Schedule { configurations: Vec::new(), residue: Demand::new(ports) };
        self.plan = std::mem::replace(&mut self.next, empty);
        let mut configurations = self.plan.configurations.iter().cloned();
        let mut counts = std::mem::take(&mut self.next_of_planes).into_iter();
        for plane in &mut self.planes {
            plane.to_come = configurations.by_ref().take(counts.next().unwrap_or(0)).collect();
            plane.wait(now, Step::Next);
        }
    }
}

/// Cuts a sequence of configurations with a `night` before each into as many sequences as there are `planes`, which
/// take about the same time at once. A day may be cut in two, so that both planes have its circuits for a part of it:
/// all days of a configuration together stay as long.
fn share_out(configurations: Vec<Configuration>, planes: usize, night: Span) -> Vec<Vec<Configuration>> {
    if planes == 1 {
        return vec![configurations];
    }
    let all = configurations.iter().fold(Span::ZERO, |all, each| after(all, each.duration, night));
    // A cut costs a night more.
    let with_cuts = after(all, night * (planes as u64 - 1), Span::ZERO);
    let most = Span::from_ps(with_cuts.as_ps().div_ceil(planes as u64));
    let mut shared = vec![Vec::new(); planes];
    let (mut plane, mut taken) = (0, Span::ZERO);
    for Configuration { matching, mut duration } in configurations {
        loop {
            let room = most.saturating_sub(taken).saturating_sub(night);
            let here = if plane + 1 == planes { duration } else { duration.min(room) };
            if here > Span::ZERO {
                shared[plane].push(Configuration { matching: matching.clone(), duration: here });
                taken = after(taken, here, night);
                duration -= here;
            }
            if duration.is_zero() {
                break;
            }
            (plane, taken) = (plane + 1, Span::ZERO);
        }
    }
    shared
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
