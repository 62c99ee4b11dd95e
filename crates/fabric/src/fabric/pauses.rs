//! Pauses between switches: they are sent at the end of the event that decides on them, and a deadlock is looked for.

use plimsoll_units::Time;

use super::Fabric;
use crate::flow_control::{Deadlock, HeldPort, PauseChange};
use crate::links::{Hooks, Links};
use crate::net::PortId;

impl<H: Hooks> Fabric<H> {
    /// Sends the pauses that the event at `now` has decided on, where switches pause each other.
    #[inline]
    pub(crate) fn send_pauses(&mut self, now: Time) {
        let Links { flow_control, faults, boundary, events, .. } = &mut self.links;
        if let Some(control) = flow_control {
            control.send_pending(now, &mut self.ports, faults.as_deref(), boundary.as_deref_mut(), events);
        }
    }

    /// Pauses reach the port that they are for.
    #[cold]
    pub(super) fn on_pause_due(&mut self, now: Time, port: PortId) {
        while let Some(control) = &mut self.links.flow_control
            && let Some(PauseChange { signal, discarded }) =
                control.take_due(now, port, &mut self.links.events)
        {
            self.links.hooks.on_signal(now, port, signal);
            let sender = &mut self.ports[port.0 as usize];
            sender.set_discarded(port, now, discarded, &mut self.links);
            sender.on_signal(port, now, signal, &mut self.links);
        }
        let Links { flow_control, faults, boundary, events, .. } = &mut self.links;
        if let Some(control) = flow_control {
            let (faults, boundary) = (faults.as_deref(), boundary.as_deref_mut());
            control.refresh(now, port, &mut self.ports, faults, boundary, events);
        }
        self.send_pauses(now);
    }

    /// Finds links that pause each other in a circle for ever, if enough events have passed since the last search.
    #[cold]
    pub fn look_for_deadlock(&mut self, now: Time) -> Option<Deadlock> {
        let events = self.links.counters.events;
        if !self.links.flow_control.as_ref()?.is_search_due(events) {
            return None;
        }
        let ports = self.held_ports(now);
        let control = self.links.flow_control.as_mut()?;
        control.on_search(events, &ports);
        control.find_deadlock(&self.network, ports)
    }

    /// Returns the ports of switches that are paused at `now` without a known end, with the packets that wait there.
    pub fn held_ports(&self, now: Time) -> Vec<HeldPort> {
        let Links { flow_control, faults, lanes, .. } = &self.links;
        flow_control
            .as_ref()
            .map(|control| control.held_ports(now, &self.ports, lanes, faults.as_deref()))
            .unwrap_or_default()
    }

    /// Finds links that pause each other in a circle for ever among `ports`, which are all paused ports of the network.
    pub fn find_deadlock(&self, ports: Vec<HeldPort>) -> Option<Deadlock> {
        self.links.flow_control.as_ref()?.find_deadlock(&self.network, ports)
    }
}
