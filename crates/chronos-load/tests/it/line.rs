//! Searches the line of memcached, here and by agents, and attacks an agent.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use plimsoll_chronos_load::process::{ServerProcess, ServerTransport};
use serde_json::Value;

use super::memcached::memcached;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const SHORT: [&str; 6] =
    ["--time=30ms", "--warm-up=0s", "--wait=block", "--keys=200", "--connections=4", "--shared-cpus"];

fn load(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_chronos-load")).args(words).output().unwrap()
}

/// An agent, which ends when this is dropped.
struct Agent {
    child: Child,
    address: String,
}

impl Agent {
    fn start(token: &Path) -> Agent {
        Agent::start_with(token, Stdio::null())
    }

    fn start_with(token: &Path, errors: Stdio) -> Agent {
        let mut child = Command::new(env!("CARGO_BIN_EXE_chronos-load"))
            .args(["agent", "--listen=127.0.0.1:0", "--token-file", token.to_str().unwrap()])
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Agent { child, address }
    }

    /// Sends lines, and returns the agent's answers until it ends the connection.
    fn say(&self, lines: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // The agent may refuse a long line before its end.
        let _ = stream.write_all(lines.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = String::new();
        // A connection that is closed with unread bytes is reset.
        let _ = stream.read_to_string(&mut answer);
        answer
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn token_file(folder: &Path) -> PathBuf {
    let path = folder.join("token");
    fs::write(&path, format!("{TOKEN}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn hello(token: &str) -> String {
    format!("{{\"hello\":{{\"version\":1,\"token\":\"{token}\"}}}}\n")
}

#[test]
fn the_line_of_memcached_is_found_in_a_range() {
    let Some(server) = memcached(ServerTransport::Tcp) else { return };
    let server = format!("--server={}", server.endpoint);
    let range = ["line", &server, "--from=200", "--to=400", "--rounds=16", "--format=json"];
    // Replies within a minute are met by any machine; none is within a nanosecond.
    for (slo, status, found) in [("--slo=p50 < 60s", 0, "always"), ("--slo=p50 < 1ns", 1, "never")] {
        let output = load(&[&range[..], &SHORT, &["--lag-share=100%", slo]].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{errors}");
        let line: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(line["found"], found, "{line}");
        assert!(line["sentence"].as_str().unwrap().contains("operations/s"), "{line}");
        assert!(line["rates"].as_array().unwrap().iter().any(|at| at["rounds"] == 4), "{line}");
        assert!(errors.contains("operations/s: "), "{errors}");
    }
    let table = load(
        &[&["line", &server, "--from=200", "--to=300", "--slo=mean < 60s", "--rounds=4"], &SHORT[..]]
            .concat(),
    );
    let text = String::from_utf8_lossy(&table.stdout);
    assert!(
        text.starts_with("Load line of 127.0.0.1:") && text.contains("mean < 60s is met up to 300"),
        "{text}"
    );
    let backwards = load(&["line", &server, "--slo=p99<1ms", "--from=5", "--to=5"]);
    assert_eq!(backwards.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&backwards.stderr).contains("--from 5 is not below --to 5"));
}

#[test]
fn agents_send_the_load_together() {
    let Some(server) = memcached(ServerTransport::Tcp) else { return };
    let folder = tempfile::tempdir().unwrap();
    let token = token_file(folder.path());
    let agents = [Agent::start(&token), Agent::start(&token)];
    let names = format!("--agents={},{}", agents[0].address, agents[1].address);
    let (server, token) =
        (format!("--server={}", server.endpoint), format!("--token-file={}", token.display()));
    let with = [&names[..], &token, &server, "--format=json", "--time=200ms", "--ratio=5:5"];
    let output = load(&[&["run", "--rate=2000"], &with[..], &SHORT[1..]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        panic!("{}", String::from_utf8_lossy(&output.stderr));
    });
    let counts = &report["counts"];
    let count = |name: &str| counts[name].as_u64().unwrap();
    // 2,000 a second for 200 ms, in Poisson's spread.
    assert!((300..500).contains(&count("due")), "{report}");
    assert_eq!((count("misses"), count("wrong"), count("lost"), count("refused")), (0, 0, 0, 0), "{report}");
    assert!(count("sets") > 0 && count("hits") == count("gets"), "{report}");
    // The same agents serve the next caller, in a closed loop.
    let output = load(&[&["run"], &with[..], &SHORT[1..]].concat());
    assert!(output.status.code().unwrap() < 2, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_lost_agent_ends_the_search() {
    let Some(server) = memcached(ServerTransport::Tcp) else { return };
    let folder = tempfile::tempdir().unwrap();
    let token = token_file(folder.path());
    let mut agent = Agent::start(&token);
    let mut caller = Command::new(env!("CARGO_BIN_EXE_chronos-load"))
        .args([
            "line",
            "--slo=p99 < 60s",
            "--from=100",
            "--to=200",
            "--time=20s",
            "--warm-up=0s",
            "--wait=block",
        ])
        .args(["--keys=100", "--connections=1", &format!("--server={}", server.endpoint)])
        .args(["--agents", &agent.address, "--token-file", token.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while requests_of(&server) < 10 {
        assert!(caller.try_wait().unwrap().is_none(), "the caller ended");
    }
    agent.child.kill().unwrap();
    let output = caller.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains(&format!("agent {}: the connection", agent.address)), "{errors}");
}

/// The keys that a server was asked for so far.
fn requests_of(server: &ServerProcess) -> u64 {
    let mut stream = TcpStream::connect(server.endpoint.to_string()).unwrap();
    stream.write_all(b"stats\r\nquit\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("STAT cmd_get ")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn an_agent_stops_when_its_caller_goes() {
    let Some(server) = memcached(ServerTransport::Tcp) else { return };
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::start(&token_file(folder.path()));
    let stream = TcpStream::connect(&agent.address).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut answer = |call: String| {
        (&stream).write_all(call.as_bytes()).unwrap();
        lines.next().unwrap().unwrap()
    };
    assert_eq!(answer(hello(TOKEN)), "\"welcome\"");
    let prepare = format!(
        "{{\"prepare\":{{\"servers\":[\"{}\"],\"options\":[\"--keys=100\",\"--connections=1\",\"--wait=block\"],\
         \"share\":{{\"index\":0,\"of\":1}},\"stores\":true}}}}\n",
        server.endpoint
    );
    assert_eq!(answer(prepare), "\"ready\"");
    let run = "{\"run\":{\"index\":1,\"pace\":{\"closed\":{\"outstanding\":1}},\"warm-up-ps\":0,\
               \"time-ps\":60000000000000}}\n";
    assert_eq!(answer(run.to_owned()), "\"connected\"");
    (&stream).write_all(b"\"go\"\n").unwrap();
    while requests_of(&server) < 10 {}
    stream.shutdown(Shutdown::Both).unwrap();
    // The agent is free again long before the minute is over, and its load has ended by then.
    while !agent.say(&format!("{}\"go\"\n", hello(TOKEN))).starts_with("\"welcome\"") {}
    let after = requests_of(&server);
    assert_eq!(requests_of(&server), after);
}

#[test]
fn an_agent_refuses_what_is_malformed_or_not_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let token = token_file(folder.path());
    let agent = Agent::start(&token);
    let prepare = |servers: &str, options: &str, index: u32| {
        let body = format!(
            "{{\"prepare\":{{\"servers\":[{servers}],\"options\":[{options}],\
             \"share\":{{\"index\":{index},\"of\":2}},\"stores\":false}}}}\n"
        );
        hello(TOKEN) + &body
    };
    let run =
        "{\"run\":{\"index\":1,\"pace\":{\"closed\":{\"outstanding\":1}},\"warm-up-ps\":0,\"time-ps\":1}}\n";
    for (lines, part) in [
        (hello("0123456789abcdef"), "the token is wrong"),
        (
            hello(TOKEN).replace("\"version\":1", "\"version\":2"),
            "version 2 of the messages, this agent has 1",
        ),
        ("\"go\"\n".to_owned(), "the first message must be a hello"),
        (hello(TOKEN) + "{\"stop\":1}\n", "a message is malformed: unknown variant `stop`"),
        (hello(TOKEN) + "\"go\"\n", "this message is not expected here"),
        (hello(TOKEN) + run, "run: nothing is prepared"),
        (hello(TOKEN) + &"x".repeat(100_000), "a message has more than 65536 bytes"),
        (prepare("", "", 0), "there is no server"),
        (prepare("\"127.0.0.1:1\"", "", 2), "share 2 of 2"),
        (prepare("\"unix:/run/x\"", "", 0), "not to UNIX sockets"),
        (prepare("\"127.0.0.1:1\"", "\"--terms=/etc/passwd\"", 0), "an agent reads no files"),
        (prepare("\"127.0.0.1:1\"", "\"--keys=0\"", 0), "write a whole number from 1"),
        (prepare("\"127.0.0.1:1\"", "\"--key\"", 0), "unexpected argument"),
    ] {
        let answer = agent.say(&lines);
        let last = answer.lines().last().unwrap_or_default();
        assert!(last.starts_with("{\"error\":") && last.contains(part), "{part}: {answer}");
    }
    // Whatever happened before, the next caller is served.
    assert!(agent.say(&format!("{}\"go\"\n", hello(TOKEN))).starts_with("\"welcome\""));
    // More than a hello may have does not reach the parser.
    assert!(!agent.say(&"x".repeat(5_000)).contains("welcome"));
}

#[test]
fn silent_connections_do_not_keep_a_caller_out() {
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::start(&token_file(folder.path()));
    let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(&agent.address).unwrap()).collect();
    assert!(agent.say(&format!("{}\"go\"\n", hello(TOKEN))).starts_with("\"welcome\""));
    // All are closed, most of them for others, and the last at their deadline.
    for mut stream in silent {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
}

/// Its stderr is a full pipe, whose reader stays and reads nothing.
#[test]
fn an_agent_whose_errors_nobody_reads_ends_its_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'\n'; 4096]).is_ok() {}
    while writer.write(b"\n").is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let agent = Agent::start_with(&token_file(folder.path()), writer.into());
    for _ in 0..20 {
        assert!(agent.say(&hello("wrong")).contains("the token is wrong"));
    }
    let threads = format!("/proc/{}/task", agent.child.id());
    plimsoll_testing::eventually("the end of all threads that served strangers", || {
        fs::read_dir(&threads).unwrap().count() == 1
    });
    assert!(agent.say(&format!("{}\"go\"\n", hello(TOKEN))).starts_with("\"welcome\""));
    drop(reader);
}

#[test]
fn a_token_that_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = token_file(folder.path());
    let text = path.to_str().unwrap();
    let run = |token: &str, mode: u32| {
        fs::write(&path, token).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let output = load(&["agent", "--listen=192.0.2.1:0", "--token-file", text]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (token, mode, part) in [
        (TOKEN, 0o644, "others may use the file (mode 644); chmod 600 it"),
        ("short", 0o600, "its first line has 5 bytes; expected 16 to 512"),
        // The token is good, the address is not this machine's.
        (TOKEN, 0o600, "--listen 192.0.2.1:0"),
    ] {
        let (status, errors) = run(token, mode);
        assert!(status == Some(2) && errors.contains(part), "{errors}");
    }
}
