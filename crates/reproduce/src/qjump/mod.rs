//! QJump (NSDI 2015): Fig. 9, its ns-2 simulation of 144 hosts, and Fig. 11, the check of its bound.
//!
//! `source` is what its ns-2 scripts simulated; `standard` is the transport of the RFCs, and QJump as its
//! paper and its kernel module have it.

mod explain;
mod figures;
mod oracles;
mod summary;
mod text;

use crate::study::{Base, Study};

/// The study.
pub static QJUMP: Study = Study {
    id: "qjump",
    scenarios: SCENARIOS,
    scenario_text,
    figures: figures::figures,
    also: |_, _, _, _, _| Vec::new(),
    exact: oracles::rows,
    summary: summary::rows,
    unordered: &["oracles", "fig11", "claims", "growth", "cut"],
    other_seeds: 0,
    drawn: figures::drawn,
    tables: &[
        ("claims", "QJump's tail beside pFabric's"),
        ("growth", "How TCP grows with load"),
        ("cut", "Which flows the published curve is of"),
        ("oracles", "Exact values"),
    ],
    has_original: false,
    explanations: explain::EXPLANATIONS,
    open: explain::OPEN,
    head: text::HEAD,
    reading: text::READING,
    closing: text::CLOSING,
    orderings: text::ORDERINGS,
};

const SCENARIOS: &[(&str, &str)] = &[
    ("fig9.toml", include_str!("../../../../scenarios/qjump/fig9.toml")),
    ("fig9-standard.toml", include_str!("../../../../scenarios/qjump/fig9-standard.toml")),
    ("fig11.toml", include_str!("../../../../scenarios/qjump/fig11.toml")),
];

/// The text of a scenario; the standard base has files of its own.
fn scenario_text(name: &str, base: Base) -> String {
    let name = match base {
        Base::Source => name.to_owned(),
        Base::Standard => name.replace(".toml", "-standard.toml"),
    };
    let file = SCENARIOS.iter().find(|(file, _)| *file == name);
    file.expect("figures name files of the list above").1.to_owned()
}
