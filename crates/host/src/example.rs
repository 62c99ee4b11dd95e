//! [`ExampleHost`]: a host that has whatever a policy names, to check a policy without the host that it is for.

use std::path::{Path, PathBuf};

use crate::facts::{Device, HostFacts, HostRoute, RootQueue, Unit};
use crate::names::{CgroupPath, DeviceName, Prefix, UnitName};
use crate::{ApplyPlan, DeviceSide, Error, Policy, StateFolders, plan};

/// A host with every device, cgroup, unit and route that a policy names, and a kernel with every mechanism.
#[derive(Clone, Copy, Debug)]
pub struct ExampleHost;

impl ExampleHost {
    /// Plans a policy as `plimsoll host plan` does on a host that lacks nothing and has no other policy.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] with the reasons why no host can implement the policy.
    pub fn plan(policy: &Policy) -> Result<ApplyPlan, Error> {
        let nowhere = PathBuf::from("/nonexistent/plimsoll");
        plan(policy, &ExampleHost, &StateFolders { state: nowhere.clone(), pins: nowhere })
    }
}

impl HostFacts for ExampleHost {
    fn device(&self, _: &DeviceName) -> Result<Option<Device>, Error> {
        Ok(Some(Device { mtu: 1_500, gso_max_segs: 65_535, clsact: false }))
    }
    fn filters(&self, _: &DeviceName, _: DeviceSide) -> Result<Vec<u32>, Error> {
        Ok(Vec::new())
    }
    fn root_queue(&self, _: &DeviceName) -> Result<RootQueue, Error> {
        Ok(RootQueue::Default("pfifo_fast".to_owned()))
    }
    fn has_fq(&self) -> bool {
        true
    }
    fn has_shapers(&self) -> bool {
        true
    }
    fn cgroups(&self) -> Option<PathBuf> {
        Some(PathBuf::from("/sys/fs/cgroup"))
    }
    fn is_folder(&self, _: &Path) -> bool {
        true
    }
    fn unit(&self, name: &UnitName) -> Result<Unit, Error> {
        let cgroup: Option<CgroupPath> = format!("/system.slice/{name}").parse().ok();
        Ok(cgroup.map_or(Unit::Unknown, Unit::Running))
    }
    fn devices(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }
    fn program(&self) -> Result<PathBuf, Error> {
        Ok(PathBuf::from("/usr/bin/plimsoll"))
    }
    fn route(&self, prefix: Prefix) -> Result<Option<HostRoute>, Error> {
        Ok(Some(HostRoute::Wider(format!("{prefix} via 192.0.2.1 dev eth0"))))
    }
    fn sysctl(&self, _: &str) -> Result<String, Error> {
        Ok("cubic".to_owned())
    }
    fn has_tcx(&self) -> bool {
        true
    }
    fn has_struct_ops_links(&self) -> bool {
        true
    }
    fn has_dctcp(&self) -> bool {
        true
    }
    fn has_pins(&self) -> bool {
        true
    }
}
