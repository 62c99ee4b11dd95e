//! One table of requests and replies, in every mode.

use plimsoll_chronos::Listen;

use crate::runtime::client::{Client, all_modes, any_port, start};

const TABLE: &[(&str, &str)] = &[
    ("hello\n", "hello\n"),
    ("put 0 7 0\nput 1 7 0\nput 2 7 0\nput 3 7 0\n", "ok 0 0\nok 1 0\nok 2 0\nok 3 0\n"),
    ("put 0 7 1\nhello\nput 1 7 1\nnonsense\nput 0 7 2\n", "ok 0 1\nhello\nok 1 1\nwhat?\nok 0 2\n"),
    ("get 0\nget 1\nget 2\nget 31\n", "3\n2\n1\n0\n"),
    ("put 5 7 0\nsum\nput 5 7 1\nsum\nhello\n", "ok 5 0\n8\nok 5 1\n9\nhello\n"),
    ("echo 0 5\nabcdeecho 1 3\nxy\necho 1 0\nget 5\n", "abcdexy\n2\n"),
    ("skip 4\nabcdhello\n", "skipped\nhello\n"),
    ("put 0 7 9\n", "disorder 0 9 3\n"),
];

#[test]
fn every_mode_answers_alike() {
    for mut config in all_modes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        config.listen = vec![Listen::Tcp(any_port()), Listen::Unix { path: path.clone(), mode: 0o600 }];
        for whole in [true, false] {
            let (server, _) = start(&config);
            if whole {
                let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
                check(&mut Client::over(stream.try_clone().unwrap(), stream), whole);
            } else {
                check(&mut Client::connect(&server), whole);
            }
            server.stop().unwrap_or_else(|error| panic!("{config:?}: {error}"));
            assert!(!path.exists());
        }
    }
}

fn check<S: std::io::Read + std::io::Write>(client: &mut Client<S>, whole: bool) {
    for (request, reply) in TABLE {
        if whole {
            client.send(request);
        } else {
            // Byte by byte: a request may come in any pieces.
            request.chars().for_each(|char| client.send(&char.to_string()));
        }
        let answer = client.bytes(reply.len());
        assert_eq!(String::from_utf8_lossy(&answer), *reply, "to {request:?}");
    }
    client.send("quit\n");
    assert!(client.is_closed());
}
