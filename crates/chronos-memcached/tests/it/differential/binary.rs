//! Compares replies of the binary protocol with memcached's.

use plimsoll_chronos_memcached::MemcachedSettings;

use crate::common::{Ours, Theirs, ask, have_memcached};
use crate::differential::conversation::LONG;

/// Returns a binary request.
pub fn packet(opcode: u8, key: &[u8], extras: &[u8], value: &[u8], cas: u64) -> Vec<u8> {
    let mut packet = vec![0x80, opcode];
    packet.extend_from_slice(&(key.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[extras.len() as u8, 0, 0, 0]);
    packet.extend_from_slice(&((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    packet.extend_from_slice(b"opaq");
    packet.extend_from_slice(&cas.to_be_bytes());
    for part in [extras, key, value] {
        packet.extend_from_slice(part);
    }
    packet
}

/// Returns the extras of a set.
pub fn extras(flags: u32, expiry: u32) -> Vec<u8> {
    [flags.to_be_bytes(), expiry.to_be_bytes()].concat()
}

/// The extras of arithmetic.
pub fn amount(delta: u64, initial: u64, expiry: u32) -> Vec<u8> {
    [&delta.to_be_bytes()[..], &initial.to_be_bytes(), &expiry.to_be_bytes()].concat()
}

const NOOP: u8 = 0x0a;

/// A no-op that ends a step, and its answer. Its opaque is its own: a step may be a no-op too, and the answer to that
/// one must not end the reading.
pub fn mark() -> (Vec<u8>, Vec<u8>) {
    let mut request = packet(NOOP, b"", b"", b"", 0);
    request[12..16].copy_from_slice(b"mark");
    let mut reply = request.clone();
    reply[0] = 0x81;
    (request, reply)
}

/// Returns every answer to `steps`, one after the other, of both servers.
fn binary_answers(
    options: &[&str],
    settings: &MemcachedSettings,
    steps: &[Vec<u8>],
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let theirs = Theirs::start(options);
    let mut ours = Ours::new(settings.clone(), 1);
    let mut stream = theirs.connect();
    let (request, reply) = mark();
    let mut answers = Vec::new();
    for step in steps {
        // A connection that was closed is opened again.
        if ours.closed {
            ours.reconnect();
            stream = theirs.connect();
        }
        let mut got = ours.send(step);
        if !ours.closed {
            let mark = ours.send(&request);
            got.extend_from_slice(mark.strip_suffix(&reply[..]).unwrap_or(&mark));
        }
        answers.push((got, ask(&mut stream, step, &request, &reply)));
    }
    answers
}

#[track_caller]
pub fn compare_binary(options: &[&str], settings: &MemcachedSettings, steps: &[Vec<u8>]) {
    if !have_memcached() {
        return;
    }
    let answers = binary_answers(options, settings, steps);
    let mut wrong = Vec::new();
    for (step, (got, expected)) in steps.iter().zip(&answers) {
        if got != expected {
            let shown = |bytes: &[u8]| bytes.escape_ascii().to_string().chars().take(400).collect::<String>();
            wrong.push(format!("{}\n  ours   {}\n  theirs {}", shown(step), shown(got), shown(expected)));
        }
    }
    assert!(wrong.is_empty(), "{} answers differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn binary_commands() {
    let set = |opcode, key: &[u8], value: &[u8], cas| packet(opcode, key, &extras(0xdead, 0), value, cas);
    let bare = |opcode, key: &[u8]| packet(opcode, key, b"", b"", 0);
    let mut steps = vec![bare(0x00, b"a"), bare(0x09, b"a"), bare(0x0c, b"a")];
    // Set, add, replace, each also quiet; with right and wrong cas values.
    for opcode in [0x01, 0x02, 0x03, 0x11, 0x12, 0x13, 0x0e, 0x0f, 0x19, 0x1a] {
        let append = matches!(opcode, 0x0e | 0x0f | 0x19 | 0x1a);
        for (key, cas) in [(&b"a"[..], 0), (b"a", 1), (b"a", 1 << 40), (b"new", 0), (b"other", 9)] {
            let extra = if append { Vec::new() } else { extras(opcode.into(), 0) };
            steps.push(packet(opcode, key, &extra, b"value", cas));
            steps.push(bare(0x0c, key));
        }
        steps.push(bare(0x04, b"new"));
    }
    for opcode in [0x00, 0x09, 0x0c, 0x04, 0x14, 0x04, 0x14] {
        steps.push(set(0x01, b"a", b"x", 0));
        steps.push(bare(opcode, b"a"));
        steps.push(bare(opcode, b"none"));
        steps.push(packet(opcode, b"a", b"", b"", 1 << 40));
    }
    for opcode in [0x05, 0x06, 0x15, 0x16] {
        steps.push(bare(0x04, b"n"));
        steps.push(packet(opcode, b"n", &amount(1, 2, u32::MAX), b"", 0));
        steps.push(packet(opcode, b"n", &amount(1, 20, 0), b"", 0));
        steps.push(packet(opcode, b"n", &amount(7, 20, 0), b"", 0));
        steps.push(packet(opcode, b"n", &amount(70, 20, 0), b"", 1 << 40));
        steps.push(bare(0x00, b"n"));
        steps.push(set(0x01, b"n", b"abc", 0));
        steps.push(packet(opcode, b"n", &amount(1, 2, 0), b"", 0));
    }
    for opcode in [0x1c, 0x1d, 0x1e, 0x23, 0x24] {
        steps.push(packet(opcode, b"none", &10_u32.to_be_bytes(), b"", 0));
        steps.push(set(0x01, b"a", b"x", 0));
        steps.push(packet(opcode, b"a", &10_u32.to_be_bytes(), b"", 0));
        steps.push(packet(opcode, b"a", &1_000_000_000_u32.to_be_bytes(), b"", 0));
        steps.push(bare(0x00, b"a"));
    }
    // Version, no-op, flush (with a delay too), quit, quitq.
    steps.extend([
        bare(0x0b, b""),
        bare(NOOP, b""),
        set(0x01, b"a", b"x", 0),
        bare(0x08, b""),
        bare(0x00, b"a"),
    ]);
    steps.extend([set(0x01, b"a", b"x", 0), bare(0x18, b""), bare(0x00, b"a"), set(0x01, b"a", b"x", 0)]);
    steps.extend([
        packet(0x08, b"", &100_u32.to_be_bytes(), b"", 0),
        bare(0x00, b"a"),
        bare(0x07, b""),
        bare(0x17, b""),
    ]);
    // Commands that do not exist, and malformed ones.
    steps.extend([
        bare(0x1b, b""),
        bare(0x20, b""),
        packet(0x21, b"PLAIN", b"", b"\0a\0b", 0),
        packet(0x22, b"PLAIN", b"", b"\0a\0b", 0),
    ]);
    for opcode in 0x00..=0x26 {
        // A command that needs a key without one, and one without a key with one; extras where there should be none. Of
        // an unknown command memcached consumes the body twice, and then waits.
        if !matches!(opcode, 0x10 | 0x1b | 0x1f | 0x25 | 0x26) {
            steps.push(packet(opcode, b"", b"", b"", 0));
            steps.push(packet(opcode, b"kkk", b"\x01\x02", b"", 0));
        }
    }
    steps.push(packet(0xff, b"", b"", b"", 0));
    steps.push(packet(0x00, LONG, b"", b"", 0));
    steps.push(packet(0x01, b"big", &extras(0, 0), &vec![b'x'; 2_000_000], 0));
    steps.push(packet(0x02, b"big", &extras(0, 0), &vec![b'x'; 2_000_000], 0));
    steps.push(packet(0x0e, b"big", b"", &vec![b'x'; 2_000_000], 0));
    // Keys longer than the body.
    let mut short = bare(0x00, b"abc");
    short[11] = 1;
    steps.push(short);
    steps.push(packet(0x10, b"bogus", b"", b"", 0));
    steps.push(packet(0x10, b"reset", b"", b"", 0));
    steps.push(packet(0x10, b"sizes", b"", b"", 0));
    steps.push(packet(0x10, b"detail", b"", b"", 0));
    steps.push(packet(0x10, b"detail on", b"", b"", 0));
    steps.push(set(0x01, b"p:1", b"x", 0));
    steps.push(packet(0x10, b"detail dump", b"", b"", 0));
    steps.push(packet(0x10, b"detail off", b"", b"", 0));
    compare_binary(&[], &MemcachedSettings::default(), &steps);
}
