//! Implements `plimsoll check`, which tests whether this build and this system meet the requirements of the commands
//! that use the kernel.

use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use plimsoll_breakdown::privileges;
use plimsoll_host::{Host, HostFacts as _};
use plimsoll_linux::{Feature, has_capability, lacks_programs, runs};
use plimsoll_scenario::Registry;

use crate::output::{self, Done};

/// List the requirements of the commands that use the kernel, and whether this build and this system meet them.
///
/// What is missing has the reason, or what brings it, below it. `plimsoll run` and all other commands that simulate
/// need none of this. Ends with 1 if something is missing without which one of the listed commands cannot work.
#[derive(clap::Args)]
pub struct Args {
    /// Commands to check; all by default.
    command: Vec<KernelCommand>,
}

/// A command that uses the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum KernelCommand {
    /// Scenarios between network namespaces.
    Emulate,
    /// Policies that install mechanisms on this host.
    Host,
    /// The parts of a server's requests.
    Breakdown,
}

pub fn run(args: &Args, _: &Registry) -> Done {
    let commands = if args.command.is_empty() { KernelCommand::value_variants() } else { &args.command };
    let mut text = format!("plimsoll {}\n", output::LONG_VERSION);
    let mut all_work = true;
    for command in commands {
        let (name, features) = match command {
            KernelCommand::Emulate => ("emulate", plimsoll_linux::features()),
            KernelCommand::Host => ("host", host()),
            KernelCommand::Breakdown => ("breakdown", breakdown()),
        };
        all_work &= features.iter().all(is_enough);
        text.push_str(&section(name, &features));
    }
    output::print(&text)?;
    Ok(if all_work { ExitCode::SUCCESS } else { ExitCode::from(output::FINDING) })
}

/// Returns whether the command works with what there is of the feature.
fn is_enough(feature: &Feature) -> bool {
    feature.found || !feature.required
}

/// Returns the lines of a command: a verdict, and each requirement with its state.
fn section(name: &str, features: &[Feature]) -> String {
    let verdict = match features.iter().filter(|feature| !is_enough(feature)).count() {
        0 => "works here".to_owned(),
        1 => "does not work here: one requirement is missing".to_owned(),
        missing => format!("does not work here: {missing} requirements are missing"),
    };
    let mut text = format!("\n`plimsoll {name}` {verdict}\n");
    let width = features.iter().map(|feature| feature.name.len()).max().unwrap_or(0);
    for Feature { name, needed_for, required, found, fix } in features {
        let state = match (found, required) {
            (true, _) => "found",
            (false, true) => "missing",
            (false, false) => "not found",
        };
        text.push_str(&format!("  {name:<width$}  {state:<9}  {needed_for}\n"));
        if !found {
            text.push_str(&format!("  {:<width$}  {:<9}  -> {fix}\n", "", ""));
        }
    }
    text
}

