//! `stats`: compared by name and value for the counters that a client can predict.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use plimsoll_chronos_memcached::MemcachedSettings;

use crate::common::server::Server;
use crate::common::{Ours, Theirs, ask, have_memcached};

/// Counters that a client can predict. Measured values (time, processor, bytes on the wire, memory), counters of
/// memcached's own threads, and connections are not compared.
const COUNTERS: [&str; 27] = [
    "pointer_size",
    "max_connections",
    "cmd_get",
    "cmd_set",
    "cmd_flush",
    "cmd_touch",
    "cmd_meta",
    "get_hits",
    "get_misses",
    "get_expired",
    "get_flushed",
    "delete_misses",
    "delete_hits",
    "incr_misses",
    "incr_hits",
    "decr_misses",
    "decr_hits",
    "cas_misses",
    "cas_hits",
    "cas_badval",
    "touch_hits",
    "touch_misses",
    "store_too_large",
    "limit_maxbytes",
    "total_items",
    "evictions",
    "version",
];

/// The lines of `stats` by their names.
fn report(bytes: Vec<u8>) -> BTreeMap<String, String> {
    let text = String::from_utf8(bytes).expect("text");
    let lines = text.lines().filter_map(|line| line.strip_prefix("STAT ")?.split_once(' '));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn stats_count_the_same() {
    if !have_memcached() {
        return;
    }
    let commands: &[&[u8]] = &[
        b"set a 0 0 1\r\nx\r\nget a b\r\ngets a\r\n",
        b"gat 100 a b\r\ntouch a 0\r\ntouch b 0\r\n",
        b"set n 0 0 1\r\n5\r\nincr n 1\r\ndecr n 1\r\nincr b 1\r\ndecr b 1\r\n",
        b"delete b\r\nset d 0 0 1\r\nx\r\ndelete d\r\n",
        b"cas a 0 0 1 99\r\nx\r\ncas b 0 0 1 99\r\nx\r\nadd a 0 0 1\r\nx\r\nappend a 0 0 1\r\nx\r\n",
        b"set e 0 -1 1\r\nx\r\nget e\r\n",
        b"mg a v\r\nmg b v\r\nmg a T0\r\nmg b T0\r\nme b\r\nmd b\r\nma n\r\nma b\r\nms a 1\r\nx\r\nmg v N0\r\n",
        b"flush_all\r\nget a\r\nset z 0 0 1\r\nx\r\n",
        &[&b"set big 0 0 2000000\r\n"[..], &vec![b'x'; 2_000_000], b"\r\n"].concat(),
    ];
    let theirs = Theirs::start(&[]);
    let mut ours = Ours::new(MemcachedSettings::default(), 1);
    let mut stream = theirs.connect();
    for step in commands {
        let (got, expected) = (ours.send(step), ask(&mut stream, step, b"mn\r\n", b"MN\r\n"));
        assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
    let (got, expected) =
        (report(ours.send(b"stats\r\n")), report(ask(&mut stream, b"stats\r\n", b"mn\r\n", b"MN\r\n")));
    for name in COUNTERS {
        assert_eq!(got.get(name), expected.get(name), "{name}");
    }
    names_are_documented(&expected, &got);
    for name in got.keys().filter(|name| !name.starts_with("chronos_")) {
        assert!(expected.contains_key(name), "{name} is no field of memcached's");
    }
    let (got, expected) = (
        report(ours.send(b"stats settings\r\n")),
        report(ask(&mut stream, b"stats settings\r\n", b"mn\r\n", b"MN\r\n")),
    );
    names_are_documented(&expected, &got);
    // Ours has no socket here, more threads, its own chunk sizes, and parts that have no setting where memcached has
    // one.
    let differ = [
        "domain_socket",
        "num_threads",
        "num_threads_per_udp",
        "growth_factor",
        "reqs_per_event",
        "slab_reassign",
        "lru_maintainer_thread",
        "lru_segmented",
        "chronos_partitions",
    ];
    for (name, value) in got.iter().filter(|(name, _)| !differ.contains(&name.as_str())) {
        assert_eq!(expected.get(name), Some(value), "{name}");
    }
}

/// Names that memcached reports and this server does not are in the documentation, by name or as `first_words_*`.
#[track_caller]
fn names_are_documented(theirs: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/chronos/memcached.md");
    let text = std::fs::read_to_string(path).expect("the documentation");
    let section = text.split("## Statistics that are left out").nth(1).expect("a section of its own");
    let section = section.split("\n## ").next().expect("its text");
    let words: Vec<&str> = section.split('`').skip(1).step_by(2).collect();
    let matches = |word: &&str, name: &str| match word.strip_suffix('*') {
        Some(first) => name.starts_with(first),
        None => *word == name,
    };
    for name in theirs.keys() {
        let is_listed = words.iter().any(|word| matches(word, name));
        assert!(is_listed != ours.contains_key(name), "{name}: reported, or in the list of {path}");
    }
}

/// The counts of the classes: the smallest items are in class 1 of both.
#[test]
fn classes_count_the_same() {
    if !have_memcached() {
        return;
    }
    let commands: &[u8] = b"set a 0 0 1\r\nx\r\nset n 0 0 1\r\n5\r\nset d 0 100 1\r\nx\r\nget a b\r\ngets a n\r\n\
        incr n 1\r\nincr n 1\r\ndecr n 1\r\ncas a 0 0 1 9999\r\nx\r\ntouch a 0\r\ntouch b 0\r\ndelete d\r\ndelete b\r\n\
        gets none\r\n";
    let (theirs, mut ours) =
        (Theirs::start(&["-o", "no_lru_maintainer"]), Ours::new(MemcachedSettings::default(), 4));
    let mut stream = theirs.connect();
    ours.send(commands);
    ask(&mut stream, commands, b"mn\r\n", b"MN\r\n");
    let mut both = |what: &str| {
        let command = format!("stats {what}\r\n").into_bytes();
        (report(ours.send(&command)), report(ask(&mut stream, &command, b"mn\r\n", b"MN\r\n")))
    };
    let (got, expected) = both("slabs");
    let names = |report: &BTreeMap<String, String>| -> BTreeSet<String> { report.keys().cloned().collect() };
    assert_eq!(names(&got), names(&expected));
    for (name, value) in &expected {
        let is_size =
            ["chunk_size", "chunks_per_page", "total_chunks", "total_pages", "free_chunks", "total_malloced"]
                .iter()
                .any(|size| name.ends_with(size));
        assert!(is_size || got.get(name) == Some(value), "{name}: {:?}, not {value}", got.get(name));
    }
    let (got, expected) = both("items");
    // memcached reports these of a segmented LRU, and this server can, too.
    let beside = [
        "number_hot",
        "number_warm",
        "number_cold",
        "age_hot",
        "age_warm",
        "evicted_active",
        "moves_to_cold",
        "moves_to_warm",
        "moves_within_lru",
        "direct_reclaims",
        "hits_to_hot",
        "hits_to_warm",
        "hits_to_cold",
        "hits_to_temp",
    ];
    let beside = beside.map(|name| format!("items:1:{name}")).into();
    assert_eq!(names(&got).difference(&names(&expected)).cloned().collect::<BTreeSet<_>>(), beside);
    assert_eq!(names(&expected).difference(&names(&got)).collect::<Vec<_>>(), [] as [&String; 0]);
    for (name, value) in
        expected.iter().filter(|(name, _)| !name.ends_with("mem_requested") && !name.ends_with("age"))
    {
        assert_eq!(got.get(name), Some(value), "{name}");
    }
}

/// A store finds an expired or flushed item under its own key: memcached counts as a get would, and with a flat
/// LRU that its memory was reclaimed. This server counts both.
#[test]
fn what_is_stored_again_was_expired() {
    if !have_memcached() {
        return;
    }
    let commands: &[u8] = b"set a 0 -1 1\r\nx\r\nset a 0 0 1\r\nx\r\nset b 0 -1 300\r\n";
    let commands =
        [commands, &[b'x'; 300], b"\r\nset b 0 0 1\r\nx\r\nset c 0 0 1\r\nx\r\nset c 0 0 1\r\ny\r\n"]
            .concat();
    let mut ours = Ours::new(MemcachedSettings::default(), 1);
    ours.send(&commands);
    let got = report(ours.send(b"stats\r\n"));
    // The first of memcached's threads to find it counts it: the store, or one that looks for memory.
    let found = |report: &BTreeMap<String, String>, first: &str| -> u64 {
        let number = |name: &str| report[name].parse::<u64>().expect("a number");
        number(first) + number("reclaimed") + number("crawler_reclaimed")
    };
    for options in [&[][..], &["-o", "no_modern"]] {
        let theirs = Theirs::start(options);
        let mut stream = theirs.connect();
        ask(&mut stream, &commands, b"mn\r\n", b"MN\r\n");
        let expected = report(ask(&mut stream, b"stats\r\n", b"mn\r\n", b"MN\r\n"));
        assert_eq!(found(&expected, "get_expired"), 2, "{options:?}");
    }
    assert_eq!((&*got["get_expired"], &*got["reclaimed"]), ("2", "2"));
    let (settings, flush) =
        (MemcachedSettings::default(), b"set a 0 0 1\r\nx\r\nflush_all\r\nset a 0 0 1\r\nx\r\n");
    let (theirs, mut ours) = (Theirs::start(&[]), Ours::new(settings, 1));
    let mut stream = theirs.connect();
    ours.send(flush);
    ask(&mut stream, flush, b"mn\r\n", b"MN\r\n");
    let (got, expected) =
        (report(ours.send(b"stats\r\n")), report(ask(&mut stream, b"stats\r\n", b"mn\r\n", b"MN\r\n")));
    assert_eq!((&*got["get_flushed"], &*got["reclaimed"], found(&expected, "get_flushed")), ("1", "1", 1));
}

/// Sockets as `stats conns` has them, in an order of their own, without their numbers.
fn sockets(stream: &mut UnixStream, path: &str) -> Vec<String> {
    let text = ask(stream, b"stats conns\r\n", b"mn\r\n", b"MN\r\n");
    let text = String::from_utf8(text).expect("text").replace(path, "PATH");
    let mut sockets: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("STAT ")) {
        let (number, rest) = line.split_once(':').expect("a number");
        let rest = rest.split_once("secs_since_last_cmd").map_or(rest, |_| "secs_since_last_cmd");
        sockets.entry(number.to_owned()).or_default().push_str(&format!("{rest}; "));
    }
    let mut sockets: Vec<String> = sockets.into_values().collect();
    sockets.sort();
    sockets
}

#[test]
fn connections_are_shown_one_by_one() {
    if !have_memcached() {
        return;
    }
    let patience = Duration::from_secs(20);
    for backend in ["epoll", "fastest"] {
        let io = format!("chronos_io={backend}");
        let (theirs, (_server, path)) = (Theirs::start(&[]), Server::start_unix(&["-t", "2", "-o", &io]));
        let of = |path: &std::path::Path| {
            let connect = || {
                let stream = UnixStream::connect(path).expect("it listens");
                stream.set_read_timeout(Some(patience)).expect("a timeout");
                stream
            };
            // One connection waits for a value, one for a request, and one has left.
            let (mut value, request, mut asks) = (connect(), connect(), connect());
            drop(connect());
            value.write_all(b"set foo 0 0 6\r\n").expect("it listens");
            let path = path.to_str().expect("a path");
            let begin = Instant::now();
            loop {
                let sockets = sockets(&mut asks, path);
                let has_value = sockets.iter().any(|socket| socket.contains("conn_nread"));
                if (has_value && sockets.len() == 4) || begin.elapsed() > patience {
                    drop((value, request));
                    return sockets;
                }
                std::thread::yield_now();
            }
        };
        let expected = of(theirs.path());
        assert_eq!((expected.len(), of(&path)), (4, expected));
    }
}
