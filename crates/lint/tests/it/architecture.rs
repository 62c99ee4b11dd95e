//! Checks that the crates depend on each other only in the directions that ARCHITECTURE.md draws.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A crate of this workspace, with the crates of this workspace that it may use outside its tests.
const ALLOWED: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("text", &[]),
    // These are below every program.
    ("process", &["text"]),
    ("files", &[]),
    // Parsing and completions, alike for all programs.
    ("command-line", &["process"]),
    // Estimates and verdicts, for simulated and real systems.
    ("stats", &["text", "units"]),
    // A small server, and the text of metrics that it serves.
    ("http", &["process"]),
    // This is for the tests of all others.
    ("testing", &[]),
    // These are checks of the repository's files.
    ("lint", &[]),
    // A hint of the processor and an allocator, which take pointers.
    ("memory", &[]),
    ("mechanisms", &["memory", "units"]),
    // Bursts and trains in packet captures.
    ("bursts", &["units"]),
    // The requests of a live server, by the kernel's tracing programs.
    ("breakdown", &["bpf", "files"]),
    // Circuit schedulers and their control loop, which know no network.
    ("circuits", &["text", "units"]),
    ("fabric", &["circuits", "mechanisms", "memory", "units"]),
    // Workloads and their sources; a run records their events, so results are above.
    ("traffic", &["fabric", "text", "units"]),
    ("scenario", &["circuits", "fabric", "files", "mechanisms", "text", "traffic", "units"]),
    // The scenarios of the repository, as text: an edited one compiles no simulator again.
    ("shipped", &["scenario", "units"]),
    ("results", &["fabric", "files", "mechanisms", "stats", "text", "traffic", "units"]),
    // Results of runs, and of the four analyses that need no run.
    ("report", &["breakdown", "bursts", "circuits", "results", "text", "units"]),
    // The simulator depends neither on published values nor on how results are displayed.
    ("sim", &["circuits", "fabric", "mechanisms", "memory", "results", "scenario", "traffic", "units"]),
    // The live crates do not depend on the simulator, nor the other way round.
    (
        "linux",
        &["bpf", "circuits", "fabric", "mechanisms", "process", "results", "scenario", "traffic", "units"],
    ),
    // This installs mechanisms on a real host, without scenarios and a fabric.
    ("host", &["bpf", "files", "http", "mechanisms", "process", "units"]),
    // The control loop of circuits between real hosts: sockets and the gate around the state machines of `circuits`.
    ("circuits-live", &["bpf", "circuits", "files", "host", "http", "linux", "openflow", "process", "units"]),
    // These need no network: formulas of the tail, and the inside of a server.
    (
        "models",
        &["fabric", "files", "mechanisms", "process", "report", "results", "text", "traffic", "units"],
    ),
    // Tasks of studies that only code can do; they know no study.
    (
        "servers",
        &[
            "bpf",
            "breakdown",
            "bursts",
            "chronos-load",
            "circuits",
            "fabric",
            "linux",
            "mechanisms",
            "stats",
            "units",
        ],
    ),
    (
        "reproduce",
        &[
            "circuits",
            "experiment",
            "files",
            "linux",
            "models",
            "report",
            "results",
            "scenario",
            "servers",
            "shipped",
            "sim",
            "text",
            "units",
        ],
    ),
    // Questions to runs, the bench that makes them, and the store of those that are finished.
    (
        "experiment",
        &[
            "bursts", "files", "memory", "process", "report", "results", "scenario", "sim", "stats", "text",
            "units",
        ],
    ),
    ("line", &["experiment", "report", "results", "scenario", "sim", "stats", "text", "traffic", "units"]),
    // What to turn on: candidates, their lines, and the settings of the best.
    ("advise", &["experiment", "line", "report", "results", "scenario", "sim", "stats", "text", "units"]),
    // Measured latencies beside those of runs, and the parameters that bring the two together.
    ("calibrate", &["experiment", "models", "report", "results", "scenario", "sim", "stats", "units"]),
    // Files of a real network, as a scenario; it runs nothing.
    ("import", &["bursts", "files", "report", "scenario", "stats", "text", "traffic", "units"]),
    // A page on which one turns a scenario's keys, with its server.
    ("explore", &["experiment", "http", "line", "report", "results", "scenario", "sim", "units"]),
    // The kernel's programs are compared with the mechanisms, not the other way round.
    ("bpf", &["mechanisms", "units"]),
    // These are servers: a runtime, and its users. They reach the network only by sockets.
    ("chronos", &["bpf", "files", "http", "mechanisms", "process", "units"]),
    // Datagrams past the kernel's stack, which a program hands to the runtime.
    ("chronos-xdp", &["bpf", "chronos"]),
    (
        "chronos-memcached",
        &["chronos", "chronos-xdp", "command-line", "files", "http", "memory", "process", "units"],
    ),
    ("chronos-search", &["chronos", "chronos-xdp", "command-line", "files", "http", "process", "units"]),
    // Messages of OpenFlow, for controllers.
    ("openflow", &[]),
    ("chronos-openflow", &["chronos", "command-line", "openflow", "process", "units"]),
    ("chronos-load", &["command-line", "files", "process", "stats", "text", "units"]),
    (
        "cli",
        &[
            "advise",
            "breakdown",
            "bursts",
            "calibrate",
            "circuits",
            "circuits-live",
            "command-line",
            "experiment",
            "explore",
            "fabric",
            "files",
            "host",
            "http",
            "import",
            "line",
            "linux",
            "mechanisms",
            "memory",
            "models",
            "process",
            "report",
            "reproduce",
            "results",
            "scenario",
            "shipped",
            "sim",
            "text",
            "units",
        ],
    ),
];

