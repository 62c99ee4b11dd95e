//! DeTail's experiment on 16 real hosts (SIGCOMM 2012, the talk's Click implementation), on this machine's kernel:
//! measured beside what the talk says and beside the simulator.
//!
//! One scenario file for both: base `kernel` carries it between network namespaces, `simulated` in the simulator.

mod claims;
mod explain;
mod figures;
mod text;

use std::path::Path;

use crate::row::Row;
use crate::run::ReproduceError;
use crate::study::{Base, Study};

/// The study.
pub static DETAIL_KERNEL: Study = Study {
    id: "detail-kernel",
    command: "detail --on kernel",
    bases: [Base::Kernel, Base::Simulated],
    scenarios: SCENARIOS,
    scenario_text,
    figures: figures::figures,
    also: figures::by_size,
    exact: nothing_exact,
    summary: claims::rows,
    unordered: &["claims"],
    other_seeds: 0,
    drawn: figures::drawn,
    tables: &[("claims", "What the talk says")],
    has_original: false,
    explanations: explain::EXPLANATIONS,
    open: &[],
    head: text::HEAD,
    reading: text::READING,
    closing: text::CLOSING,
    orderings: "",
};

const SCENARIOS: &[(&str, &str)] =
    &[("pages.toml", include_str!("../../../../scenarios/detail-kernel/pages.toml"))];

/// Both bases have the same text: one body, two arms.
fn scenario_text(_: &str, _: Base) -> String {
    SCENARIOS[0].1.to_owned()
}

/// On a real kernel nothing is.
fn nothing_exact(_: u64, _: &Path) -> Result<Vec<Row>, ReproduceError> {
    Ok(Vec::new())
}
