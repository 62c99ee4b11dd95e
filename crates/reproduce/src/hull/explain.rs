//! Why a row is outside its tolerance: by mechanism, never by number.

use crate::row::Row;

/// A deviation and its mechanism.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// Short name, the heading on the page.
    pub title: &'static str,
    /// Which rows it explains.
    pub covers: fn(&Row) -> bool,
    /// The mechanism, and the run that shows it.
    pub text: &'static str,
}

/// Every known deviation.
pub const EXPLANATIONS: &[Explanation] = &[];

/// The explanation of a row, if there is one.
pub fn explanation(row: &Row) -> Option<&'static Explanation> {
    EXPLANATIONS.iter().find(|explanation| (explanation.covers)(row))
}
