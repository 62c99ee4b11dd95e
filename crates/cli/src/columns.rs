//! The option `--columns`: the form in which a run directory has its tables.

use plimsoll_results::run_dir;

/// The form of a run directory's tables.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ColumnForm {
    /// Text, which everything reads.
    #[default]
    Csv,
    /// Compressed columns, where Plimsoll is built with the feature `parquet`.
    Parquet,
}

impl From<ColumnForm> for run_dir::Columns {
    fn from(columns: ColumnForm) -> run_dir::Columns {
        match columns {
            ColumnForm::Csv => run_dir::Columns::Csv,
            ColumnForm::Parquet => run_dir::Columns::Parquet,
        }
    }
}
