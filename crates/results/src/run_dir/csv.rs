//! The little of CSV (RFC 4180) that the columns need: comma, quotes where they must be, `\n`. What a text holds is
//! written as [`csv_cell`] says.

use std::borrow::Cow;
use std::fmt::{Display, Write};

use plimsoll_units::text::csv_cell;
#[cfg(test)]
use plimsoll_units::text::from_csv_cell;

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

    /// A field of a floating-point column, which shows that it is one also where it is whole.
    pub(super) fn maybe_float(&mut self, value: Option<f64>) {
        self.maybe(value.map(|value| format!("{value:?}")));
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

    /// What has been written since this was last asked, in whole rows.
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

/// Reads rows of CSV; texts are as their cells have them.
pub(super) struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Reader<'a> {
        Reader { rest: text }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Vec<Cow<'a, str>>;

    fn next(&mut self) -> Option<Vec<Cow<'a, str>>> {
        if self.rest.is_empty() {
            return None;
        }
        let line_end = self.rest.find('\n').unwrap_or(self.rest.len());
        let line = &self.rest[..line_end];
        if !line.contains('"') {
            self.rest = self.rest.get(line_end + 1..).unwrap_or("");
            return Some(line.split(',').map(Cow::Borrowed).collect());
        }
        let mut fields = Vec::new();
        loop {
            let (field, rest) = field(self.rest);
            fields.push(field);
            match rest.as_bytes().first() {
                Some(b',') => self.rest = &rest[1..],
                Some(_) => {
                    self.rest = &rest[1..];
                    return Some(fields);
                }
                None => {
                    self.rest = rest;
                    return Some(fields);
                }
            }
        }
    }
}

/// The next field, and what follows it from its comma or line end on.
fn field(text: &str) -> (Cow<'_, str>, &str) {
    let Some(inner) = text.strip_prefix('"') else {
        let end = text.find([',', '\n']).unwrap_or(text.len());
        return (Cow::Borrowed(&text[..end]), &text[end..]);
    };
    let mut value = String::new();
    let mut rest = inner;
    loop {
        let Some(quote) = rest.find('"') else {
            value.push_str(rest);
            return (Cow::Owned(value), "");
        };
        value.push_str(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                value.push('"');
                rest = after;
            }
            None => {
                let end = rest.find([',', '\n']).unwrap_or(rest.len());
                return (Cow::Owned(value), &rest[end..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            rows in prop::collection::vec(prop::collection::vec("(?s)[=@'\\\\]?.*", 2..5), 1..5),
        ) {
            let mut writer = Writer::new();
            for row in &rows {
                row.iter().for_each(|field| writer.text(field));
                writer.end_row();
            }
            let text = writer.take_text();
            let read: Vec<Vec<String>> =
                Reader::new(&text).map(|row| row.iter().map(|cell| from_csv_cell(cell).into()).collect()).collect();
            prop_assert_eq!(read, rows);
        }

        #[test]
        fn no_text_panics(text in "(?s).*") {
            Reader::new(&text).for_each(drop);
        }
    }
}
