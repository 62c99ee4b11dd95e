//! Runs and interrupts `plimsoll emulate` as a user does. The tests are skipped, with the reason, where a requirement
//! is missing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_testing::eventually;

const SCENARIO: &str = "version = 1\ntitle = 'live'\n[run]\nduration = '60s'\n\
                        [topology]\nkind = 'rack'\nhosts = 2\nrate = '100Mbps'\ndelay = '10us'\n\
                        [workload.bulk]\nkind = 'flows'\nfrom = ['h1']\nto = 'h0'\n";

fn plimsoll() -> Command {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
}

pub fn lacks() -> bool {
    let output = plimsoll().args(["check", "emulate"]).output().unwrap();
    if !output.status.success() {
        plimsoll_testing::skipped!(
            "this system lacks something\n{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    !output.status.success()
}

/// Starts a run of a minute, waits for its namespaces, and returns its folder.
fn begin() -> (Child, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("live.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let child = plimsoll()
        .arg("emulate")
        .arg(&scenario)
        .arg("--out")
        .arg(folder.path().join("out"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    eventually("the emulation has traffic", || traffic_flows(child.id()));
    (child, folder)
}

/// Returns whether the run has its namespaces, and its threads are in them.
fn traffic_flows(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).map_or(0, |tasks| tasks.count());
    namespaces(process) == 2 && threads > 1
}

fn namespaces(process: u32) -> usize {
    let own = format!("plimsoll-{process}-");
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    names.filter(|name| name.file_name().to_string_lossy().starts_with(&own)).count()
}

fn signal(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    if lacks() {
        return;
    }
    let signals = [
        ("-INT", 2),
        ("-TERM", 15),
        ("-QUIT", 3),
        ("-USR1", 10),
        ("-USR2", 12),
        ("-ALRM", 14),
        ("-XCPU", 24),
    ];
    for (name, number) in signals {
        let (mut child, _folder) = begin();
        // As a terminal does, to all programs of the group; repeated, while the first one is being obeyed.
        let group = format!("-{}", child.id());
        for _ in 0..3 {
            assert!(Command::new("kill").args([name, "--", &group]).status().unwrap().success());
        }
        assert_eq!(child.wait().unwrap().code(), Some(128 + number), "{name}");
        assert_eq!(namespaces(child.id()), 0, "{name}");
        assert!(!Path::new("/run/plimsoll").join(child.id().to_string()).exists(), "{name}");
    }
}

#[test]
fn what_a_killed_run_leaves_behind_is_cleaned_up() {
    if lacks() {
        return;
    }
    let (mut other, _others) = begin();
    let (mut child, _folder) = begin();
    signal(&child, "-KILL");
    child.wait().unwrap();
    assert_eq!(namespaces(child.id()), 2, "a killed run cannot remove them itself");
    assert!(plimsoll().args(["emulate", "--clean"]).status().unwrap().success());
    assert_eq!(namespaces(child.id()), 0);
    assert_eq!(namespaces(other.id()), 2, "those of a living run stay");
    signal(&other, "-INT");
    other.wait().unwrap();
    assert_eq!(namespaces(other.id()), 0);
}

/// A shell reads its commands from a pipe: it is in its host, and the run of a minute ends when it does.
#[test]
fn a_shell_ends_its_run() {
    if lacks() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("live.toml");
    let out = folder.path().join("out");
    fs::write(&scenario, SCENARIO).unwrap();
    let mut child = plimsoll()
        .args(["emulate", "--shell", "h1", "--capture", "--capture-bytes", "60"])
        .arg(&scenario)
        .arg("--out")
        .arg(&out)
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"cat /sys/class/net/eth0/address\nsleep 1\n").unwrap();
    let process = child.id();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("02:50:00:00:00:01"), "{said}");
    assert_eq!(namespaces(process), 0);
    let points: Vec<_> = fs::read_dir(out.join("pcap")).unwrap().flatten().collect();
    assert_eq!(points.len(), 1);
    assert!(fs::metadata(points[0].path().join("h1.pcapng")).unwrap().len() > 10_000);
}

#[test]
fn a_shell_opens_in_a_host_that_there_is() {
    if lacks() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("live.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let output = plimsoll().arg("emulate").arg(&scenario).args(["--shell", "h7"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("--shell h7: no such host; the topology has h0 to h1"), "{said}");
}

#[test]
fn an_unknown_variant_is_named_with_those_that_there_are() {
    if lacks() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("live.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let output = plimsoll().arg("emulate").arg(&scenario).args(["--variant", "bass"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("unknown variant `bass`: expected one of base"), "{said}");
}

#[test]
fn programs_of_a_scenario_run_and_leave_logs() {
    if lacks() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("live.toml");
    let programs = "[[program]]\nhost = 'h1'\ncommand = 'cat /sys/class/net/eth0/address'\n\
                    [[program]]\nhost = 'h1'\ncommand = \"sh -c 'exit 7'\"\n";
    fs::write(&scenario, SCENARIO.replace("60s", "500ms") + programs).unwrap();
    let out = folder.path().join("out");
    let output = plimsoll()
        .arg("emulate")
        .arg(&scenario)
        .args(["--program", "h0=echo there is more; $HOME"])
        // The program is a daemon: neither a child nor in the process group of the command.
        .args(["--program", "h0=sh -c 'setsid sleep 86411 &'", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("exit status: 7"), "{said}");
    let daemon = "sleep\086411\0";
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut commands =
        processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    assert!(!commands.any(|command| command == daemon), "a daemon outlives its run");
    let report = out.join("report.html");
    assert!(said.contains(&format!("Report   {}", report.display())) && report.exists(), "{said}");
    let points: Vec<_> = fs::read_dir(out.join("programs")).unwrap().flatten().collect();
    assert_eq!(points.len(), 1);
    let log = |name: &str| fs::read_to_string(points[0].path().join(name)).unwrap();
    assert_eq!(log("program-h1.log").trim(), "02:50:00:00:00:01");
    assert_eq!(
        (log("program-h1-2.log").as_str(), log("program-h0.log").as_str()),
        ("", "there is more; $HOME\n")
    );
}

/// A second call resumes the run; a simulation's points do not belong to it.
#[test]
fn what_is_finished_stays_until_it_is_forced() {
    if lacks() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("live.toml");
    fs::write(&scenario, SCENARIO.replace("60s", "300ms")).unwrap();
    let run = |command: &str, more: &[&str]| {
        let output = plimsoll()
            .args([command, "live.toml", "--out", "out"])
            .args(more)
            .current_dir(folder.path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run("emulate", &["--program", "h0=true"]);
    assert_eq!(code, Some(0), "{said}");
    let log =
        || fs::read_dir(folder.path().join("out/programs")).is_ok_and(|mut points| points.next().is_some());
    assert!(log());
    let (code, said) = run("emulate", &["--program", "h0=true"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 of 1 points are finished already") && !said.contains("ready after"), "{said}");
    for (command, other) in [("emulate", &[][..]), ("run", &[])] {
        let (code, said) = run(command, other);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("its packets were carried by this kernel --program h0=true"), "{said}");
    }
    let (code, said) = run("emulate", &["--force"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("ready after") && !log(), "{said}");
}

/// Counts kernel objects of all network namespaces, named or not: connections without a process, namespaces (none where
/// the kernel does not report them), and congestion controls of eBPF.
fn held() -> [usize; 3] {
    let orphans = fs::read_to_string("/proc/net/sockstat").unwrap();
    let orphans = orphans.split("orphan ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let namespaces = fs::read_to_string("/sys/kernel/slab/net_namespace/objects").unwrap_or_default();
    let namespaces = namespaces.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let controls = Command::new("bpftool").args(["struct_ops", "list"]).output();
    let controls = controls.map_or(0, |output| String::from_utf8_lossy(&output.stdout).lines().count());
    [orphans, namespaces, controls]
}

/// Connections that the end of a run interrupts would keep their namespaces and congestion control for minutes:
/// connections of its workloads by TCP, DCTCP and MPTCP, and of programs that are not notified of the end. None may
/// remain, however the run ends.
#[test]
fn twenty_runs_leave_nothing_in_the_kernel() {
    const RUNS: usize = 20;
    if lacks() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sink = "import socket, time\n\
                server = socket.create_server((\"10.0.0.1\", 7000))\n\
                taken = server.accept()\n\
                time.sleep(60)\n";
    let source = "import socket, time\n\
                  for attempt in range(500):\n\
                  \x20   try:\n\
                  \x20       connection = socket.create_connection((\"10.0.0.1\", 7000)); break\n\
                  \x20   except OSError:\n\
                  \x20       time.sleep(0.01)\n\
                  connection.sendall(bytes(1 << 26))\n";
    fs::write(folder.path().join("sink.py"), sink).unwrap();
    fs::write(folder.path().join("source.py"), source).unwrap();
    let programs = format!(
        "[[program]]\nhost = 'h0'\ncommand = '{PYTHON} sink.py'\n\
         [[program]]\nhost = 'h1'\ncommand = \"sh -c 'setsid {PYTHON} source.py & wait'\"\n"
    );
    let own_dctcp = cfg!(feature = "kernel") || {
        let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        known.is_ok_and(|known| known.split_whitespace().any(|name| name == "dctcp"))
    };
    let kind = if own_dctcp { "[transport]\nkind = 'dctcp'\n" } else { "" };
    let short = SCENARIO.replace("60s", "300ms").replace("hosts = 2", "hosts = 4");
    fs::write(folder.path().join("flows.toml"), short.clone() + kind).unwrap();
    fs::write(folder.path().join("programs.toml"), short + &programs).unwrap();
    fs::write(folder.path().join("long.toml"), SCENARIO.to_owned() + kind + &programs).unwrap();
    let has_mptcp = Path::new("/proc/sys/net/mptcp").exists();
    let before = held();
    for number in 0..RUNS {
        let mut command = plimsoll();
        command.args(["emulate", "--force", "--quiet", "--out", "out"]).current_dir(folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let endings: &[&str] = match number % 5 {
            0 => &["-INT"],
            1 => &["-KILL"],
            _ => &[],
        };
        match number % 5 {
            0 | 1 => command.arg("long.toml"),
            2 => command.arg("programs.toml"),
            3 if has_mptcp => command.args(["flows.toml", "--mptcp", "1"]),
            _ => command.arg("flows.toml"),
        };
        let child = command.spawn().unwrap();
        let process = child.id();
        if let [ending] = endings {
            eventually("the emulation has traffic", || traffic_flows(process));
            signal(&child, ending);
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), endings.is_empty(), "run {number}: {said}");
        // A killed run leaves its names to the next run.
        let left = if endings == ["-KILL"] { 2 } else { 0 };
        assert_eq!(namespaces(process), left, "run {number}: {said}");
    }
    // Other emulations may run now, and the kernel counts by pages: of leaked objects, each run leaves one or more.
    let left = fmt::from_fn(|f| {
        let held = held();
        write!(
            f,
            "connections, namespaces, congestion controls: {held:?} after {RUNS} runs, {before:?} before"
        )
    });
    eventually(left, || held().iter().zip(before).all(|(now, before)| *now < before + RUNS));
}

/// The interpreter that has Debian's packages, whichever else is called python3.
const PYTHON: &str = "/usr/bin/python3";

/// Runs Debian's memcached and a Python client, both unaware that their network is emulated, and of their level.
#[test]
fn an_unmodified_memcached_answers_at_a_level() {
    let has = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    if lacks() {
        return;
    }
    if !has("memcached", &["-V"]) || !has(PYTHON, &["-c", "import pymemcache"]) {
        return plimsoll_testing::skipped!("no memcached or no python3-pymemcache (Debian packages)");
    }
    let folder = tempfile::tempdir().unwrap();
    let client = folder.path().join("client.py");
    fs::write(
        &client,
        "import time\n\
         from pymemcache.client.base import Client\n\
         client = Client(('10.0.0.2', 11211))\n\
         for attempt in range(500):\n\
         \x20   try:\n\
         \x20       client.set('k', b'v'); break\n\
         \x20   except OSError:\n\
         \x20       time.sleep(0.01)\n\
         right = 0\n\
         for number in range(200):\n\
         \x20   client.set(f'k{number}', str(number).encode())\n\
         \x20   right += client.get(f'k{number}') == str(number).encode()\n\
         print(right, 'right')\n",
    )
    .unwrap();
    let scenario = folder.path().join("live.toml");
    let programs = format!(
        "[host.qjump]\npacket = '2KB'\n[[program]]\nhost = 'h1'\ncommand = 'memcached -u nobody -l 10.0.0.2'\nlevel = \
         4\n\
         [[program]]\nhost = 'h0'\ncommand = '{PYTHON} {}'\nlevel = 4\n",
        client.display()
    );
    let light = "kind = 'ping'\nfrom = 'h1'\nto = 'h0'\ninterval = '100ms'\n";
    let scenario_of =
        SCENARIO.replace("60s", "4s").replace("kind = 'flows'\nfrom = ['h1']\nto = 'h0'\n", light);
    fs::write(&scenario, scenario_of + &programs).unwrap();
    let out = folder.path().join("out");
    let output = plimsoll().arg("emulate").arg(&scenario).arg("--out").arg(&out).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let point = fs::read_dir(out.join("programs")).unwrap().flatten().next().unwrap();
    let log = fs::read_to_string(point.path().join("program-h0.log")).unwrap();
    assert_eq!(log.trim(), "200 right", "{said}");
}

#[test]
fn an_unmodified_ptpd_takes_the_time_across_the_fabric() {
    if lacks() {
        return;
    }
    if Command::new("ptpd").arg("-v").output().is_err() {
        return plimsoll_testing::skipped!("no ptpd (Debian package)");
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/programs/ptpd.toml");
    let output = plimsoll()
        .args(["emulate", scenario, "--variant", "beside bulk, QJump", "--duration", "6s", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let point = fs::read_dir(out.join("programs")).unwrap().flatten().next().unwrap();
    let log = fs::read_to_string(point.path().join("program-h0.log")).unwrap();
    // Timestamp, state, clock, one-way delay, offset from the master, ...
    let offsets = log.lines().filter(|line| line.contains(", slv, "));
    let offsets: Vec<f64> = offsets.filter_map(|line| line.split(',').nth(4)?.trim().parse().ok()).collect();
    assert!(offsets.len() >= 20, "{} offsets in\n{log}", offsets.len());
    // Both ends read one clock; a frame waits far less than a second.
    assert!(offsets.iter().all(|offset| offset.abs() < 1.0), "{offsets:?}");
}
