//! Homa as sans-IO state machines: messages whose first round trip of bytes leaves at once, and whose receiver grants
//! the rest, with the switch priority of every packet (Montazeri et al., SIGCOMM 2018).
//!
//! ```text
//! write(bytes) ──> SendSide ── unscheduled, granted ──> SenderQueue of the host: fewest bytes left first ──> the NIC
//!                    ^  └─ RESEND: again what is missing; a probe where nothing was heard
//!                    └─ GRANT: offset, priority ─────────────────────┐
//!                  ReceiveSide: packets in any order ──> Delivered   │
//!                    └─ bytes left to grant ──> GrantScheduler of the host: one message a sender, slots
//! ```
//!
//! A [`HomaEnd`] is one end of a connection, whose messages leave one after the other: with `connections =
//! "per-message"` every message competes by itself, as in Homa. [`SenderQueue`] and [`GrantScheduler`] are shared by
//! all ends of a host. Switches need strict priorities alone.
//!
//! The authors' simulator (PlatformLab/HomaSimulation) loses no packet and repairs none: so does `homa.repair = false`.
//! With it a receiver that misses granted bytes and hears nothing for `homa.resend_after` asks for the first missing
//! range (RESEND), as the Linux module does (PlatformLab/HomaModule), and acknowledges a whole message. A sender that
//! hears nothing for as long sends a probe, which takes the place of the module's NEED_ACK: a receiver that has the
//! message acknowledges it again, and one that has none of it asks for it.
//!
//! Not modelled: remote procedure calls (a message stands alone), the module's BUSY, abort and grants to the oldest
//! message, and the rule for incasts of the paper's section 3.6.

mod config;
mod cutoffs;
mod end;
mod params;
mod receiver;
mod scheduler;
mod sender;
mod sender_queue;
mod wire;

pub use config::HomaConfig;
pub use cutoffs::{WorkloadShares, cutoffs, workload_shares};
pub use end::HomaEnd;
pub use params::HomaParams;
pub use scheduler::GrantScheduler;
pub use sender_queue::SenderQueue;

use super::describe::{Carrier, Description, Family, Feature};

/// The properties of Homa's family.
pub const FAMILY: Family = Family {
    name: "Homa",
    setting: "transport.kind",
    one_thread: None,
    acknowledges: true,
    carrier: Carrier::Homa,
    excludes: &[
        (Feature::RestartOnWrite, "Homa has no window that begins anew"),
        (Feature::Segmentation, "Homa cuts messages into packets itself, each with a priority of its own"),
        (
            Feature::HostStack,
            "Homa chooses the next packet of a host when its NIC is free, behind the host's stack",
        ),
        (Feature::Rank, "packets of Homa have priorities, and no rank"),
        (Feature::Subflows, "subflows are TCP connections"),
        (Feature::HeldPackets, "a host's packets of Homa leave in the order of their messages' bytes"),
        (Feature::Circuits, "a NIC that takes packets of messages in turn has no queue by destination"),
    ],
    host_wide: &[],
};

/// Homa as `transport.kind = "homa"`: priorities and grants are enough, so it needs no marks.
pub const HOMA: Description = Description {
    name: "homa",
    family: &FAMILY,
    kernel_name: None,
    delays_acks: false,
    needs_marks: false,
    needs_stamps: false,
};
