//! What `studies/qjump` computes beyond its figures.

mod oracles;
mod summary;

pub(crate) use oracles::theory;
pub(crate) use summary::rows as summary;

/// The schemes of Fig. 9, in the order of its legend.
const SCHEMES: &[&str] = &["TCP", "DCTCP", "pFabric", "QJump"];
