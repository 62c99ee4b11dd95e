//! Completion times on idle links, to the picosecond.
//!
//! The expectation is a tandem of first-come-first-served servers, nothing else:
//!
//! ```text
//! finish(packet, link) = max(arrival(packet, link), finish(packet before, link)) + size x 8 / rate
//! ```
//!
//! At rates without a whole number of 2^-20 ps a byte (3 Gb/s here) a packet may take one picosecond
//! more on each link, never less.

use plimsoll_results::outcome::MessageRecord;
use plimsoll_units::Span;

use crate::truth::lab::{run, run_variant};

/// A link of a path: bits per second, propagation in nanoseconds.
type Link = (u64, u64);

/// Picoseconds that `bytes` take on a link: rounded up, since no bit is there before it is.
fn wire(bytes: u64, bps: u64) -> u64 {
    (bytes * 8 * 1_000_000_000_000).div_ceil(bps)
}

/// When each of `packets` (handed to the first link when, how large) reaches the end of `path`; ps.
fn tandem(packets: &[(u64, u64)], path: &[Link]) -> Vec<u64> {
    let mut at: Vec<u64> = packets.iter().map(|(handed_over, _)| *handed_over).collect();
    for (bps, propagation_ns) in path {
        let mut free = 0;
        for (at, (_, bytes)) in at.iter_mut().zip(packets) {
            free = (*at).max(free) + wire(*bytes, *bps);
            *at = free + propagation_ns * 1000;
        }
    }
    at
}

/// When the last of `sizes`, handed over together at `start`, reaches the end of `path`; ps.
fn burst(start: u64, sizes: &[u64], path: &[Link]) -> u64 {
    let packets: Vec<(u64, u64)> = sizes.iter().map(|size| (start, *size)).collect();
    *tandem(&packets, path).last().unwrap()
}

const G: u64 = 1_000_000_000;

/// Two hosts of a topology, and the links between them.
struct Place {
    topology: String,
    from: &'static str,
    to: &'static str,
    path: Vec<Link>,
}

impl Place {
    fn back(&self) -> Vec<Link> {
        self.path.iter().rev().copied().collect()
    }

    /// How much later than the arithmetic a message of `packets` packets may be; ps.
    fn rounding(&self, packets: usize) -> u64 {
        let inexact = self.path.iter().filter(|(bps, _)| *bps == 3 * G).count();
        (inexact * packets) as u64
    }

    #[track_caller]
    fn assert(&self, message: &MessageRecord, packets: usize, picoseconds: u64) {
        let (got, expected) = (message.latency().unwrap(), Span::from_ps(picoseconds));
        let latest = expected + Span::from_ps(self.rounding(packets));
        assert!((expected..=latest).contains(&got), "{got} instead of {expected}: {message:?}");
        assert_eq!(message.split.total(), got);
    }
}

fn places() -> Vec<Place> {
    let mut places = Vec::new();
    let mut place = |topology: &str, from, to, path| {
        places.push(Place { topology: topology.to_owned(), from, to, path });
    };
    for (rate, bps) in [("1Gbps", G), ("10Gbps", 10 * G), ("3Gbps", 3 * G), ("400Gbps", 400 * G)] {
        let rack = format!("kind = 'rack'\nhosts = 3\nrate = '{rate}'\ndelay = '5us'");
        place(&rack, "h2", "h0", vec![(bps, 5_000); 2]);
        let leaf_spine = format!(
            "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nrate = '{rate}'\n\
             fabric_rate = '40Gbps'\ndelay = '500ns'\nfabric_delay = '700ns'"
        );
        let (edge, fabric) = ((bps, 500), (40 * G, 700));
        place(&leaf_spine, "h1", "h0", vec![edge; 2]);
        place(&leaf_spine, "h3", "h0", vec![edge, fabric, fabric, edge]);
        let fat_tree = format!("kind = 'fat-tree'\nk = 4\nrate = '{rate}'\ndelay = '1us'");
        for (from, links) in [("h1", 2), ("h2", 4), ("h15", 6)] {
            place(&fat_tree, from, "h0", vec![(bps, 1_000); links]);
        }
        let dumbbell = format!(
            "kind = 'dumbbell'\nleft = 2\nright = 2\nrate = '{rate}'\ndelay = '2us'\n\
             bottleneck_rate = '2Gbps'\nbottleneck_delay = '30us'"
        );
        place(&dumbbell, "h3", "h0", vec![(bps, 2_000), (2 * G, 30_000), (bps, 2_000)]);
        place(&dumbbell, "h1", "h0", vec![(bps, 2_000); 2]);
    }
    let graph = "kind = 'file'\npath = 'parking-lot.toml'".to_owned();
    place(&graph, "a", "d", vec![(10 * G, 1_000), (G, 4_000), (2 * G, 5_000), (10 * G, 1_000)]);
    place(&graph, "b", "a", vec![(10 * G, 1_000), (G, 4_000), (10 * G, 1_000)]);
    places
}

