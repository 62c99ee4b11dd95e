//! A world sends the pauses that its [`FlowControl`](plimsoll_fabric::flow_control::FlowControl) decides.

use plimsoll_fabric::flow_control::circle;
use plimsoll_fabric::net::{Node, PortId};
use plimsoll_units::Time;

use crate::RunError;
use crate::world::World;

impl World {
    /// After an event at `now`, or at the end of the run: sends what pauses were decided, and sees that something
    /// moves.
    ///
    /// # Errors
    /// A deadlock.
    #[cold]
    pub(crate) fn on_flow_control(&mut self, now: Time) -> Result<(), RunError> {
        let wires = &mut self.wires;
        let Some(control) = &mut wires.flow_control else { return Ok(()) };
        if control.has_pending() {
            control.send_pending(now, &self.ports, wires.faults.as_deref(), &mut wires.events);
        } else if control.is_stuck(now, wires.lanes.in_flight()) {
            let at = control.moved();
            return Err(self.deadlock(at));
        }
        Ok(())
    }

    /// Nothing has moved since `at`, and nothing will.
    #[cold]
    fn deadlock(&self, at: Time) -> RunError {
        let name = |node| match node {
            Node::Host(host) => format!("h{}", host.0),
            Node::Switch(switch) => format!("s{switch}"),
        };
        let links = circle(&self.network, &self.ports).into_iter().map(|port| {
            let link = self.network.link(port);
            format!("{} -> {}", name(link.from), name(link.to))
        });
        RunError::Deadlock { at, links: links.collect() }
    }

    /// Pauses reach the port that they are for.
    #[cold]
    pub(crate) fn on_pause_due(&mut self, now: Time, port: PortId) {
        while let Some(control) = &mut self.wires.flow_control
            && let Some(signal) = control.take_due(now, port)
        {
            self.ports[port.0 as usize].on_signal(port, now, signal, &mut self.wires);
        }
        self.offer_room(now);
    }
}
