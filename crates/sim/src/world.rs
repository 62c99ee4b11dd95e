//! [`World`]: one run, from the first event to the last.
//!
//! ```text
//! Fabric::next_event ──> Fabric::on_event ──> Delivered ──> Hosts::on_packet: an end receives, and sends in turn
//!                                         └─> NotMine ────> Hosts::on_due: a timer; or a workload acts
//! room in a NIC, by any of these ──> Hosts::on_room: ends that wait for it have their turn
//! Hosts::next_arrival ──> a workload acts ──> Actions ──> Hosts::send
//! ```

use plimsoll_fabric::Handled;
use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::Packet;
use plimsoll_traffic::{Actions, Hint, Source};
use plimsoll_units::Time;

use crate::error::RunError;
use crate::hosts::Hosts;
use crate::look_ahead::LookAhead;
use crate::observe::RunRecorder;
use crate::progress::Progress;
use crate::rules::Rules;
use crate::sim_hooks::SimFabric;
use crate::sources::Sources;

/// Everything that exists in a run.
pub(crate) struct World {
    /// The network between the hosts, and the event queue.
    pub(crate) fabric: SimFabric,
    /// The transports of all hosts.
    pub(crate) hosts: Hosts,
    /// The workloads that create messages and packets.
    pub(crate) sources: Sources,
    /// The records for the outcome.
    pub(crate) recorder: RunRecorder,
    /// The settings of the scenario that apply to the run as a whole.
    pub(crate) rules: Rules,
    /// The time of the last event.
    pub(crate) now: Time,
    /// When all workloads had finished.
    pub(crate) finished: Option<Time>,
    /// Prefetches memory, where the network is too large for the cache.
    pub(crate) ahead: LookAhead,
}

/// Observes the events of a run, such as to count them by the host or switch that handles them.
pub(crate) trait EventObserver {
    /// The event of `owner` at `now` is about to be handled.
    fn on_event(&mut self, now: Time, owner: Owner, world: &World);
}

