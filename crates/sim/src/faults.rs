//! A world follows its [`Faults`](plimsoll_wiring::faults::Faults).

use plimsoll_fabric::net::{Packet, PortId};
use plimsoll_mechanisms::pfc::{Priorities, Signal};
use plimsoll_results::outcome;
use plimsoll_scenario::model::{Fault, Model};
use plimsoll_units::Time;
use plimsoll_wiring::faults::{Change, LinkState};

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

impl World {
    /// Links change, or routing learns that they have.
    #[cold]
    pub(crate) fn on_faults_due(&mut self, now: Time) {
        let Some(faults) = &mut self.wires.faults else { return };
        self.replicated_events += 1;
        let changed = faults.advance(now);
        if let Some((at, owner)) = faults.next_event(now) {
            self.wires.events.push(at, owner);
        }
        for change in &changed {
            self.change_link(now, change.port, change.state);
        }
        for Change { port, back, .. } in changed.into_iter().filter(|change| change.breaks) {
            self.forget_pauses(now, port);
            back.into_iter().for_each(|back| self.forget_pauses(now, back));
        }
        self.reroute(now);
        self.offer_room(now);
    }

    fn change_link(&mut self, now: Time, port: PortId, state: LinkState) {
        let Some(faults) = &self.wires.faults else { return };
        let rules = faults.rules_in(port, state);
        let number = port.0 as usize;
        self.ports[number].set_rules(rules);
        if state == LinkState::Dead {
            self.ports[number].flush(port, now, &mut self.wires);
        } else if number < self.waiting_for_room.len() {
            self.wires.room.push(port);
        }
    }

    /// Flow control on the link of `port` begins anew.
    fn forget_pauses(&mut self, now: Time, port: PortId) {
        let Some(control) = &mut self.wires.flow_control else { return };
        control.forget(port);
        self.ports[port.0 as usize].on_signal(port, now, Signal::Resume(Priorities::ALL), &mut self.wires);
    }

    fn reroute(&mut self, now: Time) {
        let Some(faults) = &mut self.wires.faults else { return };
        if !faults.learn(now) {
            return;
        }
        let detours = faults.detours(&self.network);
        if let Some(selector) = &mut self.selector {
            selector.set_detours(detours);
        }
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
