//! The workloads that represent applications: exact on an idle network, and lawful under load.
//!
//! The network is a rack of 10 Gb/s and 5 us, where a packet of `w` bytes takes `2 (0.8 ns w + 5 us)` from host
//! to host, and packets that one host sends back to back arrive `0.8 ns w` apart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plimsoll_results::outcome::MessageRecord;
use plimsoll_scenario::{Overrides, Scenario};
use plimsoll_units::{Span, Time};
use proptest::prelude::*;

use crate::truth::arbitrary::config;
use crate::truth::lab::{Run, run, run_variant};

/// Picoseconds that a byte takes on a link.
const BYTE: u64 = 800;
/// Bytes of the header that each packet has besides its payload.
const HEADER: u64 = 40;

/// From host to host, ps.
fn way(wire: u64) -> u64 {
    2 * (BYTE * wire + 5_000_000)
}

fn us(us: u64) -> u64 {
    us * 1_000_000
}

fn at(ps: u64) -> Time {
    Time::from_ps(ps)
}

fn rack(hosts: u32, rest: &str) -> String {
    format!(
        "version = 1\ntitle = 'apps'\n[topology]\nkind = 'rack'\nhosts = {hosts}\nrate = '10Gbps'\n\
         delay = '5us'\n[port.host]\nbuffer = 'unlimited'\n[transport]\nhandshake = false\n{rest}"
    )
}

#[track_caller]
fn latencies(run: &Run) -> Vec<u64> {
    let done = |message: &MessageRecord| {
        let latency = message.latency().expect("every message completes");
        assert_eq!(message.split.total(), latency);
        latency.as_ps()
    };
    run.messages.iter().map(done).collect()
}

/// Completion times of queries, ps.
#[track_caller]
fn waits(run: &Run) -> Vec<u64> {
    let done = |query: &plimsoll_results::outcome::QueryRecord| {
        (query.completed.expect("every query completes") - query.created).as_ps()
    };
    run.queries.iter().map(done).collect()
}

#[test]
fn a_ping_takes_both_ways() {
    for over in ["datagram", "tcp"] {
        let ping = format!("kind = 'ping'\nto = 'h1'\ninterval = '100us'\ncount = 10\nover = '{over}'");
        let run = run(&rack(3, &format!("[workload.p]\n{ping}\nstart = '7us'\n")));
        assert_eq!(latencies(&run), [2 * way(64 + HEADER); 10], "{over}");
        let created: Vec<Time> = run.messages.iter().map(|message| message.created).collect();
        let expected: Vec<Time> = (0..10).map(|k| at(us(7) + k * us(100))).collect();
        assert_eq!(created, expected);
        assert!(run.messages.iter().all(|message| message.latency() == Some(message.ideal)));
    }
}

/// On an idle network the latency of a request of one packet has its size. Requests of one size leave the other draws
/// as they are.
#[test]
fn sizes_of_requests_are_drawn_beside_those_of_responses() {
    let of = |request: &str| {
        let sizes =
            format!("request = {request}\nresponse = {{ kind = 'uniform', min = '100B', max = '200B' }}");
        run(&rack(2, &format!("[workload.w]\nkind = 'rpc'\n{sizes}\nload = '1Mbps'\ncount = 50\n")))
    };
    let (one, many) = (of("'100B'"), of("{ kind = 'uniform', min = '100B', max = '900B' }"));
    let responses = |run: &Run| run.messages.iter().map(|message| message.bytes).collect::<Vec<_>>();
    let created = |run: &Run| run.messages.iter().map(|message| message.created).collect::<Vec<_>>();
    assert_eq!((responses(&one), created(&one)), (responses(&many), created(&many)));
    let requests = latencies(&many).into_iter().zip(responses(&many)).map(|(latency, response)| {
        let request = latency - way(response + HEADER);
        (100..=900).find(|bytes| way(bytes + HEADER) == request).expect("one packet of 100 to 900 bytes")
    });
    assert!(requests.collect::<BTreeSet<_>>().len() > 30);
}

