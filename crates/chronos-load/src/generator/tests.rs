//! Tests latencies, losses and wrong values with servers of a few lines, on a clock that the test advances.

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::arrivals::LoadArrivals;
use crate::keys::{KeyChoice, KeyText, Popularity};
use crate::placement::{KeyPlacement, Sharding};
use crate::protocol::{Protocol, Texts};
use crate::setup::{LaterCopies, ReplyCheck};
use crate::values::{ValueSizes, Values};

fn setup(change: impl FnOnce(&mut Setup)) -> Arc<Setup> {
    let mut setup = Setup {
        protocol: Protocol::Ascii,
        datagrams: false,
        texts: Texts {
            keys: KeyText::numbered("k", 8, 100).unwrap(),
            values: Values::new(ValueSizes::Fixed(32), 8, true),
            vbuckets: 0,
        },
        choice: KeyChoice::new(Popularity::Uniform, 100, 1),
        get_share: 0.9,
        multi_get: 1,
        shape: Shape::Single,
        later: None,
        placement: KeyPlacement::new(Sharding::Modulo, &["a".to_owned()]),
        seed: 1,
        timeout: Span::from_ms(100),
        check: ReplyCheck::Stored,
        outstanding_max: 1000,
    };
    change(&mut setup);
    Arc::new(setup)
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn phase(pace: Pace, to_us: u64) -> LoadPhase {
    LoadPhase { index: 1, pace, from: Time::ZERO, to: us(to_us) }
}

/// A rate of one request a millisecond.
const EVERY_MS: Pace = Pace::Open(LoadArrivals::Uniform, 1_000.0);

/// A cache that replies to whole requests.
#[derive(Default)]
struct Cache(BTreeMap<Vec<u8>, Vec<u8>>);

impl Cache {
    fn serve(&mut self, mut input: &[u8]) -> Vec<u8> {
        let mut reply = Vec::new();
        while !input.is_empty() {
            let end = input.iter().position(|&byte| byte == b'\n').unwrap();
            let line = std::str::from_utf8(&input[..end - 1]).unwrap();
            let words: Vec<&str> = line.split(' ').collect();
            input = &input[end + 1..];
            if words[0] == "set" {
                let bytes: usize = words[4].parse().unwrap();
                self.0.insert(words[1].into(), input[..bytes].to_vec());
                input = &input[bytes + 2..];
                reply.extend_from_slice(b"STORED\r\n");
                continue;
            }
            for key in &words[1..] {
                if let Some(value) = self.0.get(key.as_bytes()) {
                    reply.extend_from_slice(format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes());
                    reply.extend_from_slice(value);
                    reply.extend_from_slice(b"\r\n");
                }
            }
            reply.extend_from_slice(b"END\r\n");
        }
        reply
    }
}

/// Returns everything that `generator` sends at `now`, by connection.
fn sent(generator: &mut Generator, now: Time) -> Vec<(usize, Vec<u8>)> {
    std::iter::from_fn(|| {
        let link = generator.take_sendable()?;
        let (bytes, datagrams) = generator.output(link, now);
        let (bytes, datagrams) = (bytes.to_vec(), datagrams.len());
        generator.sent(link, bytes.len(), datagrams);
        Some((link, bytes))
    })
    .collect()
}

/// Runs a phase in steps of `step_us` against caches that answer after `delay_us(server, now in us)`, in order.
fn run(
    setup: &Arc<Setup>,
    phase: LoadPhase,
    clients: u32,
    step_us: u64,
    delay_us: impl Fn(usize, u64) -> u64,
) -> Book {
    let mut generator = Generator::new(Arc::clone(setup), phase, 0..clients, 0, 1);
    let servers = setup.placement.servers() as usize;
    let mut caches: Vec<Cache> = (0..servers).map(|_| Cache::default()).collect();
    let mut replies: Vec<VecDeque<(u64, Vec<u8>)>> = vec![VecDeque::new(); generator.links()];
    let mut at = 0;
    loop {
        let now = us(at);
        generator.advance(now);
        for (link, replies) in replies.iter_mut().enumerate() {
            while let Some((_, reply)) = replies.pop_front_if(|(due, _)| *due <= at) {
                generator.receive(link, now, &reply).unwrap();
            }
        }
        for (link, bytes) in sent(&mut generator, now) {
            let server = link % servers;
            let reply = caches[server].serve(&bytes);
            replies[link].push_back((at + delay_us(server, at), reply));
        }
        if generator.is_over(now) {
            return generator.finish();
        }
        at += step_us;
    }
}

/// Returns the latencies in microseconds, in order.
fn latencies(book: &Book) -> Vec<u64> {
    book.latency
        .iter_recorded()
        .flat_map(|step| vec![step.value_iterated_to() / 1_000; step.count_at_value() as usize])
        .collect()
}

#[test]
fn a_stalled_server_is_seen_by_every_request_that_was_due_meanwhile() {
    // Replies arrive after 100 us, but requests sent from 10 ms to 20 ms are answered at 20 ms.
    let stall = |_, at| if (10_000..20_000).contains(&at) { 20_000 - at } else { 100 };
    let book = run(&setup(|_| ()), phase(EVERY_MS, 30_000), 1, 100, stall);
    let mut expected = vec![100; 20];
    expected.extend((1..=10).map(|ms| ms * 1_000));
    // The histogram keeps three digits, so exact values are rounded in the same way.
    let about = latencies(&book);
    assert_eq!(about.len(), expected.len());
    for (found, expected) in about.iter().zip(&expected) {
        assert!(found.abs_diff(*expected) <= expected / 500, "{about:?}");
    }
    assert_eq!(book.counts.completed, 30);
    assert_eq!(book.lag.max(), 1);
}

#[test]
fn a_generator_that_was_away_hides_nothing_and_says_so() {
    let mut generator = Generator::new(setup(|_| ()), phase(EVERY_MS, 20_000), 0..1, 0, 1);
    let mut cache = Cache::default();
    let mut at = 0;
    while !generator.is_over(us(at)) {
        // The generator is not called from 5 ms to 15 ms.
        at = if at == 5_000 { 15_000 } else { at + 100 };
        generator.advance(us(at));
        for (link, bytes) in sent(&mut generator, us(at)) {
            generator.receive(link, us(at), &cache.serve(&bytes)).unwrap();
        }
    }
    let book = generator.finish();
    assert_eq!(book.counts.completed, 20);
    // Operations due at 6 to 14 ms were sent at 15 ms, 1 to 9 ms late; the one due at 0 ms was sent at 0.1 ms.
    let late = latencies(&book);
    let expected: Vec<u64> = [0; 10].into_iter().chain([100]).chain((1..=9).map(|ms| ms * 1_000)).collect();
    assert!(late.iter().zip(&expected).all(|(found, expected)| found.abs_diff(*expected) <= 20), "{late:?}");
    assert_eq!(book.lag.len(), 20);
    assert_eq!(book.lag.max(), book.latency.max());
}

#[test]
fn a_closed_loop_sends_on_reply_and_counts_from_the_sending() {
    let book = run(&setup(|_| ()), phase(Pace::Closed(2), 10_000), 3, 100, |_, _| 500);
    // Six are outstanding for 500 us each: 20 rounds, the last of which ends with the phase.
    assert_eq!(book.counts.due, 6 * 20);
    assert_eq!(book.counts.completed, 6 * 19);
    assert!(latencies(&book).iter().all(|&latency| latency.abs_diff(500) <= 1), "{:?}", latencies(&book));
}

#[test]
fn the_load_phase_stores_every_key_once_and_gets_find_all() {
    let setup = setup(|setup| setup.get_share = 1.0);
    let loaded = run(&setup, LoadPhase { to: Time::MAX, ..phase(Pace::Load(4), 0) }, 3, 100, |_, _| 100);
    assert_eq!(loaded.counts, Counts { due: 100, completed: 100, sets: 100, ..Counts::default() });
}

#[test]
fn values_are_found_right_or_wrong() {
    let setup = setup(|setup| setup.get_share = 0.5);
    let whole = run(&setup, phase(EVERY_MS, 500_000), 2, 100, |_, _| 100);
    let Counts { due, gets, sets, hits, misses, wrong, .. } = whole.counts;
    assert_eq!((due, gets + sets, hits + misses, wrong), (500, 500, gets, 0));
    assert!(hits > 100 && misses > 10, "{:?}", whole.counts);

    // The server now swaps two keys and flips a bit of a third.
    let mut generator = Generator::new(Arc::clone(&setup), phase(EVERY_MS, 500_000), 0..1, 0, 1);
    let mut cache = Cache::default();
    let mut value = Vec::new();
    setup.texts.values.write(1, 0, &mut value);
    value[20] ^= 4;
    let mut expected = 0;
    for at in 0..500 {
        generator.advance(us(at * 1_000));
        for (link, bytes) in sent(&mut generator, us(at * 1_000)) {
            if bytes.starts_with(b"get ") {
                cache.0.insert(bytes[4..12].to_vec(), value.clone());
                expected += 1;
            }
            generator.receive(link, us(at * 1_000), &cache.serve(&bytes)).unwrap();
        }
    }
    let book = generator.finish();
    assert!(expected > 100);
    assert_eq!(book.counts.wrong, expected);
    assert!(
        book.examples[0].contains("it is the value of key number 1; it starts with"),
        "{:?}",
        book.examples
    );
    // A wrong value does not count as a latency.
    assert_eq!(book.latency.len(), 500 - expected);
}

#[test]
fn what_is_cut_short_or_refused_is_counted() {
    let mut generator =
        Generator::new(setup(|setup| setup.get_share = 1.0), phase(EVERY_MS, 5_000), 0..1, 0, 1);
    let mut step = |at, reply: &[u8]| {
        generator.advance(us(at));
        sent(&mut generator, us(at));
        generator.receive(0, us(at), reply)
    };
    step(0, b"END\r").unwrap();
    step(0, b"\n").unwrap();
    step(1_000, b"SERVER_ERROR busy\r\n").unwrap();
    let bad = step(2_000, b"+OK\r\n").unwrap_err();
    assert_eq!(bad, "`+OK` is not a reply to the request");
    step(3_000, b"").unwrap();
    generator.close(0, us(3_500), "the server closed it");
    generator.advance(us(5_000));
    assert!(generator.is_over(us(5_000)));
    let book = generator.finish();
    let expected = Counts {
        due: 5,
        completed: 1,
        lost: 2,
        refused: 1,
        gets: 4,
        misses: 1,
        unsent: 1,
        closed: 1,
        ..Counts::default()
    };
    assert_eq!(book.counts, expected);
}

#[test]
fn datagrams_are_joined_matched_and_given_up() {
    let setup = setup(|setup| (setup.datagrams, setup.get_share) = (true, 1.0));
    let mut generator = Generator::new(Arc::clone(&setup), phase(EVERY_MS, 3_000), 0..1, 0, 1);
    let mut requests = Vec::new();
    for at in [0, 1_000, 2_000] {
        generator.advance(us(at));
        requests.extend(sent(&mut generator, us(at)).into_iter().map(|(_, bytes)| bytes));
    }
    assert_eq!(requests[1][..12], *b"\0\x01\0\0\0\x01\0\0get ");
    let mut reply = b"VALUE ".to_vec();
    reply.extend_from_slice(&requests[2][12..20]);
    reply.extend_from_slice(b" 0 32\r\n");
    let key = std::str::from_utf8(&requests[2][13..20]).unwrap().parse().unwrap();
    setup.texts.values.write(key, 0, &mut reply);
    reply.extend_from_slice(b"\r\nEND\r\n");
    let (one, two) = reply.split_at(25);
    // The third request is answered first, with its datagrams out of order; the first is answered after its timeout.
    generator.receive_datagram(0, us(2_500), &[b"\0\x02\0\x01\0\x02\0\0", two].concat());
    assert_eq!(generator.book().counts.completed, 0);
    generator.receive_datagram(0, us(2_600), &[b"\0\x02\0\0\0\x02\0\0", one].concat());
    assert_eq!((generator.book().counts.completed, generator.book().counts.hits), (1, 1));
    generator.advance(us(100_400));
    generator.receive_datagram(0, us(100_500), b"\0\0\0\0\0\x01\0\0END\r\n");
    generator.receive_datagram(0, us(100_500), b"\0\x01\0\0\0\x01\0\0END\r\n");
    let book = generator.finish();
    assert_eq!((book.counts.lost, book.counts.late, book.latency.len()), (1, 1, 2));
    // A lost operation counts as the timeout or longer.
    let (longest, count) = (book.waits().max(), book.waits().len());
    assert!(longest >= setup.timeout.as_ps() / 1_000 && count == 3, "{count} operations, {longest} ns");
}

#[test]
fn a_get_of_many_keys_may_be_answered_value_by_value() {
    let setup = setup(|setup| (setup.datagrams, setup.get_share, setup.multi_get) = (true, 1.0, 3));
    let mut generator = Generator::new(Arc::clone(&setup), phase(EVERY_MS, 1_000), 0..1, 0, 1);
    generator.advance(us(0));
    let request = sent(&mut generator, us(0)).remove(0).1;
    let keys: Vec<&str> = std::str::from_utf8(&request[8..]).unwrap().split_whitespace().skip(1).collect();
    for (key, end) in [(keys[0], ""), (keys[2], "END\r\n")] {
        let mut datagram = format!("\0\0\0\0\0\x01\0\0VALUE {key} 0 32\r\n").into_bytes();
        setup.texts.values.write(key[1..].parse().unwrap(), 0, &mut datagram);
        datagram.extend_from_slice(format!("\r\n{end}").as_bytes());
        generator.receive_datagram(0, us(50), &datagram);
    }
    let counts = generator.finish().counts;
    assert_eq!((counts.completed, counts.hits, counts.misses, counts.refused), (1, 2, 1, 0));
}

#[test]
fn a_get_of_many_keys_goes_to_the_servers_that_have_them() {
    let names: Vec<String> = (0..3).map(|server| format!("s{server}")).collect();
    let setup = setup(|setup| {
        (setup.placement, setup.multi_get, setup.get_share) =
            (KeyPlacement::new(Sharding::Ketama, &names), 10, 0.9);
    });
    let book = run(&setup, phase(EVERY_MS, 2_000_000), 1, 100, |server, _| [100, 300, 700][server]);
    let Counts { due, completed, gets, hits, misses, wrong, .. } = book.counts;
    assert_eq!((due, completed, wrong), (2_000, 2_000, 0));
    assert!(gets > 2 * 1_750 && hits > misses, "{:?}", book.counts);
    // The operation ends with the last reply: of ten keys, one is nearly always on the slowest server.
    assert!(book.latency.value_at_quantile(0.5).abs_diff(700_000) <= 1_000);
}

#[test]
fn partition_and_aggregate_waits_for_all_and_a_chain_for_each() {
    let names: Vec<String> = (0..4).map(|server| format!("s{server}")).collect();
    let servers = KeyPlacement::new(Sharding::Modulo, &names);
    let delay = |server: usize, _| [100, 200, 300, 900][server];
    let with = |shape| {
        let setup =
            setup(|setup| (setup.placement, setup.shape, setup.get_share) = (servers.clone(), shape, 1.0));
        run(&setup, phase(Pace::Open(LoadArrivals::Uniform, 100.0), 1_000_000), 1, 100, delay)
    };
    let all = with(Shape::FanOut(4));
    assert_eq!((all.counts.completed, all.counts.gets), (100, 400));
    assert!(latencies(&all).iter().all(|&latency| latency.abs_diff(900) <= 1), "{:?}", latencies(&all));
    let first = with(Shape::Replicas(4));
    assert_eq!((first.counts.completed, first.counts.gets), (100, 400));
    assert!(latencies(&first).iter().all(|&latency| latency == 100), "{:?}", latencies(&first));
    let chain = with(Shape::Chain(10));
    assert_eq!((chain.counts.completed, chain.counts.gets), (100, 1_000));
    // A chain of ten takes 375 us each on average.
    assert!((chain.latency.mean() - 3_750_000.0).abs() < 300_000.0, "{}", chain.latency.mean());
}

/// Of two servers, one takes 900 us and one 100 us; half of the keys are on each first.
#[test]
fn a_copy_after_a_while_is_a_hedge_or_a_retry() {
    let names: Vec<String> = (0..2).map(|server| format!("s{server}")).collect();
    let servers = KeyPlacement::new(Sharding::Modulo, &names);
    let with = |gives_up, delay: [u64; 2]| {
        let later = Some(LaterCopies { after: Span::from_us(200), gives_up });
        let setup = setup(|setup| {
            (setup.placement, setup.shape, setup.get_share) = (servers.clone(), Shape::Replicas(2), 1.0);
            setup.later = later;
        });
        let book =
            run(&setup, phase(Pace::Open(LoadArrivals::Uniform, 100.0), 1_000_000), 1, 100, |server, _| {
                delay[server]
            });
        assert_eq!((book.counts.completed, book.counts.lost, book.counts.due), (100, 0, 100));
        let mut found = latencies(&book);
        found.dedup();
        (found, book.counts.gets)
    };
    for gives_up in [false, true] {
        let (found, gets) = with(gives_up, [900, 100]);
        assert_eq!(found, [100, 300]);
        assert!((130..170).contains(&gets), "{gets}");
    }
    // The first value counts, unless its copy was given up.
    assert_eq!(with(false, [900, 900]), (vec![900], 200));
    assert_eq!(with(true, [900, 900]), (vec![1_100], 200));
    // No copy is sent where the value is there in time.
    assert_eq!(with(true, [100, 100]), (vec![100], 100));
}

#[test]
fn too_many_outstanding_are_not_sent_and_counted() {
    let setup = setup(|setup| setup.outstanding_max = 3);
    let book = run(&setup, phase(EVERY_MS, 10_000), 1, 100, |_, _| 1_000_000);
    assert_eq!((book.counts.due, book.counts.unsent, book.counts.lost), (10, 7, 3));
}

#[test]
fn what_is_asked_does_not_depend_on_the_server() {
    let requests = |delay: u64| {
        let mut generator = Generator::new(setup(|_| ()), phase(EVERY_MS, 50_000), 0..4, 0, 1);
        let mut cache = Cache::default();
        let (mut all, mut replies) = (BTreeMap::<usize, Vec<u8>>::new(), VecDeque::new());
        for at in 0..500 {
            generator.advance(us(at * 100));
            for (link, bytes) in sent(&mut generator, us(at * 100)) {
                all.entry(link).or_default().extend_from_slice(&bytes);
                replies.push_back((at + delay, link, cache.serve(&bytes)));
            }
            while replies.front().is_some_and(|(due, ..)| *due <= at) {
                let (_, link, reply) = replies.pop_front().unwrap();
                generator.receive(link, us(at * 100), &reply).unwrap();
            }
        }
        all
    };
    assert_eq!(requests(1), requests(77));
}

use crate::book::Counts;
