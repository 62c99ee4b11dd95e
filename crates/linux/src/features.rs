//! What a live run needs of the system, and whether it is there.

use std::fs;
use std::process::{Command, Stdio};

use plimsoll_bpf::Needs;
use socket2::{Domain, Protocol, Socket, Type};

use crate::{cgroups, multipath, qjump};

/// Something that the system has or has not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Feature {
    /// The name of the feature.
    pub name: &'static str,
    /// What needs it, and what it does without.
    pub needed_for: String,
    /// Whether nothing can be emulated without it.
    pub required: bool,
    /// Whether the system has the feature.
    pub found: bool,
}

/// Bits of the effective capabilities (linux/capability.h).
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;

fn has_capability(bit: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    set.is_some_and(|set| set >> bit & 1 == 1)
}

/// Whether sockets here can have this congestion control; a module is loaded if need be.
pub fn has_congestion_control(name: &str) -> bool {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
    socket.is_ok_and(|socket| socket.set_tcp_congestion(name.as_bytes()).is_ok())
}

fn runs(program: &str) -> bool {
    let tried = Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// Everything that a live run may need.
pub fn features() -> Vec<Feature> {
    let optional = |name, needed_for: &str, found| feature(name, needed_for, false, found);
    let by_release = |needs: Needs, needed_for| {
        optional(needs.name(), &format!("{needed_for} (since {})", needs.since()), needs.is_here())
    };
    let has = has_congestion_control;
    let mut all = required();
    all.extend([
        optional("IPv6", "IPv6 between hosts", there("/proc/net/if_inet6")),
        optional("reno", "transport.kind = \"tcp\"", has("reno")),
        optional("cubic", "transport.kind = \"cubic\"", has("cubic")),
        optional("dctcp", "transport.kind = \"dctcp\"; without it, eBPF's", has("dctcp")),
        optional("bbr", "`plimsoll emulate --congestion-control bbr`", has("bbr")),
        optional("MPTCP", "`plimsoll emulate --mptcp`", multipath::is_here()),
        optional("eBPF programs", EBPF_NEEDED_FOR, qjump::lacks().is_none()),
        by_release(Needs::StructOpsLinks, "eBPF's dctcp; without them, only the kernel's own"),
        by_release(Needs::DeviceLinks, "`plimsoll host`; without them, filters of a clsact queue"),
        optional("cgroups (version 2)", "levels of programs", cgroups::are_here()),
    ]);
    all
}

fn there(path: &str) -> bool {
    fs::exists(path).unwrap_or(false)
}

#[cfg(feature = "kernel")]
const EBPF_NEEDED_FOR: &str =
    "transport.kind = \"dctcp\" where the kernel has none; host.qjump; levels of programs";
#[cfg(not(feature = "kernel"))]
const EBPF_NEEDED_FOR: &str =
    "transport.kind = \"dctcp\" where the kernel has none; host.qjump; levels of programs (`make kernel`)";

fn feature(name: &'static str, needed_for: &str, required: bool, found: bool) -> Feature {
    Feature { name, needed_for: needed_for.to_owned(), required, found }
}

fn required() -> Vec<Feature> {
    let required = |name, needed_for, found| feature(name, needed_for, true, found);
    vec![
        required("CAP_SYS_ADMIN", "network namespaces", has_capability(CAP_SYS_ADMIN)),
        required("CAP_NET_ADMIN", "devices, addresses and routes in them", has_capability(CAP_NET_ADMIN)),
        required("network namespaces", "hosts", there("/proc/self/ns/net")),
        required("/dev/net/tun", "the hosts' TAP devices", there("/dev/net/tun")),
        required("ip (iproute2)", "addresses and routes", runs("ip")),
    ]
}

/// The required features that are not there.
pub fn missing() -> Vec<Feature> {
    required().into_iter().filter(|feature| !feature.found).collect()
}
