//! Runs the units of `deploy/systemd` under a systemd of their own, which is booted in namespaces, with the host's
//! files but without its units, devices, cgroups and pins. The tests need root, systemd and eBPF, and are skipped
//! elsewhere with the reason.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SYSTEMD: [&str; 2] = ["/lib/systemd/systemd", "/usr/lib/systemd/systemd"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Returns why units cannot be run here; none if they can.
fn lacks() -> Option<&'static str> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let filesystems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let lacking = [
        (!cfg!(feature = "kernel"), "built without the eBPF programs"),
        (!is_root(), "not root"),
        (!SYSTEMD.iter().any(|path| Path::new(path).exists()), "no systemd"),
        (!mounts.contains(" cgroup2 "), "no cgroups of version 2"),
        (!filesystems.contains("\toverlay\n"), "no overlay file system"),
    ];
    lacking.into_iter().find_map(|(lacks, reason)| lacks.then_some(reason))
}

/// Removes the cgroups; the kernel ends the processes of a PID namespace a moment after its first process.
fn remove_cgroups(folder: &str) {
    if folder.is_empty() {
        return;
    }
    plimsoll_testing::eventually(format_args!("{folder} has no processes and is removed"), || {
        let removed = Command::new("find").args([folder, "-depth", "-type", "d", "-delete"]).output();
        removed.is_ok_and(|output| output.status.success())
    });
}

/// systemd accepts every unit, except that the program is not installed here.
#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let Ok(probe) = Command::new("systemd-analyze").arg("--version").output() else {
        return plimsoll_testing::skipped!("no systemd-analyze");
    };
    assert!(probe.status.success());
    let folder = tempfile::tempdir().unwrap();
    // The servers may not be built.
    let start = format!("ExecStart={}", env!("CARGO_BIN_EXE_plimsoll"));
    let mut units = Vec::new();
    for entry in fs::read_dir(repository().join("deploy/systemd")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        let program = |line: &str| match line.strip_prefix("ExecStart=/usr/bin/") {
            Some(words) => format!("{start}{}", &words[words.find(' ').unwrap_or(words.len())..]),
            None => line.replace("/usr/bin/plimsoll", env!("CARGO_BIN_EXE_plimsoll")),
        };
        let text: Vec<String> = text.lines().map(program).collect();
        let name = entry.file_name().into_string().unwrap();
        fs::write(folder.path().join(&name), text.join("\n")).unwrap();
        units.push(folder.path().join(name.replace("@.", "@name.")));
    }
    assert!(units.len() >= 6, "{units:?}");
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .args(&units)
        .output()
        .unwrap();
    assert!(output.status.success() && said(&output).trim().is_empty(), "{}", said(&output));
}

/// systemd makes the users that the units name.
#[test]
fn systemd_makes_the_users_of_the_servers() {
    let users = repository().join("deploy/sysusers.d/chronos.conf");
    let folder = tempfile::tempdir().unwrap();
    let root = format!("--root={}", folder.path().display());
    let users = fs::File::open(users).unwrap();
    let made = Command::new("systemd-sysusers").args(["--dry-run", &root, "-"]).stdin(users).output();
    let Ok(made) = made else { return plimsoll_testing::skipped!("no systemd-sysusers") };
    assert!(made.status.success(), "{}", said(&made));
    for entry in fs::read_dir(repository().join("deploy/systemd")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        let users = text
            .split([' ', '\n'])
            .filter_map(|word| word.strip_prefix("User=").or_else(|| word.strip_prefix("USER=")));
        for user in users {
            assert!(said(&made).contains(&format!("Creating user '{user}'")), "{user}: {}", said(&made));
        }
    }
}

