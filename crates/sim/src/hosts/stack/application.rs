//! The sending application: it hands data to TCP call by call, as far as its socket has room.

use plimsoll_traffic::ConnectionEnd as End;
use plimsoll_units::{Bytes, Time};

use super::{CoreWork, HostStacks, place_of};
use crate::hosts::Hosts;
use crate::sim_hooks::SimFabric;

impl HostStacks {
    /// Keeps what an application sends until it has handed it over. Returns false where one call hands over all.
    pub(in crate::hosts) fn keeps_written(&mut self, number: u32, end: End, bytes: u64) -> bool {
        if self.offloads.send_size == Bytes::ZERO && self.offloads.socket_buffer == Bytes::ZERO {
            return false;
        }
        let unwritten = &mut self.of_end(place_of(number, end)).unwritten;
        *unwritten = unwritten.saturating_add(bytes);
        true
    }
}

impl Hosts {
    /// The application at an end of a connection begins its next call, if it has data and its socket room.
    pub(in crate::hosts) fn write_on(&mut self, now: Time, fabric: &mut SimFabric, number: u32, end: End) {
        let Some(connection) = self.connections.get_mut(number) else { return };
        let host = connection.host(end);
        let endpoint = &connection.half(end).endpoint;
        let held = endpoint.written() - endpoint.acknowledged();
        let Some(stacks) = &mut self.stacks else { return };
        let (send_size, socket_buffer) = (stacks.offloads.send_size, stacks.offloads.socket_buffer);
        let of_end = stacks.of_end(place_of(number, end));
        let mut bytes = of_end.unwritten;
        for limit in [send_size, socket_buffer].into_iter().filter(|limit| *limit > Bytes::ZERO) {
            bytes = bytes.min(limit.get());
        }
        let has_room = held == 0 || socket_buffer == Bytes::ZERO || held + bytes <= socket_buffer.get();
        if bytes == 0 || of_end.in_call || !has_room {
            return;
        }
        of_end.in_call = true;
        of_end.unwritten -= bytes;
        let (core, cost) = (stacks.application_core(), stacks.costs.send.byte * bytes);
        stacks.add_work(
            fabric,
            now,
            host,
            core,
            cost,
            CoreWork::Write { place: place_of(number, end), bytes },
        );
    }

    /// The application's call has handed over its bytes.
    pub(super) fn on_written(&mut self, now: Time, fabric: &mut SimFabric, place: u32, bytes: u64) {
        let (number, end) = (place / 2, End::from_bit(place));
        let Some(stacks) = &mut self.stacks else { return };
        stacks.of_end(place).in_call = false;
        let Some(connection) = self.connections.get_mut(number) else { return };
        let transport = self.transports.get(connection.transport);
        connection.half(end).endpoint.write(transport, now, bytes);
        self.send_from(now, fabric, number, end);
        self.write_on(now, fabric, number, end);
    }
}
