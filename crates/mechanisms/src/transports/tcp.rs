//! TCP as a sans-IO state machine: time and segments come in, segments and one deadline come out.
//!
//! ```text
//! write(bytes) ──> Sender ──────────────> poll_transmit() ──> Segment ──> the network
//!                   │  ^  window: Controller (Reno, CUBIC, DCTCP)               │
//!                   │  └─ ACK, ECE, SACK <── recovery (Reno, NewReno, SACK) <── on_segment()
//!   deadline() <── Rto, delayed ACK <── Receiver: in order ──> Delivered        │
//!   on_deadline()                          └─ out of order, CE ──> ACK, SACK, ECE
//! ```
//!
//! An [`Endpoint`] is one end of a connection, and both a sender and a receiver. All of its methods
//! take the [`Config`] that the connection's ends share, so that an endpoint holds state only. Sequence
//! numbers are 64-bit offsets into the byte stream, which starts at 0; SYN takes no sequence number.
//!
//! Where RFC and ns-2 differ, a key of [`TransportParams`] selects the rule; the defaults are the RFC's. Not modelled:
//! closing (FIN; a connection that is done is dropped when it is idle), the advertised window (`max_window` takes its
//! place), resets, urgent data, path MTU discovery, and reneging on SACK.

mod config;
mod congestion;
pub mod controller;
mod endpoint;
mod params;
mod ranges;
mod receiver;
mod recovery;
mod rto;
mod scoreboard;
mod segment;
mod sender;

pub use config::TcpConfig;
pub use congestion::{Ack, Cause, CongestionControl, Cut, Limits, MakeController, SubflowWindow, Window};
pub use controller::Controller;
pub use endpoint::{Counters, Delivered, Endpoint, WindowState};
pub use params::{
    BackoffReset, Connections, CutBase, EceGrowth, EcnMode, FastRetransmitGuard, Growth, LossAfterEcn,
    Recovery, RttError, RttSampling, TransportParams, WindowUnit,
};
pub(crate) use ranges::Ranges;
pub use segment::{EcnField, Flags, SackBlocks, TcpSegment};
pub use sender::Offer;

pub use super::Kind;
use super::describe::{Carrier, Family, HostWide};

/// The properties of the TCP family: several threads, and no excluded feature.
pub const FAMILY: Family = Family {
    name: "TCP",
    setting: "transport.kind",
    one_thread: None,
    acknowledges: true,
    carrier: Carrier::Stack,
    excludes: &[],
    host_wide: &[
        HostWide {
            key: "recovery",
            reason: "Linux acknowledges selectively on all connections of a host (net.ipv4.tcp_sack): `sack` in every \
                     transport, or in none",
        },
        HostWide {
            key: "dup_ack_threshold",
            reason: "Linux counts duplicate acknowledgements alike on all connections of a host \
                     (net.ipv4.tcp_reordering): one value for every transport",
        },
        HostWide {
            key: "header",
            reason: "Linux sends timestamps on all connections of a host (net.ipv4.tcp_timestamps): 52 B or more in \
                     every transport, or less in all",
        },
    ],
};
