//! Tests of captures that are made here, byte by byte.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bursts;
mod damage;
mod formats;
mod layers;
mod made;
mod tcp;
