//! The text protocol: a line, and for stores a value of as many bytes as the line says.
//!
//! Words and answers are memcached's (`doc/protocol.txt`, and where that leaves a case open, memcached 1.6.18 itself).

mod administration;
mod commands;
pub mod dump;
pub mod dump_cursor;
mod execute;
mod login;
pub(crate) mod words;

pub use administration::merge_report;
pub use commands::{glance, parse};
pub use execute::{answer_get, execute};
pub use login::login;

/// The length of the longest key in bytes.
pub const KEY_BYTES_MAX: usize = 250;
