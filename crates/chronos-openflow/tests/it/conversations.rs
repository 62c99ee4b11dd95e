//! The controller's answers, in tables: for both versions, by the numbers of the specifications.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::support::{Wire, features, frame, hello, kinds, message, packet_in, port_status, split};
use plimsoll_chronos::{ServedInput, Service};
use plimsoll_chronos_openflow::{Limits, NO_BUFFER, OpenFlowSettings, Version, Versions};

const ERROR: u8 = 1;
const VERSIONS: [u8; 2] = [1, 4];

#[test]
fn versions_are_negotiated() {
    let with_bitmap =
        |version, bits: u32| message(version, 0, 1, &[&[0, 1, 0, 8][..], &bits.to_be_bytes()].concat());
    let unknown_element_first = [&[0, 9, 0, 5, 0xee, 0, 0, 0][..], &[0, 1, 0, 8, 0, 0, 0, 0x12]].concat();
    // The version of the features request that follows our hello; None if the hello is refused and the connection
    // closed.
    let cases = [
        ("1.0", hello(1), Some(1)),
        ("1.3", hello(4), Some(4)),
        ("1.5 without a bitmap", hello(6), Some(4)),
        ("1.5 with 1.0, 1.3, 1.5", with_bitmap(6, 0x52), Some(4)),
        ("1.5 with 1.0", with_bitmap(6, 0x42), Some(1)),
        ("1.1", hello(2), None),
        ("1.5 with 1.4 only", with_bitmap(6, 0x60), None),
        ("an element that is not known", message(4, 0, 1, &unknown_element_first), Some(4)),
        ("an element beyond the message", message(4, 0, 1, &[0, 1, 0, 200, 0, 0]), Some(4)),
        ("an element shorter than itself", message(4, 0, 1, &[0, 9, 0, 1, 0, 0, 0, 0]), Some(4)),
        ("no hello but an echo", message(4, 2, 1, &[]), None),
    ];
    for (what, input, version) in cases {
        let mut wire = Wire::new(OpenFlowSettings::default());
        let (served, reply) = wire.serve(&input);
        assert_eq!(served.close, version.is_none(), "{what}");
        let messages = split(&reply);
        match version {
            Some(version) => {
                assert_eq!(kinds(&reply), [0, 5], "{what}");
                assert_eq!(messages[0].1, [4, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x12], "{what}");
                assert_eq!(messages[1].0.version, version, "{what}");
            }
            // OFPET_HELLO_FAILED, OFPHFC_INCOMPATIBLE.
            None => assert_eq!((kinds(&reply), &messages[0].1[8..12]), (vec![ERROR], &[0; 4][..]), "{what}"),
        }
    }
    let mut old =
        Wire::new(OpenFlowSettings { versions: Versions::only(Version::V10), ..OpenFlowSettings::default() });
    assert_eq!(split(&old.send(&hello(4)))[1].0.version, 1);
}

#[test]
fn what_is_wrong_is_told() {
    for version in VERSIONS {
        let other = 5 - version;
        // Each with the error's type and code.
        let cases = [
            ("another version", message(other, 2, 3, &[]), [0, 1, 0, 0]),
            ("a message for switches", message(version, 13, 3, &[0; 8]), [0, 1, 0, 1]),
            ("an unknown message", message(version, 99, 3, &[]), [0, 1, 0, 1]),
            ("an extension", message(version, 4, 3, &[0; 8]), [0, 1, 0, 3]),
            ("a packet-in without a packet", message(version, 10, 3, &[0; 4]), [0, 1, 0, 6]),
            ("a short port status", message(version, 12, 3, &[0; 20]), [0, 1, 0, 6]),
            ("a long port status", message(version, 12, 3, &[0; 100]), [0, 1, 0, 6]),
            ("short features", message(version, 6, 3, &[0; 12]), [0, 1, 0, 6]),
        ];
        for (what, input, error) in cases {
            let mut wire = Wire::up(version, OpenFlowSettings::default());
            let reply = wire.send(&input);
            let begin = &input[..input.len().min(64)];
            let expected = message(version, ERROR, 3, &[&error[..], begin].concat());
            assert_eq!(reply, expected, "{what} in version {version}");
            assert_eq!(kinds(&wire.send(&message(version, 2, 4, b"x"))), [3], "and it goes on: {what}");
        }
        // Messages that need no answer: errors, an echo's and a barrier's reply, a removed flow, statistics,
        // configuration.
        let quiet = [(1, 4), (3, 0), (if version == 1 { 19 } else { 21 }, 0), (11, 40), (8, 4), (0, 0)];
        for (kind, bytes) in quiet {
            let mut wire = Wire::up(version, OpenFlowSettings::default());
            assert!(wire.send(&message(version, kind, 3, &vec![0; bytes])).is_empty(), "{kind}");
        }
    }
}

