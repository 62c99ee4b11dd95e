//! Any bytes, in any pieces: no panic, no end without progress, and the same answers however they are cut.

use std::time::Duration;

use plimsoll_chronos::{Direct, Now, Service, SessionTransport};
use plimsoll_chronos_memcached::{Credentials, Memcached, MemcachedSettings, Protocol};
use proptest::prelude::*;

const NOW: Now = Now { since_start: Duration::from_secs(5), unix_seconds: 1_800_000_000 };

fn server(settings: MemcachedSettings) -> Direct<Memcached> {
    let settings = MemcachedSettings { partitions: 3, item_size_max: 4096, ..settings };
    Direct::new(Memcached::new(settings).expect("good settings"), 3)
}

/// Returns all answers to `pieces`, one after the other.
fn answers(mut direct: Direct<Memcached>, pieces: &[&[u8]]) -> Vec<u8> {
    let mut session = direct.service().open(SessionTransport::Tcp);
    let (mut pending, mut reply, mut skip) = (Vec::new(), Vec::new(), 0_usize);
    for piece in pieces {
        let skipped = skip.min(piece.len());
        skip -= skipped;
        pending.extend_from_slice(&piece[skipped..]);
        let served = direct.serve(&mut session, NOW, &pending, &mut reply);
        skip += served.consumed.saturating_sub(pending.len());
        pending.drain(..served.consumed.min(pending.len()));
        if served.close {
            break;
        }
    }
    reply
}

const WORDS: [&str; 60] = [
    "get",
    "gets",
    "gat",
    "set",
    "cas",
    "incr",
    "delete",
    "touch",
    "mg",
    "ms",
    "md",
    "ma",
    "me",
    "mn",
    "flush_all",
    "stats",
    "verbosity",
    "cache_memlimit",
    "a",
    "b",
    "0",
    "1",
    "3",
    "-1",
    "noreply",
    "v",
    "t",
    "c",
    "k",
    "b",
    "T0",
    "N0",
    "MA",
    "q",
    "\r\n",
    "\r\n",
    "\n",
    "abc\r\n",
    " ",
    "quit",
    "detail",
    "on",
    "dump",
    "items",
    "4000",
    "lru_crawler metadump all\r\n",
    "lru_crawler mgdump all\r\n",
    "lru_crawler",
    "metadump",
    "enable",
    "disable",
    "crawl",
    "all",
    "slabs",
    "automove",
    "cachedump",
    "conns",
    "watch",
    "HTTP/1.1",
    "\u{80}",
];

/// The parts that may follow the key of a get.
const GET_PARTS: [&str; 16] =
    ["k", " ", " v", " v", " t", " k", " q", " s", " f", " c", " O1", " T9", " b", " Z", "\0", "\r"];

fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        12 => proptest::sample::select(&WORDS[..]).prop_map(|word| [word.as_bytes(), b" "].concat()),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
        // Headers of the binary protocol: right except for random changes.
        2 => (0_u8..0x28, 0_u8..4, 0_u8..21, 0_u8..40).prop_map(|(opcode, key, extras, body)| {
            let mut header = vec![0x80, opcode, 0, key, extras, 0, 0, 0, 0, 0, 0, body];
            header.resize(24 + usize::from(body), b'1');
            header
        }),
    ]
}

proptest! {
    #[test]
    fn any_words_in_any_pieces(
        words in proptest::collection::vec(word(), 0..60),
        cuts in proptest::collection::vec(any::<usize>(), 0..6),
    ) {
        let input = words.concat();
        let whole = answers(server(MemcachedSettings::default()), &[&input]);
        let mut places: Vec<usize> = cuts.into_iter().map(|cut| cut % (input.len() + 1)).collect();
        places.sort_unstable();
        let (mut pieces, mut rest) = (Vec::new(), &input[..]);
        for place in places {
            let (piece, more) = rest.split_at(place - (input.len() - rest.len()));
            pieces.push(piece);
            rest = more;
        }
        pieces.push(rest);
        let cut = answers(server(MemcachedSettings::default()), &pieces);
        // Reports describe the process, and its time passes. A dump is refused behind other commands, as with
        // memcached, but not if it arrives in a piece of its own.
        let has = |words: &[u8]| {
            [&whole, &cut].iter().any(|reply| reply.windows(words.len()).any(|bytes| bytes == words))
        };
        if !has(b"STAT ") && !has(b"cannot pipeline") {
            prop_assert_eq!(whole.escape_ascii().to_string(), cut.escape_ascii().to_string());
        }
    }

    /// A get that is complete when it is first read takes another path than one that is not.
    #[test]
    fn gets_are_answered_alike_by_both_ways(
        name in proptest::sample::select(&["get ", "mg ", "gets ", "mg  "][..]),
        parts in proptest::collection::vec(proptest::sample::select(&GET_PARTS[..]), 0..7),
        long in proptest::option::of(247_usize..252),
        end in proptest::sample::select(&["\r\n", "\n", "\r\r\n"][..]),
    ) {
        let key = "k".repeat(long.unwrap_or(1));
        let line = [name, &key, &parts.concat(), end].concat();
        let before = format!("set {} 3 0 2\r\nhi\r\n", "k".repeat(key.len().min(250)));
        let whole = answers(server(MemcachedSettings::default()), &[before.as_bytes(), line.as_bytes()]);
        let (head, last) = line.as_bytes().split_at(line.len() - 1);
        let cut = answers(server(MemcachedSettings::default()), &[before.as_bytes(), head, last]);
        prop_assert_eq!(whole.escape_ascii().to_string(), cut.escape_ascii().to_string());
    }

    #[test]
    fn any_bytes(input in proptest::collection::vec(any::<u8>(), 0..400)) {
        answers(server(MemcachedSettings::default()), &[&input]);
    }

    #[test]
    fn nothing_is_told_without_login(words in proptest::collection::vec(word(), 0..40)) {
        let credentials = Some(Credentials::parse("users", b"ann:secret").expect("a user"));
        let settings = MemcachedSettings { credentials, protocol: Protocol::Text, ..MemcachedSettings::default() };
        let reply = answers(server(settings), &[&words.concat()]);
        for line in reply.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            prop_assert!(line.starts_with(b"CLIENT_ERROR"), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn a_request_means_the_same_on_another_thread(words in proptest::collection::vec(word(), 0..30)) {
        let input = words.concat();
        let service = server(MemcachedSettings::default());
        let service = service.service();
        let mut session = service.open(SessionTransport::Tcp);
        let (mut reply, mut message) = (Vec::new(), Vec::new());
        if let plimsoll_chronos::Step::Run { request, .. } = service.parse(&mut session, NOW, &input, &mut reply) {
            service.encode(&request, &mut message);
            prop_assert_eq!(format!("{:?}", service.decode(&message)), format!("{request:?}"));
        }
    }
}
