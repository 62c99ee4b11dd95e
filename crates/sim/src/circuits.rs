//! The world's part in the control loop of circuits: it reads the hosts' demand, and its senders use what has opened.

use plimsoll_fabric::net::HostId;
use plimsoll_traffic::Hint;
use plimsoll_units::Time;

use crate::world::World;

impl World {
    /// The controller of circuits has acted: it gets the demand that it wants, and senders may find other queues open.
    #[cold]
    pub(crate) fn on_circuits(&mut self, now: Time) {
        let count = self.fabric.network().hosts();
        if self.fabric.wants_demand()
            && let Some(reader) = &mut self.hosts.demand
        {
            let unsent = self.hosts.connections.iter().flatten().flat_map(|connection| connection.unsent());
            let multipath = self.hosts.multipath.iter().flat_map(|multipath| multipath.connections());
            let unsent = unsent.chain(multipath.flat_map(|(_, connection)| connection.unsent()));
            let mut demand = reader.read(now, count as usize, unsent);
            if reader.takes_hints() {
                for workload in &self.sources.workloads {
                    workload.hints(&mut |Hint { from, to, bytes }| {
                        *demand.get_mut(from.0 as usize, to.0 as usize) += bytes;
                    });
                }
            }
            self.fabric.set_demand(demand);
        }
        if self.hosts.multipath.is_some() {
            (0..count).for_each(|host| self.on_circuits_changed(now, HostId(host)));
        }
        self.offer_room(now);
    }
}
