//! QJump's testbed (NSDI 2015) at a hundredth of its rates, on this machine's kernel: measured beside published and
//! beside the simulator.
//!
//! Bytes are as published, rates a hundredth, times a hundred times as long. One scenario file for both: base `kernel`
//! carries it between network namespaces, `simulated` in the simulator.

mod explain;
mod figures;
mod ratios;
mod text;

use crate::study::Study;

/// The study.
pub static QJUMP_KERNEL: Study = Study {
    id: "qjump-kernel",
    command: "qjump --on kernel",
    scenarios: SCENARIOS,
    figures: figures::figures,
    summary: ratios::rows,
    unordered: &["table1", "ratios", "claims"],
    drawn: figures::drawn,
    tables: &[
        ("fig6-share", "Fig. 6: commits beside bursts, as a share of those without"),
        ("claims", "What the testbed is said to show"),
        ("ratios", "Figs. 3b and 3c: applications beside themselves alone"),
        ("fig7", "Fig. 7: schemes beside the applications alone"),
    ],
    explanations: explain::EXPLANATIONS,
    head: text::HEAD,
    reading: text::READING,
    closing: text::CLOSING,
    orderings: text::ORDERINGS,
    ..Study::ON_KERNEL
};

const SCENARIOS: &[(&str, &str)] = &[
    ("testbed.toml", include_str!("../../../../scenarios/qjump-kernel/testbed.toml")),
    ("table1.toml", include_str!("../../../../scenarios/qjump-kernel/table1.toml")),
    ("switch.toml", include_str!("../../../../scenarios/qjump-kernel/switch.toml")),
    ("apps.toml", include_str!("../../../../scenarios/qjump-kernel/apps.toml")),
    ("barrier.toml", include_str!("../../../../scenarios/qjump-kernel/barrier.toml")),
    ("commit.toml", include_str!("../../../../scenarios/qjump-kernel/commit.toml")),
];

/// How many times as long everything takes here.
const TIMES: f64 = 100.0;
