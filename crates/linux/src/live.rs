//! [`LiveFabric`]: the simulator's network and ports, driven by whoever has a clock.
//!
//! Sans-IO. A frame that comes in at `now` is stamped with the first picosecond that is neither past nor handled yet,
//! and is a packet from then on; everything that follows happens at times that the ports compute, and is carried out
//! when [`LiveFabric::advance`] is told that these have come. So what leaves, and when, is a function of what came in
//! and when: [`replay`] of the [`Ingress`] log comes to the same [`Digest64`].

use plimsoll_fabric::engine::{EventQueue, Lanes, Owner, OwnerKind, Streams};
use plimsoll_fabric::faults::Faults;
use plimsoll_fabric::flow_control::FlowControl;
use plimsoll_fabric::net::{Ecn, Flags, HostId, Network, Packet, PathSelector, Port, PortId, Sink, Wait};
use plimsoll_fabric::{Extensions, HostPacer, Parts, Unbuildable, WatchedQueue, port_name};
use plimsoll_mechanisms::pfc::Priorities;
use plimsoll_mechanisms::shared_buffer::SharedBuffer;
use plimsoll_results::outcome::{self, Counters};
use plimsoll_scenario::model::Model;
use plimsoll_units::{Span, Time};

use crate::frame::Header;

mod faults;
mod frames;

pub use frames::{Digest64, Egress, Ingress, Nowhere, Out};

/// The network between the hosts.
#[derive(Debug)]
pub struct LiveFabric {
    network: Network,
    ports: Vec<Port>,
    /// By host, where the scenario has the paper's pacer.
    pacers: Vec<HostPacer>,
    selector: Option<Box<PathSelector>>,
    wires: Wires,
    watched: Vec<WatchedQueue>,
    backpressure: bool,
    /// Those of the scenario's workloads and programs.
    priorities: Priorities,
    full_size: u64,
    /// Everything up to here has happened.
    done: Time,
    /// Frames that have come in.
    entries: u32,
    digest: Digest64,
}

/// What ports want from the world around them.
#[derive(Debug)]
struct Wires {
    events: EventQueue,
    lanes: Lanes,
    pools: Vec<SharedBuffer>,
    flow_control: Option<Box<FlowControl>>,
    /// Where links change; then there is a selector, too.
    faults: Option<Box<Faults>>,
    counters: Counters,
    hosts: u32,
    /// In the current event.
    dropped: Vec<(Time, Packet)>,
}

impl Wires {
    fn call_pacer_at(&mut self, host: HostId, due: Option<Time>) {
        if let Some(due) = due {
            self.events.push(due, Owner::new(OwnerKind::Pacer, host.0));
        }
    }
}

impl Sink for Wires {
    fn transmit(&mut self, port: PortId, arrives: Time, packet: Packet) -> &mut Packet {
        self.lanes.push(port, arrives, packet, &mut self.events)
    }

    fn call_at(&mut self, port: PortId, at: Time) {
        self.events.push(at, Owner::new(OwnerKind::Port, port.0));
    }

    fn marked(&mut self, _: PortId, _: &Packet) {
        self.counters.marks += 1;
    }

    fn dropped(&mut self, now: Time, port: PortId, packet: &Packet) {
        if self.faults.as_ref().is_some_and(|faults| faults.is_dead(port)) {
            self.counters.link_drops += 1;
        } else if port.0 < self.hosts {
            self.counters.nic_drops += 1;
        } else {
            self.counters.switch_drops += 1;
        }
        self.dropped.push((now, *packet));
    }

    fn room(&mut self, _: PortId) {}

    fn entered(&mut self, port: PortId, packet: &Packet) {
        if let Some(control) = &mut self.flow_control {
            control.entered(port, packet);
        }
    }

    fn left(&mut self, port: PortId, packet: &Packet) {
        if let Some(control) = &mut self.flow_control {
            control.left(port, packet);
        }
    }

    fn pool(&mut self, pool: u32) -> &mut SharedBuffer {
        &mut self.pools[pool as usize]
    }
}

