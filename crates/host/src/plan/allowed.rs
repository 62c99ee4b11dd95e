//! Checks a plan that is read from a journal: it may contain only steps that planning its policy could produce. A
//! rollback executes the plan as root, so a journal that names other settings, folders and devices is rejected.

use std::path::{Component, Path, PathBuf};

use plimsoll_mechanisms::qjump::Levels;

use super::levels::{SYSTEMD_RUN, drop_in_name};
use super::pacer::{FEEDBACK, PACER};
use super::{ApplyPlan, CONGESTION_CONTROL, DCTCP_NAME, KERNELS_DCTCP, phantom_queue_pins};
use crate::folders::StateFolders;
use crate::names::{CgroupPath, DeviceName, PolicyName, Prefix, UnitName};
use crate::policy::{DeviceSide, Policy, Subject};
use crate::step::{Hold, LevelCgroup, PortProgram, Step};

impl ApplyPlan {
    /// Checks that this is a possible plan of the policy `name`.
    ///
    /// # Errors
    /// Returns a message that names the impossible part.
    pub(crate) fn check(&self, name: &PolicyName, folders: &StateFolders) -> Result<(), String> {
        if self.policy.name.as_ref() != Some(name) {
            return Err(format!("it is not a plan of the policy {name}"));
        }
        self.policy.check().map_err(|error| error.to_string())?;
        if self.cgroups.as_ref().is_some_and(|root| !is_plain(root)) {
            return Err("its folder of cgroups is not an absolute path without `.` and `..`".to_owned());
        }
        let pins = folders.pins.join(name.as_str());
        let levels =
            self.policy.qjump.as_ref().map(|qjump| qjump.levels().map_err(|error| error.to_string()));
        let allowed = Allowed { plan: self, policy: &self.policy, pins: &pins, levels: levels.transpose()? };
        match self.steps.iter().find(|step| !allowed.step(step)) {
            Some(step) => Err(format!("this policy has no such step: {}", step.to_string().escape_debug())),
            None => Ok(()),
        }
    }
}

struct Allowed<'a> {
    plan: &'a ApplyPlan,
    policy: &'a Policy,
    pins: &'a Path,
    levels: Option<Levels>,
}

