//! Runs the commands of documentation pages on small inputs: every line of a block that begins with `$ `.
//!
//! The files that a page names are made here. Programs of other projects are replaced by scripts in a folder of the
//! search path, so that a page may say `tcpdump ... | plimsoll bursts -`.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::common::Place;

/// Returns the commands of a page, without the comments behind them.
fn commands(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut in_block = false;
    let mut commands: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if in_block && let Some(command) = line.strip_prefix("$ ") {
            commands.push(command.split("  # ").next().unwrap().trim_end().to_owned());
        } else if in_block && let Some(begun) = commands.last_mut().filter(|begun| begun.ends_with('\\')) {
            // The rest of a command that is longer than a line.
            begun.pop();
            begun.push_str(line.trim());
        }
    }
    assert!(commands.len() >= 3, "{page} has commands");
    commands
}

/// Runs every command of a page in `place`. All end with status 0, except that commands with a text of `fails` end with
/// status 2. The result is what all of them have printed.
#[track_caller]
fn run_page(page: &str, place: &Place, fails: &[&str]) -> String {
    let mut printed = String::new();
    let programs = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let rest = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{rest}", place.path("stand-ins").display(), programs.display());
    for command in commands(page) {
        let out = Command::new("sh")
            .args(["-c", &command])
            .current_dir(place.path("."))
            .env("PATH", &path)
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let expected = if fails.iter().any(|part| command.contains(part)) { 2 } else { 0 };
        let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert_eq!(out.status.code(), Some(expected), "docs/{page}: {command}\n{stdout}\n{stderr}");
        printed.push_str(&stdout);
    }
    printed
}

/// Returns the blocks of output of a page: those marked `text` without a command.
fn outputs(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = fs::read_to_string(path).unwrap();
    let blocks = text.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks.filter(|block| !block.starts_with("$ ")).collect()
}

/// Makes a program of the search path that runs a line of shell.
fn stand_in(place: &Place, name: &str, line: &str) {
    fs::create_dir_all(place.path("stand-ins")).unwrap();
    let file = format!("stand-ins/{name}");
    place.write(&file, &format!("#!/bin/sh\n{line}\n"));
    fs::set_permissions(place.path(&file), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes runs of the quickstart as short as this, and a search as narrow as possible, in place of the minutes that a
/// page's own would take.
fn shorten(place: &Place, duration: &str) {
    let short = format!("--replicates 1 --set run.duration={duration} --set run.warmup=0s --set {SMALL}");
    let run = format!("'run scenarios/quickstart.toml'*) set -- \"$@\" {short};;");
    let quick =
        format!("--within 0.3..0.4 --replicates-max 16 --set run.duration={duration} --set run.warmup=0s");
    let more = format!("--set workload.small.load=72Mbps --set {SMALL}");
    let search = format!("'line scenarios/quickstart.toml'*) set -- \"$@\" {quick} {more};;");
    let mine = "'run mine.toml'*) set -- \"$@\" --set run.duration=20ms --set run.warmup=0s;;";
    let of_schemes = "--set run.duration=30us --set run.warmup=0s --variant DCTCP --variant Homa";
    let schemes = format!("'run scenarios/schemes/fabric.toml'*) set -- \"$@\" {of_schemes};;");
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let cases = format!("{run} {search} {mine} {schemes}");
    stand_in(place, "plimsoll", &format!("case \"$*\" in {cases} esac\nexec {program} \"$@\""));
}

/// Transfers of which some complete in so short a run.
const SMALL: &str = "workload.background.size=100KB";

/// Makes a folder of this repository reachable under its name.
fn link(place: &Place, folder: &str) {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    std::os::unix::fs::symlink(target, place.path(folder)).unwrap();
}

/// A server at the port that the page names, which echoes its input, and a client that asks it every millisecond.
struct EchoServer {
    client: Option<JoinHandle<()>>,
    /// Ends the client when it is dropped.
    end: Option<Sender<()>>,
}

impl EchoServer {
    fn start() -> EchoServer {
        let address = "127.0.0.1:11211";
        let listener = TcpListener::bind(address).unwrap();
        let (end, ended) = mpsc::channel::<()>();
        let client = thread::spawn(move || {
            let mut client = TcpStream::connect(address).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            let mut bytes = [0; 4];
            while ended.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
                client.write_all(b"ping").unwrap();
                server.read_exact(&mut bytes).unwrap();
                server.write_all(&bytes).unwrap();
                client.read_exact(&mut bytes).unwrap();
            }
        });
        EchoServer { client: Some(client), end: Some(end) }
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(client) = self.client.take() {
            client.join().unwrap();
        }
    }
}

/// Returns the lines of a table of completion times without its numbers and units.
fn skeleton(text: &str) -> Vec<String> {
    let word = |word: &str| match word {
        "ns" | "us" | "ms" | "s" | ".." => None,
        number if !number.chars().any(char::is_alphabetic) => None,
        word => Some(word.to_owned()),
    };
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.map(|line| line.split_whitespace().filter_map(word).collect::<Vec<_>>().join(" ")).collect()
}

/// The numbers come from a run of minutes, which a test cannot make.
#[test]
fn the_readme_shows_what_the_quickstart_prints() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let block = readme.split("<!-- quickstart").nth(1).unwrap().split("```").nth(1).unwrap();
    let block = block.trim_start_matches("text\n");
    let place = Place::new();
    let short = ["--set", "run.duration=60ms", "--set", "run.warmup=0s", "--set", SMALL, "--quiet"];
    let ran = place.plimsoll(&[&["run", crate::common::QUICKSTART], &short[..]].concat()).ends_with(0);
    assert_eq!(skeleton(block), skeleton(&ran.stdout), "refresh the block: `make run`");
    let table: Vec<&str> = block.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(table.len(), 6, "{block}");
    assert!(table[3..].iter().all(|row| row.matches(" .. ").count() == 4), "{block}");
    assert!(!block.contains('¹') && !block.contains("warning"), "{block}");
    for sentence in ["DCTCP: p99(small)", "HULL: p99(small)"] {
        assert!(block.contains(sentence), "{block}");
    }
}

