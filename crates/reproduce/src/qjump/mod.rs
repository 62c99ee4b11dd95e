//! What `studies/qjump` computes beyond its figures.

mod oracles;
mod ratios;
mod summary;

pub(crate) use oracles::theory;

use crate::row::Row;
use crate::study::Study;

/// Computes what the rows say together: of Fig. 9, and of the testbed.
pub(crate) fn summary(study: &Study, rows: &[Row]) -> Vec<Row> {
    [summary::rows(study, rows), ratios::rows(study, rows)].concat()
}

/// The schemes of Fig. 9, in the order of its legend.
const SCHEMES: &[&str] = &["TCP", "DCTCP", "pFabric", "QJump"];
