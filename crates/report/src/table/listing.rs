//! [`Listing`]: a small table without a title, as the commands that compute without a run print it.

use super::Format;

/// A table of texts by its columns.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// The columns, in order.
    pub columns: Vec<ListingColumn>,
    /// The rows, each with one cell a column.
    pub rows: Vec<Vec<String>>,
}

/// A column of a [`Listing`]: its name, width and alignment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListingColumn {
    /// The name of the column.
    pub name: String,
    /// The smallest width of the column on a terminal, in characters.
    pub width: usize,
    /// Texts are at the left of their column, numbers at its right.
    pub is_text: bool,
}

impl Listing {
    /// Makes a table whose first column has texts and whose others have numbers.
    pub fn labelled(names: &[&str], rows: Vec<Vec<String>>) -> Listing {
        let column = |(place, name): (usize, &&str)| ListingColumn {
            name: (*name).to_owned(),
            width: 0,
            is_text: place == 0,
        };
        Listing { columns: names.iter().enumerate().map(column).collect(), rows }
    }

    /// Writes the table as text; as JSON, which the caller has, it is that for a terminal.
    pub fn written(&self, format: Format) -> String {
        let head: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        let lines = std::iter::once(&head).chain(&self.rows);
        match format {
            Format::Csv => lines.map(|line| super::csv_line(line)).collect(),
            Format::Md => {
                let mut lines: Vec<String> =
                    lines.map(|line| format!("| {} |\n", line.join(" | "))).collect();
                let rules = self.columns.iter().map(|column| if column.is_text { "---|" } else { "--:|" });
                lines.insert(1, format!("|{}\n", rules.collect::<String>()));
                lines.concat()
            }
            Format::Table | Format::Json => {
                let longest = |column: usize| lines.clone().map(|line| line[column].chars().count()).max();
                let gap = |column: usize| if column == 0 { 0 } else { GAP };
                let width = |(place, column): (usize, &ListingColumn)| {
                    column.width.max(longest(place).unwrap_or(0) + gap(place))
                };
                let widths: Vec<usize> = self.columns.iter().enumerate().map(width).collect();
                let cell = |((cell, column), width): ((&String, &ListingColumn), &usize)| {
                    if column.is_text { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                };
                let written = |line: &Vec<String>| {
                    let text: String = line.iter().zip(&self.columns).zip(&widths).map(cell).collect();
                    text.trim_end().to_owned() + "\n"
                };
                lines.clone().map(written).collect()
            }
        }
    }
}

/// The least space between two columns.
const GAP: usize = 2;
