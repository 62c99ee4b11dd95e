//! Single packets without a transport, which carry the number of their workload.

use plimsoll_fabric::net::{HostId, Packet};

/// Returns the flow number of a workload's raw packets, counted down from the largest.
pub(crate) fn raw_flow(workload: u16) -> u32 {
    u32::MAX - u32::from(workload)
}

/// Returns the workload that sent a raw packet, if `flow` is not the number of a connection.
#[inline]
pub fn workload_of_raw(flow: u32) -> Option<u16> {
    (flow > u32::MAX - u32::from(u16::MAX)).then(|| (u32::MAX - flow) as u16)
}

/// Returns a single packet of a workload, `size` bytes on the wire. All single packets are made here; the simulator or
/// the kernel gives them priority and level, by the workload in their flow number.
pub fn raw_packet(workload: u16, from: HostId, to: HostId, size: u16) -> Packet {
    let mut packet = Packet::new(from, to, raw_flow(workload), size);
    packet.len = size;
    packet
}
