//! Conversations in lines, with both servers.

use plimsoll_chronos_memcached::MemcachedSettings;

use crate::common::{Ours, Theirs, ask, finish, have_memcached, same};

/// A conversation: every step but the last is answered before the next is sent.
pub type Steps<'a> = &'a [&'a [u8]];

/// Runs conversations, each with a fresh server, and reports those with differences.
#[track_caller]
pub fn compare(options: &[&str], settings: &MemcachedSettings, cases: &[(&str, Steps<'_>)]) {
    if !have_memcached() {
        return;
    }
    let mut wrong = Vec::new();
    for (name, steps) in cases {
        let theirs = Theirs::start(options);
        let mut ours = Ours::new(settings.clone(), 1);
        let mut stream = theirs.connect();
        let (last, first) = steps.split_last().expect("a step");
        let mut answers = Vec::new();
        for step in first {
            let expected = ask(&mut stream, step, b"mn\r\n", b"MN\r\n");
            let mut got = ours.send(step);
            let mark = ours.send(b"mn\r\n");
            if mark != b"MN\r\n" {
                got.extend_from_slice(&mark);
            }
            answers.push((*step, got, expected));
        }
        answers.push((last, ours.send(last), finish(stream, last)));
        for (step, got, expected) in answers {
            if !same(&got, &expected, true) {
                let shown =
                    |bytes: &[u8]| bytes.escape_ascii().to_string().chars().take(400).collect::<String>();
                wrong.push(format!(
                    "{name}: {}\n  ours   {}\n  theirs {}",
                    shown(step),
                    shown(&got),
                    shown(&expected)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} answers differ\n{}", wrong.len(), wrong.join("\n"));
}

/// A key that is too long.
pub const LONG: &[u8] = &[b'k'; 300];

/// Parts, one after the other.
pub fn with(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}
