//! Ultra Ethernet's transport as a sans-IO state machine: packet delivery contexts that send messages over many paths
//! at a time, within a sender's window, a receiver's credit, or both.
//!
//! ```text
//! write(bytes) ──> SendSide ── Nscc: window; CreditLine: credit; Entropy: a path ──> poll_transmit() ──> the network
//!                    ^  └─ lost: NACK, timeout ─ again, in the order of numbers                            │
//!                    └─ ACK: map of 64 packets, bytes arrived, mark ────────────┐                          │
//!                  ReceiveSide: packets in any order ──> Delivered; ACK, NACK ──┤ <────── on_segment() ────┘
//!                    └─ Grants <── PullPacer of the host ──> PULL ──────────────┘
//! ```
//!
//! A [`Pdc`] is one end. It needs no handshake: the first packet makes the other end (Ultra Ethernet 1.0, packet
//! delivery sublayer, RUD), and a message need not wait for one before it that has a gap. With `uet.ordered` it does,
//! and with `uet.paths.choice = "flow"` all packets take one path, as in ROD. Facts: the
//! specification's public descriptions, and the published simulator of the transport's working group (2025).
//!
//! Not modelled: the semantic sublayer's operations, the teardown of idle contexts, RUDI and UUD, and link-level retry
//! and credit.

mod config;
mod credit_line;
mod credit_rate;
mod nscc;
mod params;
mod pdc;
mod probes;
mod receiver;
mod sender;
mod wire;

pub use config::UetConfig;
pub use credit_rate::{ArrivedCounts, CreditRate, Oversubscription};
pub use params::{NsccParams, RcccParams, UetParams};
pub use pdc::Pdc;

use super::describe::{Carrier, Description, Family, Feature};

/// The properties of Ultra Ethernet's family.
pub const FAMILY: Family = Family {
    name: "Ultra Ethernet",
    setting: "transport.kind",
    one_thread: None,
    acknowledges: true,
    carrier: Carrier::Uet,
    excludes: &[
        (Feature::RestartOnWrite, "a packet delivery context has no window that begins anew"),
        (Feature::Segmentation, "a NIC with Ultra Ethernet cuts messages into packets itself"),
        (Feature::HostStack, "Ultra Ethernet is carried out by the NIC, behind the host's stack"),
        (Feature::Rank, "packets carry the choice of their path where a rank would be"),
        (Feature::Subflows, "subflows are TCP connections"),
        (Feature::HeldPackets, "Ultra Ethernet is sent and received by the NIC"),
        (Feature::Circuits, "a NIC that takes packets of contexts in turn has no queue by destination"),
    ],
    host_wide: &[],
};

/// The description of Ultra Ethernet with a sender's window.
pub const UET_NSCC: Description = description("uet-nscc");
/// The description of Ultra Ethernet with a receiver's credit.
pub const UET_RCCC: Description = description("uet-rccc");
/// The description of Ultra Ethernet with both.
pub const UET: Description = description("uet");

const fn description(name: &'static str) -> Description {
    Description {
        name,
        family: &FAMILY,
        kernel_name: None,
        delays_acks: false,
        needs_marks: true,
        needs_stamps: false,
    }
}
