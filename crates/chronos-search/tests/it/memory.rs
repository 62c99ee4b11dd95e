//! `--memory-max`: a document or value that exceeds it is refused and changes nothing, and a removed one frees its
//! room.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::support::Wire;
use plimsoll_chronos_search::{Mode, SearchSettings, Sets};

const LIMIT: u64 = 1 << 20;

/// Returns all kinds of servers, with this limit.
fn all(sets: Sets) -> Vec<Wire> {
    let settings = SearchSettings { sets, memory_max: Some(LIMIT), ..SearchSettings::default() };
    let snapshots = SearchSettings { snapshots: true, ..settings };
    vec![Wire::new(settings, 1), Wire::new(settings, 12), Wire::new(snapshots, 12)]
}

/// Returns the bytes taken, as the server reports them.
fn taken(wire: &mut Wire) -> u64 {
    let stats = wire.send(b"stats\r\n");
    let value = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        line.unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(value("memory_bytes_max"), LIMIT);
    value("memory_bytes")
}

/// Returns a text whose words are in no other text, except one.
fn text(number: usize) -> String {
    (0..20).map(|word| format!("word{number}x{word} ")).collect::<String>() + "common"
}

#[test]
fn documents_have_so_much_memory_and_no_more() {
    for mut wire in all(Sets::Documents) {
        assert_eq!(taken(&mut wire), 0);
        let mut count = 0;
        let (status, body) = loop {
            let (status, body) = wire.http("PUT", &format!("/documents/d{count}"), &text(count));
            if status != 201 {
                break (status, body);
            }
            count += 1;
        };
        assert_eq!((status, &body["error"]), (507, &"no memory is left for it (--memory-max)".into()));
        assert!((100..2000).contains(&count), "{count} documents");
        wire.session = Default::default();
        let full = taken(&mut wire);
        assert!((LIMIT - 4096..LIMIT + 4096).contains(&full), "{full} bytes");
        let refused = wire.send(format!("set e 0 0 {}\r\n{}\r\n", text(1).len(), text(1)).as_bytes());
        assert_eq!(refused, "SERVER_ERROR out of memory storing object\r\n");
        // A version that is not longer than the last has its room; a longer one leaves the last in place.
        assert_eq!(wire.http("PUT", "/documents/d0", "common").0, 200);
        let long = (0..1000).map(text).collect::<String>();
        assert_eq!(wire.http("PUT", "/documents/d0", &long).0, 507);
        let (matches, _) = wire.search("common", Mode::And, 10);
        assert_eq!(matches, count as u64);
        assert_eq!(wire.search("word1x1", Mode::And, 10).0, 1);
        for number in 0..count {
            assert_eq!(wire.http("DELETE", &format!("/documents/d{number}"), "").0, 200);
        }
        wire.session = Default::default();
        assert_eq!(taken(&mut wire), 0, "what is deleted gives back all");
    }
}

#[test]
fn values_have_so_much_memory_and_no_more() {
    for mut wire in all(Sets::Postings) {
        let set = |wire: &mut Wire, key: usize, bytes: usize| {
            wire.send(format!("set key{key} 5 0 {bytes}\r\n{}\r\n", "v".repeat(bytes)).as_bytes())
        };
        let mut count = 0;
        let refused = loop {
            match set(&mut wire, count, 10_000).as_str() {
                "STORED\r\n" => count += 1,
                other => break other.to_owned(),
            }
        };
        assert_eq!(refused, "SERVER_ERROR out of memory storing object\r\n");
        assert!((100..105).contains(&count), "{count} values");
        assert_eq!(wire.send(format!("get key{count}\r\n").as_bytes()), "END\r\n");
        assert_eq!(set(&mut wire, 0, 100), "STORED\r\n");
        assert_eq!(set(&mut wire, 0, 20_000), refused);
        assert!(wire.send(b"get key0\r\n").starts_with("VALUE key0 5 100\r\n"));
        // A word takes memory too, even one with an empty value.
        let few = (count..count + 30_000).take_while(|&key| set(&mut wire, key, 0) == "STORED\r\n").count();
        assert!(few < 10_000, "{few} words without values");
        assert!(taken(&mut wire) <= LIMIT);
        for key in 0..count + few {
            assert_eq!(wire.send(format!("delete key{key}\r\n").as_bytes()), "DELETED\r\n");
        }
        assert_eq!(taken(&mut wire), 0);
    }
}
