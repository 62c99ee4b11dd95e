//! The journal of applied policies, on disk: a folder a policy with `plan.json`, written before the first change, and
//! `progress`, with a byte for each step that has begun.
//!
//! A folder without a plan belongs to an apply that had not begun, or to a rollback that was complete.
//!
//! A rollback executes its journal as root. Therefore journals are stored and trusted only where nobody else can have
//! written them ([`Folder`]), and may contain only steps that follow from their policy (`plan/allowed.rs`).

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
#[cfg(feature = "kernel")]
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use plimsoll_state::Folder;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::here::Here;
use crate::names::PolicyName;
use crate::{ApplyPlan, Error};

/// The folders of journals and pins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateFolders {
    /// The folder of journals. A reboot must empty it, as it undoes the changes that the journals describe.
    pub state: PathBuf,
    /// The folder of pins, in a BPF file system.
    pub pins: PathBuf,
}

impl Default for StateFolders {
    fn default() -> StateFolders {
        StateFolders {
            state: PathBuf::from("/run/plimsoll/host"),
            pins: PathBuf::from("/sys/fs/bpf/plimsoll"),
        }
    }
}

/// A policy that is applied, at least in part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Applied {
    /// The namespace and file systems in which it is applied.
    pub here: Here,
    /// The plan by which it was applied.
    pub plan: ApplyPlan,
    /// The number of steps that have begun.
    #[serde(skip)]
    pub begun: usize,
    /// Whether the policy was confirmed, or needs no confirmation.
    #[serde(skip)]
    pub confirmed: bool,
}

/// The journal of one policy.
#[derive(Debug)]
pub struct Journal {
    folders: StateFolders,
    name: PolicyName,
}

/// Excludes all other processes from changing the host, until dropped.
#[derive(Debug)]
pub struct Lock {
    folders: StateFolders,
    #[cfg_attr(not(feature = "kernel"), expect(dead_code, reason = "what is locked is held, not used"))]
    file: File,
}

impl Lock {
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

impl Journal {
    /// Returns the journal of the policy `name`.
    pub fn of(folders: &StateFolders, name: &PolicyName) -> Journal {
        Journal { folders: folders.clone(), name: name.clone() }
    }

    /// Lists the names of all applied policies, in order.
    ///
    /// # Errors
    /// Returns an error if the folder of journals or an entry in it cannot be read, as by users other than root, or if
    /// others could have written there.
    pub fn all(folders: &StateFolders) -> Result<Vec<PolicyName>, Error> {
        let doing = |what: &Path| Error::doing_as_root(format!("reading {}", what.display()));
        let Some(state) = Folder::open(&folders.state).map_err(doing(&folders.state))? else {
            return Ok(Vec::new());
        };
        let names = state.names().map_err(doing(&folders.state))?;
        let mut applied = Vec::new();
        for name in names.iter().filter_map(|name| name.parse::<PolicyName>().ok()) {
            if let Some(folder) =
                state.find(name.as_str()).map_err(doing(&folders.state.join(name.as_str())))?
                && folder.has(PLAN).map_err(doing(folder.path()))?
            {
                applied.push(name);
            }
        }
        applied.sort();
        Ok(applied)
    }

