//! A run is a pure function of its model.

use std::sync::Mutex;

use plimsoll_results::Digest;
use plimsoll_results::outcome::Outcome;
use plimsoll_sim::batch::{self, BatchWatch};

use crate::truth::lab::{model, run, run_variant, run_with_seed};

/// Every kind of workload, with losses, marks and pacing.
pub const BUSY: &str = "
version = 1
title = 'everything at once'
[run]
duration = '20ms'
drain = '1s'
[topology]
kind = 'leaf-spine'
leaves = 2
spines = 2
hosts_per_leaf = 4
rate = '1Gbps'
delay = '2us'
[port.host]
buffer = '100 packets'
order = 'fifo'
[port.switch]
buffer = '20 packets'
ecn = { threshold = '10 packets' }
[host]
pacer = {}
[transport]
kind = 'dctcp'
min_window = 1
min_rto = '1ms'
[workload.rpc]
kind = 'rpc'
request = '100B'
response = { kind = 'exponential', mean = '4KB' }
load = 0.1
pick = 'random'
service = { kind = 'gamma', shape = 0.7, scale = '20us' }
[workload.fan]
kind = 'fan-out'
request = '100B'
response = '2800B'
queries_per_second = 200.0
[workload.all]
kind = 'all-to-all'
size = { cdf = 'websearch' }
load = 0.3
count = 40
[workload.raw]
kind = 'packets'
from = 'h1..h3'
to = 'h7'
size = { kind = 'uniform', min = '64B', max = '1500B' }
load = 0.1
[workload.round]
kind = 'permutation'
size = '50KB'
start_within = '1ms'
[workload.burst]
kind = 'incast'
size = '20KB'
every = '5ms'
rounds = 3
[observe]
flow_series = '1ms'
goodput_every = '1ms'
queue.client = { port = 'client', every = '100us' }
queue.leaves = { port = 'tier:leaf', every = '100us' }
";

/// One scheme of the HULL study, as its scenario file has it.
const HULL: &str = "
version = 1
include = '../../../../scenarios/hull/source.toml'
[workload.small]
kind = 'rpc'
request = '100B'
response = '900B'
load = '2Mbps'
count = 200
[workload.large]
kind = 'transfer'
size = '1MB'
load = 0.4
count = 12
[observe]
queue.client = { port = 'client', every = '1ms' }
";

#[test]
fn a_model_run_twice_gives_the_same_bytes() {
    assert_eq!(run(BUSY).digest(), run(BUSY).digest());
    assert_ne!(run(BUSY).digest(), run_with_seed(BUSY, 2).digest(), "the seed matters");
    let busy = run(BUSY);
    assert!(busy.counters.switch_drops > 0 && busy.counters.marks > 0, "{:?}", busy.counters);
    assert!(busy.messages.iter().any(|message| !message.split.pacer.is_zero()), "nothing was paced");
}

struct Collect(Mutex<Vec<(usize, Digest)>>);

impl BatchWatch for Collect {
    fn on_done(
        &self,
        index: usize,
        outcome: Outcome,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.0.lock().unwrap().push((index, Digest::of(&outcome)));
        Ok(())
    }
}

#[test]
fn threads_make_no_difference() {
    let mut models: Vec<_> = (1..=4).map(|seed| model(BUSY, None, Some(seed))).collect();
    models.extend(["TCP", "DCTCP-PQ-Pacer"].map(|variant| model(HULL, Some(variant), None)));
    let models: Vec<_> = models.iter().collect();
    let [one, two, four] = [1, 2, 4].map(|threads| {
        let collect = Collect(Mutex::default());
        batch::run_all(&models, threads, &collect).unwrap();
        let mut digests = collect.0.into_inner().unwrap();
        digests.sort_unstable();
        digests
    });
    assert_eq!(one.len(), models.len());
    assert_eq!(one, two);
    assert_eq!(one, four);
}

/// Digests of this version. A change means that runs observe something else than they did: results of
/// earlier versions can no longer be compared with new ones, run directories must not be resumed, and
/// the change belongs in the release notes. If that is what you meant, put the new digest here. A
/// refactoring or an optimisation must not change it.
const PINNED: [(&str, Option<&str>, &str); 2] = [
    (BUSY, None, "9b58d115ab59261b46272da6faf7b880"),
    (HULL, Some("DCTCP-PQ-Pacer"), "d91839dff4fab7376b85b12efeb6bbae"),
];

