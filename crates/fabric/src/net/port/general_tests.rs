//! Times at which a port that decides at each departure requests calls.

use plimsoll_mechanisms::pfabric::PfabricParams;

use super::shared_tests::{Switch, config, switch};
use super::*;
use crate::net::HostId;

const PORT: PortId = PortId(0);
/// Time to send a packet of 1,000 B at 1 Gb/s, in ns.
const SENT_NS: u64 = 8_000;

fn ns(ns: u64) -> Time {
    Time::from_ps(ns * 1_000)
}

fn arrive(port: &mut Port, at: Time, switch: &mut Switch) {
    let slot = switch.hold(Packet::new(HostId(9), HostId(0), 0, 1_000));
    port.on_arrival(PORT, at, slot, switch);
}

#[test]
fn a_departure_is_an_event_only_if_something_waits() {
    let pfabric = || Discipline::pfabric(&PfabricParams::default());
    for discipline in [Discipline::fifo(), Discipline::priorities(), pfabric()] {
        let plain =
            PortConfig { discipline, shared: None, general: true, ..config(0, BufferLimit::UNLIMITED, None) };
        let (mut port, mut switch) = (Port::new(plain), switch(1.0, 1));
        arrive(&mut port, ns(0), &mut switch);
        assert_eq!((switch.sent, port.held(), &switch.calls[..]), (1, 0, &[][..]), "nothing waits");
        arrive(&mut port, ns(10), &mut switch);
        arrive(&mut port, ns(20), &mut switch);
        assert_eq!((switch.sent, port.held()), (1, 2));
        assert_eq!(switch.calls, [(ns(SENT_NS), PORT)], "one call for both");
        port.on_due(PORT, ns(SENT_NS), &mut switch);
        assert_eq!(switch.calls[1..], [(ns(2 * SENT_NS), PORT)], "the third still waits");
        port.on_due(PORT, ns(2 * SENT_NS), &mut switch);
        assert_eq!((switch.sent, switch.calls.len()), (3, 2));
        // At the very end of a transmission the link is free.
        arrive(&mut port, ns(3 * SENT_NS), &mut switch);
        assert_eq!((switch.sent, switch.calls.len()), (4, 2));
    }
}

#[test]
fn a_departure_is_an_event_where_room_is_announced() {
    let announcing =
        PortConfig { announces_room: true, shared: None, ..config(0, BufferLimit::UNLIMITED, None) };
    let (mut port, mut switch) = (Port::new(announcing), switch(1.0, 1));
    arrive(&mut port, ns(0), &mut switch);
    assert_eq!(switch.calls, [(ns(SENT_NS), PORT)]);
}

/// A pause frame goes behind the packet in service, and the next packet behind the frame.
#[test]
fn a_frame_takes_its_time_from_the_next_packet() {
    const FRAME_NS: u64 = 84 * 8;
    let general = PortConfig { shared: None, general: true, ..config(0, BufferLimit::UNLIMITED, None) };
    let (mut port, mut switch) = (Port::new(general), switch(1.0, 1));
    assert!(!port.send_frame(ns(0), 84), "nothing waits for an idle link");
    assert_eq!(port.busy_until(), ns(FRAME_NS));
    arrive(&mut port, ns(0), &mut switch);
    assert_eq!((switch.sent, &switch.calls[..]), (0, &[(ns(FRAME_NS), PORT)][..]));
    port.on_due(PORT, ns(FRAME_NS), &mut switch);
    arrive(&mut port, ns(700), &mut switch);
    let free = FRAME_NS + SENT_NS;
    assert_eq!((switch.sent, switch.calls[1..].to_vec()), (1, vec![(ns(free), PORT)]));
    assert!(port.send_frame(ns(800), 84), "the call that was requested is too early");
    assert_eq!(port.busy_until(), ns(free + FRAME_NS));
    port.on_due(PORT, ns(free), &mut switch);
    assert_eq!(switch.sent, 1);
    port.on_due(PORT, ns(free + FRAME_NS), &mut switch);
    assert_eq!((switch.sent, port.busy_until()), (2, ns(free + FRAME_NS + SENT_NS)));
}
