//! Quantities as types: points in time, lengths of time, bytes and rates.
//!
//! Everything that orders events is an integer: time is counted in picoseconds, sizes in bytes,
//! rates in bits per second. One rule turns bytes and a rate into a length of time
//! ([`ByteTime::span`], rounding up), so that two parts of the program can never disagree about
//! when a packet has left.
//!
//! Text forms (`"10Gbps"`, `"1.5us"`, `"64KiB"`) are parsed by [`parse`]; a missing or wrong unit
//! is an error that lists the units allowed.
//!
//! [`text`] makes texts of others fit to be shown; it is here because everything that shows one is above.
//! [`csv`] reads tables, for the same reason.

mod bytes;
pub mod csv;
mod number;
mod parse;
mod rate;
mod serde_impl;
pub mod text;
mod time;

pub use bytes::Bytes;
pub use number::{Whole, whole};
pub use parse::{ParseQuantityError, ParseShareError, parse_share};
pub use rate::{ByteTime, Rate};
pub use time::{Span, Time};
