//! Bytes that no client would send: nothing panics, and the points at which the stream is cut do not matter.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::support::{NOW, SECRET, Wire};
use plimsoll_chronos::{Service, SessionTransport, Step};
use plimsoll_chronos_search::{SearchService, SearchSettings, Sets};
use proptest::prelude::*;

fn command() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec!["sun", "moon", "a", "", "  ", "\u{e4}", "0", "noreply"]);
    let memcached = (
        prop::sample::select(vec!["get", "set", "delete", "stats", "version", "gets"]),
        prop::collection::vec(word.clone(), 0..5),
    )
        .prop_map(|(command, words)| format!("{command} {}\r\n", words.join(" ")).into_bytes());
    let set = (word.clone(), "[a-z ]{0,30}", 0..3_usize).prop_map(|(id, text, off)| {
        format!("set {id} 0 0 {}\r\n{text}\r\n", text.len() + off / 2).into_bytes()
    });
    prop_oneof![4 => memcached, 4 => set, 1 => prop::collection::vec(any::<u8>(), 0..50)]
}

fn http() -> impl Strategy<Value = Vec<u8>> {
    let target = prop::sample::select(vec![
        "/search?q=sun+moon&mode=or",
        "/search?q=%zz",
        "/documents/a",
        "/stats",
        "*",
    ]);
    let method = prop::sample::select(vec!["GET", "PUT", "DELETE", "POST"]);
    let field = prop::sample::select(vec![
        "",
        "Connection: close\r\n",
        "Expect: 100-continue\r\n",
        "Content-Type: application/json\r\n",
        "Transfer-Encoding: x\r\n",
        ": :\r\n",
    ]);
    (method, target, field, "[a-z\"{}: ]{0,30}").prop_map(|(method, target, field, body)| {
        let head =
            format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{field}Content-Length: {}\r\n\r\n", body.len());
        format!("{head}{body}").into_bytes()
    })
}

fn conversation() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(command(), 0..12).prop_map(|commands| commands.concat()),
        prop::collection::vec(http(), 0..6).prop_map(|requests| requests.concat()),
        prop::collection::vec(any::<u8>(), 0..200),
    ]
}

/// Serves `input` in pieces of at most `piece` bytes, as a connection does.
fn in_pieces(input: &[u8], piece: usize, snapshots: bool) -> (Vec<u8>, bool) {
    let sets = Sets::Documents;
    let mut wire =
        Wire::new(SearchSettings { sets, document_bytes_max: 25, snapshots, ..SearchSettings::default() }, 3);
    wire.direct.serve_in_pieces(&mut wire.session, NOW, input, piece)
}

/// A client is asked to continue only if it has not.
fn without_continue(reply: &[u8]) -> String {
    String::from_utf8_lossy(reply).replace("HTTP/1.1 100 Continue\r\n\r\n", "")
}

proptest! {
    #[test]
    fn a_conversation_may_be_cut_anywhere(input in conversation(), piece in 1..30_usize) {
        let (whole, closed) = in_pieces(&input, input.len().max(1), false);
        for snapshots in [false, true] {
            let (pieces, pieces_closed) = in_pieces(&input, piece, snapshots);
            prop_assert_eq!(without_continue(&pieces), without_continue(&whole));
            prop_assert_eq!(pieces_closed, closed);
        }
    }

    #[test]
    fn requests_cross_threads_unchanged(input in conversation(), postings in any::<bool>()) {
        let sets = if postings { Sets::Postings } else { Sets::Documents };
        let search = SearchService::new(SearchSettings { sets, ..SearchSettings::default() }, 5, SECRET);
        let mut session = search.open(SessionTransport::Tcp);
        let (mut rest, mut reply) = (&input[..], Vec::new());
        loop {
            match search.parse(&mut session, NOW, rest, &mut reply) {
                Step::Done { consumed } if consumed > 0 => rest = &rest[consumed..],
                Step::Run { consumed, request, .. } | Step::Everywhere { consumed, request } => {
                    let mut crossed = Vec::new();
                    search.encode(&request, &mut crossed);
                    prop_assert_eq!(search.decode(&crossed), request);
                    rest = &rest[consumed..];
                }
                Step::Skip { bytes } if bytes <= rest.len() => rest = &rest[bytes..],
                _ => break,
            }
        }
    }
}
