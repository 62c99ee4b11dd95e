//! The demand of hosts, as the controller of circuits asks for it.

use std::ops::RangeInclusive;

use plimsoll_circuits::{ControlParams, Demand, Estimator};
use plimsoll_fabric::net::HostId;
use plimsoll_units::Time;

/// The part of the hosts' state that the controller of circuits can read.
#[derive(Debug)]
pub(super) struct DemandReader {
    params: ControlParams,
    /// The last reading of a slow estimator, and its number.
    polled: Option<(u64, Demand)>,
}

impl DemandReader {
    pub(super) fn new(params: &ControlParams) -> DemandReader {
        DemandReader { params: params.clone(), polled: None }
    }

    /// Returns the times between which data that applications announce may become ready to count at `now`; `None`
    /// where it never counts.
    pub(super) fn hints_within(&self, now: Time) -> Option<RangeInclusive<Time>> {
        self.params.hints_within(now)
    }

    /// Reads what ends of connections of `hosts` hosts have written and not yet sent.
    pub(super) fn read(&mut self, now: Time, hosts: usize, unsent: impl Iterator<Item = Unsent>) -> Demand {
        let socket_buffer = self.params.socket_buffer.get();
        match self.params.estimator {
            Estimator::NicQueues | Estimator::SwitchCounters => Demand::new(hosts),
            Estimator::SendCalls | Estimator::Hints | Estimator::TimedHints => sum(hosts, unsent, u64::MAX),
            Estimator::SocketBuffers => sum(hosts, unsent, socket_buffer),
            Estimator::SlowSocketBuffers => {
                let reading = now.as_ps() / self.params.poll.as_ps().max(1);
                match &self.polled {
                    Some((last, demand)) if *last == reading => demand.clone(),
                    _ => {
                        let demand = sum(hosts, unsent, socket_buffer);
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
