//! Random scenarios: small networks under loads that make queues, drops and marks.

use proptest::prelude::*;
use proptest::sample::select;

/// The number of cases, unless `PROPTEST_CASES` gives another. A failing scenario is printed whole, so none is kept.
pub fn config(cases: u32) -> ProptestConfig {
    let cases =
        if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// The features that a strategy may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Only the features of the express engine.
    Express,
    /// All features, including the general engine's.
    All,
}

fn topology() -> impl Strategy<Value = String> {
    let rate = || select(vec!["1Gbps", "10Gbps", "3Gbps"]);
    let delay = || select(vec!["0s", "1us", "5us", "37ns"]);
    prop_oneof![
        (3u32..7, rate(), delay()).prop_map(|(hosts, rate, delay)| format!(
            "kind = 'rack'\nhosts = {hosts}\nrate = '{rate}'\ndelay = '{delay}'"
        )),
        (1u32..4, rate(), rate(), delay()).prop_map(|(spines, rate, fabric, delay)| format!(
            "kind = 'leaf-spine'\nleaves = 2\nspines = {spines}\nhosts_per_leaf = 3\nrate = '{rate}'\n\
             fabric_rate = '{fabric}'\ndelay = '{delay}'"
        )),
        (rate(), rate(), delay()).prop_map(|(rate, bottleneck, delay)| format!(
            "kind = 'dumbbell'\nleft = 3\nright = 3\nrate = '{rate}'\ndelay = '{delay}'\n\
             bottleneck_rate = '{bottleneck}'"
        )),
        delay().prop_map(|delay| format!("kind = 'fat-tree'\nk = 4\nrate = '1Gbps'\ndelay = '{delay}'")),
    ]
}

fn buffer() -> impl Strategy<Value = String> {
    let limit = prop_oneof![
        (1u32..60).prop_map(|packets| format!("{packets} packets")),
        (1600u32..60_000).prop_map(|bytes| format!("{bytes}B")),
        Just("unlimited".to_owned()),
        Just("0 packets".to_owned()),
    ];
    (limit, any::<bool>()).prop_map(|(limit, in_service)| {
        let counts = if in_service && limit != "0 packets" { "waiting-and-in-service" } else { "waiting" };
        format!("buffer = '{limit}'\ncounts = '{counts}'")
    })
}

fn marking(scope: Scope) -> impl Strategy<Value = String> {
    let places: Vec<&str> = if scope == Scope::All { vec!["enqueue", "dequeue"] } else { vec!["enqueue"] };
    prop_oneof![
        Just(String::new()),
        (1u32..30, select(places), select(vec!["more", "at-least"])).prop_map(|(packets, at, compare)| format!(
            "ecn = {{ threshold = '{packets} packets', at = '{at}', compare = '{compare}' }}"
        )),
        (1000u32..30_000, 1u32..3, select(vec![1.0, 0.1, 0.002]), any::<[bool; 4]>()).prop_map(
            |(min, factor, weight, [bytes, wait, gentle, ecn])| format!(
                "red = {{ min = '{min}B', max = '{}B', probability = 0.3, weight = {weight}, bytes = {bytes}, \
                 wait = {wait}, gentle = {gentle}, ecn = {ecn}, limit = '50KB' }}",
                min * factor
            )
        ),
        select(vec![0.8, 0.95])
            .prop_map(|drain| format!("phantom_queue = {{ drain = {drain}, threshold = '3KB' }}")),
    ]
}

