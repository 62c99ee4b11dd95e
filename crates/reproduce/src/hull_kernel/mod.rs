//! What `studies/hull-kernel` computes beyond its figures.

mod occupancy;

pub(crate) use occupancy::occupancy;
