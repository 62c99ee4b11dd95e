//! Runs `plimsoll host` and `plimsoll run-at-level` as an operator does. Tests that need root and eBPF are skipped
//! elsewhere with the reason.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn plimsoll() -> Command {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Writes a policy into a folder of its own, with a name that is unique to this process.
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
    let (expected, status) = match lacks() {
        Some("built without the eBPF programs") => ("make kernel", 2),
        Some("not root") => ("root is needed", 2),
        _ => ("nothing to do", 0),
    };
    assert!(said.contains(expected), "{said}");
    assert_eq!(output.status.code(), Some(status), "{said}");
}

#[cfg(not(feature = "kernel"))]
#[test]
fn a_build_without_programs_plans_and_says_what_it_lacks() {
    if !mounts_pins() {
        return plimsoll_testing::skipped!("no namespaces");
    }
    let (_folder, path, _) = policy("plan", QJUMP);
    let output = in_namespaces(&format!("\"$0\" host '{}'", path.display()));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("would change"), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("make kernel"), "{}", said(&output));
    let output = in_namespaces(&format!("\"$0\" host apply '{}'", path.display()));
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("make kernel"), "{}", said(&output));
}

/// Returns whether a test can mount a BPF file system of its own.
fn mounts_pins() -> bool {
    let pins = Command::new("unshare").args(["--mount", "mount", "-t", "bpf", "bpf", "/sys/fs/bpf"]).output();
    pins.is_ok_and(|output| output.status.success())
}

/// Returns why this test cannot run here; none if it can.
fn lacks() -> Option<&'static str> {
    if !cfg!(feature = "kernel") {
        return Some("built without the eBPF programs");
    }
    let own = Command::new("id").arg("-u").output().ok()?;
    if own.stdout != b"0\n" {
        return Some("not root");
    }
    let cgroups = fs::read_to_string("/proc/mounts").unwrap_or_default().contains(" cgroup2 ");
    (!cgroups || !mounts_pins()).then_some("no cgroups of version 2, or no BPF file system")
}

/// Returns whether the test can run, and prints the reason if not.
pub fn able() -> bool {
    if let Some(reason) = lacks() {
        plimsoll_testing::skipped!("{reason}");
    }
    lacks().is_none()
}

/// Runs a script of `sh -e` whose `$0` is the command, in a network, a BPF file system and a folder of journals that
/// vanish with it, with `lo` up.
fn in_namespaces(script: &str) -> Output {
    let script = format!(
        "mount -t bpf bpf /sys/fs/bpf; mkdir -p /run/plimsoll; mount -t tmpfs -o mode=755 tmpfs /run/plimsoll; ip \
         link set lo up; {script}"
    );
    let mut command = Command::new("timeout");
    command.args(["120", "unshare"]).args([
        "--net",
        "--mount",
        "sh",
        "-ec",
        &script,
        env!("CARGO_BIN_EXE_plimsoll"),
    ]);
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

/// Checks how `apply --confirm-within` ends on a terminal: the settings that are left, and the exit status.
#[track_caller]
fn on_a_terminal(case: &str, expected: &str) {
    if !able() {
        return;
    }
    let (_folder, path, name) = policy(case, QJUMP);
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/alone/host/terminal.py");
    let script = format!("exec python3 '{driver}' {case} \"$0\" '{}' {name}", path.display());
    let output = in_namespaces(&script);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{}", said(&output));
}

#[test]
fn a_terminal_that_goes_takes_the_policy_with_it() {
    on_a_terminal("hang-up", "status 129, applied: False, left: []");
}

#[test]
fn the_stop_key_does_not_stop_the_switch_and_enter_keeps_the_policy() {
    on_a_terminal("stop-key", "status 0, applied: True, left: []");
}

#[test]
fn a_switch_in_the_background_goes_off() {
    on_a_terminal("background", "status 1, applied: False, left: []");
}

#[test]
fn without_a_thread_that_reads_the_terminal_the_switch_goes_off() {
    on_a_terminal("no-thread", "status 1, applied: False, left: []");
}

#[test]
fn what_was_typed_ahead_confirms_nothing() {
    on_a_terminal("type-ahead", "status 1, applied: False, left: []");
}

/// A policy that cannot be confirmed does not stay, even if its journal is lost.
#[test]
fn a_policy_whose_journal_is_lost_is_taken_back() {
    if !able() {
        return;
    }
    let (_folder, path, name) = policy("lost", QJUMP);
    let script = format!(
        "{{ \"$0\" host apply --confirm-within 60s '{path}' < /dev/null 2> /run/plimsoll/said & }}; \
         until grep -q 'to keep it' /run/plimsoll/said; do sleep 0.05; done; \
         echo unreadable > /run/plimsoll/host/{name}/plan.json; \
         code=0; wait $! || code=$?; cat /run/plimsoll/said; \
         echo \"left: $(ls -d /run/plimsoll/host/{name} /sys/fs/bpf/plimsoll/{name} 2> /dev/null)\"; exit $code",
        path = path.display()
    );
    let output = in_namespaces(&script);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("is not what plimsoll wrote") && said.contains("is rolled back: 3 changes"),
        "{said}"
    );
    assert!(said.contains("left: \n"), "{said}");
}

