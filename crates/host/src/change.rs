//! Puts a changed policy in place of its applied version, and reverts that: only the steps that differ are touched.
//!
//! ```text
//! applied ──begin_change──> removed steps undone, added steps made ──confirm, or at once──> the new plan is applied
//!    ^                                       │
//!    └───────────────revert──────────────────┘    added steps undone, removed steps made again
//! ```
//!
//! Reverting first undoes every part that has begun, in reverse order, then makes the removed steps again. Undoing is
//! idempotent, so a revert that was interrupted can be repeated from its start.

use crate::apply::{ApplyProgress, RolledBack};
use crate::folders::StateFolders;
use crate::journal::{Applied, PendingChange, PolicyJournal};
use crate::lock::HostLock;
use crate::names::PolicyName;
use crate::plan::{Beneath, Difference, PlanMove, plan};
use crate::step::{Step, System, Undone};
use crate::{ApplyPlan, Error, HostFacts, Policy};

/// A new plan of a policy that is applied, and its difference from the applied plan.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanChange {
    /// The plan of the new version.
    pub plan: ApplyPlan,
    /// The steps that differ.
    pub difference: Difference,
}

/// Plans `policy` in place of `applied`, its version in force.
///
/// # Errors
/// Returns the errors of [`plan`]; [`Error::InPart`] or [`Error::Unconfirmed`] if the earlier apply is not complete or
/// not confirmed, and [`Error::Elsewhere`] if it was made in another network namespace.
pub fn plan_change(
    policy: &Policy,
    applied: &Applied,
    facts: &dyn HostFacts,
    folders: &StateFolders,
) -> Result<PlanChange, Error> {
    let name = policy.name();
    applied.here.check_mounts(name)?;
    if let Some(network) = applied.here.other_network() {
        return Err(Error::Elsewhere(format!(
            "policy {name} is applied in another network namespace, {network}; change it there, or roll it back first"
        )));
    }
    if !applied.is_complete() {
        return Err(Error::InPart(name.clone()));
    }
    if !applied.confirmed {
        return Err(Error::Unconfirmed(name.clone()));
    }
    let steps = &applied.plan.steps;
    let missing = steps
        .iter()
        .filter_map(|step| applied.here.missing(name, &step.device()?))
        .map(|why| why.to_string());
    if let Some(why) = missing.into_iter().next() {
        return Err(Error::Unavailable(vec![why]));
    }
    let plan = plan(policy, &Beneath { facts, steps }, folders)?;
    let difference = Difference::between(steps, &plan.steps);
    Ok(PlanChange { plan, difference })
}

/// Applies `change`, which must have been planned under the same lock. With `to_confirm`, it stays pending until
/// [`confirm`](crate::confirm). `at` is called at every point of progress, with the index of the change's part. Returns
/// the changes of removed steps that stay because others have modified them since.
///
/// # Errors
/// Before any change, if an added step cannot succeed; if a part fails nevertheless, the parts before it are reverted.
pub fn apply_change(
    lock: &HostLock,
    change: &PlanChange,
    system: &mut dyn System,
    to_confirm: bool,
    at: &mut dyn FnMut(ApplyProgress),
) -> Result<Vec<String>, Error> {
    let name = change.plan.policy.name();
    let journal = PolicyJournal::of(lock.folders(), name);
    let applied = PolicyJournal::applied(lock.folders(), name)?;
    if applied.change.is_some() {
        return Err(Error::Unconfirmed(name.clone()));
    }
    let difference = &change.difference;
    let checked = difference.added.iter().map(|step| system.check(step, difference.replaces(step)));
    let mut reasons: Vec<String> = checked.filter_map(Result::err).map(|error| error.to_string()).collect();
    reasons.dedup();
    if !reasons.is_empty() {
        return Err(Error::Unavailable(reasons));
    }
    if difference.is_empty() {
        journal.replace(&change.plan, &applied)?;
        at(ApplyProgress::Journaled);
        return Ok(Vec::new());
    }
    journal.begin_change(&change.plan, &applied)?;
    at(ApplyProgress::Journaled);
    let mut left = Vec::new();
    for (index, part) in difference.moves().into_iter().enumerate() {
        let mut done = journal.next_move();
        if done.is_ok() {
            at(ApplyProgress::Begun(index));
            done = match part {
                PlanMove::Make(step) => system.act(step),
                PlanMove::Undo(step) => system.undo(step).map(|undone| left.extend(undone.left())),
            };
            if let Err(Error::Theirs(_)) = done {
                journal.move_not_begun()?;
            }
        }
        if let Err(why) = done {
            let afterwards = match revert_pending(&journal, system) {
                Ok(_) => "the policy is in force again as it was before".to_owned(),
                Err(error) => error.to_string(),
            };
            return Err(Error::Step { step: part.to_string(), why: Box::new(why), afterwards });
        }
        at(ApplyProgress::Completed(index));
    }
    if !to_confirm {
        left.extend(finish(&journal, system)?);
    }
    Ok(left)
}

