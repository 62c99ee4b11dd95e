//! Jobs without a network of packets: times that LogGOPS gives by hand, and those of a server's own links.

use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Rate, Span, Time};

use super::costs::{JobNetwork, MessageCosts, ScaleUp};
use super::engine::{JobConfig, JobSource};
use super::goal::parse_goal;
use super::graph::{GraphBuilder, JobGraph};
use super::repeat::{Repeat, RepeatMode};
use super::schedule::{Algorithm, Collective, CollectiveOperation};
use super::size::JobSize;
use crate::record::{IterationRecord, OperationRecord, Records, RepeatRecord, WaitedAt};
use crate::source::{Actions, Source};

/// LogGOPSim's defaults: L 2,500, o 1,500, g 1,000, G 6 and O 0 ns, S 65,535 B.
const LOGGOPSIM: MessageCosts = MessageCosts {
    latency: Span::from_ns(2_500),
    overhead: Span::from_ns(1_500),
    overhead_per_byte: Span::ZERO,
    gap: Span::from_ns(1_000),
    gap_per_byte: Span::from_ns(6),
    eager: Bytes::new(65_535),
};

fn run(graph: JobGraph, costs: MessageCosts, scale_up: Option<ScaleUp>, iterations: u64) -> Records {
    run_repeating(graph, costs, scale_up, iterations, None)
}

fn run_repeating(
    graph: JobGraph,
    costs: MessageCosts,
    scale_up: Option<ScaleUp>,
    iterations: u64,
    repeat: Option<Repeat>,
) -> Records {
    run_of(config(graph, costs, scale_up, iterations, repeat))
}

fn config(
    graph: JobGraph,
    costs: MessageCosts,
    scale_up: Option<ScaleUp>,
    iterations: u64,
    repeat: Option<Repeat>,
) -> JobConfig {
    JobConfig {
        workload: 0,
        hosts: (0..graph.ranks()).map(HostId).collect(),
        rates: vec![Rate::from_gbps(100); graph.ranks() as usize],
        size: JobSize::of(&graph),
        graph: graph.into(),
        iterations,
        pause: Span::from_us(1),
        start: Time::ZERO,
        until: Time::MAX,
        warmup: Time::ZERO,
        connection_per_message: false,
        network: JobNetwork::Loggops,
        costs,
        scale_up,
        timeline: repeat.is_none(),
        repeat,
    }
}

fn run_of(config: JobConfig) -> Records {
    let mut source = JobSource::new(config);
    let mut actions = Actions::default();
    while source.next_due() < Time::MAX {
        source.on_due(source.next_due(), &mut actions);
    }
    assert!(source.is_finished() && actions.writes.is_empty());
    source.on_end(&mut actions);
    let records = actions.records;
    assert!(records.operations.iter().all(|one| one.began <= one.ended));
    for (query, path) in records.queries.iter().zip(&records.iterations) {
        assert_eq!(query.completed.unwrap() - query.created, path.took);
        assert_eq!(path.split.total(), path.took, "the path is all of the time");
        assert!(path.ideal <= path.took, "{path:?}");
    }
    records
}

/// Simulates a job whole and with replays, and returns what was replayed; the rest is the same.
fn replayed_exactly(
    graph: &JobGraph,
    costs: MessageCosts,
    scale_up: Option<ScaleUp>,
    mode: RepeatMode,
) -> RepeatRecord {
    let mut whole = run(graph.clone(), costs, scale_up, 6);
    let repeat = Repeat { mode, every: 7 };
    let mut replayed = run_repeating(graph.clone(), costs, scale_up, 6, Some(repeat));
    whole.sort();
    replayed.sort();
    // Its own parts of a path are in proportion to those before, where all of a path is simulated otherwise.
    let times = |records: &Records| -> Vec<_> {
        let of = |one: &IterationRecord| (one.index, one.took, one.ideal);
        records.iterations.iter().map(of).collect()
    };
    assert_eq!(times(&replayed), times(&whole));
    assert_eq!(replayed.queries, whole.queries);
    assert_eq!(replayed.ranks, whole.ranks);
    replayed.repeats[0]
}

