//! `stats`: compared by name and value for the counters that a client can predict.

use std::collections::BTreeMap;

use plimsoll_chronos_memcached::Settings;

use crate::common::{Ours, Theirs, ask, have_memcached};

/// Counters that a client can predict. Not compared: what is measured (time, processor, bytes on the wire, memory), what
/// belongs to memcached's own threads, and connections.
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
    let mut ours = Ours::new(Settings::default(), 1);
    let mut stream = theirs.connect();
    for step in commands {
        let (got, expected) = (ours.send(step), ask(&mut stream, step, b"mn\r\n", b"MN\r\n"));
        assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
    let report = |bytes: Vec<u8>| -> BTreeMap<String, String> {
        let text = String::from_utf8(bytes).expect("text");
        text.lines()
            .filter_map(|line| line.strip_prefix("STAT ")?.split_once(' '))
            .map(|(a, b)| (a.into(), b.into()))
            .collect()
    };
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
    // Ours has no socket here, more threads, its own chunk sizes, and parts that do without a choice of memcached's.
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

/// What memcached reports and this server does not is in the documentation, by name or as `first_words_*`.
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
