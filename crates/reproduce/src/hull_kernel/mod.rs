//! What `studies/hull-kernel` computes beyond its figures.

mod claims;
mod occupancy;

pub(crate) use claims::claims;
pub(crate) use occupancy::occupancy;