fn collective(operation: CollectiveOperation, algorithm: Algorithm, ranks: u32, bytes: u64) -> JobGraph {
    let collective =
        Collective { operation, algorithm, bytes, chunks: 1, per_server: 1, reduce_per_byte: Span::ZERO };
    let mut builder = GraphBuilder::new(ranks);
    let members: Vec<u32> = (0..ranks).collect();
    collective.add(&mut builder, &members, &vec![None; ranks as usize], &mut 0);
    builder.finish().unwrap()
}

/// When each rank has ended, in ns.
fn ends(records: &Records) -> Vec<u64> {
    records.ranks.iter().filter(|rank| rank.group == 0).map(|rank| rank.took.as_ps() / 1_000).collect()
}

#[test]
fn loggops_gives_the_times_of_its_simulator() {
    let barrier = collective(CollectiveOperation::Barrier, Algorithm::Dissemination, 16, 1);
    assert_eq!(ends(&run(barrier, LOGGOPSIM, None, 1)), [22_000; 16]);
    let reduce = collective(CollectiveOperation::Reduce, Algorithm::Tree, 8, 1_024);
    let times = [34_914, 24_776, 13_138, 13_138, 1_500, 1_500, 1_500, 1_500];
    assert_eq!(ends(&run(reduce, LOGGOPSIM, None, 1)), times);
}

#[test]
fn a_large_send_ends_when_it_was_taken() {
    let text = |bytes: u64| {
        format!(
            "num_ranks 2\nrank 0 {{\na: send {bytes}b to 1\nb: calc 10\nb requires a\n}}\n\
             rank 1 {{\nc: calc 9000000\nd: recv {bytes}b from 0\nd requires c\n}}\n"
        )
    };
    let small = run(parse_goal(&text(65_535)).unwrap(), LOGGOPSIM, None, 1);
    assert_eq!(ends(&small)[0], 1_510);
    // The receive begins after 9 ms; the sender hears of it 2,500 ns later.
    let large = run(parse_goal(&text(65_536)).unwrap(), LOGGOPSIM, None, 1);
    assert_eq!(ends(&large), [9_002_510, 9_000_000 + 1_500 + 65_535 * 6]);
    // The computation and the receive of rank 1 are the critical path: the message was there before.
    let on_path = |one: &OperationRecord| Some((one.path?, one.rank, one.action));
    let mut path: Vec<_> = large.operations.iter().filter_map(on_path).collect();
    path.sort_unstable();
    assert_eq!(path, [(0, 1, 0), (1, 1, 2)]);
}

#[test]
fn operations_without_dependencies_share_a_stream_and_wait_for_a_beginning() {
    let text = "num_ranks 1\nrank 0 {\na: calc 100\nb: calc 50\nc: calc 70 cpu 1\nd: calc 5 cpu 2\n\
                d irequires b\n}\n";
    let records = run(parse_goal(text).unwrap(), MessageCosts::default(), None, 2);
    // b follows a on stream 0, so d begins at 100; stream 0 is the last to end, at 150.
    assert_eq!(ends(&records), [150, 150]);
    assert_eq!(records.ranks[0].computed, Span::from_ns(150));
    assert_eq!(records.queries[1].created, Time::ZERO + Span::from_ns(1_150));
}

#[test]
fn a_path_over_a_beginning_has_the_time_until_then() {
    let text = "num_ranks 2\nrank 0 {\na: calc 100\nb: calc 50\nc: send 1b to 1 cpu 1\nc irequires b\n\
                d: calc 9 cpu 2\nd irequires c\n}\nrank 1 {\nrecv 1b from 0\n}\n";
    let records = run(parse_goal(text).unwrap(), LOGGOPSIM, None, 1);
    // The send begins with b at 100 ns, takes 1,500, as the receive, and 2,500 between the two.
    assert_eq!(ends(&records), [1_600, 100 + 1_500 + 2_500 + 1_500]);
    assert_eq!(records.iterations[0].split.propagation, Span::from_ns(2_500));
}

