//! A world follows its [`Faults`](plimsoll_fabric::faults::Faults).

use plimsoll_fabric::engine::Owner;
use plimsoll_fabric::faults::{FaultedSink, Faults, follow};
use plimsoll_fabric::flow_control::FlowControl;
use plimsoll_fabric::net::{Packet, PortId};
use plimsoll_results::outcome;
use plimsoll_scenario::model::{Fault, Model};
use plimsoll_units::Time;

use crate::wires::Wires;
use crate::world::World;

/// The faults of `model` as the outcome lists them.
pub(crate) fn listed(model: &Model) -> Vec<outcome::Fault> {
    let listed = |fault: &Fault| outcome::Fault {
        link: fault.link_name(),
        from: Time::ZERO + fault.at,
        until: fault.until.map(|until| Time::ZERO + until),
        rate: fault.rate,
    };
    model.fault.iter().map(listed).collect()
}

impl FaultedSink for Wires {
    fn faults(&mut self) -> Option<&mut Faults> {
        self.faults.as_deref_mut()
    }

    fn flow_control(&mut self) -> Option<&mut FlowControl> {
        self.flow_control.as_deref_mut()
    }

    fn wake(&mut self, at: Time, owner: Owner) {
        self.events.push(at, owner);
    }
}

impl World {
    /// Links change, or routing learns that they have.
    #[cold]
    pub(crate) fn on_faults_due(&mut self, now: Time) {
        self.replicated_events += 1;
        let selector = self.selector.as_deref_mut();
        let alive = follow(now, &self.network, &mut self.ports, selector, &mut self.wires);
        // Where transports wait for room, their NICs are the first ports.
        let nics = alive.into_iter().filter(|port| (port.0 as usize) < self.waiting_for_room.len());
        self.wires.room.extend(nics);
        self.offer_room(now);
    }

    /// `packet` has come to the end of the link of `port`, in a world where paths may change. Whether it is
    /// still there.
    pub(crate) fn crosses(&mut self, now: Time, port: PortId, packet: &mut Packet) -> bool {
        let link = self.network.link(port);
        match self.wires.faults.as_ref().and_then(|faults| faults.link(port)) {
            // Its port knew what the link would take.
            Some(scheduled) => !scheduled.loses(now - link.propagation, now),
            None => {
                packet.add_transit(link.rate.byte_time().span(u64::from(packet.size)) + link.propagation);
                true
            }
        }
    }
}
