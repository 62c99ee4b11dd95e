//! Captures that simulated runs write come back as the scenarios that made them: sizes exactly, the load within 1 %,
//! and the 99th percentile of a replay within 5 %. crates/import tests the boundaries of messages.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{Place, names};

/// A message of a run or a row of a list: client, server, and the bytes of the response or the flow.
type Size = (String, String, u64);

/// The sizes and latencies of the messages of a run's only point.
struct Messages {
    sizes: BTreeMap<Size, usize>,
    /// Latencies of all messages in ps, ascending.
    latencies: Vec<u64>,
    bytes: u64,
    /// The time of the last arrival, in ps.
    end: u64,
}

impl Messages {
    fn p99(&self) -> f64 {
        self.latencies[(self.latencies.len() - 1) * 99 / 100] as f64
    }

    /// Returns the bytes of responses per picosecond.
    fn load(&self) -> f64 {
        self.bytes as f64 / self.end as f64
    }
}

/// Returns the rows of a CSV file as cells by column.
fn table(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| head.iter().copied().zip(line.split(',')).collect()).collect()
}

fn messages(place: &Place, run: &str) -> Messages {
    let point = &names(&place.path(&format!("{run}/points")))[0];
    let text = place.read(&format!("{run}/points/{point}/messages.csv"));
    let mut of = Messages { sizes: BTreeMap::new(), latencies: Vec::new(), bytes: 0, end: 0 };
    for row in table(&text) {
        let number = |column: &str| row[column].parse::<u64>().unwrap();
        assert_ne!(row["completed_ps"], "", "every message completes");
        let name = |column: &str| format!("h{}", row[column]);
        *of.sizes.entry((name("source"), name("destination"), number("bytes"))).or_default() += 1;
        of.latencies.push(number("completed_ps") - number("created_ps"));
        of.bytes += number("bytes");
        of.end = of.end.max(number("completed_ps"));
    }
    of.latencies.sort_unstable();
    of
}

/// Returns the sizes in the lists of an imported folder.
fn listed(place: &Place, folder: &str) -> BTreeMap<Size, usize> {
    let mut sizes = BTreeMap::new();
    for file in names(&place.path(folder)).iter().filter(|name| name.ends_with(".csv")) {
        for row in table(&place.read(&format!("{folder}/{file}"))) {
            let is_flow = row.contains_key("source");
            let [from, to, size] =
                if is_flow { ["source", "destination", "size"] } else { ["client", "server", "response"] }
                    .map(|column| row[column].to_owned());
            *sizes.entry((from, to, bytes(&size))).or_default() += 1;
        }
    }
    sizes
}

/// Returns the bytes of a size with its unit.
fn bytes(size: &str) -> u64 {
    size.parse::<plimsoll_units::Bytes>().unwrap().get()
}

/// Runs a scenario with a capture of all ports, and imports the capture. Both runs are on the same network.
fn there_and_back(
    place: &Place,
    workload: &str,
    transport: &str,
    more: &[&str],
) -> (Messages, Messages, String) {
    place.write(
        "made.toml",
        &format!(
            "version = 1\ntitle = 'made'\n[run]\nduration = '60ms'\ndrain = '100ms'\n\
             [topology]\nkind = 'rack'\nhosts = 6\nrate = '10Gbps'\ndelay = '5us'\n[transport]\n\
             {transport}\n{workload}"
        ),
    );
    let packets = "observe.packets=2000000";
    place.plimsoll(&["run", "made.toml", "--pcap", "--set", packets, "--out", "made", "-q"]).ends_with(0);
    let ran = place.plimsoll(&[&["import", "capture", "made", "--out", "back"], more].concat()).ends_with(0);
    let network = ["topology.hosts=6", "topology.rate=10Gbps", "topology.delay=5us"];
    let again = ["run", "back/scenario.toml", "--out", "again", "-q"];
    place.plimsoll(&[&again[..], &network.map(|set| ["--set", set]).concat()].concat()).ends_with(0);
    (messages(place, "made"), messages(place, "again"), ran.stdout)
}

#[track_caller]
fn within(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found} is not within {share} of {expected}");
}

/// Checks that all sizes came back, but for the responses that were under way when the capture ended: the import says
/// how many, and they are few.
#[track_caller]
fn the_same_sizes(place: &Place, made: &Messages, printed: &str) {
    let back = listed(place, "back");
    let left_out = printed.lines().find_map(|line| line.strip_prefix("ignored: all: ")?.split(' ').next());
    let left_out: usize = left_out.map_or(0, |number| number.parse().unwrap());
    let few = back.iter().all(|(size, count)| made.sizes.get(size).is_some_and(|made| count <= made));
    let all = |sizes: &BTreeMap<Size, usize>| sizes.values().sum::<usize>();
    assert!(few && all(&back) + left_out == all(&made.sizes), "{left_out} left out: {printed}");
    assert!(left_out <= 15, "{printed}");
}

