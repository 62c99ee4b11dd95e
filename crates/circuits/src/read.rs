//! Reads a demand from CSV: bytes without a header, a row for each sender.

use std::fmt;

use plimsoll_text::csv::{CsvRecord, rows};
use plimsoll_text::printable;

use crate::demand::Demand;

/// The most ports of a demand.
pub const PORTS_MAX: usize = 4_096;

/// An error in a demand's file, with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DemandError {
    /// The file's name as it was given.
    pub file: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The error, with the bad value.
    pub message: String,
    /// The values allowed there.
    pub allowed: &'static str,
    /// The line's text, and the characters under the caret; none if the line is long or may be of another kind of file.
    pub excerpt: Option<(String, usize)>,
}

impl std::error::Error for DemandError {}

impl fmt::Display for DemandError {
    /// Writes the message, the place and the line with a caret, as the errors of a scenario are written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DemandError { file, line, column, message, allowed, excerpt } = self;
        let margin = " ".repeat(line.to_string().len());
        write!(f, "{}\n{margin}--> {}:{line}:{column}", printable(message), printable(file))?;
        if let Some((text, width)) = excerpt {
            // Escaped characters take more room, and the caret must stay below the culprit.
            let widened = |end: usize| printable(&text.chars().take(end).collect::<String>()).chars().count();
            let (start, end) = (widened(column - 1), widened(column - 1 + width));
            let carets = "^".repeat((end - start).max(1));
            write!(
                f,
                "\n{margin} |\n{line} | {}\n{margin} | {}{carets}",
                printable(text),
                " ".repeat(start)
            )?;
        }
        write!(f, "\n{margin} = allowed: {allowed}")
    }
}

impl Demand {
    /// Reads the demand of a CSV text; `file` is its name in errors.
    ///
    /// # Errors
    /// Names the first value that is not a whole number of bytes, or the first row that makes the matrix not square.
    pub fn parse(file: &str, text: &str) -> Result<Demand, DemandError> {
        let mut bytes = Vec::new();
        let mut ports = 0;
        let mut total = 0u64;
        let mut last: Option<CsvRecord<'_>> = None;
        for (sender, row) in rows(text, None).enumerate() {
            let cells = row.cells();
            if sender == 0 {
                ports = cells.len();
                if ports > PORTS_MAX {
                    let message = format!("a row of {ports} ports is too long");
                    return Err(at_cell(file, text, &row, PORTS_MAX, message, PORTS));
                }
                bytes.reserve_exact(ports * ports);
            }
            if sender == ports {
                let message = format!("row {} is one more than the {ports} values of each row", sender + 1);
                return Err(at_cell(file, text, &row, 0, message, SQUARE));
            }
            if cells.len() != ports {
                let message =
                    format!("row {} has {} values, and the first has {ports}", sender + 1, cells.len());
                // The caret is at the first value too many, or at the last one that is there.
                let cell = ports.min(cells.len() - 1);
                return Err(at_cell(file, text, &row, cell, message, SQUARE));
            }
            for (receiver, cell) in cells.iter().enumerate() {
                let is_first = sender == 0 && receiver == 0;
                let value = value(cell, is_first).map_err(|message| {
                    at_cell(file, text, &row, receiver, message, WHOLE).quoting(!is_first)
                })?;
                total = total.checked_add(value).ok_or_else(|| {
                    at_cell(
                        file,
                        text,
                        &row,
                        receiver,
                        "the bytes of all flows are too many".to_owned(),
                        TOTAL,
                    )
                })?;
                bytes.push(value);
            }
            last = Some(row);
        }
        let Some(last) = last else {
            let message = "there is no row in it".to_owned();
            return Err(DemandError {
                file: file.to_owned(),
                line: 1,
                column: 1,
                message,
                allowed: SQUARE,
                excerpt: None,
            });
        };
        let rows = bytes.len() / ports;
        if rows < ports {
            let message = format!("there are {rows} rows of {ports} values each");
            return Err(at_cell(file, text, &last, 0, message, SQUARE));
        }
        Ok(Demand::from_bytes(ports, bytes))
    }

    /// Returns the demand as the CSV text that [`Demand::parse`] reads.
    pub fn to_csv(&self) -> String {
        let line = |row: &[u64]| row.iter().map(u64::to_string).collect::<Vec<_>>().join(",") + "\n";
        self.rows().map(line).collect()
    }
}

impl DemandError {
    /// Drops the excerpt if the file may be of any kind: its first value is not a number.
    fn quoting(mut self, is_demand: bool) -> DemandError {
        self.excerpt = self.excerpt.filter(|_| is_demand);
        self
    }
}

const WHOLE: &str = "bytes as a whole number from 0 to 18446744073709551615";
const SQUARE: &str = "as many rows as each has values: a row for each sender, a value for each receiver";
const PORTS: &str = "at most 4,096 ports";
const TOTAL: &str = "at most 18446744073709551615 bytes in all";

