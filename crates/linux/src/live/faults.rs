//! A live fabric follows its [`Faults`](plimsoll_wiring::faults::Faults).
//!
//! They are a function of the fabric's time, as all else in it, so a run with faults replays to its digest as well.

use plimsoll_fabric::net::{Packet, PortId};
use plimsoll_mechanisms::pfc::{Priorities, Signal};
use plimsoll_units::Time;
use plimsoll_wiring::faults::{Change, LinkState};

use super::{LiveFabric, Wires};

impl Wires {
    /// `packet` was on a link that is dead.
    #[cold]
    pub(super) fn lost_on_link(&mut self, now: Time, packet: &Packet) {
        self.counters.link_drops += 1;
        self.dropped.push((now, *packet));
    }

    /// `packet` is at a switch that knows no way to its host.
    #[cold]
    pub(super) fn no_route(&mut self, now: Time, packet: &Packet) {
        self.counters.no_route_drops += 1;
        self.dropped.push((now, *packet));
    }
}

impl LiveFabric {
    /// Links change, or routing learns that they have.
    #[cold]
    pub(super) fn on_faults_due(&mut self, now: Time) {
        let Some(faults) = &mut self.wires.faults else { return };
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
    }

    fn change_link(&mut self, now: Time, port: PortId, state: LinkState) {
        let Some(faults) = &self.wires.faults else { return };
        let rules = faults.rules_in(port, state);
        let changed = &mut self.ports[port.0 as usize];
        changed.set_rules(rules);
        if state == LinkState::Dead {
            changed.flush(port, now, &mut self.wires);
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

    /// Whether what has come to the end of the link of `port` is still there: the link was alive all the while.
    pub(super) fn crosses(&self, now: Time, port: PortId) -> bool {
        let scheduled = self.wires.faults.as_ref().and_then(|faults| faults.link(port));
        let sent = || now - self.network.link(port).propagation;
        scheduled.is_none_or(|scheduled| !scheduled.loses(sent(), now))
    }
}
