//! The files that records are kept in: CSV, or Parquet, which is another form of the same rows.
//!
//! ```text
//! record ──> row of CSV ──┬──> FILE.csv
//!                         └──> columns of one type ──> FILE.parquet ──> row of CSV ──> record
//! ```
//!
//! Parquet is a feature of the build, `parquet`; without it, such files are neither written nor read.

use super::disk::{FileIdentity, Writing};
use super::error::Error;
use super::table_form::Columns;

/// Writes the rows of one kind of record to its file, in the form that was chosen.
pub(super) enum TableWriter<'a> {
    Csv(Writing<'a>),
    #[cfg(feature = "parquet")]
    Parquet(super::parquet::Writer<'a>),
}

impl<'a> TableWriter<'a> {
    /// Begins a file with this header, which ends in a line break.
    pub(super) fn new(
        mut writing: Writing<'a>,
        columns: Columns,
        header: &str,
    ) -> Result<TableWriter<'a>, Error> {
        match columns {
            Columns::Csv => {
                writing.put(header.as_bytes())?;
                Ok(TableWriter::Csv(writing))
            }
            #[cfg(feature = "parquet")]
            Columns::Parquet => Ok(TableWriter::Parquet(super::parquet::Writer::new(writing, header)?)),
            #[cfg(not(feature = "parquet"))]
            Columns::Parquet => Err(Error::NoParquet { path: None }),
        }
    }

    /// Adds whole rows of CSV to the file.
    pub(super) fn put(&mut self, rows: &str) -> Result<(), Error> {
        match self {
            TableWriter::Csv(writing) => writing.put(rows.as_bytes()),
            #[cfg(feature = "parquet")]
            TableWriter::Parquet(writer) => writer.put(rows),
        }
    }

    pub(super) fn finish(self) -> Result<FileIdentity, Error> {
        match self {
            TableWriter::Csv(writing) => writing.finish(),
            #[cfg(feature = "parquet")]
            TableWriter::Parquet(writer) => writer.finish()?.finish(),
        }
    }
}

/// Returns the rows of a file as CSV, with their header.
pub(super) fn rows(path: &std::path::Path, bytes: Vec<u8>) -> Result<String, Error> {
    if path.extension().is_some_and(|extension| extension == "parquet") {
        #[cfg(feature = "parquet")]
        return super::parquet::rows(path, bytes);
        #[cfg(not(feature = "parquet"))]
        return Err(Error::NoParquet { path: Some(path.to_owned()) });
    }
    String::from_utf8(bytes)
        .map_err(|_| Error::Damaged { path: path.to_owned(), what: "it is no text".to_owned() })
}
