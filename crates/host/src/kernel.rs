//! [`Kernel`] is the [`System`] that changes this host. Only this file and `commands.rs` need privileges.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::AsFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use plimsoll_bpf::pinned::Pinned;
use plimsoll_bpf::{ChosenCgroup, DCTCP_NAME, PacerFeedback, PacerProgram, Tag, pinned};
use plimsoll_bpf::{
    HookDirection, Inputs, KernelDctcp, LimitedGuest, LimiterProgram, PhantomQueueProgram, PortClassifier,
    Program,
};
use plimsoll_mechanisms::tcp::{TcpConfig, TransportParams};
use plimsoll_process::Folder;

use crate::Error;
use crate::commands::{change, rows, run};
use crate::facts::{Host, HostFacts, RootQueue, index_of, lasting_words, sysctl_path};
use crate::levels;
use crate::lock::HostLock;
use crate::names::{DeviceName, Prefix};
use crate::plan::NO_PINS;
use crate::policy::{DeviceSide, GuestPolicy, QjumpPolicy, Tagging};
use crate::shaper;
use crate::step::{Hold, PortProgram, Step, System, Undone};

/// This host, while its lock is held. Programs that it starts to change the host hold the lock as well.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a>(pub &'a HostLock);

impl System for Kernel<'_> {
    fn check(&self, step: &Step, replaces: bool) -> Result<(), Error> {
        match step {
            Step::Program { program, pins, .. } => {
                unpinned(pins, replaces).and_then(|()| check_program(program))
            }
            Step::Level { level, share, pins, .. } => {
                unpinned(pins, replaces).and_then(|()| levels::check(*level, *share))
            }
            // The present setting belongs to this policy.
            _ if replaces => Ok(()),
            Step::DropIn { file, .. } if file.exists() => Err(Error::Program(format!(
                "{} was created after the plan was made; plan again",
                file.display()
            ))),
            Step::Dctcp { pins } => {
                unpinned(pins, false)?;
                let known = Host.sysctl("net.ipv4.tcp_available_congestion_control")?;
                if known.split_whitespace().any(|name| name == DCTCP_NAME) {
                    return Err(Error::Program(format!("{DCTCP_NAME} is registered already")));
                }
                Ok(KernelDctcp::check(&dctcp())?)
            }
            // An object that was created after the plan belongs to another program.
            Step::Cgroup { folder } if folder.exists() => Err(Error::Program(format!(
                "{} was created after the plan was made; plan again",
                folder.display()
            ))),
            Step::Clsact { device } if has_clsact(device)? => Err(Error::Program(format!(
                "{device} got a clsact queue after the plan was made; plan again"
            ))),
            Step::Departures { device, .. } | Step::Shaper { device, .. } => match Host.root_queue(device)? {
                RootQueue::Default(_) => Ok(()),
                _ => Err(Error::Program(format!(
                    "{device} got another root queue after the plan was made; plan again"
                ))),
            },
            Step::Cgroup { .. }
            | Step::DropIn { .. }
            | Step::Segments { .. }
            | Step::Clsact { .. }
            | Step::Route { .. }
            | Step::Sysctl { .. } => Ok(()),
        }
    }

    fn act(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            // The owner of a cgroup moves processes into it, with any umask.
            Step::Cgroup { folder } => made(folder, fs::DirBuilder::new().mode(0o755).create(folder)),
            Step::Segments { device, after, .. } => set_segments(self.0, device, *after),
            Step::Clsact { device } => add_queue(self.0, device, &["clsact"]),
            Step::Departures { device, .. } => {
                add_queue(self.0, device, &["root", "handle", ROOT_HANDLE, "fq"])
            }
            Step::Shaper { device, shape, .. } => shaper::make(self.0, device, shape),
            Step::Program { device, side, program, hold, pins } => {
                attach(device, *side, load(program)?, *hold, pins)
            }
            Step::Level { level, members, share, pins } => {
                make_pins(pins)?;
                levels::give(*level, members, *share, pins)
            }
            Step::DropIn { file, text, .. } => levels::tell_systemd(self.0, file, text),
            Step::Dctcp { pins } => {
                make_pins(pins)?;
                Ok(KernelDctcp::register(&dctcp())?.pin(pins)?)
            }
            Step::Route { prefix, before, after } => {
                route(self.0, *prefix, if before.is_some() { "replace" } else { "add" }, after)
            }
            Step::Sysctl { name, after, .. } => set_sysctl(name, after),
        }
    }

    fn undo(&mut self, step: &Step) -> Result<Undone, Error> {
        match step {
            Step::Cgroup { folder } => remove_cgroup(folder),
            Step::Segments { device, before, after } => {
                match Host.device(device)?.map(|now| now.gso_max_segs) {
                    Some(now) if now == *after => {
                        set_segments(self.0, device, *before).map(|()| Undone::Restored)
                    }
                    Some(now) if now != *before => Ok(left(format!("{device} has gso_max_segs {now}"))),
                    _ => Ok(Undone::Restored),
                }
            }
            Step::Clsact { device } => remove_clsact(self.0, device),
            Step::Departures { device, .. } => remove_root(self.0, device, "fq"),
            Step::Shaper { device, .. } => remove_root(self.0, device, "htb"),
            Step::Program { device, side, hold, pins, .. } => {
                find_pins(pins)?;
                match hold {
                    Hold::Link => pinned::detach(&pins.join(LINK))?,
                    Hold::Filter { priority } => remove_filter(self.0, device, *side, *priority, pins)?,
                }
                remove_pins(pins).map(|()| Undone::Restored)
            }
            Step::Level { pins, .. } => {
                find_pins(pins)?;
                levels::take(pins)?;
                remove_pins(pins).map(|()| Undone::Restored)
            }
            Step::DropIn { file, text, .. } => levels::untell_systemd(self.0, file, text),
            Step::Dctcp { pins } => {
                find_pins(pins)?;
                pinned::detach(&pins.join(LINK))?;
                remove_pins(pins).map(|()| Undone::Restored)
            }
            Step::Route { prefix, before, after } => undo_route(self.0, *prefix, before.as_deref(), after),
            Step::Sysctl { name, before, after } => match Host.sysctl(name)? {
                now if now == *after => set_sysctl(name, before).map(|()| Undone::Restored),
                now if now != *before => Ok(left(format!("{name} is {now}"))),
                _ => Ok(Undone::Restored),
            },
        }
    }
}

