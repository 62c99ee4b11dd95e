//! Bytes that no switch would send: nothing panics, every reply is whole messages, and the points at which the stream
//! is cut do not matter.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::support::{Wire, features, frame, hello, message, packet_in, port_status, split};
use plimsoll_chronos::{Now, PartitionId, Service, SessionTransport, Step};
use plimsoll_chronos_openflow::{NO_BUFFER, OpenFlow, OpenFlowSettings};
use proptest::prelude::*;

/// A message of a switch, valid or nearly.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let version = prop_oneof![Just(1_u8), Just(4_u8)];
    let valid = (version, 0..7_u8, 0..4_u32, 0..6_u8, 0..6_u8, any::<bool>()).prop_map(
        |(version, which, port, source, destination, kept)| {
            let buffer = if kept { port } else { NO_BUFFER };
            match which {
                0 => hello(version),
                1 => features(version, 1),
                2 => port_status(version, source % 3, port, 0, u32::from(destination % 2)),
                3 => message(version, 2, 3, &[source; 9]),
                _ => packet_in(version, 5, buffer, port, &frame(source, destination)),
            }
        },
    );
    let broken =
        (valid.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut bytes, at, value)| {
            let at = at.index(bytes.len());
            bytes[at] = value;
            bytes
        });
    let cut = (valid.clone(), any::<prop::sample::Index>()).prop_map(|(mut bytes, at)| {
        // Cut short, with its length made to fit: the lengths within do not fit.
        let length = 8 + at.index(bytes.len() - 7);
        bytes.truncate(length);
        bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        bytes
    });
    prop_oneof![6 => valid, 3 => broken, 2 => cut, 1 => prop::collection::vec(any::<u8>(), 0..100)]
}

fn conversation() -> impl Strategy<Value = Vec<u8>> {
    (prop_oneof![Just(1_u8), Just(4_u8)], prop::collection::vec(any_message(), 0..20))
        .prop_map(|(version, messages)| [hello(version), features(version, 1), messages.concat()].concat())
}

/// Serves `input` in pieces of at most `piece` bytes, as a connection does.
fn in_pieces(input: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let mut wire = Wire::new(OpenFlowSettings { message_bytes_max: 300, ..OpenFlowSettings::default() });
    wire.direct.serve_in_pieces(&mut wire.session, wire.now, input, piece)
}

proptest! {
    #[test]
    fn any_bytes_get_whole_answers(input in prop::collection::vec(any::<u8>(), 0..400)) {
        let (reply, _) = in_pieces(&input, input.len().max(1));
        split(&reply);
    }

    #[test]
    fn a_conversation_may_be_cut_anywhere(input in conversation(), piece in 1..40_usize) {
        let whole = in_pieces(&input, input.len());
        split(&whole.0);
        prop_assert_eq!(in_pieces(&input, piece), whole);
    }

    #[test]
    fn requests_cross_threads_unchanged(input in conversation()) {
        let service = OpenFlow::new(OpenFlowSettings::default(), 16, 7);
        let mut session = service.open(SessionTransport::Tcp);
        let now = Now { since_start: std::time::Duration::ZERO, unix_seconds: 0 };
        let (mut rest, mut reply) = (&input[..], Vec::new());
        loop {
            match service.parse(&mut session, now, rest, &mut reply) {
                Step::Done { consumed } => rest = &rest[consumed..],
                Step::Run { consumed, partition, request } => {
                    prop_assert!(partition < PartitionId(16));
                    let mut crossed = Vec::new();
                    service.encode(&request, &mut crossed);
                    prop_assert_eq!(service.decode(&crossed), request);
                    rest = &rest[consumed..];
                }
                Step::Skip { bytes } if bytes <= rest.len() => rest = &rest[bytes..],
                _ => break,
            }
        }
    }
}
