//! The CSV (RFC 4180) of the columns: comma, quotes where they must be, `\n`. Texts are written by [`csv_cell`].

use std::fmt::{Display, Write};

use csv::{ReaderBuilder, Terminator};
use plimsoll_text::csv_cell;

/// Builds rows of CSV in one buffer.
#[derive(Default)]
pub(super) struct Writer {
    text: String,
    at_start: bool,
}

impl Writer {
    pub(super) fn new() -> Writer {
        Writer { text: String::new(), at_start: true }
    }

    /// A field that needs no quotes: a number.
    pub(super) fn plain(&mut self, value: impl Display) {
        self.separate();
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{value}");
    }

    /// A field that may be absent.
    pub(super) fn maybe(&mut self, value: Option<impl Display>) {
        match value {
            Some(value) => self.plain(value),
            None => self.separate(),
        }
    }

    /// Appends a text, quoted where it must be.
    pub(super) fn text(&mut self, value: &str) {
        self.separate();
        self.text.push_str(&csv_cell(value));
    }

    pub(super) fn end_row(&mut self) {
        self.text.push('\n');
        self.at_start = true;
    }

    /// Fields that are written already, with their commas.
    pub(super) fn prefix(&mut self, prefix: &str) {
        self.text.push_str(prefix);
        self.at_start = prefix.is_empty();
    }

    /// Returns the text written since the last call, in whole rows.
    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    fn separate(&mut self) {
        if !self.at_start {
            self.text.push(',');
        }
        self.at_start = false;
    }
}

/// Returns a reader of the output of a [`Writer`]; cells are as the file has them, and a row may have any number.
pub(super) fn reader(text: &str) -> csv::Reader<&[u8]> {
    ReaderBuilder::new().flexible(true).terminator(Terminator::Any(b'\n')).from_reader(text.as_bytes())
}

/// Returns the cells of rows below a header of another text.
#[cfg(feature = "parquet")]
pub(super) fn rows_without_header(text: &str) -> impl Iterator<Item = Result<csv::StringRecord, csv::Error>> {
    let mut builder = ReaderBuilder::new();
    builder.flexible(true).has_headers(false).terminator(Terminator::Any(b'\n'));
    builder.from_reader(text.as_bytes()).into_records().collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use plimsoll_text::from_csv_cell;
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<Vec<String>> {
        let cells = |row: &csv::StringRecord| row.iter().map(|cell| from_csv_cell(cell).into()).collect();
        let rows = reader(text).into_records().map(|row| cells(&row.expect("a text is read")));
        rows.collect()
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            rows in prop::collection::vec(prop::collection::vec("(?s)[=@'\\\\]?.*", 2..5), 1..5),
        ) {
            let mut writer = Writer::new();
            writer.plain("header");
            writer.end_row();
            for row in &rows {
                row.iter().for_each(|field| writer.text(field));
                writer.end_row();
            }
            prop_assert_eq!(read(&writer.take_text()), rows);
        }

        #[test]
        fn no_text_panics(text in "(?s).*") {
            read(&text);
        }
    }
}
