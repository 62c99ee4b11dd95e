//! A run is the same, byte for byte, on any number of threads.

use plimsoll_results::Digest;
use plimsoll_sim::run_in_parts;

use crate::truth::lab::model;

/// Losses, marks, timeouts, hosts shared out with their switches: all messages are flows without answers.
const FLOWS: &str = "
version = 1
title = 'flows of all kinds'
[run]
duration = '5ms'
drain = '1s'
[topology]
kind = 'fat-tree'
k = 4
rate = '1Gbps'
delay = '2us'
[port.host]
buffer = '100 packets'
[port.switch]
buffer = '20 packets'
ecn = { threshold = '10 packets' }
[transport]
kind = 'dctcp'
min_rto = '1ms'
[workload.all]
kind = 'all-to-all'
size = { cdf = 'websearch' }
load = 0.5
count = 60
[workload.round]
kind = 'permutation'
size = '50KB'
start_within = '1ms'
[workload.burst]
kind = 'incast'
size = '20KB'
every = '2ms'
rounds = 2
[observe]
goodput_every = '1ms'
queue.edges = { port = 'tier:edge', every = '100us' }
queue.cores = { port = 'tier:core', every = '100us' }
";

/// Flows that last as long as the run, with HULL's pacer and phantom queues, which have random streams.
const ENDLESS: &str = "
version = 1
title = 'endless flows'
[run]
duration = '6ms'
[topology]
kind = 'leaf-spine'
leaves = 5
spines = 3
hosts_per_leaf = 3
rate = '1Gbps'
delay = '1us'
fabric_delay = '3us'
[port.switch]
buffer = '200 packets'
phantom_queue = { drain = 0.95, threshold = '3KB' }
[host]
pacer = {}
[transport]
kind = 'dctcp'
[workload.round]
kind = 'permutation'
[observe]
queue.leaves = { port = 'tier:leaf', every = '100us' }
";

/// Requests and queries, which act at all hosts: these are one part, the switches are the others.
const ANSWERED: &str = "
version = 1
title = 'requests and flows'
[run]
duration = '10ms'
drain = '1s'
[topology]
kind = 'leaf-spine'
leaves = 3
spines = 2
hosts_per_leaf = 4
rate = '1Gbps'
delay = '2us'
[port.host]
buffer = '100 packets'
[port.switch]
buffer = '20 packets'
[host]
backpressure = true
bursts = {}
[transport]
kind = 'tcp'
min_rto = '1ms'
connections = 'per-message'
[workload.rpc]
kind = 'rpc'
request = '100B'
response = { kind = 'exponential', mean = '4KB' }
load = 0.1
pick = 'random'
[workload.fan]
kind = 'fan-out'
request = '100B'
response = '2800B'
queries_per_second = 2000.0
[workload.all]
kind = 'all-to-all'
size = '30KB'
load = 0.3
[observe]
completion = 'acknowledged'
queue.client = { port = 'client', every = '100us' }
";

/// Packets sprayed over paths of which one fails and comes back.
const SPRAYED: &str = "
version = 1
title = 'sprayed around a dead link'
[run]
duration = '5ms'
drain = '1s'
[topology]
kind = 'fat-tree'
k = 4
rate = '1Gbps'
delay = '2us'
[paths]
convergence_delay = '300us'
spray = { by = 'random' }
[port.switch]
buffer = '30 packets'
ecn = { threshold = '10 packets' }
[transport]
kind = 'dctcp'
min_rto = '1ms'
dup_ack_threshold = 10
[[fault]]
from = 'edge0'
to = 'aggregation0'
at = '1ms'
until = '3ms'
down = true
[workload.round]
kind = 'permutation'
size = '200KB'
start_within = '1ms'
";

/// Flows between hosts that lose packets and have nights; what overtakes is put in order again.
fn nightly() -> String {
    let host = "[host]\nloss = 0.01\ntdma = { day = '200us', night = '70us' }\n\
                reorder_buffer = { timeout = '30us' }\n[paths]\nspray = { by = 'random' }\n";
    format!("{FLOWS}{host}")
}

/// Circuits by the demand of all hosts, two a host, beside a leaf-spine network between the racks.
const HYBRID: &str = "
version = 1
title = 'hybrid'
[run]
duration = '8ms'
drain = '200ms'
[topology]
kind = 'hybrid'
racks = 4
hosts_per_rack = 2
rate = '10Gbps'
circuit_rate = '4Gbps'
packet_rate = '1Gbps'
delay = '1us'
circuit_uplinks = 2
[topology.packet]
kind = 'leaf-spine'
leaves = 2
spines = 2
hosts_per_leaf = 4
rate = '1Gbps'
delay = '2us'
[host]
backpressure = true
[port.host]
buffer = '256KB'
[port.switch]
buffer = '60 packets'
[transport]
kind = 'dctcp'
min_rto = '1ms'
[workload.all]
kind = 'all-to-all'
size = '200KB'
load = 0.3
count = 100
";

