//! Quantities as types: points in time, lengths of time, sizes and rates; and named random streams ([`Streams`]).
//!
//! Everything that orders events is an integer: time is counted in picoseconds, sizes in bytes, rates in bits per
//! second. One function turns bytes and a rate into a length of time ([`ByteTime::span`], which rounds up), so that two
//! parts of the program never disagree about when a packet has left.
//!
//! `parse` reads the text forms (`"10Gbps"`, `"1.5us"`, `"64KiB"`); for a missing or wrong unit it returns an error
//! that lists the allowed ones.

mod bytes;
mod decimal;
mod number;
mod parse;
mod percentile;
pub mod quantity;
mod rate;
mod serde_impl;
mod streams;
mod time;

pub use bytes::Bytes;
pub use number::{Whole, whole};
pub use parse::{ParseQuantityError, ParseShareError, parse_share};
pub use percentile::{PERCENTILES, ParsePercentileError, parse_percentile};
pub use rate::{ByteTime, Rate};
pub use streams::{Stream, Streams, mix64};
pub use time::{Span, Time};