#[test]
fn pings_go_out_whatever_became_of_the_last_unless_told_otherwise() {
    let round = 2 * way(64 + HEADER);
    for (one, gap) in [(false, us(1)), (true, round)] {
        let ping = format!("kind = 'ping'\nto = 'h1'\ninterval = '1us'\ncount = 4\none_at_a_time = {one}");
        let run = run(&rack(2, &format!("[workload.p]\n{ping}\n")));
        assert_eq!(latencies(&run), [round; 4]);
        let created: Vec<Time> = run.messages.iter().map(|message| message.created).collect();
        assert_eq!(created, (0..4).map(|k| at(k * gap)).collect::<Vec<_>>());
    }
}

#[test]
fn a_lost_ping_is_lost_and_the_next_one_goes() {
    let text = "[port.switch]\nbuffer = '3 packets'\n\
                [workload.noise]\nkind = 'packets'\nfrom = 'h2..h3'\nto = 'h1'\nsize = '1500B'\nload = 0.9\n\
                count = 3000\n\
                [workload.p]\nkind = 'ping'\nto = 'h1'\ninterval = '5us'\none_at_a_time = true\ncount = 100\n";
    let run = run(&rack(4, text));
    let pings: Vec<&MessageRecord> = run.of("p").collect();
    let lost = pings.iter().filter(|message| message.completed.is_none()).count();
    assert_eq!(pings.len(), 100);
    assert!(lost > 10 && lost < 90, "{lost} lost");
    for pair in pings.windows(2) {
        assert!(pair[1].created >= pair[0].completed.unwrap_or(pair[0].created) + Span::ZERO);
    }
}

#[test]
fn a_closed_loop_waits_serves_and_thinks() {
    let asks = |more: &str| {
        let text = "[workload.c]\nkind = 'closed-loop'\nservers = 'h1'\nservice = '7us'\n";
        run(&rack(2, &format!("{text}{more}\n")))
    };
    let (there, back) = (way(100 + HEADER), way(1_000 + HEADER));
    let alone = there + us(7) + back;
    let one = asks("outstanding = 1\ncount = 5\nthink = '3us'");
    assert_eq!(latencies(&one), [alone; 5]);
    let created: Vec<Time> = one.messages.iter().map(|message| message.created).collect();
    assert_eq!(created, (0..5).map(|k| at(k * (alone + us(3)))).collect::<Vec<_>>());
    // One thread serves the second request after the first.
    let queued = asks("outstanding = 2\ncount = 2");
    assert_eq!(latencies(&queued), [alone, alone + us(7)]);
    assert_eq!(queued.messages[1].split.service, Span::from_ps(us(14) - BYTE * 140));
    // Of two threads the second answers while the first answer is on the wire.
    assert_eq!(latencies(&asks("outstanding = 2\ncount = 2\nthreads = 2")), [alone, alone + BYTE * 1_040]);
}

#[test]
fn each_reducer_fetches_from_each_mapper_in_each_wave() {
    let one = run(&rack(
        2,
        "[workload.s]\nkind = 'shuffle'\nmappers = 'h1'\nreducers = 'client'\nsize = '1KB'\nwaves = 3\n\
         pause = '10us'\n",
    ));
    let transfer = way(100 + HEADER) + way(1_000 + HEADER);
    assert_eq!(latencies(&one), [transfer; 3]);
    assert_eq!(waits(&one), [3 * transfer + 2 * us(10)]);

    let text = "[workload.s]\nkind = 'shuffle'\nsize = { kind = 'exponential', mean = '20KB' }\nwaves = 2\n\
                parallel = 2\n";
    let all = run(&rack(5, text));
    let mut pairs: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for message in &all.messages {
        *pairs.entry((message.source, message.destination)).or_default() += 1;
    }
    assert_eq!(pairs.len(), 20);
    assert!(pairs.iter().all(|((a, b), waves)| a != b && *waves == 2), "{pairs:?}");
    for message in &all.messages {
        let at_once = all.messages.iter().filter(|other| {
            other.source == message.source
                && other.created <= message.created
                && other.completed.unwrap() > message.created
        });
        assert!(at_once.count() <= 2, "{message:?}");
    }
    let last = all.messages.iter().filter_map(|message| message.completed).max();
    assert_eq!((all.queries[0].created, all.queries[0].completed), (Time::ZERO, last));
}

