//! Captures, flow logs, metrics and topologies of a real network as a scenario.
//!
//! ```text
//! captures ──bursts::Reader──> frames ──> connections ──> exchanges, datagrams ──┐
//! flow logs ──a reader a format──> records ──> scaled, joined ──> flows ─────────┼──> ImportFound ──> replay: lists
//! metrics ──> rates by host and class ───────────────────────────────────────────┘         │  or model: distributions
//! topology spec or export ──> graph file or [topology] ────────────────────────────────────┴──> scenario, import.html
//! ```
//!
//! Everything flows to the right: a reader knows nothing of scenarios, and what writes a scenario knows only
//! [`ImportFound`].

#![forbid(unsafe_code)]

pub mod capture;
pub mod flows;
pub mod found;
mod invalid;
pub mod metrics;
pub mod out;
pub mod topology;

pub use found::{
    ClassTraffic, FoundExchange, FoundFlow, HostRates, ImportFound, Note, Remark, RequestStart, TrafficClass,
};
pub use invalid::Invalid;
