//! The Mininet experiment with HULL (seed 001), on this machine's kernel: measured beside published and beside the
//! simulator.
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
pub static HULL_KERNEL: Study = Study {
    id: "hull-kernel",
    command: "hull --on kernel",
    bases: [Base::Kernel, Base::Simulated],
    scenarios: SCENARIOS,
    scenario_text,
    figures: figures::figures,
    also: figures::occupancy,
    exact: nothing_exact,
    summary: claims::rows,
    unordered: &["occupancy", "claims"],
    other_seeds: 0,
    drawn: figures::drawn,
    tables: &[("claims", "What the students say in words")],
    has_original: false,
    explanations: explain::EXPLANATIONS,
    open: &[],
    head: text::HEAD,
    reading: text::READING,
    closing: text::CLOSING,
    orderings: "",
};

const SCENARIOS: &[(&str, &str)] =
    &[("star.toml", include_str!("../../../../scenarios/hull-kernel/star.toml"))];

/// Both bases have the same text: one body, two arms.
fn scenario_text(_: &str, _: Base) -> String {
    SCENARIOS[0].1.to_owned()
}

/// On a real kernel nothing is.
fn nothing_exact(_: u64, _: &Path) -> Result<Vec<Row>, ReproduceError> {
    Ok(Vec::new())
}

/// A full frame on the wire, as the scenario has it: 1448 B of payload, 52 B of TCP and IP, 14 B of Ethernet.
const FRAME_BYTES: u64 = 1_514;
