//! [`World::look_ahead`]: the memory of the events to come, loaded many at a time.
//!
//! In a network that is larger than the cache every event waits for memory several times, each time at an
//! address that the load before gave:
//!
//! ```text
//! link ──> its first packet ──> destination, next port ──> the port ──> its queue, its link's last packet
//!                          └──> connection
//! ```
//!
//! The events of one bucket of the calendar are known together. So each of these steps is taken for all of
//! them before the next step is taken for any: the loads of one step do not depend on each other, and the
//! processor waits for them all at once. Nothing changes but the cache, so a run is the same without it.

use std::hint::black_box;

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::PortId;

use crate::connection::End;
use crate::world::World;

/// What a look ahead has found so far; empty in between.
#[derive(Debug, Default)]
pub(crate) struct LookAhead {
    links: Vec<PortId>,
    ports: Vec<PortId>,
    deliveries: Vec<(u32, End)>,
}

/// Ports from which on looking ahead pays: with fewer, what it loads is in the cache already. Measured on
/// fat-trees: a tenth lost at 750 ports, even at 2,600, a tenth won at 6,100 and a half at 49,000.
pub(crate) const LOOK_AHEAD_PORTS: usize = 4_000;

impl World {
    /// Loads what the events of a stretch of time that has just begun will use.
    #[inline]
    pub(crate) fn look_ahead(&mut self) {
        if let Some(ahead) = &mut self.ahead
            && self.wires.events.take_turn()
        {
            let links = self.wires.events.soon().filter(is_link).map(|owner| PortId(owner.number()));
            ahead.links.extend(links);
            self.load_ahead();
        }
    }

    fn load_ahead(&mut self) {
        let Some(LookAhead { links, ports, deliveries }) = self.ahead.as_deref_mut() else { return };
        let lanes = &self.wires.lanes;
        let mut loaded = 0;
        for &link in links.iter() {
            loaded ^= lanes.load_first(link);
        }
        for link in links.drain(..) {
            let Some(packet) = lanes.first(link) else { continue };
            match self.network.far_switch(link) {
                Some(switch) => ports.push(self.network.next_port(switch, packet)),
                None => {
                    ports.push(PortId(packet.dst.0));
                    deliveries.push((packet.flow, End::receiving(packet)));
                }
            }
        }
        for port in ports.iter() {
            loaded ^= self.ports[port.0 as usize].load();
        }
        for (flow, end) in deliveries.drain(..) {
            if let Some(Some(connection)) = self.connections.get(flow as usize) {
                loaded ^= connection.load(end);
            }
        }
        for port in ports.drain(..) {
            loaded ^= self.ports[port.0 as usize].load_queue() ^ lanes.load_last(port);
        }
        // A load whose result nobody uses would be optimised away.
        black_box(loaded);
    }
}

fn is_link(owner: &Owner) -> bool {
    owner.kind() == OwnerKind::Link
}
