//! [`Beneath`] describes the host as it was before a policy was applied, so that a changed version of that policy is
//! planned from the same state: steps that both versions need are then equal, with equal undo information.
//!
//! A setting that others have changed since keeps its present value, so that the new plan records this value.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::facts::{Device, HostFacts, HostRoute, RootQueue, Unit};
use crate::names::{DeviceName, Prefix, UnitName};
use crate::policy::DeviceSide;
use crate::step::{Hold, Step};

/// The host without the changes of `steps`, which are applied on it.
pub(crate) struct Beneath<'a> {
    pub(crate) facts: &'a dyn HostFacts,
    pub(crate) steps: &'a [Step],
}

impl HostFacts for Beneath<'_> {
    fn device(&self, name: &DeviceName) -> Result<Option<Device>, Error> {
        let Some(mut device) = self.facts.device(name)? else { return Ok(None) };
        for step in self.steps.iter().rev() {
            match step {
                Step::Segments { device: of, before, after }
                    if of == name && device.gso_max_segs == *after =>
                {
                    device.gso_max_segs = *before;
                }
                Step::Clsact { device: of } if of == name => device.clsact = false,
                _ => {}
            }
        }
        Ok(Some(device))
    }

    fn filters(&self, name: &DeviceName, side: DeviceSide) -> Result<Vec<u32>, Error> {
        let is_ours = |priority: &u32| {
            self.steps.iter().any(|step| match step {
                Step::Program { device, side: at, hold: Hold::Filter { priority: ours }, .. } => {
                    (device, *at, ours) == (name, side, priority)
                }
                _ => false,
            })
        };
        let all = self.facts.filters(name, side)?;
        Ok(all.into_iter().filter(|priority| !is_ours(priority)).collect())
    }

    fn root_queue(&self, name: &DeviceName) -> Result<RootQueue, Error> {
        let now = self.facts.root_queue(name)?;
        let before = self.steps.iter().find_map(|step| match (step, &now) {
            (Step::Departures { device, before }, RootQueue::Departures) if device == name => Some(before),
            (Step::Shaper { device, before, .. }, RootQueue::Set(kind))
                if device == name && kind == "htb" =>
            {
                Some(before)
            }
            _ => None,
        });
        Ok(before.map_or(now, |before| RootQueue::Default(before.clone())))
    }

    fn is_folder(&self, path: &Path) -> bool {
        let is_ours =
            self.steps.iter().any(|step| matches!(step, Step::Cgroup { folder } if path.starts_with(folder)));
        !is_ours && self.facts.is_folder(path)
    }

    fn route(&self, prefix: Prefix) -> Result<Option<HostRoute>, Error> {
        let ours = self.steps.iter().find_map(|step| match step {
            Step::Route { prefix: of, before, after } if *of == prefix => Some((before, after)),
            _ => None,
        });
        let wider = |after: &String| {
            after.split_once(" features ").map_or(after.as_str(), |(words, _)| words).to_owned()
        };
        match ours {
            Some((Some(before), _)) => Ok(Some(HostRoute::Exact(before.clone()))),
            Some((None, after)) => Ok(Some(HostRoute::Wider(wider(after)))),
            None => self.facts.route(prefix),
        }
    }

    fn sysctl(&self, name: &str) -> Result<String, Error> {
        let now = self.facts.sysctl(name)?;
        let before = self.steps.iter().find_map(|step| match step {
            Step::Sysctl { name: of, before, after } if of == name && *after == now => Some(before.clone()),
            _ => None,
        });
        Ok(before.unwrap_or(now))
    }

    fn has_fq(&self) -> bool {
        self.facts.has_fq()
    }

    fn has_shapers(&self) -> bool {
        self.facts.has_shapers()
    }

    fn cgroups(&self) -> Option<PathBuf> {
        self.facts.cgroups()
    }

    fn unit(&self, name: &UnitName) -> Result<Unit, Error> {
        self.facts.unit(name)
    }

    fn devices(&self) -> Result<Vec<String>, Error> {
        self.facts.devices()
    }

    fn program(&self) -> Result<PathBuf, Error> {
        self.facts.program()
    }

    fn has_tcx(&self) -> bool {
        self.facts.has_tcx()
    }

    fn has_struct_ops_links(&self) -> bool {
        self.facts.has_struct_ops_links()
    }

    fn has_dctcp(&self) -> bool {
        self.facts.has_dctcp()
    }

    fn has_pins(&self) -> bool {
        self.facts.has_pins()
    }
}
