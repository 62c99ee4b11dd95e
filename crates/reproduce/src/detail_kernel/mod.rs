//! DeTail's experiment on 16 real hosts (SIGCOMM 2012, the talk's Click implementation), on this machine's kernel:
//! measured beside what the talk says and beside the simulator.
//!
//! One scenario file for both: base `kernel` carries it between network namespaces, `simulated` in the simulator.

mod claims;
mod explain;
mod figures;
mod text;

use crate::study::Study;

/// The study.
pub static DETAIL_KERNEL: Study = Study {
    id: "detail-kernel",
    command: "detail --on kernel",
    scenarios: SCENARIOS,
    figures: figures::figures,
    also: figures::by_size,
    summary: claims::rows,
    drawn: figures::drawn,
    tables: &[("claims", "What the talk says")],
    explanations: explain::EXPLANATIONS,
    head: text::HEAD,
    reading: text::READING,
    closing: text::CLOSING,
    ..Study::ON_KERNEL
};

const SCENARIOS: &[(&str, &str)] =
    &[("pages.toml", include_str!("../../../../scenarios/detail-kernel/pages.toml"))];