#[test]
fn raw_packets() {
    for place in places() {
        let Place { topology, from, to, path } = &place;
        for size in [1, 64, 1500, 9001, 65_535] {
            let run = run(&format!(
                "version = 1\ntitle = 't'\n[topology]\n{topology}\n\
                 [workload.w]\nkind = 'packets'\nfrom = ['{from}']\nto = '{to}'\nsize = '{size}B'\n\
                 load = 1e-3\ncount = 3\n"
            ));
            assert_eq!(run.messages.len(), 3);
            let expected = burst(0, &[size], path);
            for message in &run.messages {
                place.assert(message, 1, expected);
                assert_eq!(Some(message.ideal), message.latency());
            }
        }
    }
}

/// Sizes on the wire of the segments of a message.
fn segments(bytes: u64, segment: u64, header: u64) -> Vec<u64> {
    (0..bytes.div_ceil(segment)).map(|i| segment.min(bytes - i * segment) + header).collect()
}

fn one_message(topology: &str, from: &str, to: &str, bytes: u64, transport: &str) -> String {
    format!(
        "version = 1\ntitle = 't'\n[topology]\n{topology}\n\
         [transport]\nack_every = 1\n{transport}\n\
         [workload.w]\nkind = 'incast'\nfrom = ['{from}']\nto = '{to}'\nsize = '{bytes}B'\nevery = '1s'\n"
    )
}

/// The pool has one connection, which is free again long before the next message, so that none has a handshake; a large
/// message is acknowledged after it was delivered.
#[test]
fn a_pool_gets_its_connection_back() {
    let text = |transport: &str| {
        format!(
            "version = 1\ntitle = 't'\n[run]\nduration = '5ms'\n[topology]\nkind = 'rack'\nhosts = 2\n\
             rate = '10Gbps'\ndelay = '1us'\n[transport]\nack_every = 1\n{transport}\n[workload.w]\nkind = 'incast'\n\
             from = ['h0']\nto = 'h1'\nsize = '100KB'\nevery = '200us'\nrounds = 20\n"
        )
    };
    let times = |transport: &str| -> Vec<_> {
        let outcome = run(&text(transport));
        outcome.messages.iter().map(|message| (message.created, message.completed)).collect()
    };
    let opened = times("handshake = false\nconnections = 'per-message'");
    assert_eq!(opened.len(), 20);
    assert_eq!(times("handshake = true\nconnections = 'per-message'\npool = 1"), opened);
    assert_ne!(times("handshake = true\nconnections = 'per-message'"), opened);
}

