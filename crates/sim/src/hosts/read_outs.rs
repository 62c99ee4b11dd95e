//! The state of hosts that the rest of the simulator reads, and the messages from other logical processes.

use std::collections::btree_map::Entry;

use plimsoll_fabric::net::{HostId, Network};
use plimsoll_mechanisms::tcp::{Connections, TcpConfig};
use plimsoll_mechanisms::transports::{Carrier, PacketTypes};
use plimsoll_results::outcome::{self, Delivered, GoodputInterval, ProcessorTotals};
use plimsoll_traffic::ConnectionEnd as End;
use plimsoll_units::Time;

use super::Hosts;
use super::connection::{HostConnection, add};
use super::flow_number::datagram_workload;
use super::messages::{Announced, Announcement};
use crate::observe::SenderState;
use crate::parallel::process::Process;
use crate::sim_hooks::SimFabric;

impl Hosts {
    /// Returns what keeps a run on one thread, if anything does.
    pub(crate) fn obstacle(&self) -> Option<&'static str> {
        if self.stacks.is_some() {
            Some("`host.processor` or `host.bursts`: what hosts' processors did is recorded in one place")
        } else {
            self.rules.one_thread
        }
    }

    /// Returns what keeps the two ends of a connection in one logical process, if anything does.
    pub(crate) fn ends_together(&self) -> Option<&'static str> {
        if self.rules.completes_acknowledged {
            Some("`observe.completion = \"acknowledged\"` completes a message at its sender")
        } else if self.transports.all().any(|config| config.params.pool > 0) {
            Some("`transport.pool` gets a connection back when its message is acknowledged, at its sender")
        } else if self.transports.all().any(may_be_idle_when_delivered) {
            Some("`transport.connections = \"per-message\"` closes both ends of a connection at one instant")
        } else {
            None
        }
    }

    /// Returns whether the two ends of a connection are in different logical processes.
    pub(super) fn is_divided(&self, connection: &HostConnection) -> bool {
        let here = |end| self.process.as_ref().is_none_or(|process| process.has(connection.host(end)));
        here(End::Client) != here(End::Server)
    }

    /// Leaves all hosts that `process` does not simulate to the others.
    pub(crate) fn become_process(&mut self, process: Process) {
        self.process = Some(Box::new(process));
    }

    /// Returns the logical process that these hosts are part of, where the run is parallel.
    pub(crate) fn process_mut(&mut self) -> Option<&mut Process> {
        self.process.as_deref_mut()
    }

    /// Takes what an end of a connection has announced that another logical process simulates.
    pub(crate) fn hear(&mut self, network: &Network, announcement: Announcement) {
        let Announcement { connection, to, what } = announcement;
        let is_to_come = connection >= self.next_connection();
        match (what, self.connections.get_mut(connection)) {
            (Announced::Message(message), Some(open)) => open.half(to).messages.expect(message),
            (Announced::Message(message), None) if self.datagrams.has(connection) => {
                self.datagrams.expect(connection, to, message);
            }
            // The other process is ahead: the connection is yet to be opened here. It will have been before any of the
            // message arrives, because a stretch of time is not longer than the lookahead.
            (Announced::Message(_), None) if is_to_come => {
                self.process.iter_mut().for_each(|process| process.early.push(announcement));
            }
            (Announced::Rests(segments), Some(open)) => {
                let (half, peer) = (open.half_of(to), open.host(to.other()));
                if half.rests(self.transports.get(open.transport))
                    && half.segments() == segments.seen_by_peer()
                {
                    self.put_away(network, connection);
                    let what = Announced::PutAway;
                    self.announce(peer, Announcement { connection, to: to.other(), what });
                }
            }
            (Announced::PutAway, Some(_)) => self.put_away(network, connection),
            (_, None) => {}
        }
    }

    /// Takes from the hosts of another logical process the ends of connections at the hosts that it simulated.
    pub(crate) fn absorb(&mut self, other: Hosts, simulated: impl Fn(HostId) -> bool) {
        self.connections.absorb(other.connections, |own, other| own.absorb(other, &simulated));
        self.datagrams.absorb(other.datagrams, &simulated);
        for (number, record) in other.closed {
            match self.closed.entry(number) {
                Entry::Vacant(none) => drop(none.insert(record)),
                Entry::Occupied(mut own) => add(own.get_mut(), &record),
            }
        }
        self.closed_types += other.closed_types;
        self.goodput.absorb(other.goodput);
    }

    /// Prefetches the memory that a segment at an end of a connection will use.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32, end: End) {
        if let Some(connection) = self.connections.get(number) {
            connection.prefetch(end);
        }
    }

    /// Asks memory for what that refers to.
    #[inline]
    pub(crate) fn prefetch_behind(&self, number: u32, end: End) {
        if let Some(connection) = self.connections.get(number) {
            connection.prefetch_behind(end);
        }
    }

    /// Returns the state of the sending end of every open connection, subflow by subflow: the number of the connection,
    /// that of the subflow, and the state.
    pub(crate) fn senders(&self) -> impl Iterator<Item = (u32, u8, SenderState)> {
        let plain = (0..).zip(self.connections.iter());
        let plain = plain.filter_map(|(number, open)| {
            let (open, endpoint) = (open?, open?.busier_end());
            let state = SenderState {
                acknowledged: endpoint.acknowledged(),
                window: endpoint.window(self.transports.get(open.transport)),
                retransmissions: endpoint.counters().retransmissions,
            };
            Some((number, 0, state))
        });
        let multipath = self.multipath.iter().flat_map(|multipath| multipath.connections());
        plain.chain(multipath.flat_map(|(number, connection)| {
            let subflows = (0..).zip(connection.busier_end().subflows());
            subflows.map(move |(subflow, endpoint)| {
                let state = SenderState {
                    acknowledged: endpoint.acknowledged(),
                    window: endpoint.window(),
                    retransmissions: endpoint.counters().retransmissions,
                };
                (number, subflow, state)
            })
        }))
    }

    /// Returns the packets of all queue pairs by type, with the packets that `fabric` has lost.
    pub(crate) fn packet_types(&self, fabric: &SimFabric) -> PacketTypes {
        let mut types = self.closed_types;
        self.connections.iter().flatten().for_each(|open| types += open.packet_types());
        let lost = fabric.hooks().lost_types.iter().flatten();
        let of_pairs = lost.filter(|(flow, _)| self.is_of_nics(fabric.network(), **flow));
        of_pairs.for_each(|(_, lost)| types += *lost);
        types
    }

    /// Returns whether NICs carry a flow: another transport may be beside them.
    fn is_of_nics(&self, network: &Network, flow: u32) -> bool {
        datagram_workload(flow).is_none() && self.is_carried_by_nics(self.workload_of(network, flow))
    }

    /// Returns the payload that workloads sent and received, by interval.
    pub(crate) fn goodput(&self) -> Vec<GoodputInterval> {
        self.goodput.intervals()
    }

    /// Returns the payload that each workload delivered in the measurement window of a run that has ended at `end`.
    pub(crate) fn delivered(&self, end: Time) -> Delivered {
        self.goodput.delivered(end)
    }

    /// Returns what each host's processor did until `end`; nothing where there are no processors.
    pub(crate) fn processors(&self, model_has_processor: bool, end: Time) -> Vec<ProcessorTotals> {
        self.stacks.as_ref().map_or_else(Vec::new, |all| all.totals(model_has_processor, end))
    }

    /// Returns the number of the workload that a connection or a subflow belongs to; of one that is unknown, the first.
    pub(crate) fn workload_of(&self, network: &Network, flow: u32) -> u16 {
        let number = self.connection_of(flow);
        let open = self.connections.get(number);
        let of_open = open.map(|connection| connection.workload);
        let record = || Some(self.record(network, number)?.workload);
        of_open.or_else(record).unwrap_or(0)
    }

    /// Returns the record of every connection, with the counts of its pacer.
    pub(crate) fn records(&self, fabric: &mut SimFabric, end: Time) -> Vec<outcome::ConnectionRecord> {
        let numbered = (0..).zip(self.connections.iter());
        let record = |(number, connection): (u32, Option<&HostConnection>)| match connection {
            Some(connection) => {
                let mut record = connection.record(fabric.network());
                // Of a connection between two processes one may have put away its end.
                self.closed.get(&number).into_iter().for_each(|end| add(&mut record, end));
                record
            }
            None => self.record(fabric.network(), number).unwrap_or_default(),
        };
        let mut records: Vec<outcome::ConnectionRecord> = numbered.map(record).collect();
        for nic in (0..fabric.network().hosts()).map(HostId) {
            for (flow, counts) in fabric.pacing_counts(nic, end) {
                let record = &mut records[self.connection_of(flow as u32) as usize];
                record.pacer_associations += counts.associations - counts.renewals;
                record.pacer_renewals += counts.renewals;
                record.pacer_dissociations += counts.dissociations;
            }
        }
        records
    }

    /// Returns the record of a connection of another family than TCP, or of one that is closed.
    fn record(&self, network: &Network, number: u32) -> Option<outcome::ConnectionRecord> {
        let of_multipath = self.multipath.as_ref().and_then(|multipath| multipath.record(number));
        let of_other = of_multipath.or_else(|| self.datagrams.record(network, number));
        of_other.or_else(|| self.closed.get(&number).cloned())
    }

    /// Returns the connection of a flow, which may be a subflow.
    fn connection_of(&self, flow: u32) -> u32 {
        let multipath = self.multipath.as_ref();
        multipath.and_then(|multipath| multipath.connection_of(flow)).unwrap_or(flow)
    }
}

/// Returns whether a connection may be closed as soon as its message is delivered. A sender of TCP, WRITE, Ultra
/// Ethernet or NDP is not idle then, as the acknowledgement of the packet that completed the message is on its way.
fn may_be_idle_when_delivered(config: &TcpConfig) -> bool {
    let acknowledges = match config.carrier() {
        Carrier::Roce => !config.reads(),
        Carrier::Uet | Carrier::Ndp => true,
        Carrier::Homa => false,
        Carrier::Stack => config.custom.is_some() || config.params.kind.describe().family.acknowledges,
    };
    config.params.connections == Connections::PerMessage && !acknowledges
}
