//! [`Error`]: why a run directory could not be written or read.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::free_bytes;
use super::manifest::MANIFEST;

/// Reasons why a run directory could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation that failed: `read`, `write`, ...
        action: &'static str,
        /// The path of the file or folder.
        path: PathBuf,
        /// The reason of the operating system.
        source: io::Error,
    },
    /// The disk has too little room.
    #[error(
        "no room on the disk of {}: {free} bytes free, {needed} wanted. Free some space or choose \
         another place with `--out`; what is finished is kept, and the same command goes on from there",
        path.display()
    )]
    NoRoom {
        /// The path of the run directory.
        path: PathBuf,
        /// The number of free bytes.
        free: u64,
        /// The number of bytes that are needed.
        needed: u64,
    },
    /// There is a run already.
    #[error(
        "{} holds a run already; go on with it by `--resume`, or choose another place with `--out`",
        path.display()
    )]
    Exists {
        /// The path of the run directory.
        path: PathBuf,
    },
    /// The folder holds something that is not a run.
    #[error("{} is neither empty nor a run directory; choose another place with `--out`", path.display())]
    Foreign {
        /// The path of the folder.
        path: PathBuf,
    },
    /// The folder holds no run.
    #[error("{} is not a run directory: it has no {MANIFEST}", path.display())]
    NoRun {
        /// The path of the folder.
        path: PathBuf,
    },
    /// The runs cannot be merged.
    #[error("{} cannot be gone on with: {why}", path.display())]
    Conflict {
        /// The other run directory.
        path: PathBuf,
        /// The setting that differs.
        why: String,
    },
    /// Another process writes here.
    #[error("another plimsoll is writing to {}; wait for it or choose another place with `--out`", path.display())]
    Busy {
        /// The path of the run directory.
        path: PathBuf,
    },
    /// Records have, or are to have, a format that this build does not support.
    #[error(
        "{}this plimsoll is built without Parquet; write `--columns csv`, or build it with the feature `parquet`: \
         cargo build --release -p plimsoll-cli --features parquet",
        path.as_ref().map_or_else(String::new, |path| format!("cannot read {}: ", path.display()))
    )]
    NoParquet {
        /// The path of the file, if one was to be read.
        path: Option<PathBuf>,
    },
    /// A file ends too early, or is missing: the effect of a power cut.
    #[error("{} is cut short: {what}", path.display())]
    Cut {
        /// The path of the file.
        path: PathBuf,
        /// The entry that is missing.
        what: String,
    },
    /// A file has wrong contents.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The path of the file or folder.
        path: PathBuf,
        /// The reason why it is damaged.
        what: String,
    },
}

impl Error {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::StorageFull {
            let free = free_bytes(path).unwrap_or(0);
            return Error::NoRoom { path: path.to_owned(), free, needed: free.saturating_add(1) };
        }
        Error::Io { action, path: path.to_owned(), source }
    }
}
