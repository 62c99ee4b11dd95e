//! Captures that simulated runs write come back as the scenarios that made them: sizes exactly, the load within 1 %,
//! and the 99th percentile of a replay within 5 %. crates/import tests what is a message.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{Place, names};

/// A message of a run or a row of a list: client, server, and the bytes of the response or the flow.
type Size = (String, String, u64);

/// What the messages of a run's only point came to.
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
            "version = 1\ntitle = 'made'\n[run]\nduration = '60ms'\ndrain = '100ms'\n[topology]\nkind = 'rack'\nhosts = 6\n\
             rate = '10Gbps'\ndelay = '5us'\n[transport]\n{transport}\n[observe]\npackets = 1000000\n{workload}"
        ),
    );
    place.plimsoll(&["run", "made.toml", "--pcap", "--out", "made", "-q"]).ends_with(0);
    let ran = place.plimsoll(&[&["import", "capture", "made", "--out", "back"], more].concat()).ends_with(0);
    let network = ["--set", "topology.hosts=6", "--set", "topology.delay=5us"];
    let again = ["run", "back/scenario.toml", "--out", "again", "-q"];
    place.plimsoll(&[&again[..], &network[..]].concat()).ends_with(0);
    (messages(place, "made"), messages(place, "again"), ran.stdout)
}

#[track_caller]
fn within(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found} is not within {share} of {expected}");
}

/// Clients with five requests each under way, which wait for a response and think.
const CLOSED: &str = "[workload.w]\nkind = 'closed-loop'\nclients = ['h0', 'h1']\nservers = ['h2', 'h3', 'h4', 'h5']\n\
                      outstanding = 5\nrequest = { kind = 'uniform', min = '100B', max = '5KB' }\n\
                      response = { kind = 'uniform', min = '200B', max = '60KB' }\n\
                      service = { kind = 'exponential', mean = '100us' }\n\
                      think = { kind = 'exponential', mean = '300us' }\nthreads = 1000\n";

#[test]
fn a_closed_loop_comes_back_with_its_think_times() {
    let place = Place::new();
    let (made, again, printed) = there_and_back(&place, CLOSED, "handshake = true", &[]);
    assert!(made.latencies.len() > 500, "{}", made.latencies.len());
    assert!(printed.contains("keep their think times") && printed.contains("after responses"), "{printed}");
    assert_eq!(listed(&place, "back"), made.sizes);
    assert_eq!(again.sizes, made.sizes);
    within(again.load(), made.load(), 0.01);
    within(again.p99(), made.p99(), 0.05);
    let list = place.read("back/all.csv");
    let thinks: Vec<f64> = table(&list)
        .iter()
        .filter(|row| !row["think"].is_empty())
        .map(|row| row["think"].parse::<plimsoll_units::Span>().unwrap().as_us_f64())
        .collect();
    // One of many slots thinks at once, each on a connection of four: the time to the next request on a connection is
    // longer than a think time.
    assert!(thinks.len() > 400 && thinks.iter().all(|think| *think > 0.0), "{}", thinks.len());
}

/// Requests at random times, each on a connection of its own.
#[test]
fn an_open_loop_comes_back_with_its_times() {
    let place = Place::new();
    let workload = "[workload.w]\nkind = 'rpc'\nrequest = '300B'\nresponse = { kind = 'uniform', min = '1KB', max = '80KB' }\n\
                    load = 0.5\npick = 'random'\nservice = { kind = 'exponential', mean = '5us' }\n";
    let transport = "handshake = false\nconnections = 'per-message'";
    let (made, again, printed) = there_and_back(&place, workload, transport, &[]);
    assert!(made.latencies.len() > 500 && printed.contains("at times"), "{printed}");
    assert_eq!(listed(&place, "back"), made.sizes);
    within(again.load(), made.load(), 0.01);
    within(again.p99(), made.p99(), 0.05);
}

/// Flows in one direction: what is listed is what was sent.
#[test]
fn flows_come_back() {
    let place = Place::new();
    let workload = "[workload.w]\nkind = 'all-to-all'\nsize = { kind = 'uniform', min = '1KB', max = '200KB' }\nload = 0.3\n";
    let transport = "handshake = true\nconnections = 'per-message'";
    let (made, again, _) = there_and_back(&place, workload, transport, &[]);
    assert!(made.latencies.len() > 200);
    assert_eq!(listed(&place, "back"), made.sizes);
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
    assert_eq!(responses + exchanges, made.bytes);
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
