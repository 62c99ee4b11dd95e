//! [`HostFacts`] are the properties of a host that a plan depends on; [`Host`] queries them. Nothing here changes the
//! host.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use plimsoll_bpf::Needs;
use serde_json::Value;

use crate::commands::{rows, run};
use crate::names::{CgroupPath, DeviceName, Prefix, UnitName};
use crate::{DeviceSide, Error};

mod routes;

#[cfg(feature = "kernel")]
pub(crate) use routes::lasting_words;
use routes::{not_repeatable, repeatable, wider};

/// The properties of a network device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    /// The largest IP packet, in bytes.
    pub mtu: u32,
    /// The most segments that TCP may pass to the device at once.
    pub gso_max_segs: u32,
    /// Whether the device has a clsact queue.
    pub clsact: bool,
}

/// The queueing discipline at the root of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RootQueue {
    /// The kernel's default for a device without a configured queue.
    Default(String),
    /// A configured queue, by its name.
    Set(String),
    /// A queue that obeys departure times: fq, or mq with fq for each hardware queue.
    Departures,
}

/// The route to a network, in the words of `ip route`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostRoute {
    /// A route to exactly this network.
    Exact(String),
    /// The words of a route to this network that copies a wider route.
    Wider(String),
}

/// The properties of a host that a plan depends on.
pub trait HostFacts {
    /// Queries the device of this name; returns none if it does not exist.
    ///
    /// # Errors
    /// Returns an error of the system.
    fn device(&self, name: &DeviceName) -> Result<Option<Device>, Error>;

    /// Queries the preferences of the device's filters in this direction.
    ///
    /// # Errors
    /// Returns an error of the system.
    fn filters(&self, name: &DeviceName, side: DeviceSide) -> Result<Vec<u32>, Error>;

    /// Queries the queueing discipline at the device's root.
    ///
    /// # Errors
    /// Returns an error of the system.
    fn root_queue(&self, name: &DeviceName) -> Result<RootQueue, Error>;

    /// Returns whether the kernel has the queueing discipline fq, or a module of it.
    fn has_fq(&self) -> bool;

    /// Returns whether the kernel has the queueing disciplines HTB and TBF, or modules of them.
    fn has_shapers(&self) -> bool;

    /// Returns the folder where cgroups (version 2) are mounted.
    fn cgroups(&self) -> Option<PathBuf>;

    /// Returns whether `path` is a folder.
    fn is_folder(&self, path: &Path) -> bool;

    /// Queries the state of a systemd unit.
    ///
    /// # Errors
    /// Returns an error if systemd does not answer.
    fn unit(&self, name: &UnitName) -> Result<Unit, Error>;

    /// Lists the names of all devices.
    ///
    /// # Errors
    /// Returns an error of the system.
    fn devices(&self) -> Result<Vec<String>, Error>;

    /// Returns the path of this program, which units run as root.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] if users other than root could replace the program, and any error of the system.
    fn program(&self) -> Result<PathBuf, Error>;

    /// Queries the route to `prefix`; returns none if the network is unreachable.
    ///
    /// # Errors
    /// Returns an error of the system, and an error if the route has a form that could not be restored exactly.
    fn route(&self, prefix: Prefix) -> Result<Option<HostRoute>, Error>;

    /// Reads a setting in /proc/sys, by its name with dots.
    ///
    /// # Errors
    /// Returns an error if the setting cannot be read.
    fn sysctl(&self, name: &str) -> Result<String, Error>;

    /// Returns whether the kernel attaches programs to devices by links (tcx).
    fn has_tcx(&self) -> bool;

    /// Returns whether closing a link unregisters a congestion control, as Plimsoll's requires.
    fn has_struct_ops_links(&self) -> bool;

    /// Returns whether the kernel has a congestion control `dctcp`, or a module of it.
    fn has_dctcp(&self) -> bool;

    /// Returns whether a BPF file system is mounted for pinned programs.
    fn has_pins(&self) -> bool;
}

/// The state of a systemd unit of a kind that has a cgroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unit {
    /// No unit of that name exists.
    Unknown,
    /// The unit is not running.
    Stopped,
    /// The unit is running in this cgroup.
    Running(CgroupPath),
}

/// The host on which this process runs.
#[derive(Clone, Copy, Debug)]
pub struct Host;

impl HostFacts for Host {
    fn device(&self, name: &DeviceName) -> Result<Option<Device>, Error> {
        if index_of(name).is_none() {
            return Ok(None);
        }
        let links = rows("ip", &["-d", "-j", "link", "show", "dev", name.as_str()])?;
        let Some(link) = links.first() else { return Ok(None) };
        let number = |key: &str| link[key].as_u64().and_then(|value| u32::try_from(value).ok()).unwrap_or(0);
        let queues = rows("tc", &["-j", "qdisc", "show", "dev", name.as_str()])?;
        let clsact = queues.iter().any(|queue| queue["kind"] == "clsact");
        Ok(Some(Device { mtu: number("mtu"), gso_max_segs: number("gso_max_segs"), clsact }))
    }

