//! What the fuzz targets share: a fuzzer's bytes as [turns](turns::turns) of several connections, and [`play`], which
//! serves them in each of the [`Way`]s that must come to the same answers.
//!
//! ```text
//! bytes ──turns──> connection, pass of time, what it sends ──play──> Direct, whole
//!                                                              ├───> Direct, in pieces
//!                                                              └───> Crossed: each request written down and read again
//! ```

#![forbid(unsafe_code)]

mod crossed;
mod play;
pub mod turns;

pub use crossed::Crossed;
pub use play::{Answers, Way, play};
