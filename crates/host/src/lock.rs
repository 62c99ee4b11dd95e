//! [`HostLock`]: one process at a time changes the host.

use std::fs::File;
#[cfg(feature = "kernel")]
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use plimsoll_process::Folder;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::Error;
use crate::folders::StateFolders;

/// Excludes all other processes from changing the host, until dropped.
#[derive(Debug)]
pub struct HostLock {
    folders: StateFolders,
    #[cfg_attr(not(feature = "kernel"), expect(dead_code, reason = "what is locked is held, not used"))]
    file: File,
}

impl HostLock {
    /// Waits until no other process changes the host, as long as `goes_on`, which is called every 20 ms, returns true.
    /// No change of others falls between the planning and the changes that are made under the lock: a program that a
    /// process started for a change keeps the lock even when that process has been killed. Only root can hold the lock.
    ///
    /// # Errors
    /// Returns an error if this process may not lock, or [`Error::Busy`] when `goes_on` ended the wait.
    pub fn acquire(folders: &StateFolders, goes_on: &mut dyn FnMut() -> bool) -> Result<HostLock, Error> {
        let doing = || Error::doing_as_root(format!("locking {}", folders.state.display()));
        let state = Folder::make(&folders.state).map_err(doing())?;
        // A process that can open the lock can block all others.
        let file = state.file(".lock", OFlags::WRONLY | OFlags::CREATE).map_err(doing())?;
        let file = file.ok_or_else(|| doing()(std::io::ErrorKind::NotFound.into()))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(HostLock { folders: folders.clone(), file }),
                Err(Errno::WOULDBLOCK) if goes_on() => thread::sleep(LOOK_AGAIN),
                Err(Errno::WOULDBLOCK) => return Err(Error::Busy),
                Err(Errno::INTR) => {}
                Err(error) => return Err(doing()(error.into())),
            }
        }
    }

    /// Returns the folders that the lock protects.
    pub fn folders(&self) -> &StateFolders {
        &self.folders
    }

    /// Returns the lock as the standard input of a program, which then holds it until it ends.
    #[cfg(feature = "kernel")]
    pub(crate) fn held(&self) -> Result<Stdio, Error> {
        Ok(Stdio::from(self.file.try_clone().map_err(Error::doing("sharing the lock"))?))
    }
}

/// The interval between two attempts at the lock: short compared with a change of the host, long compared with an
/// attempt.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
