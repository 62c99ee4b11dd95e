//! Latency breakdown of a running server's requests, from the device to the device, without a change of the server.
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
//! the server: software cannot observe the wire, the switches and the NIC's own work.

#![forbid(unsafe_code)]

#[cfg(all(target_os = "linux", feature = "kernel"))]
mod cost;
mod datagrams;
mod error;
mod event;
mod exchange;
#[cfg(target_os = "linux")]
mod locks;
mod matcher;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod overhead;
mod part;
#[cfg(target_os = "linux")]
pub mod privileges;
#[cfg(target_os = "linux")]
mod profile;
mod recorder;
mod report;
mod request;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod sampler;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod server;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod session;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod slices;
mod sorter;
#[cfg(target_os = "linux")]
mod symbols;
#[cfg(target_os = "linux")]
pub mod target;
mod threads;
#[cfg(all(target_os = "linux", feature = "kernel"))]
mod trace;
#[cfg(target_os = "linux")]
mod traced;

pub use error::Error;

pub use event::{Event, EventKind, Flow, Packet, Protocol, ThreadId};
#[cfg(target_os = "linux")]
pub use locks::{FutexSleeps, Locks, Sleep};
pub use matcher::Matcher;
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub use overhead::{Overhead, OverheadOptions, Turn};
pub use part::{Layer, PARTS, Part, PartSpan};
#[cfg(target_os = "linux")]
pub use profile::{CallStack, HERTZ, HotFunction, ProfileReport, SampledPlace};
pub use recorder::RequestRecorder;
pub use report::{LayerReport, PartReport, Quantiles, Report, SlowRequest, UnmatchedReport};
pub use request::{Reason, Request, Unmatched};
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub use sampler::ProcessorSampler;
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub use server::Server;
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub use session::Session;
pub use sorter::Sorter;
#[cfg(target_os = "linux")]
pub use symbols::{Symbol, Symbols};
#[cfg(target_os = "linux")]
pub use target::{ListeningPort, Target};
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub use trace::{Trace, TraceOptions};
#[cfg(target_os = "linux")]
pub use traced::{Cost, Rise, Traced};
