//! `plimsoll breakdown` on servers whose delays the test itself makes, so that its output can be checked.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plimsoll_testing::eventually;
use serde_json::Value;

/// The delay that some requests ask for.
const DELAY: Duration = Duration::from_millis(4);
/// What of it must be found, in ns: the timer may fire a little early by another clock.
const FOUND_NS: u64 = 3_900_000;

fn plimsoll() -> Command {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Returns whether the test can run, and prints the reason if not.
fn able() -> bool {
    let lacks = if !cfg!(feature = "kernel") {
        Some("built without the eBPF programs")
    } else if Command::new("id").arg("-u").output().unwrap().stdout != b"0\n" {
        Some("not root")
    } else if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        Some("a kernel without BTF")
    } else {
        None
    };
    if let Some(reason) = lacks {
        plimsoll_testing::skipped!("{reason}");
    }
    lacks.is_none()
}

/// Executes the operation that the first byte of a request selects.
fn serve(request: &[u8]) {
    match request[0] {
        b's' => thread::sleep(DELAY),
        b'c' => {
            let begin = Instant::now();
            while begin.elapsed() < DELAY {
                std::hint::spin_loop();
            }
        }
        _ => {}
    }
}

/// A client that asks its server until the value is dropped: every 20th request for a sleep, every 20th to compute.
struct Load {
    port: u16,
    stop: Arc<AtomicBool>,
    /// How many requests have been answered.
    answered: Arc<AtomicU64>,
    client: Option<JoinHandle<()>>,
}

impl Load {
    fn tcp() -> Load {
        Load::tcp_at("127.0.0.1")
    }

    fn tcp_at(address: &str) -> Load {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let mut request = [0; 64];
                while connection.read_exact(&mut request).is_ok() {
                    serve(&request);
                    connection.write_all(&[1; 100]).unwrap();
                }
            }
        });
        let mut client = TcpStream::connect((address, port)).unwrap();
        client.set_nodelay(true).unwrap();
        Load::start(port, move |request| {
            client.write_all(request).unwrap();
            client.read_exact(&mut [0; 100]).unwrap();
        })
    }

    fn udp() -> Load {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        thread::spawn(move || {
            let mut request = [0; 64];
            while let Ok((_, client)) = server.recv_from(&mut request) {
                serve(&request);
                server.send_to(&[1; 100], client).unwrap();
            }
        });
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(("127.0.0.1", port)).unwrap();
        Load::start(port, move |request| {
            client.send(request).unwrap();
            client.recv(&mut [0; 100]).unwrap();
        })
    }

    fn start(port: u16, mut ask: impl FnMut(&[u8]) + Send + 'static) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicU64::new(0));
        let (stopped, count) = (stop.clone(), answered.clone());
        let client = thread::spawn(move || {
            for number in 0_u64.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let kind = match number % 20 {
                    7 => b's',
                    13 => b'c',
                    _ => b'-',
                };
                ask(&[kind; 64]);
                count.store(number + 1, Ordering::Relaxed);
            }
        });
        Load { port, stop, answered, client: Some(client) }
    }

    /// Runs the command at the load's port.
    fn traced(&self, options: &[&str]) -> Output {
        plimsoll().args(["breakdown", "--port", &self.port.to_string()]).args(options).output().unwrap()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(client) = self.client.take() {
            client.join().unwrap();
        }
    }
}