/// Runs `make install` with these variables and a folder of built programs; returns its output.
fn install(folder: &Path, variables: &[String]) -> String {
    let built = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let mut make = Command::new("make");
    make.args(["-s", "-C"]).arg(repository()).arg("install").args(variables);
    let output = make.arg(format!("BUILT={}", built.display())).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

/// Units run the program from the folder of its installation; a package may be built elsewhere.
#[test]
fn units_are_installed_with_the_path_of_the_program() {
    if Command::new("make").arg("--version").output().is_err() {
        return plimsoll_testing::skipped!("no make");
    }
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().display();
    let said = install(folder.path(), &[format!("DESTDIR={shown}/package"), "PREFIX=/opt/x".to_owned()]);
    assert!(said.contains("systemctl link /opt/x/lib/systemd/system/"), "{said}");
    let package = folder.path().join("package");
    let mut called = 0;
    for entry in fs::read_dir(package.join("opt/x/lib/systemd/system")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        let is_ours = |line: &&str| !line.contains("=/bin/kill ");
        let lines =
            text.lines().filter(|line| line.starts_with("Exec") || line.starts_with("Documentation="));
        for line in lines.filter(is_ours) {
            let words = line.split_once('=').unwrap().1;
            let path = words.trim_start_matches(['-', '+']).trim_start_matches("file://");
            let path = path.split(' ').next().unwrap();
            assert!(path.starts_with("/opt/x/"), "{line}");
            assert!(package.join(path.trim_start_matches('/')).is_file(), "{line}: it is not installed");
            called += 1;
        }
    }
    assert!(called >= 6, "{called} lines");

    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return plimsoll_testing::skipped!("no systemd-analyze");
    }
    install(folder.path(), &[format!("PREFIX={shown}/x")]);
    let units = fs::read_dir(folder.path().join("x/lib/systemd/system")).unwrap().flatten();
    let instances = units.map(|entry| {
        let instance = folder.path().join(entry.file_name().into_string().unwrap().replace("@.", "@name."));
        fs::copy(entry.path(), &instance).unwrap();
        instance
    });
    let instances: Vec<_> = instances.collect();
    let verify = ["verify", "--man=no", "--recursive-errors=no"];
    let output = Command::new("systemd-analyze").args(verify).args(instances).output().unwrap();
    assert!(output.status.success() && self::said(&output).trim().is_empty(), "{}", self::said(&output));
}

/// An enabled unit is started at boot.
#[test]
fn units_that_are_enabled_start_at_boot() {
    if Command::new("systemctl").arg("--version").output().is_err() {
        return plimsoll_testing::skipped!("no systemctl");
    }
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("usr/lib/systemd/system");
    fs::create_dir_all(&there).unwrap();
    for entry in fs::read_dir(repository().join("deploy/systemd")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        fs::copy(entry.path(), there.join(&name)).unwrap();
        let instance = name.replace("@.", "@name.");
        let systemctl = |verb: &str| {
            let root = format!("--root={}", folder.path().display());
            Command::new("systemctl").args([root.as_str(), verb, &instance]).output().unwrap()
        };
        let enabled = systemctl("enable");
        assert!(enabled.status.success(), "{}", said(&enabled));
        let link = folder.path().join("etc/systemd/system/multi-user.target.wants").join(&instance);
        assert!(link.is_symlink(), "{instance}: {}", said(&enabled));
        assert_eq!(said(&systemctl("is-enabled")).trim(), "enabled", "{instance}");
    }
}

/// A policy is applied by its unit: packets of a unit have the unit's level, metrics are served, and stopping the
/// policy's unit restores the host.
#[test]
fn units_apply_serve_and_take_back() {
    if let Some(reason) = lacks() {
        return plimsoll_testing::skipped!("{reason}");
    }
    let folder = tempfile::tempdir().unwrap();
    let systemd = SYSTEMD.into_iter().find(|path| Path::new(path).exists()).unwrap();
    let place = folder.path().to_str().unwrap();
    let output = Command::new("timeout")
        .args(["--kill-after=5", "300", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--net"])
        .args(["--uts", "--ipc", "sh", "-eu"])
        .arg(repository().join("crates/cli/tests/alone/systemd/boot.sh"))
        .args([place, systemd, env!("CARGO_BIN_EXE_plimsoll"), repository().to_str().unwrap()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    remove_cgroups(told("cgroup").trim());
    let report = told("report");
    let all = || format!("{report}\n--- systemd ---\n{}", said(&output));
    let steps: Vec<&str> = report.lines().filter_map(|line| line.strip_prefix("step: ")).collect();
    let expected = [
        "a policy is applied by its unit",
        "nobody else may write what it has told systemd to run",
        "what a running unit sends has its level",
        "so has what it sends after a restart",
        "and what a unit sends that ran not yet",
        "metrics are served to this host",
        "the policy is taken back with its unit",
        "no unit has a level any more",
        "a policy that is wrong fails with its unit",
        "a filter has the pacer's rate while its unit runs",
        "the link's when it has been stopped",
        "and the unit ends with its policy",
    ];
    assert_eq!(steps, expected, "{}", all());
    assert_eq!(output.status.code(), Some(0), "{}", all());
}
