//! [`Style`]: how a terminal shows tables.

/// How much of a result is shown, and how a terminal shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Colours and bold type by ANSI escapes; for a terminal only.
    pub color: bool,
    /// Columns of the terminal; tables wider than this are cut between column groups and go on
    /// below.
    pub width: usize,
    /// Shows every table; without it, the percentiles of each workload alone.
    pub details: bool,
}

impl Default for Style {
    fn default() -> Style {
        Style { color: false, width: 100, details: true }
    }
}
