//! Finds conflicts with other applied policies: resources that two policies cannot share, and changes of one on which
//! another would build although its rollback will undo them. Each rollback restores the host because no two policies
//! share a change.

use std::path::Path;

use super::{ApplyPlan, Planning};
use crate::Error;
use crate::folders::StateFolders;
use crate::here::Here;
use crate::journal::{Applied, PolicyJournal};
use crate::names::DeviceName;
use crate::policy::Policy;
use crate::step::Step;

/// Returns the plans of all applied policies other than `policy`; for policies in other network namespaces, only the
/// parts outside these namespaces.
pub(super) fn others(policy: &Policy, folders: &StateFolders) -> Result<Vec<ApplyPlan>, Error> {
    let names = PolicyJournal::all(folders)?.into_iter().filter(|name| name != policy.name());
    let applied = names.map(|name| PolicyJournal::of(folders, &name).read());
    let mut plans = Vec::new();
    for applied in applied {
        let Some(Applied { here, plan, change, .. }) = applied? else { continue };
        // Either version of a policy with a pending change may stay.
        plans.extend(
            [Some(plan), change.map(|change| change.plan)]
                .into_iter()
                .flatten()
                .map(|plan| shared(&here, plan)),
        );
    }
    Ok(plans)
}

/// Returns the part of the plan of a policy applied at `here` that is shared with policies in this namespace.
fn shared(here: &Here, mut plan: ApplyPlan) -> ApplyPlan {
    if !here.is_own_network() {
        plan.steps.retain(|step| !step.is_of_network());
        let Policy { qjump, phantom_queue, pacer, .. } = &mut plan.policy;
        (*qjump, *phantom_queue, *pacer) = (None, Vec::new(), None);
    }
    plan
}

impl Planning<'_> {
    /// Rejects a second policy that limits a device, marks the same packets, or registers DCTCP.
    pub(super) fn conflicts(&mut self, policy: &Policy) {
        for ApplyPlan { policy: other, .. } in &self.others {
            let name = other.name();
            let devices = (policy.qjump.as_ref(), other.qjump.as_ref());
            if let (Some(one), Some(two)) = devices
                && one.device == two.device
            {
                self.reasons.push(format!("qjump: policy {name} already limits {}", one.device));
            }
            let pacers = (policy.pacer.as_ref(), other.pacer.as_ref());
            if let (Some(one), Some(two)) = pacers
                && one.device == two.device
            {
                self.reasons.push(format!("pacer: policy {name} already paces at {}", one.device));
            }
            for queue in &policy.phantom_queue {
                let same = |other: &&crate::policy::PhantomQueuePolicy| {
                    (&other.device, other.direction) == (&queue.device, queue.direction)
                };
                if other.phantom_queue.iter().any(|other| same(&other)) {
                    self.reasons
                        .push(format!("phantom-queue: policy {name} already has one at {}", queue.device));
                }
            }
            if policy.dctcp.is_some() && other.dctcp.is_some() {
                self.reasons.push(format!("dctcp: policy {name} has already registered it"));
            }
        }
    }

    /// Returns whether another policy has set the device's gso_max_segs, and adds a reason against `section` setting it
    /// too.
    pub(super) fn are_fitted_by_others(&mut self, section: &str, name: &DeviceName) -> bool {
        let other = self.made(|step| matches!(step, Step::Segments { device, .. } if device == name));
        self.because(other.map(|other| {
            format!(
                "{section}.segments: policy {other} has set gso_max_segs of {name}, and its rollback resets it; put \
                 both in one \
                 policy, or segments = \"keep\" here"
            )
        }))
    }

    /// Returns whether the device's clsact queue will be removed with another policy, and adds a reason against filters
    /// there.
    pub(super) fn is_queue_of_others(&mut self, name: &DeviceName) -> bool {
        let other = self.made(|step| matches!(step, Step::Clsact { device } if device == name));
        self.because(other.map(|other| {
            format!(
                "policy {other} created the clsact queue of {name}, and its rollback removes it; put both in one \
                 policy, or `tc qdisc \
                 add dev {name} clsact` before either"
            )
        }))
    }

    /// Returns whether another policy created the cgroup or an ancestor, and adds a reason against using it.
    pub(super) fn is_cgroup_of_others(&mut self, cgroup: &Path) -> bool {
        let other = self.made(|step| matches!(step, Step::Cgroup { folder } if cgroup.starts_with(folder)));
        self.because(other.map(|other| {
            format!(
                "policy {other} created the cgroup {} or an ancestor, and its rollback removes it; put both in one \
                 policy, or create \
                 it before either",
                cgroup.display()
            )
        }))
    }

    /// Returns the name of another policy with such a step.
    fn made(&self, is: impl Fn(&Step) -> bool) -> Option<String> {
        let other = self.others.iter().find(|other| other.steps.iter().any(&is));
        other.map(|other| other.policy.name().to_string())
    }

    fn because(&mut self, reason: Option<String>) -> bool {
        let is_one = reason.is_some();
        self.reasons.extend(reason.filter(|reason| !self.reasons.contains(reason)));
        is_one
    }
}
