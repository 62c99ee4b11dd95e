//! [`Inventory`] lists the objects that the kernel holds in this namespace, to compare before and after.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// TCP connections that the kernel keeps after their process has closed them.
const ORPHANS: &str = "orphaned TCP sockets";

/// The kernel's objects, by kind and name, each with its count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory(BTreeMap<String, u64>);

impl Inventory {
    /// Lists the current objects. Kinds that need a missing tool are omitted, before as after.
    pub fn take() -> Inventory {
        let mut inventory = Inventory::default();
        for folder in ["/run/netns", "/run/plimsoll", "/sys/fs/bpf", "/sys/fs/bpf/plimsoll", "/sys/fs/cgroup"]
        {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                inventory.add(&format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
        for (program, arguments) in [
            ("ip", &["-o", "link"][..]),
            ("ip", &["route", "show", "table", "all"]),
            ("ip", &["rule"]),
            ("tc", &["qdisc", "show"]),
        ] {
            for line in text(program, arguments).lines() {
                inventory.add(&format!("{program} {}: {}", arguments[0], stable(line)));
            }
        }
        // The kernel assigns numbers anew, and programs of others come and go, so only kinds and names are compared.
        for kind in ["prog", "map", "link", "struct_ops"] {
            let list = text("bpftool", &["-j", kind, "list"]);
            let list: serde_json::Value = serde_json::from_str(&list).unwrap_or_default();
            for entry in list.as_array().into_iter().flatten() {
                let part = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
                inventory.add(&format!("bpf {kind} {} {}", part("type"), part("name")));
            }
        }
        // Orphaned sockets belong to no process; TIME-WAIT is part of the protocol and ends by itself.
        let sockets = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
        let words: Vec<&str> = sockets.split_whitespace().collect();
        let after = |key: &str| words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1));
        let orphans = after("orphan").and_then(|count| count.parse().ok()).unwrap_or(0);
        inventory.0.insert(ORPHANS.to_owned(), orphans);
        inventory
    }

    /// Waits until the inventory no longer changes, as after programs that have just ended, but no longer than
    /// `patience`.
    pub fn settle(patience: Duration) {
        let begun = Instant::now();
        let mut last = Inventory::take();
        while begun.elapsed() < patience {
            thread::sleep(Duration::from_millis(500));
            let now = Inventory::take();
            if now == last {
                return;
            }
            last = now;
        }
    }

    fn add(&mut self, name: &str) {
        *self.0.entry(name.to_owned()).or_default() += 1;
    }

    /// Waits until the inventory equals this one, but no longer than `patience`; returns the time waited, which
    /// includes one listing.
    ///
    /// # Errors
    /// Returns a message that lists the additional and the missing objects.
    pub fn is_restored(&self, patience: Duration) -> Result<Duration, String> {
        let begun = Instant::now();
        loop {
            let differences = self.differences(&Inventory::take());
            if differences.is_empty() {
                return Ok(begun.elapsed());
            }
            if begun.elapsed() > patience {
                return Err(format!("the kernel is not as it was: {}", differences.join("; ")));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the objects whose count differs in `after`.
    fn differences(&self, after: &Inventory) -> Vec<String> {
        let mut names: Vec<&String> = self.0.keys().chain(after.0.keys()).collect();
        names.sort();
        names.dedup();
        let count = |inventory: &Inventory, name: &str| inventory.0.get(name).copied().unwrap_or(0);
        // Orphans of programs that ended before the first inventory end by themselves.
        let is_decay = |name: &str| name == ORPHANS && count(after, ORPHANS) < count(self, ORPHANS);
        let changed =
            names.into_iter().filter(|name| count(self, name) != count(after, name) && !is_decay(name));
        changed
            .map(|name| format!("{name}: {} before, {} after", count(self, name), count(after, name)))
            .collect()
    }
}

/// Removes from a line of `ip` or `tc` the numbers that the kernel assigns anew.
fn stable(line: &str) -> String {
    let first_is_number = line.split(':').next().is_some_and(|first| first.parse::<u64>().is_ok());
    let rest = if first_is_number { line.split_once(':').map_or(line, |(_, rest)| rest) } else { line };
    rest.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the output of a program; an empty text if it cannot be run.
fn text(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_and_what_is_gone_is_named() {
        let (mut before, mut after) = (Inventory::default(), Inventory::default());
        before.add("link: lo");
        before.add("link: veth");
        after.add("link: lo");
        after.add("netns plimsoll-7-h0");
        let differences = before.differences(&after);
        assert_eq!(differences, ["link: veth: 1 before, 0 after", "netns plimsoll-7-h0: 0 before, 1 after"]);
        assert_eq!(before.differences(&before.clone()), Vec::<String>::new());
        before.add(ORPHANS);
        after.add("link: veth");
        after.0.remove("netns plimsoll-7-h0");
        assert_eq!(before.differences(&after), Vec::<String>::new(), "orphans end by themselves");
        assert_eq!(after.differences(&before).len(), 1, "and do not come by themselves");
    }

    #[test]
    fn numbers_that_are_given_out_anew_do_not_count() {
        assert_eq!(stable("7: veth0@if6:  <UP> mtu 1500"), "veth0@if6: <UP> mtu 1500");
        assert_eq!(stable("default via 10.0.0.1 dev eth0"), "default via 10.0.0.1 dev eth0");
    }
}
