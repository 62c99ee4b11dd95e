//! Prefetches the memory of a fabric that the next events will use, in steps: each needs the result of the one before.

use plimsoll_memory::prefetch_for_later;

use super::{Fabric, NextHop};
use crate::engine::{FoundHop, OwnerKind};
use crate::links::Hooks;
use crate::net::{Packet, PortId};

/// The element that the packet at the head of a link reaches next.
#[derive(Clone, Copy, Debug)]
pub enum LeadsTo<'a> {
    /// A port of the switch at the far end.
    Port(PortId),
    /// The host that the packet is for, with the packet.
    Host(&'a Packet),
}

impl<H: Hooks> Fabric<H> {
    /// Prefetches the packet of the next event, if that is a link's, and its telemetry.
    #[inline]
    pub fn prefetch_next(&self) {
        if let Some(owner) = self.links.events.first_at_hand()
            && owner.kind() == OwnerKind::Link
        {
            let port = PortId(owner.number());
            self.links.lanes.prefetch_first(port);
            if let Some(telemetry) = &self.links.telemetry {
                telemetry.prefetch(self.links.lanes.first_slot(port));
            }
        }
    }

    /// First step: prefetches the first packet of the link of `port`, and that link's far end.
    #[inline]
    pub fn prefetch_first(&self, port: PortId) {
        self.network.prefetch_far_end(port);
        if self.selector.is_some() {
            self.network.prefetch_link(port);
        }
        if let Some(control) = &self.links.flow_control {
            control.prefetch_places(port);
        }
        self.links.lanes.prefetch_first_for_later(port);
    }

    /// Second step: finds the next hop of that packet, and keeps it for the time when the packet arrives. `None` if the
    /// link has no packet, or if a selector will choose among several hops: the hop is then a guess, if anything.
    #[inline]
    pub fn find_next_hop(&mut self, port: PortId) -> Option<LeadsTo<'_>> {
        if let Some(control) = &self.links.flow_control {
            control.prefetch_account(port);
        }
        let packet = self.links.lanes.first(port)?;
        if let Some(selector) = &self.selector
            && let Some(switch) = self.network.far_switch(port)
            && !self.network.has_one_way(switch, packet.dst)
        {
            return selector.likely_port(&self.network, switch, packet).map(LeadsTo::Port);
        }
        if let NextHop::Port(next) = self.next_hop(port, packet) {
            self.links.lanes.set_found(port, FoundHop::by(next));
            return Some(LeadsTo::Port(next));
        }
        self.links.lanes.set_found(port, FoundHop::HOST);
        self.links.lanes.first(port).map(LeadsTo::Host)
    }

    /// Second step, once the hops are found: prefetches the port of one, and the ends of its lane.
    #[inline]
    pub fn prefetch_port(&self, port: PortId) {
        prefetch_for_later(&self.ports[port.0 as usize]);
        if let Some(control) = &self.links.flow_control {
            control.prefetch_places(port);
        }
        self.links.lanes.prefetch_ends_for_later(port);
    }

    /// Third step: prefetches the queue of `port`, and the last packet on its link. Returns whether packets wait there
    /// of which one may leave before another arrives, for [`Fabric::prefetch_departure`].
    #[inline]
    pub fn prefetch_queue(&self, port: PortId) -> bool {
        self.links.lanes.prefetch_last_for_later(port);
        self.ports[port.0 as usize].prefetch_queue()
    }

    /// Fourth step: prefetches the memory that the next departure of a port will use, if the port decides at each.
    #[inline]
    pub fn prefetch_departure(&self, port: PortId) {
        if let Some(slot) = self.ports[port.0 as usize].first_to_leave() {
            self.links.lanes.prefetch_leaving(slot);
        }
    }

    /// Prefetches the memory that [`Fabric::receive`] will use for a packet from `port`, which is received after
    /// `ahead` others.
    #[inline]
    pub fn prefetch_receipt(&self, port: PortId, ahead: usize) {
        self.links.lanes.prefetch_ends_for_later(port);
        self.links.lanes.prefetch_free(ahead);
    }
}