pub(crate) fn left(what: String) -> Undone {
    Undone::Left(format!("{what}, which was set after the policy was applied: left as it is"))
}

pub(crate) fn made(path: &Path, result: std::io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Error::Theirs(path.display().to_string()))
        }
        made => made.map_err(Error::doing(format!("making {}", path.display()))),
    }
}

/// Adds a queue to a device that has only the kernel's default there.
pub(crate) fn add_queue(lock: &HostLock, device: &DeviceName, words: &[&str]) -> Result<(), Error> {
    match change(lock, "tc", &[&["qdisc", "add", "dev", device.as_str()], words].concat()) {
        Err(Error::Command { said, .. }) if EXISTS.iter().any(|words| said.contains(words)) => {
            Err(Error::Theirs(format!("another queue of {device}")))
        }
        added => added,
    }
}

/// Creates a folder of pins. In a BPF file system all users may create folders and links, unless it was mounted
/// otherwise.
fn make_pins(pins: &Path) -> Result<(), Error> {
    Folder::make(pins).map(drop).map_err(Error::doing(format!("making {}", pins.display())))
}

/// Returns the folder of pins; none if it does not exist.
fn find_pins(pins: &Path) -> Result<Option<Folder>, Error> {
    Folder::open(pins).map_err(Error::doing(format!("examining {}", pins.display())))
}

/// Checks that the folder of pins can be created; with `replaces`, the policy's own is there and is removed first.
fn unpinned(pins: &Path, replaces: bool) -> Result<(), Error> {
    if !Host.has_pins() {
        return Err(Error::Program(NO_PINS.to_owned()));
    }
    find_pins(pins)?;
    if !replaces && pins.exists() {
        return Err(Error::Program(format!(
            "{} exists already; see docs/host.md, \"By hand\"",
            pins.display()
        )));
    }
    Ok(())
}

/// Checks that the cgroups and pins which the plan creates do not exist yet.
fn check_program(program: &PortProgram) -> Result<(), Error> {
    match program {
        PortProgram::Pacer { pacer, .. } => {
            Ok(PacerProgram::load(&pacer.params(), &[], Inputs::Kernel).map(drop)?)
        }
        PortProgram::PacerFeedback { pacer, .. } => {
            let flows = PacerProgram::load(&pacer.params(), &[], Inputs::Kernel)?.flows()?;
            Ok(PacerFeedback::load(&pacer.params(), flows.as_fd(), Inputs::Kernel).map(drop)?)
        }
        PortProgram::Ports(_) | PortProgram::Limiter(_) | PortProgram::PhantomQueue(_) => {
            load(program).map(drop)
        }
    }
}