#[test]
fn lengths_are_limited() {
    let settings = OpenFlowSettings { message_bytes_max: 2000, ..OpenFlowSettings::default() };
    let mut wire = Wire::up(1, settings);
    let long = message(1, 2, 3, &[7; 2000]);
    let reply = wire.send(&[&long[..], &message(1, 2, 4, b"still here")].concat());
    assert_eq!(kinds(&reply), [ERROR, 3]);
    assert_eq!(split(&reply)[1].1[8..], *b"still here");
    // The rest of the message is yet to arrive: the head has its length.
    let (served, reply) = wire.serve(&long[..100]);
    assert_eq!((served, kinds(&reply)), (ServedInput { consumed: long.len(), close: false }, vec![ERROR]));

    // A hello is short, and the controller does not wait for the rest of one that seems longer.
    let mut wire = Wire::new(settings);
    let (served, reply) = wire.serve(&message(4, 0, 1, &[0; 1100])[..100]);
    assert_eq!((served.close, kinds(&reply)), (true, vec![ERROR]));

    // A length below the header's: nothing after it can be read.
    let mut wire = Wire::up(4, settings);
    let (served, reply) = wire.serve(&[4, 2, 0, 7, 0, 0, 0, 3, 9]);
    assert_eq!((served.close, kinds(&reply)), (true, vec![ERROR]));
}

#[test]
fn echoes_come_back_whole() {
    for version in VERSIONS {
        let mut wire = Wire::up(version, OpenFlowSettings::default());
        for bytes in [0, 1, 65_527] {
            let body = vec![0xab; bytes];
            assert_eq!(wire.send(&message(version, 2, 77, &body)), message(version, 3, 77, &body));
        }
    }
}

#[test]
fn a_connection_belongs_to_one_datapath() {
    let mut wire = Wire::up(4, OpenFlowSettings::default());
    assert!(wire.send(&features(4, 1)).is_empty());
    assert!(wire.serve(&features(4, 2)).0.close);
    // An auxiliary connection changes no state.
    let mut wire = Wire::up(4, OpenFlowSettings::default());
    wire.send(&packet_in(4, 5, NO_BUFFER, 1, &frame(1, 0xff)));
    wire.session = wire.direct.service().open(plimsoll_chronos::SessionTransport::Tcp);
    wire.send(&hello(4));
    let mut auxiliary = features(4, 1);
    auxiliary[21] = 1;
    assert!(wire.send(&auxiliary).is_empty());
    assert_eq!(wire.stations(), 1);
    assert_eq!(kinds(&wire.send(&packet_in(4, 6, NO_BUFFER, 2, &frame(2, 1)))), [14, 13]);
    // The main connection again: the ports of stations may have changed.
    wire.session = wire.direct.service().open(plimsoll_chronos::SessionTransport::Tcp);
    wire.send(&[hello(4), features(4, 1)].concat());
    assert_eq!(wire.stations(), 0);
}

#[test]
fn packets_before_the_features_are_nobodys() {
    let mut wire = Wire::new(OpenFlowSettings::default());
    wire.send(&hello(1));
    assert!(wire.send(&packet_in(1, 5, NO_BUFFER, 1, &frame(1, 0xff))).is_empty());
    assert!(wire.send(&port_status(1, 1, 1, 0, 0)).is_empty());
}

#[test]
fn stations_are_learnt() {
    for version in VERSIONS {
        let mut wire = Wire::up(version, OpenFlowSettings::default());
        // Buffer, port, source, destination; the messages of the answer.
        let cases = [
            ("nobody knows 2", NO_BUFFER, 1, frame(1, 2), &[13][..]),
            ("2 answers", NO_BUFFER, 2, frame(2, 1), &[14, 13]),
            ("1 goes on, its packet kept", 5, 1, frame(1, 2), &[14]),
            ("everybody", 6, 1, frame(1, 0xff), &[13]),
            ("nobody behind one's own port", NO_BUFFER, 2, frame(7, 2), &[]),
            ("1 has moved: flows to it go", NO_BUFFER, 3, frame(1, 2), &[14, 14, 13]),
            ("no Ethernet frame", NO_BUFFER, 3, vec![2; 13], &[]),
        ];
        for (what, buffer, port, frame, answers) in cases {
            let reply = wire.send(&packet_in(version, 0x1234, buffer, port, &frame));
            assert_eq!(kinds(&reply), answers, "{what} in version {version}");
            let all_same = |(header, _): &(plimsoll_chronos_openflow::Header, &[u8])| {
                header.transaction == 0x1234 && header.version == version
            };
            assert!(split(&reply).iter().all(all_same), "{what}");
        }
        // A packet of which the switch sent the beginning only, and keeps nothing: a flow is set, but no packet sent.
        let mut cut = packet_in(version, 5, NO_BUFFER, 2, &frame(2, 1));
        cut.truncate(cut.len() - 10);
        let length = (cut.len() as u16).to_be_bytes();
        cut[2..4].copy_from_slice(&length);
        assert_eq!(kinds(&wire.send(&cut)), [14]);
    }
}

