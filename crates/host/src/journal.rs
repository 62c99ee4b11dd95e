//! The journal of applied policies, on disk: a folder a policy with `plan.json`, written before the first change, and
//! `progress`, with a byte for each step that has begun.
//!
//! A folder without a plan belongs to an apply that had not begun, or to a rollback that was complete.
//!
//! While a changed policy takes the place of an applied one, `change.json` has its plan and `change-progress` a byte
//! for each part of the change that has begun; `plan.json` still has the earlier plan, to which a rollback returns. The
//! change is final when `change.json` takes the place of `plan.json`; `earlier.json` then has the earlier policy.
//!
//! A rollback executes its journal as root. Therefore journals are stored and trusted only where only root can have
//! written them ([`Folder`]), and may contain only steps that follow from their policy (`plan/allowed.rs`).

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use plimsoll_process::Folder;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::folders::StateFolders;
use crate::here::Here;
use crate::names::PolicyName;
use crate::plan::{Difference, PlanMove};
use crate::step::Step;
use crate::{ApplyPlan, Error, Policy};

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
    /// The change of this policy that is under way, or waits for its confirmation.
    #[serde(skip)]
    pub change: Option<PendingChange>,
}

/// A change of an applied policy that is not final.
#[derive(Clone, PartialEq, Debug)]
pub struct PendingChange {
    /// The namespace and file systems in which both versions are applied.
    pub here: Here,
    /// The plan of the new version.
    pub plan: ApplyPlan,
    /// The steps in which it differs from the applied plan.
    pub difference: Difference,
    /// The number of its parts that have begun.
    pub begun: usize,
}

impl Applied {
    /// Returns whether all steps, and all parts of a change, have begun.
    pub fn is_complete(&self) -> bool {
        let is_changed = |change: &PendingChange| change.begun == change.difference.moves().len();
        self.begun == self.plan.steps.len() && self.change.as_ref().is_none_or(is_changed)
    }

    /// Returns the policy in force: with a pending change, the new one.
    pub fn policy(&self) -> &Policy {
        self.change.as_ref().map_or(&self.plan.policy, |change| &change.plan.policy)
    }

    /// Returns the steps of that policy that have begun, in order.
    pub fn steps(&self) -> Vec<&Step> {
        let Some(change) = &self.change else { return self.plan.steps[..self.begun].iter().collect() };
        let moves = change.difference.moves();
        let is_made = |step: &&Step| {
            change.difference.kept.contains(step) || moves[..change.begun].contains(&PlanMove::Make(step))
        };
        change.plan.steps.iter().filter(is_made).collect()
    }
}

/// The journal of one policy.
#[derive(Debug)]
pub struct PolicyJournal {
    folders: StateFolders,
    name: PolicyName,
}

impl PolicyJournal {
    /// Returns the journal of the policy `name`.
    pub fn of(folders: &StateFolders, name: &PolicyName) -> PolicyJournal {
        PolicyJournal { folders: folders.clone(), name: name.clone() }
    }

    /// Returns the name of the policy.
    pub(crate) fn name(&self) -> &PolicyName {
        &self.name
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
        if !applied.here.is_of(applied.plan.cgroups.as_deref(), &self.folders) {
            return Err(wrong("it names folders other than those of pins and cgroups".to_owned()));
        }
        let progress = folder.file(PROGRESS, OFlags::RDONLY).map_err(doing())?;
        let begun = progress.map(|file| file.metadata()).transpose().map_err(doing())?;
        applied.begun = begun.map_or(0, |about| about.len() as usize).min(applied.plan.steps.len());
        applied.change = self.pending(&folder, &applied.plan)?;
        applied.confirmed = applied.change.is_none() && !folder.has(UNCONFIRMED).map_err(doing())?;
        Ok(Some(applied))
    }

