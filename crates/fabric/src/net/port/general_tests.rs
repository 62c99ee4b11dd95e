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