/// The schedules of circuits and all that was observed of them are the same on any number of threads: with hosts in
/// several processes and in one, with each estimator, with links that fail, and with losses in a circuit switch.
#[test]
fn circuits_are_the_same_on_any_number_of_threads() {
    let answered = "[workload.rpc]\nkind = 'rpc'\nrequest = '100B'\nresponse = '20KB'\nload = 0.05\n";
    let fault = "[[fault]]\nfrom = 'tor1'\nto = 'ocs1'\ndown = true\nat = '2ms'\nuntil = '5ms'\n\
                 [[fault]]\nfrom = 'leaf0'\nto = 'spine1'\ndown = true\nat = '1ms'\n";
    let [packet, host] = ["[topology.packet]", "[host]"].map(|table| HYBRID.find(table).unwrap());
    let one_switch = format!("{}{}", &HYBRID[..packet], &HYBRID[host..]);
    for text in [
        HYBRID.to_owned(),
        format!("{HYBRID}{fault}"),
        format!("{HYBRID}{answered}[circuits]\nestimator = 'hints'\n"),
        format!("{one_switch}[circuits]\nestimator = 'switch_counters'\nscheduler = 'rotor'\n"),
        format!("{one_switch}[circuits]\nestimator = 'slow_socket_buffers'\npoll = '4ms'\ndrain = '0ns'\n"),
    ] {
        let model = model(&text, None, None);
        assert_eq!(plimsoll_sim::obstacle(&model).unwrap(), None);
        let alone = plimsoll_sim::run(&model, &mut |_| true).unwrap();
        assert!(alone.circuits.iter().map(|circuit| circuit.bytes).sum::<u64>() > 1_000_000, "{text}");
        assert!(alone.circuit_weeks.iter().any(|week| week.known_sent_bytes > 0), "{text}");
        for threads in [1, 2, 4] {
            let outcome = run_in_parts(&model, threads, &mut |_| true).unwrap();
            assert_eq!(outcome.counters, alone.counters, "{threads} threads: {text}");
            assert_eq!(outcome.circuit_weeks, alone.circuit_weeks, "{threads} threads: {text}");
            assert_eq!(outcome.circuits, alone.circuits, "{threads} threads: {text}");
            assert_eq!(Digest::of(&outcome), Digest::of(&alone), "{threads} threads: {text}");
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let nightly = nightly();
    let per_message = FLOWS.replace("[transport]", "[transport]\nconnections = 'per-message'");
    for (name, text) in [
        ("flows", FLOWS),
        ("a connection for each message", &per_message),
        ("endless", ENDLESS),
        ("answered", ANSWERED),
        ("sprayed", SPRAYED),
        ("nightly", &nightly),
    ] {
        for seed in 1..=3 {
            let model = model(text, None, Some(seed));
            let alone = plimsoll_sim::run(&model, &mut |_| true).unwrap();
            assert!(alone.counters.packet_hops > 9_000, "{name}: {:?}", alone.counters);
            for threads in [1, 2, 3, 8] {
                let outcome = run_in_parts(&model, threads, &mut |_| true).unwrap();
                assert_eq!(outcome.counters, alone.counters, "{name}, seed {seed}, {threads} threads");
                assert_eq!(outcome.end, alone.end, "{name}, seed {seed}, {threads} threads");
                assert_eq!(
                    Digest::of(&outcome),
                    Digest::of(&alone),
                    "{name}, seed {seed}, {threads} threads"
                );
            }
        }
    }
}

/// Acknowledgements of a higher priority go ahead of data, and pairs wait for room in their NIC: at one instant a NIC
/// ends a packet, sends an acknowledgement, and a timer of another pair comes. Room is handed out by that event itself,
/// and not by the next one of any port, which may be in another process.
#[test]
fn pairs_that_wait_at_a_nic_have_the_same_turns_on_any_number_of_threads() {
    let text = "
version = 1
title = 'turns'
[run]
duration = '60us'
drain = '0us'
[topology]
kind = 'leaf-spine'
leaves = 4
spines = 2
hosts_per_leaf = 4
rate = '100Gbps'
fabric_rate = '400Gbps'
delay = '2us'
[transport]
kind = 'dcqcn'
segment = '1KB'
header = '48B'
[port.switch]
order = 'priorities'
buffer = '100MB'
[port.host]
order = 'priorities'
[host]
ack_priority = 6
loss = 0.01
[workload.h]
kind = 'hstride'
hosts = 'all'
stride = 3
flows = 5
size = '20KB'
load = 0.5
[workload.st]
kind = 'stride'
hosts = 'all'
stride = 1
size = '200KB'
";
    // Seed 37 had another order on one thread.
    for seed in [37, 1, 2, 3] {
        let model = model(text, None, Some(seed));
        let alone = plimsoll_sim::run(&model, &mut |_| true).unwrap();
        for threads in [2, 4] {
            let outcome = run_in_parts(&model, threads, &mut |_| true).unwrap();
            assert_eq!(Digest::of(&outcome), Digest::of(&alone), "seed {seed}, {threads} threads");
        }
    }
}

/// A process whose threads would need larger stacks than there are addresses can start none: this test runs itself in
/// one.
#[test]
fn without_threads_a_run_in_parts_is_the_run_on_one() {
    const NAME: &str = "truth::parallel::without_threads_a_run_in_parts_is_the_run_on_one";
    if std::env::var_os("RUST_MIN_STACK").is_none() {
        let mut inside = std::process::Command::new(std::env::current_exe().unwrap());
        inside.args(["--exact", NAME, "--test-threads", "1"]).env("RUST_MIN_STACK", (1u64 << 46).to_string());
        let ran = inside.output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    assert!(std::thread::Builder::new().spawn(|| ()).is_err());
    let model = model(FLOWS, None, None);
    let alone = plimsoll_sim::run(&model, &mut |_| true).unwrap();
    let outcome = run_in_parts(&model, 4, &mut |_| true).unwrap();
    assert_eq!(Digest::of(&outcome), Digest::of(&alone));
}
