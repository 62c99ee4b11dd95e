//! READ in whole runs: the request's time and place, and the limit of outstanding READs.

use plimsoll_mechanisms::transports::PacketTypes;
use plimsoll_units::Span;

use crate::truth::lab::{Run, run};
use crate::truth::roce_acceptance::types;

/// A message of 100 KB from `h1` to `h2` at 10 Gb/s, with the keys `keys` of `[transport.roce]`, and `others`.
fn message(keys: &str, others: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'a message between two hosts'\n[run]\nduration = '10ms'\n\
         [topology]\nkind = 'rack'\nhosts = 4\nrate = '10Gbps'\ndelay = '1us'\n\
         [transport]\nkind = 'dcqcn'\nsegment = '1000B'\nheader = '48B'\nroce = {{ {keys} }}\n\
         [port.switch.ecn]\n[workload.w]\nkind = 'flows'\nfrom = ['h1']\nto = 'h2'\nsize = '100KB'\n{others}"
    ))
}

/// Returns how long the message took, its ideal time, and the packets of the run by type.
fn timed(run: &Run) -> (Span, Span, PacketTypes) {
    let message = run.of("w").next().unwrap();
    (message.completed.expect("it ends") - message.created, message.ideal, types(run))
}

#[test]
fn a_read_takes_the_time_of_its_request_more_than_a_write() {
    let [write, read] = ["", "operation = 'read'"].map(|keys| timed(&message(keys, "")));
    // 64 B on two links of 10 Gb/s, and 1 us for each.
    let request = Span::from_ps(2 * 51_200 + 2_000_000);
    assert_eq!((read.0, read.1), (write.0 + request, write.1 + request));
    assert_eq!((read.0, write.0), (read.1, write.1), "the path is idle");
    // The run ends with the message, before its last acknowledgements have come.
    let of = |types: &PacketTypes| [types.requests.received, types.data.received, types.acks.sent];
    assert_eq!((of(&write.2), of(&read.2)), ([0, 100, 100], [1, 100, 100]));
}

#[test]
fn a_read_is_complete_at_its_requester_where_writes_await_their_acknowledgement() {
    let acknowledged = "[observe]\ncompletion = 'acknowledged'\n";
    let [write, read] = ["", "operation = 'read'"]
        .map(|keys| [timed(&message(keys, "")).0, timed(&message(keys, acknowledged)).0]);
    // An acknowledgement of 60 B takes 48 ns on each of two links, and 1 us more for each.
    assert_eq!(write[1], write[0] + Span::from_ps(2 * 48_000 + 2_000_000));
    assert_eq!(read[1], read[0]);
}

#[test]
fn a_request_has_the_priority_of_the_data_and_not_of_acknowledgements() {
    // Two hosts fill the link to `h1` at priority 4 when the READ is posted, so that a request of a lower priority
    // waits there until they have sent 2 MB, in 1.7 ms. No mark slows them down.
    let with = |priority: u8| {
        let others = format!(
            "start = '100us'\n[workload.fill]\nkind = 'flows'\nfrom = ['h0', 'h3']\nto = 'h1'\nsize = '1MB'\n\
             [host]\nack_priority = 7\npriority = {{ w = {priority}, fill = 4 }}\n\
             [port.switch]\norder = 'priorities'\nbuffer = '32MB'\n"
        );
        timed(&message("operation = 'read', dcqcn.min_rate = '10Gbps'", &others)).0
    };
    let (above, below) = (with(5), with(3));
    assert!(above < Span::from_us(200), "{above}");
    assert!(below > Span::from_us(1_000), "{below}");
}
