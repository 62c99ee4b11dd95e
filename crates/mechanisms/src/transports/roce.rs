//! RoCEv2 as a sans-IO state machine: queue pairs that send messages in order, at the rate that a controller sets.
//!
//! ```text
//! write(bytes) ──> RequestSide ── one packet each size / rate, within the window ──> poll_transmit() ──> the network
//!                    ^     ^ rate, window: Controller (DCQCN, HPCC)                                        │
//!                    │     └─ ACK, CNP, stamps ──────────────────────────────────┐                         │
//!                    └─ NAK, timeout: again from there (go-back-N), or what is   │                         │
//!                       missing (Repeats)                                        │                         │
//!                  ResponseSide: in order ──> Delivered; ACK, NAK, CNP ──> back ─┘ <────── on_segment() ───┘
//!
//! read(bytes) ───> ReadSide ── READ request ──> the other end's RequestSide, which may then send one message more
//! ```
//!
//! A [`QueuePair`] is one end: it sends messages, and acknowledges those of the other end. Packets are numbered by
//! stream offsets, as TCP's, and end where a message does. Facts: the DCQCN paper (Zhu et al., SIGCOMM 2015), HPCC
//! (Li et al., SIGCOMM 2019) with its released simulator, IRN (Mittal et al., SIGCOMM 2018), and the parameters of
//! NVIDIA's NICs.
//!
//! A connection needs no handshake: queue pairs are set up before. A timeout always runs while packets are
//! outstanding, and what arrives twice is acknowledged, so that a lost last packet or acknowledgement ends no flow.
//! Not modelled: atomic operations, the limit of outstanding WRITEs and SENDs, and retries that end in an error.

mod config;
pub mod controller;
mod params;
mod queue_pair;
mod rate_control;
#[cfg(test)]
mod read_tests;
mod reads;
mod repeats;
mod requests;
mod responses;
#[cfg(test)]
mod selective_tests;
mod send_times;

pub use config::RoceConfig;
pub use params::{NicParams, RoceOperation, RoceParams, RoceRepair, RoceWindow, SelectiveParams};
pub use queue_pair::QueuePair;
pub use rate_control::{RateController, RoceAck, RoceController};

use super::describe::{Carrier, Family, Feature};

/// The properties of the RoCE family.
pub const FAMILY: Family = Family {
    name: "RoCE",
    setting: "transport.kind",
    one_thread: None,
    acknowledges: true,
    carrier: Carrier::Roce,
    excludes: &[
        (Feature::RestartOnWrite, "a queue pair has no window that begins anew"),
        (Feature::Segmentation, "a NIC with RoCE cuts messages into packets itself"),
        (Feature::HostStack, "RoCE is carried out by the NIC, behind the host's stack"),
        (Feature::Subflows, "subflows are TCP connections"),
        (Feature::HeldPackets, "RoCE is sent and received by the NIC, which paces queue pairs itself"),
        (Feature::Circuits, "a NIC that takes packets of queue pairs in turn has no queue by destination"),
    ],
    host_wide: &[],
};
