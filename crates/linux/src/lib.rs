//! The fabric between real hosts.
//!
//! ```text
//! host: program ─ kernel's TCP ─ TAP ──read──> frame::Header ──> Ingress (logged) ──> LiveFabric::on_frame
//!                                 ^                                                       │ ports, links, switches
//!                                 └────write── frame, marked <── Egress <── advance(now) ─┘ of crates/fabric
//! clock: virtual now = max(wall, what is done); sleep to the next event, spin the last microseconds
//! hold:  a host whose NIC is paused or full: its TAP is not read
//! proof: replay(log) in simulated time gives the digest of the live run
//! ```

#![deny(unsafe_code)]

mod agent;
mod congestion;
mod edge;
mod emulate;
mod features;
pub mod frame;
mod lateness;
pub mod live;
mod namespaces;
mod tap;

pub use congestion::NoCongestionControl;
pub use emulate::{EmulateError, Emulated, LATENESS_SHARE, Options, check, emulate};
pub use features::{Feature, features};
pub use lateness::Spread;
pub use namespaces::clean;
