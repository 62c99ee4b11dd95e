//! NDP as a sans-IO state machine: a first window at once, and behind it a packet for each pull of the receiver, over
//! many paths at a time and switches that trim (Handley et al., SIGCOMM 2017).
//!
//! ```text
//! write(bytes) ──> SendSide ── first window; pulls ── Entropy: a path ──> poll_transmit() ──> the network
//!                    ^  └─ lost: NACK, bounce, timeout ─ again, before new data                   │
//!                    └─ ACK or NACK of each packet, at once; pulls: a count ──┐                   │
//!                  ReceiveSide: packets in any order, or their headers ───────┴─ <─ on_segment() ─┘
//!                    └─ a pull for each packet <── PullPacer of the host ──> PULL, or within the ACK or NACK
//! ```
//!
//! An [`NdpEnd`] is one end of a connection. It needs no handshake. Pulls are counted from the beginning on, so that
//! one that was lost or overtaken is made good by the next.
//!
//! Beside the paper there is a timeout, as headers and pulls may be lost, and a connection carries several messages: it
//! begins with a first window again whenever the receiver has all that was sent. Facts: the paper, and its simulator.
//! Not modelled: retransmissions ahead of other connections' new data in a NIC, which takes connections in turn.

mod config;
mod end;
mod params;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
mod wire;

pub use config::NdpConfig;
pub use end::NdpEnd;
pub use params::{NdpParams, NdpPaths, RepeatOrder};

use super::describe::{Carrier, Description, Family, Feature};

/// The properties of NDP's family.
pub const FAMILY: Family = Family {
    name: "NDP",
    setting: "transport.kind",
    one_thread: None,
    acknowledges: true,
    carrier: Carrier::Ndp,
    excludes: &[
        (Feature::RestartOnWrite, "NDP has no window behind the first one"),
        (Feature::Segmentation, "a NIC with NDP cuts messages into packets itself"),
        (Feature::HostStack, "NDP is carried out by the NIC, behind the host's stack"),
        (Feature::Rank, "packets carry the choice of their path where a rank would be"),
        (Feature::Subflows, "subflows are TCP connections"),
        (Feature::HeldPackets, "NDP is sent and received by the NIC"),
        (Feature::Circuits, "a NIC that takes packets of connections in turn has no queue by destination"),
    ],
    host_wide: &[],
};

/// NDP as `transport.kind = "ndp"`: trimmed headers tell it of losses, so it needs no marks.
pub const NDP: Description = Description {
    name: "ndp",
    family: &FAMILY,
    kernel_name: None,
    delays_acks: false,
    needs_marks: false,
    needs_stamps: false,
};
