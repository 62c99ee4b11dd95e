//! [`ListedRow`]: a row of a CSV file that lists messages, whose errors name the place in the file.

use std::ops::Range;
use std::str::FromStr;

use plimsoll_text::counted;
use plimsoll_text::csv::{CsvRecord, rows};
use plimsoll_text::spelling::did_you_mean;
use plimsoll_units::{Bytes, ParseQuantityError};

use crate::check::{FilePlace, InvalidWorkload};
use crate::facts::NetworkFacts;

/// A row of a list, with the name of its file.
pub(crate) struct ListedRow<'a> {
    file: &'a str,
    header: &'static str,
    row: &'a CsvRecord<'a>,
    facts: &'a dyn NetworkFacts,
}

/// Parses a list whose first line is `header`, a row at a time; host names are the network's.
pub(crate) fn parse<T>(
    file: &str,
    text: &str,
    header: &'static str,
    facts: &dyn NetworkFacts,
    mut parse_row: impl FnMut(&ListedRow<'_>) -> Result<T, Box<InvalidWorkload>>,
) -> Result<Vec<T>, Vec<InvalidWorkload>> {
    let mut rows = rows(text, Some(b'#'));
    if rows.next().is_none_or(|row| row.cells().join(",") != header) {
        // Without our columns it may be a file of any kind, of which nothing is quoted.
        let place = FilePlace { file: file.to_owned(), span: None, line: None };
        return Err(vec![at(place, "the columns are not known", Some(header))]);
    }
    let mut errors = Vec::new();
    let mut parsed = Vec::new();
    for row in rows {
        match parse_row(&ListedRow { file, header, row: &row, facts }) {
            Ok(row) => parsed.push(row),
            Err(error) => errors.push(*error),
        }
    }
    if errors.is_empty() { Ok(parsed) } else { Err(errors) }
}

/// Returns an error at a place of the file.
fn at(place: FilePlace, problem: impl Into<String>, allowed: Option<&str>) -> InvalidWorkload {
    let allowed = allowed.map(str::to_owned);
    InvalidWorkload { key: String::new(), problem: problem.into(), allowed, help: None, place: Some(place) }
}

impl ListedRow<'_> {
    /// Returns the cells of the row, one for each column.
    ///
    /// # Errors
    /// Fails if the row has more or fewer cells than there are columns.
    pub(crate) fn cells<const N: usize>(&self) -> Result<[&str; N], Box<InvalidWorkload>> {
        let cells = self.row.cells();
        let count = cells.len() as u64;
        <[&str; N]>::try_from(cells).map_err(|_| {
            let whole = self.row.start..self.row.start + self.row.text.len();
            self.error(whole, counted(count, "column"), Some(self.header))
        })
    }

    /// Returns the bytes of the file that hold a cell.
    pub(crate) fn span(&self, column: usize) -> Range<usize> {
        self.row.span(column)
    }

    /// Returns an error that points at a part of the text.
    pub(crate) fn error(
        &self,
        span: Range<usize>,
        problem: impl Into<String>,
        allowed: Option<&str>,
    ) -> Box<InvalidWorkload> {
        Box::new(at(FilePlace { file: self.file.to_owned(), span: Some(span), line: None }, problem, allowed))
    }

    /// Returns the number of the host that a cell names.
    ///
    /// # Errors
    /// Names the host that the network does not have, and the nearest one.
    pub(crate) fn host(&self, column: usize) -> Result<u32, Box<InvalidWorkload>> {
        let cells = self.row.cells();
        let name = cells[column];
        self.facts.host(name).ok_or_else(|| {
            let hosts = 0..self.facts.host_count().min(1000);
            let names: Vec<String> = hosts.map(|host| self.facts.host_name(host)).collect();
            let mut error = self.error(self.span(column), format!("there is no host \"{name}\""), None);
            error.help = did_you_mean(name, names.iter().map(String::as_str));
            error
        })
    }

    /// Returns the host of a cell, which is another one than that of the cell before it.
    ///
    /// # Errors
    /// Fails if there is no such host, or both cells name the same; `what` is the thing between the hosts.
    pub(crate) fn other_host(
        &self,
        column: usize,
        one: u32,
        what: &str,
    ) -> Result<u32, Box<InvalidWorkload>> {
        let other = self.host(column)?;
        if other == one {
            return Err(self.error(self.span(column), format!("{what} from a host to itself"), None));
        }
        Ok(other)
    }

    /// Returns the quantity of a cell.
    ///
    /// # Errors
    /// Fails if the cell has no such quantity, or no unit.
    pub(crate) fn quantity<Q: FromStr<Err = ParseQuantityError>>(
        &self,
        column: usize,
    ) -> Result<Q, Box<InvalidWorkload>> {
        let cells = self.row.cells();
        cells[column]
            .parse()
            .map_err(|error: ParseQuantityError| self.error(self.span(column), error.to_string(), None))
    }

    /// Returns the size of a cell, which is at least a byte; `what` is the thing that has it.
    ///
    /// # Errors
    /// Fails if the cell has no size, or none above zero.
    pub(crate) fn size(&self, column: usize, what: &str) -> Result<Bytes, Box<InvalidWorkload>> {
        let size = self.quantity(column)?;
        if size == Bytes::ZERO {
            return Err(self.error(self.span(column), format!("{what} without bytes"), Some("at least 1B")));
        }
        Ok(size)
    }
}
