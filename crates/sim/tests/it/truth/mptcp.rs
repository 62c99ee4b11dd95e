//! MPTCP over a simulated network: the rate of two paths, the share that coupling leaves to others, and the cost of a
//! dead path.

use plimsoll_units::{Span, Time};

use crate::truth::lab::{Run, run, run_with_seed};

/// Two paths of 1 Gb/s between hosts whose links have ten times that.
const TWO_PATHS: &str = "
version = 1
title = 'two paths'
[topology]
kind = 'file'
path = 'two-paths.toml'
[port.host]
order = 'fifo'
[port.switch]
buffer = '100 packets'
";

const TRANSPORT: &str = "
[transport]
handshake = false
min_rto = '10ms'
initial_rto = '10ms'
ack_every = 1
growth = 'acked'
";

/// 40 MB from `a` to `b`.
fn transfer(mptcp: &str, more: &str) -> Run {
    run(&format!(
        "{TWO_PATHS}{more}{TRANSPORT}{mptcp}\n\
         [workload.w]\nkind = 'flows'\nfrom = 'a'\nto = 'b'\nsize = '40MB'\n\
         [observe]\nflow_series = '5ms'\n"
    ))
}

fn taken(run: &Run) -> Span {
    run.messages[0].latency().expect("the message arrives")
}

#[test]
fn two_disjoint_paths_carry_nearly_twice_what_one_does() {
    let tcp = taken(&transfer("", ""));
    let one = taken(&transfer("mptcp = { subflows = 1, coupling = 'uncoupled' }", ""));
    let two = |scheduler: &str, coupling: &str| {
        let keys =
            format!("subflows = 2, coupling = '{coupling}', scheduler = '{scheduler}', paths = 'distinct'");
        taken(&transfer(&format!("mptcp = {{ {keys} }}"), ""))
    };
    assert_eq!(one, tcp, "one subflow is a TCP connection");
    // 40 MB and headers at 1 Gb/s, 1,500 B of which 1,460 are payload.
    let floor = Span::from_us(328_767);
    assert!(tcp >= floor && tcp < floor * 11 / 10, "{tcp}");
    for (scheduler, coupling) in [("default", "uncoupled"), ("round-robin", "uncoupled"), ("default", "lia")]
    {
        let taken = two(scheduler, coupling);
        let gain = tcp.as_secs_f64() / taken.as_secs_f64();
        assert!((1.85..2.1).contains(&gain), "{scheduler}, {coupling}: {gain}");
    }
}

/// `paths = "hash"` leaves it to chance whether the second path is used, `distinct` does not.
#[test]
fn subflows_hash_to_paths_of_their_own() {
    let gains = |paths: &str| -> Vec<bool> {
        let seeds = 0..12;
        let taken = seeds.map(|seed| {
            let text = format!(
                "{TWO_PATHS}{TRANSPORT}mptcp = {{ coupling = 'uncoupled', paths = '{paths}' }}\n\
                 [workload.w]\nkind = 'flows'\nfrom = 'a'\nto = 'b'\nsize = '8MB'\n"
            );
            taken(&run_with_seed(&text, seed)) < Span::from_ms(50)
        });
        taken.collect()
    };
    assert!(gains("distinct").iter().all(|gained| *gained));
    let by_hash = gains("hash");
    assert!(by_hash.iter().any(|gained| *gained) && !by_hash.iter().all(|gained| *gained), "{by_hash:?}");
}

/// One subflow more, on one bottleneck. Returns the share of the link that MPTCP has after a second. Which packets a
/// full FIFO drops depends on their order, and NICs that serve flows in turn interleave the subflows' bursts: LIA then
/// has 0.62.
fn share_beside_tcp(coupling: &str) -> f64 {
    let run = run(&format!(
        "version = 1\ntitle = 'a shared bottleneck'\n[run]\nduration = '4s'\nwarmup = '1s'\n\
         [topology]\nkind = 'dumbbell'\nleft = 2\nright = 2\nrate = '1Gbps'\ndelay = '100us'\n\
         bottleneck_rate = '100Mbps'\n\
         [port.host]\norder = 'fifo'\n[port.switch]\nbuffer = '60 packets'\n{TRANSPORT}\
         mptcp = {{ coupling = '{coupling}', workloads = ['m'] }}\n\
         [workload.m]\nkind = 'flows'\nfrom = 'h0'\nto = 'h2'\nstart_within = '10ms'\n\
         [workload.t]\nkind = 'flows'\nfrom = 'h1'\nto = 'h3'\nstart_within = '10ms'\n\
         [observe]\ngoodput_every = '1s'\n"
    ));
    let delivered = |workload: u16| -> u64 {
        let settled = run.goodput.iter().filter(|row| row.time >= Time::ZERO + Span::from_secs(1));
        settled.filter(|row| row.workload == workload).map(|row| row.delivered.get()).sum()
    };
    let (mptcp, tcp) = (delivered(0) as f64, delivered(1) as f64);
    assert!((mptcp + tcp) * 8.0 / 3.0 > 90e6, "the link is in use: {mptcp}, {tcp}");
    mptcp / (mptcp + tcp)
}

