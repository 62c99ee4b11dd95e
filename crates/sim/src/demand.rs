//! The demand of hosts, as the controller of circuits asks for it.

use plimsoll_circuits::{ControlParams, Demand, Estimator};
use plimsoll_units::{Span, Time};

use crate::connection::{Connection, End};
use crate::world::World;

/// What the controller of circuits can read of the hosts.
#[derive(Debug)]
pub(crate) struct DemandReader {
    estimator: Estimator,
    /// The most bytes of a connection that its socket buffer shows.
    socket_buffer: u64,
    /// How often slow estimators read.
    poll: Span,
    /// What a slow estimator read last, and the number of the reading.
    polled: Option<(u64, Demand)>,
}

impl DemandReader {
    pub(crate) fn new(params: &ControlParams) -> DemandReader {
        DemandReader {
            estimator: params.estimator,
            socket_buffer: params.socket_buffer.get(),
            poll: params.poll,
            polled: None,
        }
    }

    /// Reads what `connections` of `hosts` hosts have written and not yet sent.
    fn read(&mut self, now: Time, hosts: usize, connections: &[Option<Box<Connection>>]) -> Demand {
        match self.estimator {
            Estimator::NicQueues | Estimator::SwitchCounters => Demand::new(hosts),
            Estimator::SendCalls => unsent(hosts, connections, u64::MAX),
            Estimator::SocketBuffers => unsent(hosts, connections, self.socket_buffer),
            Estimator::SlowSocketBuffers => {
                let reading = now.as_ps() / self.poll.as_ps().max(1);
                match &self.polled {
                    Some((last, demand)) if *last == reading => demand.clone(),
                    _ => {
                        let demand = unsent(hosts, connections, self.socket_buffer);
                        self.polled = Some((reading, demand.clone()));
                        demand
                    }
                }
            }
        }
    }
}

/// Returns the bytes that wait above the NICs, at most `most` of a connection.
fn unsent(hosts: usize, connections: &[Option<Box<Connection>>], most: u64) -> Demand {
    let mut demand = Demand::new(hosts);
    for connection in connections.iter().flatten() {
        for end in [End::Client, End::Server] {
            let endpoint = &connection.halves()[end as usize].endpoint;
            let bytes = endpoint.written().saturating_sub(endpoint.sent()).min(most);
            let (from, to) = (connection.host(end), connection.host(end.other()));
            *demand.get_mut(from.0 as usize, to.0 as usize) += bytes;
        }
    }
    demand
}

impl World {
    /// Gives the controller of circuits the demand that it has asked for.
    #[cold]
    pub(crate) fn give_demand(&mut self, now: Time) {
        let hosts = self.fabric.network().hosts() as usize;
        let demand = match &mut self.hosts.demand {
            Some(reader) => reader.read(now, hosts, &self.hosts.connections),
            None => Demand::new(hosts),
        };
        self.fabric.set_demand(demand);
    }
}
