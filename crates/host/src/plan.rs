//! [`ApplyPlan`] is a policy turned into an ordered list of steps on a host. A step comes after the steps that it
//! depends on.

use std::path::PathBuf;

use plimsoll_mechanisms::qjump::Levels;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::facts::{Device, HostFacts, HostRoute};
use crate::folders::StateFolders;
use crate::names::{DeviceName, nearest};
use crate::policy::{Dctcp, DeviceSide, PhantomQueuePolicy, Policy, QjumpPolicy, Segments};
use crate::step::{Hold, PortProgram, Step};

mod allowed;
mod beneath;
mod conflicts;
mod difference;
mod levels;
mod pacer;
mod shown;

pub(crate) use beneath::Beneath;
pub use difference::{Difference, PlanMove};
#[cfg(feature = "kernel")]
pub(crate) use levels::TRAFFIC;

/// The changes that applying a policy makes to this host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ApplyPlan {
    /// The policy that is to be applied.
    pub policy: Policy,
    /// The changes, in the order in which they are made.
    pub steps: Vec<Step>,
    /// Side effects that the operator should know.
    pub notes: Vec<String>,
    /// The mount point of cgroups, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroups: Option<PathBuf>,
}

/// Plans `policy` for the host of `facts`, which is not changed.
///
/// # Errors
/// Returns [`Error::Unavailable`] with every reason why this host cannot implement the policy, and the errors of
/// `facts`.
pub fn plan(policy: &Policy, facts: &dyn HostFacts, folders: &StateFolders) -> Result<ApplyPlan, Error> {
    let pins = folders.pins.join(policy.name().as_str());
    let mut notes = Vec::new();
    let others = match conflicts::others(policy, folders) {
        // Without permission to read other policies, the plan shows the changes as if none were applied.
        Err(error) if error.is_denied() => {
            notes.push(format!("the changes of other policies are not known: {error}"));
            Vec::new()
        }
        others => others?,
    };
    let (steps, reasons) = (Vec::new(), Vec::new());
    let mut planning = Planning { facts, pins, others, steps, notes, reasons };
    planning.conflicts(policy);
    if let Some(qjump) = &policy.qjump {
        planning.qjump(qjump)?;
    }
    for (index, queue) in policy.phantom_queue.iter().enumerate() {
        let program = PortProgram::PhantomQueue(queue.clone());
        let name = phantom_queue_pins(queue);
        let key = format!("phantom_queue[{index}].device");
        if planning.device(&key, &queue.device)?.is_some() {
            planning.program(&queue.device, queue.direction, vec![(program, name)])?;
        }
    }
    if let Some(pacer) = &policy.pacer {
        planning.pacer(pacer)?;
    }
    if let Some(dctcp) = &policy.dctcp {
        planning.dctcp(dctcp)?;
    }
    if !planning.reasons.is_empty() {
        return Err(Error::Unavailable(planning.reasons));
    }
    if !facts.has_pins() && planning.steps.iter().any(|step| step.pins().is_some()) {
        planning.note(format!("to apply it, {NO_PINS}"));
    }
    let cgroups = facts.cgroups();
    Ok(ApplyPlan { policy: policy.clone(), steps: planning.steps, notes: planning.notes, cgroups })
}

/// Returns the name of the folder of a phantom queue's pins.
fn phantom_queue_pins(queue: &PhantomQueuePolicy) -> String {
    format!("phantom-queue-{}-{}", queue.device, queue.direction.name())
}

struct Planning<'a> {
    facts: &'a dyn HostFacts,
    pins: PathBuf,
    /// The plans of other policies that are applied here.
    others: Vec<ApplyPlan>,
    steps: Vec<Step>,
    notes: Vec<String>,
    reasons: Vec<String>,
}

