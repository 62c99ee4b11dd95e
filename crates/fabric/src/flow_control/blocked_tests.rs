//! Blocked time and origins of pauses, with exact times.

use super::*;

const LINK: PortId = PortId(0);
const LONG: PortId = PortId(5);
const SHORT: PortId = PortId(6);

fn traffic() -> BlockedTraffic {
    BlockedTraffic::new(8, MeasurementWindow { from: at(2), until: at(100) })
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn packet(priority: u8, len: u16) -> Packet {
    let mut packet = Packet::new(HostId(1), HostId(2), u32::from(priority), 1_000);
    (packet.priority, packet.len) = (priority, len);
    packet
}

/// Two packets wait through a pause from 10 to 20 us, one of them from 13 us on; a third joins after it, and one of
/// another priority is not stopped.
#[test]
fn a_packet_is_blocked_for_the_part_of_the_pause_in_which_it_waits() {
    let mut traffic = traffic();
    let (paused, other) = (packet(3, 900), packet(4, 900));
    traffic.entered(at(8), None, LINK, Slot::new(0), &paused);
    traffic.on_paused(at(10), LINK, Priorities::one(3));
    traffic.entered(at(13), None, LINK, Slot::new(1), &paused);
    traffic.entered(at(14), None, LINK, Slot::new(2), &other);
    traffic.left(None, LINK, Slot::new(2), &other);
    assert_eq!(traffic.blocked(LINK, at(15)), Span::from_us(5), "the pause is not over");
    traffic.on_paused(at(20), LINK, Priorities::default());
    traffic.entered(at(21), None, LINK, Slot::new(2), &paused);
    (0..3).for_each(|slot| traffic.left(None, LINK, Slot::new(slot), &paused));
    assert_eq!(traffic.blocked(LINK, at(30)), Span::from_us(10));
    let blocked: Vec<Span> = traffic.flows.values().map(|(_, blocked)| *blocked).collect();
    assert_eq!(blocked, [Span::from_us(10 + 7)], "one flow, and none of the other priority");
}

/// A queue that is empty for a part of the pause, time before the window, and acknowledgements do not count.
#[test]
fn only_data_that_waits_in_the_window_counts() {
    let mut traffic = traffic();
    traffic.on_paused(at(0), LINK, Priorities::ALL);
    traffic.entered(at(1), None, LINK, Slot::new(0), &packet(0, 0));
    traffic.entered(at(5), None, LINK, Slot::new(1), &packet(1, 0));
    traffic.on_paused(at(6), LINK, Priorities::default());
    assert_eq!(traffic.blocked(LINK, at(9)), Span::from_us(4 + 1));
    traffic.left(None, LINK, Slot::new(0), &packet(0, 0));
    traffic.left(None, LINK, Slot::new(1), &packet(1, 0));
    assert!(traffic.flows.is_empty());
}

#[test]
fn a_pause_has_its_origin_where_most_of_its_bytes_wait() {
    let mut traffic = traffic();
    for (slot, out) in [LONG, SHORT, LONG].into_iter().enumerate() {
        traffic.entered(at(3), Some(LINK), out, Slot::new(slot as u32), &packet(3, 900));
    }
    // Bytes of other links and priorities do not count.
    for slot in 3..7 {
        let other = packet(if slot < 5 { 3 } else { 4 }, 900);
        traffic.entered(at(3), Some(if slot < 5 { PortId(1) } else { LINK }), SHORT, Slot::new(slot), &other);
    }
    traffic.on_pause(LINK, Priorities::one(3));
    assert_eq!(traffic.origins.iter().collect::<Vec<_>>(), [&LONG]);
    traffic.on_pause(LINK, Priorities::one(5));
    assert_eq!(traffic.origins.len(), 1, "nothing of the priority waits");
}

#[test]
fn a_pause_by_a_paused_port_is_passed_on() {
    let mut traffic = traffic();
    traffic.entered(at(3), Some(LINK), LONG, Slot::new(0), &packet(3, 900));
    traffic.on_paused(at(4), LONG, Priorities::one(3));
    traffic.on_pause(LINK, Priorities::one(3));
    assert!(traffic.origins.is_empty());
    traffic.on_paused(at(5), LONG, Priorities::one(2));
    traffic.on_pause(LINK, Priorities::one(3));
    assert!(traffic.origins.contains(&LONG));
}

#[test]
fn observations_of_two_processes_add_up() {
    let blocked = |from: u64| {
        let mut traffic = traffic();
        traffic.on_paused(at(10), LINK, Priorities::one(3));
        traffic.entered(at(from), None, LINK, Slot::new(0), &packet(3, 900));
        traffic.on_paused(at(20), LINK, Priorities::default());
        traffic.left(None, LINK, Slot::new(0), &packet(3, 900));
        traffic
    };
    let (mut one, mut two) = (blocked(10), blocked(12));
    two.origins.insert(SHORT);
    two.on_paused(at(30), LINK, Priorities::one(3));
    two.entered(at(34), None, LINK, Slot::new(0), &packet(3, 900));
    one.absorb(&two, at(36));
    assert_eq!(one.blocked(LINK, at(36)), Span::from_us(10 + 8 + 2));
    assert_eq!(one.flows.values().next().unwrap().1, Span::from_us(18));
    assert!(one.origins.contains(&SHORT));
}