fn load(program: &PortProgram) -> Result<Program, Error> {
    Ok(match program {
        PortProgram::Ports(levels) => PortClassifier::load(levels)?.into_program(),
        PortProgram::Limiter(qjump) => {
            let levels = qjump.levels().map_err(plimsoll_bpf::Error::from)?;
            let guest =
                |guest: &GuestPolicy| LimitedGuest { address: guest.address.bits(), level: guest.level };
            let guests: Vec<LimitedGuest> = qjump.guest.iter().map(guest).collect();
            LimiterProgram::load_for_guests(&levels, qjump.excess, tag(qjump), &guests, Inputs::Kernel)?
                .into_program()
        }
        PortProgram::PhantomQueue(queue) => {
            PhantomQueueProgram::load(&queue.params(), queue.rate, Inputs::Kernel)?.into_program()
        }
        PortProgram::Pacer { pacer, root, cgroups, shaped } => {
            let chosen = cgroups.iter().map(|folder| ChosenCgroup::of(root, folder));
            let chosen = chosen.collect::<Result<Vec<_>, _>>()?;
            let class = shaped.then_some(shaper::CLASS);
            PacerProgram::load_for(&pacer.params(), &chosen, class, Inputs::Kernel)?.into_program()
        }
        PortProgram::PacerFeedback { pacer, flows } => {
            let flows = Pinned::open(flows)?;
            PacerFeedback::load(&pacer.params(), flows.as_fd(), Inputs::Kernel)?.into_program()
        }
    })
}

fn tag(qjump: &QjumpPolicy) -> Tag {
    match qjump.tag {
        Tagging::Dscp => Tag::Dscp,
        Tagging::Pcp => Tag::Pcp { vlan: qjump.vlan },
        Tagging::None => Tag::None,
    }
}

/// Returns the gain and the initial alpha of a scenario with default parameters.
fn dctcp() -> TcpConfig {
    TransportParams::default().resolve().expect("the defaults are within their ranges")
}

fn attach(
    device: &DeviceName,
    side: DeviceSide,
    mut program: Program,
    hold: Hold,
    pins: &Path,
) -> Result<(), Error> {
    let gone = || Error::Unavailable(vec![format!("network device {device} no longer exists")]);
    let index = index_of(device).and_then(|index| i32::try_from(index).ok()).ok_or_else(gone)?;
    let direction = match side {
        DeviceSide::Ingress => HookDirection::Ingress,
        DeviceSide::Egress => HookDirection::Egress,
    };
    make_pins(pins)?;
    // The pacer has two programs; the one at egress owns the map of flows.
    let maps: &[&str] =
        if side == DeviceSide::Egress { &["state", "counts", "flows"] } else { &["state", "counts"] };
    program.pin_maps(pins, maps)?;
    match hold {
        Hold::Link => Ok(program.link(index, direction)?.pin(&pins.join(LINK))?),
        Hold::Filter { priority } => {
            // The pin comes first: by it a rollback recognizes this filter.
            program.pin(&pins.join(PROGRAM))?;
            Ok(program.filter(index, direction, priority)?)
        }
    }
}

/// Removes the filter if it is this program's.
fn remove_filter(
    lock: &HostLock,
    device: &DeviceName,
    side: DeviceSide,
    priority: u32,
    pins: &Path,
) -> Result<(), Error> {
    let pin = pins.join(PROGRAM);
    if index_of(device).is_none() || !pin.exists() || !has_clsact(device)? {
        return Ok(());
    }
    let id = pinned::program_id(&pin)?;
    let filters = rows("tc", &["-j", "filter", "show", "dev", device.as_str(), side.name()])?;
    let ours =
        filters.iter().any(|filter| filter["pref"] == priority && filter["options"]["prog"]["id"] == id);
    if !ours {
        return Ok(());
    }
    let pref = priority.to_string();
    change(lock, "tc", &["filter", "del", "dev", device.as_str(), side.name(), "pref", &pref])
}

fn has_clsact(device: &DeviceName) -> Result<bool, Error> {
    Ok(Host.device(device)?.is_some_and(|device| device.clsact))
}

/// Removes the clsact queue unless it holds filters of others.
fn remove_clsact(lock: &HostLock, device: &DeviceName) -> Result<Undone, Error> {
    if index_of(device).is_none() || !has_clsact(device)? {
        return Ok(Undone::Restored);
    }
    for side in [DeviceSide::Ingress, DeviceSide::Egress] {
        if !Host.filters(device, side)?.is_empty() {
            return Ok(Undone::Left(format!("the clsact queue of {device} stays: it holds other filters")));
        }
    }
    change(lock, "tc", &["qdisc", "del", "dev", device.as_str(), "clsact"]).map(|()| Undone::Restored)
}

/// Removes the root queue of this kind that a policy created. The kernel restores its default by itself.
fn remove_root(lock: &HostLock, device: &DeviceName, kind: &str) -> Result<Undone, Error> {
    if index_of(device).is_none() {
        return Ok(Undone::Restored);
    }
    let queues = rows("tc", &["-j", "qdisc", "show", "dev", device.as_str()])?;
    let ours = |queue: &serde_json::Value| queue["kind"] == kind && queue["handle"] == ROOT_HANDLE;
    match Host.root_queue(device)? {
        RootQueue::Default(_) => Ok(Undone::Restored),
        _ if queues.iter().any(ours) => {
            change(lock, "tc", &["qdisc", "del", "dev", device.as_str(), "root"]).map(|()| Undone::Restored)
        }
        other => Ok(left(format!("the root queue of {device} is {other:?}"))),
    }
}

