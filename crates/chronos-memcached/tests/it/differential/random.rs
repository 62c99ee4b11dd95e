//! Random commands of all three protocols.

use plimsoll_chronos_memcached::MemcachedSettings;

use crate::common::random::Random;
use crate::common::{Ours, Theirs, ask, have_memcached, same};
use crate::differential::binary::{amount, extras, mark, packet};

/// Random commands of all three protocols over a few keys. `PLIMSOLL_DIFFERENTIAL_CASES` asks for more; a failure names
/// its seed, and `PLIMSOLL_DIFFERENTIAL_SEED` repeats it.
#[test]
fn random_commands() {
    if !have_memcached() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let cases: u64 = number("PLIMSOLL_DIFFERENTIAL_CASES").unwrap_or(12);
    let first: u64 = number("PLIMSOLL_DIFFERENTIAL_SEED").unwrap_or(1);
    for seed in first..first + cases {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // memcached's maintainer holds items at times of its own, and a number that shrinks at such a time is not
        // padded.
        let theirs = Theirs::start(&["-o", "no_lru_maintainer"]);
        let mut ours = Ours::new(MemcachedSettings { hash_secret: seed, ..MemcachedSettings::default() }, 1);
        let (mut text, mut binary) = (theirs.connect(), theirs.connect());
        let mut said = Vec::new();
        for _ in 0..400 {
            let (request, reply) = mark();
            let (step, got, expected) = if random.below(4) == 0 {
                let step = random_packet(&mut random);
                said.push(step.escape_ascii().to_string());
                let session = plimsoll_chronos::Service::open(
                    ours.direct.service(),
                    plimsoll_chronos::SessionTransport::Unix,
                );
                let kept = std::mem::replace(&mut ours.session, session);
                let got = ours.send(&step);
                ours.session = kept;
                (step.clone(), got, ask(&mut binary, &step, &request, &reply))
            } else {
                let step = random_line(&mut random);
                said.push(step.escape_ascii().to_string());
                (step.clone(), ours.send(&step), ask(&mut text, &step, b"mn\r\n", b"MN\r\n"))
            };
            assert!(
                same(&got, &expected, true),
                "PLIMSOLL_DIFFERENTIAL_SEED={seed} PLIMSOLL_DIFFERENTIAL_CASES=1\n\
                 {}\n  ours   {}\n  theirs {}\nbefore:\n{}",
                step.escape_ascii(),
                got.escape_ascii(),
                expected.escape_ascii(),
                said[said.len().saturating_sub(30)..].join("\n")
            );
        }
    }
}

const KEYS: [&str; 6] = ["a", "b", "key-c", "n", "Zm9v", "p:q"];
const VALUES: [&str; 9] =
    ["", "x", "12", "abc", "18446744073709551615", "99", "some longer value, which is text", " 7", "0"];
const EXPIRIES: [&str; 7] = ["0", "0", "0", "100", "-1", "1000000000", "4294967396"];

fn random_line(random: &mut Random) -> Vec<u8> {
    let key = random.pick(&KEYS);
    let value = random.pick(&VALUES);
    let expiry = random.pick(&EXPIRIES);
    let quiet = if random.below(8) == 0 { " noreply" } else { "" };
    let bytes = value.len();
    let cas = random.below(12);
    let delta = random.pick(&["1", "10", "18446744073709551615", "x", "0", "-1"]);
    let flags = random.pick(&["0", "1", "4294967295", "x"]);
    let line = match random.below(13) {
        0 | 1 => format!("{} {}\r\n", random.pick(&["get", "gets"]), key),
        2 => format!(
            "{} {key} {} {}\r\n",
            random.pick(&["get", "gets"]),
            random.pick(&KEYS),
            random.pick(&KEYS)
        ),
        3 => format!("{} {expiry} {key}\r\n", random.pick(&["gat", "gats"])),
        4 => {
            let verb = random.pick(&["set", "set", "add", "replace", "append", "prepend"]);
            // After a bad number, the value is read as commands.
            format!("{verb} {key} {flags} {expiry} {bytes}{quiet}\r\n{value}\r\n")
        }
        5 => format!("cas {key} 0 {expiry} {bytes} {cas}{quiet}\r\n{value}\r\n"),
        6 => format!("{} {key} {delta}{quiet}\r\n", random.pick(&["incr", "decr"])),
        7 => format!("touch {key} {expiry}{quiet}\r\n"),
        8 => format!("delete {key}{quiet}\r\n"),
        9 if random.below(6) == 0 => {
            format!("flush_all{}\r\n", random.pick(&["", " 0", " noreply"]))
        }
        9 => format!(
            "mg {key}{}\r\n",
            meta_flags(
                random,
                &["v", "t", "c", "f", "s", "k", "O1", "q", "u", "h", "b", "N30", "T100", "R50", "z"]
            )
        ),
        10 => {
            let letters =
                ["c", "k", "O2", "q", "F5", "T100", "MS", "ME", "MA", "MP", "MR", "I", "C3", "C0", "b", "z"];
            format!("ms {key} {bytes}{}\r\n{value}\r\n", meta_flags(random, &letters))
        }
        11 => format!("md {key}{}\r\n", meta_flags(random, &["k", "O3", "q", "I", "T50", "C4", "b", "z"])),
        _ => {
            let letters = [
                "v", "t", "c", "k", "O4", "q", "N0", "J7", "D3", "MI", "MD", "M+", "M-", "T60", "C2", "b",
                "z",
            ];
            format!("ma {key}{}\r\n", meta_flags(random, &letters))
        }
    };
    line.into_bytes()
}

fn meta_flags(random: &mut Random, from: &[&str]) -> String {
    (0..random.below(6)).map(|_| format!(" {}", random.pick(from))).collect()
}

fn random_packet(random: &mut Random) -> Vec<u8> {
    let (key, value) = (random.pick(&KEYS).as_bytes(), random.pick(&VALUES).as_bytes());
    let cas = if random.below(3) == 0 { random.below(20) } else { 0 };
    let expiry: u32 = [0, 0, 100, 1_000_000_000][random.below(4) as usize];
    match random.below(6) {
        0 => packet([0x00, 0x09, 0x0c][random.below(3) as usize], key, b"", b"", 0),
        1 => {
            let opcode = [0x01, 0x02, 0x03, 0x11, 0x12, 0x13][random.below(6) as usize];
            packet(opcode, key, &extras(random.below(3) as u32, expiry), value, cas)
        }
        2 => packet([0x04, 0x14][random.below(2) as usize], key, b"", b"", cas),
        3 => {
            let create = if random.below(2) == 0 { u32::MAX } else { expiry };
            packet(
                [0x05, 0x06, 0x15, 0x16][random.below(4) as usize],
                key,
                &amount(random.below(50), 5, create),
                b"",
                cas,
            )
        }
        4 => packet([0x0e, 0x0f, 0x19, 0x1a][random.below(4) as usize], key, b"", value, cas),
        _ => packet([0x1c, 0x1d, 0x1e, 0x23][random.below(4) as usize], key, &expiry.to_be_bytes(), b"", 0),
    }
}