/// Makes the pending change final: removes the cgroups that only the earlier version needed, and moves the new plan
/// into the earlier one's place. Returns the cgroups that stay.
pub(crate) fn finish(journal: &PolicyJournal, system: &mut dyn System) -> Result<Vec<String>, Error> {
    let Some(applied) = journal.read()? else { return Ok(Vec::new()) };
    let Some(change) = &applied.change else { return Ok(Vec::new()) };
    let mut left = Vec::new();
    for step in &change.difference.released {
        left.extend(system.undo(step)?.left());
    }
    journal.finish_change(&applied, change)?;
    Ok(left)
}

/// Reverts the pending change, so that the earlier version of the policy is in force again.
fn revert_pending(journal: &PolicyJournal, system: &mut dyn System) -> Result<RolledBack, Error> {
    match journal.read()? {
        Some(Applied { change: Some(change), .. }) => revert(journal, &change, system),
        _ => Ok(RolledBack::default()),
    }
}

/// Reverts a pending change, in the network namespace in which it was made.
///
/// # Errors
/// Returns an error if a part cannot be reverted; the journal stays for another attempt.
pub(crate) fn revert(
    journal: &PolicyJournal,
    change: &PendingChange,
    system: &mut dyn System,
) -> Result<RolledBack, Error> {
    let entered = change.here.enter(journal.name())?;
    let moves = change.difference.moves();
    let begun = &moves[..change.begun];
    let network = entered.way().map(Into::into);
    let mut result = RolledBack { steps: begun.len(), network, to_earlier: true, ..RolledBack::default() };
    let mut failures = Vec::new();
    for part in begun.iter().rev() {
        let (PlanMove::Make(step) | PlanMove::Undo(step)) = part;
        if let Some(missing) = step.device().and_then(|device| change.here.missing(journal.name(), &device)) {
            failures.push(missing.to_string());
            continue;
        }
        match system.undo(step) {
            Ok(undone) => result.left.extend(undone.left()),
            Err(error) => failures.push(error.to_string()),
        }
    }
    if failures.is_empty() {
        // The parts are in the reverse order of the plan.
        let removed: Vec<&Step> = begun
            .iter()
            .filter_map(|part| if let PlanMove::Undo(step) = part { Some(*step) } else { None })
            .collect();
        let failed = removed.iter().rev().filter_map(|step| system.act(step).err());
        failures.extend(failed.map(|error| error.to_string()));
    }
    if !failures.is_empty() {
        failures.dedup();
        return Err(Error::Rollback(failures));
    }
    journal.drop_change()?;
    Ok(result)
}

/// Undoes the last apply of `policy`, confirmed or not: the version that it has replaced is in force again, or, if it
/// was the first, the policy is rolled back. Returns none, and changes nothing, where another version is in force.
///
/// # Errors
/// The errors of [`rollback`](crate::rollback), [`plan_change`] and [`apply_change`].
pub fn roll_back_last(
    lock: &HostLock,
    policy: &Policy,
    facts: &dyn HostFacts,
    system: &mut dyn System,
) -> Result<Option<RolledBack>, Error> {
    let name: &PolicyName = policy.name();
    let journal = PolicyJournal::of(lock.folders(), name);
    let Some(applied) = journal.read()?.filter(|applied| applied.policy() == policy) else { return Ok(None) };
    match journal.earlier()? {
        Some(earlier) if applied.change.is_none() && applied.confirmed => {
            let change = plan_change(&earlier, &applied, facts, lock.folders())?;
            let left = apply_change(lock, &change, system, false, &mut |_| {})?;
            let steps = change.difference.moves().len();
            Ok(Some(RolledBack { steps, left, network: None, to_earlier: true }))
        }
        _ => crate::rollback(lock, name, system),
    }
}

impl Undone {
    /// Returns the description of a state that was left alone.
    pub(crate) fn left(self) -> Option<String> {
        match self {
            Undone::Restored => None,
            Undone::Left(why) => Some(why),
        }
    }
}