#[test]
fn a_port_that_goes_takes_its_stations_and_flows() {
    for version in VERSIONS {
        // Reason, configuration, state; whether it is gone.
        let cases = [
            ("added", 0, 0, 0, false),
            ("changed", 2, 0, 0, false),
            ("deleted", 1, 0, 0, true),
            ("switched off", 2, 1, 0, true),
            ("link down", 2, 0, 1, true),
            ("blocked by spanning tree, not down", 2, 0, 4 << 8, false),
        ];
        for (what, reason, config, state, gone) in cases {
            let mut wire = Wire::up(version, OpenFlowSettings::default());
            wire.send(&packet_in(version, 5, NO_BUFFER, 1, &frame(1, 0xff)));
            let reply = wire.send(&port_status(version, reason, 1, config, state));
            assert_eq!(kinds(&reply), if gone { &[14][..] } else { &[] }, "{what} in version {version}");
            assert_eq!(wire.stations(), usize::from(!gone), "{what} in version {version}");
        }
    }
}

#[test]
fn stations_and_switches_are_bounded_and_forgotten() {
    let addresses = Limits { entries: 10, age_seconds: 100 };
    let mut wire =
        Wire::up(1, OpenFlowSettings { addresses, datapaths_max: 2, ..OpenFlowSettings::default() });
    for station in 0..50 {
        wire.send(&packet_in(1, 5, NO_BUFFER, 1, &frame(station, 0xff)));
    }
    assert_eq!(wire.stations(), 10);
    wire.wait(99);
    let housekeeping = |wire: &mut Wire| {
        let service = plimsoll_chronos_openflow::OpenFlow::new(
            OpenFlowSettings { addresses, ..OpenFlowSettings::default() },
            16,
            7,
        );
        let now = wire.now;
        for partition in wire.direct.partitions() {
            while service.housekeeping(partition, now) {}
        }
    };
    housekeeping(&mut wire);
    assert_eq!(wire.stations(), 10);
    wire.wait(100);
    housekeeping(&mut wire);
    assert!(wire.direct.partitions().iter().all(|partition| partition.is_empty()));

    // 100 switches in 16 partitions of 2 each.
    for datapath in 100..200 {
        wire.session = wire.direct.service().open(plimsoll_chronos::SessionTransport::Tcp);
        wire.send(&[hello(1), features(1, datapath)].concat());
    }
    assert!(wire.direct.partitions().iter().all(|partition| partition.len() <= 2));
}

#[test]
fn a_silent_connection_has_deadlines() {
    let settings = OpenFlowSettings { hello_seconds: 5, echo_seconds: 20, ..OpenFlowSettings::default() };
    // A hello alone does not extend the deadline of the features.
    for begin in [vec![], hello(4)] {
        let mut wire = Wire::new(settings);
        wire.send(&begin);
        assert_eq!(wire.tick_after(4), Some(vec![]));
        assert_eq!(wire.tick_after(1), None, "{begin:?}");
    }
    for version in VERSIONS {
        let mut wire = Wire::up(version, settings);
        assert_eq!(wire.tick_after(19), Some(vec![]));
        let probe = wire.tick_after(1).unwrap();
        assert_eq!(kinds(&probe), [2]);
        assert_eq!(wire.tick_after(19), Some(vec![]), "one echo request is enough");
        let answer = message(version, 3, split(&probe)[0].0.transaction, &[]);
        assert!(wire.send(&answer).is_empty());
        assert_eq!(kinds(&wire.tick_after(20).unwrap()), [2]);
        assert_eq!(wire.tick_after(19), Some(vec![]));
        // Half a message does not count as an answer.
        wire.serve(&answer[..4]);
        assert_eq!(wire.tick_after(1), None);
    }
    let mut patient = Wire::new(OpenFlowSettings { hello_seconds: 0, ..settings });
    assert_eq!(patient.tick_after(1 << 20), Some(vec![]));
}
