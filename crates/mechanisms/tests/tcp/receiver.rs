//! Times and contents of ACKs, and the data that reaches the application.

use plimsoll_mechanisms::tcp::{EcnField, Recovery, TransportParams};

use crate::script::{Script, params};

const PLAIN: EcnField = EcnField::NotEct;

#[test]
fn every_second_segment_is_acknowledged() {
    let mut s = Script::new(TransportParams { ack_every: 2, ..params() });
    assert_eq!(s.data(0, 1000, PLAIN).new_bytes, 1000);
    s.silent().deadline(40_000).at(10).data(1000, 1000, PLAIN);
    s.acks(2000);
    s.silent().no_deadline();
    s.at(20).data(2000, 500, PLAIN);
    s.silent().deadline(40_020).expire();
    s.acks(2500);
    s.silent().no_deadline();
    assert!(s.end.is_idle());
}

#[test]
fn a_waiting_ack_rides_on_data_but_one_that_is_due_does_not() {
    let mut s = Script::new(TransportParams { ack_every: 2, ..params() });
    s.data(0, 100, PLAIN);
    s.write(300);
    let segment = s.poll().unwrap();
    assert_eq!((segment.len, segment.ack), (300, 100));
    s.silent();
    let mut s = Script::new(params());
    s.data(0, 100, PLAIN);
    s.write(300);
    s.acks(100);
    s.sends_part(0, 300).silent();
}

#[test]
fn holes_are_reported_at_once() {
    let mut s = Script::new(TransportParams { ack_every: 2, ..params() });
    assert_eq!(s.data(1000, 1000, PLAIN).new_bytes, 0);
    assert_eq!(s.acks(0).sack.as_slice(), [(1000, 2000)]);
    s.data(3000, 1000, PLAIN);
    assert_eq!(s.acks(0).sack.as_slice(), [(3000, 4000), (1000, 2000)]);
    // Extending the older block brings it to the front.
    s.data(2000, 500, PLAIN);
    assert_eq!(s.acks(0).sack.as_slice(), [(1000, 2500), (3000, 4000)]);
    s.data(6000, 1000, PLAIN);
    s.acks(0);
    s.data(8000, 1000, PLAIN);
    assert_eq!(s.acks(0).sack.as_slice(), [(8000, 9000), (6000, 7000), (1000, 2500)]);
    // Filling holes delivers, at once acknowledged.
    assert_eq!(s.data(0, 1000, PLAIN).new_bytes, 2500);
    assert_eq!(s.acks(2500).sack.as_slice(), [(8000, 9000), (6000, 7000)]);
    assert_eq!(s.data(2500, 3500, PLAIN).new_bytes, 4500);
    assert_eq!(s.acks(7000).sack.as_slice(), [(8000, 9000)]);
    assert_eq!(s.data(7000, 1000, PLAIN).new_bytes, 2000);
    assert!(s.acks(9000).sack.is_empty());
    assert_eq!(s.end.received(), 9000);
}

#[test]
fn duplicates_are_acknowledged_and_not_delivered() {
    let mut s = Script::new(TransportParams { ack_every: 2, ..params() });
    s.data(0, 1000, PLAIN);
    assert_eq!(s.data(0, 1000, PLAIN).new_bytes, 0);
    s.acks(1000);
    // Partly new.
    assert_eq!(s.data(500, 1000, PLAIN).new_bytes, 500);
    s.acks(1500);
    s.data(3000, 1000, PLAIN);
    s.acks(1500);
    s.data(3000, 1000, PLAIN);
    assert_eq!(s.acks(1500).sack.as_slice(), [(3000, 4000)]);
}

#[test]
fn merged_segments_are_acknowledged_once_and_at_once() {
    let mut s = Script::new(TransportParams { ack_every: 2, ..params() });
    assert_eq!(s.data(0, 5000, PLAIN).new_bytes, 5000);
    s.acks(5000);
    s.silent();
    s.data(5000, 1000, PLAIN);
    s.silent();
    s.data(6000, 1500, PLAIN);
    s.acks(7500);
}

#[test]
fn blocks_are_reported_only_with_sack() {
    let mut s = Script::new(TransportParams { recovery: Recovery::NewReno, ..params() });
    s.data(1000, 1000, PLAIN);
    assert!(s.acks(0).sack.is_empty());
}

#[test]
fn options_count_on_the_wire_if_asked() {
    for (count_options, bytes) in [(false, [40, 40, 40]), (true, [50, 58, 66])] {
        let mut s = Script::new(TransportParams { count_options, ..params() });
        for (index, bytes) in bytes.into_iter().enumerate() {
            s.data(1000 + 2000 * index as u64, 1000, PLAIN);
            let ack = s.acks(0);
            assert_eq!(s.config.wire_bytes(&ack), bytes);
        }
    }
}
