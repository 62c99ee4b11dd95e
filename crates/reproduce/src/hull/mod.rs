//! The HULL semester project: every experiment of its evaluation.
//!
//! Two bases. `source` sets what the study's ns-2 scripts set and is held to the published values;
//! `standard` follows the RFCs and the paper and is printed beside it.

mod association;
pub mod explain;
mod figures;
mod oracles;
mod orderings;
pub mod run;
mod summary;

pub use figures::{Case, Figure, figures};
pub use orderings::{Ordering, orderings};

/// The completion times that the study's raw data settle exactly, measured: a second of work.
///
/// # Errors
/// If a shipped scenario does not load.
pub fn exact(seed: u64) -> Result<Vec<crate::Row>, run::ReproduceError> {
    oracles::rows(seed, run::laid_out()?.path())
}

/// Which settings an experiment runs with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Base {
    /// As the study's scripts ran it.
    Source,
    /// By the book.
    Standard,
}

impl Base {
    /// The name in rows and files.
    pub fn name(self) -> &'static str {
        match self {
            Base::Source => "source",
            Base::Standard => "standard",
        }
    }
}

/// Every file under `scenarios/hull`, so that the program needs none of them beside it.
pub(crate) const SCENARIOS: &[(&str, &str)] = &[
    ("source.toml", include_str!("../../../../scenarios/hull/source.toml")),
    ("standard.toml", include_str!("../../../../scenarios/hull/standard.toml")),
    ("static.toml", include_str!("../../../../scenarios/hull/static.toml")),
    ("dynamic.toml", include_str!("../../../../scenarios/hull/dynamic.toml")),
    ("search.toml", include_str!("../../../../scenarios/hull/search.toml")),
    ("low-latency.toml", include_str!("../../../../scenarios/hull/low-latency.toml")),
    ("variable.toml", include_str!("../../../../scenarios/hull/variable.toml")),
];

/// The text of a scenario, including `base` instead of what it includes.
pub(crate) fn scenario_text(name: &str, base: Base) -> String {
    let (_, text) =
        SCENARIOS.iter().find(|(file, _)| *file == name).expect("figures name files of the list above");
    text.replace("include = \"source.toml\"", &format!("include = \"{}.toml\"", base.name()))
}
