//! Any bytes to the memcached server, of several connections and in datagrams, with logins and without: no panic, the
//! same answers however they are cut and on whatever thread, datagrams in sequence, memory within its limit.
//!
//! The first byte chooses the settings, the second where pieces are cut; `plimsoll_fuzz::turns` says what follows.
//! `make fuzz TARGET=memcached`. crates/chronos-memcached/tests/fuzz.rs does the same with a generator that knows words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_chronos_memcached::{Credentials, Memcached, Settings, udp};
use plimsoll_fuzz::{Answers, Way, play};

/// Little enough for a few dozen items of different sizes to fill it.
const MEMORY_BYTES: u64 = 256 << 10;

fn settings(choice: u8) -> Settings {
    let has = |bit: u32| choice >> bit & 1 == 1;
    let login = has(0).then(|| Credentials::parse("users", b"ann:pw\nbob:x\n").expect("two users"));
    Settings {
        partitions: if has(2) { 1 } else { 3 },
        memory_limit: MEMORY_BYTES,
        item_size_max: if has(3) { 1024 } else { 4096 },
        sasl: login.is_some() && has(1),
        credentials: login,
        evict: !has(4),
        cas: !has(5),
        detail: has(6),
        flush: !has(7),
        ..Settings::default()
    }
}

fn answers(choice: u8, input: &[u8], way: Way) -> Answers {
    let settings = settings(choice);
    let partitions = settings.partitions;
    let (server, answers) = play(Memcached::new(settings).expect("good settings"), partitions, input, way);
    let (taken, limit) = server.memory();
    assert!(taken <= limit, "{taken} bytes of {limit}");
    answers
}

/// Each datagram is within its limit, and says which of how many it is.
fn judge_datagrams(datagrams: &[Vec<u8>]) {
    let word = |datagram: &[u8], place: usize| u16::from_be_bytes([datagram[2 * place], datagram[2 * place + 1]]);
    let mut rest = datagrams;
    while let Some(first) = rest.first() {
        let count = usize::from(word(first, 2));
        let (reply, more) = rest.split_at_checked(count).expect("all datagrams of a reply");
        for (sequence, datagram) in reply.iter().enumerate() {
            assert!((udp::FRAME_BYTES + 1..=udp::DATAGRAM_BYTES_MAX).contains(&datagram.len()));
            assert_eq!(word(datagram, 0), word(first, 0));
            assert_eq!(usize::from(word(datagram, 1)), sequence);
        }
        rest = more;
    }
}

/// Bytes without a line's end that no client has in mind, and that are refused at once if they come alone.
const LINE_BYTES_MAX: usize = 2048;

/// A report of the process, which is another each time.
fn tells_of_process(answers: &Answers) -> bool {
    let tells = |reply: &Vec<u8>| reply.windows(6).any(|bytes| bytes == b"rusage");
    answers.connections.iter().chain(&answers.datagrams).any(tells)
}

fuzz_target!(|input: &[u8]| {
    let [choice, cuts, input @ ..] = input else { return };
    let whole = answers(*choice, input, Way::Whole);
    judge_datagrams(&whole.datagrams);
    for way in [Way::Pieces(*cuts), Way::Crossed(*cuts, cuts % 2 == 1)] {
        let other = answers(*choice, input, way);
        if input.len() <= LINE_BYTES_MAX && !tells_of_process(&whole) {
            assert_eq!(other, whole, "{way:?}");
        }
    }
});
