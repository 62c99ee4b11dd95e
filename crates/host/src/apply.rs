//! Applies a policy and rolls it back: the plan's steps forwards and backwards, with a journal entry ahead of each.

use std::path::{Path, PathBuf};

use crate::here::{DeviceMismatch, Entered, Here};
use crate::journal::{Applied, PolicyJournal};
use crate::lock::HostLock;
use crate::names::PolicyName;
use crate::step::{Step, System};
use crate::{ApplyPlan, Error, change};

/// The progress of an apply. A process may end at any of these points; a rollback then restores the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApplyProgress {
    /// The plan is on disk, and nothing has changed.
    Journaled,
    /// The journal states that the step of this index has begun.
    Begun(usize),
    /// The step of this index is complete.
    Completed(usize),
}

/// The result of a rollback.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RolledBack {
    /// The number of steps that were undone.
    pub steps: usize,
    /// The changes that stay because others have modified them since.
    pub left: Vec<String>,
    /// The path by which the policy's network namespace was entered, if it is not this thread's.
    pub network: Option<PathBuf>,
    /// Whether an earlier version of the policy is in force again.
    pub to_earlier: bool,
}

/// Applies `plan`, which must have been made under the same lock: checks all steps, writes the journal, and makes the
/// changes. With `to_confirm`, the journal marks the policy as unconfirmed. `at` is called at every point of progress.
///
/// # Errors
/// Before any change, if the policy is applied already or a step cannot succeed; if a step fails nevertheless, the
/// steps before it are undone.
pub fn apply(
    lock: &HostLock,
    plan: &ApplyPlan,
    system: &mut dyn System,
    to_confirm: bool,
    at: &mut dyn FnMut(ApplyProgress),
) -> Result<(), Error> {
    let journal = PolicyJournal::of(lock.folders(), plan.policy.name());
    if journal.read()?.is_some() {
        return Err(Error::Applied(plan.policy.name().clone()));
    }
    let reasons = plan.steps.iter().filter_map(|step| system.check(step, false).err());
    let mut reasons: Vec<String> = reasons.map(|error| error.to_string()).collect();
    reasons.dedup();
    if !reasons.is_empty() {
        return Err(Error::Unavailable(reasons));
    }
    journal.begin(plan, to_confirm)?;
    at(ApplyProgress::Journaled);
    for (index, step) in plan.steps.iter().enumerate() {
        let mut done = journal.next_step();
        if done.is_ok() {
            at(ApplyProgress::Begun(index));
            done = system.act(step);
            if let Err(Error::Theirs(_)) = done {
                // Objects of others are not undone.
                journal.step_not_begun()?;
            }
        }
        if let Err(why) = done {
            let afterwards = match undo(&journal, system) {
                Ok(_) => "the steps before it were undone".to_owned(),
                Err(error) => error.to_string(),
            };
            return Err(Error::Step { step: step.to_string(), why: Box::new(why), afterwards });
        }
        at(ApplyProgress::Completed(index));
    }
    Ok(())
}

/// Confirms the policy `name`, or the pending change of it, so that the process that applied it no longer rolls it
/// back. Returns false if it is not applied.
///
/// # Errors
/// Returns an error if the policy is applied in part, or the confirmation cannot be written.
pub fn confirm(lock: &HostLock, name: &PolicyName, system: &mut dyn System) -> Result<bool, Error> {
    let journal = PolicyJournal::of(lock.folders(), name);
    let Some(applied) = journal.read()? else { return Ok(false) };
    if !applied.is_complete() {
        return Err(Error::InPart(name.clone()));
    }
    let _there = applied.here.enter(name)?;
    change::finish(&journal, system)?;
    journal.confirm().map(|()| true)
}

/// Rolls back the policy `name` in the network namespace where it was applied; returns none if it is not applied. A
/// pending change of it is reverted instead, so that the earlier version is in force again.
///
/// # Errors
/// Returns an error if a change cannot be undone. The others are undone, and the journal stays for another rollback.
/// [`Error::Elsewhere`] before any change if the policy was applied in a namespace that this process cannot enter.
pub fn rollback(
    lock: &HostLock,
    name: &PolicyName,
    system: &mut dyn System,
) -> Result<Option<RolledBack>, Error> {
    undo(&PolicyJournal::of(lock.folders(), name), system)
}