/// Checks that the delays are found in the parts that they belong to, and that all parts add up.
#[track_caller]
fn check_delays(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let requests = report["requests"].as_u64().unwrap();
    assert!(requests > 100, "{report:#}");
    assert!(report["unmatched"]["share"].as_f64().unwrap() < 0.05, "{:#}", report["unmatched"]);
    assert_eq!(report["lost_records"], 0);
    let (mut slept, mut computed) = (0, 0);
    for slow in report["slowest"].as_array().unwrap() {
        let spans = slow["spans"].as_array().unwrap();
        let of = |part: &str| -> u64 {
            let length = |span: &Value| span["to"].as_u64().unwrap() - span["from"].as_u64().unwrap();
            spans.iter().filter(|span| part.is_empty() || span["part"] == part).map(length).sum()
        };
        assert_eq!(of(""), slow["latency_ns"].as_u64().unwrap(), "{slow:#}");
        slept += u64::from(of("blocked") >= FOUND_NS);
        // The thread that computes may lose its processor meanwhile.
        computed += u64::from(of("application") + of("preempted") >= FOUND_NS && of("blocked") < FOUND_NS);
    }
    // Each kind is a twentieth; a missed event, or a request at the edge, takes few away.
    for (what, found) in [("asleep", slept), ("computing", computed)] {
        assert!((requests / 25..=requests / 15).contains(&found), "{found} of {requests} requests {what}");
    }
}

#[test]
fn delays_of_a_tcp_server_are_found_where_they_are() {
    if able() {
        check_delays(&Load::tcp().traced(&["--duration", "3s", "--duty", "100%", "--format", "json"]));
    }
}

#[test]
fn delays_are_found_over_ipv6() {
    if !able() {
        return;
    }
    if TcpListener::bind("[::1]:0").is_err() {
        return plimsoll_testing::skipped!("no IPv6 here");
    }
    let output = Load::tcp_at("::1").traced(&["--duration", "3s", "--format", "json"]);
    check_delays(&output);
    assert!(String::from_utf8_lossy(&output.stdout).contains("[IPv6 "), "{}", said(&output));
}

/// The server of this test sends from a function of its own, by functions of the kernel.
#[test]
fn call_stacks_lead_from_the_server_into_the_kernel() {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.folded");
    let output =
        Load::tcp().traced(&["--duration", "3s", "--format", "json", "--stacks", path.to_str().unwrap()]);
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let folded = fs::read_to_string(&path).unwrap();
    let mut samples = 0;
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        samples += count.parse::<u64>().unwrap();
        // The kernel's functions are the innermost ones.
        let frames: Vec<bool> = stack.split(';').map(|frame| frame.ends_with("_[k]")).collect();
        assert!(frames.is_sorted() && !frames[0], "{line}");
    }
    assert_eq!(report["profile"]["samples"], samples);
    let sends = |line: &&str| line.contains("tcp_sendmsg") && line.matches("_[k]").count() > 4;
    assert!(folded.lines().any(|line| sends(&line)), "{folded}");
    for hot in report["profile"]["hottest"].as_array().unwrap() {
        assert!(hot["share_with_callees"].as_f64() >= hot["share"].as_f64(), "{hot:#}");
    }
}

/// A thread of this process sleeps at a lock of it, whose futex the report lists with its address.
#[test]
fn sleeps_at_a_lock_are_listed() {
    if !able() {
        return;
    }
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let load = Load::tcp();
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<JoinHandle<()>> = (0..2)
        .map(|_| {
            let stop = stop.clone();
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let held = LOCK.lock().unwrap();
                    thread::sleep(Duration::from_millis(1));
                    drop(held);
                }
            })
        })
        .collect();
    let output = load.traced(&["--duration", "2s", "--format", "json"]);
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The lock is a static variable, whose futex is its first word.
    let address = format!("{:#x}", (&raw const LOCK).addr());
    let locks = report["locks"].as_array().unwrap();
    let lock = locks.iter().find(|lock| lock["address"] == address);
    let lock = lock.unwrap_or_else(|| panic!("{address} is not in {locks:#?}"));
    assert!(lock["waits"].as_u64().unwrap() > 10 && lock["max_ns"].as_u64().unwrap() > 500_000, "{lock:#}");
    assert!(lock["place"].as_str().unwrap().starts_with("alone-"), "{lock:#}");
    // The standard library sleeps by the C library's function for system calls.
    let callers = lock["callers"].as_array().unwrap();
    assert!(callers.first().is_some_and(|caller| caller["function"] == "syscall"), "{lock:#}");
}

