//! `plimsoll explore`: who may ask the server, the results of a changed knob, and that the shown results can be
//! repeated.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::common::{Place, signal};

const SCENARIO: &str = r#"
version = 1
title = "Requests to be explored"
[run]
duration = "60ms"
warmup = "10ms"
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
response = "900B"
load = 0.2
[variant.TCP]
transport.kind = "tcp"
[variant.DCTCP]
transport.kind = "dctcp"
port.switch.ecn = { threshold = "30KB" }
"#;

/// A server of the command, which ends with the test.
struct Server {
    program: Child,
    address: String,
    port: u16,
    token: String,
}

impl Server {
    fn start(place: &Place, flags: &[&str]) -> Server {
        let args = [&["explore", "scenario.toml", "--threads", "2"], flags].concat();
        let temporary = place.path("temporary");
        std::fs::create_dir_all(&temporary).unwrap();
        let mut command = place.command(&args);
        let command = command.env("TMPDIR", temporary).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut program = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().to_owned();
        let (host, token) = address.split_once("/?token=").unwrap();
        let port = host.strip_prefix("http://127.0.0.1:").unwrap().parse().unwrap();
        Server { program, port, token: token.to_owned(), address }
    }

    /// Sends a request with these headers; returns status and body.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn get(&self, path: &str) -> String {
        let path = format!("{path}{}token={}", if path.contains('?') { '&' } else { '?' }, self.token);
        let (status, body) = self.send("GET", &path, &[("Host", &self.host())], "");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    fn post(&self, path: &str, body: &Value) -> (u16, String) {
        let origin = format!("http://{}", self.host());
        let headers = [("Host", self.host()), ("Origin", origin)];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        self.send("POST", &format!("{path}?token={}", self.token), &headers, &body.to_string())
    }

    fn turn(&self, set: &[&str]) {
        assert_eq!(self.post("/turn", &json!({ "set": set })).0, 200);
    }

    /// Asks for the state until something of it holds.
    #[track_caller]
    fn wait_for(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let state: Value = serde_json::from_str(&self.get("/state")).unwrap();
            if holds(&state) {
                return state;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{what} never comes: {state}");
            thread::yield_now();
        }
    }

