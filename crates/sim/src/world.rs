//! [`World`]: one run, from the first event to the last.

use std::collections::VecDeque;

use plimsoll_fabric::HostPacer;
use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{HostId, Network, Packet, PathSelector, Port, PortId, Sink};
use plimsoll_mechanisms::nic_burst::SegmentationOffload;
use plimsoll_mechanisms::tcp;
use plimsoll_units::{Span, Time};

use crate::classes::Classes;
use crate::connection::{Connection, End};
use crate::look_ahead::LookAhead;
use crate::observe::Recorder;
use crate::parallel::Letter;
use crate::pool::ConnectionPool;
use crate::receive::ReceiveOffload;
use crate::tap::Tap;
use crate::wires::Wires;
use crate::{Progress, RunError};
use plimsoll_workloads::{Actions, Workload};

/// Everything that exists in a run.
pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) transport: tcp::Config,
    /// Output ports by number; the first are the hosts' NICs.
    pub(crate) ports: Vec<Port>,
    /// By host, where the scenario has the paper's pacer.
    pub(crate) pacers: Vec<HostPacer>,
    /// Where hosts receive in batches.
    pub(crate) receive_offload: Option<Box<ReceiveOffload>>,
    /// By number; `None` once closed.
    pub(crate) connections: Vec<Option<Box<Connection>>>,
    /// Where connections stay open between messages.
    pub(crate) pool: Option<Box<ConnectionPool>>,
    pub(crate) workloads: Vec<Box<dyn Workload>>,
    pub(crate) workload_armed: Vec<Time>,
    pub(crate) recorder: Recorder,
    /// Where packets are captured.
    pub(crate) tap: Option<Box<Tap>>,
    pub(crate) wires: Wires,
    pub(crate) rules: Rules,
    pub(crate) actions: Actions,
    /// By host: ends that wait for room in its NIC queue, in the order of their turns.
    pub(crate) waiting_for_room: Vec<VecDeque<(u32, End)>>,
    /// The time of the last event.
    pub(crate) now: Time,
    /// A workload has acted since the last look at whether all have finished.
    pub(crate) acted: bool,
    /// When all workloads had finished.
    pub(crate) finished: Option<Time>,
    /// Priorities and limits, where packets differ in them.
    pub(crate) classes: Option<Box<Classes>>,
    /// Where a flow's hash does not choose its path.
    pub(crate) selector: Option<Box<PathSelector>>,
    /// Where the network is too large for the cache.
    pub(crate) ahead: Option<Box<LookAhead>>,
    /// Where this is a part of a network: letters about connections that are yet to be opened.
    pub(crate) early_letters: Vec<Letter>,
    /// Events that every part has that has workloads, or follows faults.
    pub(crate) replicated_events: u64,
}

/// What the scenario says about the run as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The run ends here at the latest.
    pub(crate) horizon: Time,
    /// The run ends when every workload has finished.
    pub(crate) stop_when_finished: bool,
    /// How long the run goes on then: the shortest propagation of a link. No switch hears sooner that it is over,
    /// so parts of a network that run beside each other end as the whole does.
    pub(crate) grace: Span,
    /// Something looks at packets at the end of each link: a capture, flow control, or whoever chooses paths.
    pub(crate) looks_at_hops: bool,
    /// Something but the window keeps ends from sending: backpressure, segmentation offload, or limits.
    pub(crate) holds_back: bool,
    /// The transport waits for room in the NIC queue.
    pub(crate) backpressure: bool,
    /// Connections are closed when they fall idle.
    pub(crate) close_when_idle: bool,
    /// A message is complete when its sender knows of its delivery.
    pub(crate) completes_acknowledged: bool,
    /// Packets of a flow may take several paths at a time.
    pub(crate) spreads: bool,
    /// Senders wait for a piece worth handing to the NIC.
    pub(crate) segmentation: Option<SegmentationOffload>,
}

impl Rules {
    /// All workloads have `finished`.
    pub(crate) fn end_after(&mut self, finished: Time) {
        self.horizon = self.horizon.min(finished + self.grace);
    }
}

