//! What `studies/qjump-kernel` computes beyond its figures.

mod parts;
mod ratios;

pub(crate) use ratios::summary;
