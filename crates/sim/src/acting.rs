//! Workloads act, and the world does what they want.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{PortId, Sink};
use plimsoll_units::Time;

use crate::connection::Connection;
use crate::world::World;
use plimsoll_workloads::{Actions, Opened, Workload, Write};

impl World {
    /// Tells workloads which of their raw packets were dropped.
    pub(crate) fn on_lost(&mut self, now: Time) {
        while let Some(workload) = self.wires.lost.pop() {
            self.act(now, usize::from(workload), |workload, _| workload.on_lost(now));
        }
    }

    pub(crate) fn on_workload_due(&mut self, now: Time, workload: usize) {
        if self.workload_armed[workload] != now {
            return;
        }
        self.workload_armed[workload] = Time::MAX;
        self.replicated_events += 1;
        self.act(now, workload, |workload, actions| workload.on_due(now, actions));
    }

    pub(crate) fn arm_workload(&mut self, workload: usize) {
        let due = self.workloads[workload].next_due();
        if due < self.workload_armed[workload] {
            self.workload_armed[workload] = due;
            self.wires.events.push(due, Owner::new(OwnerKind::Workload, workload as u32));
        }
    }

    /// Lets a workload act and does what it wants.
    pub(crate) fn act(
        &mut self,
        now: Time,
        number: usize,
        act: impl FnOnce(&mut dyn Workload, &mut Actions),
    ) {
        let mut actions = std::mem::take(&mut self.actions);
        actions.next_connection = self.connections.len() as u32;
        act(self.workloads[number].as_mut(), &mut actions);
        for opened in actions.opened.drain(..) {
            let Opened { client, server } = opened;
            let is_here = self.wires.has(client) || self.wires.has(server);
            let established = self.pool.as_mut().and_then(|pool| pool.open(client, server));
            let transport = established.unwrap_or(&self.transport);
            let connection = is_here.then(|| Connection::new(transport, number as u16, client, server));
            self.connections.push(connection.map(Box::new));
        }
        for write in actions.writes.drain(..) {
            self.write(now, write);
        }
        for mut packet in actions.packets.drain(..) {
            self.wires.counters.packets_sent += 1;
            if let Some(classes) = &mut self.classes {
                let priority = classes.priority(number as u16, u64::from(packet.size));
                let bytes = u64::from(packet.len);
                classes.label(&mut packet, priority, || bytes);
                if !classes.passes(now, &packet, None) {
                    self.wires.dropped(now, PortId(packet.src.0), &packet);
                    continue;
                }
            }
            self.ports[packet.src.0 as usize].on_arrival(PortId(packet.src.0), now, packet, &mut self.wires);
        }
        self.recorder.take(&mut actions);
        self.actions = actions;
        self.acted = true;
        self.wires.has_aftermath = true;
        self.arm_workload(number);
    }

    pub(crate) fn write(&mut self, now: Time, write: Write) {
        let Write { connection, end, bytes, tag, created } = write;
        let Some(open) = self.connections[connection as usize].as_deref_mut() else {
            assert!(self.wires.border.is_some(), "a workload writes to connections that it has open");
            return;
        };
        if let Some(classes) = &self.classes {
            let priority = classes.priority(open.workload, bytes);
            open.half(end.other()).priority = priority;
            let half = open.half(end);
            half.priority = priority;
            half.limiter = classes.connection_limiter(now, priority).map(Box::new);
        }
        if self.wires.has(open.host(end)) {
            open.half(end).write(&self.transport, now, bytes, tag, created);
            self.send(now, connection, end);
        }
    }
}
