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

mod agent;
mod capture;
mod cgroups;
mod clock;
mod congestion;
mod control;
mod demand;
pub mod edge;
mod emulate;
mod failure;
mod features;
pub mod frame;
pub mod job_control;
mod lateness;
pub mod live;
mod low_water;
mod machine;
mod multipath;
mod namespaces;
mod offloads;
pub mod packet_socket;
mod programs;
mod qjump;
mod series;
mod shell;
mod sock_diag;
mod star;
mod suspect;
mod tap;
mod taps;
mod urgent;

pub use capture::CaptureTo;
pub use congestion::NoCongestionControl;
pub use demand::Readings;
pub use emulate::{EmulateError, Emulated, Options, check, emulate};
pub use features::{Feature, features, has_capability, has_congestion_control, lacks_programs, runs};
pub use lateness::{Spread, rough};
pub use low_water::{clamp_window, set_low_water};
pub use multipath::{MultipathCounts, SUBFLOWS};
pub use namespaces::clean;
pub use programs::{Program, ProgramEnd};
pub use qjump::Excess;
pub use shell::address;
pub use star::{HOST_DEVICE, Star, StarSettings};
pub use suspect::LATENESS_SHARE;