/// Commands with a deadline of their own do not wait for others without limit: the start of a unit, and a confirmation.
#[test]
fn a_start_of_a_unit_and_a_confirmation_end_while_somebody_holds_the_lock() {
    if !able() {
        return;
    }
    let script = "mkdir /run/plimsoll/host; exec 9> /run/plimsoll/host/.lock; flock 9; \
         { \"$0\" host attach-unit some some.service 9>&- & }; one=$!; { \"$0\" host confirm some 9>&- & }; two=$!; \
         wait $one || echo \"status $?\"; wait $two || echo \"status $?\"";
    let output = in_namespaces(script);
    let said = said(&output);
    assert_eq!(said.matches("status 2").count(), 2, "{said}");
    assert_eq!(said.matches("error: another process is changing this host").count(), 2, "{said}");
}

/// Of two policies that both limit a device, the second finds the first, however close they are.
#[test]
fn of_two_policies_at_once_the_second_finds_the_first() {
    if !able() {
        return;
    }
    let (_one, first, _) = policy("first", QJUMP);
    let (_two, second, _) = policy("second", QJUMP);
    let script = format!(
        "mkdir /run/plimsoll/host; exec 9> /run/plimsoll/host/.lock; flock 9; cd /run/plimsoll; \
         for path in '{}' '{}'; do {{ \"$0\" host apply $path 2> said.$(basename $path) 9>&- & }}; done; \
         until [ $(cat said.* | grep -c 'waiting: ') = 2 ]; do sleep 0.05; done; \
         flock -u 9; wait; cat said.*; ls /run/plimsoll/host",
        first.display(),
        second.display()
    );
    let output = in_namespaces(&script);
    let (said, applied) = (said(&output), String::from_utf8_lossy(&output.stdout).into_owned());
    assert_eq!(said.matches("already limits lo").count(), 1, "{said}");
    assert_eq!(applied.lines().filter(|line| line.starts_with("cli-")).count(), 1, "{said}");
}

/// Users other than root can neither delay an apply nor see applied policies, and get a message.
#[test]
fn others_than_root_are_kept_out_of_journals_and_told_so() {
    if !able() {
        return;
    }
    let (_folder, path, name) = policy("others", QJUMP);
    let script = format!(
        "mkdir -m 755 /run/plimsoll/copy; cp \"$0\" /run/plimsoll/copy/plimsoll; mount -o remount,exec /run/plimsoll; \
         chmod 755 /run/plimsoll; \"$0\" host apply '{path}'; \
         nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'; \
         if $nobody flock -n /run/plimsoll/host/.lock true; then echo 'nobody has the lock'; fi; \
         for which in '' {name}; do \
           if $nobody /run/plimsoll/copy/plimsoll host status $which; then echo 'nobody has a status'; fi; \
         done; cp '{path}' /run/plimsoll/copy; chmod 644 /run/plimsoll/copy/*.toml; \
         $nobody /run/plimsoll/copy/plimsoll host plan /run/plimsoll/copy/{name}.toml; \"$0\" host rollback {name}",
        path = path.display()
    );
    let output = in_namespaces(&script);
    let said = said(&output);
    assert!(output.status.success() && !said.contains("nobody has"), "{said}");
    assert_eq!(said.matches("(root is needed): Permission denied").count(), 3, "{said}");
    // A plan works without these permissions, and notes it.
    assert!(
        said.contains("the changes of other policies are not known") && said.contains("would change"),
        "{said}"
    );
}

/// Prints the gso_max_segs of `lo` in a script's network, which QJUMP lowers.
const SEGMENTS: &str = "segments() { ip -d link show lo | grep -o 'gso_max_segs [0-9]*'; }; ";