#[test]
fn ranks_of_a_server_send_over_its_links() {
    let inside = ScaleUp { ranks: 2, rate: Rate::from_gbps(800), delay: Span::from_ns(500) };
    let text = "num_ranks 4\nrank 0 {\nsend 100000b to 1\nsend 100000b to 1 tag 1\nsend 10b to 2\n}\n\
                rank 1 {\nrecv 100000b from 0\nrecv 100000b from 0 tag 1\n}\n\
                rank 2 {\nrecv 10b from 0\n}\nrank 3 {\n}\n";
    let costs = MessageCosts { latency: Span::from_us(9), ..MessageCosts::default() };
    let without_latency = run(parse_goal(text).unwrap(), MessageCosts::default(), Some(inside), 1);
    let [wait] = without_latency.path_waits[..] else { panic!("{:?}", without_latency.path_waits) };
    assert_eq!((wait.at, wait.waited), (WaitedAt::Server(0), Span::from_us(1)));
    let records = run(parse_goal(text).unwrap(), costs, Some(inside), 1);
    // 1 us each at 800 Gb/s, one after the other, and 0.5 us; the third takes the network.
    assert_eq!(ends(&records), [0, 2_500, 9_000, 0]);
    assert!(records.messages.iter().all(|message| message.split.total() == message.latency().unwrap()));
}

#[test]
fn a_ring_with_replayed_rounds_takes_as_long_as_without() {
    use CollectiveOperation::{AllGather, AllReduce};
    let inside = ScaleUp { ranks: 4, rate: Rate::from_gbps(800), delay: Span::from_ns(500) };
    for mode in [RepeatMode::Exact, RepeatMode::Detect] {
        for (operation, bytes, scale_up) in [
            (AllReduce, 64 * 1_000, None),
            // Messages above S are taken by their receivers before their senders go on.
            (AllGather, 64 * 70_000, None),
            (AllReduce, 64 * 1_000, Some(inside)),
        ] {
            let ring = collective(operation, Algorithm::Ring, 64, bytes);
            let repeats = replayed_exactly(&ring, LOGGOPSIM, scale_up, mode);
            assert_eq!((repeats.iterations, repeats.largest_difference), (6, 0.0), "{mode:?} {operation:?}");
            // Two are simulated, and after one that is replayed on trial another.
            let expected = if mode == RepeatMode::Exact { 4 } else { 3 };
            assert_eq!(repeats.replayed_iterations, expected, "{mode:?}");
            let simulated = repeats.rounds - repeats.replayed_rounds;
            assert!(simulated * 2 < repeats.rounds, "{mode:?} {operation:?}: {repeats:?}");
        }
    }
}

#[test]
fn ranks_that_are_ahead_of_others_stay_so_where_rounds_are_replayed() {
    // Each rank computes for another time in each round, of which the longest holds up all, one after the other.
    let mut builder = GraphBuilder::new(6);
    let mut last: Vec<Option<u32>> = vec![None; 6];
    for round in 0..90 {
        let mut next = last.clone();
        for rank in 0..6 {
            let work = builder.compute(rank, Span::from_ns(100 + 370 * u64::from(rank * 5 % 6)));
            builder.after_all(work, last[rank as usize].as_slice());
            let send = builder.send(rank, (rank + 1) % 6, 1_000 + u64::from(rank), round);
            builder.after(send, work);
        }
        for rank in 0..6 {
            let from = (rank + 5) % 6;
            let receive = builder.receive(rank, from, 1_000 + u64::from(from), round);
            builder.after_all(receive, last[rank as usize].as_slice());
            next[rank as usize] = Some(receive);
        }
        last = next;
    }
    let graph = builder.finish().unwrap();
    for mode in [RepeatMode::Exact, RepeatMode::Detect] {
        let repeats = replayed_exactly(&graph, LOGGOPSIM, None, mode);
        assert!(repeats.replayed_rounds * 2 > repeats.rounds, "{mode:?}: {repeats:?}");
    }
}