fn host(scope: Scope) -> impl Strategy<Value = String> {
    let backpressure = if scope == Scope::All { any::<bool>().boxed() } else { Just(false).boxed() };
    let pacer = select(vec![
        "",
        "pacer = { form = 'source', association_probability = 1.0 }",
        "pacer = { form = 'source', interval = '32us' }",
        "pacer = { form = 'paper', association_probability = 0.5 }",
    ]);
    let more = if scope == Scope::All {
        select(vec![
            "",
            "",
            "loss = 0.02",
            "tdma = { day = '40us', night = '25us' }",
            "tdma = { day = '30us', night = '10us', priorities = [7] }\nloss = 0.001",
            "reorder_buffer = { timeout = '20us', bytes = '5KB' }",
            "reorder_buffer = {}\nbursts = {}",
        ])
        .boxed()
    } else {
        Just("").boxed()
    };
    (backpressure, pacer, more)
        .prop_map(|(backpressure, pacer, more)| format!("backpressure = {backpressure}\n{pacer}\n{more}"))
}

/// What fabrics add: path selection, how switches queue, priorities.
#[derive(Clone, Debug, Default)]
struct Fabric {
    paths: &'static str,
    queue: &'static str,
    priorities: String,
}

fn fabric() -> impl Strategy<Value = Fabric> {
    let paths = select(vec![
        "",
        "",
        "spray = {}",
        "spray = { by = 'round-robin' }",
        "flowlet = { gap = '20us', entries = 16 }",
        "adaptive = {}",
        "adaptive = { thresholds = ['2KB'] }",
    ]);
    let queue = select(vec![
        "",
        "order = 'priorities'",
        "pfabric = {}",
        "pfabric = { limit = '6KB', overflow = 'at-least', eviction = 'one' }",
        "int = {}",
        "int = { header = '42B', hop = '0B' }\norder = 'priorities'",
        "trim = {}\nint = {}",
        "trim = {}",
        "trim = { queue = '2 packets', service = '10:1', victim = 'coin-tail', bounce = true }",
        "trim = { priority = 6, bounce = true }\nclasses = { priority = { '6..7' = { buffer = '3 packets' } } }",
        "classes = { priority = { '7' = {}, '0..3' = { weight = 3, buffer = '9KB' }, '5' = { weight = 2 } } }",
        "classes = { scheduler = 'wfq', priority = { '4..7' = { weight = 5, ecn = { threshold = '3KB' } }, '1' = { \
         rate = '50Mbps', order = 'fair-per-flow' } } }",
    ]);
    let priorities =
        (any::<bool>(), select(vec!["remaining", "priority"]), 0u8..8).prop_map(|(on, rank, ack)| {
            let by_size = "priority_by_size = ['1KB', '10KB', '40KB']";
            if on { format!("{by_size}\nrank = '{rank}'\nack_priority = {ack}") } else { String::new() }
        });
    (paths, queue, priorities).prop_map(|(paths, queue, priorities)| Fabric { paths, queue, priorities })
}

pub fn transport() -> impl Strategy<Value = String> {
    (
        select(vec!["tcp", "dctcp", "cubic"]),
        select(vec!["reno", "newreno", "sack"]),
        select(vec!["long-lived", "per-message"]),
        select(vec!["200us", "1ms", "10ms"]),
        1u32..20,
        1u32..3,
        any::<[bool; 3]>(),
    )
        .prop_map(|(kind, recovery, connections, min_rto, window, ack_every, [handshake, marked_acks, on])| {
            let ecn = if on { "on" } else { "auto" };
            let pool = if connections == "per-message" && handshake { window % 3 } else { 0 };
            format!(
                "kind = '{kind}'\nrecovery = '{recovery}'\nconnections = '{connections}'\nmin_rto = '{min_rto}'\n\
                 initial_rto = '5ms'\nsyn_loss_rto = '5ms'\nmax_rto = '20ms'\ninitial_window = {window}\n\
                 ack_every = {ack_every}\nack_delay = '500us'\nhandshake = {handshake}\npool = {pool}\n\
                 ecn_on_acks = {marked_acks}\nrto_granularity = '10us'\necn = '{ecn}'"
            )
        })
}