/// The steps concern one network namespace. From another, a rollback enters it where it can, and otherwise changes
/// nothing and prints a message.
#[test]
fn a_policy_is_taken_back_in_the_network_where_it_was_applied() {
    if !able() {
        return;
    }
    let (_folder, path, name) = policy("network", QJUMP);
    let script = format!(
        "{SEGMENTS} code() {{ if \"$@\"; then echo 'status 0'; else echo \"status $?\"; fi; }}; \
         echo before $(segments); \"$0\" host apply '{path}'; echo applied $(segments); \
         code unshare --net setpriv --bounding-set=-sys_admin \"$0\" host rollback {name}; \
         code unshare --net --pid --fork --mount-proc \"$0\" host rollback {name}; \
         code unshare --mount sh -c 'mount -t bpf bpf /sys/fs/bpf; \"$0\" host rollback {name}' \"$0\"; \
         code unshare --mount sh -c 'mount -t bpf bpf /sys/fs/bpf; \"$0\" host status {name}' \"$0\"; \
         echo still $(segments) $(ls /run/plimsoll/host) $(ls /sys/fs/bpf/plimsoll); \
         unshare --net \"$0\" host status {name}; \
         unshare --net \"$0\" host rollback {name}; \
         echo after $(segments) $(ls /run/plimsoll/host) $(ls -d /sys/fs/bpf/plimsoll 2> /dev/null); \
         \"$0\" host apply '{path}'; \
         code unshare --net --pid --fork --mount-proc \"$0\" host rollback --gone {name}; \
         echo gone $(ls /run/plimsoll/host) $(ls -d /sys/fs/bpf/plimsoll 2> /dev/null)",
        path = path.display()
    );
    let output = in_namespaces(&script);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    let lines =
        |word: &str| said.lines().filter(|line| line.starts_with(word)).collect::<Vec<_>>().join("; ");
    assert_ne!(lines("before ").split_off(7), lines("applied ").split_off(8), "{said}");
    assert_eq!(lines("status "), "status 2; status 2; status 2; status 2; status 0", "{said}");
    for part in [
        "may not enter (Operation not permitted",
        "nsenter --net=/proc/",
        "which no process and no mount that this one sees has any more",
        "another file system is at /sys/fs/bpf",
        &format!("policy {name}: applied, in the network namespace /proc/"),
        &format!("policy {name} is rolled back: 3 changes undone, in the network namespace /proc/"),
        // A link at the device is a pin, the device's setting is not.
        &format!("policy {name} is rolled back: 2 changes undone\n"),
        &format!("{} {name} {name}\n", lines("applied ").replace("applied", "still")),
        &format!("{}\n", lines("before ").replace("before", "after")),
        "gone\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// A command that an apply has started makes its change even when the apply is killed: a rollback waits for it.
#[test]
fn a_command_that_outlives_its_apply_changes_nothing_after_the_rollback() {
    if !able() {
        return;
    }
    let (folder, path, name) = policy("outlived", QJUMP);
    let slow = "#!/bin/sh\ncase \"$*\" in\n\"link set\"*)\n  if [ ! -e DIR/slow ]; then\n    echo $$ > DIR/name; mv \
        DIR/name DIR/slow; \
                read line < DIR/go\n  fi;;\nesac\nexec DIR/ip \"$@\"\n";
    fs::write(folder.path().join("fake"), slow.replace("DIR", &folder.path().display().to_string())).unwrap();
    let script = format!(
        "{SEGMENTS} echo before $(segments); cd '{folder}'; mkfifo go; chmod 755 fake; \
         real=$(PATH=/usr/sbin:/usr/bin:/sbin:/bin command -v ip); cp $real ip; mount --bind fake $(readlink -f \
         $real); \
         \"$0\" host apply '{path}' & apply=$!; until [ -e slow ]; do sleep 0.05; done; \
         kill -9 $apply; wait $apply || true; \
         \"$0\" host rollback {name} > said 2>&1 & rollback=$!; \
         until grep -q 'waiting: \\|rolled back' said; do sleep 0.05; done; \
         echo > go; wait $rollback; while kill -0 $(cat slow) 2> /dev/null; do sleep 0.05; done; \
         cat said; echo after $(segments) $(ls /run/plimsoll/host) $(ls -d /sys/fs/bpf/plimsoll 2> /dev/null)",
        folder = folder.path().display(),
        path = path.display()
    );
    let output = in_namespaces(&script);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    let line = |word: &str| said.lines().find(|line| line.starts_with(word)).unwrap_or_default().to_owned();
    assert_eq!(line("after "), line("before ").replace("before", "after"), "{said}");
    assert!(
        said.contains("waiting: another process is changing this host") && said.contains("1 changes undone"),
        "{said}"
    );
}

/// Only root can read a policy's state, whatever the umask; and nothing that others may have written is trusted.
#[test]
fn journals_of_others_are_not_believed() {
    if !able() {
        return;
    }
    let assign = format!("[[qjump.assign]]\nlevel = 0\ncgroup = '/cli-forged-{}'\n", std::process::id());
    let (folder, path, name) = policy("forged", &format!("{QJUMP}{assign}"));
    let forge = "import json, sys
steps = {
    'sysctl': {'change': 'sysctl', 'name': 'net.ipv4.ip_default_ttl', 'before': '13', 'after': '64'},
    'pins': {'change': 'dctcp', 'pins': sys.argv[1] + '/precious'},
    'folder': {'change': 'cgroup', 'folder': '/etc/passwd'},
}
applied = json.load(open(sys.argv[2]))
applied['plan']['steps'][0] = steps[sys.argv[3]]
json.dump(applied, open(sys.argv[2], 'w'))
";
    fs::write(folder.path().join("forge.py"), forge).unwrap();
    fs::create_dir_all(folder.path().join("precious/folder")).unwrap();
    fs::write(folder.path().join("precious/file"), "").unwrap();
    let script = format!(
        "refused() {{ if said=$(\"$0\" host rollback {name} 2>&1); then echo \"$1 IS BELIEVED\"; fi; echo \"$1: \
         $said\"; }}; \
         cd '{folder}'; state=/run/plimsoll/host; \
         umask 0; \"$0\" host apply '{path}'; umask 022; \
         echo \"open:$(find $state /sys/fs/bpf/plimsoll -perm /077)$(find $(cut -d' ' -f2,3 /proc/mounts | \
         grep ' cgroup2$' | head -1 | cut -d' ' -f1)/{name} -maxdepth 0 -perm /022)\"; \
         cp -a $state whole; again() {{ rm -rf $state; cp -a whole $state; }}; \
         for step in sysctl pins folder; do python3 forge.py . $state/{name}/plan.json $step; refused $step; again; \
         done; \
         chmod o+w $state/{name}; refused writable; again; \
         chmod o+w $state/{name}/plan.json; refused plan; again; \
         chown 4711 $state; refused owner; again; \
         mv $state/{name} aside; ln -s \"$PWD/aside\" $state/{name}; refused link; rm -rf aside; again; \
         mv $state aside; ln -s \"$PWD/aside\" $state; refused above; rm $state; rm -rf aside; again; \
         echo \"{{}}\" > $state/{name}/plan.json; refused empty; again; \
         echo ttl $(cat /proc/sys/net/ipv4/ip_default_ttl) $(ls precious); \
         \"$0\" host rollback {name}; \
         mkdir -m 777 /sys/fs/bpf/plimsoll; if \"$0\" host apply '{path}'; then echo 'pins BELIEVED'; fi; ls $state",
        folder = folder.path().display(),
        path = path.display()
    );
    let output = in_namespaces(&script);
    let said = said(&output);
    assert!(output.status.success() && !said.contains("BELIEVED"), "{said}");
    for part in [
        "open:\n",
        "sysctl: error: /run/plimsoll/host",
        "has no such step: ~ sysctl  net.ipv4.ip_default_ttl 13 -> 64",
        "has no such step: + link    plimsoll_dctcp",
        "has no such step: + cgroup  /etc/passwd",
        "others than its owner may write it (mode 702)",
        "plan.json is not trusted: others than its owner may write it (mode 602)",
        "/run/plimsoll/host is not trusted: it belongs to user 4711",
        "is not trusted: it is a symbolic link",
        "above: error: locking /run/plimsoll/host",
        "empty: error: /run/plimsoll/host",
        "ttl 64 file folder\n",
        "is rolled back: 5 changes undone",
        "/sys/fs/bpf/plimsoll is not trusted: others than its owner may write it",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// A plan changes nothing, and so needs no BPF file system.
#[test]
fn a_plan_needs_no_bpf_file_system_and_an_apply_says_how_to_have_one() {
    if !able() {
        return;
    }
    let (_folder, path, _) = policy("unmounted", QJUMP);
    let script = format!(
        "while umount /sys/fs/bpf 2> /dev/null; do :; done; \"$0\" host '{path}'; \
         if \"$0\" host apply '{path}'; then echo applied; fi; echo left $(ls /run/plimsoll/host)",
        path = path.display()
    );
    let output = in_namespaces(&script);
    let said = said(&output);
    assert!(output.status.success() && !said.contains("applied\n"), "{said}");
    assert!(said.contains("would change") && said.contains("left\n"), "{said}");
    assert_eq!(said.matches("mount -t bpf bpf /sys/fs/bpf").count(), 2, "{said}");
}

/// The error about an unknown name lists the applied ones; a policy that is applied in part cannot be confirmed.
#[test]
fn names_are_those_of_policies_that_are_applied() {
    if !able() {
        return;
    }
    let (_folder, path, name) = policy("named", QJUMP);
    let script = format!(
        "code() {{ if \"$@\"; then echo 'status 0'; else echo \"status $?\"; fi; }}; \
         code \"$0\" host status {name}; \"$0\" host apply '{path}'; code \"$0\" host status {name}x; \
         cp /run/plimsoll/host/{name}/progress /run/plimsoll/whole; truncate -s 1 /run/plimsoll/host/{name}/progress; \
         code \"$0\" host confirm {name}; cp /run/plimsoll/whole /run/plimsoll/host/{name}/progress; \
         ip link set dev lo gso_max_segs 3; code \"$0\" host rollback {name}",
        path = path.display()
    );
    let output = in_namespaces(&script);
    let said = said(&output);
    let statuses: Vec<&str> = said.lines().filter(|line| line.starts_with("status ")).collect();
    // A change that somebody else has modified stays, which is a finding.
    assert_eq!(statuses, ["status 2", "status 2", "status 2", "status 1"], "{said}");
    for part in [
        format!("policy {name} is not applied; no policy is"),
        format!("policy {name}x is not applied; did you mean `{name}`? (applied: {name})"),
        format!("policy {name} is applied in part"),
        "warning: lo has gso_max_segs 3".to_owned(),
        "rolled back, but for 1 of 3 changes".to_owned(),
    ] {
        assert!(said.contains(&part), "{part}: {said}");
    }
}

/// Signals for programs are passed on, and the remains of an earlier killed process are removed.
#[test]
fn a_program_at_a_level_hears_signals() {
    if !able() {
        return;
    }
    let heard = "import os, signal
def heard(number, frame):
    print('heard', number, flush=True)
for name in ('HUP', 'INT', 'USR1', 'USR2'):
    signal.signal(getattr(signal, 'SIG' + name), heard)
signal.signal(signal.SIGTERM, lambda number, frame: os._exit(9))
print('ready', open('/proc/self/cgroup').read(), flush=True)
while True:
    signal.pause()
";
    let mut child = plimsoll()
        .args(["run-at-level", "5", "--", "python3", "-c", heard])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut until = |word: &str| lines.find(|line| line.starts_with(word)).unwrap();
    until("ready");
    let number = child.id().to_string();
    for (signal, word) in [("HUP", "heard 1"), ("INT", "heard 2"), ("USR1", "heard 10"), ("USR2", "heard 12")]
    {
        assert!(Command::new("kill").args(["-s", signal, &number]).status().unwrap().success());
        until(word);
    }
    assert!(Command::new("kill").args(["-s", "TERM", &number]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

/// The cgroup of a killed process is removed at the next start, once nothing runs in it.
#[test]
fn a_cgroup_that_was_left_behind_goes_at_the_next_start() {
    if !able() {
        return;
    }
    let mut child = plimsoll()
        .args(["run-at-level", "5", "--", "sh", "-c", "cat /proc/self/cgroup; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let own = lines.find_map(|line| line.strip_prefix("0::/").map(str::to_owned)).unwrap();
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let root = mounts.lines().find(|line| line.contains(" cgroup2 ")).unwrap().split(' ').nth(1).unwrap();
    let folder = PathBuf::from(root).join(&own);
    assert!(
        own.ends_with(&format!("plimsoll-run-{}", child.id())) && folder.is_dir(),
        "{}",
        folder.display()
    );
    // Its standard input is closed with it, which ends the program that reads it.
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = std::time::Instant::now();
    while folder.exists() {
        let next = plimsoll().args(["run-at-level", "5", "--", "true"]).output().unwrap();
        assert!(next.status.success(), "{}", said(&next));
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{} stays", folder.display());
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
