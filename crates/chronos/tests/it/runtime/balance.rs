//! The load balancer: overload moves partitions, and only overload.

use std::time::Duration;

use plimsoll_chronos::{Balancing, Config, LoadMetric, Poll};

use crate::runtime::client::{Client, config, start};

const PARTITIONS: u32 = 8;

fn balanced(poll: Poll, metric: LoadMetric) -> Config {
    let epoch = Duration::from_micros(200);
    let balancing = Balancing {
        epoch,
        epoch_blocking: epoch,
        epoch_idle: epoch,
        load_min: 64,
        metric,
        ..Balancing::default()
    };
    Config { poll, partitions: Some(PARTITIONS), balancing: Some(balancing), ..config(2) }
}

/// All load is on the partitions of thread 0 (the even ones): Algorithm 1 shares them out.
#[test]
fn an_overloaded_thread_gives_partitions_away() {
    for metric in [LoadMetric::Requests, LoadMetric::Bytes, LoadMetric::Nanoseconds] {
        for poll in [Poll::Block, Poll::Spin] {
            let (server, _) = start(&balanced(poll, metric));
            let mut client = Client::connect(&server);
            let hot = [0, 2, 4, 6];
            let requests: String = hot.iter().cycle().take(64).map(|hot| format!("get {hot}\n")).collect();
            let is_shared = || {
                let partitions = server.stats().partitions();
                hot.iter().filter(|&&hot| partitions[hot as usize].owner == 1).count() >= 1
            };
            while !is_shared() {
                client.send(&requests);
                (0..64).for_each(|_| assert_eq!(client.line(), "0"));
            }
            server.stop().unwrap();
        }
    }
}

/// Its thread has nothing else, so no move would relieve it. (Idle partitions behind it may move.)
#[test]
fn the_only_partition_with_load_stays() {
    let (server, _) = start(&balanced(Poll::Spin, LoadMetric::Requests));
    let mut client = Client::connect(&server);
    let requests = "get 3\n".repeat(64);
    while server.stats().partitions()[3].load < 20_000 {
        client.send(&requests);
        (0..64).for_each(|_| assert_eq!(client.line(), "0"));
        assert_eq!(server.stats().partitions()[3].owner, 1);
    }
    server.stop().unwrap();
}

/// Counts that cannot be distinguished from noise move nothing, though one thread has all of the load.
#[test]
fn noise_moves_nothing() {
    let mut config = balanced(Poll::Spin, LoadMetric::Requests);
    config.balancing = config.balancing.map(|balancing| Balancing { deviations: u32::MAX, ..balancing });
    let (server, _) = start(&config);
    let mut client = Client::connect(&server);
    let requests = "get 0\nget 2\n".repeat(32);
    while server.stats().partitions()[2].load < 10_000 {
        client.send(&requests);
        (0..64).for_each(|_| assert_eq!(client.line(), "0"));
    }
    assert_eq!(server.stats().total().adopted, 0);
    server.stop().unwrap();
}

#[test]
fn without_a_balancer_nothing_moves() {
    let config = Config { balancing: None, ..balanced(Poll::Block, LoadMetric::Requests) };
    let (server, _) = start(&config);
    let mut client = Client::connect(&server);
    (0..2000).for_each(|_| assert_eq!(client.ask("get 0"), "0"));
    assert_eq!(server.stats().total().adopted, 0);
    server.stop().unwrap();
}