impl Allowed<'_> {
    fn step(&self, step: &Step) -> bool {
        let Policy { qjump, pacer, dctcp, .. } = self.policy;
        let of_qjump = |device: &DeviceName| qjump.as_ref().is_some_and(|qjump| qjump.device == *device);
        let of_pacer = |device: &DeviceName| pacer.as_ref().is_some_and(|pacer| pacer.device == *device);
        match step {
            Step::Cgroup { folder } => self.is_cgroup_to_make(folder),
            Step::Segments { device, .. } => of_qjump(device) || of_pacer(device),
            Step::Clsact { device } => self.policy.devices().any(|named| named == device),
            Step::Departures { device, before } | Step::Shaper { device, before, .. } => {
                of_pacer(device) && is_word(before)
            }
            Step::Program { device, side, program, hold, pins } => {
                let is_priority = |hold: &Hold| !matches!(hold, Hold::Filter { priority: 0 });
                is_priority(hold)
                    && self.program(program).is_some_and(|(named, at, folder)| {
                        (device, *side, pins) == (named, at, &self.pins.join(folder))
                    })
            }
            Step::Level { level, members, pins, .. } => {
                let count = self.levels.as_ref().map_or(0, |levels| levels.levels.len());
                usize::from(*level) < count
                    && *pins == self.pins.join(format!("level-{level}"))
                    && members.iter().all(|member| self.is_member(member, *level))
            }
            Step::DropIn { unit, level, file, .. } => {
                let name = drop_in_name(self.policy.name());
                self.has_unit(unit, *level)
                    && *file == Path::new(SYSTEMD_RUN).join(format!("{unit}.d")).join(name)
            }
            Step::Dctcp { pins } => dctcp.is_some() && *pins == self.pins.join("dctcp"),
            Step::Route { prefix, before, after } => {
                dctcp.as_ref().is_some_and(|dctcp| dctcp.destinations.contains(prefix))
                    && before.iter().chain([after]).all(|words| is_route(words, *prefix))
                    && control_of(after).is_some_and(is_dctcp)
            }
            Step::Sysctl { name, before, after } => {
                let is_default = dctcp.as_ref().is_some_and(|dctcp| dctcp.default);
                is_default && name == CONGESTION_CONTROL && is_word(before) && is_dctcp(after)
            }
        }
    }

    /// Returns where the policy has this program: its device and direction, and the folder of its pins within the
    /// policy's.
    fn program(&self, program: &PortProgram) -> Option<(&DeviceName, DeviceSide, String)> {
        let Policy { qjump, pacer, phantom_queue, .. } = self.policy;
        match program {
            PortProgram::Ports(ports) => {
                let qjump = qjump.as_ref().filter(|qjump| qjump.ports() == *ports)?;
                Some((&qjump.device, DeviceSide::Egress, "ports".to_owned()))
            }
            PortProgram::Limiter(limiter) => {
                let qjump = qjump.as_ref().filter(|qjump| *qjump == limiter)?;
                Some((&qjump.device, DeviceSide::Egress, "limiter".to_owned()))
            }
            PortProgram::PhantomQueue(queue) => {
                let queue = phantom_queue.iter().find(|named| *named == queue)?;
                Some((&queue.device, queue.direction, phantom_queue_pins(queue)))
            }
            PortProgram::Pacer { pacer: paced, root, cgroups, .. } => {
                let pacer = pacer.as_ref().filter(|pacer| *pacer == paced)?;
                let is_root = *root == self.plan.cgroups.clone().unwrap_or_default();
                let named = pacer.cgroups.iter().map(|path| path.under(root));
                (is_root && named.eq(cgroups.iter().cloned()))
                    .then(|| (&pacer.device, DeviceSide::Egress, PACER.to_owned()))
            }
            PortProgram::PacerFeedback { pacer: paced, flows } => {
                let pacer = pacer.as_ref().filter(|pacer| *pacer == paced)?;
                let is_pacers = *flows == self.pins.join(PACER).join("flows");
                is_pacers.then(|| (&pacer.device, DeviceSide::Ingress, FEEDBACK.to_owned()))
            }
        }
    }

    /// Returns whether the folder is a cgroup that the policy names, or an ancestor of one.
    fn is_cgroup_to_make(&self, folder: &Path) -> bool {
        let Some(root) = &self.plan.cgroups else { return false };
        let assigned = self.policy.qjump.iter().flat_map(|qjump| &qjump.assign);
        let assigned = assigned.filter_map(|one| one.cgroup.as_ref());
        let paced = self.policy.pacer.iter().flat_map(|pacer| &pacer.cgroups);
        let named = assigned.chain(paced).any(|path| path.under(root).starts_with(folder));
        // The folder may be a unit's cgroup, which systemd has removed since the plan was made.
        let of_unit = self.plan.steps.iter().any(|step| match step {
            Step::Level { members, .. } => {
                members.iter().any(|member| member.unit.is_some() && member.cgroup.starts_with(folder))
            }
            _ => false,
        });
        is_plain(folder) && folder != root && folder.starts_with(root) && (named || of_unit)
    }

    fn is_member(&self, member: &LevelCgroup, level: u8) -> bool {
        let Some(root) = &self.plan.cgroups else { return false };
        match &member.unit {
            Some(unit) => {
                let below = member.cgroup.strip_prefix(root).ok().and_then(Path::to_str);
                let path = below.and_then(|below| format!("/{below}").parse::<CgroupPath>().ok());
                self.has_unit(unit, level) && path.is_some_and(|path| path.under(root) == member.cgroup)
            }
            None => self.policy.qjump.iter().flat_map(|qjump| &qjump.assign).any(|one| {
                one.level == level
                    && one.cgroup.as_ref().is_some_and(|path| path.under(root) == member.cgroup)
            }),
        }
    }

    fn has_unit(&self, unit: &UnitName, level: u8) -> bool {
        self.policy
            .qjump
            .iter()
            .flat_map(|qjump| &qjump.assign)
            .any(|one| one.level == level && one.subject() == Some(Subject::Unit(unit)))
    }
}

/// Returns whether a path is absolute and has no `.`, `..` or repeated slashes.
fn is_plain(path: &Path) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    let again: PathBuf = path.components().collect();
    path.is_absolute() && path.components().all(is_plain) && again.as_os_str() == path.as_os_str()
}

/// Returns whether a text is one word, such as the name of a queue or a congestion control.
fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

fn is_dctcp(name: &str) -> bool {
    [DCTCP_NAME, KERNELS_DCTCP].contains(&name)
}

/// Returns the word that follows `congctl`.
fn control_of(route: &str) -> Option<&str> {
    route.split_whitespace().skip_while(|word| *word != "congctl").nth(1)
}

/// Returns whether the words of `ip route` concern this network and contain no options.
fn is_route(words: &str, prefix: Prefix) -> bool {
    let is_safe = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphanumeric() || first == ':')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "._-:/@".contains(c))
    };
    // The type of a route may precede the network.
    words.split_whitespace().all(is_safe)
        && words.split_whitespace().take(2).any(|word| prefix.is_written(word))
}

#[cfg(test)]
#[path = "allowed_tests.rs"]
mod tests;
