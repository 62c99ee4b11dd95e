//! [`Folder`] holds state that a privileged program trusts when it reads it again, and that no other user may have
//! written.
//!
//! The files in such a folder name resources to remove and settings to write. They are trusted only if no user except
//! the owner (this user, or root) could have written them:
//!
//! ```text
//! /            each ancestor: owned by root or this user, writable by no other, except sticky ones such as /tmp
//! /run
//! /run/plimsoll         created here: mode 700, whatever the umask
//!   plan.json           created here: mode 600; a regular file with one hard link
//! ```
//!
//! Every step goes from an open folder to an entry in it (`openat`), and no symbolic link is followed, so that the
//! entry that was checked is the one that is used. Names are single components of a path.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// An open folder that only its owner can write.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder at the absolute path `path`; it and its ancestors are created with mode 700 where they are
    /// missing.
    ///
    /// # Errors
    /// Returns an error that names the reason if others could have written to it, and any error of the system.
    pub fn make(path: &Path) -> io::Result<Folder> {
        Folder::walk(path, true)
    }

    /// Opens the folder at `path`; returns none if it does not exist.
    ///
    /// # Errors
    /// Returns the errors of [`Folder::make`].
    pub fn open(path: &Path) -> io::Result<Option<Folder>> {
        there(Folder::walk(path, false))
    }

    fn walk(path: &Path, makes: bool) -> io::Result<Folder> {
        let mut parts = path.components();
        let root = parts.next() == Some(Component::RootDir);
        let names: Option<Vec<&str>> = parts
            .map(|part| match part {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        let Some((names, last)) = names.as_deref().and_then(<[_]>::split_last).map(|(last, all)| (all, last))
        else {
            return Err(refused(path, "expected an absolute path without `.` and `..`"));
        };
        if !root {
            return Err(refused(path, "expected an absolute path without `.` and `..`"));
        }
        let descriptor = rustix::fs::open("/", ABOVE, Mode::empty())?;
        let mut above = Folder { descriptor, path: PathBuf::from("/") };
        for name in names {
            above = above.below(name, makes, ABOVE)?;
            above.check_way()?;
        }
        above.own(last, makes)
    }

    /// Opens the folder `name` in this one, and creates it where it is missing.
    ///
    /// # Errors
    /// Returns the errors of [`Folder::make`].
    pub fn folder(&self, name: &str) -> io::Result<Folder> {
        self.own(name, true)
    }

    /// Opens the folder `name` in this one; returns none if it does not exist.
    ///
    /// # Errors
    /// Returns the errors of [`Folder::make`].
    pub fn find(&self, name: &str) -> io::Result<Option<Folder>> {
        there(self.own(name, false))
    }

    /// Returns the folder's path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of all entries.
    ///
    /// # Errors
    /// Returns any error of the system.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            // Names that are not UTF-8 are not written by this program.
            if let Ok(name) = entry?.file_name().to_str()
                && ![".", ".."].contains(&name)
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Returns whether an entry of this name exists.
    ///
    /// # Errors
    /// Returns any error of the system.
    pub fn has(&self, name: &str) -> io::Result<bool> {
        let found = rustix::fs::statat(&self.descriptor, part(name)?, AtFlags::SYMLINK_NOFOLLOW);
        Ok(there(found.map_err(io::Error::from))?.is_some())
    }

    /// Opens the file `name` with `flags`, which may include [`OFlags::CREATE`]; returns none if it does not exist. Its
    /// mode becomes 600.
    ///
    /// # Errors
    /// Returns the errors of [`Folder::make`], and an error if the entry is not a regular file or has a second hard
    /// link.
    pub fn file(&self, name: &str, flags: OFlags) -> io::Result<Option<File>> {
        // Without blocking, opening a planted named pipe cannot make this program wait.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let path = self.path.join(name);
        let opened = openat(&self.descriptor, part(name)?, flags, Mode::RUSR | Mode::WUSR);
        let opened = opened.map_err(|error| explained(&path, error));
        let Some(descriptor) = there(opened)? else { return Ok(None) };
        let about = fstat(&descriptor)?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile || about.st_nlink > 1 {
            return Err(refused(&path, "expected a regular file with one hard link"));
        }
        is_own(&path, &about)?;
        close_to_others(&descriptor, &about, Mode::RUSR | Mode::WUSR);
        Ok(Some(File::from(descriptor)))
    }

    /// Reads the whole file `name`; returns none if it does not exist.
    ///
    /// # Errors
    /// Returns the errors of [`Folder::file`], and an error if the file is longer than `most` bytes.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.file(name, OFlags::RDONLY)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(refused(&self.path.join(name), &format!("it is longer than {most} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Creates the file `name`, which must not exist, and syncs it to the disk.
    ///
    /// # Errors
    /// Returns the errors of [`Folder::file`].
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = self.file(name, flags)?.ok_or(io::ErrorKind::NotFound)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Renames `from` to `to`, replaces any file of that name, and syncs the folder to the disk.
    ///
    /// # Errors
    /// Returns any error of the system.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        rustix::fs::renameat(&self.descriptor, part(from)?, &self.descriptor, part(to)?)?;
        self.descriptor_to_read()?.sync_all()
    }

    /// Removes the file `name`; a symbolic link is removed itself. A missing file is not an error.
    ///
    /// # Errors
    /// Returns any error of the system.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        there(unlinkat(&self.descriptor, part(name)?, AtFlags::empty()).map_err(io::Error::from)).map(drop)
    }

    /// Removes the empty folder `name`. A missing folder is not an error.
    ///
    /// # Errors
    /// Returns any error of the system, as where the folder is not empty.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        there(unlinkat(&self.descriptor, part(name)?, AtFlags::REMOVEDIR).map_err(io::Error::from)).map(drop)
    }

    fn own(&self, name: &str, makes: bool) -> io::Result<Folder> {
        let found = self.below(name, makes, OFlags::RDONLY)?;
        let about = fstat(&found.descriptor)?;
        is_own(&found.path, &about)?;
        close_to_others(&found.descriptor, &about, Mode::RWXU);
        Ok(found)
    }

    fn below(&self, name: &str, makes: bool, flags: OFlags) -> io::Result<Folder> {
        let path = self.path.join(name);
        let open =
            || openat(&self.descriptor, part(name)?, flags | FOLDER, Mode::empty()).map_err(Into::into);
        let mut opened: Result<OwnedFd, Refused> = open();
        if makes && matches!(opened, Err(Refused::System(Errno::NOENT))) {
            match mkdirat(&self.descriptor, name, Mode::RWXU) {
                // Another process may have created it in the meantime.
                Ok(()) | Err(Errno::EXIST) => opened = open(),
                Err(error) => return Err(explained(&path, error)),
            }
        }
        match opened {
            Ok(descriptor) => Ok(Folder { descriptor, path }),
            Err(Refused::System(error)) => Err(explained(&path, error)),
            Err(Refused::Name(error)) => Err(error),
        }
    }

    /// Checks an ancestor: no other user may be able to replace the next component of the path.
    fn check_way(&self) -> io::Result<()> {
        let about = fstat(&self.descriptor)?;
        let mode = Mode::from_raw_mode(about.st_mode);
        if mode.contains(Mode::SVTX) {
            return is_owned(&self.path, &about);
        }
        is_own(&self.path, &about)
    }

    fn descriptor_to_read(&self) -> io::Result<File> {
        Ok(File::from(self.descriptor.as_fd().try_clone_to_owned()?))
    }
}

