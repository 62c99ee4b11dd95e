//! Where the time of a running server's requests goes, from the device to the device, without a change of the server.
//!
//! ```text
//! kernel's tracepoints ──records──> Event ──Sorter──> Matcher ──> Request: adjacent spans ──> Recorder ──> Report
//!    (crate bpf)                                         │
//!                                                        └── Unmatched: counted, with the reason
//!
//! device      socket     thread woken  on a processor  has read it        sends it     device
//!   |- receive -|- wake-up -|- run queue -|- read calls -|- application -|- send path -|
//! ```
//!
//! The parts of every request add up to its latency in whole nanoseconds, which is asserted. This is the latency inside
//! the server: the wire, the switches and the NIC's own work are outside of what software can see.

#![forbid(unsafe_code)]

mod event;
mod exchange;
mod matcher;
mod part;
mod request;
mod sorter;
mod threads;

pub use event::{Event, Flow, Kind, Packet, Protocol, Thread};
pub use matcher::Matcher;
pub use part::{Layer, PARTS, Part, Span};
pub use request::{Reason, Request, Unmatched};
pub use sorter::Sorter;
