//! Two protocols at one address: a connection that begins with one is never read as the other, so that a web page, or a
//! program that is made to fetch an address, can write nothing by memcached's commands; and no request hides in
//! another's body.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::support::{NOW, Wire};
use plimsoll_chronos_search::{SearchSettings, Sets};
use proptest::prelude::*;

/// Requests that neither protocol may execute.
const EVIL: [&str; 4] = [
    "set evil 0 0 4\r\nevil\r\n",
    "\r\nset evil 0 0 4\r\nevil\r\n",
    "version\r\nset evil 0 0 4\r\nevil\r\nquit\r\n",
    "PUT /documents/evil HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nevil",
];

/// Returns the answers to `input` in pieces, whether it was closed, and the number of documents then; the document
/// `kept` existed before.
fn serve(input: &[u8], piece: usize) -> (String, bool, u64) {
    let settings =
        SearchSettings { sets: Sets::Documents, document_bytes_max: 100_000, ..SearchSettings::default() };
    let mut wire = Wire::new(settings, 3);
    wire.put("kept", "sun");
    wire.session = Default::default();
    let (reply, closed) = wire.direct.serve_in_pieces(&mut wire.session, NOW, input, piece);
    let (_, stats) = wire.http("GET", "/stats", "");
    (String::from_utf8(reply).unwrap(), closed, stats["documents"].as_u64().unwrap())
}

/// Serves `input` cut in several ways; nothing may have been stored, and it must be closed or not.
#[track_caller]
fn assert_harmless(input: &str, is_closed: bool) -> String {
    let whole = serve(input.as_bytes(), input.len());
    assert_eq!((whole.1, whole.2), (is_closed, 1), "{input:?}\n{}", whole.0);
    for piece in [1, 7, 100] {
        assert_eq!(serve(input.as_bytes(), piece), whole, "{input:?} in pieces of {piece}");
    }
    whole.0
}

#[test]
fn a_body_is_no_command() {
    for evil in EVIL {
        let length = evil.len();
        for head in [
            "POST / HTTP/1.1\r\nHost: 127.0.0.1:11311\r\nContent-Type: text/plain\r\n",
            "POST /documents/evil HTTP/1.1\r\nHost: x\r\n",
            "GET /search?q=sun HTTP/1.1\r\nHost: x\r\n",
            "DELETE /documents/none HTTP/1.1\r\nHost: x\r\n",
            "OPTIONS /documents/evil HTTP/1.1\r\nHost: x\r\nOrigin: http://example.org\r\n\
             Access-Control-Request-Method: PUT\r\n",
        ] {
            let input = format!(
                "{head}Content-Length: {length}\r\n\r\n{evil}GET /search?q=sun HTTP/1.1\r\nHost: x\r\n\r\n"
            );
            let reply = assert_harmless(&input, false);
            // The request after the body is the next, and no other is.
            assert_eq!(reply.matches("HTTP/1.1 ").count(), 2, "{reply}");
            assert!(reply.ends_with("}\n") && reply.contains("\"matches\":1"), "{reply}");
        }
    }
}

#[test]
fn what_follows_a_request_is_a_request_or_the_end() {
    for evil in &EVIL[..3] {
        for head in [
            // Fewer bytes than there are, and none at all.
            "GET /search?q=sun HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
            "GET /search?q=sun HTTP/1.1\r\nHost: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
            // Another protocol is requested, and refused.
            "GET /search?q=sun HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: memcached\r\n\r\n",
            "GET /stats HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
             HTTP2-Settings: AAMAAABk\r\n\r\n",
            "CONNECT 127.0.0.1:11311 HTTP/1.1\r\nHost: x\r\n\r\n",
        ] {
            let reply = assert_harmless(&format!("{head}{evil}"), true);
            assert!(reply.contains("HTTP/1.1 400"), "{head:?}{evil:?}\n{reply}");
            assert!(!reply.contains(" 101 ") && !reply.contains("STORED"), "{reply}");
        }
    }
}