/// Clients with five requests each under way, which wait for a response and think.
const CLOSED: &str = "[workload.w]\nkind = 'closed-loop'\nclients = ['h0', 'h1', 'h2']\nservers = ['h3']\n\
                      outstanding = 5\nrequest = { kind = 'uniform', min = '100B', max = '5KB' }\n\
                      response = { kind = 'uniform', min = '200B', max = '60KB' }\n\
                      service = { kind = 'exponential', mean = '100us' }\n\
                      think = { kind = 'exponential', mean = '1ms' }\nthreads = 1000\n";

#[test]
fn a_closed_loop_comes_back_with_its_think_times() {
    let place = Place::new();
    let (made, again, printed) = there_and_back(&place, CLOSED, "handshake = true", &[]);
    assert!(made.latencies.len() > 500, "{}", made.latencies.len());
    assert!(printed.contains("keep their think times") && printed.contains("after responses"), "{printed}");
    the_same_sizes(&place, &made, &printed);
    assert_eq!(again.sizes, listed(&place, "back"));
    within(again.load(), made.load(), 0.01);
    within(again.p99(), made.p99(), 0.05);
    let list = place.read("back/all.csv");
    let thinks: Vec<f64> = table(&list)
        .iter()
        .filter(|row| !row["think"].is_empty())
        .map(|row| row["think"].parse::<plimsoll_units::Span>().unwrap().as_us_f64())
        .collect();
    // 15 connections begin; their think times have a mean of 1 ms.
    assert_eq!(thinks.len() + 15, again.latencies.len());
    within(thinks.iter().sum::<f64>() / thinks.len() as f64, 1_000.0, 0.1);
}

/// Requests at random times, each on a connection of its own.
#[test]
fn an_open_loop_comes_back_with_its_times() {
    let place = Place::new();
    let workload = "[workload.w]\nkind = 'rpc'\nrequest = '300B'\n\
                    response = { kind = 'uniform', min = '1KB', max = '80KB' }\n\
                    load = 0.5\npick = 'random'\nservice = { kind = 'exponential', mean = '5us' }\n";
    let transport = "handshake = false\nconnections = 'per-message'";
    let (made, again, printed) = there_and_back(&place, workload, transport, &[]);
    assert!(made.latencies.len() > 500 && printed.contains("at times"), "{printed}");
    the_same_sizes(&place, &made, &printed);
    within(again.load(), made.load(), 0.01);
    within(again.p99(), made.p99(), 0.05);
}

/// Flows in one direction: the listed flows equal the sent flows.
#[test]
fn flows_come_back() {
    let place = Place::new();
    let workload = "[workload.w]\nkind = 'all-to-all'\nload = 0.3\n\
                    size = { kind = 'uniform', min = '1KB', max = '200KB' }\n";
    let transport = "handshake = false\nconnections = 'per-message'";
    let (made, again, printed) = there_and_back(&place, workload, transport, &[]);
    assert!(made.latencies.len() > 200);
    the_same_sizes(&place, &made, &printed);
    within(again.load(), made.load(), 0.01);
    within(again.p99(), made.p99(), 0.05);
}

/// Requests that share a connection and meet are flows: no byte is lost or counted twice.
#[test]
fn pipelined_requests_are_flows_with_all_their_bytes() {
    let place = Place::new();
    let workload =
        "[workload.w]\nkind = 'rpc'\nservers = ['h1']\nrequest = '300B'\nresponse = '50KB'\nload = 0.6\n";
    let (made, _, printed) = there_and_back(&place, workload, "handshake = true", &["--class", "port"]);
    assert!(printed.contains("those bytes are flows"), "{printed}");
    let total = |sizes: &BTreeMap<Size, usize>, from: &str, to: &str| -> u64 {
        let of = sizes.iter().filter(|((source, destination, _), _)| source == from && destination == to);
        of.map(|((_, _, bytes), count)| bytes * *count as u64).sum()
    };
    let back = listed(&place, "back");
    // Responses of exchanges are listed by client, and the server's flows by sender.
    let responses = total(&back, "h1", "h0");
    let exchanges: u64 = names(&place.path("back"))
        .iter()
        .filter(|name| name.ends_with(".csv") && !name.contains("flows"))
        .flat_map(|name| {
            table(&place.read(&format!("back/{name}")))
                .iter()
                .map(|row| bytes(row["response"]))
                .collect::<Vec<_>>()
        })
        .sum();
    // The response that is under way at the end is left out.
    let left_out = if printed.contains("1 request without a whole response") { 50_000 } else { 0 };
    assert_eq!(responses + exchanges + left_out, made.bytes, "{printed}");
}

