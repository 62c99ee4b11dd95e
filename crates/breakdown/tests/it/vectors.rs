//! Traces of one or a few requests, with the expected results.

use plimsoll_breakdown::Part::{self, *};
use plimsoll_breakdown::Reason;

use crate::script::run;

/// Checks the spans of each request, the numbers of unmatched requests by reason, and the number of requests cut off.
#[track_caller]
fn check(script: &str, parts: &[&[(Part, u64)]], unmatched: &[(Reason, u64)], cut_off: u64) {
    let outcome = run(script);
    assert_eq!(outcome.parts(), parts, "{outcome:#?}");
    assert_eq!(outcome.unmatched(), (unmatched.to_vec(), cut_off), "{outcome:#?}");
}

/// The request of an idle server: its thread sleeps, wakes, reads, computes and replies.
#[test]
fn an_idle_server() {
    check(
        "100 rx A 0+10
         105 ready A
         120 on 7 50 107
         126 read A 7 10
         140 send A 7
         147 queue A 7 0+20
         149 tx A 7 0+20",
        &[&[(Receive, 5), (WakeUp, 2), (RunQueue, 13), (Read, 6), (Application, 14), (Send, 7), (Queue, 2)]],
        &[],
        0,
    );
}

/// The thread serves connection B while A's request waits in its socket.
#[test]
fn a_busy_thread() {
    check(
        "100 rx B 0+10
         101 ready B
         102 read B 7 10
         103 rx A 0+10
         104 ready A
         110 send B 7
         112 tx B 7 0+5
         115 read A 7 10
         116 send A 7
         118 tx A 7 0+5",
        &[
            &[(Receive, 1), (Read, 1), (Application, 8), (Send, 2)],
            &[(Receive, 1), (Busy, 8), (Read, 3), (Application, 1), (Send, 2)],
        ],
        &[],
        0,
    );
}

/// The application sleeps for a lock, then loses its processor, also inside the send.
#[test]
fn sleep_and_preemption_in_the_application() {
    check(
        "100 rx A 0+10
         101 ready A
         102 read A 7 10
         125 on 7 105 120
         133 back 7 130
         140 send A 7
         148 back 7 142
         150 tx A 7 0+5",
        &[&[
            (Receive, 1),
            (Read, 1),
            (Application, 3),
            (Blocked, 15),
            (Preempted, 5),
            (Application, 5),
            (Preempted, 3),
            (Application, 7),
            (Send, 2),
            (Preempted, 6),
            (Send, 2),
        ]],
        &[],
        0,
    );
}

/// One thread reads and another sends: its sleep before the handoff is time that the application sleeps.
#[test]
fn a_handoff_between_threads() {
    check(
        "100 rx A 0+10
         101 ready A
         102 read A 7 10
         115 on 8 40 110
         130 send A 8
         131 tx A 8 0+5",
        &[&[(Receive, 1), (Read, 1), (Blocked, 8), (Preempted, 5), (Application, 15), (Send, 1)]],
        &[],
        0,
    );
}

/// A request in three segments and two reads, a reply in two segments.
#[test]
fn a_long_request_and_a_long_reply() {
    check(
        "100 rx A 0+10
         101 ready A
         102 read A 7 10
         110 rx A 10+10
         111 ready A
         112 rx A 20+10
         113 ready A
         115 read A 7 20
         116 read A 7 1
         120 send A 7
         121 tx A 7 0+50
         129 tx A 7 50+50
         200 rx A 30+10",
        &[&[(Arrival, 12), (Receive, 1), (Read, 2), (Application, 5), (Send, 1), (Reply, 8)]],
        &[],
        1,
    );
}

/// The client repeats its segment, a bridge shows it twice, and the server repeats its reply: none of these counts.
#[test]
fn retransmissions_do_not_count() {
    check(
        "100 rx A 4294967290+10
         101 rx A 4294967290+10
         102 ready A
         103 read A 7 10
         104 send A 7
         105 tx A 7 0+5
         300 tx A 0 0+5
         400 rx A 4+10
         401 tx A 0 0+5
         402 ready A
         403 read A 7 10
         404 send A 7
         405 tx A 7 5+5",
        &[
            &[(Receive, 2), (Read, 1), (Application, 1), (Send, 1)],
            &[(Receive, 2), (Read, 1), (Application, 1), (Send, 1)],
        ],
        &[],
        0,
    );
}

/// A device above another: the packet has left when the lower one has it.
#[test]
fn stacked_devices() {
    check(
        "100 rx A 0+10
         101 ready A
         102 read A 7 10
         103 send A 7
         105 tx A 7 0+5 @2
         108 queue A 7 0+5 @1
         115 tx A 0 0+5 @1",
        &[&[(Receive, 1), (Read, 1), (Application, 1), (Send, 5), (Queue, 7)]],
        &[],
        0,
    );
}

/// UDP has no tracepoint where the send begins: the system call takes its place. Its queue shows whose datagram is
/// read.
#[test]
fn datagrams() {
    check(
        "100 udp A 10
         101 waits A 5
         110 take 5 7 10
         120 tx A 7 0+5 !115
         200 udp A 10
         201 waits A 5
         202 udp B 10
         203 waits B 5
         210 take 5 7 10
         211 take 5 8 10
         220 tx B 8 0+5 !215
         221 tx A 7 0+5 !219
         300 udp A 10
         301 waits A 5
         310 take 5 7 10
         320 tx A 7 0+5 !219",
        &[
            &[(Receive, 1), (Read, 9), (Application, 5), (Send, 5)],
            &[(Receive, 1), (Read, 9), (Application, 9), (Send, 2)],
            &[(Receive, 1), (Read, 8), (Application, 4), (Send, 5)],
        ],
        &[(Reason::SendNotSeen, 1)],
        0,
    );
}

