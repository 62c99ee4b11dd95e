//! [`Hosts`]: the transports of all hosts, and what lies between them and the NICs.

pub(crate) mod classes;
pub(crate) mod connection;
pub(crate) mod connection_pool;
pub(crate) mod connection_table;
pub(crate) mod demand;
pub(crate) mod messages;
pub(crate) mod multipath;
pub(crate) mod nic;
pub(crate) mod packet_lists;
pub(crate) mod receive_offload;
pub(crate) mod reorder;
pub(crate) mod stack;
pub(crate) mod tcp;
pub(crate) mod wire;

use std::collections::VecDeque;

use plimsoll_mechanisms::tcp::Config;

use crate::hosts::classes::Classes;
use crate::hosts::connection::End;
use crate::hosts::connection_pool::ConnectionPool;
use crate::hosts::connection_table::ConnectionTable;
use crate::hosts::demand::DemandReader;
use crate::hosts::multipath::Multipath;
use crate::hosts::receive_offload::ReceiveOffload;
use crate::hosts::reorder::ReorderBuffers;
use crate::hosts::stack::HostStacks;

/// The transports of all hosts.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// The parameters of every transport.
    pub(crate) transport: Config,
    /// By workload: the parameters that its connections are opened with, which differ in the congestion controller.
    pub(crate) opening: Vec<Config>,
    /// The connections by number.
    pub(crate) connections: ConnectionTable,
    /// The connections of MPTCP, where some workload has such.
    pub(crate) multipath: Option<Box<Multipath>>,
    /// The open connections of each pair of hosts, where they stay open between messages.
    pub(crate) pool: Option<Box<ConnectionPool>>,
    /// The receiving NICs, where they coalesce packets.
    pub(crate) receive_offload: Option<Box<ReceiveOffload>>,
    /// The reorder buffers behind the receiving NICs, where hosts have them.
    pub(crate) reorder_buffers: Option<Box<ReorderBuffers>>,
    /// What lies between applications, TCP and NICs, where that costs time or is limited. `classes` is there then, too.
    pub(crate) stacks: Option<Box<HostStacks>>,
    /// The priorities and limits of packets, where they differ.
    pub(crate) classes: Option<Box<Classes>>,
    /// What reads the demand of hosts, in a hybrid network.
    pub(crate) demand: Option<Box<DemandReader>>,
    /// By host: the ends that wait for room in its NIC queue, in the order of their turns. Empty without
    /// backpressure.
    pub(crate) waiting_for_room: Vec<VecDeque<(u32, End)>>,
    /// The ends that found no room in this turn, to be asked first in the next.
    pub(crate) found_no_room: Vec<(u32, End)>,
}
