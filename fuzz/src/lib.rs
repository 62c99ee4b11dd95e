//! Shared parts of the fuzz targets: a fuzzer's bytes as [turns](turns::turns) of several connections, and [`play`],
//! which serves them in each of the [`Way`]s, whose answers must be the same.
//!
//! ```text
//! bytes ──turns──> connection, pass of time, sent bytes ─────play──> Direct, whole
//!                                                              ├───> Direct, in pieces
//!                                                              └───> Crossed: each request written down and read again
//! ```

#![forbid(unsafe_code)]

mod crossed;
mod play;
pub mod turns;

pub use crossed::Crossed;
pub use play::{Answers, Way, play};
