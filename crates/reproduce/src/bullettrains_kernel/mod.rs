//! BulletTrains' bursts (chapter 3 of the thesis) on this kernel: what TCP hands to a device at once, and what that
//! would be on a link of the thesis's rate.
//!
//! ```text
//! Arm ──> Run: Star (namespaces, veth, bridge), Flows (threads with sockets), Tap (AF_PACKET at h0) ──> Seen
//!           └── several rounds ──> segments, trains, ACK ratio, throughput ──> rows `kernel`
//! Simulated: the same figure of `studies/bullettrains` ──> rows `simulated`
//! ```
//!
//! A packet socket sees what is handed to a device before the device cuts it, so lengths of segments are exact. Times
//! between them are software's, so trains of segments are joined by a gap above what such times resolve.

mod arms;
#[cfg(target_os = "linux")]
mod bursts;
mod points;
#[cfg(target_os = "linux")]
mod run;
mod simulated;
mod tasks;
#[cfg(target_os = "linux")]
mod traffic;

pub(crate) use points::TASKS;
