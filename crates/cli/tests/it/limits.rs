//! No scenario exhausts the machine: one that does not fit into memory is rejected before it runs, or stopped, and
//! finished points are kept; special files are not read.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common::{Place, Ran, names};

/// A scenario of two hosts and some requests.
const SMALL: &str = r#"
version = 1
title = "Small"
[run]
duration = "10ms"
[topology]
kind = "rack"
hosts = 3
rate = "1Gbps"
delay = "5us"
[port.switch]
buffer = "100 packets"
[workload.small]
kind = "rpc"
request = "100B"
response = "1KB"
load = 0.1
"#;

const LIMIT: [&str; 4] = ["--memory-max", "100MB", "--out", "out"];

#[test]
fn what_would_never_fit_is_refused_with_a_number_and_advice_that_works() {
    let place = Place::new();
    // Each case is an override, its error, and the advice, if that is a single setting.
    let cases: &[(&str, &[&str], Option<&str>)] = &[
        (
            "[observe.queue.q]\nport = \"client\"\nevery = \"1ps\"",
            &["160 GB", "160 GB are queue samples (`observe.queue.q.every`)", "the limit is 100 MB"],
            Some("observe.queue.q.every="),
        ),
        (
            "[observe.queue.all]\nport = \"tier:tor\"\nevery = \"1ps\"",
            &["480 GB are queue samples (`observe.queue.all.every`)"],
            Some("observe.queue.all.every="),
        ),
        (
            "observe.goodput_every = \"1ps\"",
            &["400 GB are goodput samples (`observe.goodput_every`)"],
            Some("observe.goodput_every="),
        ),
        (
            "observe.flow_series = \"1ns\"\n[workload.bulk]\nkind = \"flows\"\nfrom = \"others\"\nto = \"client\"",
            &["samples of connections (`observe.flow_series`)"],
            Some("observe.flow_series="),
        ),
        (
            "[workload.many]\nkind = \"fan-out\"\nrequest = \"1B\"\nresponse = \"1B\"\nqueries_per_second = 1e18",
            &[
                "messages (`workload.many.queries_per_second`)",
                "make `workload.many.queries_per_second` lower",
            ],
            None,
        ),
        (
            "run.duration = \"1000s\"\n[workload.full]\nkind = \"all-to-all\"\nsize = \"1KB\"\nload = 1.0",
            &["messages (`workload.full.load`)"],
            Some("run.duration="),
        ),
        (
            "[workload.sync]\nkind = \"incast\"\nsize = \"1B\"\nevery = \"1ps\"\nrounds = 1_000_000_000_000_000_000",
            &["messages (`workload.sync.rounds`)"],
            None,
        ),
        (
            "[workload.pinger]\nkind = \"ping\"\nto = \"h1\"\ninterval = \"1ps\"",
            &["messages (`workload.pinger.interval`)"],
            None,
        ),
        (
            "[workload.clock]\nkind = \"ptp\"\ninterval = \"1ps\"",
            &["observations (`workload.clock.interval`)"],
            None,
        ),
        (
            "[workload.page]\nkind = \"pages\"\npages_per_second = 1e9\nretrievals = 1_000_000\norder = \"sequential\"",
            &["messages (`workload.page.pages_per_second`)"],
            None,
        ),
    ];
    for (over, said, advice) in cases {
        // Dotted keys go before the first table; a table of the same name is replaced.
        let (keys, tables) = over.split_at(over.find('[').unwrap_or(over.len()));
        let small = match keys.starts_with("run.") {
            true => SMALL.replace("[run]\nduration = \"10ms\"\n", ""),
            false => SMALL.to_owned(),
        };
        place.write("big.toml", &format!("{keys}\n{small}\n{tables}\n"));
        let _ = std::fs::remove_dir_all(place.path("out"));
        let args = [&["run", "big.toml", "--quiet"][..], &LIMIT].concat();
        let mut ran = place.plimsoll(&args).ends_with(2).prints_nothing().says("raise `--memory-max`");
        for words in *said {
            ran = ran.says(words);
        }
        assert!(!place.path("out").exists(), "nothing has begun");
        if let Some(setting) = advice {
            let start =
                ran.stderr.find(&format!("--set {setting}")).unwrap_or_else(|| panic!("{}", ran.stderr));
            let set = ran.stderr[start + 6..].split('`').next().unwrap();
            place
                .plimsoll(&["run", "big.toml", "--set", set, "--list", "--memory-max", "100MB"])
                .ends_with(0);
            let ran = place.plimsoll(&[&["run", "big.toml", "--set", set, "--force"][..], &LIMIT].concat());
            assert!(!ran.stderr.contains("would keep"), "{set}: {}", ran.stderr);
        }
    }
}

