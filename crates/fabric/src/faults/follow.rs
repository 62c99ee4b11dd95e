//! Applies faults to a fabric: ports, flow control and routing follow the schedule.
//!
//! Simulated and live runs share this, so that both see a fault alike.

use plimsoll_mechanisms::pfc::{Priorities, Signal};
use plimsoll_units::Time;

use super::{LinkChange, LinkState};
use crate::fabric::Fabric;
use crate::links::Hooks;
use crate::net::PortId;

impl<H: Hooks> Fabric<H> {
    /// Handles a change of links at `now`, or routing's reaction to one: ports get their rules, dead ones are emptied,
    /// flow control on links that fail or recover begins anew, and paths avoid the links that routing regards as dead.
    #[cold]
    pub(crate) fn on_faults_due(&mut self, now: Time) {
        let Some(faults) = &mut self.links.faults else { return };
        faults.events += 1;
        let changed = faults.advance(now);
        if let Some((at, owner)) = faults.next_event(now) {
            self.links.events.push(at, owner);
        }
        for change in &changed {
            self.change_link(now, change);
        }
        for change in changed.iter().filter(|change| change.breaks) {
            for port in [Some(change.port), change.back].into_iter().flatten() {
                self.forget_pauses(now, port);
            }
        }
        self.send_pauses(now);
        if let Some(faults) = &mut self.links.faults
            && faults.learn(now)
            && let Some(selector) = &mut self.selector
        {
            selector.set_detours(faults.detours(&self.network));
        }
        if self.backpressure {
            let alive = changed.iter().filter(|change| change.state != LinkState::Dead);
            let nics = alive.map(|change| change.port).filter(|port| port.0 < self.network.hosts());
            nics.for_each(|nic| self.links.hooks.on_room(nic));
        }
    }

    fn change_link(&mut self, now: Time, change: &LinkChange) {
        let &LinkChange { port, state, .. } = change;
        let Some(faults) = &self.links.faults else { return };
        let changed = &mut self.ports[port.0 as usize];
        changed.set_rules(faults.rules_in(port, state));
        if state == LinkState::Dead {
            changed.flush(port, now, &mut self.links);
        }
    }

    /// Flow control on the link of `port` begins anew.
    fn forget_pauses(&mut self, now: Time, port: PortId) {
        let Some(control) = &mut self.links.flow_control else { return };
        control.forget(now, port, &mut self.links.events);
        let resume = Signal::Resume(Priorities::ALL);
        self.ports[port.0 as usize].on_signal(port, now, resume, &mut self.links);
    }
}