#[test]
fn a_barrier_is_as_slow_as_its_last_report() {
    let wire = 64 + HEADER;
    let star = |more: &str| run(&rack(4, &format!("[workload.b]\nkind = 'barrier'\nrounds = 6\n{more}\n")));
    // Three releases leave one after the other; the reports keep that distance.
    let round = 2 * way(wire) + 2 * BYTE * wire;
    assert_eq!(waits(&star("")), [round; 6]);
    assert_eq!(waits(&star("compute = '9us'")), [round + us(9); 6]);
    let run = star("");
    assert_eq!(run.queries[0].response_min, Span::from_ps(2 * way(wire)));
    assert_eq!(run.queries[5].created, at(5 * round));
}

#[test]
fn all_workers_tell_all() {
    let text = "ack_every = 1\n[workload.b]\nkind = 'barrier'\npattern = 'all-to-all'\nworkers = 'all'\nrounds = 4\n";
    let two = run(&rack(2, text));
    // From the second round on, the acknowledgement of the other's message goes first.
    let (first, later) = (way(64 + HEADER), way(64 + HEADER) + BYTE * HEADER);
    assert_eq!(waits(&two), [first, later, later, later]);
    let six = run(&rack(6, text));
    assert_eq!(six.queries.len(), 4);
    for (query, next) in six.queries.iter().zip(&six.queries[1..]) {
        // No host enters a round before another has passed the last one, nor long after all have.
        assert!(next.created > query.created && next.created <= query.completed.unwrap());
    }
}

#[test]
fn a_commit_is_two_round_trips_whatever_carries_it() {
    let wire = 16 + HEADER;
    let phase = 2 * way(wire) + 2 * BYTE * wire;
    for over in ["tcp", "datagram", "broadcast"] {
        let text = format!("[workload.c]\nkind = 'commit'\nover = '{over}'\ncount = 5\n");
        let run = run(&rack(4, &text));
        assert_eq!(waits(&run), [2 * phase; 5], "{over}");
        assert_eq!(run.queries[4].created, at(4 * 2 * phase));
    }
}

#[test]
fn a_broadcast_fills_the_pipe_and_one_datagram_at_a_time_does_not() {
    let rate = |over: &str, depth: u32| {
        let text = format!("[workload.c]\nkind = 'commit'\nover = '{over}'\ndepth = {depth}\ncount = 400\n");
        let run = run(&rack(4, &text));
        assert!(run.queries.iter().all(|query| query.completed.is_some()));
        400.0 / run.queries.iter().filter_map(|query| query.completed).max().unwrap().as_secs_f64()
    };
    let (one, datagram, broadcast) = (rate("broadcast", 1), rate("datagram", 8), rate("broadcast", 8));
    assert!(broadcast > 7.0 * one, "{broadcast} {one}");
    // Two messages to each participant, one at a time: two round trips a transaction.
    assert!(datagram < 1.1 * one && datagram > 0.9 * one, "{datagram} {one}");
}

#[test]
fn lost_datagrams_are_sent_again_and_lost_broadcasts_give_up() {
    let noise = "[port.switch]\nbuffer = '3 packets'\n[workload.noise]\nkind = 'packets'\nfrom = 'h3..h4'\n\
                 to = 'h1'\nsize = '1500B'\nload = 0.9\ncount = 3000\n";
    let with = |over: &str| {
        let commit = format!("kind = 'commit'\nparticipants = 'h1..h2'\nover = '{over}'\ntimeout = '200us'");
        run(&rack(5, &format!("{noise}[workload.c]\n{commit}\ncount = 40\n")))
    };
    let again = with("datagram");
    assert!(again.queries.len() == 40 && again.queries.iter().all(|query| query.completed.is_some()));
    assert!(again.extra[0].retries > 0 && again.extra[0].bytes == 16 * again.extra[0].retries);
    let given_up = with("broadcast");
    let unfinished = given_up.queries.iter().filter(|query| query.completed.is_none()).count();
    assert!(given_up.queries.len() == 40 && unfinished > 0 && unfinished < 40, "{unfinished}");
    assert!(given_up.extra.is_empty());
}