#[test]
fn the_first_steps() {
    let place = Place::new();
    link(&place, "scenarios");
    link(&place, "deploy");
    shorten(&place, "100ms");
    run_page("start.md", &place, &[]);
    for made in ["results/compared/report.html", "results/line/report.html", "time.svg", "tail.svg"] {
        assert!(place.path(made).exists(), "{made}");
    }
    assert_ne!(place.read("time.svg"), place.read("tail.svg"));
}

#[test]
fn the_gallery() {
    let place = Place::new();
    link(&place, "scenarios");
    shorten(&place, "60ms");
    run_page("gallery.md", &place, &[]);
    let figures = [
        "schemes",
        "knee",
        "cost",
        "within",
        "time",
        "tail",
        "who-pays",
        "queue",
        "over-time",
        "circuits",
        "ranks",
    ];
    for figure in figures {
        assert!(place.read(&format!("{figure}.svg")).ends_with("</svg>\n"), "{figure}");
    }
    assert!(place.read("knee.svg").contains("p99(small) &lt; 1ms"));
}

#[test]
fn the_page_of_tail_models() {
    let place = Place::new();
    place.write("get.hlog", crate::models::LOG);
    place.write("get.csv", "ms\n0.1\n0.2\n0.4\n3\n");
    place.write("requests.csv", "verb,latency_us\nget,80\nget,95\nset,310\n");
    let quick = ["--set", "run.duration=0.3s", "--set", "run.warmup=0s", "--replicates", "1", "-q"];
    let run = [&["run", crate::common::QUICKSTART, "--out", "results/quickstart"], &quick[..]].concat();
    place.plimsoll(&run).ends_with(0);
    run_page("models.md", &place, &[]);
}

#[test]
fn the_page_of_calibration() {
    let place = Place::new();
    crate::calibrate::prepare(&place);
    // The load generator has tests of its own, with a server to ask.
    stand_in(&place, "chronos-load", "for file; do :; done\ncp \"${file%.hlog}.csv\" \"$file\"");
    run_page("calibrate.md", &place, &[]);
    assert!(place.path("results/calibrated").exists());
}

#[test]
fn the_page_of_bursts() {
    let place = Place::new();
    if !place.may_capture() {
        plimsoll_testing::skipped!("a capture from a device needs CAP_NET_RAW");
        return;
    }
    let _traffic = crate::bursts::Traffic::start();
    fs::write(place.path("link.pcap"), crate::bursts::capture(3)).unwrap();
    stand_in(&place, "tcpdump", "cat link.pcap");
    link(&place, "scenarios");
    run_page("bursts.md", &place, &["head -c 7029"]);
}