fn set_segments(lock: &HostLock, device: &DeviceName, segments: u32) -> Result<(), Error> {
    let segments = segments.to_string();
    change(lock, "ip", &["link", "set", "dev", device.as_str(), "gso_max_segs", &segments])
}

fn set_sysctl(name: &str, value: &str) -> Result<(), Error> {
    let path = sysctl_path(name);
    fs::write(&path, value).map_err(Error::doing(format!("setting {name} to {value}")))
}

/// Removes a cgroup and moves its processes to its parent; leaves a cgroup in which others have created cgroups.
fn remove_cgroup(folder: &Path) -> Result<Undone, Error> {
    let doing = || Error::doing(format!("removing {}", folder.display()));
    let stays = || Undone::Left(format!("{} stays: it contains other cgroups", folder.display()));
    let Ok(processes) = fs::read_to_string(folder.join("cgroup.procs")) else { return Ok(Undone::Restored) };
    if has_folders(folder) {
        return Ok(stays());
    }
    let above = folder.parent().expect("a cgroup is below the root").join("cgroup.procs");
    for process in processes.lines() {
        // A process that has ended in the meantime need not be moved.
        let _ = fs::write(&above, process);
    }
    match fs::remove_dir(folder) {
        Ok(()) => Ok(Undone::Restored),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Undone::Restored),
        Err(_) if has_folders(folder) => Ok(stays()),
        Err(error) => Err(doing()(error)),
    }
}

fn has_folders(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(|entry| entry.path().is_dir()))
}

/// Removes the pins of a step, and then the folders of the policy and of Plimsoll if they are empty.
fn remove_pins(pins: &Path) -> Result<(), Error> {
    let doing = || Error::doing(format!("removing {}", pins.display()));
    if let Some(folder) = find_pins(pins)? {
        let names = folder.names().map_err(doing())?;
        names.iter().try_for_each(|name| folder.remove(name)).map_err(doing())?;
    }
    for folder in pins.ancestors().take(3) {
        if let Err(error) = fs::remove_dir(folder) {
            match error.kind() {
                ErrorKind::NotFound => {}
                ErrorKind::DirectoryNotEmpty => break,
                _ => return Err(doing()(error)),
            }
        }
    }
    Ok(())
}

fn route(lock: &HostLock, prefix: Prefix, verb: &str, words: &str) -> Result<(), Error> {
    let family = if prefix.is_ipv6() { "-6" } else { "-4" };
    let mut arguments = vec![family, "route", verb];
    arguments.extend(words.split_whitespace());
    change(lock, "ip", &arguments)
}

fn undo_route(lock: &HostLock, prefix: Prefix, before: Option<&str>, after: &str) -> Result<Undone, Error> {
    let family = if prefix.is_ipv6() { "-6" } else { "-4" };
    let said = run("ip", &[family, "route", "show", "exact", &prefix.to_string(), "table", "main"])?;
    let control = after.split_whitespace().skip_while(|word| *word != "congctl").nth(1).unwrap_or(DCTCP_NAME);
    let ours = said.lines().any(|line| line.contains(&format!("congctl {control}")));
    let now = said.lines().map(lasting_words).collect::<Vec<_>>().join("; ");
    match (ours, before) {
        (true, Some(before)) => route(lock, prefix, "replace", before)?,
        (true, None) => route(lock, prefix, "del", after)?,
        // The route was not changed, or is restored already.
        (false, before) if now == before.unwrap_or_default() => {}
        (false, Some(before)) if now.is_empty() && is_without_device(before) => {}
        (false, _) if now.is_empty() => return Ok(left(format!("there is no route to {prefix}"))),
        (false, _) => return Ok(left(format!("the route to {prefix} is `{now}`"))),
    }
    Ok(Undone::Restored)
}

/// Returns whether the route's device, and thereby the route, no longer exists.
fn is_without_device(route: &str) -> bool {
    let device = route.split_whitespace().skip_while(|word| *word != "dev").nth(1);
    device.and_then(|name| name.parse().ok()).is_some_and(|name| index_of(&name).is_none())
}

/// The name of a link's pin.
pub const LINK: &str = "link";
/// The handle "HU", by which a rollback recognizes a root queue that a policy created.
pub(crate) const ROOT_HANDLE: &str = "4855:";
/// The messages of `tc` about an existing queue: its own, and that of the error that it returns.
const EXISTS: [&str; 2] = ["Exclusivity flag on", "File exists"];
/// The name of the pin of a program that a filter uses.
const PROGRAM: &str = "program";
