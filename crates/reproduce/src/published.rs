//! [`Published`]: the values that a study's paper gives, as its `published.csv` holds them.
//!
//! ```text
//! figure,series,x,metric,kind,value,text
//! fig3,TCP,20,latency_us_p99,about,1246/3.9,"over 300x better at the tail"
//! ```
//!
//! An empty series or x fits any. A value is a number, or a quotient of two that the paper gives. The text
//! quotes the paper, or says how the number was read.

use plimsoll_text::csv::rows;

use crate::row::StudyRow;

/// The form in which the paper gives a value: a number, a bound, or another paper's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PublishedKind {
    /// It is this number, or about this number.
    About,
    /// It is at least this number.
    AtLeast,
    /// It is at most this number.
    AtMost,
    /// The study repeats an experiment of another paper, which has this number.
    Original,
}

/// The published values of a study, read from its `published.csv`.
#[derive(Clone, Default, Debug)]
pub struct Published {
    values: Vec<PublishedValue>,
}

#[derive(Clone, Debug)]
struct PublishedValue {
    /// Figure, series, x and metric.
    of: [String; 4],
    kind: PublishedKind,
    value: f64,
}

const COLUMNS: [&str; 7] = ["figure", "series", "x", "metric", "kind", "value", "text"];

impl PublishedKind {
    const ALL: [(&str, PublishedKind); 4] = [
        ("about", PublishedKind::About),
        ("at least", PublishedKind::AtLeast),
        ("at most", PublishedKind::AtMost),
        ("original", PublishedKind::Original),
    ];

    fn of(name: &str) -> Option<PublishedKind> {
        PublishedKind::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }
}

impl Published {
    /// Reads a table.
    ///
    /// # Errors
    /// Names the line that is wrong, and the allowed values.
    pub fn parse(text: &str) -> Result<Published, String> {
        let mut rows = rows(text, None);
        if rows.next().is_none_or(|header| header.cells() != COLUMNS) {
            return Err(format!("line 1: the columns are not known; allowed: {}", COLUMNS.join(",")));
        }
        let mut values = Vec::new();
        for row in rows {
            let wrong = |what: String| format!("line {}: {what}", row.line);
            let cells = row.cells();
            let [figure, series, x, metric, kind, value, _] = cells[..] else {
                return Err(wrong(format!("{} cells; allowed: {}", cells.len(), COLUMNS.len())));
            };
            let kinds = PublishedKind::ALL.map(|(name, _)| name).join(", ");
            values.push(PublishedValue {
                of: [figure, series, x, metric].map(str::to_owned),
                kind: PublishedKind::of(kind)
                    .ok_or_else(|| wrong(format!("kind `{kind}`; allowed: {kinds}")))?,
                value: number(value).ok_or_else(|| {
                    wrong(format!("value `{value}`; allowed: a number, or a quotient of two numbers"))
                })?,
            });
        }
        Ok(Published { values })
    }

    /// Returns the first value of a kind that the table has for a number.
    pub fn value(
        &self,
        kind: PublishedKind,
        figure: &str,
        series: &str,
        x: &str,
        metric: &str,
    ) -> Option<f64> {
        let is_it = |value: &&PublishedValue| {
            let [of_figure, of_series, of_x, of_metric] = value.of.each_ref().map(String::as_str);
            let is_any_or = |of: &str, is: &str| of.is_empty() || of == is;
            value.kind == kind
                && (of_figure, of_metric) == (figure, metric)
                && is_any_or(of_series, series)
                && is_any_or(of_x, x)
        };
        self.values.iter().find(is_it).map(|value| value.value)
    }

    /// Returns the value of the table for a row, or `None`.
    pub(crate) fn of(&self, kind: PublishedKind, row: &StudyRow) -> Option<f64> {
        self.value(kind, &row.figure, &row.series, &row.x, &row.metric)
    }

    /// Sets a row beside the number and the original's that the table has for it.
    pub(crate) fn beside(&self, row: StudyRow, tolerance: Option<f64>) -> StudyRow {
        let [about, original] =
            [PublishedKind::About, PublishedKind::Original].map(|kind| self.of(kind, &row));
        row.compare(about, original, tolerance)
    }

    /// Returns the figures that the table has values for, each once for each value.
    #[cfg(test)]
    pub(crate) fn figures(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| value.of[0].as_str())
    }
}

/// Reads `3.9` or `1246/3.9`.
fn number(text: &str) -> Option<f64> {
    let (over, under) = text.split_once('/').unwrap_or((text, "1"));
    let value = over.parse::<f64>().ok()? / under.parse::<f64>().ok()?;
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "figure,series,x,metric,kind,value,text\n";

    fn parsed(rows: &str) -> Result<Published, String> {
        Published::parse(&format!("{HEADER}{rows}"))
    }

    #[test]
    fn values_are_found_by_kind_and_an_empty_cell_is_any() {
        let rows =
            "fig3,\"a, b\",1,mean,about,1.5,\nfig3,TCP,,mean,at least,1246/3.9,\"over 300x, they say\"\n";
        let table = parsed(rows).expect("it is a table");
        assert_eq!(table.value(PublishedKind::About, "fig3", "a, b", "1", "mean"), Some(1.5));
        assert_eq!(table.value(PublishedKind::About, "fig3", "a, b", "2", "mean"), None);
        assert_eq!(table.value(PublishedKind::About, "fig3", "TCP", "1", "mean"), None);
        assert_eq!(table.value(PublishedKind::AtLeast, "fig3", "TCP", "7", "mean"), Some(1246.0 / 3.9));
        assert_eq!(table.value(PublishedKind::AtLeast, "fig3", "TCP", "7", "p99"), None);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_what_is_allowed() {
        let error = |rows: &str| parsed(rows).expect_err("it is wrong");
        let columns = Published::parse("scheme,mean\n").expect_err("it is wrong");
        assert_eq!(columns, format!("line 1: the columns are not known; allowed: {}", HEADER.trim()));
        assert_eq!(error("\nfig3,TCP,1,mean,about,1.5\n"), "line 3: 6 cells; allowed: 7");
        let kind = "line 2: kind `near`; allowed: about, at least, at most, original";
        assert_eq!(error("fig3,TCP,1,mean,near,1.5,\n"), kind);
        let value = "line 2: value `1.5/0`; allowed: a number, or a quotient of two numbers";
        assert_eq!(error("fig3,TCP,1,mean,about,1.5/0,\n"), value);
    }
}