#[test]
fn results_are_those_of_the_last_version() {
    for (text, variant, pinned) in PINNED {
        let run = variant.map_or_else(|| run(text), |variant| run_variant(text, variant));
        assert_eq!(
            run.digest().to_string(),
            pinned,
            "runs observe something else than they did; see the words above PINNED in {}",
            file!()
        );
    }
}

/// The messages that a workload creates, whatever the network does with them.
fn demand(text: &str, name: &str) -> Vec<(u64, u64, u32, u32, u64)> {
    let run = run(text);
    let asked = |message: &plimsoll_results::outcome::MessageRecord| {
        (message.index, message.created.as_ps(), message.source, message.destination, message.bytes)
    };
    run.of(name).map(asked).collect()
}

/// Common random numbers: a variant, another workload or another order of tables changes no other's
/// arrivals, sizes, servers and pairs.
#[test]
fn each_request_is_the_same_in_every_variant() {
    let head = "version = 1\ntitle = 'pairs'\n[run]\nduration = '20ms'\n[topology]\nkind = 'rack'\nhosts = 6\n\
                rate = '1Gbps'\ndelay = '5us'\n";
    let other = "[workload.other]\nkind = 'all-to-all'\nsize = '30KB'\nload = 0.3\n";
    let slower = "[port.switch]\necn = { threshold = '5 packets' }\nbuffer = '40 packets'\n\
                  [transport]\nkind = 'dctcp'\nmin_rto = '1ms'\n[host]\npacer = {}\n";
    for (name, table) in [
        (
            "rpc",
            "kind = 'rpc'\nrequest = '100B'\nresponse = { cdf = 'homa-w1' }\nload = 0.01\npick = 'random'\n\
             service = { kind = 'exponential', mean = '10us' }\n",
        ),
        (
            "transfer",
            "kind = 'transfer'\nsize = { kind = 'exponential', mean = '20KB' }\nload = 0.2\npick = 'random'\n",
        ),
        (
            "fan",
            "kind = 'fan-out'\nrequest = '100B'\nresponse = { kind = 'exponential', mean = '2KB' }\n\
             queries_per_second = 1000.0\n",
        ),
        ("all", "kind = 'all-to-all'\nsize = { cdf = 'homa-w2' }\nload = 0.05\n"),
        (
            "raw",
            "kind = 'packets'\nfrom = 'h1..h3'\nto = 'client'\n\
             size = { kind = 'exponential', mean = '400B' }\nload = 0.05\n",
        ),
        ("shuffle", "kind = 'permutation'\nsize = '10KB'\nstart_within = '1ms'\n"),
    ] {
        let table = format!("[workload.{name}]\n{table}");
        let alone = demand(&format!("{head}{table}"), name);
        assert!(alone.len() > 5, "{name} sends too little to compare");
        for text in [
            format!("{head}{table}{other}"),
            format!("{head}{other}{table}"),
            format!("{head}{slower}{table}"),
            format!("{head}{slower}{other}{table}")
                .replace("1Gbps", "1001Mbps")
                .replace("load = 0.3", "load = 0.1"),
        ] {
            // Relative loads follow the link's rate; all else is the same request.
            let scaled = text.contains("1001Mbps");
            let with_others = demand(&text, name);
            if name == "raw" && text.contains("buffer") {
                continue; // A dropped packet leaves no record.
            }
            for (one, same) in alone.iter().zip(&with_others) {
                let (index, created, source, destination, bytes) = *one;
                assert_eq!(
                    (index, source, destination, bytes),
                    (same.0, same.2, same.3, same.4),
                    "{name}\n{text}"
                );
                if !scaled {
                    assert_eq!(
                        created, same.1,
                        "request {index} of {name} is created at another time\n{text}"
                    );
                }
            }
            assert!(scaled || alone.len() == with_others.len(), "{name}\n{text}");
        }
    }
}

/// Arrivals at another load are the same arrivals, rescaled.
#[test]
fn loads_share_their_arrivals() {
    let at = |load: &str| {
        demand(
            &format!(
                "version = 1\ntitle = 'loads'\n[topology]\nkind = 'rack'\nhosts = 3\nrate = '1Gbps'\ndelay = '5us'\n\
                 [workload.w]\nkind = 'rpc'\nrequest = '100B'\nresponse = '900B'\nload = {load}\ncount = 200\n"
            ),
            "w",
        )
    };
    for (slow, fast) in at("0.01").iter().zip(&at("0.02")) {
        assert!((slow.1 as f64 / fast.1 as f64 - 2.0).abs() < 1e-6, "{slow:?} {fast:?}");
    }
}