    /// Waits for the last results of a turn.
    #[track_caller]
    fn settled(&self) -> Value {
        self.wait_for("the end", |state| {
            state["busy"] == false && (state["current"] == true || !state["error"].is_null())
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn started(flags: &[&str]) -> (Place, Server) {
    started_with(SCENARIO, flags)
}

fn started_with(scenario: &str, flags: &[&str]) -> (Place, Server) {
    let place = Place::new();
    place.write("scenario.toml", scenario);
    let server = Server::start(&place, flags);
    (place, server)
}

#[test]
fn only_the_users_own_page_may_ask() {
    let (_place, server) = started(&[]);
    let (host, right) = (server.host(), format!("/state?token={}", server.token));
    let wrong = format!("/state?token={}", "0".repeat(32));
    let own = format!("http://{host}");
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u16);
    // The host of an absolute target counts, whatever Host is sent beside it (RFC 9112, section 3.2.2).
    let [absolute, rebound] = [&own, "http://rebound.example"].map(|host| format!("{host}{right}"));
    let cases: [Case<'_>; 14] = [
        ("GET", &right, &[("Host", &host)], 200),
        ("HEAD", &right, &[("Host", &host)], 200),
        ("HEAD", "/state", &[("Host", &host)], 403),
        ("GET", &absolute, &[("Host", &host)], 200),
        ("GET", &absolute, &[("Host", "rebound.example")], 200),
        ("GET", &rebound, &[("Host", &host)], 403),
        ("GET", "/state", &[("Host", &host)], 403),
        ("GET", "/", &[("Host", &host)], 403),
        ("GET", &wrong, &[("Host", &host)], 403),
        ("GET", &right, &[("Host", "rebound.example")], 403),
        ("GET", &right, &[("Host", &host), ("Host", "rebound.example")], 403),
        ("GET", &right, &[("Host", &host), ("Origin", "http://evil.example")], 403),
        ("POST", &right, &[("Host", &host)], 403),
        ("POST", &right, &[("Host", &host), ("Origin", &own)], 404),
    ];
    for (method, path, headers, expected) in cases {
        let (status, body) = server.send(method, path, headers, "{}");
        assert_eq!(status, expected, "{method} {path} {headers:?}: {body}");
        assert_eq!(body.is_empty(), method == "HEAD", "{method} {path} {headers:?}: {body}");
    }
    let many = "x".repeat(70_000);
    assert_eq!(server.post("/turn", &json!({ "set": [many] })).0, 413);
    assert_eq!(server.post("/turn", &json!({ "sett": [] })).0, 400);
}

/// Any user of the machine reaches the port, without a token: one that announces much or says nothing ends nothing, and
/// keeps neither the page from its user nor the command from ending.
#[test]
fn hostile_clients_keep_nobody_out() {
    let (_place, mut server) = started(&[]);
    let begin = |head: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    for length in [10_000_000_000_000, u64::MAX] {
        let head = format!("POST /turn HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\nabc");
        let mut answer = String::new();
        begin(&head).read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    }
    let heads = ["GET / HTTP/1.1\r\nX: ", "POST /turn HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc"];
    let _slow: Vec<TcpStream> = (0..100).map(|number| begin(heads[number % 2])).collect();
    assert!(server.get("/").contains("</html>"));
    signal(&server.program, signal_hook::consts::SIGTERM);
    let began = Instant::now();
    while server.program.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(20), "it does not end");
        thread::yield_now();
    }
}

#[test]
fn what_is_shown_is_repeated_by_the_saved_scenario() {
    let (place, server) = started(&["--set", "run.seed=5"]);
    let untouched = server.settled();
    for (number, set) in
        [&[][..], &["workload.small.load=0.6", "port.switch.buffer=40 packets"]].into_iter().enumerate()
    {
        server.turn(set);
        let state = server.settled();
        assert_eq!(state["error"], Value::Null);
        let name = format!("saved{number}.toml");
        place.write(&name, &server.get("/scenario.toml"));
        let ran = place.plimsoll(&["run", &name, "--format", "json", "-q"]).ends_with(0);
        let result: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(result["digest"], state["digest"], "{set:?}");
        assert_eq!(state["digest"] == untouched["digest"], set.is_empty());
        // The command that the page shows does the same.
        let command = state["command"].as_str().unwrap();
        assert!(set.iter().all(|set| command.contains(set)) && command.contains("--seed 5"), "{command}");
    }
}

/// A sweep is shown at its first point, and only the runs of that point are kept.
#[test]
fn of_a_sweep_one_point_is_shown_and_kept() {
    let sweep = "[sweep]\n\"workload.small.load\" = [0.1, 0.4]\n\"port.switch.buffer\" = [\"50 packets\"]\n";
    let (place, server) = started_with(&format!("{SCENARIO}{sweep}"), &[]);
    let begins = "begins at its first point, `workload.small.load = 0.1`, `port.switch.buffer = 50 packets`.";
    let page = server.get("/").replace("<code>", "`").replace("</code>", "`");
    assert!(page.contains(begins), "{page}");
    for set in [&[][..], &["workload.small.load=0.5"]] {
        server.turn(set);
        let state = server.settled();
        assert_eq!(state["error"], Value::Null);
        place.write("saved.toml", &server.get("/scenario.toml"));
        let command = state["command"].as_str().unwrap();
        assert_eq!(command.matches("workload.small.load").count(), 1, "{command}");
        // In it, `quoted` has put single quotes around the text that has a space.
        let words = command.split('\'').enumerate().flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        let words: Vec<&str> = words.skip(1).chain(["--format", "json", "-q"]).collect();
        for args in [&["run", "saved.toml", "--format", "json", "-q"], &words[..]] {
            let ran = place.plimsoll(args).ends_with(0);
            let result: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(result["digest"], state["digest"], "{set:?}: {args:?}");
            assert_eq!(result["cells"].as_array().unwrap().len(), 2, "one point of each variant");
        }
    }
}

#[test]
fn a_new_value_cancels_what_is_under_way() {
    let (_place, server) = started(&["--set", "run.duration=200s", "--set", "workload.small.response=9KB"]);
    server.wait_for("a first look", |state| state["current"] == true && state["busy"] == true);
    server.turn(&["run.duration=400s"]);
    let began = Instant::now();
    server.turn(&["run.duration=20ms"]);
    server.settled();
    // To its end, the run before would take minutes.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    for (wrong, words) in [
        ("workload.small.load=much", "workload.small.load"),
        ("workload.smal.load=0.2", "did you mean `small`?"),
        ("workload.small.load=1e9", "memory"),
    ] {
        server.turn(&[wrong]);
        let refused = server.settled();
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains(words), "{wrong}: {error}");
    }
}