/// Rounds without a duration are counted too.
#[test]
fn work_without_an_end_in_sight_is_refused() {
    let place = Place::new();
    let without =
        SMALL.replace("[run]\nduration = \"10ms\"\n", "").replace("load = 0.1", "load = 0.1\ncount = 1");
    let cases = [
        ("kind = \"barrier\"\nrounds = 4_000_000_000", "queries (`workload.x.rounds`)"),
        ("kind = \"commit\"\ncount = 4_000_000_000", "queries (`workload.x.count`)"),
        ("kind = \"closed-loop\"\ncount = 4_000_000_000", "messages (`workload.x.count`)"),
        ("kind = \"shuffle\"\nsize = \"1KB\"\nwaves = 4_000_000_000", "messages (`workload.x.waves`)"),
        (
            "kind = \"incast\"\nsize = \"1KB\"\nevery = \"1s\"\nrounds = 4_000_000_000",
            "messages (`workload.x.rounds`)",
        ),
    ];
    for (workload, said) in cases {
        place.write("big.toml", &format!("{without}\n[workload.x]\n{workload}\n"));
        place
            .plimsoll(&[&["run", "big.toml"][..], &LIMIT].concat())
            .ends_with(2)
            .says(said)
            .says("the limit is 100 MB");
    }
}

#[test]
fn networks_and_sweeps_without_bounds_are_refused() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    let refused = |args: &[&str], said: &str| {
        place.plimsoll(&[&["run", "small.toml"][..], args].concat()).ends_with(2).says(said);
    };
    refused(&["--replicates", "4000000000"], "more than 100000 runs");
    refused(&["--set", "topology.hosts=4_000_000_000"], "more than 2000000 hosts");
    refused(&[&["--set", "topology.hosts=900_000"][..], &LIMIT].concat(), "are ports (`topology`)");
}

/// A scenario whose raw packets exceed the network's capacity and wait in unlimited queues, which no check predicts.
const GROWS: &str = r#"
version = 1
title = "Grows"
[run]
duration = "1s"
[topology]
kind = "rack"
hosts = 4
rate = "100Gbps"
delay = "1us"
[workload.flood]
kind = "packets"
from = "others"
to = "client"
size = "64B"
load = 0.9
[sweep]
"workload.flood.load" = [0.0001, 1.0]
"#;

#[test]
fn what_grows_is_stopped_and_what_is_finished_is_kept() {
    let place = Place::new();
    place.write("grows.toml", GROWS);
    let args = [
        "run",
        "grows.toml",
        "--out",
        "out",
        "--memory-max",
        "150MB",
        "--threads",
        "1",
        "--set",
        "observe.completion=delivered",
    ];
    let ran = place.plimsoll(&args).ends_with(2).prints_nothing();
    let ran =
        ran.says("out of memory: this process has").says("its limit is 150 MB").says("`--memory-max SIZE`");
    ran.says("1 of 2 points are complete and kept in out").says("To resume, run the same command.");
    assert_eq!(names(&place.path("out/points")).len(), 1);
    // With the finished points and a shorter run of the rest, the command resumes.
    place.plimsoll(&args).ends_with(2).says("1 of 2 points are finished already");
}

