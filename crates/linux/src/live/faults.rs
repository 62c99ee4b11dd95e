//! A live fabric follows its [`Faults`](plimsoll_fabric::faults::Faults).
//!
//! They are a function of the fabric's time, as all else in it, so a run with faults replays to its digest as well.

use plimsoll_fabric::engine::Owner;
use plimsoll_fabric::faults::{FaultedSink, Faults, follow};
use plimsoll_fabric::flow_control::FlowControl;
use plimsoll_fabric::net::{Packet, PortId};
use plimsoll_units::Time;

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

impl LiveFabric {
    /// Links change, or routing learns that they have.
    #[cold]
    pub(super) fn on_faults_due(&mut self, now: Time) {
        follow(now, &self.network, &mut self.ports, self.selector.as_deref_mut(), &mut self.wires);
    }

    /// Whether what has come to the end of the link of `port` is still there: the link was alive all the while.
    pub(super) fn crosses(&self, now: Time, port: PortId) -> bool {
        let scheduled = self.wires.faults.as_ref().and_then(|faults| faults.link(port));
        let sent = || now - self.network.link(port).propagation;
        scheduled.is_none_or(|scheduled| !scheduled.loses(sent(), now))
    }
}
