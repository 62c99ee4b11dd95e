//! What is applied, on disk: a folder a policy with `plan.json`, written whole before the first change, and
//! `progress`, a byte for each step that was begun.
//!
//! A folder without a plan is one whose apply had not begun or whose rollback was over.
//!
//! Who takes a policy back does what its journal says, as root. So journals are kept and believed only where nobody
//! else can have written them ([`Folder`]), and hold nothing but steps that their policy leads to
//! (`plan/allowed.rs`).

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
use crate::{Error, Plan};

/// Where things are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    /// Of journals. A reboot must empty it, as it empties what the journals are about.
    pub state: PathBuf,
    /// Of pins, in a BPF file system.
    pub pins: PathBuf,
}

impl Default for Places {
    fn default() -> Places {
        Places { state: PathBuf::from("/run/plimsoll/host"), pins: PathBuf::from("/sys/fs/bpf/plimsoll") }
    }
}

/// A policy that is applied, at least in part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Applied {
    /// Where it is applied.
    pub here: Here,
    /// Its plan.
    pub plan: Plan,
    /// How many steps were begun.
    #[serde(skip)]
    pub begun: usize,
    /// Whether it was confirmed, or never had to be.
    #[serde(skip)]
    pub confirmed: bool,
}

/// The journal of one policy.
#[derive(Debug)]
pub struct Journal {
    places: Places,
    name: PolicyName,
}

/// That nobody else changes the host, until dropped.
#[derive(Debug)]
pub struct Lock {
    places: Places,
    #[cfg_attr(not(feature = "kernel"), expect(dead_code, reason = "what is locked is held, not used"))]
    file: File,
}

impl Lock {
    /// Where what it is about is kept.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// The lock itself, for a program to be started with: it is held until that has ended, too.
    #[cfg(feature = "kernel")]
    pub(crate) fn held(&self) -> Result<Stdio, Error> {
        Ok(Stdio::from(self.file.try_clone().map_err(Error::doing("sharing the lock"))?))
    }
}

impl Journal {
    /// That of the policy `name`.
    pub fn of(places: &Places, name: &PolicyName) -> Journal {
        Journal { places: places.clone(), name: name.clone() }
    }

    /// The names of all policies that are applied, in order.
    ///
    /// # Errors
    /// If the folder of journals or one in it cannot be read, as by others than root, or others could have written
    /// there.
    pub fn all(places: &Places) -> Result<Vec<PolicyName>, Error> {
        let doing = |what: &Path| Error::doing_as_root(format!("reading {}", what.display()));
        let Some(state) = Folder::open(&places.state).map_err(doing(&places.state))? else {
            return Ok(Vec::new());
        };
        let names = state.names().map_err(doing(&places.state))?;
        let mut applied = Vec::new();
        for name in names.iter().filter_map(|name| name.parse::<PolicyName>().ok()) {
            if let Some(folder) =
                state.find(name.as_str()).map_err(doing(&places.state.join(name.as_str())))?
                && folder.has(PLAN).map_err(doing(folder.path()))?
            {
                applied.push(name);
            }
        }
        applied.sort();
        Ok(applied)
    }

