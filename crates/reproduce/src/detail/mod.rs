//! What `studies/detail` computes beyond its figures.

mod claims;
mod oracles;

pub(crate) use claims::claims;
pub(crate) use oracles::theory;
