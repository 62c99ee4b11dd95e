//! [`World`]: one run, from the first event to the last.
//!
//! ```text
//! Fabric::next_event ──> Fabric::on_event ──> Delivered ──> transport.rs: an end receives, and sends in turn
//!                                         ├─> Served ─────> transport.rs: ends that wait for room have their turn
//!                                         └─> NotMine ────> acting.rs: a workload acts; transport.rs: a timer is due
//! ```

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{HostId, Packet};
use plimsoll_fabric::{Fabric, Handled};
use plimsoll_traffic::Actions;
use plimsoll_units::Time;

use crate::error::RunError;
use crate::hosts::Hosts;
use crate::look_ahead::LookAhead;
use crate::observe::Recorder;
use crate::parallel::process::Process;
use crate::progress::Progress;
use crate::rules::Rules;
use crate::sim_hooks::SimHooks;
use crate::sources::Sources;

/// Everything that exists in a run.
pub(crate) struct World {
    /// The network between the hosts, and the event queue.
    pub(crate) fabric: Fabric<SimHooks>,
    /// The transports of all hosts.
    pub(crate) hosts: Hosts,
    /// The workloads that create messages and packets.
    pub(crate) sources: Sources,
    /// What is kept for the outcome.
    pub(crate) recorder: Recorder,
    /// What the scenario says about the run as a whole.
    pub(crate) rules: Rules,
    /// The time of the last event.
    pub(crate) now: Time,
    /// When all workloads had finished.
    pub(crate) finished: Option<Time>,
    /// Prefetches memory, where the network is too large for the cache.
    pub(crate) ahead: LookAhead,
    /// Set where this world is one logical process of a parallel run.
    pub(crate) process: Option<Box<Process>>,
}

impl World {
    /// Runs to the end, and returns when that was. `progress` is called now and then, and may stop the run.
    pub(crate) fn run(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> Result<Time, RunError> {
        self.begin();
        self.run_until(self.rules.horizon, progress)?;
        if let Some(finished) = self.finished {
            self.rules.end_after(finished);
            self.run_until(self.rules.horizon, progress)?;
        } else {
            self.settle_flow_control(Time::MAX)?;
        }
        Ok(if self.fabric.next_event_time().is_none() { self.now } else { self.rules.horizon })
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
    ) -> Result<(), RunError> {
        let mut arrived = Packet::default();
        while let Some((now, owner)) = self.fabric.next_event(last) {
            self.now = now;
            self.ahead.prefetch(&mut self.fabric, &self.hosts.connections);
            match self.fabric.on_event(now, owner, &mut arrived) {
                Handled::Delivered(packet) => self.on_host(now, packet),
                Handled::Served => self.offer_room(now),
                Handled::Circuits => self.on_circuits(now),
                Handled::Done => {}
                Handled::NotMine => self.on_own_event(now, owner),
            }
            let events = self.fabric.counters().events;
            if events.is_multiple_of(PROGRESS_EVENTS) && !progress(self.progress(now)) {
                return Err(RunError::Cancelled);
            }
            if self.fabric.hooks().has_aftermath && self.finishes_after_event(now)? {
                break;
            }
        }
        Ok(())
    }

    /// Handles an event of a host, of a workload or of the sampling clock.
    fn on_own_event(&mut self, now: Time, owner: Owner) {
        let number = owner.number();
        match owner.kind() {
            OwnerKind::Endpoint => self.on_endpoint_due(now, number),
            OwnerKind::Workload => self.on_workload_due(now, number as usize),
            OwnerKind::Receive => self.on_receive_event(now, number),
            OwnerKind::Clock => self.on_sample(now),
            OwnerKind::Link | OwnerKind::Port | OwnerKind::Pacer | OwnerKind::Pause => {
                unreachable!("the fabric handles its own events")
            }
        }
    }

    /// Tells workloads of lost packets and sends pauses, as the event at `now` has left them. Returns whether all
    /// workloads have finished with it.
    #[cold]
    fn finishes_after_event(&mut self, now: Time) -> Result<bool, RunError> {
        self.on_lost(now);
        self.settle_flow_control(now)?;
        self.fabric.hooks_mut().has_aftermath = self.fabric.has_flow_control();
        let finishes = std::mem::take(&mut self.sources.acted) && self.is_finishing();
        if finishes {
            self.finished = Some(now);
        }
        Ok(finishes)
    }

    /// Sends the pauses that were decided at `now`; without any, checks that something still moves.
    fn settle_flow_control(&mut self, now: Time) -> Result<(), RunError> {
        let deadlock = if self.fabric.send_pauses(now) { None } else { self.fabric.find_deadlock(now) };
        deadlock.map_or(Ok(()), |deadlock| Err(deadlock.into()))
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
        let next = self.recorder.sample(now, &self.hosts.connections, self.hosts.multipath.as_deref());
        self.fabric.schedule(next, Owner::new(OwnerKind::Clock, SAMPLING_CLOCK));
    }

    /// Has workloads record what is open at the `end` of the run, and completes the fabric's counters.
    pub(crate) fn settle(&mut self, end: Time) {
        let mut actions = Actions::default();
        for workload in &mut self.sources.workloads {
            workload.on_end(&mut actions);
        }
        self.recorder.take(&mut actions);
        self.fabric.settle(end);
    }

    /// Returns whether this world simulates `host`, which another logical process may do.
    #[inline]
    pub(crate) fn has(&self, host: HostId) -> bool {
        self.process.as_ref().is_none_or(|process| process.has(host))
    }
}

/// The number of the clock that samples time series.
pub(crate) const SAMPLING_CLOCK: u32 = 0;

/// Events between two calls of a progress callback, in which packets without a limit take some ten megabytes.
const PROGRESS_EVENTS: u64 = 1 << 17;