impl LiveFabric {
    /// The fabric of `model`.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn new(model: &Model) -> Result<LiveFabric, Unbuildable> {
        let streams = Streams::new(model.run.seed);
        let mut spec = model.fabric_spec()?;
        // The pacer's queue is in the host, which knows no room in the NIC's.
        spec.pacers_wait = false;
        let full_size = spec.full_size;
        let Parts { network, ports, pacers, selector, events, shared_buffers, flow_control, faults, watched } =
            Parts::build(spec, &streams, Extensions::default())?;
        Ok(LiveFabric {
            selector,
            wires: Wires {
                events,
                lanes: Lanes::new(network.links().len()),
                pools: shared_buffers,
                flow_control,
                faults,
                counters: Counters::default(),
                hosts: network.hosts(),
                dropped: Vec::new(),
            },
            watched,
            backpressure: model.host.backpressure,
            priorities: priorities(model),
            full_size,
            done: Time::ZERO,
            entries: 0,
            digest: Digest64(0x243f_6a88_85a3_08d3),
            pacers,
            network,
            ports,
        })
    }

    /// Hosts of the network.
    pub fn hosts(&self) -> u32 {
        self.network.hosts()
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<Time> {
        self.wires.events.peek_time()
    }

    /// Whether what `host` sends must wait: its NIC is paused for all priorities that workloads and programs have, or
    /// its queue is full and the scenario has senders wait for room. Whoever reads from it then leaves what there is
    /// where it is.
    pub fn holds(&mut self, now: Time, host: HostId) -> bool {
        let nic = &mut self.ports[host.0 as usize];
        nic.holds_all(self.priorities)
            || self.backpressure && !nic.has_room(now.max(self.done), self.full_size)
    }

    /// A frame has come in at `now` or later: what there is to log of it. `frame` comes back with its [`Egress`].
    pub fn on_frame(
        &mut self,
        now: Time,
        from: HostId,
        header: Header,
        size: u16,
        frame: u32,
        out: &mut impl Out,
    ) -> Ingress {
        let at = now.max(self.done + TICK);
        self.advance(at - TICK, out);
        let mut packet = Packet::new(from, header.to, header.flow, size);
        packet.seq = self.entries;
        packet.ack = frame;
        packet.len = header.payload;
        packet.priority = header.priority & 7;
        packet.rank = u32::from(7 - packet.priority);
        packet.ecn = header.ecn;
        if header.from_larger {
            packet.flags = packet.flags.with(Flags::FROM_SERVER);
        }
        if header.ece {
            packet.flags = packet.flags.with(Flags::ECE);
        }
        self.entries = self.entries.wrapping_add(1);
        self.wires.counters.packets_sent += 1;
        let nic = &mut self.ports[from.0 as usize];
        match self.pacers.get_mut(from.0 as usize) {
            Some(pacer) => {
                let due = pacer.on_packet(at, packet, nic, &mut self.wires);
                self.wires.call_pacer_at(from, due);
            }
            None => nic.on_arrival(PortId(from.0), at, packet, &mut self.wires),
        }
        self.after_event(at, out);
        Ingress { at, from, header, size }
    }

    /// Everything up to `now` happens.
    pub fn advance(&mut self, now: Time, out: &mut impl Out) {
        while let Some((at, owner)) = self.wires.events.pop_until(now) {
            let number = owner.number();
            match owner.kind() {
                OwnerKind::Link => self.on_link(at, PortId(number), out),
                OwnerKind::Port => {
                    self.ports[number as usize].on_due(PortId(number), at, &mut self.wires);
                }
                OwnerKind::Pacer => {
                    let nic = &mut self.ports[number as usize];
                    let due = self.pacers[number as usize].on_due(at, nic, &mut self.wires);
                    self.wires.call_pacer_at(HostId(number), due);
                }
                OwnerKind::Pause => self.on_pause_due(at, PortId(number)),
                OwnerKind::Clock => self.on_faults_due(at),
                _ => unreachable!("a live fabric has links, ports, pacers, pauses and faults only"),
            }
            self.wires.counters.events += 1;
            self.after_event(at, out);
        }
        self.done = self.done.max(now);
    }

    fn after_event(&mut self, now: Time, out: &mut impl Out) {
        if let Some(control) = &mut self.wires.flow_control
            && control.has_pending()
        {
            let faults = self.wires.faults.as_deref();
            control.send_pending(now, &self.ports, faults, &mut self.wires.events);
        }
        for (at, packet) in std::mem::take(&mut self.wires.dropped) {
            self.digest.take(!at.as_ps());
            self.digest.take(u64::from(packet.seq));
            out.dropped(packet.ack);
        }
    }

    fn on_link(&mut self, now: Time, port: PortId, out: &mut impl Out) {
        let mut packet = self.wires.lanes.pop(port, &mut self.wires.events);
        if !self.crosses(now, port) {
            return self.wires.lost_on_link(now, &packet);
        }
        self.wires.counters.packet_hops += 1;
        if let Some(control) = &mut self.wires.flow_control
            && !control.admit(now, port, &mut packet)
        {
            return self.wires.dropped(now, self.network.port_towards(packet.dst), &packet);
        }
        let Some(switch) = self.network.far_switch(port) else { return self.on_host(now, &packet, out) };
        let next = match &mut self.selector {
            None => self.network.next_port(switch, &packet),
            Some(selector) => {
                let next = selector.next_port(now, &self.network, &self.ports, switch, &packet);
                let Some(next) = next else { return self.wires.no_route(now, &packet) };
                next
            }
        };
        self.ports[next.0 as usize].on_arrival(next, now, packet, &mut self.wires);
    }

    fn on_host(&mut self, now: Time, packet: &Packet, out: &mut impl Out) {
        self.wires.counters.packets_delivered += 1;
        if packet.flags.has(Flags::ECE) {
            let host = packet.dst.0 as usize;
            if let Some(pacer) = self.pacers.get_mut(host) {
                pacer.on_ece(now, packet.flow);
            } else if let Some(pacer) = self.ports[host].head_pacer() {
                pacer.on_ece(packet.flow);
            }
        }
        self.digest.take(now.as_ps());
        self.digest.take(u64::from(packet.seq) << 8 | packet.ecn as u64);
        let places = [Wait::Nic, Wait::Pacer].into_iter().chain(Wait::TIERS);
        out.delivered(Egress {
            at: now,
            to: packet.dst,
            frame: packet.ack,
            marked: packet.ecn == Ecn::Ce,
            waited: places.map(|place| packet.wait(place)).sum(),
        });
    }

    fn on_pause_due(&mut self, now: Time, port: PortId) {
        while let Some(control) = &mut self.wires.flow_control
            && let Some(signal) = control.take_due(now, port)
        {
            self.ports[port.0 as usize].on_signal(port, now, signal, &mut self.wires);
        }
    }

    /// Of everything that has left or was dropped so far.
    pub fn digest(&self) -> Digest64 {
        self.digest
    }

    /// So far; what is still under way is counted as in flight.
    pub fn counters(&self) -> Counters {
        let held = self.ports.iter().map(Port::held).sum::<usize>()
            + self.pacers.iter().map(HostPacer::held).sum::<usize>();
        Counters { packets_in_flight: (held + self.wires.lanes.in_flight()) as u64, ..self.wires.counters }
    }

    /// Stops watching queues, and gives what was seen up to `end`, of a run whose times count from `origin` on.
    pub fn take_queues(&mut self, origin: Span, end: Time) -> Vec<outcome::Queue> {
        let mut queues: Vec<outcome::Queue> = Vec::new();
        let mut ports: Vec<PortId> = Vec::new();
        for watched in &self.watched {
            let name = watched.name.clone();
            let read = self.ports[watched.port.0 as usize].take_meter(end);
            let Some(reading) = read else {
                // A port may be watched under several names.
                let same = ports.iter().position(|port| *port == watched.port).map(|at| queues[at].clone());
                queues.extend(same.map(|queue| outcome::Queue { name, ..queue }));
                ports.push(watched.port);
                continue;
            };
            ports.push(watched.port);
            queues.push(outcome::Queue {
                name,
                port: port_name(&self.network, watched.port),
                rate: self.network.link(watched.port).rate,
                every: watched.every,
                from: Time::ZERO + reading.from.saturating_since(Time::ZERO + origin),
                mean_bytes: reading.mean_bytes,
                max_bytes: reading.max_bytes,
                time_at: reading.time_at,
                drops: reading.drops,
                marks: reading.marks,
                packets: reading.packets,
                bytes: reading.bytes,
            });
        }
        queues
    }
}

/// The priorities of the scenario's workloads and programs.
fn priorities(model: &Model) -> Priorities {
    let of_workload = |name: &String| model.host.priority.get(name).copied().unwrap_or(0);
    let of_programs = model.program.iter().map(|program| program.level.unwrap_or(0));
    let all = model.workload.keys().map(of_workload).chain(of_programs);
    all.fold(Priorities::default(), Priorities::with)
}

/// What the fabric of `model` does with what came in by `log`, until `end`, in simulated time.
///
/// # Errors
/// As [`LiveFabric::new`].
pub fn replay(model: &Model, log: &[Ingress], end: Time) -> Result<Digest64, Unbuildable> {
    let mut fabric = LiveFabric::new(model)?;
    for entry in log {
        fabric.on_frame(entry.at, entry.from, entry.header, entry.size, 0, &mut Nowhere);
    }
    fabric.advance(end, &mut Nowhere);
    Ok(fabric.digest())
}

/// The least that two things can be apart.
const TICK: Span = Span::from_ps(1);

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
