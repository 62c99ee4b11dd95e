//! Tables and numbers as Markdown.

use plimsoll_process::outln;

/// A table that can be read as it is, too.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns an empty table with these columns; the first is flush left, the others flush right.
    pub fn new(columns: &[&str]) -> Table {
        Table { rows: vec![columns.iter().map(|&column| column.to_owned()).collect()] }
    }

    /// Appends a row of these cells.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints it, with an empty line behind.
    pub fn print(&self) {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0).max(3)).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            outln!("| {} |", cells.join(" | "));
            if index == 0 {
                let rules = widths.iter().enumerate().map(|(column, &width)| match column {
                    0 => "-".repeat(width),
                    _ => format!("{}:", "-".repeat(width - 1)),
                });
                outln!("| {} |", rules.collect::<Vec<_>>().join(" | "));
            }
        }
        outln!();
    }
}

/// Returns the middle value, or the mean of the middle two.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

/// Formats a number with three significant digits.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        x if x >= 100.0 => 0,
        x if x >= 10.0 => 1,
        x if x >= 1.0 || x == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// Formats a number of bytes in mebibytes.
pub fn mebibytes(bytes: f64) -> String {
    format!("{} MiB", number(bytes / f64::from(1 << 20)))
}

/// Formats a rate in millions a second.
pub fn millions(value: f64) -> String {
    format!("{} M", number(value / 1e6))
}

/// Formats a ratio: `x 98`.
pub fn ratio(value: f64) -> String {
    format!("x {}", number(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
    }

    #[test]
    fn three_digits() {
        assert_eq!([0.0, 0.0456, 1.234, 12.34, 123.4].map(number), ["0.00", "0.046", "1.23", "12.3", "123"]);
    }
}