/// Rolls back the rest of the policy `name` where a device, its network namespace, or the file system of its pins or
/// cgroups, is gone for good with the changes in it. Acts as [`rollback`] where they still exist.
///
/// # Errors
/// The errors of [`rollback`].
pub fn rollback_rest(
    lock: &HostLock,
    name: &PolicyName,
    system: &mut dyn System,
) -> Result<Option<RolledBack>, Error> {
    let journal = PolicyJournal::of(lock.folders(), name);
    let Some(Applied { here, plan, begun, change, .. }) = journal.read()? else {
        return undo(&journal, system);
    };
    let entered = here.enter_network(name)?;
    let is_there = |step: &&Step| entered.is_some() || !step.is_of_network();
    // The added steps of a change follow the steps of the plan.
    let added = change.iter().flat_map(|change| &change.difference.added);
    let steps: Vec<Step> = plan.steps[..begun].iter().chain(added).filter(is_there).cloned().collect();
    let here = change.as_ref().map_or(here, |change| change.here.clone());
    let network = entered.as_ref().and_then(Entered::way);
    undo_steps(&journal, Some((&here, RollbackExtent::Rest)), &steps, system, network).map(Some)
}

/// Rolls back all of `plan`, which this process has applied, where its journal can no longer be read.
///
/// # Errors
/// The errors of [`rollback`].
pub fn roll_back_plan(
    lock: &HostLock,
    plan: &ApplyPlan,
    system: &mut dyn System,
) -> Result<RolledBack, Error> {
    undo_steps(&PolicyJournal::of(lock.folders(), plan.policy.name()), None, &plan.steps, system, None)
}

fn undo(journal: &PolicyJournal, system: &mut dyn System) -> Result<Option<RolledBack>, Error> {
    let Some(applied) = journal.read()? else {
        journal.remove()?;
        return Ok(None);
    };
    if let Some(pending) = &applied.change {
        return change::revert(journal, pending, system).map(Some);
    }
    let entered = applied.here.enter(applied.plan.policy.name())?;
    let of = Some((&applied.here, RollbackExtent::All));
    undo_steps(journal, of, &applied.plan.steps[..applied.begun], system, entered.way()).map(Some)
}

/// The steps that a rollback has to undo.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RollbackExtent {
    All,
    /// The steps except the ones that have vanished with their device.
    Rest,
}

/// Undoes the steps in reverse order. Steps of a device that is not the one of `of` any more are failures.
fn undo_steps(
    journal: &PolicyJournal,
    of: Option<(&Here, RollbackExtent)>,
    begun: &[Step],
    system: &mut dyn System,
    network: Option<&Path>,
) -> Result<RolledBack, Error> {
    let network = network.map(Path::to_owned);
    let mut result = RolledBack { steps: begun.len(), network, ..RolledBack::default() };
    let mut failures = Vec::new();
    for step in begun.iter().rev() {
        let missing =
            of.and_then(|(here, extent)| Some((here.missing(journal.name(), &step.device()?)?, extent)));
        match missing {
            None => {}
            Some((DeviceMismatch::Gone(_), RollbackExtent::Rest)) if step.is_of_network() => continue,
            // Its pins are left.
            Some((DeviceMismatch::Gone(_), RollbackExtent::Rest)) => {}
            Some((DeviceMismatch::Gone(why) | DeviceMismatch::Renamed(why), _)) => {
                if !failures.contains(&why) {
                    failures.push(why);
                }
                continue;
            }
        }
        match system.undo(step) {
            Ok(undone) => result.left.extend(undone.left()),
            Err(error) => failures.push(error.to_string()),
        }
    }
    if !failures.is_empty() {
        return Err(Error::Rollback(failures));
    }
    journal.remove()?;
    Ok(result)
}
