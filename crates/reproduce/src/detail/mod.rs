//! What `studies/detail` computes beyond its figures.

mod oracles;

pub(crate) use oracles::theory;
