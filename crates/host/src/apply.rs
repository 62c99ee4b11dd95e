//! Apply and roll back: the plan's steps forwards and backwards, with the journal ahead of each.

use std::path::{Path, PathBuf};

use crate::here::Entered;
use crate::journal::{Applied, Journal, Lock};
use crate::names::PolicyName;
use crate::step::{Step, System, Undone};
use crate::{Error, Plan};

/// Where an apply is. A process may end at any of them; a rollback then restores the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The plan is on disk, and nothing has changed.
    Journaled,
    /// The step is noted as begun.
    Begun(usize),
    /// The step is done.
    Done(usize),
}

/// How a rollback went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RolledBack {
    /// Steps that were undone.
    pub steps: usize,
    /// What stays because somebody else has changed it since.
    pub left: Vec<String>,
    /// The way into the network namespace of the policy, if it is not the one that this thread is in.
    pub network: Option<PathBuf>,
}

/// Applies `plan`, which was made under the same lock: tries all that can be tried, writes the journal, and makes the
/// changes. `to_confirm` notes that it is to be confirmed; `at` hears of every moment.
///
/// # Errors
/// Before any change if the policy is applied already or a step cannot succeed; if one fails nevertheless, what was
/// done is undone.
pub fn apply(
    lock: &Lock,
    plan: &Plan,
    system: &mut dyn System,
    to_confirm: bool,
    at: &mut dyn FnMut(Moment),
) -> Result<(), Error> {
    let journal = Journal::of(lock.places(), plan.policy.name());
    if journal.read()?.is_some() {
        return Err(Error::Applied(plan.policy.name().clone()));
    }
    let reasons = plan.steps.iter().filter_map(|step| system.check(step).err());
    let mut reasons: Vec<String> = reasons.map(|error| error.to_string()).collect();
    reasons.dedup();
    if !reasons.is_empty() {
        return Err(Error::Unavailable(reasons));
    }
    journal.begin(plan, to_confirm)?;
    at(Moment::Journaled);
    for (index, step) in plan.steps.iter().enumerate() {
        let mut done = journal.next_step();
        if done.is_ok() {
            at(Moment::Begun(index));
            done = system.act(step);
            if let Err(Error::Theirs(_)) = done {
                // What is somebody else's is not taken back.
                journal.step_not_begun()?;
            }
        }
        if let Err(why) = done {
            let afterwards = match undo(&journal, system) {
                Ok(_) => "everything before it was taken back".to_owned(),
                Err(error) => error.to_string(),
            };
            return Err(Error::Step { step: step.to_string(), why: Box::new(why), afterwards });
        }
        at(Moment::Done(index));
    }
    Ok(())
}

/// Confirms the policy `name`: whoever applied it rolls it back no more. False if it is not applied.
///
/// # Errors
/// If it is applied in part, or that cannot be noted.
pub fn confirm(lock: &Lock, name: &PolicyName) -> Result<bool, Error> {
    let journal = Journal::of(lock.places(), name);
    let Some(applied) = journal.read()? else { return Ok(false) };
    if applied.begun < applied.plan.steps.len() {
        return Err(Error::InPart(name.clone()));
    }
    journal.confirm().map(|()| true)
}

/// Takes the policy `name` back, in the network namespace where it was applied; none if it is not applied.
///
/// # Errors
/// If something cannot be restored. What can be is, and the journal stays for another try. [`Error::Elsewhere`]
/// before any change if it was applied where this process is not and does not get.
pub fn rollback(
    lock: &Lock,
    name: &PolicyName,
    system: &mut dyn System,
) -> Result<Option<RolledBack>, Error> {
    undo(&Journal::of(lock.places(), name), system)
}

/// Takes back what there still is of the policy `name`, where its network namespace or the file systems of its pins
/// and cgroups are gone for good, and what it had changed there with them. As [`rollback`] where they are not.
///
/// # Errors
/// As [`rollback`].
pub fn rollback_rest(
    lock: &Lock,
    name: &PolicyName,
    system: &mut dyn System,
) -> Result<Option<RolledBack>, Error> {
    let journal = Journal::of(lock.places(), name);
    let Some(Applied { here, plan, begun, .. }) = journal.read()? else { return undo(&journal, system) };
    let entered = here.enter_network(name)?;
    let is_there = |step: &&Step| entered.is_some() || !step.is_of_network();
    let steps: Vec<Step> = plan.steps[..begun].iter().filter(is_there).cloned().collect();
    undo_steps(&journal, &steps, system, entered.as_ref().and_then(Entered::way)).map(Some)
}

/// Takes all of `plan` back, which this process has applied, where its journal cannot be read any more.
///
/// # Errors
/// As [`rollback`].
pub fn take_back(lock: &Lock, plan: &Plan, system: &mut dyn System) -> Result<RolledBack, Error> {
    undo_steps(&Journal::of(lock.places(), plan.policy.name()), &plan.steps, system, None)
}

fn undo(journal: &Journal, system: &mut dyn System) -> Result<Option<RolledBack>, Error> {
    let Some(applied) = journal.read()? else {
        journal.remove()?;
        return Ok(None);
    };
    let entered = applied.here.enter(applied.plan.policy.name())?;
    undo_steps(journal, &applied.plan.steps[..applied.begun], system, entered.way()).map(Some)
}

fn undo_steps(
    journal: &Journal,
    begun: &[Step],
    system: &mut dyn System,
    network: Option<&Path>,
) -> Result<RolledBack, Error> {
    let network = network.map(Path::to_owned);
    let mut result = RolledBack { steps: begun.len(), left: Vec::new(), network };
    let mut failures = Vec::new();
    for step in begun.iter().rev() {
        match system.undo(step) {
            Ok(Undone::Restored) => {}
            Ok(Undone::Left(why)) => result.left.push(why),
            Err(error) => failures.push(error.to_string()),
        }
    }
    if !failures.is_empty() {
        return Err(Error::Rollback(failures));
    }
    journal.remove()?;
    Ok(result)
}