#[test]
fn messages_within_the_first_window() {
    for place in places() {
        let Place { topology, from, to, path } = &place;
        for bytes in [1, 1000, 1001, 2500, 64_000] {
            let sizes = segments(bytes, 1000, 40);
            let transport = "segment = '1000B'\nheader = '40B'\ninitial_window = 64\nhandshake = ";
            let opened = run(&one_message(topology, from, to, bytes, &format!("{transport}false")));
            let expected = burst(0, &sizes, path);
            place.assert(&opened.messages[0], sizes.len(), expected);
            let pooled = format!("{transport}true\nconnections = 'per-message'\npool = 1");
            let pooled = run(&one_message(topology, from, to, bytes, &pooled));
            place.assert(&pooled.messages[0], sizes.len(), expected);
            let back = &place.back();
            let established = burst(burst(0, &[40], path), &[40], back);
            let after_ack: Vec<u64> = [40].into_iter().chain(sizes).collect();
            let fresh = run(&one_message(topology, from, to, bytes, &format!("{transport}true")));
            place.assert(&fresh.messages[0], after_ack.len() + 2, burst(established, &after_ack, path));
        }
    }
}

#[test]
fn a_window_that_never_limits_gives_line_rate() {
    // 10 000 full segments and a rest, by the slowest link on the way.
    let (bytes, transport) = (10_000 * 1460 + 77, "initial_window = 20000\nhandshake = false");
    for place in places().into_iter().step_by(3) {
        let Place { topology, from, to, path } = &place;
        let run = run(&one_message(topology, from, to, bytes, transport));
        place.assert(&run.messages[0], 10_001, burst(0, &segments(bytes, 1460, 40), path));
        // The ideal time of a message counts the full segments at the slowest link.
        let slowdown = run.messages[0].latency().unwrap().as_secs_f64() / run.messages[0].ideal.as_secs_f64();
        assert!((0.9999..1.001).contains(&slowdown), "slowdown {slowdown}");
    }
}

/// Slow start from one segment: the ACK of segment k releases segments 2k and 2k + 1.
#[test]
fn slow_start_is_clocked_by_acknowledgements() {
    for place in places() {
        let Place { topology, from, to, path } = &place;
        let back = &place.back();
        let (count, size) = (63, 1040);
        let mut packets: Vec<(u64, u64)> = Vec::new();
        let mut arrivals: Vec<u64> = Vec::new();
        for number in 1..=count {
            let released = if number == 1 {
                0
            } else {
                let acknowledged: Vec<(u64, u64)> =
                    arrivals[..number / 2].iter().map(|at| (*at, 40)).collect();
                *tandem(&acknowledged, back).last().unwrap()
            };
            packets.push((released, size));
            arrivals = tandem(&packets, path);
        }
        let run = run(&one_message(
            topology,
            from,
            to,
            count as u64 * 1000,
            "segment = '1000B'\nheader = '40B'\ninitial_window = 1\nhandshake = false",
        ));
        place.assert(&run.messages[0], 2 * count, *arrivals.last().unwrap());
    }
}

#[test]
fn requests_and_responses() {
    for place in places() {
        let Place { topology, from: server, to: client, path: back } = &place;
        let there = &place.back();
        let run = run(&format!(
            "version = 1\ntitle = 't'\n[topology]\n{topology}\n[transport]\nack_every = 1\n\
             [workload.now]\nkind = 'rpc'\nclient = '{client}'\nservers = ['{server}']\n\
             request = '200B'\nresponse = '5000B'\nload = '1Mbps'\ncount = 3\n\
             [workload.later]\nkind = 'rpc'\nclient = '{client}'\nservers = ['{server}']\nstart = '10s'\n\
             request = '200B'\nresponse = '5000B'\nload = '1Mbps'\ncount = 3\nservice = '700us'\n"
        ));
        let response = segments(5000, 1460, 40);
        let after_ack: Vec<u64> = [40].iter().chain(&response).copied().collect();
        let opened = burst(burst(0, &[40], there), &[40], back);
        for (name, service) in [("now", 0), ("later", 700_000_000)] {
            for message in run.of(name) {
                let asked = match message.index {
                    0 => burst(opened, &[40, 240], there),
                    _ => burst(0, &[240], there),
                };
                // The request's ACK leaves first; a served request's has left long ago.
                let answer: &[u64] = if service == 0 { &after_ack } else { &response };
                place.assert(message, 10, burst(asked + service, answer, back));
                assert_eq!(message.split.service, Span::from_ps(service));
            }
        }
        assert_eq!(run.messages.len(), 6);
    }
}

