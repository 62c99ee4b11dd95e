//! An OpenFlow learning-switch controller on Chronos, for OpenFlow 1.0 and 1.3.
//!
//! ```text
//! switch ── TCP ──> openflow   ──> Session ──────> partition of the datapath ──> Datapath ──> write ──> switch
//!                   messages       hello,          hash of its number            stations,
//!                                  features, echo                                verdict
//! ```
//!
//! After Chronos-OF (dissertation of R. Kapoor, sections 6.1.2 and 6.2.6). Connections are steered by the datapath's
//! number, which the features reply gives; the state of a switch is in one partition, and no two switches share
//! anything. Nothing here knows a socket: [`OpenFlow`] is a [`plimsoll_chronos::Service`].
//!
//! A switch learns as a bridge does (802.1Q, section 8.7): a sender is behind the port that its packet arrived by. For
//! a known receiver a flow is put into the switch, for port, VLAN and both addresses, so that a station that sends to a
//! new receiver, or from another port, is still learned.

mod addresses;
mod datapath;
mod message;
mod service;
mod session;

pub use addresses::{Addresses, Learned, Limits};
pub use datapath::{Datapath, Decision, Verdict};
pub use plimsoll_openflow::{
    ErrorCode, Ethernet, Features, FlowChange, HEADER_BYTES, Header, Match, NO_BUFFER, Output, PacketIn,
    PortStatus, Version, Versions, Writer, kind,
};
pub use service::{Datapaths, OpenFlow, OpenFlowSettings, Request};
pub use session::{DatapathEvent, Outcome, Peer, Session};
