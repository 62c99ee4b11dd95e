//! QJump (NSDI 2015): its testbed, Fig. 9, its ns-2 simulation of 144 hosts, and Fig. 11, the check of its bound.
//!
//! `source` is what its ns-2 scripts simulated; `standard` is the transport of the RFCs, and QJump as its
//! paper and its kernel module have it.

mod distributions;
mod explain;
mod figures;
mod oracles;
mod ratios;
mod summary;
mod testbed;
mod text;

pub(crate) use ratios::published_share;
pub(crate) use testbed::WRED;

use crate::study::{Base, Study};

/// The study.
pub static QJUMP: Study = Study {
    id: "qjump",
    command: "qjump",
    bases: [Base::Source, Base::Standard],
    scenarios: SCENARIOS,
    scenario_text: Some(scenario_text),
    figures: figures::figures,
    also: distributions::rows,
    exact: oracles::rows,
    summary: |rows| [summary::rows(rows), ratios::rows(rows)].concat(),
    unordered: &[
        "oracles",
        "switch-model",
        "fig11",
        "claims",
        "claims-testbed",
        "growth",
        "cut",
        "table1",
        "ratios",
    ],
    other_seeds: 0,
    drawn: figures::drawn,
    tables: &[
        ("fig7", "Fig. 7: schemes beside the applications alone"),
        ("ratios", "Applications beside themselves alone"),
        ("fig6-share", "Fig. 6 beside itself without bursts"),
        ("claims-testbed", "What the testbed is said to show"),
        ("switch-model", "How exact the model of a switch is"),
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
    ("testbed.toml", include_str!("../../../../scenarios/qjump/testbed.toml")),
    ("table1.toml", include_str!("../../../../scenarios/qjump/table1.toml")),
    ("switch.toml", include_str!("../../../../scenarios/qjump/switch.toml")),
    ("apps.toml", include_str!("../../../../scenarios/qjump/apps.toml")),
    ("barrier.toml", include_str!("../../../../scenarios/qjump/barrier.toml")),
    ("commit.toml", include_str!("../../../../scenarios/qjump/commit.toml")),
    ("memcached.toml", include_str!("../../../../scenarios/qjump/memcached.toml")),
    ("burst.toml", include_str!("../../../../scenarios/qjump/burst.toml")),
];

/// The text of a scenario; the standard base has files of its own.
fn scenario_text(name: &str, base: Base) -> String {
    let name = match base {
        Base::Standard => name.replace(".toml", "-standard.toml"),
        _ => name.to_owned(),
    };
    let file = SCENARIOS.iter().find(|(file, _)| *file == name);
    file.expect("figures name files of the list above").1.to_owned()
}