impl World {
    /// Runs to the end, and returns when that was. `progress` is called now and then, and may stop the run.
    pub(crate) fn run(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> Result<Time, RunError> {
        self.begin();
        self.run_to_end(progress, None)
    }

    /// Runs to the end as [`World::run`] does, from the beginning or from where `progress` has stopped the run, and
    /// passes every event to `observer`.
    pub(crate) fn run_to_end(
        &mut self,
        progress: &mut dyn FnMut(Progress) -> bool,
        mut observer: Option<&mut dyn EventObserver>,
    ) -> Result<Time, RunError> {
        if self.finished.is_none() {
            self.run_until(self.rules.horizon, progress, &mut observer)?;
        }
        if let Some(finished) = self.finished {
            self.rules.end_after(finished);
            self.run_until(self.rules.horizon, progress, &mut observer)?;
        }
        let end = if self.fabric.next_event_time().is_none() { self.now } else { self.rules.horizon };
        match self.fabric.find_deadlock(self.fabric.held_ports(end)) {
            Some(deadlock) => Err(deadlock.into()),
            None => Ok(end),
        }
    }

    /// Schedules the first event of each workload.
    pub(crate) fn begin(&mut self) {
        for workload in 0..self.sources.workloads.len() {
            self.arm_workload(workload);
        }
        if self.is_finishing() {
            self.finished = Some(Time::ZERO);
        }
    }

    /// Handles all events up to `last`, or up to the one with which all workloads have finished.
    pub(crate) fn run_until(
        &mut self,
        last: Time,
        progress: &mut dyn FnMut(Progress) -> bool,
        observer: &mut Option<&mut dyn EventObserver>,
    ) -> Result<(), RunError> {
        let mut arrived = Packet::default();
        while let Some((now, owner)) = self.fabric.next_event(last) {
            self.now = now;
            // One loop for all runs: with a second one for those that are observed, what it calls is not inlined.
            if let Some(observer) = observer {
                observer.on_event(now, owner, self);
            }
            self.ahead.prefetch(&mut self.fabric, &self.hosts);
            match self.fabric.on_event(now, owner, &mut arrived) {
                // A transport that has no use for a header alone: the packet counts as lost.
                Handled::Delivered(packet) if packet.is_trimmed() && !self.hosts.takes_trimmed(packet) => {
                    self.fabric.hooks_mut().loses(packet);
                }
                Handled::Delivered(packet) => self.hosts.on_packet(now, &mut self.fabric, packet),
                Handled::Done => {}
                Handled::Circuits => self.on_circuits(now),
                Handled::NotMine => self.on_own_event(now, owner),
            }
            // At once, whichever event has made room: a later one may be in another logical process.
            if !self.fabric.hooks().room.is_empty() {
                self.hosts.on_room(now, &mut self.fabric);
            }
            let finishes = self.fabric.hooks().has_aftermath && self.finishes_after_event(now)?;
            let events = self.fabric.counters().events;
            if events.is_multiple_of(PROGRESS_EVENTS) {
                if !progress(self.progress(now)) {
                    return Err(RunError::Cancelled);
                }
                self.look_for_deadlock(now)?;
            }
            if finishes {
                break;
            }
        }
        Ok(())
    }

    /// Handles an event of a host, of a workload or of the sampling clock.
    fn on_own_event(&mut self, now: Time, owner: Owner) {
        match owner.kind() {
            OwnerKind::Endpoint | OwnerKind::Receive => self.hosts.on_due(now, &mut self.fabric, owner),
            OwnerKind::Workload => self.on_workload_due(now, owner.number()),
            OwnerKind::Clock => self.on_sample(now),
            OwnerKind::Link | OwnerKind::Port | OwnerKind::Pacer | OwnerKind::Pause => {
                unreachable!("the fabric handles its own events")
            }
        }
    }

    /// Has workloads act on the arrivals at `now`, one arrival after the other.
    fn on_arrivals(&mut self, now: Time) {
        while let Some((workload, arrival)) = self.hosts.next_arrival(now, &mut self.fabric) {
            self.act(now, workload, |source, actions| source.on_message(arrival, actions));
        }
    }

    /// The controller of circuits has acted, which may read the demand that applications announce.
    #[cold]
    fn on_circuits(&mut self, now: Time) {
        let sources = &self.sources;
        self.hosts.on_circuits(now, &mut self.fabric, |demand, within, is_here| {
            for workload in &sources.workloads {
                workload.hints(&mut |Hint { from, to, bytes, ready }| {
                    if within.contains(&ready) && is_here(from) {
                        *demand.get_mut(from.0 as usize, to.0 as usize) += bytes;
                    }
                });
            }
        });
    }

    /// The event of a workload has come; the workload itself may have moved on since.
    #[inline(never)] // within the loop over events it would take their registers
    fn on_workload_due(&mut self, now: Time, workload: u32) {
        let armed = &mut self.sources.armed[workload as usize];
        if *armed != now {
            return;
        }
        *armed = Time::MAX;
        self.sources.events += 1;
        self.act(now, workload as u16, |source, actions| source.on_due(now, actions));
    }

    /// Lets a workload act and has its actions carried out.
    fn act(&mut self, now: Time, workload: u16, act: impl FnOnce(&mut dyn Source, &mut Actions)) {
        let Sources { workloads, actions, .. } = &mut self.sources;
        actions.next_connection = self.hosts.next_connection();
        act(workloads[usize::from(workload)].as_mut(), actions);
        self.hosts.send(now, &mut self.fabric, workload, actions);
        self.recorder.take(&mut actions.records);
        self.has_acted(workload);
    }

    /// A workload has acted, and perhaps sends at another time now.
    fn has_acted(&mut self, workload: u16) {
        self.sources.acted = true;
        self.fabric.hooks_mut().has_aftermath = true;
        self.arm_workload(usize::from(workload));
    }

    /// Schedules the next event of a workload, if it is earlier than the one that the queue has.
    fn arm_workload(&mut self, workload: usize) {
        let due = self.sources.workloads[workload].next_due();
        if due < self.sources.armed[workload] {
            self.sources.armed[workload] = due;
            self.fabric.schedule(due, Owner::new(OwnerKind::Workload, workload as u32));
        }
    }

    /// Reports lost datagrams to their workloads.
    fn on_lost(&mut self, now: Time) {
        while let Some(workload) = self.fabric.hooks_mut().lost.pop() {
            self.sources.workloads[usize::from(workload)].on_lost(now);
            self.has_acted(workload);
        }
    }

    /// Has workloads act on arrivals and tells them of lost packets, as the event at `now` has left them, and looks for
    /// a deadlock if it has paused something. Returns whether all workloads have finished with it.
    #[cold]
    fn finishes_after_event(&mut self, now: Time) -> Result<bool, RunError> {
        self.on_arrivals(now);
        // What workloads send may make room, and who finds it may leave steps in turn.
        while !self.fabric.hooks().room.is_empty() {
            self.hosts.on_room(now, &mut self.fabric);
            self.on_arrivals(now);
        }
        self.on_lost(now);
        if std::mem::take(&mut self.fabric.hooks_mut().has_paused) {
            self.look_for_deadlock(now)?;
        }
        self.fabric.hooks_mut().has_aftermath = false;
        let finishes = std::mem::take(&mut self.sources.acted) && self.is_finishing();
        if finishes {
            self.finished = Some(now);
        }
        Ok(finishes)
    }

    /// Fails if links have paused each other in a circle. It searches now and then.
    fn look_for_deadlock(&mut self, now: Time) -> Result<(), RunError> {
        self.fabric.look_for_deadlock(now).map_or(Ok(()), |deadlock| Err(deadlock.into()))
    }

    fn progress(&self, now: Time) -> Progress {
        let counters = self.fabric.counters();
        Progress {
            now,
            horizon: self.rules.horizon,
            packet_hops: counters.packet_hops,
            events: counters.events,
        }
    }

    /// Returns whether all workloads have finished, and had not before.
    fn is_finishing(&self) -> bool {
        self.rules.stop_when_finished && self.finished.is_none() && self.sources.have_finished()
    }

    fn on_sample(&mut self, now: Time) {
        let next = self.recorder.sample(now, self.hosts.senders());
        self.fabric.schedule(next, Owner::new(OwnerKind::Clock, SAMPLING_CLOCK));
    }

    /// Has workloads record the messages that are open at the `end` of the run, and completes the fabric's counters.
    pub(crate) fn settle(&mut self, end: Time) {
        let mut actions = Actions::default();
        for workload in &mut self.sources.workloads {
            workload.on_end(&mut actions);
        }
        self.recorder.take(&mut actions.records);
        self.fabric.settle(end);
    }
}

/// The number of the clock that samples time series.
pub(crate) const SAMPLING_CLOCK: u32 = 0;

/// Events between two calls of a progress callback, in which packets without a limit take some ten megabytes.
const PROGRESS_EVENTS: u64 = 1 << 17;