    fn filters(&self, name: &DeviceName, side: DeviceSide) -> Result<Vec<u32>, Error> {
        let all = rows("tc", &["-j", "filter", "show", "dev", name.as_str(), side.name()])?;
        let preference = |filter: &Value| filter["pref"].as_u64().and_then(|value| u32::try_from(value).ok());
        Ok(all.iter().filter_map(preference).collect())
    }

    fn root_queue(&self, name: &DeviceName) -> Result<RootQueue, Error> {
        Ok(root_of(&rows("tc", &["-j", "qdisc", "show", "dev", name.as_str()])?))
    }

    fn has_fq(&self) -> bool {
        has_queue("fq")
    }

    fn has_shapers(&self) -> bool {
        has_queue("htb") && has_queue("tbf")
    }

    fn cgroups(&self) -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = mounts.lines().find(|line| {
            let kind = line.split(" - ").nth(1).and_then(|tail| tail.split(' ').next());
            kind == Some("cgroup2")
        })?;
        mount.split(' ').nth(4).map(PathBuf::from)
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn unit(&self, name: &UnitName) -> Result<Unit, Error> {
        let properties = ["show", "--property=LoadState", "--property=ControlGroup", "--", name.as_str()];
        let said = run("systemctl", &properties)?;
        let value = |key: &str| said.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        Ok(match (value("ControlGroup=").parse(), value("LoadState=")) {
            (Ok(cgroup), _) => Unit::Running(cgroup),
            (Err(_), "not-found" | "") => Unit::Unknown,
            (Err(_), _) => Unit::Stopped,
        })
    }

    fn program(&self) -> Result<PathBuf, Error> {
        let program =
            std::env::current_exe().map_err(Error::doing("finding the path of this program".to_owned()))?;
        match replaceable(&program) {
            None => Ok(program),
            Some(why) => Err(Error::Unavailable(vec![format!(
                "systemd would run {} as root, though {why}; install it where only root writes, such as /usr/local/bin",
                program.display()
            )])),
        }
    }

    fn devices(&self) -> Result<Vec<String>, Error> {
        let links = rows("ip", &["-j", "link", "show"])?;
        Ok(links.iter().filter_map(|link| Some(link["ifname"].as_str()?.to_owned())).collect())
    }

    fn route(&self, prefix: Prefix) -> Result<Option<HostRoute>, Error> {
        let family = if prefix.is_ipv6() { "-6" } else { "-4" };
        let text = prefix.to_string();
        let exact = run("ip", &[family, "route", "show", "exact", &text, "table", "main"])?;
        let lines: Vec<&str> = exact.lines().filter(|line| !line.trim().is_empty()).collect();
        match lines.as_slice() {
            [] => {
                let matching = run("ip", &[family, "route", "show", "match", &text, "table", "main"])?;
                wider(&matching, &text)
            }
            [line] => repeatable(line, &text).map(|words| Some(HostRoute::Exact(words))),
            _ => Err(not_repeatable(&text, "there are several")),
        }
    }

    fn sysctl(&self, name: &str) -> Result<String, Error> {
        let path = sysctl_path(name);
        let text = fs::read_to_string(&path).map_err(Error::doing(format!("reading {}", path.display())))?;
        Ok(text.trim().to_owned())
    }

    fn has_tcx(&self) -> bool {
        Needs::DeviceLinks.is_here()
    }

    fn has_struct_ops_links(&self) -> bool {
        Needs::StructOpsLinks.is_here()
    }

