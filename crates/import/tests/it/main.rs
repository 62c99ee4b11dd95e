//! Tests imports: captures that are made here, packet by packet, and files of flow logs, metrics and topologies.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bounds;
mod flow_formats;
mod found_text;
mod made;
mod messages;
mod metrics;
mod oracle;
mod topologies;
mod written;