/// Returns why `ip` and `tc` do not run, if they do not.
fn lacks_iproute2() -> Option<String> {
    match runs("ip").and_then(|ip| Ok(ip && runs("tc")?)) {
        Ok(true) => None,
        Ok(false) => Some("apt-get install iproute2".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

/// Lists what `plimsoll host apply` needs (`docs/host.md`).
fn host() -> Vec<Feature> {
    let unless = |found: bool, fix: &str| (!found).then(|| fix.to_owned());
    let capability = |name, bit| {
        let found = has_capability(bit) || bit != CAP_NET_ADMIN && has_capability(CAP_SYS_ADMIN);
        Feature::required(name, "programs, devices and routes", unless(found, "run it as root, with sudo"))
    };
    vec![
        Feature::required("eBPF programs", "every mechanism", lacks_programs()),
        capability("CAP_NET_ADMIN", CAP_NET_ADMIN),
        capability("CAP_BPF", CAP_BPF),
        capability("CAP_PERFMON", CAP_PERFMON),
        Feature::required("ip, tc (iproute2)", "devices, queues and routes", lacks_iproute2()),
        Feature::required(
            "BPF file system",
            "programs that stay when the command has ended",
            unless(Host.has_pins(), "mount -t bpf bpf /sys/fs/bpf"),
        ),
        Feature::optional(
            "links at devices (tcx)",
            "programs at devices; without them, filters of a clsact queue",
            Host.has_tcx(),
            "Linux 6.6 or later",
        ),
        Feature::optional(
            "links of struct_ops",
            "[dctcp] by eBPF; without them, only the kernel's own",
            Host.has_struct_ops_links(),
            "Linux 6.4 or later",
        ),
        Feature::optional(
            "dctcp",
            "[dctcp] where eBPF's cannot be registered",
            Host.has_dctcp(),
            "a kernel with CONFIG_TCP_CONG_DCTCP",
        ),
        Feature::optional(
            "fq",
            "[pacer] by departure times; without it, by a TBF",
            Host.has_fq(),
            "a kernel with CONFIG_NET_SCH_FQ",
        ),
        Feature::optional(
            "HTB and TBF",
            "[pacer] where there is no fq",
            Host.has_shapers(),
            "a kernel with CONFIG_NET_SCH_HTB and CONFIG_NET_SCH_TBF",
        ),
        Feature::optional(
            "cgroups (version 2)",
            "levels of cgroups and units, and `plimsoll run-at-level`",
            Host.cgroups().is_some(),
            "mount -t cgroup2 none /sys/fs/cgroup",
        ),
        Feature::optional(
            "systemd",
            "levels of units, and policies that are applied at boot",
            Path::new("/run/systemd/system").exists(),
            "a host that was booted with systemd",
        ),
    ]
}

/// Lists what `plimsoll breakdown` needs (`docs/breakdown.md`).
fn breakdown() -> Vec<Feature> {
    let no_types = || format!("a kernel with CONFIG_DEBUG_INFO_BTF, which has {KERNEL_TYPES}");
    let mut all = vec![
        Feature::required("eBPF programs", "all tracing", lacks_programs()),
        Feature::required(
            "capabilities",
            "events, and sockets of other users' processes",
            privileges::check().err().map(|error| error.to_string()),
        ),
        Feature::required("BTF", "the kernel's types", (!Path::new(KERNEL_TYPES).exists()).then(no_types)),
    ];
    all.extend(tracing_programs());
    all
}

/// Tries the tracing programs where the others load.
#[cfg(feature = "kernel")]
fn tracing_programs() -> Vec<Feature> {
    if lacks_programs().is_some() {
        return Vec::new();
    }
    let lacks = |udp| plimsoll_breakdown::Session::try_programs(udp).err().map(|error| error.to_string());
    let udp = lacks(true);
    vec![
        Feature::required("tracepoints", "servers over TCP", lacks(false)),
        Feature::optional("tracepoints of UDP", "servers over UDP", udp.is_none(), &udp.unwrap_or_default()),
    ]
}

/// Returns nothing: this build has no tracing programs to try.
#[cfg(not(feature = "kernel"))]
fn tracing_programs() -> Vec<Feature> {
    Vec::new()
}

// Numbers of capabilities (linux/capability.h).
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_requirement_has_its_fix_below_it_and_decides_the_verdict() {
        let features = [
            Feature::required("tun", "TAP devices", None),
            Feature::optional("bbr", "BBR", false, "modprobe tcp_bbr"),
            Feature::required("ip", "addresses", Some("apt-get install iproute2".to_owned())),
        ];
        let expected = "\n`plimsoll emulate` does not work here: one requirement is missing\n\
                        \x20 tun  found      TAP devices\n\
                        \x20 bbr  not found  BBR\n\
                        \x20                 -> modprobe tcp_bbr\n\
                        \x20 ip   missing    addresses\n\
                        \x20                 -> apt-get install iproute2\n";
        assert_eq!(section("emulate", &features), expected);
        assert!(section("emulate", &features[..2]).contains("`plimsoll emulate` works here\n"));
    }

    #[test]
    fn every_requirement_says_what_brings_it() {
        for feature in [plimsoll_linux::features(), host(), breakdown()].concat() {
            assert!(feature.found || !feature.fix.is_empty(), "{feature:?}");
        }
    }
}
