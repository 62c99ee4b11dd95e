//! The Mininet experiment with HULL (seed 001), on this machine's kernel: measured beside published and beside the
//! simulator.
//!
//! One scenario file for both: base `kernel` carries it between network namespaces, `simulated` in the simulator.

mod claims;
mod explain;
mod figures;
mod text;

use crate::study::Study;

/// The study.
pub static HULL_KERNEL: Study = Study {
    id: "hull-kernel",
    command: "hull --on kernel",
    scenarios: SCENARIOS,
    figures: figures::figures,
    also: figures::occupancy,
    summary: claims::rows,
    unordered: &["occupancy", "claims"],
    drawn: figures::drawn,
    tables: &[("claims", "What the students say in words")],
    explanations: explain::EXPLANATIONS,
    head: text::HEAD,
    reading: text::READING,
    closing: text::CLOSING,
    ..Study::ON_KERNEL
};

const SCENARIOS: &[(&str, &str)] =
    &[("star.toml", include_str!("../../../../scenarios/hull-kernel/star.toml"))];

/// A full frame on the wire, as the scenario has it: 1448 B of payload, 52 B of TCP and IP, 14 B of Ethernet.
const FRAME_BYTES: u64 = 1_514;