    /// Waits until nobody else changes the host, as long as `goes_on`, which is asked every 20 ms. What is planned and
    /// changed while this is held is not between two changes of others: also a program that another process has started
    /// for a change holds it, when that process has been killed. Only root can hold it.
    ///
    /// # Errors
    /// If this process may not, or [`Error::Busy`] when `goes_on` ended the wait.
    pub fn lock(places: &Places, goes_on: &mut dyn FnMut() -> bool) -> Result<Lock, Error> {
        let doing = || Error::doing_as_root(format!("locking {}", places.state.display()));
        let state = Folder::make(&places.state).map_err(doing())?;
        // Whoever can open it can keep everybody else waiting.
        let file = state.file(".lock", OFlags::WRONLY | OFlags::CREATE).map_err(doing())?;
        let file = file.ok_or_else(|| doing()(std::io::ErrorKind::NotFound.into()))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock { places: places.clone(), file }),
                Err(Errno::WOULDBLOCK) if goes_on() => thread::sleep(LOOK_AGAIN),
                Err(Errno::WOULDBLOCK) => return Err(Error::Busy),
                Err(Errno::INTR) => {}
                Err(error) => return Err(doing()(error.into())),
            }
        }
    }

    /// What it holds; none if the policy is not applied.
    ///
    /// # Errors
    /// If it cannot be read, or holds what applying this policy does not lead to.
    pub fn read(&self) -> Result<Option<Applied>, Error> {
        let Some(folder) = self.folder()? else { return Ok(None) };
        let path = folder.path().join(PLAN);
        let doing = || Error::doing_as_root(format!("reading {}", path.display()));
        let Some(text) = folder.read(PLAN, LONGEST).map_err(doing())? else { return Ok(None) };
        let wrong = |why: String| Error::Journal { file: path.display().to_string(), why };
        let mut applied: Applied = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        applied.plan.check(&self.name, &self.places).map_err(wrong)?;
        if !applied.here.is_of(&applied.plan, &self.places) {
            return Err(wrong("it names other folders than those of pins and cgroups".to_owned()));
        }
        let progress = folder.file(PROGRESS, OFlags::RDONLY).map_err(doing())?;
        let begun = progress.map(|file| file.metadata()).transpose().map_err(doing())?;
        applied.begun = begun.map_or(0, |about| about.len() as usize).min(applied.plan.steps.len());
        applied.confirmed = !folder.has(UNCONFIRMED).map_err(doing())?;
        Ok(Some(applied))
    }

    /// What the policy `name` has applied.
    ///
    /// # Errors
    /// [`Error::NotApplied`], or if it cannot be read.
    pub fn applied(places: &Places, name: &PolicyName) -> Result<Applied, Error> {
        match Journal::of(places, name).read()? {
            Some(applied) => Ok(applied),
            None => Err(Error::not_applied(name, &Journal::all(places)?)),
        }
    }

    /// Writes the plan, and where it is applied, to survive whatever comes. With `to_confirm`, it counts as
    /// unconfirmed until [`Journal::confirm`].
    ///
    /// # Errors
    /// If it cannot be written, or would not be believed when it is read; then nothing is.
    pub fn begin(&self, plan: &Plan, to_confirm: bool) -> Result<(), Error> {
        let shown = self.places.state.join(self.name.as_str());
        let doing = || Error::doing_as_root(format!("writing {}", shown.display()));
        let wrong = |why| Error::Journal { file: "the plan".to_owned(), why };
        plan.check(&self.name, &self.places).map_err(wrong)?;
        let here = Here::of(plan, &self.places)?;
        let applied = Applied { here, plan: plan.clone(), begun: 0, confirmed: !to_confirm };
        // What a rollback that was killed at its very end may have left.
        self.remove()?;
        let folder = Folder::make(&self.places.state).and_then(|state| state.folder(self.name.as_str()));
        let folder = folder.map_err(doing())?;
        folder.write(PROGRESS, b"").map_err(doing())?;
        if to_confirm {
            folder.write(UNCONFIRMED, b"").map_err(doing())?;
        }
        let text = serde_json::to_string_pretty(&applied).expect("a plan is plain data");
        folder.write(UNFINISHED, text.as_bytes()).map_err(doing())?;
        folder.rename(UNFINISHED, PLAN).map_err(doing())
    }

    /// Notes that the next step begins.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn next_step(&self) -> Result<(), Error> {
        self.in_progress(OFlags::WRONLY | OFlags::APPEND, &mut |mut file| file.write_all(b"."))
    }

    /// Notes that the step that was noted last was not begun.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn step_not_begun(&self) -> Result<(), Error> {
        let shorten = &mut |file: &File| file.set_len(file.metadata()?.len().saturating_sub(1));
        self.in_progress(OFlags::WRONLY, shorten)
    }

    fn in_progress(
        &self,
        flags: OFlags,
        change: &mut dyn FnMut(&File) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let shown = self.places.state.join(self.name.as_str()).join(PROGRESS);
        let doing = || Error::doing(format!("writing {}", shown.display()));
        let file = self.folder()?.map(|folder| folder.file(PROGRESS, flags)).transpose().map_err(doing())?;
        let file = file.flatten().ok_or_else(|| doing()(std::io::ErrorKind::NotFound.into()))?;
        change(&file).and_then(|()| file.sync_all()).map_err(doing())
    }

    /// Confirms the policy: whoever applied it rolls it back no more.
    ///
    /// # Errors
    /// If that cannot be noted.
    pub fn confirm(&self) -> Result<(), Error> {
        let Some(folder) = self.folder()? else { return Ok(()) };
        folder.remove(UNCONFIRMED).map_err(Error::doing(format!("writing {}", folder.path().display())))
    }

    /// Forgets the policy.
    ///
    /// # Errors
    /// If its files cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        let doing = || Error::doing_as_root(format!("removing the journal of {}", self.name));
        let Some(state) = Folder::open(&self.places.state).map_err(doing())? else { return Ok(()) };
        let Some(folder) = state.find(self.name.as_str()).map_err(doing())? else { return Ok(()) };
        // The plan first: without it the rest means nothing.
        for name in [PLAN, PROGRESS, UNCONFIRMED, UNFINISHED] {
            folder.remove(name).map_err(doing())?;
        }
        state.remove_folder(self.name.as_str()).map_err(doing())
    }

    fn folder(&self) -> Result<Option<Folder>, Error> {
        let doing = Error::doing_as_root(format!(
            "reading {}",
            self.places.state.join(self.name.as_str()).join(PLAN).display()
        ));
        let state = Folder::open(&self.places.state);
        let folder = state.and_then(|state| state.map_or(Ok(None), |state| state.find(self.name.as_str())));
        folder.map_err(doing)
    }
}

const PLAN: &str = "plan.json";
const UNFINISHED: &str = "plan.json.unfinished";
const PROGRESS: &str = "progress";
const UNCONFIRMED: &str = "unconfirmed";
/// A plan has some 30 KB with a hundred programs.
const LONGEST: u64 = 16 << 20;
/// Short beside a change of the host, long beside the cost of looking.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
