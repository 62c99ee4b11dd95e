//! Applies the nights to a fabric: NICs hold packets and release them.

use plimsoll_units::Time;

use crate::fabric::Fabric;
use crate::links::Hooks;
use crate::net::PortId;

impl<H: Hooks> Fabric<H> {
    /// A night or a day begins at `now`.
    #[cold]
    pub(crate) fn on_night_due(&mut self, now: Time) {
        let Some(clock) = &mut self.links.nights else { return };
        clock.events += 1;
        let paused = clock.nights.paused_at(now);
        let (at, owner) = clock.next_event(now);
        self.links.events.push(at, owner);
        for nic in 0..self.links.hosts {
            self.ports[nic as usize].set_night(PortId(nic), now, paused, &mut self.links);
        }
    }
}
