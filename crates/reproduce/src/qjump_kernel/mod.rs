//! QJump's testbed (NSDI 2015) at a hundredth of its rates, on this machine's kernel: measured beside published and
//! beside the simulator.
//!
//! Bytes are as published, rates a hundredth, times a hundred times as long. One scenario file for both: base `kernel`
//! carries it between network namespaces, `simulated` in the simulator.

mod explain;
mod figures;
mod ratios;
mod text;

use std::path::Path;

use crate::row::Row;
use crate::run::ReproduceError;
use crate::study::{Base, Study};

/// The study.
pub static QJUMP_KERNEL: Study = Study {
    id: "qjump-kernel",
    command: "qjump --on kernel",
    bases: [Base::Kernel, Base::Simulated],
    scenarios: SCENARIOS,
    scenario_text,
    figures: figures::figures,
    also: |_, _, _, _, _| Vec::new(),
    exact: nothing_exact,
    summary: ratios::rows,
    unordered: &["table1", "ratios", "claims"],
    other_seeds: 0,
    drawn: figures::drawn,
    tables: &[
        ("fig6-share", "Fig. 6: commits beside bursts, as a share of those without"),
        ("claims", "What the testbed is said to show"),
        ("ratios", "Figs. 3b and 3c: applications beside themselves alone"),
        ("fig7", "Fig. 7: schemes beside the applications alone"),
    ],
    has_original: false,
    explanations: explain::EXPLANATIONS,
    open: &[],
    head: text::HEAD,
    reading: text::READING,
    closing: text::CLOSING,
    orderings: text::ORDERINGS,
};

const SCENARIOS: &[(&str, &str)] = &[
    ("testbed.toml", include_str!("../../../../scenarios/qjump-kernel/testbed.toml")),
    ("table1.toml", include_str!("../../../../scenarios/qjump-kernel/table1.toml")),
    ("switch.toml", include_str!("../../../../scenarios/qjump-kernel/switch.toml")),
    ("apps.toml", include_str!("../../../../scenarios/qjump-kernel/apps.toml")),
    ("barrier.toml", include_str!("../../../../scenarios/qjump-kernel/barrier.toml")),
    ("commit.toml", include_str!("../../../../scenarios/qjump-kernel/commit.toml")),
];

/// Both bases have the same text: one body, two arms.
fn scenario_text(name: &str, _: Base) -> String {
    let file = SCENARIOS.iter().find(|(file, _)| *file == name);
    file.expect("figures name files of the list above").1.to_owned()
}

/// On a real kernel nothing is.
fn nothing_exact(_: u64, _: &Path) -> Result<Vec<Row>, ReproduceError> {
    Ok(Vec::new())
}

/// How many times as long everything takes here.
const TIMES: f64 = 100.0;
