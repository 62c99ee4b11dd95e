//! [`Folder`]: state that a privileged program believes when it finds it again, and that nobody else may have written.
//!
//! What is in such a folder names things to remove and settings to write. So it is believed only where nobody but its
//! owner (this user, or root) could have put it there:
//!
//! ```text
//! /            every folder on the way: root's or this user's, and no other's to write in, but for sticky ones such as /tmp
//! /run
//! /run/plimsoll         made here: mode 700, whatever the umask
//!   plan.json           made here: mode 600; a regular file with one name
//! ```
//!
//! Every step is from an open folder to what is in it (`openat`), and no symbolic link is ever followed, so that what
//! was looked at is what is used. Names are single parts of a path.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// An open folder that is its owner's alone.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder at `path`, which is absolute; it and those above it are made where they are missing, with
    /// mode 700.
    ///
    /// # Errors
    /// If others could have had a hand in it, which says how, or the system refuses.
    pub fn make(path: &Path) -> io::Result<Folder> {
        Folder::walk(path, true)
    }

    /// Opens the folder at `path`; none if there is none.
    ///
    /// # Errors
    /// As [`Folder::make`].
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
            return Err(refused(path, "it is no absolute path without `.` and `..`"));
        };
        if !root {
            return Err(refused(path, "it is no absolute path without `.` and `..`"));
        }
        let descriptor = rustix::fs::open("/", ABOVE, Mode::empty())?;
        let mut above = Folder { descriptor, path: PathBuf::from("/") };
        for name in names {
            above = above.below(name, makes, ABOVE)?;
            above.check_way()?;
        }
        above.own(last, makes)
    }

    /// The folder `name` in this one, made where it is missing.
    ///
    /// # Errors
    /// As [`Folder::make`].
    pub fn folder(&self, name: &str) -> io::Result<Folder> {
        self.own(name, true)
    }

    /// The folder `name` in this one; none if there is none.
    ///
    /// # Errors
    /// As [`Folder::make`].
    pub fn find(&self, name: &str) -> io::Result<Option<Folder>> {
        there(self.own(name, false))
    }

    /// Where it is, for people.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of all that is in it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            // Another's name is none of ours.
            if let Ok(name) = entry?.file_name().to_str()
                && ![".", ".."].contains(&name)
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Whether there is anything of this name.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn has(&self, name: &str) -> io::Result<bool> {
        let found = rustix::fs::statat(&self.descriptor, part(name)?, AtFlags::SYMLINK_NOFOLLOW);
        Ok(there(found.map_err(io::Error::from))?.is_some())
    }

    /// Opens the file `name` as `flags` say ([`OFlags::CREATE`] among them); none if there is none. It ends up with
    /// mode 600.
    ///
    /// # Errors
    /// As [`Folder::make`], also of what is no regular file, or has a second name.
    pub fn file(&self, name: &str, flags: OFlags) -> io::Result<Option<File>> {
        // Whoever plants a pipe has nobody wait for it.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let path = self.path.join(name);
        let opened = openat(&self.descriptor, part(name)?, flags, Mode::RUSR | Mode::WUSR);
        let opened = opened.map_err(|error| explained(&path, error));
        let Some(descriptor) = there(opened)? else { return Ok(None) };
        let about = fstat(&descriptor)?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile || about.st_nlink > 1 {
            return Err(refused(&path, "it is no regular file with one name"));
        }
        is_own(&path, &about)?;
        close_to_others(&descriptor, &about, Mode::RUSR | Mode::WUSR);
        Ok(Some(File::from(descriptor)))
    }

    /// All of the file `name`; none if there is none.
    ///
    /// # Errors
    /// As [`Folder::file`], and if it is longer than `most` bytes.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.file(name, OFlags::RDONLY)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(refused(&self.path.join(name), &format!("it is longer than {most} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Writes the file `name`, which is not there yet, and has it on the disk.
    ///
    /// # Errors
    /// As [`Folder::file`].
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = self.file(name, flags)?.ok_or(io::ErrorKind::NotFound)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Gives `from` the name `to`, in place of what has it, and has that on the disk.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        rustix::fs::renameat(&self.descriptor, part(from)?, &self.descriptor, part(to)?)?;
        self.descriptor_to_read()?.sync_all()
    }

    /// Removes the file `name`, a link itself and not what it leads to. None is no error.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        there(unlinkat(&self.descriptor, part(name)?, AtFlags::empty()).map_err(io::Error::from)).map(drop)
    }

    /// Removes the empty folder `name`. None is no error.
    ///
    /// # Errors
    /// If the system refuses, as where something is in it.
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
                // Somebody else may have been quicker.
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

    /// Of a folder on the way only the way matters: nobody else can put another in its place.
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

/// A name that is one part of a path.
fn part(name: &str) -> io::Result<&str> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(name),
        _ => Err(refused(Path::new(name), "it is no name of a file")),
    }
}

/// That the folder or file is this user's or root's, and nobody else may write it.
fn is_own(path: &Path, about: &Stat) -> io::Result<()> {
    is_owned(path, about)?;
    let mode = Mode::from_raw_mode(about.st_mode);
    if mode.intersects(Mode::WGRP | Mode::WOTH) {
        let why = format!(
            "others than its owner can write it (mode {:o}), so that what is there may be anybody's; look at it, and remove \
             it or take that right away (chmod go-w)",
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

/// Takes rights from others that it need not have, where this user may.
fn close_to_others(descriptor: &OwnedFd, about: &Stat, mode: Mode) {
    if Mode::from_raw_mode(about.st_mode) != mode {
        let _ = fchmod(descriptor, mode);
    }
}

fn explained(path: &Path, error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::NOTDIR => refused(
            path,
            "it is a symbolic link or of another kind than it should be; look at it, and remove it",
        ),
        error => io::Error::from(error),
    }
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::other(format!("{} is not trusted: {why}", path.display()))
}

/// None of what is not there.
fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

#[cfg(test)]
mod tests;
