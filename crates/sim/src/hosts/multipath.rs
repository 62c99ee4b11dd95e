//! [`Multipath`]: the connections of MPTCP, whose subflows are flows of their own.
//!
//! ```text
//! write_multipath ──> mptcp::Endpoint ──> send_multipath ──> packet of flow FIRST_SUBFLOW + n ──> NIC
//! receive_multipath <── packet: the flow says which connection and subflow it belongs to
//! ```
//!
//! A plain TCP connection costs nothing for it: MPTCP's have no entry among the connections, and what finds none there
//! comes here. A packet carries its data ACK in [`Packet::rank`]; the mapping of its payload, which a real one carries
//! as well, is looked up at the sender.

mod transport;

use std::collections::BTreeMap;

use plimsoll_fabric::net::topology::NicChoice;
use plimsoll_fabric::net::{Flags, HostId, Network, Node, Packet, PathClass};
use plimsoll_mechanisms::mptcp::{MptcpConfig, MptcpEndpoint, SubflowPaths};
use plimsoll_mechanisms::qjump::PeriodicLimiter;
use plimsoll_results::outcome;
use plimsoll_scenario::model::Model;
use plimsoll_traffic::Opened;
use plimsoll_units::Time;

use crate::error::RunError;
use crate::hosts::connection::count;
use crate::hosts::demand::Unsent;
use crate::hosts::flow_number::FIRST_SUBFLOW;
use crate::hosts::messages::{MessageStream, Stream};
use plimsoll_traffic::ConnectionEnd as End;

/// The connections of MPTCP.
#[derive(Debug)]
pub(super) struct Multipath {
    /// By workload: the parameters of its connections; `None` where they are plain TCP's.
    configs: Vec<Option<MptcpConfig>>,
    /// The connections by number.
    connections: BTreeMap<u32, Box<MultipathConnection>>,
    /// By flow, from [`FIRST_SUBFLOW`] on: the connection and the subflow; `None` for a number that is not used.
    flows: Vec<Option<(u32, u8)>>,
}

/// How many port numbers are tried for a path of its own.
const TRIES: u32 = 32;

/// A connection of MPTCP.
#[derive(Debug)]
pub(super) struct MultipathConnection {
    workload: u16,
    /// The hosts of the client and of the server.
    hosts: [HostId; 2],
    /// By subflow: the flow number of its packets, and the NICs of the client and of the server.
    flows: Vec<(u32, [HostId; 2])>,
    halves: [MultipathHalf; 2],
    active: Option<(Time, Time)>,
}

/// One end of a connection of MPTCP.
#[derive(Debug)]
struct MultipathHalf {
    endpoint: MptcpEndpoint,
    /// The time of the event that the queue has for this end's deadline; [`Time::MAX`] if it has none.
    armed: Time,
    /// The end waits for room in its NIC queue.
    blocked: bool,
    priority: u8,
    limiter: Option<Box<PeriodicLimiter>>,
    /// The messages, in offsets of the data sequence.
    messages: MessageStream,
}

impl Multipath {
    /// Builds the state of MPTCP's connections, if some workload has such.
    pub(super) fn new(model: &Model) -> Result<Option<Box<Multipath>>, RunError> {
        let configs = model.workload.keys().map(|name| model.mptcp_config(name));
        let configs: Vec<_> = configs.collect::<Result<_, _>>()?;
        let has_some = configs.iter().any(Option::is_some);
        let multipath = || Multipath { configs, connections: BTreeMap::new(), flows: Vec::new() };
        Ok(has_some.then(|| Box::new(multipath())))
    }

    /// Returns whether the connections of `workload` are MPTCP's.
    pub(super) fn is_for(&self, workload: u16) -> bool {
        self.configs[usize::from(workload)].is_some()
    }

    /// Opens connection `number`, which is `established` where its pool has one open.
    pub(super) fn open(
        &mut self,
        network: &Network,
        number: u32,
        workload: u16,
        opened: Opened,
        established: bool,
    ) {
        let hosts = [opened.client, opened.server];
        let Some(config) = &self.configs[usize::from(workload)] else { return };
        let mut config = config.clone();
        config.tcp.params.handshake &= !established;
        let mut flows = Vec::new();
        for subflow in 0..config.subflows as u8 {
            let first = FIRST_SUBFLOW + self.flows.len() as u32;
            let nics = network.nics().of_flow(NicChoice::Rail, hosts, subflow.into(), 0);
            let flow = match config.paths {
                SubflowPaths::Hash | SubflowPaths::Classes => first,
                SubflowPaths::Distinct => (first..first + TRIES)
                    .min_by_key(|flow| shared_links(network, (*flow, nics), &flows))
                    .expect("some numbers are tried"),
            };
            self.flows.resize((flow - FIRST_SUBFLOW) as usize, None);
            self.flows.push(Some((number, subflow)));
            flows.push((flow, nics));
        }
        let half = || MultipathHalf {
            endpoint: MptcpEndpoint::new(&config),
            armed: Time::MAX,
            blocked: false,
            priority: 0,
            limiter: None,
            messages: MessageStream::default(),
        };
        let halves = [half(), half()];
        let mut connection = MultipathConnection { workload, hosts, flows, halves, active: None };
        connection.set_paths(network);
        self.connections.insert(number, Box::new(connection));
    }

    /// Returns whether `flow` is a subflow of an open connection.
    pub(super) fn has_flow(&self, flow: u32) -> bool {
        self.connection_of(flow).is_some_and(|number| self.connections.contains_key(&number))
    }

    /// Returns the connection of which `flow` is a subflow.
    pub(super) fn connection_of(&self, flow: u32) -> Option<u32> {
        self.subflow_of(flow).map(|(number, _)| number)
    }

