//! Prints rows of cells in the forms that are text.

use std::fmt::Write as _;

use plimsoll_text::csv_cell;

use crate::output::Format;

/// A table by its columns; cells are text already.
pub(super) struct Grid {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Grid {
    /// Prints the table; JSON is the caller's.
    pub(super) fn printed(&self, format: Format) -> String {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let mut text = String::new();
        match format {
            Format::Csv => {
                for line in lines() {
                    let cells: Vec<_> = line.iter().map(|cell| csv_cell(cell)).collect();
                    text += &(cells.join(",") + "\n");
                }
            }
            Format::Md => {
                for (number, line) in lines().enumerate() {
                    text += &format!("| {} |\n", line.join(" | "));
                    if number == 0 {
                        text += &format!("|---{}|\n", "|--:".repeat(line.len().saturating_sub(1)));
                    }
                }
            }
            Format::Table | Format::Json => {
                let width =
                    |column: usize| lines().map(|line| line[column].chars().count()).max().unwrap_or(0);
                let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
                for line in lines() {
                    let mut row = String::new();
                    for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                        // Names are on the left, numbers on the right.
                        let _ = match column {
                            0 => write!(row, "{cell:<width$}"),
                            _ => write!(row, "  {cell:>width$}"),
                        };
                    }
                    text += &(row.trim_end().to_owned() + "\n");
                }
            }
        }
        text
    }
}
