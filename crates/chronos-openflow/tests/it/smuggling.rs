//! Other protocols at the controller's address: a web page can make a browser send a request of its own making there,
//! and no part of it is ever read as a message of a switch.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::support::{Wire, features, frame, hello, packet_in};
use plimsoll_chronos_openflow::{NO_BUFFER, OpenFlowSettings};
use proptest::prelude::*;

/// A switch's handshake, and a packet that teaches the controller a station.
fn evil(version: u8) -> Vec<u8> {
    let packet = packet_in(version, 5, NO_BUFFER, 1, &frame(1, 0xff));
    [hello(version), features(version, 1), packet].concat()
}

/// Serves `input` in pieces; true if the connection was closed. No station may be known then.
#[track_caller]
fn is_closed(input: &[u8], piece: usize) -> bool {
    let mut wire = Wire::new(OpenFlowSettings::default());
    let (reply, is_closed) = wire.direct.serve_in_pieces(&mut wire.session, wire.now, input, piece);
    assert_eq!(wire.stations(), 0, "{:?}", input[..input.len().min(40)].escape_ascii().to_string());
    assert!(reply.len() <= 100, "no more than an error is answered: {} bytes", reply.len());
    is_closed
}

#[test]
fn requests_of_other_protocols_end_the_connection_at_once() {
    let heads: [&[u8]; 9] = [
        b"POST / HTTP/1.1\r\nHost: localhost:6653\r\nContent-Type: text/plain\r\nContent-Length: 60000\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"PUT /x HTTP/1.1\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"set key 0 0 60000\r\n",
        b"EHLO localhost\r\n",
        // TLS, and memcached's binary protocol.
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x80\x01\x00\x03\x08\x00\x00\x00\x00\x00\xea\x60",
    ];
    for head in heads {
        for version in [1, 4] {
            let hides = evil(version);
            // Bytes in the head that look like a length may be skipped exactly: all values of two bytes are tried.
            let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
            for padding in [0, 1, length.saturating_sub(head.len()), length, 64_000] {
                let input = [head, &vec![b'x'; padding], &hides].concat();
                for piece in [input.len(), 1460, 9] {
                    assert!(is_closed(&input, piece), "{}, {padding} bytes", head.escape_ascii());
                }
            }
        }
    }
}

proptest! {
    /// Only a first message that is a hello, of an allowed length, is followed by another.
    #[test]
    fn what_does_not_begin_with_a_hello_says_nothing(
        first in any::<[u8; 4]>(),
        rest in prop::collection::vec(any::<u8>(), 4..200),
        version in prop_oneof![Just(1_u8), Just(4_u8)],
    ) {
        let length = usize::from(u16::from_be_bytes([first[2], first[3]]));
        prop_assume!(first[1] != 0 || !(8..=1024).contains(&length));
        let mut input = [&first[..], &rest].concat();
        input.resize(length.max(input.len()), 0);
        input.extend(evil(version));
        prop_assert!(is_closed(&input, input.len()));
    }
}
