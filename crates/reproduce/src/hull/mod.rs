//! What `studies/hull` computes beyond its figures.

mod association;
mod oracles;
mod summary;

pub(crate) use association::association;
pub(crate) use oracles::exact;
pub(crate) use summary::reductions;