/// One to three workloads of different kinds.
pub fn workloads() -> impl Strategy<Value = String> {
    let response = select(vec!["'900B'", "{ kind = 'exponential', mean = '4KB' }"]);
    let rpc = (0.01f64..0.4, response).prop_map(|(load, response)| {
        format!(
            "[workload.rpc]\nkind = 'rpc'\nrequest = '100B'\nresponse = {response}\nload = {load}\n\
             count = 60\nservice = {{ kind = 'exponential', mean = '3us' }}\n"
        )
    });
    let transfer = (0.2f64..1.2).prop_map(|load| {
        format!("[workload.transfer]\nkind = 'transfer'\nsize = '100KB'\nload = {load}\ncount = 8\npick = 'random'\n")
    });
    let incast = (1u32..40).prop_map(|kilobytes| {
        format!("[workload.incast]\nkind = 'incast'\nsize = '{kilobytes}KB'\nevery = '300us'\nrounds = 6\n")
    });
    let packets = (0.05f64..0.6, select(vec!["poisson", "constant"])).prop_map(|(load, arrivals)| {
        format!(
            "[workload.packets]\nkind = 'packets'\nfrom = ['h1', 'h2']\nto = 'client'\n\
             size = {{ kind = 'uniform', min = '64B', max = '1500B' }}\nload = {load}\ncount = 300\n\
             arrivals = '{arrivals}'\n"
        )
    });
    let all_to_all = (0.1f64..0.8).prop_map(|load| {
        format!(
            "[workload.all]\nkind = 'all-to-all'\nsize = {{ kind = 'cdf', cdf = 'homa-w2' }}\n\
             load = {load}\ncount = 100\n"
        )
    });
    let fan_out = (100.0f64..3000.0).prop_map(|queries| {
        format!(
            "[workload.fan]\nkind = 'fan-out'\nrequest = '100B'\nresponse = '3000B'\n\
             queries_per_second = {queries:.1}\ncount = 20\nservice = '10us'\n"
        )
    });
    proptest::collection::vec(prop_oneof![rpc, transfer, incast, packets, all_to_all, fan_out], 1..4)
        .prop_map(|mut tables| {
            // The same table twice is an error.
            tables.sort_unstable();
            tables.dedup_by_key(|table| table.lines().next().map(str::to_owned));
            tables.concat()
        })
}

/// A scenario whose text ends with the tables `[port.host]` and `[port.switch]` still open in place of
/// `ENGINE`.
pub fn scenario(scope: Scope) -> impl Strategy<Value = String> {
    let order = match scope {
        Scope::Express => Just("fifo").boxed(),
        Scope::All => select(vec!["fifo", "fair-per-flow", "priorities"]).boxed(),
    };
    let fabric = if scope == Scope::All { fabric().boxed() } else { Just(Fabric::default()).boxed() };
    (
        (any::<u32>(), topology(), workloads(), transport()),
        (buffer(), buffer(), marking(scope), host(scope), order, fabric),
    )
        .prop_map(|((seed, topology, workloads, transport), (nic, buffer, marking, host, order, fabric))| {
            let is_rack = topology.contains("'rack'");
            let tier = if is_rack { "queue.tor = { port = 'tier:tor', every = '10us' }\n" } else { "" };
            let Fabric { paths, queue, priorities } = fabric;
            format!(
                "version = 1\ntitle = 'random'\n[paths]\n{paths}\n[run]\nseed = {seed}\ndrain = '60s'\n\
                 duration = '1s'\n[topology]\n{topology}\n\
                 [port.host]\n{nic}\norder = '{order}'\nENGINE\n[port.switch]\n{buffer}\n{marking}\n{queue}\nENGINE\n\
                 [host]\n{host}\n{priorities}\n[transport]\n{transport}\n{workloads}\
                 [observe]\nflow_series = '1ms'\ngoodput_every = '200us'\n\
                 queue.client = {{ port = 'client', every = '10us' }}\n\
                 queue.nic = {{ port = 'nic:h1', every = '50us' }}\n{tier}"
            )
        })
}
