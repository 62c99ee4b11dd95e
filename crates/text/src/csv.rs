//! [`rows`]: the records of a CSV text (RFC 4180), each with its place, so that an error can name the line.

use std::ops::Range;

use csv::{ReaderBuilder, StringRecord, Terminator};

/// A record of a CSV text, and its place in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CsvRecord<'t> {
    /// The number of its first line, from 1.
    pub line: usize,
    /// The byte of the text at which it begins.
    pub start: usize,
    /// Its first line as the text has it, without white space at the end.
    pub text: &'t str,
    record: StringRecord,
}

impl CsvRecord<'_> {
    /// Returns its cells, without quotes and without white space around them.
    pub fn cells(&self) -> Vec<&str> {
        self.record.iter().map(str::trim).collect()
    }

    /// Returns the bytes of the text that hold a cell, or the whole row if a cell of the row is quoted.
    pub fn span(&self, cell: usize) -> Range<usize> {
        match self.record.range(cell) {
            Some(range) if !self.text.contains('"') => {
                let raw = &self.record[cell];
                let start = self.start + cell + range.start + raw.len() - raw.trim_start().len();
                start..start + raw.trim().len()
            }
            _ => self.start..self.start + self.text.len(),
        }
    }
}

/// Returns the records of a text, of any number of cells. Empty lines are skipped, and lines that begin with `comment`.
pub fn rows(text: &str, comment: Option<u8>) -> impl Iterator<Item = CsvRecord<'_>> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(comment)
        .terminator(Terminator::Any(b'\n'))
        .from_reader(text.as_bytes());
    // The byte up to which lines are counted, and the number of the line there.
    let (mut counted, mut line) = (0, 1);
    let is_comment = move |text: &str| comment.is_some_and(|mark| text.as_bytes().first() == Some(&mark));
    std::iter::from_fn(move || {
        loop {
            let read = usize::try_from(reader.position().byte()).expect("a text in memory has an index");
            // The reader skips a byte order mark.
            let mut start = if read == 0 {
                text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len()
            } else {
                read
            };
            let mut record = StringRecord::new();
            let is_there = reader.read_record(&mut record).expect("text in memory is read, and is UTF-8");
            if !is_there {
                return None;
            }
            // The reader's position precedes the lines that it skips.
            let mut first = line_at(text, start);
            while first == "\n" || is_comment(first) {
                start += first.len();
                first = line_at(text, start);
            }
            line += text[counted..start].matches('\n').count();
            counted = start;
            let first = first.trim_end();
            if !first.is_empty() && !is_comment(first.trim_start()) {
                return Some(CsvRecord { line, start, text: first, record });
            }
        }
    })
}

/// Returns the line that begins at a byte, with its end.
fn line_at(text: &str, start: usize) -> &str {
    text[start..].split_inclusive('\n').next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_have_their_lines_and_cells_their_bytes() {
        let text = "\u{feff}a, b\r\n\n# no, \"row\n  \n1,  2 \n # nor this\n\"x, y\",\"2\n3\",z\n\n9";
        let rows: Vec<CsvRecord<'_>> = rows(text, Some(b'#')).collect();
        let seen: Vec<_> = rows.iter().map(|row| (row.line, row.cells())).collect();
        let expected: [(usize, Vec<&str>); 4] =
            [(1, vec!["a", "b"]), (5, vec!["1", "2"]), (7, vec!["x, y", "2\n3", "z"]), (10, vec!["9"])];
        assert_eq!(seen, expected);
        assert_eq!(rows[1].text, "1,  2");
        assert_eq!(&text[rows[1].span(1)], "2");
        assert_eq!(&text[rows[3].span(0)], "9");
        // In a row with quotes, and for a cell that is not there, it is the row.
        assert_eq!((&text[rows[2].span(0)], &text[rows[1].span(7)]), ("\"x, y\",\"2", "1,  2"));
    }

    proptest! {
        #[test]
        fn every_row_begins_its_line(text in "[a,\"# \r\n\u{feff}\u{e9}]{0,60}") {
            for row in rows(&text, Some(b'#')) {
                prop_assert_eq!(row.line, 1 + text[..row.start].matches('\n').count());
                prop_assert!(text[row.start..].starts_with(row.text));
                for cell in 0..=row.cells().len() {
                    prop_assert!(text.get(row.span(cell)).is_some());
                }
            }
        }
    }
}
