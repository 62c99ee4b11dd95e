//! [`TableStyle`]: how a terminal shows tables.

/// The amount of a result that is shown, and its style on a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableStyle {
    /// Colours and bold type by ANSI escapes; for a terminal only.
    pub color: bool,
    /// Columns of the terminal; tables wider than this are cut between column groups and continued below.
    pub width: usize,
    /// Breaks sentences between words at `width`; for a terminal, whose own breaks are within words.
    pub folds: bool,
    /// Shows every table; without it, the percentiles of each workload alone.
    pub details: bool,
}

impl Default for TableStyle {
    fn default() -> TableStyle {
        TableStyle { color: false, width: 100, folds: false, details: true }
    }
}

impl TableStyle {
    /// Returns a sentence in lines of the terminal.
    pub fn prose(&self, text: &str) -> String {
        if self.folds { folded(text, self.width, "", "  ") } else { text.to_owned() }
    }
}

/// Returns a text as lines of at most `width` columns, the first after `first` and the others after `next`.
pub fn folded(text: &str, width: usize, first: &str, next: &str) -> String {
    let mut lines = first.to_owned();
    let mut columns = first.chars().count();
    for (place, word) in text.split_whitespace().enumerate() {
        let wide = word.chars().count();
        if place > 0 && columns + 1 + wide > width {
            lines.push_str(&format!("\n{next}"));
            columns = next.chars().count();
        } else if place > 0 {
            lines.push(' ');
            columns += 1;
        }
        lines.push_str(word);
        columns += wide;
    }
    lines
}
