//! Circuits between eight hosts in network namespaces: an Open vSwitch for circuits, a bridge with limited rates for
//! packets, a controller and eight agents. `deploy/circuits/namespaces` sets them up, as docs/circuits-live.md does.
#![cfg(all(target_os = "linux", feature = "kernel"))]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use plimsoll_testing::{Others, eventually};
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/circuits/namespaces");
const HOSTS: usize = 8;

/// Discards what arrives by TCP.
const SINK: &str = "
import socket, threading
listener = socket.create_server(('', 5001))
def discard(connection):
    while connection.recv(1 << 16): pass
while True: threading.Thread(target=discard, args=(listener.accept()[0],), daemon=True).start()
";
/// Sends by one connection to each host of its arguments, as fast as TCP takes it, from a buffer of 1 MiB
/// (SO_SNDBUFFORCE), and prints a line when each begins. HOST:BYTES passes BYTES to each send call.
const SOURCE: &str = "
import socket, sys, threading
def send(receiver):
    host, _, size = receiver.partition(':')
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, 32, 1 << 20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'reno')
    connection.connect((f'10.77.0.{host}', 5001))
    print('sending', flush=True)
    while True: connection.sendall(bytes(int(size or 1 << 16)))
threads = [threading.Thread(target=send, args=(host,)) for host in sys.argv[1:]]
for thread in threads: thread.start()
";

/// A process that ends when this is dropped.
struct Running(Child);

impl Running {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The hosts and switches, with a sink on each host; they are removed when this is dropped.
struct Hosts {
    /// It ends before its namespaces do.
    running: Vec<Running>,
    folder: PathBuf,
    name: String,
    _place: TempDir,
}

impl Hosts {
    /// Sets them up with the name `label` and these keys in the configuration; prints the reason and returns none if
    /// this machine cannot.
    fn up(label: &str, keys: &[(&str, &str)]) -> Option<Hosts> {
        let runs = |program: &str, version: &str| {
            Command::new(program).arg(version).output().is_ok_and(|output| output.status.success())
        };
        let needs = [
            ("bpftool", "version"),
            ("ovs-vswitchd", "--version"),
            ("ethtool", "--version"),
            ("ip", "-V"),
            ("python3", "-V"),
        ];
        if let Some((program, _)) = needs.iter().find(|(program, version)| !runs(program, version)) {
            plimsoll_testing::missing(format!(
                "no {program} (Debian packages bpftool, openvswitch-switch, ethtool, iproute2, python3)"
            ));
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        let name = format!("plimsoll-{label}{}", std::process::id());
        let folder = place.path().join(&name);
        let made = Command::new(SCRIPT).arg("up").arg(&folder).arg(HOSTS.to_string()).output().unwrap();
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr).into_owned();
            plimsoll_testing::skipped!("this machine cannot set up the namespaces\n{why}");
            return None;
        }
        let file = folder.join("circuits.toml");
        let mut text = fs::read_to_string(&file).unwrap();
        for (key, value) in keys {
            let others = text.lines().filter(|line| !line.starts_with(&format!("{key} =")));
            text = [format!("{key} = \"{value}\"").as_str()]
                .into_iter()
                .chain(others)
                .collect::<Vec<_>>()
                .join("\n");
        }
        fs::write(&file, text).unwrap();
        let mut hosts = Hosts { running: Vec::new(), folder, name, _place: place };
        for host in 1..=HOSTS {
            let sink = hosts.start(host.to_string(), "python3", &["-c", SINK]);
            hosts.running.push(sink);
        }
        Some(hosts)
    }

