//! [`Here`] identifies where a policy is applied. Other network namespaces have devices, routes and settings of the
//! same names, and other file systems have other pins and cgroups under the same paths; a rollback there would find
//! nothing to undo, and would report success. A device may have been renamed since, and another may have got its name
//! and even its interface index: devices are recognized by name, interface index and link-layer address together.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::facts::{address_of, index_of, name_of};
use crate::folders::StateFolders;
use crate::names::{DeviceName, PolicyName};
use crate::step::Step;

/// The namespace and file systems in which a policy was applied.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Here {
    /// The kernel's boot ID.
    boot: String,
    /// The identity of the network namespace.
    network: Identity,
    /// The file systems of pins and of cgroups, by their mount points.
    mounts: Vec<(PathBuf, Option<Identity>)>,
    /// The devices that the steps change, each with its interface index.
    devices: Vec<(DeviceName, Option<u32>)>,
    /// Their link-layer addresses, where they have one; journals of earlier versions have none.
    #[serde(default)]
    addresses: Vec<(DeviceName, String)>,
}

/// Why a device is not the one that a policy has changed under this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DeviceMismatch {
    /// The device has another name now.
    Renamed(String),
    /// No device of this namespace has its interface index, or one that was made anew.
    Gone(String),
}

impl fmt::Display for DeviceMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (DeviceMismatch::Renamed(why) | DeviceMismatch::Gone(why)) = self;
        f.write_str(why)
    }
}

/// The identity of a file or folder, independent of its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(path: &Path) -> Option<Identity> {
        let about = fs::metadata(path).ok()?;
        Some(Identity { device: about.dev(), inode: about.ino() })
    }
}

/// Keeps this thread in the network namespace of a policy until dropped.
#[derive(Debug)]
pub struct Entered {
    /// The path by which the namespace was entered, and this thread's own namespace; none where they are the same.
    from: Option<(PathBuf, File)>,
}

impl Entered {
    /// Returns the path by which the namespace was entered, if it is not this thread's own.
    pub fn way(&self) -> Option<&Path> {
        self.from.as_ref().map(|(way, _)| way.as_path())
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some((_, own)) = &self.from {
            // A thread that was permitted to leave its namespace may return to it.
            let _ = move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::Network));
        }
    }
}

impl Here {
    /// Identifies the namespace and file systems that this thread uses for `steps`, some of them in `cgroups`, and the
    /// devices that they change.
    ///
    /// # Errors
    /// Returns an error of the system.
    pub(crate) fn of(steps: &[Step], cgroups: Option<&Path>, folders: &StateFolders) -> Result<Here, Error> {
        let boot = fs::read_to_string(BOOT).map_err(Error::doing(format!("reading {BOOT}")))?;
        let network =
            Identity::of(Path::new(OWN)).ok_or_else(|| Error::Elsewhere(format!("{OWN} is missing")))?;
        let mounts = mounts(cgroups, folders);
        let mounts = mounts.map(|path| (path.to_owned(), Identity::of(path))).collect();
        let names: BTreeSet<DeviceName> = steps.iter().filter_map(Step::device).collect();
        let addresses = names.iter().filter_map(|name| Some((name.clone(), address_of(name)?))).collect();
        let devices = names.into_iter().map(|name| (name.clone(), index_of(&name))).collect();
        Ok(Here { boot: boot.trim().to_owned(), network, mounts, devices, addresses })
    }

    /// Returns why the device of this name is not the one that the policy `policy` has changed, with the advice; none
    /// if it is.
    pub(crate) fn missing(&self, policy: &PolicyName, name: &DeviceName) -> Option<DeviceMismatch> {
        let before = self.devices.iter().find_map(|(known, index)| (known == name).then_some(*index)?);
        let now = index_of(name);
        let policy = format!("policy {policy} has changed the network device {name}");
        if now == before {
            let (_, before) = self.addresses.iter().find(|(known, _)| known == name)?;
            let now = address_of(name).filter(|now| now != before)?;
            return Some(DeviceMismatch::Gone(format!(
                "{policy}, which had the address {before} then, and the one of this name has {now}; if it is the same, \
                 `ip link set dev {name} address {before}` lets this command recognize it; if it was made anew, add \
                 `--gone` to take back the rest"
            )));
        }
        let Some((index, renamed)) = before.and_then(|index| Some((index, name_of(index)?))) else {
            return Some(DeviceMismatch::Gone(format!(
                "{policy}, which this network namespace has no more; bring it back, or, if it is gone for good, add \
                 `--gone` to take back the rest"
            )));
        };
        let first = now.map_or_else(String::new, |_| {
            format!("give the device that is called {name} now another name; ")
        });
        Some(DeviceMismatch::Renamed(format!(
            "{policy}, which is called {renamed} now (interface {index}); \
             {first}`ip link set dev {renamed} name {name}` renames it, before Linux 6.2 only while it is down"
        )))
    }

