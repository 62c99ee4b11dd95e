//! Reads events from a short script, a line each, so that a vector reads like a trace.

use plimsoll_breakdown::{Event, EventKind, Flow, Matcher, Packet, Part, Protocol, Reason, Request};

/// The matcher's results for a script.
#[derive(Debug)]
pub struct Outcome {
    pub requests: Vec<Request>,
    pub matcher: Matcher,
}

impl Outcome {
    /// Returns the parts of each request that have time, in the order of their spans.
    pub fn parts(&self) -> Vec<Vec<(Part, u64)>> {
        let of =
            |request: &Request| request.spans.iter().map(|span| (span.part, span.to - span.from)).collect();
        self.requests.iter().map(of).collect()
    }

    /// Returns the numbers of requests without breakdown, by reason, and of the requests cut off.
    pub fn unmatched(&self) -> (Vec<(Reason, u64)>, u64) {
        let unmatched = self.matcher.unmatched();
        let some = Reason::ALL.map(|reason| (reason, unmatched.of(reason)));
        (some.into_iter().filter(|(_, number)| *number > 0).collect(), unmatched.cut_off)
    }
}

/// Runs a script. A line is a time, a kind and its values:
///
/// ```text
/// 100 rx A 0+10       segment of connection A, sequence number 0, 10 bytes     100 udp A 10    datagram
/// 101 ready A                                                                   101 waits A 5     in UDP socket 5
/// 120 on 7 90 105     thread 7 continues, stopped at 90, woken at 105          120 back 7 90   it was preempted at 90
/// 130 read A 7 10     thread 7 reads 10 bytes                                   130 take 5 7 10   from socket 5
/// 140 send A 7            its system call has 5 bytes, or as many as a further number says
/// 150 queue A 7 0+20  into the queueing discipline
/// 160 tx A 7 0+20     to the device: `@2` for device 2, `!155` for a system call that began at 155
/// 170 close A         `lost`: records were lost
/// ```
pub fn run(script: &str) -> Outcome {
    let mut matcher = Matcher::default();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words == ["lost"] {
            matcher.on_lost();
            continue;
        }
        let at = number(words[0]);
        matcher.on_event(&Event { at, kind: kind(&words[1..]) });
    }
    matcher.finish();
    let mut requests = matcher.take();
    requests.sort_by_key(|request| request.received);
    Outcome { requests, matcher }
}

fn kind(words: &[&str]) -> EventKind {
    let flow = |name: &str| Flow::from_bits(u64::from(name.as_bytes()[0]) << 16 | 80);
    match words {
        ["rx", name, range] => {
            let (sequence, bytes) = segment(range);
            EventKind::Received { flow: flow(name), protocol: Protocol::Tcp, sequence, bytes }
        }
        ["udp", name, bytes] => EventKind::Received {
            flow: flow(name),
            protocol: Protocol::Udp,
            sequence: 0,
            bytes: number(bytes) as u32,
        },
        ["ready", name] => EventKind::Ready { flow: flow(name), socket: None },
        ["waits", name, socket] => EventKind::Ready { flow: flow(name), socket: Some(number(socket)) },
        ["take", socket, thread, bytes] => EventKind::ReadDatagram {
            socket: number(socket),
            thread: number(thread) as u32,
            bytes: number(bytes) as u32,
        },
        ["on", thread, stopped, woken] => EventKind::Resumed {
            thread: number(thread) as u32,
            stopped: number(stopped),
            woken: number(woken),
            preempted: false,
        },
        ["back", thread, stopped] => EventKind::Resumed {
            thread: number(thread) as u32,
            stopped: number(stopped),
            woken: 0,
            preempted: true,
        },
        ["read", name, thread, bytes] => {
            EventKind::Read { flow: flow(name), thread: number(thread) as u32, bytes: number(bytes) as u32 }
        }
        ["send", name, thread, bytes @ ..] => EventKind::Send {
            flow: flow(name),
            thread: number(thread) as u32,
            bytes: bytes.first().map_or(5, |bytes| number(bytes) as u32),
        },
        [what @ ("queue" | "tx"), name, thread, range, options @ ..] => {
            let (sequence, bytes) = segment(range);
            let option = |mark| options.iter().find_map(|option| option.strip_prefix(mark)).map(number);
            let packet = Packet {
                flow: flow(name),
                thread: number(thread) as u32,
                sequence,
                bytes,
                device: option("@").unwrap_or(1) as u32,
                call: option("!").unwrap_or(0),
            };
            if *what == "queue" { EventKind::Queued(packet) } else { EventKind::Transmitted(packet) }
        }
        ["close", name] => EventKind::Closed { flow: flow(name) },
        _ => panic!("no event: {words:?}"),
    }
}

fn segment(range: &str) -> (u32, u32) {
    let (sequence, bytes) = range.split_once('+').unwrap();
    (number(sequence) as u32, number(bytes) as u32)
}

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}