/// If two readers could disagree about a body's length, the server reads no body, and no next request.
#[test]
fn a_length_in_doubt_ends_the_connection() {
    let heads = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "transfer-encoding:\tidentity\r\n",
        "Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Content-Length: 0\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: \r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length : 5\r\n",
        "Content-Length: 18446744073709551621\r\n",
        "Content-Length:\r\n 5\r\n",
        "X: y\r\n\tContent-Length: 5\r\n",
        "Content\0-Length: 5\r\n",
    ];
    for head in heads {
        for method in ["POST / ", "GET /search?q=sun ", "PUT /documents/evil "] {
            for evil in EVIL {
                let body = format!("0\r\n\r\n{evil}");
                let reply =
                    assert_harmless(&format!("{method}HTTP/1.1\r\nHost: x\r\n{head}\r\n{body}"), true);
                assert!(
                    reply.starts_with("HTTP/1.1 4") || reply.starts_with("HTTP/1.1 501"),
                    "{head:?}\n{reply}"
                );
                assert_eq!(reply.matches("HTTP/1.1 ").count(), 1, "{head:?}\n{reply}");
            }
        }
    }
}

#[test]
fn other_versions_of_http_end_the_connection() {
    for evil in EVIL {
        for head in [
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "GET /search?q=sun HTTP/3\r\n\r\n",
            "GET /search?q=sun HTTP/1.2\r\n\r\n",
            "GET /search?q=sun HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            "GET /search?q=sun\r\n\r\n",
            "GET /search?q=sun HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        ] {
            assert_harmless(&format!("{head}{evil}"), true);
        }
    }
}

/// A connection that began with memcached's protocol ends at a line of HTTP, as with memcached: the body after it is
/// not commands.
#[test]
fn commands_followed_by_http_end_there() {
    for before in ["version\r\n", "\r\n", "get none\r\n", " ", "\n", "stats\r\n", "set kept 0 0 3\r\nsun\r\n"]
    {
        for request in [
            "POST / HTTP/1.1\r\n",
            "POST / HTTP/1.1\n",
            "GET /search HTTP/1.1\r\n",
            "PUT  /documents/evil  HTTP/1.0\r\n",
            "post / HTTP/1.1\r\n",
            "PRI * HTTP/2.0\r\n",
            "M-SEARCH * HTTP/1.1 \r\n",
        ] {
            for evil in EVIL {
                let length = evil.len();
                let reply = assert_harmless(
                    &format!("{before}{request}Host: x\r\nContent-Length: {length}\r\n\r\n{evil}"),
                    true,
                );
                assert!(!reply.contains("HTTP/1.1 "), "{reply}");
            }
        }
    }
    // A value may have any lines, and a word any name.
    let value = "POST / HTTP/1.1\r\n\r\nset evil 0 0 4\r\nevil";
    let set = format!("set kept 0 0 {}\r\n{value}\r\nget HTTP/1.1\r\n", value.len());
    assert_eq!(assert_harmless(&set, false), "STORED\r\nEND\r\n");
}

proptest! {
    /// Whatever head begins with a method of HTTP, and whatever its body, no command of memcached is carried out.
    #[test]
    fn no_web_request_is_a_command(
        method in "[A-Z][A-Z-]{0,6}",
        target in "[ -~]{0,20}",
        fields in prop::collection::vec(prop_oneof![
            Just("Host: localhost\r\n".to_owned()),
            (0..60_usize).prop_map(|length| format!("Content-Length: {length}\r\n")),
            Just("Transfer-Encoding: chunked\r\n".to_owned()),
            Just("Upgrade: x\r\n".to_owned()),
            "[ -~]{0,20}\r\n",
        ], 0..5),
        body in prop::collection::vec(prop::sample::select(EVIL[..3].to_vec()), 1..4),
        piece in 1..200_usize,
    ) {
        let input = format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{}\r\n{}", fields.concat(), body.concat());
        let (reply, _, documents) = serve(input.as_bytes(), piece);
        prop_assert_eq!(documents, 1, "{:?}", input);
        prop_assert!(!reply.contains("STORED") && !reply.contains("VERSION"), "{:?}\n{}", input, reply);
    }
}
