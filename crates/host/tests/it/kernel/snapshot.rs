//! Takes a snapshot of a host's state, to compare before and after: `tc`, `bpftool`, cgroups, routes, devices, settings
//! and pins.

use std::fmt;

use plimsoll_testing::eventually;

use crate::kernel::world::{World, text};

/// Takes a snapshot of this namespace, and of the global objects of this test.
///
/// The snapshot omits numbers that the kernel assigns anew (program, map and link IDs), counters and ages in the output
/// of `tc` and `ip`, and the programs and cgroups of concurrent tests.
pub fn snapshot(world: &World) -> Vec<String> {
    let mut state = Vec::new();
    for (program, arguments) in [
        ("tc", "qdisc show"),
        ("tc", "filter show dev near ingress"),
        ("tc", "filter show dev near egress"),
        ("tc", "filter show dev far ingress"),
        ("tc", "filter show dev far egress"),
        ("ip", "-4 route show table all"),
        ("ip", "-6 route show table main"),
        ("ip", "-d link show dev near"),
        ("ip", "-d link show dev far"),
        ("bpftool", "net show dev near"),
        ("bpftool", "net show dev far"),
    ] {
        state.extend(text(program, arguments).lines().map(|line| format!("{program}: {}", normalised(line))));
    }
    // These are attached by link, which an older bpftool cannot list by device.
    let of_devices = ["near", "far"].map(|device| number_of(device).to_string());
    let mut unordered: Vec<String> = Vec::new();
    unordered.extend(text("bpftool", "link show").split("\n").filter_map(|line| {
        let ours = of_devices.iter().any(|index| line.contains(&format!("ifindex {index} ")));
        ours.then(|| format!("link: {}", normalised(line)))
    }));
    state.extend(settings().into_iter().map(|line| format!("sysctl: {line}")));
    let cgroups = world.cgroups();
    for root in [cgroups.join(&world.name), format!("/sys/fs/bpf/plimsoll/{}", world.name).into()] {
        unordered
            .extend(text("find", &root.display().to_string()).lines().map(|line| format!("file: {line}")));
    }
    // Their order is that in which they were made.
    unordered.sort();
    state.extend(unordered);
    state
}

/// Asserts that the host is as before. The kernel frees detached objects a moment later.
#[track_caller]
pub fn assert_as_before(world: &World, before: &[String], what: &str) {
    let difference = fmt::from_fn(|f| {
        let now = snapshot(world);
        let gone: Vec<&String> = before.iter().filter(|line| !now.contains(line)).collect();
        let new: Vec<&String> = now.iter().filter(|line| !before.contains(line)).collect();
        write!(f, "{what}: gone {gone:#?}, new {new:#?}")
    });
    eventually(difference, || snapshot(world) == before);
}

/// Reads all settings of net.ipv4, net.ipv6 and net.core that are readable.
fn settings() -> Vec<String> {
    text("sysctl", "-a")
        .lines()
        .filter(|line| line.starts_with("net."))
        .filter(|line| !is_counter(line))
        .map(str::to_owned)
        .collect()
}

/// Returns whether the kernel changes this setting by itself.
fn is_counter(line: &str) -> bool {
    let parts = ["count", "route.flush", "fs.", "random", "tcp_fastopen_key", "stable_secret"];
    parts.iter().any(|part| line.contains(part))
        // This setting is global: another test may have registered the same congestion control.
        || line.contains("tcp_available_congestion_control")
        || line.contains("tcp_allowed_congestion_control")
}

/// Removes IDs, counters and ages from a line.
fn normalised(line: &str) -> String {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    for key in ["id", "prog_id", "age", "used", "expires"] {
        while let Some(at) = words.iter().position(|word| *word == key) {
            words.drain(at..(at + 2).min(words.len()));
        }
    }
    let first_is_id = words.first().is_some_and(|word| word.trim_end_matches(':').parse::<u64>().is_ok());
    words[usize::from(first_is_id)..].join(" ")
}

fn number_of(device: &str) -> u64 {
    let link = text("ip", &format!("-o link show dev {device}"));
    link.split(':').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
