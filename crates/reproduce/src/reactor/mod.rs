//! What `studies/reactor` computes beyond its figures.

mod claims;
mod closed_loop;

pub(crate) use claims::claims;