/// However little of a long scenario the first look has run, it claims no absence of differences.
#[test]
fn a_first_look_claims_only_what_it_shows() {
    let (_place, server) = started_with(&SCENARIO.replace("60ms", "400s"), &[]);
    let is_shown = |state: &Value| !state["html"].is_null();
    let state: Value = loop {
        let state: Value = serde_json::from_str(&server.get("/state")).unwrap();
        if is_shown(&state) {
            break state;
        }
        thread::yield_now();
    };
    let html = state["html"].as_str().unwrap();
    assert!(state["stage"].as_str().unwrap().starts_with("First results"), "{}", state["stage"]);
    assert!(!html.contains("no difference from") && html.contains("<b>DCTCP</b>"), "{html}");
}

#[test]
fn line_and_replay_are_drawn_on_request() {
    let (_place, server) = started(&[]);
    let (status, why) = server.post("/line", &json!({ "slo": "p99(smal) < 1ms" }));
    assert!(status == 400 && why.contains("smal"), "{status} {why}");
    let wrong = json!({ "variant": "TCP", "from": "20", "length": "100us" });
    let (status, why) = server.post("/replay", &wrong);
    assert!(status == 400 && why.contains("unit"), "{status} {why}");
    assert_eq!(
        server.post("/replay", &json!({ "variant": "DCTCP", "from": "20ms", "length": "100us" })).0,
        200
    );
    server.wait_for("the replay", |state| state["replay"] == 1);
    assert!(server.get("/replay").contains("id=\"recording\""));
    // The window of the message that was delayed most has all of its packets, however long it waits.
    let delayed = server.settled()["delayed"]["TCP"].clone();
    let worst = json!({ "variant": "TCP", "from": delayed[0], "length": delayed[1] });
    assert_eq!(server.post("/replay", &worst).0, 200);
    server.wait_for("its replay", |state| state["replay"] == 2 && state["replay_state"] == "");
    let page = server.get("/replay");
    let drawn = format!("--from {} --for {}", delayed[0].as_str().unwrap(), delayed[1].as_str().unwrap());
    assert!(page.contains(&drawn), "{drawn}");
    assert_eq!(server.post("/line", &json!({ "slo": "p99(small) < 1ms" })).0, 200);
    server.wait_for("the line", |state| state["line"].as_u64() > Some(1) && state["line_state"] == "");
    let page = server.get("/line");
    assert!(page.contains("The knee"));
    // A search chooses its replicates, so its command has none.
    assert!(page.contains("plimsoll line scenario.toml") && !page.contains("--replicates"), "{page}");
}

/// A search for a line keeps its runs in memory, so that a killed process leaves nothing on the disk.
#[test]
fn a_killed_process_leaves_no_folder() {
    let (place, mut server) = started(&[]);
    assert_eq!(server.post("/line", &json!({ "slo": "p99(small) < 1ms" })).0, 200);
    server.wait_for("the first part of the line", |state| state["line"].as_u64() >= Some(1));
    server.program.kill().unwrap();
    server.program.wait().unwrap();
    assert_eq!(std::fs::read_dir(place.path("temporary")).unwrap().count(), 0);
}

#[test]
fn a_browser_turns_a_knob() {
    let (place, server) = started(&[]);
    let Some(mut browser) = Browser::open(&place, &server.address, (1280, 900)) else {
        plimsoll_testing::missing("no chromium (apt-get install chromium)");
        return;
    };
    let settled = "document.documentElement.dataset.shown?.endsWith('true false')";
    browser.wait_for(settled);
    let digest = "document.getElementById('digest').textContent";
    let (before, first) =
        (browser.value(digest), browser.value("document.getElementById('results').innerText"));
    assert!(first.as_str().unwrap().contains("p99"), "{first}");
    let load = ".knob[data-key=\"workload.small.load\"]";
    browser.value(&format!(
        "(() => {{ const slider = document.querySelector('{load} .slider'); slider.value = 600; \
         slider.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    ));
    browser.wait_for(&format!("{digest} !== {before} && {settled}"));
    assert_ne!(browser.value("document.getElementById('results').innerText"), first);
    let shown = browser.value(&format!("document.querySelector('{load} .number').value"));
    assert_eq!(shown, json!("0.598"));
    assert!(browser.value("location.hash").as_str().unwrap().contains("workload.small.load%3D0.598"));
    assert!(server.get("/scenario.toml").contains("workload.small.load=0.598"));
    // The link alone brings it back.
    browser.reload();
    browser.wait_for(&format!("document.querySelector('{load}').classList.contains('changed') && {settled}"));
    browser.value("document.getElementById('replay-form').requestSubmit()");
    browser.wait_for(
        "document.querySelector('#replay-result iframe').contentDocument.querySelector('#network').width > 0",
    );
}
