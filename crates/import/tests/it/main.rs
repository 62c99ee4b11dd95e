//! Tests imports on captures that are made here, packet by packet.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bounds;
mod made;
mod messages;
mod written;