/// Crates outside the architecture, which use the crates that they measure or show.
const OUTSIDE: [&str; 4] = ["benches", "chronos-locked", "examples", "torture"];

/// Returns the dependencies between the crates of the workspace, without tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path", manifest])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let short = |name: &Value| name.as_str().unwrap().strip_prefix("plimsoll-").map(str::to_owned);
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .filter_map(|package| {
            let outside_tests = |dependency: &&Value| dependency["kind"] != "dev";
            let all = package["dependencies"].as_array().unwrap().iter().filter(outside_tests);
            // A crate of the same name from a registry would not have a path.
            let ours = all.filter(|dependency| dependency["path"].is_string());
            Some((
                short(&package["name"])?,
                ours.filter_map(|dependency| short(&dependency["name"])).collect(),
            ))
        })
        .collect()
}

#[test]
fn crates_depend_only_downwards() {
    let found = dependencies();
    let known: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).chain(OUTSIDE).collect();
    let all: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(all, known, "every crate of the workspace has its directions");
    for (name, allowed) in ALLOWED {
        let uses = found.get(*name).unwrap_or_else(|| panic!("no crate plimsoll-{name} in the workspace"));
        let more: Vec<_> = uses.iter().filter(|used| !allowed.contains(&used.as_str())).collect();
        assert!(more.is_empty(), "plimsoll-{name} uses {more:?}; ARCHITECTURE.md allows {allowed:?}");
    }
}

#[test]
fn nothing_depends_on_the_command_line() {
    // The examples show how a program of one's own runs the command line.
    for (name, uses) in dependencies().into_iter().filter(|(name, _)| name != "examples") {
        assert!(!uses.contains("cli"), "plimsoll-{name} uses plimsoll-cli");
    }
}

/// Files that strangers may have made are opened by `plimsoll-files` alone. Lines that open another file have a comment
/// that says so.
#[test]
fn strangers_files_are_opened_by_one_function() {
    let crates = [
        "chronos-load",
        "cli",
        "import",
        "line",
        "models",
        "report",
        "reproduce",
        "results",
        "scenario",
        "sim",
    ];
    let opens =
        ["File::open(", "File::options(", "File::create(", "OpenOptions", "fs::read(", "read_to_string("];
    // The kernel's files, folders that are only synced, files that this process has made, and tests.
    let allowed = [
        "plimsoll_files::",
        "/proc",
        "/sys",
        "/dev/tty",
        "/run/netns/",
        "STATUS",
        "(\"speed\")",
        "folder.join(file)",
        "fs::read_to_string(path).ok()?",
        "File::open(path) {",
        "directory.path()",
        "set_len(",
        "self.file(COUNTS)",
        "CARGO_MANIFEST_DIR",
        "let committed",
        ".unwrap()",
    ];
    let mut found = Vec::new();
    let folders = crates
        .map(|name| format!("crates/{name}"))
        .into_iter()
        .chain(["python".to_owned(), "studies/servers".to_owned()]);
    for file in folders.flat_map(|folder| sources(&root().join(folder).join("src"))) {
        let text = fs::read_to_string(&file).unwrap();
        let production = text.split("\nmod tests {").next().unwrap();
        let direct = |line: &&str| opens.iter().any(|open| line.contains(open));
        let known = |line: &&str| allowed.iter().any(|known| line.contains(known));
        let lines = production.lines().filter(|line| direct(line) && !known(line));
        found.extend(lines.map(|line| format!("{}: {}", file.display(), line.trim())));
    }
    assert!(found.is_empty(), "use plimsoll_files::open, read or read_text:\n{}", found.join("\n"));
}

/// The simulator's world is a loop: hosts have private state, and know neither the world nor its workloads.
#[test]
fn hosts_are_behind_a_seam() {
    let folder = root().join("crates/sim/src");
    let mut found = Vec::new();
    for file in sources(&folder) {
        let name = file.strip_prefix(&folder).unwrap().display().to_string();
        let text = fs::read_to_string(&file).unwrap();
        let is_field = |line: &str| line.starts_with("    pub(crate) ") && !line.contains(" fn ");
        let is_wrong = |line: &str| {
            let of_world =
                line.starts_with("impl World") && !["world.rs", "parallel/run.rs"].contains(&&*name);
            let of_hosts = name == "hosts.rs" || name.starts_with("hosts/");
            let knows_world = line.contains("crate::world") || line.contains("crate::sources");
            of_world || of_hosts && (is_field(line) || knows_world || line.starts_with("pub(crate) mod"))
        };
        found.extend(
            text.lines().filter(|line| is_wrong(line)).map(|line| format!("{name}: {}", line.trim())),
        );
    }
    assert!(found.is_empty(), "what is in sim/src/hosts is private to it:\n{}", found.join("\n"));
}

/// Returns the Rust files below a folder that are not tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if name.ends_with(".rs") && !name.contains("tests") {
            files.push(path);
        }
    }
    files
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The dependencies have no cycle.
#[test]
fn the_allowed_directions_have_no_cycle() {
    let mut below: BTreeSet<&str> = BTreeSet::new();
    while below.len() < ALLOWED.len() {
        let next = ALLOWED
            .iter()
            .find(|(name, uses)| !below.contains(name) && uses.iter().all(|used| below.contains(used)));
        let (name, _) = next.expect("a crate whose dependencies are all below");
        below.insert(name);
    }
}
