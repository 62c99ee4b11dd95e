//! MPTCP (RFC 8684) as a sans-IO state machine: one data sequence over several subflows, each of which is a TCP
//! connection of its own.
//!
//! ```text
//! write(bytes) ──> DataSender ──scheduler──> subflow 0: tcp::Endpoint ──> Transmit: segment, data ACK ──> path 0
//!                   ^ reinjection  │    └──> subflow 1: tcp::Endpoint ──> Transmit: segment, data ACK ──> path 1
//!                   │              └─ mapping: subflow offset ──> data offset
//!                   └─ data ACK <── on_segment() <── DataReceiver: in order of the data sequence ──> Delivered
//! ```
//!
//! * **A subflow sends as much as it can send now.** The scheduler hands it one segment at a time, which leaves at
//!   once or is taken back. So a subflow never holds data that another could send, and data leaves in the order of its
//!   sequence.
//! * **The receive window is shared** (RFC 8684, section 3.3.1): no more than `transport.max_window` is sent beyond the
//!   data ACK, over all subflows together. Applications read at once, so the window is filled only by data that waits
//!   for other data.
//! * **Reinjection** (section 3.3.6): data that a subflow had outstanding when its timer fired is sent on the others
//!   as well. Until it receives an ACK of new data, that subflow gets nothing more from the scheduler. It sends its own
//!   data again as every TCP connection must.
//! * **Subflow 0 opens the connection**, and the others join once it is established (sections 3.1 and 3.2). Keys,
//!   tokens, addresses and backup priorities are not modelled.
//!
//! # Departures from the RFC
//! * A segment may cover several mappings: a segment that is sent again after a timeout is cut anew.
//! * Not modelled: the data-level retransmission timer (receivers never drop data that a subflow has acknowledged),
//!   DATA_FIN, checksums, fallback to TCP, and opportunistic retransmission with penalties when the shared window is
//!   full.

mod config;
mod endpoint;
mod lia;
mod mapping;
mod params;
mod reassembly;
mod scheduler;
mod sender;

pub use config::MptcpConfig;
pub use endpoint::{MptcpDelivery, MptcpEndpoint, PathState, Transmit};
pub use lia::{Lia, lia_alpha};
pub use mapping::Mapping;
pub use params::{Coupling, MptcpParams, SubflowPaths, SubflowScheduler};

use super::describe::{Carrier, Family, Feature, HostWide};

/// The properties of the MPTCP family: one thread, and the features that it excludes.
pub const FAMILY: Family = Family {
    name: "MPTCP",
    setting: "transport.mptcp",
    one_thread: Some("the receiver of an MPTCP subflow reads the mappings that its sender keeps"),
    acknowledges: true,
    carrier: Carrier::Stack,
    excludes: &[
        (
            Feature::RestartOnWrite,
            "the scheduler writes segment by segment, so every segment would restart the window",
        ),
        (Feature::Segmentation, "segmentation offload of MPTCP is not modelled"),
        (Feature::HostStack, "the stack of a host that has MPTCP is not modelled"),
        (Feature::Rank, "a packet of MPTCP carries the data ACK where pFabric's queue has its rank"),
    ],
    host_wide: &[HostWide {
        key: "mptcp.subflows",
        reason: "Linux limits the subflows of all connections of a host (`ip mptcp limits`): one value for every \
                 transport with MPTCP",
    }],
};
