//! Rows of CSV as the columns of a Parquet file, and back to the same text.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::record::Field;
use ::parquet::schema::types::Type;
use plimsoll_text::from_csv_cell;

use super::columns::{ColumnKind, column_kind};
use super::csv::{self, reader};
use super::disk::Writing;
use super::error::Error;

/// Number of rows that are kept before they become a row group.
const ROWS_OF_A_GROUP: usize = 1 << 18;

/// The values of one column that are not written yet.
enum PendingColumn {
    Text(Vec<ByteArray>),
    Integer(PendingValues<i64>),
    Float(PendingValues<f64>),
}

/// Values that are there, and for each row 1 if it has one, else 0.
struct PendingValues<T> {
    values: Vec<T>,
    is_there: Vec<i16>,
}

impl<T> Default for PendingValues<T> {
    fn default() -> PendingValues<T> {
        PendingValues { values: Vec::new(), is_there: Vec::new() }
    }
}

impl<T> PendingValues<T> {
    fn push(&mut self, value: Option<T>) {
        self.is_there.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

/// Writes rows of CSV as a Parquet file.
pub(super) struct Writer<'a> {
    path: PathBuf,
    file: SerializedFileWriter<Writing<'a>>,
    columns: Vec<PendingColumn>,
    rows: usize,
}

impl<'a> Writer<'a> {
    /// Begins a file with the columns of a header.
    pub(super) fn new(writing: Writing<'a>, header: &str) -> Result<Writer<'a>, Error> {
        let path = writing.path().to_owned();
        let names: Vec<String> = reader(header)
            .headers()
            .map_err(|error| damaged(&path, error))?
            .iter()
            .map(|name| from_csv_cell(name).into_owned())
            .collect();
        let io = |error| failed(&path, error);
        let fields =
            names.iter().map(|name| field(name).map(Arc::new)).collect::<Result<Vec<_>, _>>().map_err(io)?;
        let schema = Type::group_type_builder("rows").with_fields(fields).build().map_err(io)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(writing, Arc::new(schema), Arc::new(properties)).map_err(io)?;
        let columns = names.iter().map(|name| PendingColumn::new(column_kind(name))).collect();
        Ok(Writer { path, file, columns, rows: 0 })
    }

    /// Adds whole rows of CSV to the columns.
    pub(super) fn put(&mut self, rows: &str) -> Result<(), Error> {
        for row in csv::rows_without_header(rows) {
            let row = row.map_err(|error| damaged(&self.path, error))?;
            for (column, cell) in self.columns.iter_mut().zip(&row) {
                column.push(cell).map_err(|what| Error::Damaged { path: self.path.clone(), what })?;
            }
            self.rows += 1;
            if self.rows == ROWS_OF_A_GROUP {
                self.end_group()?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Writing<'a>, Error> {
        self.end_group()?;
        self.file.into_inner().map_err(|error| failed(&self.path, error))
    }

    fn end_group(&mut self) -> Result<(), Error> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let columns = &mut self.columns;
        let write = || -> Result<(), ParquetError> {
            let mut group = self.file.next_row_group()?;
            for column in columns {
                let Some(mut writer) = group.next_column()? else { break };
                column.write(&mut writer)?;
                writer.close()?;
            }
            group.close().map(drop)
        };
        write().map_err(|error| failed(&self.path, error))
    }
}

impl PendingColumn {
    fn new(kind: ColumnKind) -> PendingColumn {
        match kind {
            ColumnKind::Text => PendingColumn::Text(Vec::new()),
            ColumnKind::Integer => PendingColumn::Integer(PendingValues::default()),
            ColumnKind::Float => PendingColumn::Float(PendingValues::default()),
        }
    }

    fn push(&mut self, cell: &str) -> Result<(), String> {
        let number = |kind: &str| format!("`{cell}` is no {kind} of a column");
        match self {
            PendingColumn::Text(values) => values.push(from_csv_cell(cell).as_bytes().to_vec().into()),
            _ if cell.is_empty() => match self {
                PendingColumn::Integer(values) => values.push(None),
                PendingColumn::Float(values) => values.push(None),
                PendingColumn::Text(_) => unreachable!("an empty text is a text"),
            },
            PendingColumn::Integer(values) => {
                values.push(Some(cell.parse().map_err(|_| number("signed integer"))?))
            }
            PendingColumn::Float(values) => values.push(Some(cell.parse().map_err(|_| number("number"))?)),
        }
        Ok(())
    }

    /// Writes the values that it has, and forgets them.
    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            PendingColumn::Text(values) => {
                writer.typed::<ByteArrayType>().write_batch(&std::mem::take(values), None, None)?;
            }
            PendingColumn::Integer(values) => put::<Int64Type>(writer, std::mem::take(values))?,
            PendingColumn::Float(values) => put::<DoubleType>(writer, std::mem::take(values))?,
        }
        Ok(())
    }
}

fn put<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    of: PendingValues<T::T>,
) -> Result<(), ParquetError> {
    writer.typed::<T>().write_batch(&of.values, Some(&of.is_there), None).map(drop)
}

