//! Prints rows of numbers in every output form.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::output::Format;

/// A table of numbers, by its columns.
pub(super) struct Table {
    /// An explanation above the numbers; omitted in machine-readable forms.
    pub(super) note: String,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<f64>>,
}

impl Table {
    pub(super) fn printed(&self, format: Format) -> Result<String> {
        let joined = |separator: &str| {
            let mut text = self.head.join(separator) + "\n";
            for row in &self.rows {
                text += &(row.iter().map(|&number| cell(number)).collect::<Vec<_>>().join(separator) + "\n");
            }
            text
        };
        Ok(match format {
            Format::Json => serde_json::to_string_pretty(&self.json())? + "\n",
            Format::Csv => joined(","),
            Format::Md => {
                let text = joined(" | ");
                let lines = text.lines().map(|line| format!("| {line} |\n"));
                let mut lines: Vec<String> = lines.collect();
                lines.insert(1, format!("|{}\n", "--:|".repeat(self.head.len())));
                lines.concat()
            }
            Format::Table => {
                let mut text = self.note.clone();
                let line = |cells: Vec<String>| {
                    let mut line = String::new();
                    for (cell, name) in cells.iter().zip(&self.head) {
                        let _ = write!(line, "{cell:>width$}", width = WIDTH.max(name.len() + GAP));
                    }
                    line + "\n"
                };
                text += &line(self.head.iter().map(|&name| name.to_owned()).collect());
                for row in &self.rows {
                    text += &line(row.iter().map(|&number| cell(number)).collect());
                }
                text
            }
        })
    }

    /// JSON has no infinite numbers, so they become null.
    fn json(&self) -> Vec<Value> {
        let object = |row: &Vec<f64>| {
            let pairs = self.head.iter().zip(row).map(|(name, number)| ((*name).to_owned(), json!(number)));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }
}

/// The least width of a column.
const WIDTH: usize = 15;
/// The least number of spaces before the name of a column.
const GAP: usize = 2;

/// Prints up to three decimals, without trailing zeros.
fn cell(number: f64) -> String {
    let text = format!("{number:.3}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_columns_are_apart() {
        let head = vec!["load", "timed_out_percent", "p99_us"];
        let table = Table { note: String::new(), head: head.clone(), rows: vec![vec![1.0, 2.5, 1e6]] };
        let text = table.printed(Format::Table).expect("a table is text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), head);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
    }
}
