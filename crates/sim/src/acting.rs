//! Workloads act, and the world carries out their actions.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::Packet;
use plimsoll_mechanisms::tcp::Config;
use plimsoll_traffic::{Actions, Opened, Source, Write};
use plimsoll_units::Time;

use crate::hosts::connection::{Connection, End};
use crate::sources::Sources;
use crate::world::World;

impl World {
    /// Tells workloads which of their raw packets were lost.
    pub(crate) fn on_lost(&mut self, now: Time) {
        while let Some(workload) = self.fabric.hooks_mut().lost.pop() {
            let number = usize::from(workload);
            self.sources.workloads[number].on_lost(now);
            self.has_acted(number);
        }
    }

    /// The event of a workload has come; the workload itself may have moved on since.
    pub(crate) fn on_workload_due(&mut self, now: Time, workload: usize) {
        if self.sources.armed[workload] != now {
            return;
        }
        self.sources.armed[workload] = Time::MAX;
        self.sources.events += 1;
        self.act(now, workload, |workload, actions| workload.on_due(now, actions));
    }

    /// Schedules the next event of a workload, if it is earlier than the one that the queue has.
    pub(crate) fn arm_workload(&mut self, workload: usize) {
        let due = self.sources.workloads[workload].next_due();
        if due < self.sources.armed[workload] {
            self.sources.armed[workload] = due;
            self.fabric.schedule(due, Owner::new(OwnerKind::Workload, workload as u32));
        }
    }

    /// Lets a workload act and carries out its actions.
    pub(crate) fn act(&mut self, now: Time, number: usize, act: impl FnOnce(&mut dyn Source, &mut Actions)) {
        let Sources { workloads, actions, .. } = &mut self.sources;
        actions.next_connection = self.hosts.connections.len() as u32;
        act(workloads[number].as_mut(), actions);
        // List by list: all of them together are 200 bytes, and most are empty.
        let mut opened = std::mem::take(&mut self.sources.actions.opened);
        opened.drain(..).for_each(|opened| self.open(number as u16, opened));
        self.sources.actions.opened = opened;
        let mut writes = std::mem::take(&mut self.sources.actions.writes);
        writes.drain(..).for_each(|write| self.write(now, write));
        self.sources.actions.writes = writes;
        let mut packets = std::mem::take(&mut self.sources.actions.packets);
        packets.drain(..).for_each(|packet| self.send_raw(now, number, packet));
        self.sources.actions.packets = packets;
        self.recorder.take(&mut self.sources.actions);
        self.has_acted(number);
    }

    /// A workload has acted, and perhaps sends at another time now.
    fn has_acted(&mut self, number: usize) {
        self.sources.acted = true;
        self.fabric.hooks_mut().has_aftermath = true;
        self.arm_workload(number);
    }

    /// Sends a packet without a transport, through the limiters of its host.
    fn send_raw(&mut self, now: Time, workload: usize, mut packet: Packet) {
        if let Some(classes) = &mut self.hosts.classes {
            let priority = classes.priority(workload as u16, u64::from(packet.size));
            let bytes = u64::from(packet.len);
            classes.label(&mut packet, priority, classes.path_class(workload as u16, End::Client), || bytes);
            if !classes.passes(now, &packet, None) {
                return self.fabric.refuse(now, &packet);
            }
        }
        match &mut self.hosts.stacks {
            Some(stacks) => stacks.on_raw_packet(&mut self.fabric, now, packet),
            None => self.fabric.send_unpaced(now, packet),
        }
    }

    /// Opens a connection, at the ends that this world simulates.
    fn open(&mut self, workload: u16, opened: Opened) {
        let Opened { client, server } = opened;
        let is_here = self.has(client) || self.has(server);
        let hosts = &mut self.hosts;
        let is_open = hosts.pool.as_mut().is_some_and(|pool| pool.open(client, server));
        if let Some(multipath) = &mut hosts.multipath
            && multipath.is_for(workload)
        {
            let number = hosts.connections.len() as u32;
            multipath.open(self.fabric.network(), number, workload, opened, is_open);
            hosts.connections.push(None);
            return;
        }
        let mut connection = is_here.then(|| {
            let transport = &hosts.opening[usize::from(workload)];
            let established = is_open.then(|| Config { handshake: false, ..transport.clone() });
            let transport = established.as_ref().unwrap_or(transport);
            Connection::new(transport, workload, client, server)
        });
        if let Some(connection) = &mut connection {
            connection.set_paths(self.fabric.network(), hosts.connections.len() as u32);
        }
        hosts.connections.push(connection);
    }

    fn write(&mut self, now: Time, write: Write) {
        let Write { connection, end, bytes, tag, created } = write;
        let Some(open) = self.hosts.connections.get_mut(connection) else {
            if self.hosts.multipath.is_some() {
                return self.write_multipath(now, write);
            }
            assert!(self.process.is_some(), "a workload writes to connections that it has open");
            return;
        };
        if let Some(classes) = &self.hosts.classes {
            let priority = classes.priority(open.workload, bytes);
            for end in [end, end.other()] {
                let path_class = classes.path_class(open.workload, end);
                let half = open.half(end);
                (half.priority, half.path_class) = (priority, path_class);
            }
            let half = open.half(end);
            half.limiter = classes.connection_limiter(now, priority).map(Box::new);
        }
        if self.process.as_ref().is_none_or(|process| process.has(open.host(end))) {
            if let Some(stacks) = &mut self.hosts.stacks
                && stacks.keeps_written(connection, end, bytes)
            {
                open.half(end).messages.write(bytes, tag, created);
                return self.write_on(now, connection, end);
            }
            open.half(end).write(&self.hosts.transport, now, bytes, tag, created);
            self.send(now, connection, end);
        }
    }
}
