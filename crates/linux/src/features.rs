//! The features of the system that a live run needs, and tests for each.

use std::fs;
use std::io;
use std::process::{Command, Stdio};

use plimsoll_bpf::Needs;
use socket2::{Domain, Protocol, Socket, Type};

use crate::agents::cgroups;
use crate::failure::failed;
use crate::net::multipath;

/// Something that the system has or has not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Feature {
    /// The name of the feature.
    pub name: &'static str,
    /// The parts of a run that need it, and how a run works without it.
    pub needed_for: String,
    /// Whether a run is impossible without it.
    pub required: bool,
    /// Whether the system has the feature.
    pub found: bool,
    /// The way to get the feature, for a system that lacks it.
    pub fix: String,
}

impl Feature {
    /// Makes a feature without which nothing works; `lacks` says what brings it, where it is missing.
    pub fn required(name: &'static str, needed_for: &str, lacks: Option<String>) -> Feature {
        let found = lacks.is_none();
        let (needed_for, fix) = (needed_for.to_owned(), lacks.unwrap_or_default());
        Feature { name, needed_for, required: true, found, fix }
    }

    /// Makes a feature without which a part does not work.
    pub fn optional(name: &'static str, needed_for: &str, found: bool, fix: &str) -> Feature {
        let (needed_for, fix) = (needed_for.to_owned(), fix.to_owned());
        Feature { name, needed_for, required: false, found, fix }
    }
}

/// Bits of the effective capabilities (linux/capability.h).
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
#[cfg(feature = "kernel")]
const CAP_BPF: u32 = 39;

/// Returns whether this process has the capability of this number (linux/capability.h).
pub fn has_capability(bit: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    set.is_some_and(|set| set >> bit & 1 == 1)
}

/// Returns whether sockets here can have this congestion control; a module is loaded if necessary.
pub fn has_congestion_control(name: &str) -> bool {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
    socket.is_ok_and(|socket| socket.set_tcp_congestion(name.as_bytes()).is_ok())
}

/// Returns whether the system has `program`, and `program -V` ends well.
///
/// # Errors
/// Returns an error if the system has the program and cannot start it.
pub fn runs(program: &str) -> io::Result<bool> {
    match Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) => Ok(status.success()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(format_args!("cannot start `{program}`"), error)),
    }
}

/// Returns whether routes can be chosen by port.
pub(crate) fn has_policy_routing() -> bool {
    let listed = Command::new("ip").arg("rule").stdout(Stdio::null()).stderr(Stdio::null()).status();
    listed.is_ok_and(|status| status.success())
}

/// Everything that a live run may need.
pub fn features() -> Vec<Feature> {
    let optional = Feature::optional;
    let by_release = |needs: Needs, needed_for| {
        optional(needs.name(), needed_for, needs.is_here(), &format!("{} or later", needs.since()))
    };
    let has = has_congestion_control;
    let programs = lacks_programs();
    let mut all = required(&runs("ip"));
    all.extend([
        optional("IPv6", "IPv6 between hosts", there("/proc/net/if_inet6"), "a kernel with CONFIG_IPV6"),
        optional("reno", "transport.kind = \"tcp\"", has("reno"), "a kernel with TCP"),
        optional("cubic", "transport.kind = \"cubic\"", has("cubic"), "modprobe tcp_cubic"),
        optional(
            "dctcp",
            "transport.kind = \"dctcp\"; without it, eBPF's",
            has("dctcp"),
            "modprobe tcp_dctcp, or a kernel with CONFIG_TCP_CONG_DCTCP",
        ),
        optional("bbr", "`plimsoll emulate --congestion-control bbr`", has("bbr"), "modprobe tcp_bbr"),
        optional(
            "MPTCP",
            "`plimsoll emulate --mptcp`",
            multipath::is_here(),
            "a kernel with CONFIG_MPTCP, and sysctl net.mptcp.enabled=1",
        ),
        optional(
            "policy routing",
            "`[transports.NAME]` tables of emulated runs",
            has_policy_routing(),
            "a kernel with CONFIG_IP_MULTIPLE_TABLES",
        ),
        optional(
            "eBPF programs",
            "transport.kind = \"dctcp\" where the kernel has none; host.qjump; levels of programs",
            programs.is_none(),
            &programs.unwrap_or_default(),
        ),
        by_release(Needs::StructOpsLinks, "eBPF's dctcp; without them, only the kernel's own"),
        optional(
            "cgroups (version 2)",
            "levels of programs",
            cgroups::are_here(),
            "mount -t cgroup2 none /sys/fs/cgroup",
        ),
    ]);
    all
}

/// Returns why this system does not load eBPF programs; `None` if it does.
#[cfg(feature = "kernel")]
pub fn lacks_programs() -> Option<String> {
    if !has_capability(CAP_BPF) && !has_capability(CAP_SYS_ADMIN) {
        return Some("run it as root, with sudo: to load programs needs CAP_BPF".to_owned());
    }
    plimsoll_bpf::Program::empty().err().map(|error| error.to_string())
}

/// Returns why this build has no eBPF programs.
#[cfg(not(feature = "kernel"))]
pub fn lacks_programs() -> Option<String> {
    crate::net::qjump::lacks()
}

fn there(path: &str) -> bool {
    fs::exists(path).unwrap_or(false)
}

fn required(ip: &io::Result<bool>) -> Vec<Feature> {
    let required = |name, needed_for, found: bool, fix: &str| {
        Feature::required(name, needed_for, (!found).then(|| fix.to_owned()))
    };
    let root = "run it as root, with sudo";
    let refused = ip.as_ref().err().map(ToString::to_string);
    vec![
        required("CAP_SYS_ADMIN", "network namespaces", has_capability(CAP_SYS_ADMIN), root),
        required(
            "CAP_NET_ADMIN",
            "devices, addresses and routes in them",
            has_capability(CAP_NET_ADMIN),
            root,
        ),
        required("network namespaces", "hosts", there("/proc/self/ns/net"), "a kernel with CONFIG_NET_NS"),
        required(
            "/dev/net/tun",
            "the hosts' TAP devices",
            there("/dev/net/tun"),
            "modprobe tun; in a container, pass the device in",
        ),
        required(
            "ip (iproute2)",
            "addresses and routes",
            matches!(ip, Ok(true)),
            refused.as_deref().unwrap_or("apt-get install iproute2"),
        ),
    ]
}

/// The required features that are not there.
///
/// # Errors
/// Returns an error if `ip` is there and cannot be started.
pub fn missing() -> io::Result<Vec<Feature>> {
    let ip = runs("ip");
    let missing = required(&ip).into_iter().filter(|feature| !feature.found).collect();
    ip.map(|_| missing)
}