impl World {
    /// Runs to the end, and says when that was. `progress` is called now and then, and may stop the run.
    pub(crate) fn run(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> Result<Time, RunError> {
        self.begin();
        self.run_until(self.rules.horizon, progress)?;
        if let Some(finished) = self.finished {
            self.rules.end_after(finished);
            self.run_until(self.rules.horizon, progress)?;
        } else if self.wires.flow_control.is_some() {
            self.on_flow_control(Time::MAX)?;
        }
        Ok(if self.wires.events.is_empty() { self.now } else { self.rules.horizon })
    }

    /// Workloads say when they want to act first.
    pub(crate) fn begin(&mut self) {
        for workload in 0..self.workloads.len() {
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
        while let Some((now, owner)) = self.wires.events.pop_until(last) {
            self.now = now;
            self.look_ahead();
            match owner.kind() {
                OwnerKind::Link => self.on_link(now, PortId(owner.number())),
                OwnerKind::Port => self.on_port_due(now, PortId(owner.number())),
                OwnerKind::Pacer => self.on_pacer_due(now, HostId(owner.number())),
                OwnerKind::Endpoint => self.on_endpoint_due(now, owner.number()),
                OwnerKind::Workload => self.on_workload_due(now, owner.number() as usize),
                OwnerKind::Clock if owner.number() == SAMPLING_CLOCK => self.on_sample(now),
                OwnerKind::Clock => self.on_faults_due(now),
                OwnerKind::Receive => self.on_receive_due(now, HostId(owner.number())),
                OwnerKind::Pause => self.on_pause_due(now, PortId(owner.number())),
            }
            self.wires.counters.events += 1;
            if self.wires.counters.events.is_multiple_of(PROGRESS_EVENTS) && !progress(self.progress(now)) {
                return Err(RunError::Cancelled);
            }
            if self.wires.has_aftermath && self.is_last(now)? {
                break;
            }
        }
        Ok(())
    }

    /// Sees to what the event at `now` has left behind. Whether all workloads have finished with it.
    #[cold]
    fn is_last(&mut self, now: Time) -> Result<bool, RunError> {
        self.on_lost(now);
        self.on_flow_control(now)?;
        self.wires.has_aftermath = self.wires.flow_control.is_some();
        let is_last = std::mem::take(&mut self.acted) && self.is_finishing();
        if is_last {
            self.finished = Some(now);
        }
        Ok(is_last)
    }

    fn progress(&self, now: Time) -> Progress {
        Progress {
            now,
            horizon: self.rules.horizon,
            packet_hops: self.wires.counters.packet_hops,
            events: self.wires.counters.events,
        }
    }

    /// Whether all workloads have finished, and had not before.
    fn is_finishing(&self) -> bool {
        self.rules.stop_when_finished
            && self.finished.is_none()
            && self.workloads.iter().all(|workload| workload.is_finished())
    }

    /// The first packet of a link has reached its far end.
    #[inline]
    fn on_link(&mut self, now: Time, port: PortId) {
        let mut packet = self.wires.lanes.pop(port, &mut self.wires.events);
        let goes_on = if self.rules.looks_at_hops {
            self.look_at_hop(now, port, &mut packet)
        } else {
            self.wires.counters.packet_hops += 1;
            match self.network.far_switch(port) {
                Some(switch) => GoesOn::By(self.network.next_port(switch, &packet)),
                None => GoesOn::ToHost,
            }
        };
        match goes_on {
            GoesOn::By(next) => self.ports[next.0 as usize].on_arrival(next, now, packet, &mut self.wires),
            GoesOn::ToHost => self.on_host(now, &packet),
            GoesOn::Nowhere => {}
        }
    }

    /// `packet` has reached the end of the link of `port`, and something may look at it, or choose its path.
    #[inline(never)]
    fn look_at_hop(&mut self, now: Time, port: PortId, packet: &mut Packet) -> GoesOn {
        if self.selector.is_some() && !self.crosses(now, port, packet) {
            self.wires.lost_on_link(packet);
            return GoesOn::Nowhere;
        }
        self.wires.counters.packet_hops += 1;
        if let Some(tap) = &mut self.tap {
            tap.on_packet(now - self.network.link(port).propagation, port, packet);
        }
        if let Some(control) = &mut self.wires.flow_control
            && !control.admit(now, port, packet)
        {
            self.wires.dropped(now, self.network.port_towards(packet.dst), packet);
            return GoesOn::Nowhere;
        }
        let Some(switch) = self.network.far_switch(port) else { return GoesOn::ToHost };
        let next = match &mut self.selector {
            None => Some(self.network.next_port(switch, packet)),
            Some(selector) => selector.next_port(now, &self.network, &self.ports, switch, packet),
        };
        if next.is_none() {
            self.wires.no_route(packet);
        }
        next.map_or(GoesOn::Nowhere, GoesOn::By)
    }

    fn on_port_due(&mut self, now: Time, port: PortId) {
        self.ports[port.0 as usize].on_due(port, now, &mut self.wires);
        self.offer_room(now);
    }

    fn on_sample(&mut self, now: Time) {
        let next = self.recorder.sample(now, &self.connections);
        self.wires.events.push(next, Owner::new(OwnerKind::Clock, SAMPLING_CLOCK));
    }

    /// Has workloads record what is open at the `end` of the run, counts the packets still on the way, and takes
    /// back the marks that ports have foreseen for a time after it.
    pub(crate) fn settle(&mut self, end: Time) {
        let mut actions = Actions::default();
        for workload in &mut self.workloads {
            workload.on_end(&mut actions);
        }
        self.recorder.take(&mut actions);
        let held: usize = self.ports.iter().map(Port::held).sum::<usize>()
            + self.pacers.iter().map(HostPacer::held).sum::<usize>();
        self.wires.counters.packets_in_flight = (held + self.wires.lanes.in_flight()) as u64;
        self.wires.counters.marks -= self.ports.iter().map(|port| port.marks_after(end)).sum::<u64>();
    }

    /// Packets in = packets out + dropped + still on the way.
    ///
    /// # Panics
    /// If not.
    pub(crate) fn assert_conservation(&self) {
        let counters = &self.wires.counters;
        assert_eq!(
            counters.packets_sent,
            counters.packets_accounted_for(),
            "packets are conserved: {counters:?}"
        );
    }
}

/// Where a packet goes from the end of a link.
enum GoesOn {
    /// On, by a port of the switch there.
    By(PortId),
    /// To the host there.
    ToHost,
    /// It is gone, and that has been noted.
    Nowhere,
}

/// The number of the clock that samples time series.
pub(crate) const SAMPLING_CLOCK: u32 = 0;

/// Events between two calls of a progress callback.
const PROGRESS_EVENTS: u64 = 1 << 20;