#[test]
fn pages_wait_for_what_their_order_says() {
    let retrieval = way(100 + HEADER) + us(7) + way(1_000 + HEADER);
    let page = |order: &str| {
        let text = "[workload.p]\nkind = 'pages'\npages_per_second = 100.0\ncount = 3\nservice = '7us'\nsize = '1KB'\n";
        run(&rack(2, &format!("{text}{order}\n")))
    };
    let one_by_one = page("order = 'sequential'\nretrievals = 4");
    assert_eq!(latencies(&one_by_one), [retrieval; 12]);
    assert_eq!(waits(&one_by_one), [4 * retrieval; 3]);
    // All at once, of one server with one thread: its service is the bottleneck.
    assert_eq!(waits(&page("retrievals = 4")), [retrieval + 3 * us(7); 3]);
    let graph = page("order = 'graph'\nlevels = [1, 3, 2]");
    assert_eq!(waits(&graph), [3 * retrieval + 3 * us(7); 3]);
    assert!(graph.queries.iter().all(|query| (query.servers, query.in_deadline) == (6, 6)));
}

#[test]
fn a_page_at_its_deadline_is_done_with_what_it_has() {
    let text = "[workload.p]\nkind = 'pages'\npages_per_second = 100.0\ncount = 3\nservice = '100us'\nsize = '1KB'\n\
                retrievals = 4\ndeadline = '250us'\n";
    let run = run(&rack(2, text));
    // Answers come every 100 us from 120 us on, so that two are in time.
    assert_eq!(waits(&run), [us(250); 3]);
    assert!(run.queries.iter().all(|query| (query.servers, query.in_deadline) == (4, 2)));
    let late = latencies(&run).into_iter().filter(|latency| *latency > us(250)).count();
    assert_eq!((run.messages.len(), late), (12, 6), "late answers are messages nonetheless");
}

#[test]
fn retries_and_replicas_are_counted_as_extra_load() {
    let text = "[workload.p]\nkind = 'pages'\nback_ends = 'h1..h4'\npages_per_second = 100.0\ncount = 5\n\
                service = '1ms'\nsize = '1KB'\nretrievals = 1\n";
    let first = way(100 + HEADER) + us(1_000) + way(1_000 + HEADER);
    let retried = run(&rack(5, &format!("{text}timeout = '100us'\nretries = 3\n")));
    assert_eq!(latencies(&retried), [first; 5], "the first to be asked is the first to answer");
    let extra = retried.extra[0];
    assert_eq!((extra.retries, extra.replicas, extra.bytes), (15, 0, 15_000));
    let both = run(&rack(5, &format!("{text}timeout = '100us'\nretries = 1\nreplicas = 2\n")));
    let extra = both.extra[0];
    assert_eq!((extra.retries, extra.replicas, extra.bytes), (5, 10, 15_000));
    assert_eq!(run(&rack(5, text)).extra, []);
}

#[test]
fn replicated_reads_take_the_faster_of_two() {
    let page = |more: &str| {
        let text = "[workload.p]\nkind = 'pages'\nback_ends = 'h1..h8'\npages_per_second = 100.0\ncount = 400\n\
                    service = { kind = 'exponential', mean = '100us' }\nsize = '1KB'\nretrievals = 1\n";
        let run = run(&rack(9, &format!("{text}{more}")));
        latencies(&run).iter().sum::<u64>() as f64 / 400.0 / 1e6
    };
    // The least of two exponentials has half the mean; the ways take 21.9 us.
    let (one, two) = (page(""), page("replicas = 2\n"));
    assert!((one - 121.9).abs() < 15.0 && (two - 71.9).abs() < 9.0, "{one} us, {two} us");
    let retried = page("timeout = '150us'\nretries = 2\n");
    assert!(retried < one && retried > two, "{retried} us");
}

#[test]
fn clocks_on_an_idle_network_agree() {
    let run = run(&rack(4, "[workload.c]\nkind = 'ptp'\ninterval = '100us'\ncount = 20\n"));
    assert_eq!(run.observations.len(), 60);
    assert!(run.observations.iter().all(|seen| seen.value.is_zero()));
    assert_eq!(run.workloads[0].observed.as_deref(), Some("clock offset"));
    assert!(run.messages.is_empty() && run.queries.is_empty());
}