/// Runs a server of the port `port` and then a client in a network namespace of their own, and imports their capture
/// into the folder `real`; none where a program is missing, or the right to make namespaces.
#[cfg(target_os = "linux")]
fn captured(place: &Place, server: &str, port: u16, client: &str) -> Option<String> {
    let program = |command: &str| command.split(' ').next().unwrap().to_owned();
    for program in [&program(server), &program(client), "dumpcap", "python3", "unshare", "ss"] {
        let path = std::env::var("PATH").unwrap();
        if !path.split(':').any(|folder| std::path::Path::new(folder).join(program).exists()) {
            plimsoll_testing::missing(format!("{program} is not installed"));
            return None;
        }
    }
    let namespace = std::process::Command::new("unshare").args(["--net", "true"]).status().unwrap();
    if !namespace.success() {
        plimsoll_testing::skipped!("a network namespace needs CAP_SYS_ADMIN");
        return None;
    }
    place.write("session.sh", SESSION);
    let mut session = std::process::Command::new("unshare");
    let out = session
        .args(["--net", "--pid", "--fork", "--kill-child", "timeout", "60", "sh", "session.sh"])
        .args([server, &port.to_string(), client])
        .current_dir(place.path("."))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let ran = place.plimsoll(&["import", "capture", "real.pcapng", "--out", "real"]).ends_with(0);
    // Beside the traffic, there are the datagrams that begin and end the session.
    assert!(place.read("real/udp-9.csv").lines().count() > 2);
    Some(ran.stdout)
}

/// A server, a capture and a client; then a datagram that shows that the capture has everything.
const SESSION: &str = r#"
set -e
ip link set lo up
$1 &
seen() { python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b'$1', ('127.0.0.9', 9))"; grep -aq "$1" real.pcapng; }
dumpcap -q -s 128 -B 16 -i lo -w real.pcapng 2>/dev/null &
capture=$!
until seen begin-of-capture; do sleep 0.05; done
until ss -ltnH "sport = :$2" | grep -q .; do sleep 0.05; done
$3 >client.txt
until seen end-of-capture; do sleep 0.05; done
kill -INT $capture
wait $capture
"#;

/// Two clients of memcached that set a value, and get it forty times, each after the response before.
#[cfg(target_os = "linux")]
#[test]
fn a_capture_of_memcached_comes_back() {
    let place = Place::new();
    place.write("clients.py", CLIENTS);
    let server = "memcached -u nobody -l 127.0.0.1 -p 11211 -U 0";
    let Some(printed) = captured(&place, server, 11_211, "python3 clients.py") else { return };
    let rows = place.read("real/port-11211.csv");
    let rows = table(&rows);
    assert_eq!(rows.len(), 82, "{printed}\n{rows:?}");
    // `set k 0 0 3000`, its value and `STORED`; `get k`, and `VALUE k 0 3000`, the value and `END`.
    let counted = |size| rows.iter().filter(|row| exchanged(row) == size).count();
    assert_eq!((counted((3_018, 8)), counted((7, 3_023))), (2, 80), "{rows:?}");
    // Hosts in order of their addresses: the server is 127.0.0.1.
    assert!(rows.iter().all(|row| row["server"] == "h0" && row["client"] != "h0"));
    assert_eq!(rows.iter().filter(|row| row["start"].is_empty()).count(), 80, "{printed}");
    place.plimsoll(&["run", "real/scenario.toml", "--out", "again", "-q"]).ends_with(0);
    let datagrams = place.read("real/udp-9.csv");
    assert_eq!(messages(&place, "again").latencies.len(), 82 + table(&datagrams).len());
}

/// Returns the bytes of a row's request and response.
fn exchanged(row: &BTreeMap<&str, &str>) -> (u64, u64) {
    (bytes(row["request"]), bytes(row["response"]))
}

/// Two clients, at the same time.
const CLIENTS: &str = r#"
import socket, threading
def client(address):
    s = socket.create_connection(("127.0.0.1", 11211), source_address=(address, 0))
    def ask(request, end):
        s.sendall(request)
        reply = b""
        while not reply.endswith(end):
            reply += s.recv(65536)
    ask(b"set k 0 0 3000\r\n" + b"v" * 3000 + b"\r\n", b"STORED\r\n")
    for _ in range(40):
        ask(b"get k\r\n", b"END\r\n")
    s.close()
both = [threading.Thread(target=client, args=(f"127.0.0.{n}",)) for n in (2, 3)]
[t.start() for t in both]
[t.join() for t in both]
"#;

