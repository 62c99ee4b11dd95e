//! [`PacketCapture`]: keeps the first packets that complete a link, for a capture file.

use plimsoll_fabric::net::{self, Packet, PortId};
use plimsoll_results::capture::{Capture, CapturedPacket, PacketRecord};
use plimsoll_units::Time;

/// Copies packets until it is full.
#[derive(Debug)]
pub(crate) struct PacketCapture {
    /// By port: the number of its interface in the capture, if it has one.
    interface: Vec<Option<u32>>,
    /// How many more packets fit.
    room: u64,
    capture: Capture,
}

impl PacketCapture {
    /// Makes room for `room` packets of the named `ports`, out of `links` in all.
    pub(crate) fn new(
        room: u64,
        links: usize,
        ports: impl Iterator<Item = (PortId, String)>,
    ) -> PacketCapture {
        let mut kept = PacketCapture { interface: vec![None; links], room, capture: Capture::default() };
        for (port, name) in ports {
            let interface = &mut kept.interface[port.0 as usize];
            if interface.is_none() {
                *interface = Some(kept.capture.ports.len() as u32);
                kept.capture.ports.push(name);
            }
        }
        kept
    }

    /// A packet has arrived over the link of `port`, which its last bit left at `left`.
    pub(crate) fn on_packet(&mut self, left: Time, port: PortId, packet: &Packet) {
        let Some(interface) = self.interface[port.0 as usize].filter(|_| self.room > 0) else { return };
        self.room -= 1;
        let mut sack = [(0, 0); 3];
        let mut blocks = 0;
        for (start, end) in packet.sack() {
            sack[blocks] = (u64::from(start), u64::from(end));
            blocks += 1;
        }
        self.capture.packets.push(CapturedPacket::new(&PacketRecord {
            time: left,
            interface,
            source: packet.src.0,
            destination: packet.dst.0,
            flow: u64::from(packet.flow),
            seq: u64::from(packet.seq),
            ack: packet.flags.has(net::Flags::ACK).then_some(u64::from(packet.ack)),
            size: u32::from(packet.size),
            payload: u32::from(packet.len),
            flags: packet.flags,
            ecn: packet.ecn,
            sack: &sack[..blocks],
        }));
    }

    /// Returns the kept packets in the order in which they left; ties go by interface.
    pub(crate) fn into_capture(mut self) -> Capture {
        self.capture.packets.sort_by_key(|packet| {
            let PacketRecord { time, interface, .. } = packet.record();
            (time, interface)
        });
        self.capture
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_fabric::net::HostId;
    use plimsoll_units::Span;

    #[test]
    fn only_named_ports_and_only_while_there_is_room() {
        let ports = [(PortId(2), "b".to_owned()), (PortId(0), "a".to_owned()), (PortId(2), "b".to_owned())];
        let mut kept = PacketCapture::new(2, 3, ports.into_iter());
        let at = |us| Time::ZERO + Span::from_us(us);
        let packet = Packet::new(HostId(0), HostId(1), 7, 1_500);
        for (us, port) in [(5, 1), (6, 0), (4, 2), (7, 2)] {
            kept.on_packet(at(us), PortId(port), &packet);
        }
        let capture = kept.into_capture();
        let seen: Vec<_> = capture.packets.iter().map(|p| (p.record().time, p.record().interface)).collect();
        assert_eq!(
            (capture.ports, seen),
            (vec!["b".to_owned(), "a".to_owned()], vec![(at(4), 0), (at(6), 1)])
        );
    }

    #[test]
    fn a_packet_keeps_its_headers() {
        let mut packet = Packet::new(HostId(3), HostId(0), 7, 40);
        (packet.seq, packet.ack, packet.ecn) = (101, u32::MAX, net::EcnField::Ce);
        packet.flags = net::Flags::ACK.with(net::Flags::ECE).with(net::Flags::RETRANSMISSION);
        packet.set_sack([(1_000, 2_000), (3_000, 4_000)].into_iter());
        let mut kept = PacketCapture::new(1, 1, [(PortId(0), "nic".to_owned())].into_iter());
        kept.on_packet(Time::ZERO, PortId(0), &packet);
        let capture = kept.into_capture();
        let record = capture.packets[0].record();
        assert_eq!((record.source, record.destination, record.seq), (3, 0, 101));
        assert_eq!((record.ack, record.ecn), (Some(u64::from(u32::MAX)), net::EcnField::Ce));
        assert!(record.flags.has(net::Flags::ECE) && !record.flags.has(net::Flags::SYN));
        assert_eq!(record.sack, [(1_000, 2_000), (3_000, 4_000)]);
    }
}
