//! [`Plan`]: a policy and a host as an ordered list of steps. Order matters: what a step needs comes before it.

use std::path::PathBuf;

use plimsoll_mechanisms::qjump::Levels;
use plimsoll_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::facts::{Device, Facts, RootQueue, Route};
use crate::journal::{Journal, Places};
use crate::names::DeviceName;
use crate::policy::{Dctcp, Departure, Pacer, Policy, Qjump, Segments, Side};
use crate::step::{Hold, PortProgram, Shape, Step};

mod levels;
mod shown;

#[cfg(feature = "kernel")]
pub(crate) use levels::{CONNECTIONS, TRAFFIC};

/// What applying a policy does to this host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The policy.
    pub policy: Policy,
    /// The changes, in order.
    pub steps: Vec<Step>,
    /// What the operator should know.
    pub notes: Vec<String>,
}

/// Plans `policy` for the host of `facts`, which is not changed.
///
/// # Errors
/// [`Error::Unavailable`] with every reason why this host cannot, and those of `facts`.
pub fn plan(policy: &Policy, facts: &dyn Facts, places: &Places) -> Result<Plan, Error> {
    let pins = places.pins.join(policy.name().as_str());
    let mut planning = Planning { facts, pins, steps: Vec::new(), notes: Vec::new(), reasons: Vec::new() };
    if !facts.has_pins() {
        planning.reasons.push("no BPF file system at /sys/fs/bpf: mount -t bpf bpf /sys/fs/bpf".to_owned());
    }
    planning.conflicts(policy, places)?;
    if let Some(qjump) = &policy.qjump {
        planning.qjump(qjump)?;
    }
    for queue in &policy.phantom_queue {
        let program = PortProgram::PhantomQueue(queue.clone());
        let name = format!("phantom-queue-{}-{}", queue.device, queue.direction.name());
        planning.program(&queue.device, queue.direction, vec![(program, name)])?;
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
    Ok(Plan { policy: policy.clone(), steps: planning.steps, notes: planning.notes })
}

struct Planning<'a> {
    facts: &'a dyn Facts,
    pins: PathBuf,
    steps: Vec<Step>,
    notes: Vec<String>,
    reasons: Vec<String>,
}