/// Computes without a call, so that every sample of it is in it.
#[inline(never)]
fn burn(mut value: u64) -> u64 {
    let mut round = 0;
    while round < 1_000_000 {
        round += 1;
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    value
}

/// A thread of this process computes all the time, which the samples show; they show the kernel's part, too.
#[test]
fn the_functions_that_use_processors_are_listed() {
    if !able() {
        return;
    }
    let load = Load::tcp();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let burning = thread::spawn(move || {
        let mut value = 1;
        while !stopped.load(Ordering::Relaxed) {
            value = burn(value);
        }
        value
    });
    let output = load.traced(&["--duration", "2s", "--format", "json"]);
    stop.store(true, Ordering::Relaxed);
    assert_ne!(burning.join().unwrap(), 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let profile = &report["profile"];
    let functions = profile["hottest"].as_array().unwrap();
    let share = |function: &Value| function["share"].as_f64().unwrap();
    let burning = functions.iter().find(|function| function["function"].as_str().unwrap().ends_with("burn"));
    let burning = burning.unwrap_or_else(|| panic!("{profile:#}"));
    assert!(share(burning) > 0.1 && burning["module"].as_str().unwrap().starts_with("alone-"), "{profile:#}");
    assert!(functions.iter().any(|function| function["module"] == "kernel"), "{profile:#}");
    assert!(functions.iter().map(share).sum::<f64>() <= 1.0 + 1e-9, "{profile:#}");
    let kernel = profile["kernel_share"].as_f64().unwrap();
    assert!(kernel > 0.0 && kernel < 0.9, "{profile:#}");
    assert!(profile["samples"].as_u64().unwrap() > 200, "{profile:#}");
}

#[test]
fn delays_of_a_udp_server_are_found_where_they_are() {
    if able() {
        check_delays(&Load::udp().traced(&["--duration", "3s", "--duty", "100%", "--format", "json"]));
    }
}

/// Every command of the manual's first block runs, and writes the files that it names.
#[test]
fn the_manuals_commands_run() {
    if !able() {
        return;
    }
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/breakdown.md");
    let manual = fs::read_to_string(manual).unwrap();
    let block = manual.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let load = Load::tcp();
    let mut commands = 0;
    for line in block.lines().filter(|line| line.starts_with("plimsoll breakdown --port 11211")) {
        let line = line
            .replacen("plimsoll", "\"$0\"", 1)
            .replace("11211", &load.port.to_string())
            .replace("--duration 60s", "--duration 2s");
        let run = Command::new("sh")
            .args(["-c", &line, env!("CARGO_BIN_EXE_plimsoll")])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(run.status.success(), "{line}: {}", said(&run));
        commands += 1;
    }
    assert!(commands >= 4, "{block}");
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(text("breakdown.html").contains("application asleep"));
    let timeline: Value = serde_json::from_str(&text("timeline.json")).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["ph"] == "X" && event["name"] == "application asleep"));
    assert!(text("parts.csv").lines().any(|line| line.starts_with("total,,measured,")));
}

#[test]
fn what_cannot_be_traced_is_said() {
    if !able() {
        return;
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let idle = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = idle.local_addr().unwrap().port().to_string();
    let cases: &[(&[&str], &str)] = &[
        (&["--port", &free], "nothing listens on TCP or UDP port"),
        (&["--pid", "4194304"], "there is no process 4194304"),
        (&["--port", &port, "--duration", "100ms"], "no request arrived at TCP port"),
        (&["--", "true"], "true ended before it listened on a port"),
        (&["--", "/no/such/program"], "cannot run /no/such/program"),
        (&[], "required"),
    ];
    for (arguments, expected) in cases {
        let output = plimsoll().arg("breakdown").args(*arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(expected), "{arguments:?}: {}", said(&output));
    }
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"])
        .arg(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["breakdown", "--port", &port])
        .output();
    match output {
        Ok(output) if said(&output).contains("Permission denied") => {
            plimsoll_testing::skipped!("another user cannot run this build's command");
        }
        Ok(output) => {
            let said = said(&output);
            assert!(said.contains("CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE"), "{said}");
        }
        Err(_) => plimsoll_testing::skipped!("no setpriv (util-linux)"),
    }
}

#[test]
fn a_kernel_without_types_is_named() {
    if !able() {
        return;
    }
    let load = Load::tcp();
    let script = "mount -t tmpfs none /sys/kernel/btf && exec \"$0\" breakdown --port $1";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_plimsoll"), &load.port.to_string()])
        .output()
        .unwrap();
    if said(&output).contains("mount:") {
        return plimsoll_testing::skipped!("/sys/kernel/btf cannot be hidden: {}", said(&output));
    }
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("CONFIG_DEBUG_INFO_BTF"), "{}", said(&output));
}

