//! The tables of models without a network: numbers by their columns.

use serde_json::{Map, Value};

use crate::table::{Format, Listing, ListingColumn};

/// A table of numbers, by its columns.
#[derive(Clone, PartialEq, Debug)]
pub struct NumberTable {
    /// An explanation above the numbers, which only a terminal has.
    pub note: String,
    /// The names of the columns, each with its unit.
    pub head: Vec<&'static str>,
    /// The rows, each with one number a column.
    pub rows: Vec<Vec<f64>>,
}

impl NumberTable {
    /// Writes the table in one of the forms.
    pub fn written(&self, format: Format) -> String {
        if format == Format::Json {
            // JSON has no infinite numbers, so they become null.
            let object = |row: &Vec<f64>| {
                let named = self.head.iter().zip(row);
                named.map(|(name, number)| ((*name).to_owned(), Value::from(*number))).collect::<Map<_, _>>()
            };
            return format!("{:#}\n", Value::from_iter(self.rows.iter().map(object)));
        }
        let column = |name: &&str| ListingColumn {
            name: (*name).to_owned(),
            width: WIDTH.max(name.len() + GAP),
            is_text: false,
        };
        let rows = self.rows.iter().map(|row| row.iter().map(|&number| cell(number)).collect()).collect();
        let listing = Listing { columns: self.head.iter().map(column).collect(), rows }.written(format);
        if format == Format::Table { self.note.clone() + &listing } else { listing }
    }
}

/// The least width of a column.
const WIDTH: usize = 15;
/// The least number of spaces before the name of a column.
const GAP: usize = 2;

/// Writes up to three decimals, without trailing zeros.
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
        let rows = vec![vec![1.0, 2.5, 1e6], vec![1e20, f64::INFINITY, 0.0004]];
        let table = NumberTable { note: "A note.\n\n".to_owned(), head: head.clone(), rows };
        let text = table.written(Format::Table);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), head);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        assert_eq!(table.written(Format::Csv).lines().nth(1), Some("1,2.5,1000000"),);
        assert_eq!(table.written(Format::Md).lines().nth(1), Some("|--:|--:|--:|"));
        assert!(table.written(Format::Json).contains("\"timed_out_percent\": null"));
    }
}