/// A single event may fill the memory: a queue without a change for microseconds, in intervals of a picosecond.
#[test]
fn what_grows_within_one_event_ends_the_process_and_loses_nothing() {
    let place = Place::new();
    let without =
        SMALL.replace("[run]\nduration = \"10ms\"\n", "").replace("load = 0.1", "load = 0.1\ncount = 1000");
    place.write("t.toml", &format!("{without}\n[observe.queue.q]\nport = \"client\"\nevery = \"1us\"\n"));
    let sweep = ["--set", "sweep.\"observe.queue.q.every\"=[\"1us\", \"1ps\"]", "--threads", "1"];
    let args = [&["run", "t.toml"][..], &sweep, &LIMIT].concat();
    place.plimsoll(&args).ends_with(2).prints_nothing().says("error: out of memory: this process has");
    assert_eq!(names(&place.path("out/points")).len(), 1);
    place.plimsoll(&args).ends_with(2).says("1 of 2 points are finished already");
}

/// The system may refuse memory before the watch sees that there is too much, as it does where addresses are limited;
/// then a small block may be the first that any of several threads does not get.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_the_system_refuses_ends_the_process_with_a_message_and_loses_nothing() {
    for (threads, kilobytes) in
        [("1", 600_000), ("1", 450_000), ("2", 600_000), ("2", 450_000), ("4", 600_000)]
    {
        let place = Place::new();
        // The first point is over at once, and the others grow beside each other.
        place.write("grows.toml", &GROWS.replace("[0.0001, 1.0]", "[0.0001, 0.97, 0.98, 0.99, 1.0]"));
        let args = ["run", "grows.toml", "--out", "out", "--memory-max", "100GB", "--threads", threads];
        let program = place.command(&args);
        let mut limited = std::process::Command::new("sh");
        let limit = format!("ulimit -v {kilobytes} && exec \"$@\"");
        limited.args(["-c", &limit, "sh"]).arg(program.get_program()).args(args);
        let output = limited.current_dir(program.get_current_dir().unwrap()).output().unwrap();
        let ran = Ran::of(&args, output).ends_with(2).prints_nothing();
        ran.says("out of memory: the system has refused a block of").says("`ulimit -v` allows");
        assert_eq!(names(&place.path("out/points")).len(), 1, "{threads} threads");
    }
}

/// Every command ends with a message where the system refuses memory, and none is aborted.
#[cfg(target_os = "linux")]
#[test]
fn no_command_is_aborted_where_the_system_refuses_memory() {
    let place = Place::new();
    std::fs::write(place.path("long.pcap"), crate::bursts::capture(1_000)).unwrap();
    place.write("small.toml", SMALL);
    let commands: [&[&str]; 3] = [&["bursts", "long.pcap"], &["check"], &["config", "small.toml"]];
    for args in commands {
        let program = place.command(args);
        let (mut has_begun, mut refused) = (false, 0);
        for kilobytes in (10_000..80_000).step_by(2_000) {
            let mut limited = std::process::Command::new("sh");
            let limit = format!("ulimit -v {kilobytes} && exec \"$@\"");
            limited.args(["-c", &limit, "sh"]).arg(program.get_program()).args(args);
            let output = limited.current_dir(program.get_current_dir().unwrap()).output().unwrap();
            let ran = Ran::of(args, output);
            // With less memory than that, the system cannot even load the program.
            has_begun |= matches!(ran.code, Some(0..=2));
            assert!(
                !has_begun || matches!(ran.code, Some(0..=2)),
                "{args:?}, {kilobytes} KB: {}",
                ran.stderr
            );
            refused += u32::from(ran.stderr.contains("out of memory: the system has refused a block of"));
        }
        assert!(refused > 0, "{args:?}");
    }
}

/// A file that may not be executed is there, and cannot be started.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_cannot_be_started_is_not_called_missing() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.write("ip", "");
    let with_path = |args: &[&str], path: &str| {
        Ran::of(args, place.command(args).env("PATH", place.path(path)).output().unwrap())
    };
    let refused = "cannot start `ip`: Permission denied";
    with_path(&["check"], "").ends_with(1).prints(refused);
    with_path(&["emulate", "small.toml"], "").ends_with(2).prints_nothing().says(refused);
    with_path(&["emulate", "small.toml"], "none").ends_with(2).says("emulating needs").says("ip (iproute2)");
}

