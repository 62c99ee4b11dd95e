//! What `studies/hull` computes beyond its figures.

mod association;
mod oracles;

pub(crate) use association::association;
pub(crate) use oracles::exact;
