//! What `studies/qjump-kernel` computes beyond its figures.

mod ratios;

pub(crate) use ratios::summary;