/// The search is over a narrow range, and the run as short as the capture.
#[test]
fn the_page_of_imports() {
    let place = Place::new();
    fs::write(place.path("link.pcap"), crate::import::capture(400)).unwrap();
    stand_in(&place, "tcpdump", "cp link.pcap host.pcap");
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let quick = "--within 20Mbps..40Mbps --replicates-max 16 --set run.duration=1s";
    let line = format!("case \"$*\" in 'line '*) set -- \"$@\" {quick};; esac\nexec {program} \"$@\"");
    stand_in(&place, "plimsoll", &line);
    let printed = run_page("import.md", &place, &[]);
    assert!(printed.contains("port-11211") && printed.contains("good"), "{printed}");
    for made in ["mine/import.html", "mine/port-11211.csv", "model/port-11211-response.csv", "closed/all.csv"]
    {
        assert!(place.path(made).exists(), "{made}");
    }
    assert!(place.path("results/line/report.html").exists());
}

/// Searches are over a narrow range with short runs, in place of the minutes of the page. The traffic is far below what
/// its network carries, so nothing is needed.
#[test]
fn the_page_of_an_operators_hour() {
    let place = Place::new();
    fs::write(place.path("link.pcap"), crate::import::capture(400)).unwrap();
    stand_in(&place, "tcpdump", "cp link.pcap host.pcap");
    let latencies: String = (0..400).map(|number| format!("{}\n", 60 + number % 20)).collect();
    place.write("latencies.csv", &format!("us\n{latencies}"));
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let quick = "case \"$*\" in 'line '*) set -- \"$@\" --within 20Mbps..40Mbps --replicates-max 16 --messages 400;; \
                 'advise '*) set -- \"$@\" --messages 200;; esac";
    stand_in(&place, "plimsoll", &format!("{quick}\nexec {program} \"$@\""));
    let printed = run_page("operator.md", &place, &[]);
    assert!(printed.contains("nothing is needed"), "{printed}");
    assert!(printed.contains("Load line of workload.port-11211-h0.load"), "{printed}");
    assert!(place.path("replay/import.html").exists());
}

#[test]
fn the_page_of_the_tail() {
    let place = Place::new();
    if !place.may_capture() {
        plimsoll_testing::skipped!("a capture from a device needs CAP_NET_RAW");
        return;
    }
    let _traffic = crate::bursts::Traffic::start();
    // The load generator has tests of its own, with a server to ask.
    place.write("measured.hlog", crate::models::LOG);
    stand_in(&place, "chronos-load", "cp measured.hlog get.hlog");
    link(&place, "scenarios");
    // Requests are traced by programs in the kernel, which a build may lack.
    let traces = cfg!(feature = "kernel");
    let server = traces.then(EchoServer::start);
    let printed = run_page("tail.md", &place, if traces { &[] } else { &["plimsoll breakdown"] });
    drop(server);
    let outputs = outputs("tail.md");
    assert_eq!(outputs.len(), 1);
    assert!(printed.contains(&outputs[0]), "refresh the table of tail.md:\n{printed}");
}

#[test]
fn the_page_of_flow_logs_and_metrics() {
    let place = Place::new();
    for file in ["nfdump-1.6.csv", "own.csv", "query-range.json", "lldp"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/files").join(file);
        std::os::unix::fs::symlink(path, place.path(file)).unwrap();
    }
    fs::rename(place.path("lldp"), place.path("neighbours")).unwrap();
    stand_in(&place, "nfdump", "cat nfdump-1.6.csv");
    stand_in(&place, "curl", "cat query-range.json");
    let printed = run_page("import-flows.md", &place, &[]);
    assert!(printed.contains("port-9092") && printed.contains("orders"), "{printed}");
    assert!(place.path("rates/import.html").exists());
    let spine = place.read("spine/scenario.toml");
    assert!(spine.contains("kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n"), "{spine}");
    // The log's hosts have the names that the switches report, and a run accepts the graph.
    assert!(place.read("racks/port-9092.csv").contains(",web-1.example.net,db-1,"));
    for folder in ["racks", "own", "rates", "spine"] {
        place.plimsoll(&["scenario", "check", &format!("{folder}/scenario.toml")]).ends_with(0);
    }
}
