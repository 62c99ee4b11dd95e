//! Order and completeness while partitions move.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use plimsoll_chronos::{Balancing, Config, Poll, Runtime};
use plimsoll_mechanisms::partition_balancer::Balance;

use crate::runtime::client::{Client, backends, config, start};
use crate::runtime::service::Logs;

/// Moves partitions at random, all the time.
struct Shuffle(u64);

impl Balance for Shuffle {
    fn balance(&mut self, _load: &[u64], _requests: u64, threads: u32, owner: &mut [u32]) {
        for owner in owner {
            // xorshift64
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            *owner = (self.0 >> 33) as u32 % threads;
        }
    }
}

/// As short epochs as can be.
fn restless() -> Option<Balancing> {
    let epoch = Duration::from_micros(20);
    let load_min = 0;
    Some(Balancing { epoch, epoch_blocking: epoch, epoch_idle: epoch, load_min, ..Balancing::default() })
}

const PARTITIONS: u32 = 5;
const ROUNDS: u32 = 100;
const DEPTH: u32 = 40;

/// Sends puts, `DEPTH` a time, to all partitions, and checks that each reply is there and in its place.
fn put_and_check(mut client: Client, connection: u32) {
    let mut next = [0; PARTITIONS as usize];
    let mut random = 88_172_645_463_325_252_u64 ^ u64::from(connection);
    for round in 0..ROUNDS {
        let (mut requests, mut expected) = (String::new(), Vec::new());
        for _ in 0..DEPTH {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let partition = (random >> 40) as u32 % PARTITIONS;
            let sequence = &mut next[partition as usize];
            requests += &format!("put {partition} {connection} {sequence}\n");
            expected.push(format!("ok {partition} {sequence}"));
            *sequence += 1;
        }
        if round % 7 == 3 {
            requests += "sum\n";
        }
        client.send(&requests);
        for expected in expected {
            assert_eq!(client.line(), expected);
        }
        if round % 7 == 3 {
            let least: u32 = next.iter().sum();
            assert!(client.line().parse::<u32>().unwrap() >= least);
        }
    }
}

fn stress(config: &Config) {
    const CONNECTIONS: u32 = 8;
    let logs = Logs::default();
    let disorder = logs.disorder.clone();
    let server = Runtime::start_with(logs, config, Box::new(Shuffle(0x9e37_79b9))).unwrap();
    thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            let client = Client::connect(&server);
            scope.spawn(move || put_and_check(client, connection));
        }
    });
    assert_eq!(disorder.load(Ordering::Relaxed), 0);
    let puts = Client::connect(&server).ask("sum");
    assert_eq!(puts, (CONNECTIONS * ROUNDS * DEPTH).to_string(), "each ran once");
    let total = server.stats().total();
    assert!(total.adopted > 0 && total.foreign > 0, "partitions moved: {total:?}");
    server.stop().unwrap();
}

#[test]
fn nothing_is_lost_or_reordered_while_partitions_move_at_random() {
    for io in backends() {
        for poll in [Poll::Block, Poll::Spin] {
            let base = Config { poll, io, partitions: Some(PARTITIONS), balancing: restless(), ..config(4) };
            stress(&base);
            // Rings of one message: a thread that finds no room must continue to empty its own.
            stress(&Config { ring_messages: 1, ..base.clone() });
            let mut narrow = Config { ring_messages: 2, ..base };
            narrow.limits.under_way = 3;
            stress(&narrow);
        }
    }
}

/// The balancer cannot split one partition: a single hot key stays on one thread, and is as fast as one thread.
#[test]
fn one_hot_partition_stays_on_one_thread() {
    let mut config = Config { poll: Poll::Spin, partitions: Some(8), balancing: restless(), ..config(2) };
    if let Some(balancing) = &mut config.balancing {
        balancing.load_min = 8;
    }
    let (server, _) = start(&config);
    let mut client = Client::connect(&server);
    let hot = 2;
    for sequence in 0..2000 {
        assert_eq!(client.ask(&format!("put {hot} 1 {sequence}")), format!("ok {hot} {sequence}"));
        if sequence % 100 == 0 {
            // A little to the others, so that there is something to move away from the hot one.
            (0..8).filter(|&other| other != hot).for_each(|other| drop(client.ask(&format!("get {other}"))));
        }
    }
    let partitions = server.stats().partitions();
    let all: u64 = partitions.iter().map(|partition| partition.load).sum();
    assert!(partitions[hot as usize].load * 10 > all * 9, "{partitions:?}");
    assert_eq!(partitions.iter().filter(|partition| partition.load > all / 2).count(), 1);
    server.stop().unwrap();
}
