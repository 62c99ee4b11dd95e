//! Opens files that others may have made; no crate opens one of them in another way.
//!
//! A run directory, a journal or a scenario may come from a stranger. A named pipe in place of a file would make its
//! reader wait forever, `/dev/zero` would fill the memory, and a symbolic link would let the reader show, or the writer
//! overwrite, a file elsewhere. [`open`] rejects them before anything is read:
//!
//! | [`Origin`] | regular file | symbolic link | pipe | directory, device, socket |
//! |---|---|---|---|---|
//! | `Folder` | yes | no | no | no |
//! | `Name` | yes | yes, to a regular file | no | no |
//! | `Argument` | yes | yes | yes: `<(...)`, `/dev/stdin` | no |
//!
//! Only the last component of a path is checked: its folders are where the user has sent the program. For a folder
//! inside a stranger's folder there is [`check_folder`]. [`read`] and [`read_text`] are for whole files, whose size has
//! a limit. Folders that a privileged program trusts need more
//! (`plimsoll-process`); files below `/proc` and `/sys` are the kernel's, and opened directly.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// The origin of a file's path, which decides the kinds of entries that it may name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// An entry of a folder whose content another user may have made, such as a run directory.
    Folder,
    /// A name in a command line or in another file.
    Name,
    /// A name in a command line, in whose place a shell may put a pipe. Opening a named pipe waits for its writer.
    Argument,
}

/// Opens the file at `path` with `options`, which may create it.
///
/// # Errors
/// Returns an error if the file is of a kind that its origin does not allow, and any error of the system.
pub fn open(path: &Path, origin: Origin, options: &mut OpenOptions) -> io::Result<File> {
    open_with(path, origin, options, true)
}

/// Opens the file at `path` for reading, and does not wait for the writer of a pipe. Before each read the caller polls
/// the file: without data the read of a pipe fails, and without a writer the pipe seems to be at its end.
///
/// # Errors
/// Returns the errors of [`open`].
pub fn open_to_poll(path: &Path, origin: Origin) -> io::Result<File> {
    open_with(path, origin, File::options().read(true), false)
}

fn open_with(path: &Path, origin: Origin, options: &mut OpenOptions, waits: bool) -> io::Result<File> {
    // A device may act when it is opened, so the entry is examined before.
    let found = match origin {
        Origin::Folder => fs::symlink_metadata(path),
        Origin::Name | Origin::Argument => fs::metadata(path),
    };
    let is_waited_for = match found {
        Ok(about) => {
            check(about.file_type(), origin)?;
            waits && !about.is_file()
        }
        // The system explains better why it does not open the file, or creates it.
        Err(_) => false,
    };
    restrict(options, origin, is_waited_for);
    let file = options.open(path)?;
    // Another entry may have taken its place since.
    check(file.metadata()?.file_type(), origin)?;
    Ok(file)
}

/// Checks that the entry at `path`, in a folder whose content another user may have made, is a folder itself and not a
/// symbolic link to one. A missing entry is left to the caller, who creates it or reports it.
///
/// # Errors
/// Returns an error if the entry is something else, and any error of the system.
pub fn check_folder(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(about) if about.is_symlink() => Err(rejected("it is no folder but a symbolic link".to_owned())),
        Ok(_) => Err(rejected("it is no folder".to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens the file at `path` for reading.
///
/// # Errors
/// Returns the errors of [`open`].
pub fn open_to_read(path: &Path, origin: Origin) -> io::Result<File> {
    open(path, origin, File::options().read(true))
}

/// Creates the file at `path` or empties it.
///
/// # Errors
/// Returns the errors of [`open`].
pub fn create(path: &Path, origin: Origin) -> io::Result<File> {
    open(path, origin, File::options().write(true).create(true).truncate(true))
}

/// Reads the whole file at `path`, which has at most `bytes_max` bytes.
///
/// # Errors
/// Returns the errors of [`open`], and an error if the file is larger.
pub fn read(path: &Path, origin: Origin, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_to_read(path, origin)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= bytes_max {
        // One byte more, so that the read that finds the end needs no more memory.
        bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1))?;
        // A pipe has no length, and a file may grow while it is read.
        file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if length.max(bytes.len() as u64) > bytes_max {
        let most = match (bytes_max >> 20, bytes_max % (1 << 20)) {
            (mebibytes, 0) => format!("{mebibytes} MiB"),
            _ => format!("{bytes_max} bytes"),
        };
        return Err(rejected(format!("it has more than {most}")));
    }
    Ok(bytes)
}

/// Reads the whole text file at `path`, which has at most `bytes_max` bytes.
///
/// # Errors
/// Returns the errors of [`read`], and an error if the file is not text in UTF-8.
pub fn read_text(path: &Path, origin: Origin, bytes_max: u64) -> io::Result<String> {
    let bytes = read(path, origin, bytes_max)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8"))
}

/// Returns an error if a file of this kind is not allowed.
fn check(kind: FileType, origin: Origin) -> io::Result<()> {
    let why = if kind.is_file() || origin == Origin::Argument && is_pipe(kind) {
        return Ok(());
    } else if kind.is_dir() {
        "it is no regular file but a directory"
    } else if kind.is_symlink() {
        "it is no regular file but a symbolic link"
    } else if is_pipe(kind) {
        "it is no regular file but a pipe"
    } else {
        "it is no regular file"
    };
    Err(rejected(why.to_owned()))
}

fn rejected(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(unix)]
fn is_pipe(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: FileType) -> bool {
    false
}

/// Keeps the system from following a link, and from waiting for the other end of a pipe or device. The standard
/// library closes the file in programs that are started.
#[cfg(unix)]
fn restrict(options: &mut OpenOptions, origin: Origin, is_waited_for: bool) {
    use rustix::fs::OFlags;
    let mut flags = OFlags::empty();
    flags.set(OFlags::NOFOLLOW, origin == Origin::Folder);
    flags.set(OFlags::NONBLOCK, !is_waited_for);
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits().cast_signed());
}

#[cfg(not(unix))]
fn restrict(_: &mut OpenOptions, _: Origin, _: bool) {}

#[cfg(test)]
mod tests;