/// RFC 6356, section 1.1, goal 2: do no harm.
#[test]
fn lia_takes_no_more_than_a_tcp_flow_where_uncoupled_subflows_take_two() {
    let (lia, uncoupled) = (share_beside_tcp("lia"), share_beside_tcp("uncoupled"));
    assert!((0.35..0.56).contains(&lia), "{lia}");
    assert!((0.58..0.76).contains(&uncoupled), "{uncoupled}");
}

/// The share of the bytes that went by the path with two TCP flows of cross traffic. Ports drop by chance (RED): a full
/// FIFO drops the packets by which windows grow, so that it gives all flows the same rate, whatever their increases.
fn share_of_the_busy_path(coupling: &str) -> f64 {
    let run = run(&format!(
        "{TWO_PATHS}red = {{ min = '0B', max = '120KB', probability = 0.1, weight = 0.01 }}\n\
         [run]\nduration = '3s'\n{TRANSPORT}\
         mptcp = {{ coupling = '{coupling}', paths = 'distinct', workloads = ['m'] }}\n\
         [workload.m]\nkind = 'flows'\nfrom = 'a'\nto = 'b'\n\
         [workload.cross1]\nkind = 'flows'\nfrom = 'e'\nto = 'f'\n\
         [workload.cross2]\nkind = 'flows'\nfrom = 'e'\nto = 'f'\n\
         [observe]\nlinks = true\n"
    ));
    let bytes = |from: &str, to: &str| {
        run.links.iter().find(|link| link.from == from && link.to == to).expect("a link").bytes as f64
    };
    let (quiet, busy) = (bytes("l0", "s0"), bytes("l0", "s1"));
    assert!(quiet * 8.0 / 3.0 > 0.8e9, "the quiet path is in use: {quiet}");
    busy / (quiet + busy)
}

/// RFC 6356, section 1.1, goal 3: move traffic away from the congested path. With equal RTTs and `b` the window on the
/// busy path in units of that on the quiet one, the increase on the busy path is b / (1 + b)^2 of TCP's, and its rate
/// beside two TCP flows with the same losses, the square root of that against 2: b = 0.14, a share of 0.13. Uncoupled
/// it is one of three flows: 0.25.
#[test]
fn lia_moves_to_the_path_with_less_congestion() {
    let (lia, uncoupled) = (share_of_the_busy_path("lia"), share_of_the_busy_path("uncoupled"));
    assert!((0.10..0.16).contains(&lia), "{lia}");
    assert!((0.22..0.28).contains(&uncoupled), "{uncoupled}");
}

/// One path dies for longer than the transfer takes, and routing does not notice: the data outstanding there goes by
/// the other one after a timeout.
#[test]
fn a_dead_path_costs_a_timeout() {
    let dead = "[[fault]]\nfrom = 'l0'\nto = 's1'\ndown = true\nat = '50ms'\nuntil = '900ms'\n\
                [paths]\nconvergence_delay = '10s'\n";
    let keys = "mptcp = { coupling = 'uncoupled', paths = 'distinct' }";
    let (run, alive) = (transfer(keys, dead), taken(&transfer(keys, "")));
    // Of 40 MB 12 MB are through when the link dies, and the rest takes twice as long by one path; a timeout is 10 ms.
    let expected = Span::from_ms(50) + (alive - Span::from_ms(50)) * 2;
    let taken = taken(&run);
    assert!(
        taken > expected - Span::from_ms(10) && taken < expected + Span::from_ms(30),
        "{taken}, {expected}"
    );
    assert!(run.counters.timeouts > 0 && run.counters.link_drops > 0);
}