/// A process whose threads would need larger stacks than there are addresses can start none.
#[cfg(target_os = "linux")]
#[test]
fn where_no_thread_can_be_started_results_are_the_same_or_an_error_says_so() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    std::fs::write(place.path("long.pcap"), crate::bursts::capture(500)).unwrap();
    let without_threads = |args: &[&str]| {
        let output = place.command(args).env("RUST_MIN_STACK", (1u64 << 46).to_string()).output().unwrap();
        Ran::of(args, output)
    };
    let same: [&[&str]; 3] = [
        &["run", "small.toml", "--replicates", "3", "--threads", "4", "--format", "json", "--out"],
        &["line", "small.toml", "--slo", "p99(small) < 1ms", "--precision", "0.5", "--out"],
        &["bursts", "--format", "json", "long.pcap"],
    ];
    for args in same {
        let is_run = args.last() == Some(&"--out");
        let into = |out| args.iter().copied().chain(is_run.then_some(out)).collect::<Vec<&str>>();
        let [own, other] = ["with", "without"].map(into);
        let with = place.plimsoll(&own).ends_with(0);
        assert_eq!(without_threads(&other).ends_with(0).stdout, with.stdout, "{args:?}");
        for out in ["with", "without"] {
            let _ = std::fs::remove_dir_all(place.path(out));
        }
    }
    without_threads(&["explore", "small.toml"])
        .ends_with(2)
        .prints_nothing()
        .says("error: cannot start a thread that serves the page");
}

#[test]
fn a_limit_below_what_the_program_needs_is_an_error() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.plimsoll(&["run", "small.toml", "--memory-max", "1MB"]).ends_with(2).says("at least 64MB");
}

/// A file that may not grow further is an error of the write, as on a full disk, and no signal that ends the process.
#[cfg(unix)]
#[test]
fn a_limit_of_file_sizes_is_told() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    let script = "ulimit -f 0; exec \"$0\" run small.toml --out out 2>&1 | cat";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_plimsoll")]).current_dir(place.path(""));
    let said = String::from_utf8(shell.output().unwrap().stdout).unwrap();
    assert!(said.contains("File too large"), "{said}");
}

#[cfg(unix)]
#[test]
fn files_that_have_no_end_or_are_none_are_errors() {
    let place = Place::new();
    let fifo = place.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    std::fs::create_dir(place.path("folder")).unwrap();
    std::fs::File::create(place.path("long.toml")).unwrap().set_len((16 << 20) + 1).unwrap();
    let files = [
        ("fifo", "it is no regular file"),
        ("/dev/zero", "it is no regular file"),
        ("folder", "it is no regular file but a directory"),
        ("long.toml", "it has more than 16 MiB"),
    ];
    for (file, said) in files {
        let cases = [
            format!("include = \"{file}\"\n{SMALL}"),
            SMALL.replace(
                "kind = \"rack\"\nhosts = 3\nrate = \"1Gbps\"\ndelay = \"5us\"",
                &format!("kind = \"file\"\npath = \"{file}\""),
            ),
            SMALL
                .replace(
                    "response = \"1KB\"",
                    &format!("response = {{ cdf = \"./{}\" }}", file.trim_start_matches('/')),
                )
                .replace("./dev", "/dev"),
        ];
        for text in cases {
            place.write("t.toml", &text);
            place.plimsoll(&["run", "t.toml", "--out", "out"]).ends_with(2).says(said);
        }
    }
    let list = |file: &str| format!("{SMALL}\n[workload.list]\nkind = \"flow-list\"\npath = \"{file}\"\n");
    place.write("t.toml", &list("fifo"));
    place.plimsoll(&["run", "t.toml"]).ends_with(2).says("it is no regular file");
    std::fs::File::create(place.path("long.csv")).unwrap().set_len((128 << 20) + 1).unwrap();
    place.write("t.toml", &list("long.csv"));
    place.plimsoll(&["run", "t.toml"]).ends_with(2).says("it has more than 128 MiB");
    place.plimsoll(&["run", "/dev/zero"]).ends_with(2).says("it is no regular file");
    place.plimsoll(&["run", "folder"]).ends_with(2).says("it is no regular file but a directory");
}