    /// Returns whether the mount points are the ones that a plan with steps in `cgroups` uses.
    pub(crate) fn is_of(&self, cgroups: Option<&Path>, folders: &StateFolders) -> bool {
        self.mounts.iter().map(|(path, _)| path.as_path()).eq(mounts(cgroups, folders))
    }

    /// Checks that the policy `name` was applied since this host was booted, with the file systems of pins and cgroups
    /// that are mounted now.
    ///
    /// # Errors
    /// Returns [`Error::Elsewhere`] if not.
    pub fn check_mounts(&self, name: &PolicyName) -> Result<(), Error> {
        let boot = fs::read_to_string(BOOT).unwrap_or_default();
        if boot.trim() != self.boot {
            return Err(Error::Elsewhere(format!(
                "policy {name} was applied before this host was rebooted, which has undone its changes; \
                 `plimsoll host rollback {name} --gone` forgets it"
            )));
        }
        for (path, identity) in &self.mounts {
            if Identity::of(path) != *identity {
                return Err(Error::Elsewhere(format!(
                    "policy {name} was applied where another file system is at {shown}; run this command there (`ip \
                     netns exec` has \
                     its own, `nsenter --net=/run/netns/NAME` has not). If that one is gone for good, `plimsoll host \
                     rollback {name} --gone` takes back the rest",
                    shown = path.display()
                )));
            }
        }
        Ok(())
    }

    /// Enters the network namespace of the policy `name`, if this thread is in another.
    ///
    /// # Errors
    /// Returns the errors of [`Here::check_mounts`], and [`Error::Elsewhere`] if the namespace is not found or may not
    /// be entered.
    pub fn enter(&self, name: &PolicyName) -> Result<Entered, Error> {
        self.check_mounts(name)?;
        match self.enter_network(name)? {
            Some(entered) => Ok(entered),
            None => Err(Error::Elsewhere(format!(
                "policy {name} was applied in another network namespace (net:[{}]), which no process and no mount \
                 that this \
                 one sees has any more; run this where it is seen. If it is gone for good, `plimsoll host rollback \
                 {name} \
                 --gone` takes back the rest",
                self.network.inode
            ))),
        }
    }

    /// Enters the network namespace; returns none where it is not found.
    pub(crate) fn enter_network(&self, name: &PolicyName) -> Result<Option<Entered>, Error> {
        if self.is_own_network() {
            return Ok(Some(Entered { from: None }));
        }
        let Some(way) = self.way() else { return Ok(None) };
        let entered = File::open(OWN).and_then(|own| {
            move_into_link_name_space(File::open(&way)?.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(own)
        });
        let entered = entered.map(|own| Entered { from: Some((way.clone(), own)) });
        let entered = entered.map_err(|error| {
            Error::Elsewhere(format!(
                "policy {name} was applied in another network namespace, which this process may not enter ({error}); \
                 to do so, \
                 as root: nsenter --net={} plimsoll host ...",
                way.display()
            ))
        })?;
        // Another namespace may have taken the place of the one that was found.
        Ok(self.is_own_network().then_some(entered))
    }

    /// Returns the path of the policy's network namespace, if this thread is in another.
    pub fn other_network(&self) -> Option<String> {
        let found = || {
            self.way()
                .map_or_else(|| format!("net:[{}]", self.network.inode), |way| way.display().to_string())
        };
        (!self.is_own_network()).then(found)
    }

    /// Returns whether this thread is in the policy's network namespace.
    pub(crate) fn is_own_network(&self) -> bool {
        Identity::of(Path::new(OWN)) == Some(self.network)
    }

    /// Returns a file by which the network namespace can be entered: a mount, as `ip netns` makes them, or else a
    /// process in it.
    fn way(&self) -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mounts = mounts.lines().filter(|line| line.contains(" - nsfs "));
        let mounts = mounts.filter_map(|line| Some(PathBuf::from(line.split(' ').nth(4)?)));
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = processes
            .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
            .map(|entry| entry.path().join("ns/net"));
        mounts.chain(processes).find(|path| Identity::of(path) == Some(self.network))
    }
}

/// Returns the folders whose file systems the steps use.
fn mounts<'a>(cgroups: Option<&'a Path>, folders: &'a StateFolders) -> impl Iterator<Item = &'a Path> {
    folders.pins.parent().into_iter().chain(cgroups)
}

/// The network namespace of this thread, which may differ from that of its process.
const OWN: &str = "/proc/thread-self/ns/net";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
