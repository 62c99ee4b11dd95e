//! [`Columns`]: the form of the files that records are kept in.

use std::borrow::Cow;

/// The form in which the records of new points are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Columns {
    /// Rows of text, which everything reads.
    #[default]
    Csv,
    /// Compressed columns that name their types, a quarter as large.
    Parquet,
}

impl Columns {
    /// The forms that this build can write: Parquet only with the feature `parquet`.
    pub const HERE: &[Columns] =
        if cfg!(feature = "parquet") { &[Columns::Csv, Columns::Parquet] } else { &[Columns::Csv] };

    /// Returns the name of the file for the records of `csv`.
    pub(super) fn file(self, csv: &'static str) -> Cow<'static, str> {
        match self {
            Columns::Csv => Cow::Borrowed(csv),
            Columns::Parquet => Cow::Owned(csv.replace(".csv", PARQUET)),
        }
    }
}

pub(super) const PARQUET: &str = ".parquet";