    /// Reads the change of the plan `applied` that is not final, if any.
    fn pending(&self, folder: &Folder, applied: &ApplyPlan) -> Result<Option<PendingChange>, Error> {
        let path = folder.path().join(CHANGE);
        let doing = || Error::doing_as_root(format!("reading {}", path.display()));
        let Some(text) = folder.read(CHANGE, LONGEST).map_err(doing())? else { return Ok(None) };
        let wrong = |why: String| Error::Journal { file: path.display().to_string(), why };
        let Applied { here, plan, .. } =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        plan.check(&self.name, &self.folders).map_err(wrong)?;
        if !here.is_of(plan.cgroups.as_deref(), &self.folders) {
            return Err(wrong("it names folders other than those of pins and cgroups".to_owned()));
        }
        let difference = Difference::between(&applied.steps, &plan.steps);
        let progress = folder.read(CHANGE_PROGRESS, LONGEST).map_err(doing())?;
        let begun = progress.map_or(0, |bytes| bytes.len()).min(difference.moves().len());
        Ok(Some(PendingChange { here, plan, difference, begun }))
    }

    /// Reads the journal of the policy `name`.
    ///
    /// # Errors
    /// Returns [`Error::NotApplied`], or an error if the journal cannot be read.
    pub fn applied(folders: &StateFolders, name: &PolicyName) -> Result<Applied, Error> {
        match PolicyJournal::of(folders, name).read()? {
            Some(applied) => Ok(applied),
            None => Err(Error::not_applied(name, &PolicyJournal::all(folders)?)),
        }
    }

    /// Writes the plan and its location to the disk. With `to_confirm`, the policy is unconfirmed until
    /// [`PolicyJournal::confirm`].
    ///
    /// # Errors
    /// Returns an error, and writes nothing, if the plan cannot be written or would be rejected when it is read.
    pub fn begin(&self, plan: &ApplyPlan, to_confirm: bool) -> Result<(), Error> {
        let shown = self.folders.state.join(self.name.as_str());
        let doing = || Error::doing_as_root(format!("writing {}", shown.display()));
        let wrong = |why| Error::Journal { file: "the plan".to_owned(), why };
        plan.check(&self.name, &self.folders).map_err(wrong)?;
        let here = Here::of(&plan.steps, plan.cgroups.as_deref(), &self.folders)?;
        let applied = Applied { here, plan: plan.clone(), begun: 0, confirmed: !to_confirm, change: None };
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

    /// Writes the plan of a changed policy, `new`, beside the applied plan `applied`.
    ///
    /// # Errors
    /// The errors of [`PolicyJournal::begin`].
    pub(crate) fn begin_change(&self, new: &ApplyPlan, applied: &Applied) -> Result<(), Error> {
        let text = self.text_of(new, applied)?;
        self.writing(|folder| {
            folder.write(CHANGE_PROGRESS, b"")?;
            folder.write(UNFINISHED, text.as_bytes())?;
            folder.rename(UNFINISHED, CHANGE)
        })
    }

    /// Puts the plan of a policy that has the same steps, `new`, in the place of the applied plan `applied`, whose
    /// policy is kept for [`PolicyJournal::earlier`]. The change is never pending: there is nothing to revert.
    ///
    /// # Errors
    /// The errors of [`PolicyJournal::begin`].
    pub(crate) fn replace(&self, new: &ApplyPlan, applied: &Applied) -> Result<(), Error> {
        let text = self.text_of(new, applied)?;
        let policy = serde_json::to_string_pretty(&applied.plan.policy).expect("a policy is plain data");
        self.writing(|folder| {
            folder.write(UNFINISHED, policy.as_bytes())?;
            folder.rename(UNFINISHED, EARLIER)?;
            folder.write(UNFINISHED, text.as_bytes())?;
            folder.rename(UNFINISHED, PLAN)
        })
    }

    /// Returns the text of the plan `new`, which takes the place of `applied`, with its location.
    fn text_of(&self, new: &ApplyPlan, applied: &Applied) -> Result<String, Error> {
        let wrong = |why| Error::Journal { file: "the plan".to_owned(), why };
        let plan = new.clone();
        plan.check(&self.name, &self.folders).map_err(wrong)?;
        let both = [applied.plan.steps.clone(), plan.steps.clone()].concat();
        let here = Here::of(&both, plan.cgroups.as_deref(), &self.folders)?;
        let new = Applied { here, plan, begun: 0, confirmed: false, change: None };
        Ok(serde_json::to_string_pretty(&new).expect("a plan is plain data"))
    }

    /// Makes the change final: its plan takes the place of the applied one, whose policy is kept for
    /// [`PolicyJournal::earlier`].
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written.
    pub(crate) fn finish_change(&self, applied: &Applied, change: &PendingChange) -> Result<(), Error> {
        // One progress that is complete for both plans, so that the rename alone decides which is applied.
        let complete = vec![b'.'; applied.plan.steps.len().max(change.plan.steps.len())];
        let policy = serde_json::to_string_pretty(&applied.plan.policy).expect("a policy is plain data");
        self.writing(|folder| {
            folder.write(UNFINISHED, &complete)?;
            folder.rename(UNFINISHED, PROGRESS)?;
            folder.write(UNFINISHED, policy.as_bytes())?;
            folder.rename(UNFINISHED, EARLIER)?;
            folder.rename(CHANGE, PLAN)?;
            folder.remove(CHANGE_PROGRESS)
        })
    }

    /// Forgets a change whose parts are all undone.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written.
    pub(crate) fn drop_change(&self) -> Result<(), Error> {
        self.writing(|folder| folder.remove(CHANGE).and_then(|()| folder.remove(CHANGE_PROGRESS)))
    }

    /// Reads the policy that the last final change has replaced, if there was one.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub(crate) fn earlier(&self) -> Result<Option<Policy>, Error> {
        let Some(folder) = self.folder()? else { return Ok(None) };
        let path = folder.path().join(EARLIER);
        let doing = Error::doing_as_root(format!("reading {}", path.display()));
        let Some(text) = folder.read(EARLIER, LONGEST).map_err(doing)? else { return Ok(None) };
        let wrong = |why: String| Error::Journal { file: path.display().to_string(), why };
        let policy: Policy = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        policy.check().map_err(|error| wrong(error.to_string()))?;
        match policy.name.as_ref() == Some(&self.name) {
            true => Ok(Some(policy)),
            false => Err(wrong(format!("it is not the policy {}", self.name))),
        }
    }