enum Refused {
    System(Errno),
    Name(io::Error),
}

impl From<Errno> for Refused {
    fn from(error: Errno) -> Refused {
        Refused::System(error)
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Name(error)
    }
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const ABOVE: OFlags = OFlags::PATH.union(FOLDER);

/// Returns the name if it is a single component of a path.
fn part(name: &str) -> io::Result<&str> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(name),
        _ => Err(refused(Path::new(name), "expected the name of a file")),
    }
}

/// Checks that the folder or file belongs to this user or root, and that no other user may write it.
fn is_own(path: &Path, about: &Stat) -> io::Result<()> {
    is_owned(path, about)?;
    let mode = Mode::from_raw_mode(about.st_mode);
    if mode.intersects(Mode::WGRP | Mode::WOTH) {
        let why = format!(
            "others than its owner may write it (mode {:o}), so its content cannot be trusted; look at it, and \
                         remove it or that permission (chmod go-w)",
            mode.bits() & 0o7777
        );
        return Err(refused(path, &why));
    }
    Ok(())
}

fn is_owned(path: &Path, about: &Stat) -> io::Result<()> {
    let own = geteuid().as_raw();
    match about.st_uid {
        0 => Ok(()),
        owner if owner == own => Ok(()),
        owner => {
            Err(refused(path, &format!("it belongs to user {owner}; look at what is there, and remove it")))
        }
    }
}

/// Removes permissions of others that they do not need, where this user may.
fn close_to_others(descriptor: &OwnedFd, about: &Stat, mode: Mode) {
    if Mode::from_raw_mode(about.st_mode) != mode {
        let _ = fchmod(descriptor, mode);
    }
}

fn explained(path: &Path, error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::NOTDIR => refused(
            path,
            "it is a symbolic link or another unexpected kind of file; look at it, and remove it",
        ),
        error => io::Error::from(error),
    }
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::other(format!("{} is not trusted: {why}", path.display()))
}

/// Turns the error 'not found' into none.
fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

#[cfg(test)]
mod tests;
