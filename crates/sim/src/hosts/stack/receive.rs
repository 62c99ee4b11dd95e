//! The way up: the host takes what its NIC holds, TCP gets it segment by segment, and the application copies it.

use plimsoll_fabric::net::{HostId, Packet, WaitPlace};
use plimsoll_traffic::{Arrival, ConnectionEnd as End};
use plimsoll_units::{Bytes, Span, Time};

use super::{CoreWork, HostStacks, place_of};
use crate::hosts::Hosts;
use crate::hosts::agenda::{Delivery, Step};
use crate::hosts::datagram_workload;
use crate::hosts::nic::schedule_receive;
use crate::hosts::receive_offload::TakenPiece;
use crate::sim_hooks::SimFabric;

impl HostStacks {
    /// Returns whether the NIC of `host`, which holds `held` packets, has room for one more. If not, that is lost.
    pub(in crate::hosts) fn has_room(&mut self, host: HostId, held: usize) -> bool {
        let has_room = held < self.costs.ring as usize;
        self.hosts[host.0 as usize].totals.ring_drops += u64::from(!has_room);
        has_room
    }

    /// The NIC of `host` has packets that are due. It interrupts the host, which is otherwise still taking packets.
    pub(in crate::hosts) fn interrupt(&mut self, now: Time, fabric: &mut SimFabric, host: HostId) {
        if !std::mem::replace(&mut self.hosts[host.0 as usize].polling, true) {
            let cost = self.costs.interrupt;
            self.add_work(fabric, now, host, 0, cost, CoreWork::Interrupt);
        }
    }

    /// The application copies the bytes up to `received` that it has not copied yet.
    fn copy(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        host: HostId,
        place: u32,
        received: u64,
        work: CoreWork,
    ) {
        let of_end = self.of_end(place);
        let bytes = received - std::mem::replace(&mut of_end.copied, received);
        let cost = self.costs.receive.byte * bytes;
        if bytes > 0 || matches!(work, CoreWork::Deliver(..)) {
            let core = self.application_core();
            self.add_work(fabric, now, host, core, cost, work);
        }
    }
}

impl Hosts {
    /// The host takes packets from its NIC, as the frames that LRO made, of which GRO makes segments.
    pub(super) fn take_received(&mut self, now: Time, fabric: &mut SimFabric, host: HostId) {
        let (Some(stacks), Some(nic)) = (&mut self.stacks, &mut self.receive_offload) else { return };
        let (costs, lro) = (stacks.costs, stacks.offloads.lro);
        // A frame that LRO has made counts once, so all packets are within the budget.
        let budget = if lro > Bytes::ZERO { usize::MAX } else { costs.budget as usize };
        let (taken, pieces) = nic.take(now, host, budget);
        let all = taken < budget;
        stacks.hosts[host.0 as usize].totals.frames_received +=
            pieces.iter().map(|piece| u64::from(piece.frames)).sum::<u64>();
        for TakenPiece { frames, packets } in pieces {
            let has_data = packets.iter().any(|packet| packet.len > 0);
            let of_segment = if has_data { costs.receive.segment } else { Span::ZERO };
            let cost = costs.receive.packet * u64::from(frames) + of_segment;
            stacks.add_work(fabric, now, host, 0, cost, CoreWork::Receive(packets, now));
        }
        stacks.add_work(fabric, now, host, 0, Span::ZERO, CoreWork::Taken { all });
    }

    /// The stack has received all that it took, and interrupts are on again unless there was more.
    pub(super) fn on_taken(&mut self, now: Time, fabric: &mut SimFabric, host: HostId, all: bool) {
        let (Some(stacks), Some(nic)) = (&mut self.stacks, &self.receive_offload) else { return };
        let due = nic.next_due(host);
        if !all && due.is_some() {
            return stacks.add_work(fabric, now, host, 0, Span::ZERO, CoreWork::Interrupt);
        }
        stacks.hosts[host.0 as usize].polling = false;
        match due {
            Some(due) if due <= now => stacks.interrupt(now, fabric, host),
            Some(due) => schedule_receive(fabric, due, host),
            None => {}
        }
    }

    /// TCP gets the packets of a segment, and the application what TCP has put in order.
    pub(super) fn receive_segment(&mut self, now: Time, mut packets: Vec<Packet>, taken: Time) {
        packets.iter_mut().for_each(|packet| packet.add_wait(WaitPlace::Nic, now - taken));
        let Some(first) = packets.first().copied() else { return };
        if datagram_workload(first.flow).is_none() {
            self.agenda.push(Step::Segment(first.flow, End::receiving(&first)));
        }
        self.agenda.push(Step::Piece(packets));
    }

    /// TCP has a segment: the application copies the data that the end has received in order, and sends on.
    pub(in crate::hosts) fn on_segment(&mut self, now: Time, fabric: &mut SimFabric, number: u32, end: End) {
        if let (Some(connection), Some(stacks)) = (self.connections.get_mut(number), &mut self.stacks) {
            let (host, received) = (connection.host(end), connection.half(end).endpoint.received());
            stacks.copy(now, fabric, host, place_of(number, end), received, CoreWork::Copy);
        }
        self.write_on(now, fabric, number, end);
    }

    /// The application copies messages that are whole before it receives them, where that takes time.
    pub(in crate::hosts) fn copy_or_deliver(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        delivery: Delivery,
    ) -> Option<(u16, Arrival)> {
        let Some(stacks) = self.stacks.as_mut().filter(|stacks| !stacks.costs.receive.byte.is_zero()) else {
            return self.deliver(now, fabric, delivery);
        };
        let (host, place) = (delivery.packet.dst, place_of(delivery.number, delivery.end));
        let received = delivery.received;
        stacks.copy(now, fabric, host, place, received, CoreWork::Deliver(Box::new(delivery), now));
        None
    }

    /// The application has copied messages, which TCP got at `since`, to their last byte.
    pub(super) fn on_copied(&mut self, now: Time, mut delivery: Delivery, since: Time) {
        for packet in delivery.before.iter_mut().chain([&mut delivery.packet]) {
            packet.add_wait(WaitPlace::Nic, now - since);
        }
        self.agenda.push(Step::Deliver(delivery));
    }
}