    fn start(&self, space: String, program: &str, arguments: &[&str]) -> Running {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}-{space}", self.name), program]).args(arguments);
        Running(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn plimsoll(&self, space: String, command: &str, more: &[&str]) -> Running {
        let file = self.folder.join("circuits.toml");
        let metrics = format!("unix:{}", self.socket(&space).display());
        let words = ["circuits", command, file.to_str().unwrap(), "--metrics", &metrics];
        self.start(space, env!("CARGO_BIN_EXE_plimsoll"), &[&words[..], more].concat())
    }

    fn controller(&self) -> Running {
        self.plimsoll("switch".to_owned(), "serve", &[])
    }

    fn agent(&self, host: usize) -> Running {
        self.plimsoll(host.to_string(), "agent", &["--host", &format!("h{host}")])
    }

    /// Starts a controller and all agents, and returns once all are connected.
    fn connected(&self) -> Option<(Running, Vec<Running>)> {
        let controller = self.controller();
        let mut agents: Vec<Running> = (1..=HOSTS).map(|host| self.agent(host)).collect();
        let mut refused = false;
        eventually("a controller with eight agents and a switch", || {
            refused = agents.iter_mut().any(|agent| agent.0.try_wait().unwrap().is_some());
            let is_up = self.metric("switch", "circuits_switch_up") == Some(1.0);
            refused || is_up && self.metric("switch", "circuits_hosts") == Some(HOSTS as f64)
        });
        if refused {
            plimsoll_testing::skipped!("this kernel refuses the gate of circuits");
            return None;
        }
        Some((controller, agents))
    }

    fn socket(&self, space: &str) -> PathBuf {
        self.folder.join(format!("{space}.sock"))
    }

    /// Returns a metric of the controller (`switch`) or of a host's agent.
    fn metric(&self, space: &str, name: &str) -> Option<f64> {
        let mut stream = UnixStream::connect(self.socket(space)).ok()?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let value = text.lines().find_map(|line| line.strip_prefix(&format!("plimsoll_{name} ")))?;
        value.parse().ok()
    }

    /// Returns a counter of a host's device.
    fn counter(&self, host: usize, device: &str, counter: &str) -> u64 {
        let path = format!("/sys/class/net/{device}/statistics/{counter}");
        let space = format!("{}-{host}", self.name);
        let output = Command::new("ip").args(["netns", "exec", &space, "cat", &path]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    }

    /// Starts a program at a host that sends to others, and returns once it does.
    fn source(&self, host: usize, receivers: &[usize]) -> Running {
        self.source_of(host, receivers.iter().map(usize::to_string).collect())
    }

    /// Starts a program as [`Hosts::source`] does, with the arguments of `SOURCE`.
    fn source_of(&self, host: usize, receivers: Vec<String>) -> Running {
        let words: Vec<&str> =
            ["-c", SOURCE].into_iter().chain(receivers.iter().map(String::as_str)).collect();
        let mut source = self.start(host.to_string(), "python3", &words);
        let lines = BufReader::new(source.0.stdout.take().unwrap()).lines().take(receivers.len());
        assert_eq!(lines.map_while(Result::ok).count(), receivers.len(), "a source has ended");
        source
    }

    /// Returns the devices, queues, filters, routes and rules of a host, and the settings that an agent checks.
    fn network(&self, host: usize) -> String {
        let commands = "ip -o link; ip -4 route show table all; ip rule; tc qdisc show; \
                        tc filter show dev packet egress; \
                        grep . /proc/sys/net/ipv4/conf/*/rp_filter";
        let space = format!("{}-{host}", self.name);
        let output =
            Command::new("ip").args(["netns", "exec", &space, "sh", "-c", commands]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn circuit_bytes(&self, receivers: &[usize]) -> Vec<u64> {
        receivers.iter().map(|host| self.counter(*host, "circuit", "rx_bytes")).collect()
    }

    /// Returns the packets that all hosts have sent to, and received from, the circuit switch.
    fn circuit_packets(&self) -> (u64, u64) {
        let sum = |counter| (1..=HOSTS).map(|host| self.counter(host, "circuit", counter)).sum();
        (sum("tx_packets"), sum("rx_packets"))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.running.clear();
        let _ = Command::new(SCRIPT).arg("down").arg(&self.folder).output();
    }
}

/// One host sends to three others, as much to each, while others send too: all three get circuits in turn, of the same
/// share, and no reconfiguration loses a packet. Then new flows measure the reaction.
#[test]
fn hosts_share_circuits_and_no_packet_is_lost() {
    let Some(hosts) = Hosts::up("cs", &[]) else { return };
    let Some((_controller, _agents)) = hosts.connected() else { return };
    let others = Others::watch();
    let mut sources = vec![hosts.source(1, &[2, 3, 4]), hosts.source(5, &[6]), hosts.source(8, &[7])];
    let receivers = [2, 3, 4];
    eventually("circuits to all three receivers", || {
        hosts.circuit_bytes(&receivers).iter().all(|bytes| *bytes > 500_000)
    });
    let (before, first) = (hosts.circuit_bytes(&receivers), configurations(&hosts));
    eventually("ninety more configurations", || configurations(&hosts) >= first + 90.0);
    let carried: Vec<u64> =
        hosts.circuit_bytes(&receivers).iter().zip(before).map(|(after, before)| after - before).collect();
    let total: u64 = carried.iter().sum();
    let shares: Vec<f64> = carried.iter().map(|bytes| *bytes as f64 / total as f64).collect();
    let [night, night_max] = ["night_seconds", "night_max_seconds"]
        .map(|name| hosts.metric("switch", &format!("circuits_{name}")));
    eprintln!("bytes by circuits from one host to three: {carried:?}, shares {shares:.2?}");
    eprintln!("night: {night:?} s, at most {night_max:?} s");
    assert!(shares.iter().all(|share| *share > 0.1) || others.were_busy(), "{shares:?}");

    sources.clear();
    let is_idle = |host: usize| hosts.metric(&host.to_string(), "circuits_agent_demand_bytes") == Some(0.0);
    eventually("hosts without demand", || (1..=HOSTS).all(is_idle));
    let mut last = hosts.circuit_packets();
    // Most arrive within the drain; packets that are lost for good end the wait as well.
    eventually("no packet under way", || {
        let before = std::mem::replace(&mut last, hosts.circuit_packets());
        last == before
    });
    eprintln!("packets into circuits and out of them: {last:?}, configurations: {}", configurations(&hosts));
    assert!(last.0 > 10_000, "{last:?}");
    // On a busy machine, Open vSwitch may not run for longer than a drain; without one, a share of the queues is lost.
    let lost = last.0 - last.1;
    assert!(lost == 0 || lost * 1_000 <= last.0 && others.were_busy(), "lost {lost} of {}", last.0);

    let mut reactions = Vec::new();
    for _ in 0..6 {
        for receiver in [8, 7] {
            let before = hosts.counter(receiver, "circuit", "rx_packets");
            let _source = hosts.source(3, &[receiver]);
            let begin = Instant::now();
            eventually("the first packets by a circuit", || {
                hosts.counter(receiver, "circuit", "rx_packets") > before + 10
            });
            reactions.push(begin.elapsed());
        }
    }
    eprintln!("reaction to {} new flows, at most {:?}", reactions.len(), reactions.iter().max());
}

fn configurations(hosts: &Hosts) -> f64 {
    hosts.metric("switch", "circuits_configurations_total").unwrap()
}

/// One host gives three times as many bytes to send calls for one receiver as for another, far more than sockets hold.
/// The agent reports all of it, and receivers get circuits in this proportion, which sockets do not show: they hold as
/// much for one receiver as for the other. Weeks are long, so that nights on a busy machine are a small part of them.
#[test]
fn circuits_are_shared_in_proportion_to_send_calls() {
    let keys = [("estimator", "send_calls"), ("week", "1s")];
    let Some(hosts) = Hosts::up("ch", &keys) else { return };
    let Some((_controller, _agents)) = hosts.connected() else { return };
    let others = Others::watch();
    const GIVEN: [u64; 2] = [60_000_000, 20_000_000];
    let all: u64 = GIVEN.iter().sum();
    let receivers = [2, 3];
    let before = hosts.circuit_bytes(&receivers);
    let words = receivers.iter().zip(GIVEN).map(|(host, bytes)| format!("{host}:{bytes}"));
    let _source = hosts.source_of(1, words.collect());
    let demand = || hosts.metric("1", "circuits_agent_demand_bytes").unwrap() as u64;
    eventually("what the calls gave", || demand() > all * 3 / 4);
    let open = |receiver: usize| {
        let name = format!("circuits_agent_open_seconds_total{{receiver=\"h{receiver}\"}}");
        hosts.metric("1", &name).unwrap_or(0.0)
    };
    let mut seconds = [0.0; 2];
    eventually("five seconds of circuits", || {
        seconds = receivers.map(open);
        seconds.iter().sum::<f64>() > 5.0
    });
    let after = hosts.circuit_bytes(&receivers);
    let carried = [0, 1].map(|receiver| (after[receiver] - before[receiver]) as f64);
    let [share, of_bytes] = [seconds, carried].map(|each| each[0] / each.iter().sum::<f64>());
    eprintln!(
        "demand of 3 to 1: {share:.2} of the time of circuits ({seconds:.2?} s), {of_bytes:.2} of their bytes"
    );
    assert!((0.65..0.85).contains(&share), "{share} of the time; the demand is 0.75 of all");
    let is_near = (0.6..0.9).contains(&of_bytes);
    assert!(is_near || others.were_busy(), "{of_bytes} of the bytes; the demand is 0.75 of all");
}

/// A dead agent, and a dead controller, leave all traffic to the packet switch; a new one brings circuits back. An
/// agent that is killed leaves nothing in the kernel.
#[test]
fn an_agent_or_a_controller_that_dies_leaves_the_packet_switch() {
    let Some(hosts) = Hosts::up("cd", &[("estimator", "send_calls")]) else { return };
    let network = hosts.network(1);
    let Some((mut controller, mut agents)) = hosts.connected() else { return };
    let _source = hosts.source(1, &[2]);
    let by_circuit = || hosts.counter(1, "circuit", "tx_bytes");
    let by_packets = || hosts.counter(1, "packet", "tx_bytes");
    let circuit_carries = |what: &str| {
        let before = by_circuit();
        eventually(format!("a circuit {what}"), || by_circuit() > before + 1_000_000);
    };
    /// More than the queue of a circuit's device holds.
    const QUEUED: u64 = 100_000;
    let only_packets = |what: &str| {
        let before = (by_circuit(), by_packets());
        eventually(format!("packets {what}"), || by_packets() > before.1 + 1_000_000);
        assert!(by_circuit() < before.0 + QUEUED, "a circuit carries {what}");
    };
    circuit_carries("at first");

    let objects = bpf_objects(agents[0].0.id());
    let kinds: BTreeSet<&str> = objects.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, BTreeSet::from(["link", "map", "prog"]), "{objects:?}");
    assert!(objects.iter().all(is_in_kernel), "{objects:?}");
    agents[0].kill();
    only_packets("without the agent");
    eventually("a kernel without the agent's objects", || !objects.iter().any(is_in_kernel));
    assert_eq!(hosts.network(1), network);
    agents[0] = hosts.agent(1);
    circuit_carries("with a new agent");

    controller.kill();
    eventually("closed gates", || {
        ["circuits_agent_connected", "circuits_agent_gate_open"]
            .iter()
            .all(|name| hosts.metric("1", name) == Some(0.0))
    });
    only_packets("without the controller");
    let _controller = hosts.controller();
    circuit_carries("with a new controller");
}

/// Returns the kinds and the numbers of the BPF objects that a process has opened.
fn bpf_objects(process: u32) -> BTreeSet<(&'static str, String)> {
    let entries = fs::read_dir(format!("/proc/{process}/fdinfo")).unwrap();
    let texts: Vec<String> =
        entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    let number =
        |line: &str, kind: &str| Some(line.strip_prefix(kind)?.strip_prefix("_id:")?.trim().to_owned());
    let of_line =
        |line| ["prog", "map", "link"].into_iter().find_map(|kind| Some((kind, number(line, kind)?)));
    texts.iter().flat_map(|text| text.lines()).filter_map(of_line).collect()
}

/// Returns whether the kernel has this object; its numbers are not given out again soon.
fn is_in_kernel((kind, number): &(&str, String)) -> bool {
    Command::new("bpftool").args([kind, "show", "id", number]).output().unwrap().status.success()
}