/// Starts a trace of `load`, and waits until it has begun.
fn begun(load: &Load) -> Child {
    let mut trace = plimsoll()
        .args(["breakdown", "--port", &load.port.to_string(), "--duration", "100s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(trace.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("Tracing"), "{line}");
    trace
}

/// Returns the ids of the programs that the process holds, from the information on its descriptors.
fn programs(process: u32) -> Vec<String> {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{process}/fdinfo")) else { return Vec::new() };
    let id = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("prog_id:")).map(|id| id.trim().to_owned())
    };
    descriptors.filter_map(|entry| id(fs::read_to_string(entry.ok()?.path()).ok()?)).collect()
}

/// A trace that is killed leaves no program behind, and one that Ctrl-C ends prints its report.
#[test]
fn nothing_stays_behind() {
    if !able() {
        return;
    }
    let load = Load::tcp();
    let mut killed = begun(&load);
    let held = programs(killed.id());
    assert!(held.len() >= 8, "{held:?}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let stopped = begun(&load);
    let enough = load.answered.load(Ordering::Relaxed) + 200;
    eventually("the traced server has answered 200 requests", || {
        load.answered.load(Ordering::Relaxed) >= enough
    });
    let id = stopped.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = stopped.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(said(&output).contains("stopped by a signal"), "{}", said(&output));
    // The kernel frees a program some time after the last descriptor.
    let Ok(listed) = Command::new("bpftool").args(["prog", "show"]).output() else {
        return plimsoll_testing::skipped!("no bpftool: the kernel's list is not checked");
    };
    assert!(listed.status.success(), "{}", said(&listed));
    eventually(format_args!("no program of {held:?} is loaded"), || {
        let listed = Command::new("bpftool").args(["prog", "show"]).output().unwrap();
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        !held.iter().any(|id| text.lines().any(|line| line.starts_with(&format!("{id}: "))))
    });
}

/// The server's end ends the trace, with the report of the time until then.
#[test]
fn the_servers_end_ends_the_trace() {
    if !able() {
        return;
    }
    if Command::new("memcached").arg("-V").output().is_err() {
        return plimsoll_testing::missing("memcached (apt-get install memcached)");
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("memcached")
        .args(["-u", "nobody", "-l", "127.0.0.1", "-p", &port.to_string()])
        .spawn()
        .unwrap();
    let mut client = None;
    eventually("memcached listens", || {
        client = TcpStream::connect(("127.0.0.1", port)).ok();
        client.is_some()
    });
    let mut client = client.unwrap();
    let mut trace = plimsoll()
        .args(["breakdown", "--pid", &server.id().to_string(), "--duration", "100s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(trace.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("Tracing  memcached"), "{line}");
    for _ in 0..200 {
        client.write_all(b"get nothing\r\n").unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
    }
    server.kill().unwrap();
    server.wait().unwrap();
    let output = trace.wait_with_output().unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(output.status.code(), Some(2), "{rest}");
    assert!(rest.contains("memcached") && rest.contains("ended"), "{rest}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("Parts of a request"), "{output:?}");
}