#[test]
fn a_queue_on_one_way_moves_the_clock_by_half() {
    // Every 2.4 us a packet of 1.2 us goes to h1. The first is on the switch's link from 8.6 us to 9.8 us; the
    // sync comes there at 8.7 us and so is 1.1 us late.
    let text = "[workload.noise]\nkind = 'packets'\nfrom = 'h2'\nto = 'h1'\nsize = '1500B'\nload = 0.5\n\
                arrivals = 'constant'\ncount = 20\n\
                [workload.c]\nkind = 'ptp'\nclients = 'h1'\ninterval = '1s'\ncount = 1\nstart = '3632.8ns'\n";
    let run = run(&rack(3, text));
    let seen: Vec<Span> = run.observations.iter().map(|seen| seen.value).collect();
    assert_eq!(seen, [Span::from_ns(550)]);
}

#[test]
fn a_lost_exchange_is_not_waited_for() {
    let text = "[port.switch]\nbuffer = '3 packets'\n[workload.noise]\nkind = 'packets'\nfrom = 'h2..h3'\n\
                to = 'h1'\nsize = '1500B'\nload = 0.6\ncount = 3000\n\
                [workload.c]\nkind = 'ptp'\nclients = 'h1'\ninterval = '20us'\ncount = 100\n";
    let run = run(&rack(4, text));
    assert!(run.observations.len() > 10 && run.observations.len() < 90, "{}", run.observations.len());
}

proptest! {
    #![proptest_config(config(24))]

    /// In a closed loop without thinking every answer but the last ones is a request's beginning.
    #[test]
    fn a_closed_loop_keeps_its_requests_in_flight(
        clients in 1u32..4,
        outstanding in 1u32..20,
        threads in 1u32..4,
        connections in prop::sample::select(vec!["long-lived", "per-message"]),
        seed in 0u64..1_000,
    ) {
        let text = format!(
            "connections = '{connections}'\n[port.switch]\nbuffer = '20 packets'\n[run]\nseed = {seed}\n\
             [workload.c]\nkind = 'closed-loop'\nclients = 'h0..h{}'\nservers = 'h4..h5'\npick = 'random'\n\
             outstanding = {outstanding}\nthreads = {threads}\ncount = 200\n\
             service = {{ kind = 'exponential', mean = '3us' }}\n\
             response = {{ kind = 'exponential', mean = '4KB' }}\n",
            clients - 1
        );
        let run = run(&rack(6, &text));
        prop_assert_eq!(latencies(&run).len(), 200 * clients as usize);
        for client in 0..clients {
            let mine: Vec<&MessageRecord> = run.messages.iter().filter(|m| m.source == client).collect();
            let mut begins: Vec<Time> = mine.iter().map(|m| m.created).collect();
            let mut ends: Vec<Time> = mine.iter().filter_map(|m| m.completed).collect();
            begins.sort_unstable();
            ends.sort_unstable();
            let in_flight = outstanding as usize;
            prop_assert!(begins[..in_flight].iter().all(|begin| *begin == Time::ZERO));
            prop_assert_eq!(&begins[in_flight..], &ends[..200 - in_flight]);
        }
    }

    /// Whatever is lost, every retrieval is a message and every page a query, with no more in it than it asked for.
    #[test]
    fn pages_lose_nothing(
        buffer in 2u32..30,
        replicas in 1u32..4,
        levels in prop::collection::vec(1u32..6, 1..4),
        limited in any::<bool>(),
        connections in prop::sample::select(vec!["long-lived", "per-message"]),
        seed in 0u64..1_000,
    ) {
        let limit = if limited { "deadline = '2ms'\ntimeout = '300us'\n" } else { "" };
        let text = format!(
            "min_rto = '1ms'\nconnections = '{connections}'\n[port.switch]\nbuffer = '{buffer} packets'\n\
             [run]\nseed = {seed}\n[workload.p]\nkind = 'pages'\nfront_ends = 'h0..h1'\norder = 'graph'\n\
             levels = {levels:?}\nreplicas = {replicas}\npages_per_second = 2000.0\ncount = 30\n{limit}"
        );
        let run = run(&rack(6, &text));
        let retrievals: u32 = levels.iter().sum();
        prop_assert_eq!(run.messages.len(), 60 * retrievals as usize);
        prop_assert_eq!(run.queries.len(), 60);
        latencies(&run);
        for query in &run.queries {
            let mine = run.messages.iter().filter(|message| message.query == Some(query.index));
            let in_time = mine.filter(|m| !limited || m.latency().unwrap() < Span::from_ms(2)).count();
            prop_assert_eq!(query.in_deadline as usize, in_time);
            prop_assert!(limited || query.in_deadline == retrievals);
            prop_assert!(query.completed.is_some());
        }
        let extra = run.extra.iter().map(|extra| extra.replicas).sum::<u64>();
        prop_assert!(extra >= 60 * u64::from(retrievals) * u64::from(replicas - 1));
    }
}

