//! The HULL semester project: every experiment of its evaluation.
//!
//! Two bases. `source` sets what the study's ns-2 scripts set and is held to the published values;
//! `standard` follows the RFCs and the paper and is printed beside it.

mod figures;
mod oracles;
mod summary;

pub use figures::{Case, Figure, figures};
pub use oracles::{Oracle, oracles};
pub use summary::{Percentage, percentages};

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