    fn writing(&self, write: impl FnOnce(&Folder) -> std::io::Result<()>) -> Result<(), Error> {
        let shown = self.folders.state.join(self.name.as_str());
        let doing = || Error::doing_as_root(format!("writing {}", shown.display()));
        let folder = self.folder()?.ok_or_else(|| doing()(std::io::ErrorKind::NotFound.into()))?;
        write(&folder).map_err(doing())
    }

    /// Records that the next step begins.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub fn next_step(&self) -> Result<(), Error> {
        self.in_progress(PROGRESS, OFlags::WRONLY | OFlags::APPEND, &mut append)
    }

    /// Records that the next part of a change begins.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn next_move(&self) -> Result<(), Error> {
        self.in_progress(CHANGE_PROGRESS, OFlags::WRONLY | OFlags::APPEND, &mut append)
    }

    /// Records that the part of a change that was recorded last did not begin.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn move_not_begun(&self) -> Result<(), Error> {
        self.in_progress(CHANGE_PROGRESS, OFlags::WRONLY, &mut shorten)
    }

    /// Records that the step that was recorded last did not begin.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub fn step_not_begun(&self) -> Result<(), Error> {
        self.in_progress(PROGRESS, OFlags::WRONLY, &mut shorten)
    }

    fn in_progress(
        &self,
        name: &str,
        flags: OFlags,
        change: &mut dyn FnMut(&File) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let shown = self.folders.state.join(self.name.as_str()).join(name);
        let doing = || Error::doing(format!("writing {}", shown.display()));
        let file = self.folder()?.map(|folder| folder.file(name, flags)).transpose().map_err(doing())?;
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
        for name in [PLAN, CHANGE, PROGRESS, CHANGE_PROGRESS, UNCONFIRMED, EARLIER, UNFINISHED] {
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

fn append(mut file: &File) -> std::io::Result<()> {
    file.write_all(b".")
}

fn shorten(file: &File) -> std::io::Result<()> {
    file.set_len(file.metadata()?.len().saturating_sub(1))
}

const PLAN: &str = "plan.json";
const CHANGE: &str = "change.json";
const CHANGE_PROGRESS: &str = "change-progress";
const EARLIER: &str = "earlier.json";
const UNFINISHED: &str = "plan.json.unfinished";
const PROGRESS: &str = "progress";
const UNCONFIRMED: &str = "unconfirmed";
/// The longest journal, in bytes; a plan with a hundred programs has about 30 KB.
const LONGEST: u64 = 16 << 20;
