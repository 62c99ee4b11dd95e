//! The demand of hosts, as the controller of circuits asks for it.

use plimsoll_circuits::{ControlParams, Demand, Estimator};
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Span, Time};

/// The part of the hosts' state that the controller of circuits can read.
#[derive(Debug)]
pub(super) struct DemandReader {
    estimator: Estimator,
    /// The most bytes of a connection that its socket buffer shows.
    socket_buffer: u64,
    /// How often slow estimators read.
    poll: Span,
    /// The last reading of a slow estimator, and its number.
    polled: Option<(u64, Demand)>,
}

impl DemandReader {
    pub(super) fn new(params: &ControlParams) -> DemandReader {
        DemandReader {
            estimator: params.estimator,
            socket_buffer: params.socket_buffer.get(),
            poll: params.poll,
            polled: None,
        }
    }

    /// Returns whether applications report the data that they will send.
    pub(super) fn takes_hints(&self) -> bool {
        self.estimator == Estimator::Hints
    }

    /// Reads what ends of connections of `hosts` hosts have written and not yet sent.
    pub(super) fn read(&mut self, now: Time, hosts: usize, unsent: impl Iterator<Item = Unsent>) -> Demand {
        match self.estimator {
            Estimator::NicQueues | Estimator::SwitchCounters => Demand::new(hosts),
            Estimator::SendCalls | Estimator::Hints => sum(hosts, unsent, u64::MAX),
            Estimator::SocketBuffers => sum(hosts, unsent, self.socket_buffer),
            Estimator::SlowSocketBuffers => {
                let reading = now.as_ps() / self.poll.as_ps().max(1);
                match &self.polled {
                    Some((last, demand)) if *last == reading => demand.clone(),
                    _ => {
                        let demand = sum(hosts, unsent, self.socket_buffer);
                        self.polled = Some((reading, demand.clone()));
                        demand
                    }
                }
            }
        }
    }
}

/// What an end of a connection has written and not yet sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unsent {
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) bytes: u64,
}

/// Returns the bytes that wait above the NICs, at most `most` of an end.
fn sum(hosts: usize, unsent: impl Iterator<Item = Unsent>, most: u64) -> Demand {
    let mut demand = Demand::new(hosts);
    for Unsent { from, to, bytes } in unsent {
        *demand.get_mut(from.0 as usize, to.0 as usize) += bytes.min(most);
    }
    demand
}
