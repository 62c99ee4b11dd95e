//! Writing that survives a power cut: data reported as finished is on the disk, not only in its cache.
//!
//! A file system may reorder writes. So a file's bytes are forced to the disk before the file gets its final name, the
//! folder that lists the file after that, and the folder in which the name changed last. Where a crash comes between
//! two of these steps, either the old state is there or the new one, never half of either.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use plimsoll_files::Origin;

use super::error::Error;
use crate::digest::{Checksum, Digest};

/// Identity of a file: its length and a checksum of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileIdentity {
    pub(super) bytes: u64,
    pub(super) checksum: Digest,
}

/// Writes a file in pieces and forces it to the disk.
pub(super) struct Writing<'a> {
    path: &'a Path,
    file: BufWriter<File>,
    bytes: u64,
    checksum: Checksum,
}

impl<'a> Writing<'a> {
    pub(super) fn create(path: &'a Path) -> Result<Writing<'a>, Error> {
        let file = plimsoll_files::create(path, Origin::Folder)
            .map_err(|source| Error::io("write", path, source))?;
        Ok(Writing { path, file: BufWriter::new(file), bytes: 0, checksum: Checksum::default() })
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.write_all(bytes).map_err(|source| Error::io("write", self.path, source))
    }

    /// The path of the file.
    #[cfg(feature = "parquet")]
    pub(super) fn path(&self) -> &'a Path {
        self.path
    }

    pub(super) fn finish(self) -> Result<FileIdentity, Error> {
        let Writing { path, file, bytes, checksum } = self;
        let io = |source| Error::io("write", path, source);
        let file = file.into_inner().map_err(|error| io(error.into_error()))?;
        file.sync_all().map_err(io)?;
        note(Step::SyncFile, path);
        Ok(FileIdentity { bytes, checksum: checksum.finish() })
    }
}

impl Write for Writing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        self.checksum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file and forces it to the disk.
pub(super) fn write(path: &Path, text: &str) -> Result<FileIdentity, Error> {
    let mut writing = Writing::create(path)?;
    writing.put(text.as_bytes())?;
    writing.finish()
}

/// Forces the list of a folder's entries to the disk.
pub(super) fn sync_folder(path: &Path) -> Result<(), Error> {
    // Some systems cannot open folders, and some network file systems cannot force them.
    if let Ok(folder) = File::open(path) {
        match folder.sync_all() {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {}
            synced => synced.map_err(|source| Error::io("write", path, source))?,
        }
    }
    note(Step::SyncFolder, path);
    Ok(())
}

/// Gives a file or folder that is on the disk its final name, for good.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(|source| Error::io("rename", from, source))?;
    note(Step::Rename, to);
    to.parent().map_or(Ok(()), sync_folder)
}

/// A completed step, for tests of their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    SyncFile,
    SyncFolder,
    Rename,
}

/// Returns the free bytes of the disk that holds `path`, where the system reports them.
pub(super) fn free_bytes(path: &Path) -> Option<u64> {
    let place = path.ancestors().find(|place| place.exists())?;
    let stat = rustix::fs::statvfs(place).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

#[cfg(test)]
thread_local! {
    /// The steps of this thread.
    pub(super) static STEPS: std::cell::RefCell<Vec<(Step, std::path::PathBuf)>> =
        const { std::cell::RefCell::new(Vec::new()) };
}

fn note(step: Step, path: &Path) {
    #[cfg(test)]
    STEPS.with_borrow_mut(|steps| steps.push((step, path.to_owned())));
    #[cfg(not(test))]
    let _ = (step, path);
}
