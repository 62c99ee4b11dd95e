//! Groups of partitions that are split while they are hot, and partitions that cross NUMA nodes, with real threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use plimsoll_chronos::{Balancing, Config, Poll, RunningServer, Runtime};
use plimsoll_mechanisms::partition_balancer::{GreedyBalance, NodeBalance, SplitBalance};

use crate::runtime::client::{Client, backends, config, start};
use crate::runtime::service::Logs;

const WAYS: u32 = 4;
const GROUPS: u32 = 4;
const PARTITIONS: u32 = GROUPS * WAYS;
const CONNECTIONS: u32 = 4;
const DEPTH: u32 = 40;

/// As short epochs as can be, and moves by chance too.
fn restless(split: Option<u32>) -> Option<Balancing> {
    let epoch = Duration::from_micros(20);
    Some(Balancing {
        epoch,
        epoch_blocking: epoch,
        epoch_idle: epoch,
        load_min: 0,
        deviations: 0,
        split,
        ..Balancing::default()
    })
}

/// Puts into the partitions of the group whose turn it is, and checks that each reply is there and in its place, until
/// `is_enough`. Returns the number of puts.
fn wander(mut client: Client, connection: u32, rounds: &AtomicU32, is_enough: impl Fn() -> bool) -> u32 {
    /// Rounds of all connections that a group is hot for.
    const TURN: u32 = 64;
    let mut next = [0; PARTITIONS as usize];
    while !is_enough() {
        let group = rounds.fetch_add(1, Ordering::Relaxed) / TURN % GROUPS;
        let (mut requests, mut expected) = (String::new(), Vec::new());
        for number in 0..DEPTH {
            let partition = group * WAYS + number % WAYS;
            let sequence = &mut next[partition as usize];
            requests += &format!("put {partition} {connection} {sequence}\n");
            expected.push(format!("ok {partition} {sequence}"));
            *sequence += 1;
        }
        client.send(&requests);
        expected.iter().for_each(|expected| assert_eq!(&client.line(), expected));
    }
    next.iter().sum()
}

fn stress(server: RunningServer, is_enough: impl Fn(&RunningServer) -> bool + Sync) {
    let rounds = &AtomicU32::new(0);
    let puts: u32 = thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|connection| {
                let client = Client::connect(&server);
                let (server, is_enough) = (&server, &is_enough);
                scope.spawn(move || wander(client, connection, rounds, || is_enough(server)))
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert_eq!(Client::connect(&server).ask("sum"), puts.to_string(), "each ran once");
    server.stop().unwrap();
}

#[test]
fn nothing_is_lost_or_reordered_while_groups_are_split_and_joined() {
    for io in backends() {
        for poll in [Poll::Block, Poll::Spin] {
            let base = Config {
                poll,
                io,
                partitions: Some(PARTITIONS),
                balancing: restless(Some(WAYS)),
                ..config(4)
            };
            for ring_messages in [1, 512] {
                let (server, disorder) = start(&Config { ring_messages, ..base.clone() });
                stress(server, |server| {
                    let counts = server.stats().balance();
                    counts.splits >= 8 && counts.joins >= 4
                });
                assert_eq!(disorder.load(Ordering::Relaxed), 0);
            }
        }
    }
}

/// Groups begin whole, and a hot group does not stay on its thread.
#[test]
fn a_hot_group_is_shared_out() {
    let balancing = Balancing { load_min: 64, deviations: 4, ..restless(Some(WAYS)).unwrap() };
    let config = Config { partitions: Some(PARTITIONS), balancing: Some(balancing), ..config(2) };
    let (server, _) = start(&config);
    let owners = |server: &RunningServer| -> Vec<u32> {
        server.stats().partitions().iter().map(|partition| partition.owner).collect()
    };
    assert_eq!(owners(&server), [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]);
    let mut client = Client::connect(&server);
    let requests = "get 4\nget 5\nget 6\nget 7\n".repeat(16);
    while owners(&server)[4..8].iter().all(|&owner| owner == 1) {
        client.send(&requests);
        (0..64).for_each(|_| assert_eq!(client.line(), "0"));
    }
    assert_eq!(server.stats().balance().splits, 1);
    server.stop().unwrap();
}

/// The limit: a single key is one part of its group, and that part stays whole. Its neighbours may move.
#[test]
fn a_single_hot_key_stays_on_one_thread() {
    let balancing = Balancing { load_min: 64, deviations: 4, ..restless(Some(WAYS)).unwrap() };
    let config =
        Config { poll: Poll::Spin, partitions: Some(PARTITIONS), balancing: Some(balancing), ..config(2) };
    let (server, _) = start(&config);
    let mut client = Client::connect(&server);
    let requests = "get 4\n".repeat(64);
    while server.stats().partitions()[4].load < 20_000 {
        client.send(&requests);
        (0..64).for_each(|_| assert_eq!(client.line(), "0"));
        assert_eq!(server.stats().partitions()[4].owner, 1);
    }
    assert_eq!(server.stats().balance().splits, 1);
    server.stop().unwrap();
}

/// Threads 0 and 1 on one node, 2 and 3 on another, wherever they are.
#[test]
fn nothing_is_lost_or_reordered_while_partitions_cross_nodes() {
    let base = Config { partitions: Some(PARTITIONS), balancing: restless(None), ..config(4) };
    let launch = |policy| {
        let logs = Logs::default();
        let disorder = logs.disorder.clone();
        (Runtime::start_with(logs, &base, policy).unwrap(), disorder)
    };
    let nodes = [0, 0, 1, 1];
    let greedy = NodeBalance::new(&nodes, Some(0), GreedyBalance::default);
    let split = NodeBalance::new(&nodes, Some(0), || SplitBalance::new(WAYS, 0));
    for (server, disorder) in [launch(Box::new(greedy)), launch(Box::new(split))] {
        stress(server, |server| server.stats().balance().crossings >= 20);
        assert_eq!(disorder.load(Ordering::Relaxed), 0);
    }
}

/// A partition that may not cross moves to the other thread of its node, and no farther.
#[test]
fn partitions_stay_in_their_node() {
    let base = Config { partitions: Some(PARTITIONS), balancing: restless(None), ..config(4) };
    let policy = NodeBalance::new(&[0, 1, 0, 1], None, GreedyBalance::default);
    let server = Runtime::start_with(Logs::default(), &base, Box::new(policy)).unwrap();
    let mut client = Client::connect(&server);
    let requests = "get 0\nget 4\nget 8\nget 12\n".repeat(16);
    let is_enough = || {
        let total = server.stats().total();
        total.adopted > 0 && total.own + total.foreign > 20_000
    };
    while !is_enough() {
        client.send(&requests);
        (0..64).for_each(|_| assert_eq!(client.line(), "0"));
        let partitions = server.stats().partitions();
        assert!((0..).zip(&partitions).all(|(partition, stats)| stats.owner % 2 == partition % 2));
    }
    assert_eq!(server.stats().balance().crossings, 0);
    server.stop().unwrap();
}