impl Planning<'_> {
    /// Two policies must not both limit a device, mark the same packets, or register DCTCP.
    fn conflicts(&mut self, policy: &Policy, places: &Places) -> Result<(), Error> {
        for name in Journal::all(places)?.iter().filter(|name| *name != policy.name()) {
            let Some(other) = Journal::of(places, name).read()?.map(|applied| applied.plan.policy) else {
                continue;
            };
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
        Ok(())
    }

    /// TCP's long segments must fit into the buckets of the levels that somebody has.
    fn segments(&mut self, qjump: &Qjump, levels: &Levels, device: Device) {
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
            self.fit_segments(&qjump.device, device, smallest);
        }
    }

    /// Segments of TCP at the device get as long as `bytes`, if they are longer now or by an earlier step.
    fn fit_segments(&mut self, name: &DeviceName, device: Device, bytes: u64) {
        let frame = u64::from(device.mtu) + ETHERNET;
        let after = u32::try_from((bytes / frame).max(1)).unwrap_or(u32::MAX);
        let planned = self.steps.iter().rev().find_map(|step| match step {
            Step::Segments { device, after, .. } if device == name => Some(*after),
            _ => None,
        });
        let before = planned.unwrap_or(device.gso_max_segs);
        if after < before {
            self.steps.push(Step::Segments { device: name.clone(), before, after });
        }
    }

    fn pacer(&mut self, pacer: &Pacer) -> Result<(), Error> {
        let name = &pacer.device;
        let Some(device) = self.device(name)? else { return Ok(()) };
        let shaped = self.pacer_queue(pacer, device)?;
        if pacer.segments == Segments::Fit {
            self.fit_segments(name, device, pacer.bucket.get());
        }
        let mut cgroups = Vec::new();
        for path in &pacer.cgroups {
            cgroups.extend(self.cgroup(path)?);
        }
        let root = self.facts.cgroups().unwrap_or_default();
        let pins = self.pins.join(PACER);
        let program = PortProgram::Pacer { pacer: pacer.clone(), root, cgroups, shaped };
        self.program(name, Side::Egress, vec![(program, PACER.to_owned())])?;
        let feedback = PortProgram::PacerFeedback { pacer: pacer.clone(), flows: pins.join("flows") };
        self.program(name, Side::Ingress, vec![(feedback, "pacer-feedback".to_owned())])?;
        self.notes.push(
            "pacer: only TCP connections with ECN (net.ipv4.tcp_ecn = 1, or DCTCP) hear of congestion and are paced"
                .to_owned(),
        );
        Ok(())
    }

    /// The queue that holds the pacer's packets back; whether it is a shaper.
    fn pacer_queue(&mut self, pacer: &Pacer, device: Device) -> Result<bool, Error> {
        let name = &pacer.device;
        let before = match self.facts.root_queue(name)? {
            RootQueue::Departures if pacer.departure != Some(Departure::Tbf) => return Ok(false),
            RootQueue::Departures => {
                self.reasons.push(format!(
                    "pacer.departure = \"tbf\": the root queue of {name} is fq, which keeps departure times; leave it at \"edt\""
                ));
                return Ok(true);
            }
            RootQueue::Set(kind) => {
                self.reasons.push(format!(
                    "pacer: the root queue of {name} is {kind}, which somebody has set; it must be fq, which keeps departure \
                     times, or the kernel's default"
                ));
                return Ok(false);
            }
            RootQueue::Default(before) => before,
        };
        let (fq, shapers) = (self.facts.has_fq(), self.facts.has_shapers());
        let choice = pacer.departure.unwrap_or(if fq || !shapers { Departure::Edt } else { Departure::Tbf });
        match choice {
            Departure::Edt if fq => self.steps.push(Step::Departures { device: name.clone(), before }),
            Departure::Edt => self.reasons.push(format!(
                "pacer: this kernel lacks fq (CONFIG_NET_SCH_FQ), the queue that keeps departure times at {name}{}",
                if shapers { "; departure = \"tbf\" does without" } else { ", and HTB and TBF (CONFIG_NET_SCH_HTB, _TBF) in its place" }
            )),
            Departure::Tbf if !shapers => self.reasons.push(
                "pacer.departure = \"tbf\": this kernel lacks HTB or TBF (CONFIG_NET_SCH_HTB, CONFIG_NET_SCH_TBF)"
                    .to_owned(),
            ),
            Departure::Tbf => {
                let burst = pacer.bucket.max(Bytes::new(u64::from(device.mtu) + ETHERNET));
                let shape = Shape { rate: pacer.rate, burst };
                self.steps.push(Step::Shaper { device: name.clone(), before, shape });
                let why = if pacer.departure.is_some() { "as the policy says" } else { "as this kernel lacks fq" };
                self.notes.push(format!(
                    "pacer: by a TBF, {why}. It has the link's rate, and so paces nothing, unless `plimsoll host pace` runs"
                ));
            }
        }
        Ok(choice == Departure::Tbf)
    }

    /// Programs at one device and side, the first to run first.
    fn program(
        &mut self,
        name: &DeviceName,
        side: Side,
        programs: Vec<(PortProgram, String)>,
    ) -> Result<(), Error> {
        let Some(device) = self.device(name)? else { return Ok(()) };
        let tcx = self.facts.has_tcx();
        let planned = self.steps.iter().any(|step| matches!(step, Step::Clsact { device } if device == name));
        if !tcx && !device.clsact && !planned {
            self.steps.push(Step::Clsact { device: name.clone() });
        }
        let taken = if !tcx && device.clsact { self.facts.filters(name, side)? } else { Vec::new() };
        let mut free = (1..).filter(|priority| !taken.contains(priority));
        for (program, pins) in programs {
            // A free priority, behind those of a queue that runs ahead of it in this policy.
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

    fn device(&mut self, name: &DeviceName) -> Result<Option<Device>, Error> {
        let device = self.facts.device(name)?;
        let reason = format!("there is no network device {name}");
        if device.is_none() && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
        Ok(device)
    }

    /// The folder of a cgroup, made with those above it where they are missing.
    fn cgroup(&mut self, path: &crate::names::CgroupPath) -> Result<Option<PathBuf>, Error> {
        let Some(root) = self.facts.cgroups() else {
            let reason = "cgroups of version 2 are not mounted: mount -t cgroup2 none /sys/fs/cgroup/unified";
            if !self.reasons.iter().any(|other| other == reason) {
                self.reasons.push(reason.to_owned());
            }
            return Ok(None);
        };
        let folder = path.under(&root);
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
        self.steps.push(Step::Dctcp { pins: self.pins.join("dctcp") });
        for prefix in &dctcp.destinations {
            let (before, words) = match self.facts.route(*prefix)? {
                Some(Route::Exact(words)) => (Some(words.clone()), words),
                Some(Route::Wider(words)) => (None, words),
                None => {
                    self.reasons.push(format!("dctcp.destinations: there is no route to {prefix}"));
                    continue;
                }
            };
            let after = format!("{words} features ecn congctl {DCTCP_NAME}");
            self.steps.push(Step::Route { prefix: *prefix, before, after });
        }
        if dctcp.default {
            let before = self.facts.sysctl(CONGESTION_CONTROL)?;
            if before != DCTCP_NAME {
                let after = DCTCP_NAME.to_owned();
                self.steps.push(Step::Sysctl { name: CONGESTION_CONTROL.to_owned(), before, after });
            }
        }
        self.notes.push("DCTCP: both ends of a connection need it, and switches that mark ECN".to_owned());
        Ok(())
    }
}

/// The folder of the pacer's pins.
const PACER: &str = "pacer";
/// Bytes of an Ethernet header without FCS, as the limiter counts.
const ETHERNET: u64 = 14;
/// As the program registers itself; `plimsoll_bpf::DCTCP_NAME`, which a build without the programs lacks.
pub const DCTCP_NAME: &str = "plimsoll_dctcp";
const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
