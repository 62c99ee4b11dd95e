//! [`Style`]: how a terminal shows tables.

/// The style of a table on a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Colours and bold type by ANSI escapes; for a terminal only.
    pub color: bool,
    /// Columns of the terminal; tables wider than this are cut between column groups and go on
    /// below.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style { color: false, width: 100 }
    }
}