/// A datagram whose arrival was missed shifts the queue: the reply to another client shows it, or the empty queue.
#[test]
fn a_missed_datagram() {
    check(
        "100 udp B 10
         101 waits B 5
         102 udp C 10
         103 waits C 5
         110 take 5 7 10
         115 tx C 7 0+5 !112
         120 take 5 7 10
         130 udp D 10
         131 waits D 5
         132 take 5 7 10
         134 tx D 7 0+5 !133",
        &[&[(Receive, 1), (Read, 1), (Application, 1), (Send, 1)]],
        &[(Reason::ArrivalNotSeen, 1), (Reason::Disorder, 2)],
        0,
    );
}

/// Two datagrams of one client before the first reply: both count, neither is matched.
#[test]
fn overlapping_datagrams() {
    check(
        "100 udp A 10
         101 udp A 10
         110 read A 7 10
         111 read A 7 10
         120 tx A 7 0+5 !115
         121 tx A 7 0+5 !115",
        &[],
        &[(Reason::Pipelined, 2)],
        0,
    );
}

/// Requests that overlap on a connection are counted, whichever way it shows.
#[test]
fn pipelined_requests() {
    // Data arrives after the read, and is not read before the reply.
    check(
        "100 rx A 0+10
         101 ready A
         102 read A 7 10
         103 rx A 10+10
         104 send A 7
         105 tx A 7 0+5",
        &[],
        &[(Reason::Pipelined, 1)],
        0,
    );
    // Data arrives during the reply, more of which is sent before that data is read.
    check(
        "100 rx A 0+10
         101 ready A
         102 read A 7 10
         103 send A 7
         104 tx A 7 0+5
         105 rx A 10+10
         106 send A 7
         107 tx A 7 5+5
         110 read A 7 10
         111 send A 7
         112 tx A 7 10+5",
        &[],
        &[(Reason::Pipelined, 2)],
        0,
    );
    // Two segments, read at once, have two replies.
    check(
        "100 rx A 0+10
         101 rx A 10+10
         102 ready A
         103 read A 7 20
         104 send A 7
         105 tx A 7 0+5
         106 send A 7
         107 tx A 7 5+5",
        &[],
        &[(Reason::Pipelined, 1)],
        0,
    );
    // The reply is long, and one system call sends it.
    check(
        "100 rx A 0+10
         101 rx A 10+10
         102 ready A
         103 read A 7 20
         104 send A 7 100000
         105 tx A 7 0+60000
         106 send A 7 40000
         107 tx A 7 60000+40000",
        &[&[(Arrival, 1), (Receive, 1), (Read, 1), (Application, 1), (Send, 1), (Reply, 2)]],
        &[],
        0,
    );
}

/// Requests without a reply, without an arrival, or at an edge of the trace.
#[test]
fn incomplete_requests() {
    check("100 rx A 0+10 \n 102 read A 7 10 \n 103 close A", &[], &[(Reason::NoReply, 1)], 0);
    check("100 rx A 0+10 \n 102 read A 7 10", &[], &[], 1);
    // It was in the socket when tracing began; the next one's arrival was missed.
    check(
        "100 read A 7 10
         101 send A 7
         102 tx A 7 0+5
         110 rx A 0+10
         111 ready A
         112 read A 7 10
         113 send A 7
         114 tx A 7 5+5
         120 read A 7 10
         121 send A 7
         122 tx A 7 10+5
         130 rx A 20+10
         131 ready A
         132 read A 7 10
         133 send A 7
         134 tx A 7 15+5",
        &[
            &[(Receive, 1), (Read, 1), (Application, 1), (Send, 1)],
            &[(Receive, 1), (Read, 1), (Application, 1), (Send, 1)],
        ],
        &[(Reason::ArrivalNotSeen, 1)],
        1,
    );
    // The socket's notification was missed.
    check(
        "100 rx A 0+10
         120 read A 7 10
         121 send A 7
         122 tx A 7 0+5",
        &[&[(Remainder, 20), (Application, 1), (Send, 1)]],
        &[],
        0,
    );
    check(
        "100 rx A 0+10
         101 ready A
         102 read A 7 10
         lost
         103 send A 7
         104 tx A 7 0+5",
        &[],
        &[(Reason::RecordsLost, 1)],
        0,
    );
}

/// A closed connection's ports are used again, with other sequence numbers.
#[test]
fn a_new_connection_with_the_same_ports() {
    check(
        "100 rx A 1000000+10
         101 ready A
         102 read A 7 10
         103 send A 7
         104 tx A 7 0+5
         105 close A
         200 rx A 5+10
         201 ready A
         202 read A 7 10
         203 send A 7
         204 tx A 7 4000000000+5",
        &[
            &[(Receive, 1), (Read, 1), (Application, 1), (Send, 1)],
            &[(Receive, 1), (Read, 1), (Application, 1), (Send, 1)],
        ],
        &[],
        0,
    );
}