/// All of them at once, with losses and marks.
const ALL: &str = "
version = 1
title = 'all applications'
[run]
duration = '5ms'
drain = '200ms'
[topology]
kind = 'leaf-spine'
leaves = 2
spines = 2
hosts_per_leaf = 4
rate = '1Gbps'
delay = '2us'
[port.switch]
buffer = '20 packets'
ecn = { threshold = '10 packets' }
[transport]
kind = 'dctcp'
min_rto = '1ms'
[workload.ping]
kind = 'ping'
to = 'h5'
interval = '50us'
arrivals = 'poisson'
[workload.cache]
kind = 'closed-loop'
clients = 'h0..h1'
servers = 'h4..h5'
outstanding = 4
pick = 'random'
response = { kind = 'exponential', mean = '1KB' }
service = { kind = 'gamma', shape = 0.7, scale = '20us' }
think = { kind = 'exponential', mean = '10us' }
[workload.shuffle]
kind = 'shuffle'
size = '20KB'
[workload.barrier]
kind = 'barrier'
compute = { kind = 'exponential', mean = '5us' }
[workload.commit]
kind = 'commit'
over = 'datagram'
timeout = '200us'
depth = 3
[workload.pages]
kind = 'pages'
front_ends = 'h2..h3'
pages_per_second = 2000.0
order = 'graph'
levels = [1, 4, 2]
deadline = '5ms'
timeout = '500us'
replicas = 2
[workload.clock]
kind = 'ptp'
interval = '100us'
[variant.first]
[variant.second]
transport.kind = 'tcp'
[variant.per-message]
transport.connections = 'per-message'
[variant.general]
port.switch.engine = 'general'
port.host.engine = 'general'
";

#[test]
fn a_run_repeats_and_does_not_depend_on_the_engine() {
    let first = run_variant(ALL, "first");
    assert!(first.counters.switch_drops > 0 && first.counters.marks > 0);
    assert_eq!(first.digest(), run_variant(ALL, "first").digest());
    assert_eq!(first.digest(), run_variant(ALL, "general").digest());
    assert_ne!(first.digest(), run_variant(ALL, "second").digest());
    run_variant(ALL, "per-message");
}

/// The random numbers of a request depend on the request alone, so that variants can be compared by pairs.
#[test]
fn every_variant_meets_the_same_requests() {
    let variants = ["first", "second", "per-message"].map(|name| run_variant(ALL, name));
    for name in ["cache", "pages", "shuffle"] {
        let [first, others @ ..] = variants.each_ref().map(|run| {
            // A retrieval of replicated reads may be answered by either of two.
            let to = |message: &MessageRecord| if name == "pages" { 0 } else { message.destination };
            let drawn = run.of(name).map(|message| (message.index, (to(message), message.bytes)));
            drawn.collect::<BTreeMap<_, _>>()
        });
        for other in others {
            let common = first.keys().filter(|index| other.contains_key(index)).count();
            assert!(common > 20, "{name}: {common}");
            assert!(first.iter().all(|(index, drawn)| other.get(index).is_none_or(|o| o == drawn)), "{name}");
        }
    }
}