impl Planning<'_> {
    /// Shortens TCP's segments to the smallest bucket of the levels in use.
    fn segments(&mut self, qjump: &QjumpPolicy, levels: &Levels, device: Device) {
        let frame = u64::from(device.mtu) + ETHERNET;
        let used = |number: &usize| qjump.assign.iter().any(|one| usize::from(one.level) == *number);
        let mut smallest = u64::MAX;
        for (number, level) in levels.levels.iter().enumerate().filter(|(number, _)| used(number)) {
            let bucket = level.bucket.get();
            smallest = smallest.min(bucket);
            if bucket < frame {
                self.notes.push(format!(
                    "level {number}: packets of more than {bucket} B never leave, though {} takes {frame} B; keep its \
                     messages small, or give it more",
                    qjump.device
                ));
            }
        }
        if qjump.segments == Segments::Fit {
            self.fit_segments("qjump", &qjump.device, device, smallest);
        }
    }

    /// Limits TCP's segments at the device to `bytes`, unless they are shorter already, also by an earlier step.
    /// `section` is the section of the policy that requires it.
    fn fit_segments(&mut self, section: &str, name: &DeviceName, device: Device, bytes: u64) {
        if self.are_fitted_by_others(section, name) {
            return;
        }
        let frame = u64::from(device.mtu) + ETHERNET;
        let after = u32::try_from((bytes / frame).max(1)).unwrap_or(u32::MAX);
        let planned = self.steps.iter().rev().find_map(|step| match step {
            Step::Segments { device, after, .. } if device == name => Some(*after),
            _ => None,
        });
        let before = planned.unwrap_or(device.gso_max_segs);
        if after < before {
            self.steps.push(Step::Segments { device: name.clone(), before, after });
            self.note(format!(
                "gso_max_segs is {name}'s: TCP hands over short segments for all of its traffic, which takes more \
                 processor \
                 time; segments = \"keep\" leaves it"
            ));
        }
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds programs at one device in one direction, in the order in which they run.
    fn program(
        &mut self,
        name: &DeviceName,
        side: DeviceSide,
        programs: Vec<(PortProgram, String)>,
    ) -> Result<(), Error> {
        let Some(device) = self.facts.device(name)? else { return Ok(()) };
        let tcx = self.facts.has_tcx();
        if !tcx && device.clsact && self.is_queue_of_others(name) {
            return Ok(());
        }
        let planned = self.steps.iter().any(|step| matches!(step, Step::Clsact { device } if device == name));
        if !tcx && !device.clsact && !planned {
            self.steps.push(Step::Clsact { device: name.clone() });
        }
        let taken = if !tcx && device.clsact { self.facts.filters(name, side)? } else { Vec::new() };
        let mut free = (1..).filter(|priority| !taken.contains(priority));
        for (program, pins) in programs {
            // The filter gets a free priority, behind the filters of a queue that runs ahead of it in this policy.
            let planned = self.steps.iter().filter_map(|step| match step {
                Step::Program { device, side: at, hold: Hold::Filter { priority }, .. } => {
                    (device == name && *at == side).then_some(*priority)
                }
                _ => None,
            });
            let after = planned.max().unwrap_or(0);
            let hold = if tcx {
                Hold::Link
            } else {
                let priority = free.find(|priority| *priority > after).expect("65535 filters are not there");
                Hold::Filter { priority }
            };
            self.steps.push(Step::Program {
                device: name.clone(),
                side,
                program,
                hold,
                pins: self.pins.join(pins),
            });
        }
        Ok(())
    }

    /// Looks up the device that `key` of the policy names.
    fn device(&mut self, key: &str, name: &DeviceName) -> Result<Option<Device>, Error> {
        let device = self.facts.device(name)?;
        if device.is_none() {
            let there = self.facts.devices()?;
            let hint = match nearest(name.as_str(), there.iter().map(String::as_str)) {
                Some(like) => format!("; did you mean `{like}`?"),
                None => format!("; the host has {}", there.join(", ")),
            };
            self.reasons.push(format!("{key}: no network device {name}{hint}"));
        }
        Ok(device)
    }

    /// Returns the folder of a cgroup, and adds steps that create it and its ancestors where they are missing.
    fn cgroup(&mut self, path: &crate::names::CgroupPath) -> Result<Option<PathBuf>, Error> {
        let Some(root) = self.facts.cgroups() else {
            let reason = "cgroups of version 2 are not mounted: mount -t cgroup2 none /sys/fs/cgroup/unified";
            if !self.reasons.iter().any(|other| other == reason) {
                self.reasons.push(reason.to_owned());
            }
            return Ok(None);
        };
        let folder = path.under(&root);
        if self.is_cgroup_of_others(&folder) {
            return Ok(None);
        }
        let missing = folder.ancestors().take_while(|above| **above != root && !self.facts.is_folder(above));
        let mut missing: Vec<PathBuf> = missing.map(PathBuf::from).collect();
        missing.reverse();
        for folder in missing {
            let step = Step::Cgroup { folder };
            if !self.steps.contains(&step) {
                self.steps.push(step);
            }
        }
        Ok(Some(folder))
    }

    fn dctcp(&mut self, dctcp: &Dctcp) -> Result<(), Error> {
        let Some(name) = self.dctcp_name() else { return Ok(()) };
        if name == DCTCP_NAME {
            self.steps.push(Step::Dctcp { pins: self.pins.join("dctcp") });
        }
        for prefix in &dctcp.destinations {
            let (before, words) = match self.facts.route(*prefix)? {
                Some(HostRoute::Exact(words)) => (Some(words.clone()), words),
                Some(HostRoute::Wider(words)) => (None, words),
                None => {
                    self.reasons.push(format!("dctcp.destinations: there is no route to {prefix}"));
                    continue;
                }
            };
            let after = format!("{words} features ecn congctl {name}");
            self.steps.push(Step::Route { prefix: *prefix, before, after });
        }
        if dctcp.default {
            let before = self.facts.sysctl(CONGESTION_CONTROL)?;
            if before != name {
                let after = name.to_owned();
                self.steps.push(Step::Sysctl { name: CONGESTION_CONTROL.to_owned(), before, after });
            }
        }
        self.notes.push("DCTCP: both ends of a connection need it, and switches that mark ECN".to_owned());
        Ok(())
    }

    /// Returns the congestion control that the routes get; none, with a reason, where the host has none.
    fn dctcp_name(&mut self) -> Option<&'static str> {
        if self.facts.has_struct_ops_links() {
            return Some(DCTCP_NAME);
        }
        if self.facts.has_dctcp() {
            self.note(format!(
                "DCTCP: the kernel's own, `{KERNELS_DCTCP}` (module tcp_dctcp, which stays loaded), as Plimsoll's \
                 needs Linux 6.4; \
                 `status` counts nothing of it"
            ));
            return Some(KERNELS_DCTCP);
        }
        self.reasons.push(
            "dctcp: Plimsoll's needs Linux 6.4, and this kernel has none of its own (CONFIG_TCP_CONG_DCTCP, module \
             tcp_dctcp)"
                .to_owned(),
        );
        None
    }
}

/// The reason where no BPF file system is mounted for pins.
pub(crate) const NO_PINS: &str =
    "there must be a BPF file system at /sys/fs/bpf: mount -t bpf bpf /sys/fs/bpf";
/// The length of an Ethernet header in bytes, without FCS, as the limiter counts it.
const ETHERNET: u64 = 14;
/// The name under which the program registers: `plimsoll_bpf::DCTCP_NAME`, which a build without the programs lacks.
pub const DCTCP_NAME: &str = "plimsoll_dctcp";
/// The name of the kernel's own DCTCP.
const KERNELS_DCTCP: &str = "dctcp";
const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
