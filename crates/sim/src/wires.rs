//! [`Wires`]: the links, and what ports want from the world.

use plimsoll_fabric::MeasurementWindow;
use plimsoll_fabric::engine::{EventQueue, Lanes, Owner, OwnerKind};
use plimsoll_fabric::faults::Faults;
use plimsoll_fabric::flow_control::FlowControl;
use plimsoll_fabric::net::{HostId, Network, Packet, PortId, Sink};
use plimsoll_mechanisms::shared_buffer::SharedBuffer;
use plimsoll_results::outcome::Counters;
use plimsoll_units::Time;

use crate::parallel::Border;
use plimsoll_workloads::workload_of_raw;

/// The links, and what ports want from the world: the simulated [`Sink`].
#[derive(Debug)]
pub(crate) struct Wires {
    pub(crate) events: EventQueue,
    pub(crate) lanes: Lanes,
    pub(crate) counters: Counters,
    /// NICs with room for a transport that waits.
    pub(crate) room: Vec<PortId>,
    /// Workloads whose raw packets were dropped, one entry a packet: nobody sends those again.
    pub(crate) lost: Vec<u16>,
    /// The event has left something to see to: a raw packet was lost, a workload has acted, or there is flow
    /// control, which looks after every event.
    pub(crate) has_aftermath: bool,
    /// The buffers that ports of a switch share.
    pub(crate) pools: Vec<SharedBuffer>,
    /// Where switches pause each other.
    pub(crate) flow_control: Option<Box<FlowControl>>,
    /// Where this is a part of a network.
    pub(crate) border: Option<Box<Border>>,
    /// By port, where links are counted: packets dropped in the window.
    pub(crate) drops: Vec<u64>,
    pub(crate) window: MeasurementWindow,
    /// Where links change; then there is a selector, too.
    pub(crate) faults: Option<Box<Faults>>,
    hosts: u32,
}

impl Wires {
    pub(crate) fn new(network: &Network, window: MeasurementWindow, events: EventQueue) -> Wires {
        Wires {
            events,
            lanes: Lanes::new(network.links().len()),
            counters: Counters::default(),
            room: Vec::new(),
            lost: Vec::new(),
            has_aftermath: false,
            pools: Vec::new(),
            flow_control: None,
            border: None,
            drops: Vec::new(),
            window,
            faults: None,
            hosts: network.hosts(),
        }
    }

    /// `packet` was on a link that is dead.
    #[cold]
    pub(crate) fn lost_on_link(&mut self, packet: &Packet) {
        self.note_lost(packet);
        self.counters.link_drops += 1;
    }

    /// `packet` is gone; who sent a raw one is told after the event.
    fn note_lost(&mut self, packet: &Packet) {
        self.lost.extend(workload_of_raw(packet.flow));
        self.has_aftermath |= !self.lost.is_empty();
    }

    /// `packet` is at a switch that knows no way to its host.
    #[cold]
    pub(crate) fn no_route(&mut self, packet: &Packet) {
        self.note_lost(packet);
        self.counters.no_route_drops += 1;
    }
}

impl Wires {
    /// The pacer of `host` asks to be called at a new time, if it does.
    #[inline]
    pub(crate) fn call_pacer_at(&mut self, host: HostId, due: Option<Time>) {
        if let Some(due) = due {
            self.events.push(due, Owner::new(OwnerKind::Pacer, host.0));
        }
    }

    /// Whether `host` is in this part of the network.
    #[inline]
    pub(crate) fn has(&self, host: HostId) -> bool {
        self.border.as_ref().is_none_or(|border| border.has(host))
    }
}

impl Sink for Wires {
    #[inline(always)] // once a hop: a call would copy the packet
    fn transmit(&mut self, port: PortId, arrives: Time, packet: Packet) -> &mut Packet {
        match &mut self.border {
            Some(border) if border.is_crossed_by(port) => border.transmit(port, arrives, packet),
            _ => self.lanes.push(port, arrives, packet, &mut self.events),
        }
    }

    fn call_at(&mut self, port: PortId, at: Time) {
        self.events.push(at, Owner::new(OwnerKind::Port, port.0));
    }

    #[inline]
    fn marked(&mut self, _: PortId, _: &Packet) {
        self.counters.marks += 1;
    }

    fn dropped(&mut self, now: Time, port: PortId, packet: &Packet) {
        if let Some(drops) = self.drops.get_mut(port.0 as usize) {
            *drops += u64::from(self.window.has(now));
        }
        self.note_lost(packet);
        if self.faults.as_ref().is_some_and(|faults| faults.is_dead(port)) {
            self.counters.link_drops += 1;
        } else if port.0 < self.hosts {
            self.counters.nic_drops += 1;
        } else {
            self.counters.switch_drops += 1;
        }
    }

    fn room(&mut self, port: PortId) {
        self.room.push(port);
    }

    fn entered(&mut self, port: PortId, packet: &Packet) {
        if let Some(control) = &mut self.flow_control {
            control.entered(port, packet);
        }
    }

    fn left(&mut self, port: PortId, packet: &Packet) {
        if let Some(control) = &mut self.flow_control {
            control.left(port, packet);
        }
    }

    fn pool(&mut self, pool: u32) -> &mut SharedBuffer {
        &mut self.pools[pool as usize]
    }
}
