//! Random traces: with any events, every request's parts add up to its latency, and none is lost from the counts.

use plimsoll_breakdown::{Event, EventKind, Flow, Matcher, Packet, Protocol};
use proptest::prelude::*;

fn kind(what: u8, flow: u64, thread: u32, number: u32, back: u64, at: u64) -> EventKind {
    let flow = Flow::from_bits(flow);
    let packet = Packet {
        flow,
        thread,
        sequence: number,
        bytes: 5 + number % 7,
        device: 1 + number % 2,
        call: at.saturating_sub(back),
    };
    match what {
        0 => EventKind::Received { flow, protocol: Protocol::Tcp, sequence: number, bytes: 10 },
        1 => EventKind::Received { flow, protocol: Protocol::Udp, sequence: 0, bytes: 10 },
        2 => EventKind::Ready { flow, socket: number.is_multiple_of(2).then_some(u64::from(number % 3)) },
        3 | 4 => EventKind::Read { flow, thread, bytes: 10 },
        5 => EventKind::Send { flow, thread, bytes: number },
        6 => EventKind::Queued(packet),
        7 | 8 => EventKind::Transmitted(packet),
        9 => EventKind::Closed { flow },
        10 => EventKind::ReadDatagram { socket: u64::from(number % 3), thread, bytes: 10 },
        _ => EventKind::Resumed {
            thread,
            stopped: at.saturating_sub(back),
            woken: at.saturating_sub(back / 2),
            preempted: number.is_multiple_of(3),
        },
    }
}

proptest! {
    #[test]
    fn parts_add_up_in_any_trace(
        steps in proptest::collection::vec((0_u8..13, 0_u64..3, 1_u32..3, 0_u32..60, 0_u64..40, 0_u64..6), 1..200)
    ) {
        let mut matcher = Matcher::default();
        let (mut at, mut reads) = (1_000, 0);
        for (what, flow, thread, number, back, later) in steps {
            at += later;
            let kind = kind(what, flow, thread, number, back, at);
            use EventKind::{Read, ReadDatagram, Received};
            reads += u64::from(matches!(kind, Received { .. } | Read { .. } | ReadDatagram { .. }));
            matcher.on_event(&Event { at, kind });
        }
        matcher.finish();
        let requests = matcher.take();
        for request in &requests {
            // The spans themselves are asserted where the request is made.
            prop_assert_eq!(request.parts.iter().sum::<u64>(), request.latency);
            prop_assert!(request.received + request.latency <= at);
        }
        let unmatched = matcher.unmatched();
        // A request has an arrival or a read of its own.
        prop_assert!(requests.len() as u64 + unmatched.total() + unmatched.cut_off <= reads);
    }
}
