//! What other policies that are applied stand in the way of: what two cannot both have, and what one has changed and will
//! take back while the other builds on it. Each way back restores the host because no two share a change.

use std::path::Path;

use super::{Plan, Planning};
use crate::Error;
use crate::journal::{Applied, Journal, Places};
use crate::names::DeviceName;
use crate::policy::Policy;
use crate::step::Step;

/// The plans of all policies that are applied but for `policy`; of those in other network namespaces, what is not in
/// these.
pub(super) fn others(policy: &Policy, places: &Places) -> Result<Vec<Plan>, Error> {
    let names = Journal::all(places)?.into_iter().filter(|name| name != policy.name());
    let applied = names.map(|name| Journal::of(places, &name).read());
    applied.filter_map(|applied| Some(applied.transpose()?.map(shared))).collect()
}

/// What of an applied policy others here share with it.
fn shared(applied: Applied) -> Plan {
    let mut plan = applied.plan;
    if !applied.here.is_own_network() {
        plan.steps.retain(|step| !step.is_of_network());
        let Policy { qjump, phantom_queue, pacer, .. } = &mut plan.policy;
        (*qjump, *phantom_queue, *pacer) = (None, Vec::new(), None);
    }
    plan
}

impl Planning<'_> {
    /// Two policies must not both limit a device, mark the same packets, or register DCTCP.
    pub(super) fn conflicts(&mut self, policy: &Policy) {
        for Plan { policy: other, .. } in &self.others {
            let name = other.name();
            let devices = (policy.qjump.as_ref(), other.qjump.as_ref());
            if let (Some(one), Some(two)) = devices
                && one.device == two.device
            {
                self.reasons.push(format!("qjump: policy {name} limits {} already", one.device));
            }
            let pacers = (policy.pacer.as_ref(), other.pacer.as_ref());
            if let (Some(one), Some(two)) = pacers
                && one.device == two.device
            {
                self.reasons.push(format!("pacer: policy {name} paces at {} already", one.device));
            }
            for queue in &policy.phantom_queue {
                let same = |other: &&crate::policy::PhantomQueue| {
                    (&other.device, other.direction) == (&queue.device, queue.direction)
                };
                if other.phantom_queue.iter().any(|other| same(&other)) {
                    self.reasons
                        .push(format!("phantom-queue: policy {name} has one at {} already", queue.device));
                }
            }
            if policy.dctcp.is_some() && other.dctcp.is_some() {
                self.reasons.push(format!("dctcp: policy {name} has registered it already"));
            }
        }
    }

    /// Whether another policy has set the device's gso_max_segs, which is a reason against `section` setting it too.
    pub(super) fn are_fitted_by_others(&mut self, section: &str, name: &DeviceName) -> bool {
        let other = self.made(|step| matches!(step, Step::Segments { device, .. } if device == name));
        self.because(other.map(|other| {
            format!(
                "{section}.segments: policy {other} has set gso_max_segs of {name} and sets it back one day; have both in one \
                 policy, or segments = \"keep\" here"
            )
        }))
    }

    /// Whether the device's clsact queue goes with another policy, which is a reason against filters there.
    pub(super) fn is_queue_of_others(&mut self, name: &DeviceName) -> bool {
        let other = self.made(|step| matches!(step, Step::Clsact { device } if device == name));
        self.because(other.map(|other| {
            format!(
                "policy {other} has made the clsact queue of {name} and removes it one day; have both in one policy, or `tc qdisc \
                 add dev {name} clsact` before either"
            )
        }))
    }

    /// Whether the cgroup is another policy's or in one, and goes with that, which is a reason against using it.
    pub(super) fn is_cgroup_of_others(&mut self, cgroup: &Path) -> bool {
        let other = self.made(|step| matches!(step, Step::Cgroup { folder } if cgroup.starts_with(folder)));
        self.because(other.map(|other| {
            format!(
                "policy {other} has made the cgroup {} or one above it and removes it one day; have both in one policy, or make \
                 it before either",
                cgroup.display()
            )
        }))
    }

    /// The name of another policy with such a step.
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
