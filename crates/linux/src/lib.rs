//! The fabric between real hosts.
//!
//! ```text
//! host: program ─ kernel's TCP ─ TAP ──read──> frame::Header ──> Ingress (logged) ──> LiveFabric::on_frame
//!                                 ^                                                       │ ports, links, switches
//!                                 └────write── frame, marked <── Egress <── advance(now) ─┘ of crates/fabric
//! clock: virtual now = max(wall, end of the last step); sleep to the next event, spin the last microseconds
//! demand: sock_diag of each namespace ──Reading (logged)──> LiveFabric::on_socket_demand ──> circuits' controller
//! hold:  a host whose NIC is paused or full: its TAP is not read
//! turns: hosts that have sent take turns of 8 frames; frames that are due leave between any two of them
//! proof: replay(log) in simulated time gives the digest of the live run
//! ```

#![deny(unsafe_code)]

mod agents;
mod clock;
pub mod edge;
mod emulate;
mod failure;
mod features;
pub mod job_control;
mod net;
mod read_outs;
mod urgent;

pub use agents::programs::{Program, ProgramEnd};
pub use agents::shell::address;
pub use edge::capture::CaptureTo;
pub use edge::{frame, live};
pub use emulate::{EmulateError, Emulated, Options, check, emulate};
pub use features::{Feature, features, has_capability, has_congestion_control, lacks_programs, runs};
pub use net::congestion::NoCongestionControl;
pub use net::low_water::{clamp_window, set_low_water};
pub use net::multipath::{MultipathCounts, SUBFLOWS};
pub use net::namespaces::clean;
pub use net::packet_socket;
pub use net::qjump::ExcessPackets;
pub use net::star::{HOST_DEVICE, Star, StarSettings};
pub use read_outs::demand::Readings;
pub use read_outs::lateness::{Spread, rough};
pub use read_outs::sock_diag::{SendWindow, SockDiag, TcpSocket};
pub use read_outs::suspect::LATENESS_SHARE;
