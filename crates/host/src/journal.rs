//! What is applied, on disk: a folder a policy with `plan.json`, written whole before the first change, and
//! `progress`, a byte for each step that was begun.
//!
//! A folder without a plan is one whose apply had not begun or whose rollback was over.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

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
    folder: PathBuf,
}

/// That nobody else changes the host, until dropped.
#[derive(Debug)]
pub struct Lock {
    places: Places,
    _file: File,
}

impl Lock {
    /// Where what it is about is kept.
    pub fn places(&self) -> &Places {
        &self.places
    }
}

impl Journal {
    /// That of the policy `name`.
    pub fn of(places: &Places, name: &PolicyName) -> Journal {
        Journal { folder: places.state.join(name.as_str()) }
    }

    /// The names of all policies that are applied, in order.
    ///
    /// # Errors
    /// If the folder of journals or one in it cannot be read, as by others than root.
    pub fn all(places: &Places) -> Result<Vec<PolicyName>, Error> {
        let entries = match fs::read_dir(&places.state) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(Error::doing(format!("reading {}", places.state.display())))?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut applied = Vec::new();
        for name in names {
            let plan = Journal::of(places, &name).plan_path();
            let doing = Error::doing(format!("reading {} (root is needed)", plan.display()));
            if plan.try_exists().map_err(doing)? {
                applied.push(name);
            }
        }
        applied.sort();
        Ok(applied)
    }

    /// Waits until nobody else changes the host, as long as `goes_on`, which is asked every 20 ms. What is planned and
    /// changed while this is held is not between two changes of others. Only root can hold it.
    ///
    /// # Errors
    /// If this process may not, or [`Error::Busy`] when `goes_on` ended the wait.
    pub fn lock(places: &Places, goes_on: &mut dyn FnMut() -> bool) -> Result<Lock, Error> {
        let doing = || Error::doing(format!("locking {} (root is needed)", places.state.display()));
        fs::DirBuilder::new().recursive(true).mode(0o755).create(&places.state).map_err(doing())?;
        let path = places.state.join(".lock");
        let mut options = OpenOptions::new();
        let file = options.create(true).write(true).truncate(false).mode(0o600).open(path).map_err(doing())?;
        // Also of a file that was there: whoever can open it can keep everybody else waiting.
        file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(doing())?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock { places: places.clone(), _file: file }),
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
    /// If it cannot be read.
    pub fn read(&self) -> Result<Option<Applied>, Error> {
        let path = self.plan_path();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(Error::doing(format!("reading {} (root is needed)", path.display())))?,
        };
        let plan: Plan =
            serde_json::from_str(&text).map_err(|_| Error::Journal(path.display().to_string()))?;
        let begun = fs::metadata(self.progress_path()).map_or(0, |progress| progress.len() as usize);
        let confirmed = !self.unconfirmed_path().exists();
        Ok(Some(Applied { begun: begun.min(plan.steps.len()), plan, confirmed }))
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

    /// Writes the plan, to survive whatever comes. With `to_confirm`, it counts as unconfirmed until
    /// [`Journal::confirm`].
    ///
    /// # Errors
    /// If it cannot be written; then nothing is.
    pub fn begin(&self, plan: &Plan, to_confirm: bool) -> Result<(), Error> {
        let doing = || Error::doing(format!("writing {}", self.folder.display()));
        // What a rollback that was killed at its very end may have left.
        self.remove()?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(doing())?;
        write_synced(&self.progress_path(), b"").map_err(doing())?;
        if to_confirm {
            write_synced(&self.unconfirmed_path(), b"").map_err(doing())?;
        }
        let text = serde_json::to_string_pretty(plan).expect("a plan is plain data");
        let unfinished = self.folder.join("plan.json.unfinished");
        write_synced(&unfinished, text.as_bytes()).map_err(doing())?;
        fs::rename(&unfinished, self.plan_path()).map_err(doing())?;
        self.sync().map_err(doing())
    }

    /// Notes that the next step begins.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn next_step(&self) -> Result<(), Error> {
        let path = self.progress_path();
        let appended = OpenOptions::new().append(true).open(&path).and_then(|mut file| {
            file.write_all(b".")?;
            file.sync_all()
        });
        appended.map_err(Error::doing(format!("writing {}", path.display())))
    }

    /// Notes that the step that was noted last was not begun.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn step_not_begun(&self) -> Result<(), Error> {
        let path = self.progress_path();
        let shortened = OpenOptions::new().write(true).open(&path).and_then(|file| {
            file.set_len(file.metadata()?.len().saturating_sub(1))?;
            file.sync_all()
        });
        shortened.map_err(Error::doing(format!("writing {}", path.display())))
    }

    /// Confirms the policy: whoever applied it rolls it back no more.
    ///
    /// # Errors
    /// If that cannot be noted.
    pub fn confirm(&self) -> Result<(), Error> {
        removed(&self.unconfirmed_path())
    }

    /// Forgets the policy.
    ///
    /// # Errors
    /// If its files cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        // The plan first: without it the rest means nothing.
        for path in [
            self.plan_path(),
            self.progress_path(),
            self.unconfirmed_path(),
            self.folder.join("plan.json.unfinished"),
        ] {
            removed(&path)?;
        }
        match fs::remove_dir(&self.folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::doing(format!("removing {}", self.folder.display()))(error))
            }
            _ => Ok(()),
        }
    }

    fn plan_path(&self) -> PathBuf {
        self.folder.join("plan.json")
    }

    fn progress_path(&self) -> PathBuf {
        self.folder.join("progress")
    }

    fn unconfirmed_path(&self) -> PathBuf {
        self.folder.join("unconfirmed")
    }

    fn sync(&self) -> std::io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn removed(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::doing(format!("removing {}", path.display()))(error))
        }
        _ => Ok(()),
    }
}

/// Short beside a change of the host, long beside the cost of looking.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
