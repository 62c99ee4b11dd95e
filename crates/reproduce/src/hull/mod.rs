//! The HULL semester project: every experiment of its evaluation.
//!
//! Two bases. `source` sets what the study's ns-2 scripts set and is held to the published values;
//! `standard` follows the RFCs and the paper and is printed beside it.

mod association;
mod explain;
mod figures;
mod oracles;
mod summary;
mod text;

use crate::study::{Base, Study};

/// The study.
pub static HULL: Study = Study {
    id: "hull",
    command: "hull",
    bases: [Base::Source, Base::Standard],
    scenarios: SCENARIOS,
    scenario_text: Some(scenario_text),
    figures: figures::figures,
    also: association::rows,
    exact: oracles::rows,
    summary: summary::rows,
    unordered: &["summary", "sensitivity", "association"],
    other_seeds: 8,
    drawn: figures::drawn,
    tables: &[
        ("oracles", "Exact values"),
        ("association", "Whom the pacer paces"),
        ("summary", "The study's headline percentages"),
    ],
    has_original: true,
    explanations: explain::EXPLANATIONS,
    open: explain::OPEN,
    head: text::HEAD,
    reading: text::READING,
    closing: text::DIFFERENCE,
    orderings: text::ORDERINGS,
};

/// Every file under `scenarios/hull`.
const SCENARIOS: &[(&str, &str)] = &[
    ("source.toml", include_str!("../../../../scenarios/hull/source.toml")),
    ("standard.toml", include_str!("../../../../scenarios/hull/standard.toml")),
    ("static.toml", include_str!("../../../../scenarios/hull/static.toml")),
    ("dynamic.toml", include_str!("../../../../scenarios/hull/dynamic.toml")),
    ("search.toml", include_str!("../../../../scenarios/hull/search.toml")),
    ("low-latency.toml", include_str!("../../../../scenarios/hull/low-latency.toml")),
    ("variable.toml", include_str!("../../../../scenarios/hull/variable.toml")),
];

/// The text of a scenario, including `base` instead of what it includes.
fn scenario_text(name: &str, base: Base) -> String {
    let (_, text) =
        SCENARIOS.iter().find(|(file, _)| *file == name).expect("figures name files of the list above");
    text.replace("include = \"source.toml\"", &format!("include = \"{}.toml\"", base.name()))
}
