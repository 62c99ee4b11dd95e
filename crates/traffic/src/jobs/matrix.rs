//! The blocks of an all-to-all from a file (all-to-all-v): a row for each rank, and in it the bytes for each.
//!
//! ```text
//! 0,  4096, 1MiB
//! 64, 0,    0
//! 64, 64,   0
//! ```

use std::ops::Range;

use plimsoll_text::counted;
use plimsoll_text::csv::rows;
use plimsoll_units::Bytes;

use crate::check::{FilePlace, InvalidWorkload, NumberedLine};

/// Reads the bytes that each of `ranks` sends to each, row by row.
///
/// # Errors
/// Names line and column of each cell that is no size, and each row of another length. A first row that is not mostly
/// sizes is not quoted, since the file may be of any kind.
pub(crate) fn parse(file: &str, text: &str, ranks: u32) -> Result<Vec<u64>, Vec<InvalidWorkload>> {
    let shape = format!("{ranks} rows of {ranks} sizes, one for each rank");
    let mut errors = Vec::new();
    let mut error = |span: Result<Range<usize>, NumberedLine>, problem: String, allowed: &str| {
        let (span, line) = (span.as_ref().ok().cloned(), span.err());
        let place = Some(FilePlace { file: file.to_owned(), span, line });
        let allowed = Some(allowed.to_owned());
        errors.push(InvalidWorkload { key: String::new(), problem, allowed, help: None, place });
    };
    let mut sizes = Vec::new();
    let mut count = 0;
    for row in rows(text, Some(b'#')) {
        count += 1;
        let cells = row.cells();
        let is_shown =
            count > 1 || cells.iter().filter(|cell| size(cell).is_some()).count() * 2 > cells.len();
        let shown = |span: Range<usize>| match is_shown {
            true => Ok(span),
            false => Err(NumberedLine { number: row.line, text: String::new() }),
        };
        if cells.len() as u64 != u64::from(ranks) {
            let problem = format!("{} in row {count}", counted(cells.len() as u64, "size"));
            error(shown(row.start..row.start + row.text.len()), problem, &shape);
        } else if count > ranks {
            error(shown(row.start..row.start + row.text.len()), format!("a row {count}"), &shape);
            break;
        } else {
            for (column, cell) in cells.into_iter().enumerate() {
                match size(cell) {
                    Some(bytes) => sizes.push(bytes),
                    None => {
                        let problem = format!("no size in row {count}, column {}", column + 1);
                        error(shown(row.span(column)), problem, "bytes such as `4096` or `1MiB`");
                    }
                }
            }
        }
        if count == 1 && sizes.len() as u64 != u64::from(ranks) {
            return Err(errors);
        }
    }
    if count < ranks {
        error(
            Ok(text.trim_end().len()..text.len()),
            format!("{} and no more", counted(count.into(), "row")),
            &shape,
        );
    }
    if errors.is_empty() { Ok(sizes) } else { Err(errors) }
}

fn size(cell: &str) -> Option<u64> {
    cell.parse().ok().or_else(|| cell.parse().ok().map(Bytes::get))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_read() {
        let text = "# from rows to columns\n0, 4096, 1KiB\n64,0,0\n64,64B,9\n";
        assert_eq!(parse("m.csv", text, 3), Ok(vec![0, 4_096, 1_024, 64, 0, 0, 64, 64, 9]));
    }

    #[test]
    fn errors_have_their_place() {
        for (text, wrong, problem) in [
            ("1,2\n3,x\n", "x", "no size in row 2, column 2"),
            ("1,2\n3,-4\n", "-4", "no size in row 2, column 2"),
            ("1,2\n3,4,5\n", "3,4,5", "3 sizes in row 2"),
            ("1,2\n3,4\n5,6\n", "5,6", "a row 3"),
            ("1,2\n", "\n", "1 row and no more"),
            ("# bytes\n1,2,3\n4,5\n", "1,2,3", "3 sizes in row 1"),
            ("1,2,x\n4,5\n", "1,2,x", "3 sizes in row 1"),
        ] {
            let bad = parse("m.csv", text, 2).unwrap_err();
            let span = bad[0].place.clone().and_then(|place| place.span).expect("a place");
            assert_eq!((&text[span], bad[0].problem.as_str(), bad.len()), (wrong, problem, 1), "{text}");
        }
        for (text, number) in [("root:x:0\n", Some(1)), ("# of a\n\nsecret,0\n", Some(3)), ("", None)] {
            let bad = parse("m.csv", text, 2).unwrap_err();
            let FilePlace { line, .. } = bad[0].place.clone().unwrap();
            assert_eq!(line.as_ref().map(|line| line.number), number, "{text}");
            assert!(!format!("{bad:?}").contains("secret"), "{bad:?}");
        }
    }
}