/// curl gets five files on one connection; it says the bytes of each request and response.
#[cfg(target_os = "linux")]
#[test]
fn a_capture_of_http_comes_back() {
    let place = Place::new();
    place.write("server.py", HTTP_SERVER);
    let format = "%{size_request}\\t%{size_header}\\t%{size_download}\\n";
    let client = format!("curl -s --interface 127.0.0.2 -o got -w {format} http://127.0.0.1:8080/[1-5]");
    let Some(printed) = captured(&place, "python3 server.py", 8080, &client) else { return };
    let said = place.read("client.txt");
    let expected: Vec<(u64, u64)> = said
        .lines()
        .map(|line| {
            let sizes: Vec<u64> = line.split('\t').map(|size| size.parse().unwrap()).collect();
            (sizes[0], sizes[1] + sizes[2])
        })
        .collect();
    let rows = place.read("real/port-8080.csv");
    let rows = table(&rows);
    assert_eq!(rows.iter().map(exchanged).collect::<Vec<_>>(), expected, "{printed}");
    assert!(expected.len() == 5 && expected.iter().all(|(_, response)| *response > 5_000), "{said}");
}

/// A server that keeps connections, whose responses have a header and 5,000 bytes in two writes.
const HTTP_SERVER: &str = r#"
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5000")
        self.end_headers()
        self.wfile.write(b"x" * 5000)
HTTPServer(("127.0.0.1", 8080), Handler).serve_forever()
"#;

/// Two MB of iperf3 at 50 Mb/s, a flow beside the messages of its control connection. The server resets the connection
/// of the data as soon as the client says that it has sent all, so the capture has at least the bytes that the server
/// has read, and at most the bytes that the client has written.
#[cfg(target_os = "linux")]
#[test]
fn a_capture_of_iperf3_comes_back() {
    let place = Place::new();
    let client = "iperf3 -c 127.0.0.1 -B 127.0.0.2 -n 2M -b 50M -J";
    let Some(printed) = captured(&place, "iperf3 -s -B 127.0.0.1", 5201, client) else { return };
    let said: serde_json::Value = serde_json::from_str(&place.read("client.txt")).unwrap();
    let bytes_of = |end: &str| said["end"][end]["bytes"].as_u64().unwrap();
    let (read, written) = (bytes_of("sum_received"), bytes_of("sum_sent"));
    let flows = place.read("real/port-5201-flows.csv");
    // Messages of the control connection that meet are flows as well, of a few hundred bytes.
    let sizes = table(&flows).into_iter().map(|row| bytes(row["size"]));
    let imported = sizes.filter(|bytes| *bytes > 1_000).sum::<u64>();
    // A cookie of 37 bytes precedes the data.
    assert!(
        read > 1_000_000 && (read..=written + 37).contains(&imported),
        "{read} {written} {printed}\n{flows}"
    );
}

#[test]
fn an_import_says_what_is_wrong_and_writes_nothing() {
    let place = Place::new();
    place.write("text.pcap", "not a capture");
    let import = |args: &[&str]| place.plimsoll(&[&["import", "capture"], args].concat());
    import(&["text.pcap", "--out", "x"]).ends_with(2).says("text.pcap: not a packet capture");
    import(&["none.pcap", "--out", "x"]).ends_with(2).says("none.pcap");
    fs::write(place.path("one.pcap"), crate::bursts::capture(1)).unwrap();
    fs::create_dir(place.path("full")).unwrap();
    place.write("full/file", "");
    import(&["one.pcap", "--out", "full"]).ends_with(2).says("it is there and not empty");
    assert_eq!(place.entries(), ["full", "one.pcap", "text.pcap"]);
    import(&["one.pcap", "--out", "x", "--keep-names"]).ends_with(0).prints("2 hosts");
}

/// A capture of requests of 10.0.0.1 to a server at port 11211, about 2,000 a second at random times, each on a
/// connection of its own whose beginning was before the capture.
pub fn capture(requests: u32) -> Vec<u8> {
    let words = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1u32];
    let mut file: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut packet = |ns: u64, to_server: bool, port: u16, numbers: [u32; 2], payload: u32| {
        let (from, to) = if to_server { (1, 2) } else { (2, 1) };
        let ports = if to_server { [port, 11_211] } else { [11_211, port] };
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0, 0x45, 0];
        frame.extend((40 + payload as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        ports.iter().for_each(|port| frame.extend(port.to_be_bytes()));
        numbers.iter().for_each(|number| frame.extend(number.to_be_bytes()));
        frame.extend([0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
        let time = [1_700_000_000 + (ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32];
        let lengths = [frame.len() as u32, frame.len() as u32 + payload];
        time.iter().chain(&lengths).for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(frame);
    };
    let (mut ns, mut state) = (0, 1u64);
    for number in 0..requests {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = ((state >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        ns += (-uniform.ln() * 500_000.0) as u64 + 1;
        let (port, response) = (40_000 + (number % 20_000) as u16, 500 + number % 900);
        packet(ns, true, port, [1, 1], 60);
        packet(ns + 60_000, false, port, [1, 61], response);
        packet(ns + 70_000, true, port, [61, 1 + response], 0);
    }
    file
}