/// Run directories and journals may be a stranger's.
#[cfg(unix)]
#[test]
fn a_run_directory_has_regular_files_only() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.plimsoll(&["run", "small.toml", "--out", "out", "--quiet"]).ends_with(0);
    let point = format!("points/{}/point.json", names(&place.path("out/points"))[0]);
    let commands: [(&str, &[&str]); 4] = [
        ("manifest.json", &["compare", "out"]),
        (&point, &["compare", "out"]),
        ("scenario.toml", &["merge", "merged", "out"]),
        ("runs.jsonl", &["line", "small.toml", "--slo", "p99(small) < 1s", "--out", "lines"]),
    ];
    std::fs::create_dir_all(place.path("lines/points")).unwrap();
    std::fs::write(place.path("lines/scenario.toml"), "").unwrap();
    for (file, command) in commands {
        let path = place.path(if file == "runs.jsonl" { "lines" } else { "out" }).join(file);
        let kept = std::fs::read(&path).unwrap_or_default();
        for (kind, make) in
            [("a pipe", "mkfifo"), ("a symbolic link", "ln -s /dev/zero"), ("a directory", "mkdir")]
        {
            let _ = std::fs::remove_file(&path);
            let make = format!("{make} '{}'", path.display());
            assert!(std::process::Command::new("sh").args(["-c", &make]).status().unwrap().success());
            place
                .plimsoll(command)
                .ends_with(2)
                .says(&format!("{file}: it is no regular file but {kind}"))
                .prints_nothing();
        }
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, &kept).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_scenario_may_come_from_a_pipe() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    let mut command = place.command(&["run", "/dev/stdin", "--out", "out", "--quiet"]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), SMALL.as_bytes()).unwrap();
    Ran::of(&["run"], child.wait_with_output().unwrap()).ends_with(0);
}

/// An error about a foreign file quotes nothing of it.
#[test]
fn strangers_files_are_not_quoted() {
    let place = Place::new();
    let secrets = [
        "root:$6$HUNTER2$HUNTER2:19000:0:99999:7:::\nHUNTER2:*:1::::::\n",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nHUNTER2\n-----END OPENSSH PRIVATE KEY-----\n",
        "password = \"HUNTER2\"\n",
        "[registry]\ntoken = \"HUNTER2\"\n",
        "HUNTER2",
        "# a comment\n\nHUNTER2 = 1\n",
        "{\"key\": \"HUNTER2\"}",
        "key: HUNTER2\n",
        "\u{feff}HUNTER2,HUNTER2\n",
    ];
    for secret in secrets {
        place.write("secret.csv", secret);
        let cases = [
            format!("include = \"secret.csv\"\n{SMALL}"),
            SMALL.replace(
                "kind = \"rack\"\nhosts = 3\nrate = \"1Gbps\"\ndelay = \"5us\"",
                "kind = \"file\"\npath = \"secret.csv\"",
            ),
            SMALL.replace("response = \"1KB\"", "response = { cdf = \"secret.csv\" }"),
            format!("{SMALL}\n[workload.list]\nkind = \"flow-list\"\npath = \"secret.csv\"\n"),
        ];
        for text in cases {
            place.write("t.toml", &text);
            let ran = place.plimsoll(&["run", "t.toml"]).ends_with(2).says("secret.csv");
            assert!(!ran.stderr.contains("HUNTER2") && !ran.stderr.contains("hunter2"), "{}", ran.stderr);
        }
    }
    // A file in the scenario's format is quoted.
    place.write("part.toml", "[run]\nduration = \"10 parsecs\"\n");
    place.write(
        "t.toml",
        &format!("include = \"part.toml\"\n{}", SMALL.replace("[run]\nduration = \"10ms\"\n", "")),
    );
    place.plimsoll(&["run", "t.toml"]).ends_with(2).says("2 | duration = \"10 parsecs\"");
}