/// Returns a rack of three hosts with a list of requests, whose rows come after the line of columns.
fn listed(rows: &str) -> String {
    let columns = "connection,start,think,client,server,request,response,service,class";
    rack(
        3,
        &format!(
            "[workload.w]\nkind = 'request-list'\npath = 'w.csv'\n\
             [files.'w.csv']\ntext = \"\"\"\n{columns}\n{rows}\"\"\"\n"
        ),
    )
}

/// A request of 100 B and a response of 900 B take the way of each and the service; the next one follows after its
/// think time, whatever the service, and a server works on several requests at once.
#[test]
fn listed_requests_start_at_their_times_or_after_responses() {
    let rows = "7,1ms,,h0,h2,100B,900B,20us,a\n7,,50us,h0,h2,100B,900B,30us,a\n7,2ms,,h0,h2,100B,900B,0s,b\n\
                8,1005us,,h1,h2,100B,900B,20us,\n";
    let run = run(&listed(rows));
    let both = way(100 + HEADER) + way(900 + HEADER);
    let starts: Vec<Time> = run.messages.iter().map(|message| message.created).collect();
    let first = both + us(20);
    let mut expected = vec![(at(us(1_000)), first), (at(us(1_005)), first)];
    expected.push((at(us(1_000) + first + us(50)), both + us(30)));
    expected.push((at(us(2_000)), both));
    let mut found: Vec<(Time, u64)> = starts.into_iter().zip(latencies(&run)).collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    let indices: Vec<u64> = run.messages.iter().map(|message| message.index).collect();
    assert_eq!(indices.iter().copied().collect::<BTreeSet<_>>(), (0..4).collect());
}

#[test]
fn lists_of_requests_name_the_place_of_an_error() {
    for (rows, problem) in [
        ("0,,5us,h0,h1,1B,1B,0s,\n", "connection 0 has no request before this one"),
        ("0,1us,5us,h0,h1,1B,1B,0s,\n", "both a start and a think time"),
        ("0,0s,,h0,h1,1B,1B,0s,\n0,,1us,h0,h2,1B,1B,0s,\n", "connection 0 is between other hosts"),
        ("x,0s,,h0,h1,1B,1B,0s,\n", "\"x\" is no number of a connection"),
        ("0,0s,,h0,h0,1B,1B,0s,\n", "a request from a host to itself"),
        ("0,0s,,h0,h9,1B,1B,0s,\n", "there is no host \"h9\""),
        ("0,0s,,h0,h1,1B,0B,0s,\n", "a response without bytes"),
        ("0,0s,,h0,h1,1B,1B,0s\n", "8 columns"),
    ] {
        let errors = Scenario::parse("inline", &listed(rows), Path::new(".")).unwrap_err();
        let text = errors.iter().map(ToString::to_string).collect::<String>();
        assert!(text.contains(problem) && text.contains("w.csv"), "{rows}: {text}");
    }
}

#[test]
fn shipped_examples_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/apps");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let scenario = Scenario::load_with(path, &Overrides::default()).unwrap();
        files += 1;
        for point in scenario.points() {
            let outcome = plimsoll_sim::run(&point.model, &mut |_| true).unwrap();
            for (number, info) in outcome.workloads.iter().enumerate() {
                let number = number as u16;
                let seen = outcome.messages.iter().any(|message| message.workload == number)
                    || outcome.queries.iter().any(|query| query.workload == number)
                    || outcome.observations.iter().any(|seen| seen.workload == number);
                let endless = info.kind == "flows";
                assert!(seen || endless, "{} of {}", info.name, scenario.title());
            }
        }
    }
    assert_eq!(files, 14);
}

/// Programs are for emulated hosts: a simulation runs the rest, and says that it lacks them.
#[test]
fn programs_are_not_simulated() {
    let run = run(&rack(
        2,
        "[run]\nduration = '1ms'\n[workload.echo]\nkind = 'ping'\nto = 'h1'\ninterval = '100us'\n\
         [[program]]\nhost = 'h0'\ncommand = 'iperf3 -s'\n",
    ));
    assert_eq!(run.messages.len(), 10);
    assert_eq!(
        run.warnings,
        [
            "`program`: 1 in the scenario, not simulated, and neither is what it sends: `plimsoll emulate` runs it"
        ]
    );
}
