//! What `studies/reactor` computes beyond its figures.

mod claims;

pub(crate) use claims::claims;
