//! `plimsoll host` and `plimsoll run-at-level` as an operator runs them. What needs root and eBPF skips with the reason
//! elsewhere.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn plimsoll() -> Command {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A policy in a folder of its own, of a name of this process's own.
fn policy(label: &str, rest: &str) -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("cli-{label}-{}", std::process::id());
    let path = folder.path().join(format!("{name}.toml"));
    fs::write(&path, format!("version = 1\n{rest}")).unwrap();
    (folder, path, name)
}

const QJUMP: &str =
    "[qjump]\ndevice = 'lo'\nhosts = 12\nrate = '10Gbps'\n[[qjump.assign]]\nlevel = 1\nport = 9\n";

#[test]
fn a_wrong_policy_is_told_by_file_line_and_spelling() {
    let (_folder, path, _) = policy("wrong", &QJUMP.replace("device", "devcie"));
    let output = plimsoll().arg("host").arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("line 3") && said.contains("did you mean `device`?"), "{said}");
}

#[test]
fn rolling_back_what_is_not_applied_is_no_error_where_it_may() {
    let output = plimsoll().args(["host", "rollback", "never-applied"]).output().unwrap();
    let said = said(&output);
    let expected = if lacks().is_none() { "nothing to do" } else { "" };
    assert!(said.contains(expected), "{said}");
}

#[cfg(not(feature = "kernel"))]
#[test]
fn a_build_without_programs_plans_and_says_what_it_lacks() {
    let (_folder, path, _) = policy("plan", QJUMP);
    let output = plimsoll().arg("host").arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("make kernel"), "{}", said(&output));
}

/// Why this test cannot run here; none if it can.
fn lacks() -> Option<&'static str> {
    if !cfg!(feature = "kernel") {
        return Some("built without the eBPF programs");
    }
    let own = Command::new("id").arg("-u").output().ok()?;
    if own.stdout != b"0\n" {
        return Some("not root");
    }
    let cgroups = fs::read_to_string("/proc/mounts").unwrap_or_default().contains(" cgroup2 ");
    let pins = Command::new("unshare").args(["--mount", "mount", "-t", "bpf", "bpf", "/sys/fs/bpf"]).output();
    (!cgroups || !pins.is_ok_and(|output| output.status.success()))
        .then_some("no cgroups of version 2, or no BPF file system")
}

/// Whether to go on; says so if not.
fn able() -> bool {
    if let Some(reason) = lacks() {
        eprintln!("skipped: {reason}");
    }
    lacks().is_none()
}

/// A script of `sh -e` whose `$0` is the command, in a network and a BPF file system that are gone with it, with `lo` up.
fn in_namespaces(script: &str) -> Output {
    let script = format!("mount -t bpf bpf /sys/fs/bpf; ip link set lo up; {script}");
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-ec", &script, env!("CARGO_BIN_EXE_plimsoll")]);
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_policy_that_nobody_confirms_is_rolled_back() {
    if !able() {
        return;
    }
    let (_folder, path, name) = policy("late", QJUMP);
    let script = format!(
        "code=0; \"$0\" host apply --confirm-within 200ms '{}' || code=$?; \
         echo \"left: $(ls -d /run/plimsoll/host/{name} /sys/fs/bpf/plimsoll/{name} 2> /dev/null)\"; exit $code",
        path.display()
    );
    let output = in_namespaces(&script);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("not confirmed in time") && said.contains("is rolled back"), "{said}");
    assert!(said.contains("left: \n"), "{said}");
}

#[test]
fn a_policy_that_is_confirmed_stays_until_the_rollback() {
    if !able() {
        return;
    }
    let (_folder, path, name) = policy("kept", QJUMP);
    let script = format!(
        "{{ \"$0\" host apply --confirm-within 60s '{path}' < /dev/null & }}; \
         until \"$0\" host confirm {name} 2> /dev/null; do sleep 0.05; done; wait $!; \
         ls -d /sys/fs/bpf/plimsoll/{name}; \
         \"$0\" host status -j {name}; \"$0\" host rollback {name}; \"$0\" host rollback {name}",
        path = path.display()
    );
    let output = in_namespaces(&script);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for part in [
        format!("to undo it: plimsoll host rollback {name}"),
        format!("/sys/fs/bpf/plimsoll/{name}\n"),
        "\"confirmed\": true".to_owned(),
        "changes undone".to_owned(),
        "nothing to do".to_owned(),
    ] {
        assert!(said.contains(&part), "{part}: {said}");
    }
}

#[test]
fn a_program_is_run_at_a_level_and_ends_as_itself() {
    if !able() {
        return;
    }
    let print = "import socket; print('level', socket.socket().getsockopt(1, 12)); raise SystemExit(7)";
    let output = plimsoll().args(["run-at-level", "5", "--", "python3", "-c", print]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    assert!(said(&output).contains("level 5"), "{}", said(&output));
    let killed = plimsoll().args(["run-at-level", "5", "--", "sh", "-c", "kill -9 $$"]).output().unwrap();
    assert_eq!(killed.status.code(), Some(128 + 9));
    let absent = plimsoll().args(["run-at-level", "5", "--", "/no/such/program"]).output().unwrap();
    assert_eq!(absent.status.code(), Some(2));
    assert!(said(&absent).contains("/no/such/program"), "{}", said(&absent));
}