/// Reads a value; the error describes the problem, and quotes the value unless it is the first of the file.
fn value(cell: &str, is_first: bool) -> Result<u64, String> {
    if let Ok(value) = cell.parse() {
        return Ok(value);
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let shown: String = cell.chars().take(SHOWN).collect();
    let shown = if shown.len() < cell.len() { format!("{shown}...") } else { shown };
    Err(match cell.parse::<f64>() {
        _ if cell.is_empty() => "a value is missing".to_owned(),
        _ if digits(cell) => format!("`{shown}` is too many bytes"),
        Ok(number) if number.is_nan() => format!("`{shown}` is no number"),
        Ok(number) if number < 0.0 => format!("`{shown}` is negative"),
        Ok(number) if number.is_infinite() => format!("`{shown}` is not finite"),
        Ok(_) => format!("`{shown}` is not written as a whole number"),
        Err(_) if is_first => "the first value is no number; a demand has no header".to_owned(),
        Err(_) => format!("`{shown}` is no number"),
    })
}

/// Characters of a bad value in a message.
const SHOWN: usize = 40;

fn at_cell(
    file: &str,
    text: &str,
    row: &CsvRecord<'_>,
    cell: usize,
    message: String,
    allowed: &'static str,
) -> DemandError {
    let span = row.span(cell);
    let column = text[row.start..span.start].chars().count() + 1;
    let width = text[span].chars().count().max(1);
    let excerpt = (row.text.chars().count() <= EXCERPT).then(|| (row.text.to_owned(), width));
    DemandError { file: file.to_owned(), line: row.line, column, message, allowed, excerpt }
}

/// Characters of the longest line that is shown.
const EXCERPT: usize = 120;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_matrix_is_read() {
        let demand = Demand::parse("d.csv", "\u{feff}0, 13\r\n\n 7,0\n").expect("it is one");
        assert_eq!(demand, Demand::from_rows(&[&[0, 13], &[7, 0]]));
        assert_eq!(Demand::parse("d.csv", "5").expect("it is one").total(), 5);
    }

    #[test]
    fn bad_input_has_its_place() {
        let wide = vec!["1"; 4_097].join(",");
        for (text, line, column, message) in [
            ("", 1, 1, "there is no row in it"),
            ("\n\n", 1, 1, "there is no row in it"),
            ("0,1\n2", 2, 1, "row 2 has 1 values, and the first has 2"),
            ("0,1\n2,0,4\n", 2, 5, "row 2 has 3 values, and the first has 2"),
            ("0,1\n2,0\n3,0\n", 3, 1, "row 3 is one more than the 2 values of each row"),
            ("0,1,2\n2,0,3\n", 2, 1, "there are 2 rows of 3 values each"),
            ("0,1\n-2,0\n", 2, 1, "`-2` is negative"),
            ("0,1\n2, NaN\n", 2, 4, "`NaN` is no number"),
            ("0,1\n2,inf\n", 2, 3, "`inf` is not finite"),
            ("0,1.5\n2,0\n", 1, 3, "`1.5` is not written as a whole number"),
            ("0,1e3\n2,0\n", 1, 3, "`1e3` is not written as a whole number"),
            ("0,\n2,0\n", 1, 3, "a value is missing"),
            ("0,1\n2,x\u{e9}\n", 2, 3, "`x\u{e9}` is no number"),
            ("root:x,1\n2,0\n", 1, 1, "the first value is no number; a demand has no header"),
            ("0,18446744073709551616\n2,0\n", 1, 3, "`18446744073709551616` is too many bytes"),
            ("0,18446744073709551615\n1,0\n", 2, 1, "the bytes of all flows are too many"),
            (&wide, 1, 8193, "a row of 4097 ports is too long"),
        ] {
            let error = Demand::parse("d.csv", text).expect_err("it is none");
            assert_eq!(
                (error.line, error.column, error.message.as_str()),
                (line, column, message),
                "{text:.20}"
            );
        }
    }

    #[test]
    fn an_error_points_at_the_value() {
        let error = Demand::parse("d.csv", "0,1\n2, -7\n").expect_err("it is none").to_string();
        let expected = "`-7` is negative\n --> d.csv:2:4\n  |\n2 | 2, -7\n  |    ^^\n  = allowed: \
                        bytes as a whole number \
                        from 0 to 18446744073709551615";
        assert_eq!(error, expected);
        // Another kind of file is not quoted.
        let error = Demand::parse("passwd", "root:x:0:0\n").expect_err("it is none").to_string();
        assert!(!error.contains("root"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(ports in 1usize..6, seed in any::<u64>()) {
            let bytes = (0..ports * ports).map(|at| seed.rotate_left(at as u32 * 7) >> 6).collect();
            let demand = Demand::from_bytes(ports, bytes);
            prop_assert_eq!(Demand::parse("d.csv", &demand.to_csv()), Ok(demand));
        }

        #[test]
        fn no_text_panics(text in "[-0-9,.\"\n ae\u{e9}\u{feff}]{0,40}") {
            if let Err(error) = Demand::parse("d.csv", &text) {
                prop_assert!(error.line >= 1 && error.column >= 1);
                let _ = error.to_string();
            }
        }
    }
}