fn field(name: &str) -> Result<Type, ParquetError> {
    let (physical, repetition) = match column_kind(name) {
        ColumnKind::Text => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
        ColumnKind::Integer => (Physical::INT64, Repetition::OPTIONAL),
        ColumnKind::Float => (Physical::DOUBLE, Repetition::OPTIONAL),
    };
    let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
    match physical {
        Physical::BYTE_ARRAY => builder.with_converted_type(ConvertedType::UTF8).build(),
        _ => builder.build(),
    }
}

/// Returns the rows of a file as CSV, with their header.
///
/// The library panics at some malicious files whose checksums are right. That is an error where panics unwind, as in
/// the wheel; the command, which is built to abort, ends. See SECURITY.md.
pub(super) fn rows(path: &Path, bytes: Vec<u8>) -> Result<String, Error> {
    let damaged = |_| Err(damaged(path, "its pages are not as long as they say"));
    catch_unwind(AssertUnwindSafe(|| read(path, bytes))).unwrap_or_else(damaged)
}

fn read(path: &Path, bytes: Vec<u8>) -> Result<String, Error> {
    let io = |error| failed(path, error);
    let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(io)?;
    let mut out = csv::Writer::new();
    let schema = file.metadata().file_metadata().schema_descr();
    schema.columns().iter().for_each(|column| out.text(column.name()));
    out.end_row();
    for row in file.get_row_iter(None).map_err(io)? {
        for (name, value) in row.map_err(io)?.get_column_iter() {
            match value {
                Field::Null => out.maybe(None::<u64>),
                Field::Long(number) => out.plain(number),
                Field::Double(number) => out.plain(format_args!("{number:?}")),
                Field::Str(text) => out.text(text),
                other => {
                    let what = format!("its column {name} has {other}");
                    return Err(Error::Damaged { path: path.to_owned(), what });
                }
            }
        }
        out.end_row();
    }
    Ok(out.take_text())
}

fn failed(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::io("write", path, *source),
            Err(other) => Error::Damaged { path: path.to_owned(), what: other.to_string() },
        },
        other => Error::Damaged { path: path.to_owned(), what: other.to_string() },
    }
}

fn damaged(path: &Path, error: impl ToString) -> Error {
    Error::Damaged { path: path.to_owned(), what: error.to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    fn there_and_back(header: &str, text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        let mut writer = Writer::new(Writing::create(&path).unwrap(), header).unwrap();
        writer.put(text).unwrap();
        writer.finish().unwrap().finish().unwrap();
        rows(&path, std::fs::read(&path).unwrap()).unwrap()
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let header = "variant,replicate,\"a,b.c\",workload,index,completed_ps,mean_bytes\n";
        let text = "\'=x,0,0.5,\"say \"\"hi\"\"\",3,,1.0\nDCTCP,1,20%,\\u{1b},9223372036854775807,5,\n,2,,,0,0,0.1\n";
        assert_eq!(there_and_back(header, text), format!("{header}{text}"));
    }

    #[test]
    fn many_rows_are_several_groups() {
        let text: String = (0..ROWS_OF_A_GROUP + 3).map(|row| format!("TCP,{row}\n")).collect();
        assert!(there_and_back("variant,replicate\n", &text) == format!("variant,replicate\n{text}"));
    }

    #[test]
    fn what_is_no_parquet_is_damaged() {
        for bytes in [
            Vec::new(),
            vec![0; 100],
            b"PAR1PAR1".to_vec(),
            [b"PAR1".as_slice(), &[255; 64], b"PAR1"].concat(),
        ] {
            assert!(matches!(rows(Path::new("x.parquet"), bytes), Err(Error::Damaged { .. })));
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_or_other_rows() {
        let header = "variant,replicate,workload,index,completed_ps,mean_bytes\n";
        let text: String =
            (0..50).map(|row| format!("TCP,0,w{},{row},{},{}.5\n", row % 3, row * 1000, row)).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        let mut writer = Writer::new(Writing::create(&path).unwrap(), header).unwrap();
        writer.put(&text).unwrap();
        writer.finish().unwrap().finish().unwrap();
        let whole = std::fs::read(&path).unwrap();
        let (mut errors, mut others) = (0, 0);
        for at in 0..whole.len() {
            for change in [1, 0x10, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                match rows(&path, bytes) {
                    Ok(read) => others += usize::from(read != format!("{header}{text}")),
                    Err(_) => errors += 1,
                }
            }
            let _ = rows(&path, whole[..at].to_vec());
        }
        assert!(errors > 100 && others > 10, "{errors} errors and {others} other texts");
    }

    #[test]
    fn a_number_that_no_column_holds_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        let mut writer = Writer::new(Writing::create(&path).unwrap(), "index\n").unwrap();
        let error = writer.put("18446744073709551615\n").unwrap_err().to_string();
        assert!(error.ends_with("`18446744073709551615` is no signed integer of a column"), "{error}");
    }
}