#[test]
fn replayed_time_counts_for_the_warm_up_and_for_the_end() {
    let ring = collective(CollectiveOperation::AllReduce, Algorithm::Ring, 64, 64_000);
    let once = run(ring.clone(), LOGGOPSIM, None, 1).iterations[0].took + Span::from_us(1);
    let job = |repeat| JobConfig {
        warmup: Time::ZERO + once * 2,
        // The seventh begins at its last instant, and one more would begin with the run's end.
        until: Time::ZERO + once * 7,
        ..config(ring.clone(), LOGGOPSIM, None, 100, repeat)
    };
    let whole = run_of(job(None));
    let created: Vec<Span> = whole.queries.iter().map(|query| query.created - Time::ZERO).collect();
    assert_eq!(created, [2, 3, 4, 5, 6].map(|iterations| once * iterations));
    for mode in [RepeatMode::Exact, RepeatMode::Detect] {
        let mut replayed = run_of(job(Some(Repeat { mode, every: 7 })));
        replayed.sort();
        assert_eq!(replayed.queries, whole.queries, "{mode:?}");
        let repeats = replayed.repeats[0];
        // Of the five that are recorded, those after two that agree; on trial one, and then the rest.
        let expected = if mode == RepeatMode::Exact { 3 } else { 2 };
        assert_eq!((repeats.iterations, repeats.replayed_iterations), (7, expected), "{mode:?}");
    }
}

#[test]
fn jobs_whose_rounds_differ_are_simulated_whole() {
    for (operation, algorithm) in [
        (CollectiveOperation::AllToAll, Algorithm::Shift),
        (CollectiveOperation::AllReduce, Algorithm::HalvingDoubling),
        (CollectiveOperation::AllReduce, Algorithm::DoubleTree),
    ] {
        let graph = collective(operation, algorithm, 16, 16_000);
        let repeats = replayed_exactly(&graph, LOGGOPSIM, None, RepeatMode::Exact);
        assert_eq!((repeats.replayed_rounds, repeats.replayed_iterations), (0, 4), "{algorithm:?}");
    }
}

#[test]
fn exposed_communication_is_counted_for_each_group_and_with_gaps() {
    let mut builder = GraphBuilder::new(2);
    // Rank 0 computes 5 us, then 5 us more on another stream after a gap in which it waits for a message of group tp.
    let first = builder.compute(0, Span::from_us(5));
    builder.in_group("tp");
    let receive = builder.receive(0, 1, 1, 0);
    builder.after(receive, first);
    builder.in_group("dp").on(1, 0);
    builder.receive(0, 1, 1, 1);
    builder.in_group("").on(0, 0);
    let second = builder.compute(0, Span::from_us(5));
    builder.after(second, receive);
    let wait = builder.compute(1, Span::from_us(8));
    builder.in_group("tp");
    let send = builder.send(1, 0, 1, 0);
    builder.after(send, wait);
    builder.in_group("dp");
    let send = builder.send(1, 0, 1, 1);
    builder.after(send, wait);
    let costs = MessageCosts { latency: Span::from_us(1), ..MessageCosts::default() };
    let records = run(builder.finish().unwrap(), costs, None, 1);
    let of_rank: Vec<_> = records.ranks.iter().filter(|rank| rank.rank == 0).collect();
    // Messages come at 9 us: from 5 to 9 us nothing computes.
    let us = |of: fn(&crate::record::RankRecord) -> Span| -> Vec<u64> {
        of_rank.iter().map(|rank| of(rank).as_ps() / 1_000_000).collect()
    };
    assert_eq!(us(|rank| rank.took), [14, 14, 14]);
    assert_eq!(us(|rank| rank.computed), [10, 10, 10]);
    // All groups, tp from 5 to 9 us, dp from 0 to 9 us.
    assert_eq!(us(|rank| rank.waited), [9, 4, 9]);
    assert_eq!(us(|rank| rank.exposed), [4, 4, 4]);
}
