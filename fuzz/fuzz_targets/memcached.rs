//! Any bytes to the memcached server, of several connections and in datagrams, with logins and without: no panic, the
//! same answers for any cut and on any thread, datagrams in sequence, memory within its limit.
//!
//! The first byte chooses the settings, the second where pieces are cut; `plimsoll_fuzz::turns` describes the rest.
//! With the highest bit of the second, a turn that begins as a binary packet is one, whose lengths are made to fit.
//! `make fuzz TARGET=memcached`. crates/chronos-memcached/tests/it/fuzz.rs does the same with a generator that knows
//! words.
//!
//! With an odd number for the cuts, the service also runs under the reader/writer lock of the baselines.

use plimsoll_chronos::frames;
use plimsoll_chronos_locked::{Lock, Locked};
use plimsoll_chronos_memcached::{Credentials, Memcached, MemcachedSettings};
use plimsoll_fuzz::turns::fitted;
use plimsoll_fuzz::{Answers, Way, play};

/// Little enough for a few dozen items of different sizes to fill it.
const MEMORY_BYTES: u64 = 256 << 10;

fn settings(choice: u8) -> MemcachedSettings {
    let has = |bit: u32| choice >> bit & 1 == 1;
    let login = has(0).then(|| Credentials::parse("users", b"ann:pw\nbob:x\n").expect("two users"));
    MemcachedSettings {
        partitions: if has(2) { 1 } else { 3 },
        memory_limit: MEMORY_BYTES,
        item_size_max: if has(3) { 1024 } else { 4096 },
        sasl: login.is_some() && has(1),
        credentials: login,
        evict: !has(4),
        cas: !has(5),
        detail: has(6),
        flush: !has(7),
        ..MemcachedSettings::default()
    }
}

fn answers(choice: u8, input: &[u8], way: Way) -> Answers {
    let settings = settings(choice);
    let partitions = settings.partitions;
    let server = Memcached::new(settings).expect("good settings");
    let (server, answers) = match way {
        Way::Crossed(cuts) if cuts % 2 == 1 => {
            let (locked, answers) = play(Locked::new(server, Lock::ReaderWriter, partitions), 1, input, way);
            (locked.into_service(), answers)
        }
        _ => play(server, partitions, input, way),
    };
    let (taken, limit) = server.memory();
    assert!(taken <= limit, "{taken} bytes of {limit}");
    answers
}

/// Sets the lengths in the header of a binary packet to match its opcode; the key is at most the rest.
fn fit(packet: &mut [u8]) {
    const HEADER_BYTES: usize = 24;
    let Some(body) = packet.len().checked_sub(HEADER_BYTES).filter(|_| packet[0] == 0x80) else { return };
    let extras = match packet[1] {
        // Set, add, replace, and the same without an answer.
        0x01..=0x03 | 0x11..=0x13 => 8,
        // Increment, decrement.
        0x05 | 0x06 | 0x15 | 0x16 => 20,
        // Verbosity, touch, gat.
        0x1b..=0x1e | 0x23 | 0x24 => 4,
        _ => 0,
    };
    let extras = extras.min(body);
    let key = usize::from(packet[3]).min(body - extras);
    packet[2..4].copy_from_slice(&(key as u16).to_be_bytes());
    packet[4] = extras as u8;
    packet[8..12].copy_from_slice(&(body as u32).to_be_bytes());
}

/// Checks that each datagram is within its limit, and has its number and the number of all.
fn judge_datagrams(datagrams: &[Vec<u8>]) {
    let word =
        |datagram: &[u8], place: usize| u16::from_be_bytes([datagram[2 * place], datagram[2 * place + 1]]);
    let mut rest = datagrams;
    while let Some(first) = rest.first() {
        let count = usize::from(word(first, 2));
        let (reply, more) = rest.split_at_checked(count).expect("all datagrams of a reply");
        for (sequence, datagram) in reply.iter().enumerate() {
            assert!((frames::FRAME_BYTES + 1..=frames::DATAGRAM_BYTES_MAX).contains(&datagram.len()));
            assert_eq!(word(datagram, 0), word(first, 0));
            assert_eq!(usize::from(word(datagram, 1)), sequence);
        }
        rest = more;
    }
}

/// Bytes without a line's end that no client intends, and that are refused at once if they arrive alone.
const LINE_BYTES_MAX: usize = 2048;

/// Returns whether an answer is a report of the process, which differs each time, or a dump, which is refused behind
/// other commands: as with memcached, not if it arrives in a piece of its own.
fn tells_of_moment(answers: &Answers) -> bool {
    let has = |reply: &[u8], words: &[u8]| reply.windows(words.len()).any(|bytes| bytes == words);
    let tells = |reply: &Vec<u8>| has(reply, b"rusage") || has(reply, b"cannot pipeline");
    answers.connections.iter().chain(&answers.datagrams).any(tells)
}

/// Checks the replies to the requests of one input.
pub fn check(input: &[u8]) {
    let [choice, cuts, input @ ..] = input else { return };
    let fitted = if cuts >> 7 == 1 { fitted(input, fit) } else { input.to_vec() };
    let input = &fitted[..];
    let whole = answers(*choice, input, Way::Whole);
    judge_datagrams(&whole.datagrams);
    for way in [Way::Pieces(*cuts), Way::Crossed(*cuts)] {
        let other = answers(*choice, input, way);
        if input.len() <= LINE_BYTES_MAX && !tells_of_moment(&whole) && !tells_of_moment(&other) {
            assert_eq!(other, whole, "{way:?}");
        }
    }
}
