//! Logins of the text protocol.

use plimsoll_chronos_memcached::{Credentials, MemcachedSettings, Protocol};

use crate::common::{Ours, Theirs, ask, finish, have_memcached};
use crate::differential::conversation::Steps;

#[test]
fn logins_in_text() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("users");
    std::fs::write(&path, "ann:secret\nbob:pass:word\n").expect("a file");
    let settings = MemcachedSettings {
        credentials: Some(Credentials::read(&path).expect("users")),
        protocol: Protocol::Text,
        ..MemcachedSettings::default()
    };
    // Each step is answered with one line, or none at the end of a conversation. memcached answers several lines that
    // come at once before a login only once, so they come one by one.
    let cases: &[(&str, Steps<'_>)] = &[
        ("not logged in", &[b"get a\r\n", b"mn\r\n", b"version\r\n"]),
        ("good", &[b"set x 0 0 10\r\nann secret\r\n", b"set a 0 0 1\r\nx\r\n", b"version\r\n"]),
        ("colon", &[b"set x 0 0 13\r\nbob pass:word\r\n", b"mn\r\n"]),
        ("wrong", &[b"set x 0 0 9\r\nann wrong\r\n", b"get a\r\n"]),
        ("again", &[b"set x 0 0 9\r\nann wrong\r\n", b"set x 0 0 10\r\nann secret\r\n", b"get a\r\n"]),
        ("one word", &[b"set x 0 0 3\r\nann\r\n", b"get a\r\n"]),
        ("bad length", &[b"set x 0 0 x\r\n", b"get a\r\n"]),
        ("short", &[b"set x 0 0\r\n", b"get a\r\n"]),
        ("bad end", &[b"set x 0 0 8\r\nann secret"]),
        ("a long line", &[&[b'x'; 3000]]),
    ];
    if !have_memcached() {
        return;
    }
    for (name, steps) in cases {
        let theirs = Theirs::start(&["-Y", path.to_str().expect("a path")]);
        let mut ours = Ours::new(settings.clone(), 1);
        let mut stream = theirs.connect();
        let (last, first) = steps.split_last().expect("a step");
        for step in first {
            let expected = ask(&mut stream, step, b"", b"\r\n");
            let got = ours.send(step);
            assert_eq!(
                got.escape_ascii().to_string(),
                format!("{}\\r\\n", expected.escape_ascii()),
                "{name}"
            );
        }
        let (got, expected) = (ours.send(last), finish(stream, last));
        assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{name}");
    }
}
