//! Tests of imports from files, in one program.
#![allow(clippy::unwrap_used, reason = "tests")]

mod flow_formats;
mod found_text;
mod metrics;
mod oracle;
mod topologies;