    fn subflow_of(&self, flow: u32) -> Option<(u32, usize)> {
        let place = flow.checked_sub(FIRST_SUBFLOW)?;
        let (number, subflow) = (*self.flows.get(place as usize)?)?;
        Some((number, usize::from(subflow)))
    }

    /// Returns the open connections with their numbers, in the order of these.
    pub(super) fn connections(&self) -> impl Iterator<Item = (u32, &MultipathConnection)> {
        self.connections.iter().map(|(number, connection)| (*number, &**connection))
    }

    /// Returns the record of an open connection.
    pub(super) fn record(&self, number: u32) -> Option<outcome::ConnectionRecord> {
        self.connections.get(&number).map(|connection| connection.record())
    }

    /// Returns the messages at an end of an open connection.
    pub(super) fn stream(&mut self, number: u32, end: End) -> Option<Stream<'_>> {
        let MultipathConnection { workload, flows, halves, .. } = &mut **self.connections.get_mut(&number)?;
        let [client, server] = halves;
        let (own, peer) = if end == End::Client { (client, server) } else { (server, client) };
        Some(Stream {
            workload: *workload,
            acknowledged: own.endpoint.acknowledged(),
            own: &mut own.messages,
            peer: &mut peer.messages,
            has_subflows: flows.len() > 1,
        })
    }

    /// Closes an open connection that is idle, and returns its record.
    pub(super) fn close_if_idle(&mut self, number: u32) -> Option<outcome::ConnectionRecord> {
        let record = self.connections.get(&number).filter(|connection| connection.is_idle())?.record();
        self.connections.remove(&number);
        Some(record)
    }

    /// Returns an open connection with its parameters.
    fn with_config(&mut self, number: u32) -> Option<(&MptcpConfig, &mut MultipathConnection)> {
        let connection = self.connections.get_mut(&number)?;
        Some((self.configs[usize::from(connection.workload)].as_ref()?, connection))
    }
}

/// Returns by which of a hybrid network's switches the packets of a subflow travel.
fn path_class(paths: SubflowPaths, subflow: usize) -> PathClass {
    match (paths, subflow) {
        (SubflowPaths::Hash | SubflowPaths::Distinct, _) => PathClass::Either,
        (SubflowPaths::Classes, 0) => PathClass::Packet,
        (SubflowPaths::Classes, _) => PathClass::Circuit,
    }
}

/// Counts the links between switches that a subflow with number `flow` would share with the subflows of `others`, in
/// both directions.
fn shared_links(network: &Network, subflow: (u32, [HostId; 2]), others: &[(u32, [HostId; 2])]) -> usize {
    let is_inner = |node: Node| matches!(node, Node::Switch(_));
    let path = |(flow, nics): (u32, [HostId; 2]), from: End| {
        let (src, dst) = (nics[from as usize], nics[from.other() as usize]);
        let links = network.path(&Packet::new(src, dst, flow, 0));
        let inner = |port: &_| is_inner(network.link(*port).from) && is_inner(network.link(*port).to);
        links.filter(inner).collect::<Vec<_>>()
    };
    let shared = |from| -> usize {
        let own = path(subflow, from);
        let of_others = others.iter().map(|other| path(*other, from));
        of_others.map(|other| other.iter().filter(|link| own.contains(link)).count()).sum()
    };
    shared(End::Client) + shared(End::Server)
}

impl MultipathConnection {
    /// Returns what each end has written and not yet sent by any subflow.
    pub(super) fn unsent(&self) -> impl Iterator<Item = Unsent> + '_ {
        [End::Client, End::Server].into_iter().map(|end| {
            let endpoint = &self.halves[end as usize].endpoint;
            let bytes = endpoint.written().saturating_sub(endpoint.sent());
            Unsent { from: self.host(end), to: self.host(end.other()), bytes }
        })
    }

    fn host(&self, end: End) -> HostId {
        self.hosts[end as usize]
    }

    /// Tells the controllers that take account of it how many switches the packets of their subflows pass.
    fn set_paths(&mut self, network: &Network) {
        for end in [End::Client, End::Server] {
            for (subflow, &(flow, nics)) in self.flows.iter().enumerate() {
                let (src, dst) = (nics[end as usize], nics[end.other() as usize]);
                let tcp = self.halves[end as usize].endpoint.subflow_mut(subflow);
                if tcp.regards_path() {
                    let mut packet = Packet::new(src, dst, flow, 0);
                    packet.flags = Flags::NONE.with_if(end == End::Server, Flags::FROM_SERVER);
                    tcp.set_path(network.path(&packet).count() as u32 - 1);
                }
            }
        }
    }

    /// Returns the end that has written more: its windows are of interest.
    pub(super) fn busier_end(&self) -> &MptcpEndpoint {
        let [client, server] = &self.halves;
        let is_server = server.endpoint.written() >= client.endpoint.written();
        if is_server { &server.endpoint } else { &client.endpoint }
    }

    /// Returns whether nothing written is unacknowledged and nothing unread: the connection could be closed.
    fn is_idle(&self) -> bool {
        self.halves.iter().all(|half| half.messages.is_empty() && half.endpoint.is_idle())
    }

    /// Returns the record of the connection: what its application received, and the counters of all subflows.
    fn record(&self) -> outcome::ConnectionRecord {
        let mut record = outcome::ConnectionRecord {
            workload: self.workload,
            client: self.host(End::Client).0,
            server: self.host(End::Server).0,
            active: self.active,
            ..outcome::ConnectionRecord::default()
        };
        for half in &self.halves {
            record.delivered += half.endpoint.received();
            half.endpoint.subflows().for_each(|subflow| count(&mut record, subflow.counters()));
            record.retransmissions += half.endpoint.reinjections();
        }
        record
    }
}