/// Every server is asked at the same instant; the client's link is one more queue.
#[test]
fn a_fan_out_meets_itself_at_the_client() {
    let servers = 6;
    let run = run(&format!(
        "version = 1\ntitle = 't'\n[topology]\nkind = 'rack'\nhosts = {}\nrate = '1Gbps'\ndelay = '5us'\n\
         [transport]\nack_every = 1\nhandshake = false\n\
         [workload.w]\nkind = 'fan-out'\nrequest = '100B'\nresponse = '2800B'\nqueries_per_second = 10.0\ncount = 4\n",
        servers + 1
    ));
    let mut at_client = Vec::new();
    for server in 0..servers {
        let asked = burst(0, &vec![140; server + 1], &[(G, 5_000)]) + wire(140, G) + 5_000_000;
        let answer: Vec<(u64, u64)> = [40, 1500, 1380].iter().map(|size| (asked, *size)).collect();
        let at_switch = tandem(&answer, &[(G, 5_000)]);
        at_client.extend(at_switch.iter().zip(&answer).map(|(at, (_, size))| (*at, *size, server)));
    }
    at_client.sort_unstable();
    let packets: Vec<(u64, u64)> = at_client.iter().map(|(at, size, _)| (*at, *size)).collect();
    let finished = tandem(&packets, &[(G, 5_000)]);
    for query in &run.queries {
        let latency = query.completed.unwrap() - query.created;
        assert_eq!(latency, Span::from_ps(*finished.last().unwrap()), "{query:?}");
    }
    for message in &run.messages {
        let last =
            at_client.iter().rposition(|(.., server)| *server as u64 == message.index % servers as u64);
        assert_eq!(message.latency(), Some(Span::from_ps(finished[last.unwrap()])), "{message:?}");
    }
    assert_eq!((run.queries.len(), run.messages.len()), (4, 4 * servers));
}

/// Values read in the raw results of the HULL study, with its scenario file.
#[test]
fn hull_small_requests() {
    let text = "version = 1\ninclude = '../../../../scenarios/hull/source.toml'\n\
        [workload.small]\nkind = 'rpc'\nrequest = '100B'\nresponse = '900B'\nload = '0.09Mbps'\ncount = 45\n";
    for variant in ["TCP", "DCTCP-30K", "DCTCP-6K-Pacer", "DCTCP-PQ-Pacer"] {
        let run = run_variant(text, variant);
        for message in run.of("small") {
            // The first on each of the nine connections opens it.
            let expected = Span::from_ns(if message.index < 9 { 59_200 } else { 37_600 });
            assert_eq!(message.latency(), Some(expected), "{variant}: {message:?}");
        }
        assert_eq!(run.messages.len(), 45);
    }
}

#[test]
fn hull_lone_transfers() {
    let text = "version = 1\ninclude = '../../../../scenarios/hull/source.toml'\n\
        [workload.large]\nkind = 'transfer'\nservers = 'h1..h3'\nsize = '10MB'\nload = '2Mbps'\ncount = 9\n";
    for variant in ["TCP", "DCTCP-30K"] {
        let run = run_variant(text, variant);
        for message in run.of("large") {
            // The first on a connection overruns its own NIC queue in slow start, and waits for the timer.
            let expected_ms = if message.index < 3 { 97.50 } else { 83.42 };
            let got_ms = message.latency().unwrap().as_ms_f64();
            assert!(
                (got_ms / expected_ms - 1.0).abs() < 1e-3,
                "{variant}, transfer {}: {got_ms} ms, published {expected_ms} ms",
                message.index
            );
        }
        assert_eq!(run.messages.len(), 9);
    }
}