    fn has_dctcp(&self) -> bool {
        let known = self.sysctl("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
        known.split_whitespace().any(|name| name == "dctcp") || has_module("tcp_dctcp")
    }

    fn has_pins(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        mounts.lines().any(|line| line.split(' ').nth(1) == Some(BPF_FILES) && line.contains(" bpf "))
    }
}

/// Returns why users other than root could change or replace the file, checked from the file up to the root; none if
/// they cannot.
fn replaceable(file: &Path) -> Option<String> {
    file.ancestors().find_map(|path| {
        let shown = path.display();
        match fs::symlink_metadata(path) {
            Err(error) => Some(format!("{shown} cannot be examined: {error}")),
            Ok(about) if about.uid() != 0 => Some(format!("{shown} belongs to user {}", about.uid())),
            Ok(about) if about.mode() & 0o022 != 0 => {
                Some(format!("{shown} can be written by others (mode {:o})", about.mode() & 0o7777))
            }
            Ok(_) => None,
        }
    })
}

/// Returns whether the kernel has this queueing discipline, or a module of it.
fn has_queue(name: &str) -> bool {
    let symbol = format!(" {name}_enqueue");
    ["\n", "\t"].iter().any(|end| contains(Path::new("/proc/kallsyms"), &format!("{symbol}{end}")))
        || has_module(&format!("sch_{name}"))
}

/// Returns whether this kernel has the module, loadable or built in.
fn has_module(name: &str) -> bool {
    let (release, file) = (rustix::system::uname(), format!("/{name}.ko"));
    let modules = Path::new("/lib/modules").join(release.release().to_string_lossy().as_ref());
    ["modules.dep", "modules.builtin"].iter().any(|list| contains(&modules.join(list), &file))
}

fn contains(file: &Path, words: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.contains(words))
}

/// Interprets the output of `tc` about a device's queues.
fn root_of(queues: &[Value]) -> RootQueue {
    let kind = |queue: &Value| queue["kind"].as_str().unwrap_or_default().to_owned();
    let Some(root) = queues.iter().find(|queue| queue["root"] == true) else {
        return RootQueue::Default("noqueue".to_owned());
    };
    let mut below = queues.iter().filter(|queue| queue["root"] != true && kind(queue) != "clsact").peekable();
    match kind(root).as_str() {
        "fq" => RootQueue::Departures,
        "mq" if below.peek().is_some() && below.all(|queue| kind(queue) == "fq") => RootQueue::Departures,
        kind if root["handle"] == "0:" => RootQueue::Default(kind.to_owned()),
        kind => RootQueue::Set(kind.to_owned()),
    }
}

/// Returns the interface index of a device; none if it does not exist.
pub fn index_of(name: &DeviceName) -> Option<u32> {
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None).ok()?;
    rustix::net::netdevice::name_to_index(&socket, name.as_str()).ok()
}

/// Returns the name of the device with this interface index; none if it does not exist.
pub fn name_of(index: u32) -> Option<String> {
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None).ok()?;
    rustix::net::netdevice::index_to_name(&socket, index).ok()
}

/// Returns the link-layer address of a device, as `ip link` writes it; none if it has none, or does not exist.
pub fn address_of(name: &DeviceName) -> Option<String> {
    let links = rows("ip", &["-j", "link", "show", "dev", name.as_str()]).ok()?;
    Some(links.first()?["address"].as_str()?.to_owned())
}

/// Returns the file of a setting.
pub fn sysctl_path(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

/// The mount point of the BPF file system.
const BPF_FILES: &str = "/sys/fs/bpf";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_the_kernels_or_somebodys_or_keeps_departures() {
        let root = |json: &str| root_of(&serde_json::from_str::<Vec<Value>>(json).expect("JSON"));
        let clsact = r#"{"kind":"clsact","handle":"ffff:","parent":"ffff:fff1"}"#;
        let default = |name: &str| RootQueue::Default(name.to_owned());
        let mq = |below: &str| {
            format!(
                r#"{{"kind":"mq","handle":"0:","root":true}},{{"kind":"{below}","handle":"0:","parent":":1"}}"#
            )
        };
        for (json, expected) in [
            (String::new(), default("noqueue")),
            (r#"{"kind":"pfifo_fast","handle":"0:","root":true}"#.to_owned(), default("pfifo_fast")),
            (r#"{"kind":"tbf","handle":"8001:","root":true}"#.to_owned(), RootQueue::Set("tbf".to_owned())),
            (format!(r#"{{"kind":"fq","handle":"8001:","root":true}},{clsact}"#), RootQueue::Departures),
            (format!("{},{clsact}", mq("fq")), RootQueue::Departures),
            (mq("pfifo_fast"), default("mq")),
        ] {
            assert_eq!(root(&format!("[{json}]")), expected, "{json}");
        }
    }

    #[test]
    fn a_program_is_roots_alone_with_all_the_folders_above_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("program");
        fs::write(&file, "").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let is_root = fs::metadata(&file).expect("it is there").uid() == 0;
        let shown = file.display().to_string();
        // The folder of temporary files is writable by all users.
        let said = replaceable(&file).expect("its folder is everybody's");
        assert_eq!(said.contains(&shown), !is_root, "{said}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o775)).expect("it is ours");
        let said = replaceable(&file).expect("a group may write it");
        assert!(said.starts_with(&shown) && (!is_root || said.contains("mode 775")), "{said}");
        assert_eq!(replaceable(Path::new("/proc/version")), None);
        assert!(replaceable(Path::new("/proc/no/such")).is_some_and(|said| said.contains("examined")));
    }
}