    /// Waits until no other process changes the host, as long as `goes_on`, which is called every 20 ms, returns true.
    /// No change of others falls between the planning and the changes that are made under the lock: a program that a
    /// process started for a change keeps the lock even when that process has been killed. Only root can hold the lock.
    ///
    /// # Errors
    /// Returns an error if this process may not lock, or [`Error::Busy`] when `goes_on` ended the wait.
    pub fn lock(folders: &StateFolders, goes_on: &mut dyn FnMut() -> bool) -> Result<Lock, Error> {
        let doing = || Error::doing_as_root(format!("locking {}", folders.state.display()));
        let state = Folder::make(&folders.state).map_err(doing())?;
        // A process that can open the lock can block all others.
        let file = state.file(".lock", OFlags::WRONLY | OFlags::CREATE).map_err(doing())?;
        let file = file.ok_or_else(|| doing()(std::io::ErrorKind::NotFound.into()))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock { folders: folders.clone(), file }),
                Err(Errno::WOULDBLOCK) if goes_on() => thread::sleep(LOOK_AGAIN),
                Err(Errno::WOULDBLOCK) => return Err(Error::Busy),
                Err(Errno::INTR) => {}
                Err(error) => return Err(doing()(error.into())),
            }
        }
    }

    /// Reads the journal; returns none if the policy is not applied.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read, or contains steps that do not follow from its policy.
    pub fn read(&self) -> Result<Option<Applied>, Error> {
        let Some(folder) = self.folder()? else { return Ok(None) };
        let path = folder.path().join(PLAN);
        let doing = || Error::doing_as_root(format!("reading {}", path.display()));
        let Some(text) = folder.read(PLAN, LONGEST).map_err(doing())? else { return Ok(None) };
        let wrong = |why: String| Error::Journal { file: path.display().to_string(), why };
        let mut applied: Applied = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        applied.plan.check(&self.name, &self.folders).map_err(wrong)?;
        if !applied.here.is_of(&applied.plan, &self.folders) {
            return Err(wrong("it names folders other than those of pins and cgroups".to_owned()));
        }
        let progress = folder.file(PROGRESS, OFlags::RDONLY).map_err(doing())?;
        let begun = progress.map(|file| file.metadata()).transpose().map_err(doing())?;
        applied.begun = begun.map_or(0, |about| about.len() as usize).min(applied.plan.steps.len());
        applied.confirmed = !folder.has(UNCONFIRMED).map_err(doing())?;
        Ok(Some(applied))
    }

    /// Reads the journal of the policy `name`.
    ///
    /// # Errors
    /// Returns [`Error::NotApplied`], or an error if the journal cannot be read.
    pub fn applied(folders: &StateFolders, name: &PolicyName) -> Result<Applied, Error> {
        match Journal::of(folders, name).read()? {
            Some(applied) => Ok(applied),
            None => Err(Error::not_applied(name, &Journal::all(folders)?)),
        }
    }

    /// Writes the plan and its location to the disk. With `to_confirm`, the policy is unconfirmed until
    /// [`Journal::confirm`].
    ///
    /// # Errors
    /// Returns an error, and writes nothing, if the plan cannot be written or would be rejected when it is read.
    pub fn begin(&self, plan: &ApplyPlan, to_confirm: bool) -> Result<(), Error> {
        let shown = self.folders.state.join(self.name.as_str());
        let doing = || Error::doing_as_root(format!("writing {}", shown.display()));
        let wrong = |why| Error::Journal { file: "the plan".to_owned(), why };
        plan.check(&self.name, &self.folders).map_err(wrong)?;
        let here = Here::of(plan, &self.folders)?;
        let applied = Applied { here, plan: plan.clone(), begun: 0, confirmed: !to_confirm };
        // A rollback that was killed at its very end may have left files.
        self.remove()?;
        let folder = Folder::make(&self.folders.state).and_then(|state| state.folder(self.name.as_str()));
        let folder = folder.map_err(doing())?;
        folder.write(PROGRESS, b"").map_err(doing())?;
        if to_confirm {
            folder.write(UNCONFIRMED, b"").map_err(doing())?;
        }
        let text = serde_json::to_string_pretty(&applied).expect("a plan is plain data");
        folder.write(UNFINISHED, text.as_bytes()).map_err(doing())?;
        folder.rename(UNFINISHED, PLAN).map_err(doing())
    }

    /// Records that the next step begins.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub fn next_step(&self) -> Result<(), Error> {
        self.in_progress(OFlags::WRONLY | OFlags::APPEND, &mut |mut file| file.write_all(b"."))
    }

    /// Records that the step that was recorded last did not begin.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub fn step_not_begun(&self) -> Result<(), Error> {
        let shorten = &mut |file: &File| file.set_len(file.metadata()?.len().saturating_sub(1));
        self.in_progress(OFlags::WRONLY, shorten)
    }

    fn in_progress(
        &self,
        flags: OFlags,
        change: &mut dyn FnMut(&File) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let shown = self.folders.state.join(self.name.as_str()).join(PROGRESS);
        let doing = || Error::doing(format!("writing {}", shown.display()));
        let file = self.folder()?.map(|folder| folder.file(PROGRESS, flags)).transpose().map_err(doing())?;
        let file = file.flatten().ok_or_else(|| doing()(std::io::ErrorKind::NotFound.into()))?;
        change(&file).and_then(|()| file.sync_all()).map_err(doing())
    }

    /// Confirms the policy, so that the process that applied it no longer rolls it back.
    ///
    /// # Errors
    /// Returns an error if the confirmation cannot be written.
    pub fn confirm(&self) -> Result<(), Error> {
        let Some(folder) = self.folder()? else { return Ok(()) };
        folder.remove(UNCONFIRMED).map_err(Error::doing(format!("writing {}", folder.path().display())))
    }

    /// Removes the journal of the policy.
    ///
    /// # Errors
    /// Returns an error if its files cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        let doing = || Error::doing_as_root(format!("removing the journal of {}", self.name));
        let Some(state) = Folder::open(&self.folders.state).map_err(doing())? else { return Ok(()) };
        let Some(folder) = state.find(self.name.as_str()).map_err(doing())? else { return Ok(()) };
        // The plan is removed first: without it the other files have no effect.
        for name in [PLAN, PROGRESS, UNCONFIRMED, UNFINISHED] {
            folder.remove(name).map_err(doing())?;
        }
        state.remove_folder(self.name.as_str()).map_err(doing())
    }

    fn folder(&self) -> Result<Option<Folder>, Error> {
        let doing = Error::doing_as_root(format!(
            "reading {}",
            self.folders.state.join(self.name.as_str()).join(PLAN).display()
        ));
        let state = Folder::open(&self.folders.state);
        let folder = state.and_then(|state| state.map_or(Ok(None), |state| state.find(self.name.as_str())));
        folder.map_err(doing)
    }
}

const PLAN: &str = "plan.json";
const UNFINISHED: &str = "plan.json.unfinished";
const PROGRESS: &str = "progress";
const UNCONFIRMED: &str = "unconfirmed";
/// The longest journal, in bytes; a plan with a hundred programs has about 30 KB.
const LONGEST: u64 = 16 << 20;
/// The interval between two attempts at the lock: short compared with a change of the host, long compared with an
/// attempt.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
