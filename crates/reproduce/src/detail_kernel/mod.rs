//! What `studies/detail-kernel` computes beyond its figures.

mod claims;

pub(crate) use claims::claims;
