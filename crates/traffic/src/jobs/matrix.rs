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

use crate::check::{FilePlace, InvalidWorkload};

/// Reads the bytes that each of `ranks` sends to each, row by row.
///
/// # Errors
/// Names line and column of each cell that is no size, and each row of another length.
pub(crate) fn parse(file: &str, text: &str, ranks: u32) -> Result<Vec<u64>, Vec<InvalidWorkload>> {
    let shape = format!("{ranks} rows of {ranks} sizes, one for each rank");
    let mut errors = Vec::new();
    let mut error = |span: Option<Range<usize>>, problem: String, allowed: &str| {
        let place = Some(FilePlace { file: file.to_owned(), span, line: None });
        let allowed = Some(allowed.to_owned());
        errors.push(InvalidWorkload { key: String::new(), problem, allowed, help: None, place });
    };
    let mut sizes = Vec::new();
    let mut count = 0;
    for row in rows(text, Some(b'#')) {
        count += 1;
        let cells = row.cells();
        // A file whose first row does not fit may be of any kind, of which nothing is quoted.
        let shown = |span: Range<usize>| Some(span).filter(|_| count > 1);
        if cells.len() as u64 != u64::from(ranks) {
            let problem = format!("{} in row {count}", counted(cells.len() as u64, "size"));
            error(shown(row.start..row.start + row.text.len()), problem, &shape);
        } else if count > ranks {
            error(shown(row.start..row.start + row.text.len()), format!("a row {count}"), &shape);
            break;
        } else {
            for (column, cell) in cells.into_iter().enumerate() {
                let size = cell.parse().or_else(|_| cell.parse().map(Bytes::get));
                match size {
                    Ok(bytes) => sizes.push(bytes),
                    Err(_) => {
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
            Some(text.trim_end().len()..text.len()),
            format!("{} and no more", counted(count.into(), "row")),
            &shape,
        );
    }
    if errors.is_empty() { Ok(sizes) } else { Err(errors) }
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
        ] {
            let bad = parse("m.csv", text, 2).unwrap_err();
            let span = bad[0].place.clone().and_then(|place| place.span).expect("a place");
            assert_eq!((&text[span], bad[0].problem.as_str(), bad.len()), (wrong, problem, 1), "{text}");
        }
        for text in ["root:x:0\n", "secret,0\n", ""] {
            let bad = parse("m.csv", text, 2).unwrap_err();
            assert!(!bad[0].problem.contains("secret"), "{bad:?}");
        }
    }
}
