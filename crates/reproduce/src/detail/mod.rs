//! DeTail (SIGCOMM 2012): page creation, what each part of the stack does alone, a degraded link, long background
//! flows, and what its talk leaves open.
//!
//! `source` is what the talk says, with a choice where it says nothing; `standard` is the transport of the RFCs.

mod claims;
mod explain;
mod figures;
mod oracles;
mod text;

pub(crate) use figures::talk;

use crate::study::{Base, Study};

/// The study.
pub static DETAIL: Study = Study {
    id: "detail",
    command: "detail",
    bases: [Base::Source, Base::Standard],
    scenarios: SCENARIOS,
    scenario_text: Some(scenario_text),
    figures: figures::figures,
    also: figures::by_size,
    exact: oracles::rows,
    summary: claims::rows,
    unordered: &["oracles", "claims"],
    other_seeds: 0,
    drawn: figures::drawn,
    tables: &[("claims", "What the talk says"), ("oracles", "Exact values")],
    has_original: false,
    explanations: explain::EXPLANATIONS,
    open: &[],
    head: text::HEAD,
    reading: text::READING,
    closing: text::CLOSING,
    orderings: "",
};

const SCENARIOS: &[(&str, &str)] = &[
    ("arms.toml", include_str!("../../../../scenarios/detail/arms.toml")),
    ("pages.toml", include_str!("../../../../scenarios/detail/pages.toml")),
    ("pages-standard.toml", include_str!("../../../../scenarios/detail/pages-standard.toml")),
    ("motivation.toml", include_str!("../../../../scenarios/detail/motivation.toml")),
    ("rtt-uniform.csv", include_str!("../../../../scenarios/detail/rtt-uniform.csv")),
    ("rtt-log-uniform.csv", include_str!("../../../../scenarios/detail/rtt-log-uniform.csv")),
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