#[test]
fn the_series_tell_subflows_apart() {
    let run = transfer("mptcp = { coupling = 'uncoupled', paths = 'distinct' }", "");
    let of = |subflow: u8| run.series.iter().filter(|point| point.subflow == subflow).collect::<Vec<_>>();
    let (first, second) = (of(0), of(1));
    assert!(first.len() > 20 && first.len() == second.len());
    assert!(first.iter().chain(&second).all(|point| point.connection == 0));
    // Both paths are full by then.
    let middle = |points: &[&plimsoll_results::outcome::SeriesPoint]| {
        points[10..15].iter().map(|p| p.rate.as_bps()).sum::<u64>() / 5
    };
    for rate in [middle(&first), middle(&second)] {
        assert!((900_000_000..1_010_000_000).contains(&rate), "{rate}");
    }
    let record = &run.connections[0];
    assert_eq!((run.connections.len(), record.delivered), (1, 40_000_000));
    assert_eq!(record.segments - record.retransmissions, 40_000_000_u64.div_ceil(1_460));
}

/// What hosts and switches do beside: losses, marks, a pacer, merged packets, priorities, waiting for room, messages
/// in both directions.
const BUSY: &str = "
version = 1
title = 'MPTCP among everything'
[run]
duration = '20ms'
drain = '2s'
[topology]
kind = 'leaf-spine'
leaves = 3
spines = 3
hosts_per_leaf = 4
rate = '1Gbps'
delay = '2us'
[port.switch]
buffer = '20 packets'
ecn = { threshold = '8 packets' }
order = 'priorities'
";

fn busy(host: &str, transport: &str, observe: &str) -> String {
    format!(
        "{BUSY}{host}\n[transport]\nmin_rto = '2ms'\nack_delay = '200us'\n{transport}\n\
         [workload.rpc]\nkind = 'rpc'\nrequest = '700B'\nresponse = {{ kind = 'exponential', mean = '9KB' }}\n\
         load = 0.2\npick = 'random'\n\
         [workload.fan]\nkind = 'fan-out'\nrequest = '100B'\nresponse = '2800B'\nqueries_per_second = 400.0\n\
         [workload.all]\nkind = 'all-to-all'\nsize = '60KB'\nload = 0.4\ncount = 60\n\
         [observe]\n{observe}\n"
    )
}

/// The run itself asserts that the parts of every latency sum to the whole, and that no packet is unaccounted for.
#[test]
fn everything_arrives_in_every_surrounding() {
    let hosts = [
        "",
        "[host]\nbackpressure = true\n[port.host]\nbuffer = '4 packets'",
        "[host]\npriority = { rpc = 7 }\nack_priority = 7",
        "[host]\npacer = {}\nbursts = { segmentation = '0B' }",
        "[paths]\nspray = {}",
    ];
    let transports = [
        "mptcp = {}",
        "kind = 'dctcp'\nmptcp = { coupling = 'uncoupled', scheduler = 'round-robin', paths = 'distinct' }",
        "kind = 'swift'\nmptcp = { coupling = 'uncoupled', subflows = 3, workloads = ['rpc', 'all'] }",
        "kind = 'cubic'\nrecovery = 'newreno'\ncount_options = true\nconnections = 'per-message'\n\
         mptcp = { coupling = 'uncoupled', subflows = 4, paths = 'distinct' }",
        "connections = 'per-message'\npool = 2\nmax_window = 20\nmptcp = { scheduler = 'round-robin' }",
        "handshake = false\nmptcp = { paths = 'classes', scheduler = 'active-path' }",
    ];
    let observes = ["", "completion = 'acknowledged'\ngoodput_every = '1ms'"];
    for (number, transport) in transports.iter().enumerate() {
        for (host, observe) in hosts.iter().zip(observes.iter().cycle().skip(number % 2)) {
            let text = busy(host, transport, observe);
            let run = run(&text);
            let unfinished = run.messages.iter().filter(|message| message.completed.is_none()).count();
            assert_eq!(unfinished, 0, "{text}");
            assert!(run.messages.len() > 100, "{text}: {}", run.messages.len());
        }
    }
}

#[test]
fn a_run_is_repeated_to_the_byte() {
    let text = busy("[host]\npacer = {}", "mptcp = { paths = 'distinct' }", "flow_series = '1ms'");
    let first = run(&text).digest();
    assert_eq!(run(&text).digest(), first);
    assert_ne!(run_with_seed(&text, 2).digest(), first);
    assert_ne!(run(&text.replace("mptcp = { paths = 'distinct' }", "")).digest(), first);
}
