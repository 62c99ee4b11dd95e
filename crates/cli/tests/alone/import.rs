//! Frames of an emulated run, by the kernel's TCP, come back as the scenario that was emulated.

use std::collections::BTreeMap;

use crate::common::{Place, names};
use crate::emulate::lacks;

/// Requests and flows with a connection for each message, and a client that waits for its responses and thinks.
const SCENARIO: &str = "version = 1\ntitle = 'made'\n[run]\nduration = '3s'\n\
    [topology]\nkind = 'rack'\nhosts = 4\nrate = '100Mbps'\ndelay = '10us'\n\
    [transports.own]\nconnections = 'per-message'\n\
    [workload.ask]\nkind = 'rpc'\ntransport = 'own'\nclient = 'h0'\nservers = ['h1']\nload = '5Mbps'\n\
    request = { kind = 'uniform', min = '100B', max = '2KB' }\n\
    response = { kind = 'uniform', min = '1KB', max = '20KB' }\n\
    [workload.wait]\nkind = 'closed-loop'\nclients = ['h2']\nservers = ['h3']\noutstanding = 1\nthreads = 1000\n\
    request = { kind = 'uniform', min = '100B', max = '2KB' }\n\
    response = { kind = 'uniform', min = '1KB', max = '20KB' }\nthink = { kind = 'exponential', mean = '4ms' }\n\
    [workload.flows]\nkind = 'all-to-all'\ntransport = 'own'\nload = '2Mbps'\n\
    size = { kind = 'uniform', min = '1KB', max = '100KB' }\n";

/// A message without its times: source, destination, and bytes.
type Sent = (String, String, u64);

/// Messages, how often each, and the time in seconds from the first start to the last.
struct Messages {
    all: BTreeMap<Sent, usize>,
    starts: Vec<f64>,
}

impl Messages {
    fn load(&self) -> f64 {
        let bytes: f64 = self.all.iter().map(|((.., bytes), count)| (bytes * *count as u64) as f64).sum();
        let ends = |pick: fn(f64, f64) -> f64| self.starts.iter().copied().reduce(pick).unwrap();
        bytes / (ends(f64::max) - ends(f64::min))
    }
}

/// Returns the messages of each workload in a run.
fn made(place: &Place) -> BTreeMap<String, Messages> {
    let point = &names(&place.path("made/points"))[0];
    let text = place.read(&format!("made/points/{point}/messages.csv"));
    let mut all: BTreeMap<String, Messages> = BTreeMap::new();
    for row in rows(&text) {
        let number = |column: &str| row[column].parse::<u64>().unwrap();
        let none = Messages { all: BTreeMap::new(), starts: Vec::new() };
        let of = all.entry(row["workload"].to_owned()).or_insert(none);
        let host = |column: &str| format!("h{}", row[column]);
        *of.all.entry((host("source"), host("destination"), number("bytes"))).or_default() += 1;
        of.starts.push(number("created_ps") as f64 / 1e12);
    }
    all
}

fn rows(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| head.iter().copied().zip(line.split(',')).collect()).collect()
}

/// Returns the rows of a list as messages; `starts` is empty where they wait for responses.
fn listed(text: &str) -> Messages {
    let mut of = Messages { all: BTreeMap::new(), starts: Vec::new() };
    for row in rows(text) {
        let is_flow = row.contains_key("source");
        let columns =
            if is_flow { ["source", "destination", "size"] } else { ["client", "server", "response"] };
        let [source, destination, size] = columns.map(|column| row[column]);
        let bytes = size.parse::<plimsoll_units::Bytes>().unwrap().get();
        *of.all.entry((source.to_owned(), destination.to_owned(), bytes)).or_default() += 1;
        of.starts.extend(row["start"].parse::<plimsoll_units::Span>().ok().map(|start| start.as_secs_f64()));
    }
    of
}

#[test]
fn frames_of_an_emulation_come_back_as_its_scenario() {
    if lacks() {
        return;
    }
    let place = Place::new();
    place.write("made.toml", SCENARIO);
    place.plimsoll(&["emulate", "made.toml", "--capture", "--out", "made", "-q"]).ends_with(0);
    let ran = place.plimsoll(&["import", "capture", "made", "--class", "port", "--out", "back"]).ends_with(0);
    let made = made(&place);
    // The ports of the emulation are 20000 and the number of the workload.
    for (port, workload) in (20_000..).zip(["ask", "wait", "flows"]) {
        let (made, back) = (&made[workload], listed(&place.read(&format!("back/port-{port}.csv"))));
        let all = |messages: &Messages| messages.all.values().sum::<usize>();
        let few = back.all.iter().all(|(sent, count)| made.all.get(sent).is_some_and(|made| count <= made));
        // A message that is under way at the end is left out.
        assert!(
            few && all(&back) + 2 >= all(made),
            "{workload}: {} of {}: {}",
            all(&back),
            all(made),
            ran.stdout
        );
        assert!(all(made) > 30, "{workload}: {}", all(made));
        if workload != "wait" {
            let ratio = back.load() / made.load();
            let left_out = 2.0 * (all(made) - all(&back)) as f64 / all(made) as f64;
            assert!((ratio - 1.0).abs() < 0.01 + left_out, "{workload}: {ratio} times the load of the run");
        }
    }
    let waits = place.read("back/port-20001.csv");
    let mut thinks: Vec<f64> = rows(&waits)
        .iter()
        .filter_map(|row| Some(row["think"].parse::<plimsoll_units::Span>().ok()?.as_us_f64()))
        .collect();
    assert_eq!(thinks.len() + 1, rows(&waits).len(), "all but the first request wait: {}", ran.stdout);
    // The median, as a processor that is taken away for a while lengthens single waits without a limit.
    thinks.sort_by(f64::total_cmp);
    let median = thinks[thinks.len() / 2];
    let drawn = 4_000.0 * 2_f64.ln();
    assert!(
        (0.6 * drawn..1.7 * drawn).contains(&median),
        "a median think time of {median} us, {drawn} were drawn"
    );
}
