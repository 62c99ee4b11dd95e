//! Names that moved to `plimsoll-fabric`, and the draws that workloads have in common.

#![forbid(unsafe_code)]

mod draw;

pub use draw::{stretched, uniform_choice};
pub use plimsoll_fabric::Unbuildable;
pub use plimsoll_fabric::net::ideal_time;
