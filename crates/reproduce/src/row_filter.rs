//! [`RowFilter`]: the rows that a tolerance or an explanation of a study is for.

use serde::Deserialize;

use crate::row::StudyRow;

/// The rows that fit every key that is there. A name may begin or end with `*`, for any text.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RowFilter {
    /// The row is of one of these figures.
    pub figure: Option<Vec<String>>,
    /// The row is of one of these schemes.
    pub series: Option<Vec<String>>,
    /// The row is at one of these points.
    pub x: Option<Vec<String>>,
    /// The row is of one of these metrics.
    pub metric: Option<Vec<String>>,
    /// The published value lies so to the numbers of other seeds.
    pub seeds: Option<Seeds>,
}

/// Where the numbers of other seeds lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seeds {
    /// They lie on both sides of the published value.
    AroundPublished,
    /// They are all larger than the published value.
    AbovePublished,
}

impl RowFilter {
    /// Returns whether the filter includes a row.
    pub fn has(&self, row: &StudyRow) -> bool {
        let one_of = |names: &Option<Vec<String>>, is: &str| {
            names.as_ref().is_none_or(|names| names.iter().any(|name| fits(name, is)))
        };
        one_of(&self.figure, &row.figure)
            && one_of(&self.series, &row.series)
            && one_of(&self.x, &row.x)
            && one_of(&self.metric, &row.metric)
            && self.seeds.is_none_or(|seeds| seeds.has(row))
    }
}

impl Seeds {
    fn has(self, row: &StudyRow) -> bool {
        match self {
            Seeds::AroundPublished => row.is_the_draw(),
            Seeds::AbovePublished => {
                row.seeds.zip(row.published).is_some_and(|((low, _), published)| published < low)
            }
        }
    }
}

fn fits(name: &str, is: &str) -> bool {
    match (name.strip_prefix('*'), name.strip_suffix('*')) {
        (Some(_), Some(start)) => start.strip_prefix('*').is_none_or(|middle| is.contains(middle)),
        (Some(end), None) => is.ends_with(end),
        (None, Some(start)) => is.starts_with(start),
        (None, None) => name == is,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_at_an_end() {
        let cases = [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("*_us_*", "queue_us_mean", true),
            ("*_us_*", "queue_ms_mean", false),
            ("*", "", true),
        ];
        for (name, is, expected) in cases {
            assert_eq!(fits(name, is), expected, "{name} {is}");
        }
    }

    #[test]
    fn a_row_fits_every_key_and_any_name_of_it() {
        let mut row = StudyRow::new("fig2", "source", "TCP", "4", "mean", "us");
        let names = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        let filter = RowFilter { figure: names(&["fig1", "fig2"]), x: names(&["4"]), ..RowFilter::default() };
        assert!(filter.has(&row) && RowFilter::default().has(&row));
        assert!(!RowFilter { metric: names(&["p99"]), ..filter.clone() }.has(&row));
        let above = RowFilter { seeds: Some(Seeds::AbovePublished), ..filter.clone() };
        let around = RowFilter { seeds: Some(Seeds::AroundPublished), ..filter };
        assert!(!above.has(&row), "nothing is published");
        (row.seeds, row.published) = (Some((2.0, 3.0)), Some(1.0));
        assert!(above.has(&row) && !around.has(&row));
        row.published = Some(2.5);
        assert!(!above.has(&row) && around.has(&row));
    }
}
