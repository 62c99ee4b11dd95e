//! [`LogLines`]: the lines of a log, one at a time, with a limit on their length; and the cells of a line.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use plimsoll_text::csv;

/// The most bytes of a line, or of an object in JSON.
pub(crate) const BYTES_MAX: usize = 1 << 20;

/// The lines of a log; memory is that of one line.
pub(crate) struct LogLines<R> {
    input: R,
    buffer: Vec<u8>,
    /// The number of the current line, from 1.
    pub(crate) number: u64,
}

impl<R: BufRead> LogLines<R> {
    pub(crate) fn new(input: R) -> LogLines<R> {
        LogLines { input, buffer: Vec::new(), number: 0 }
    }

    /// Reads the next line, without its end and without white space around it. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// Returns the errors of the input, and an error for a line of more than [`BYTES_MAX`] bytes.
    pub(crate) fn next(&mut self) -> io::Result<Option<Cow<'_, str>>> {
        self.buffer.clear();
        let mut limited = (&mut self.input).take(BYTES_MAX as u64 + 1);
        if limited.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.buffer.len() > BYTES_MAX {
            let problem = format!("line {} has more than {} bytes", self.number, BYTES_MAX);
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let line = self.buffer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.buffer);
        Ok(Some(String::from_utf8_lossy(line.trim_ascii())))
    }
}

/// The separator between the cells of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Separator {
    /// CSV, with a comma or another character.
    Character(char),
    /// Any number of blanks and tabs.
    Blanks,
}

impl Separator {
    /// Returns the cells of a line, without quotes and without white space around them.
    pub(crate) fn cells(self, line: &str) -> Vec<Cow<'_, str>> {
        match self {
            Separator::Blanks => line.split_whitespace().map(Cow::Borrowed).collect(),
            Separator::Character(',') if line.contains('"') => {
                let row = csv::rows(line, None).next();
                row.map_or_else(Vec::new, |row| {
                    row.cells().into_iter().map(|cell| Cow::Owned(cell.to_owned())).collect()
                })
            }
            Separator::Character(separator) => {
                line.split(separator).map(|cell| Cow::Borrowed(cell.trim())).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_limited() {
        let mut lines = LogLines::new("\u{feff}a,b\r\n\n  c \n".as_bytes());
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            seen.push(line.into_owned());
        }
        assert_eq!((seen, lines.number), (vec!["a,b".to_owned(), String::new(), "c".to_owned()], 3));
        let long = [b"x\n".to_vec(), vec![b'y'; BYTES_MAX + 1]].concat();
        let mut lines = LogLines::new(&*long);
        lines.next().unwrap();
        assert!(lines.next().unwrap_err().to_string().contains("line 2 has more than 1048576 bytes"));
    }

    #[test]
    fn cells_are_separated_by_commas_or_blanks() {
        assert_eq!(Separator::Character(',').cells("a,\"b,c\", d"), ["a", "b,c", "d"]);
        assert_eq!(Separator::Character(';').cells("a;b;;"), ["a", "b", "", ""]);
        assert_eq!(Separator::Blanks.cells("2  123 eni-1"), ["2", "123", "eni-1"]);
    }
}
