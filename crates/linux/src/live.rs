//! [`LiveFabric`]: the simulator's fabric between real hosts, driven by a caller that has a clock.
//!
//! Sans-IO. A frame that comes in at `now` is stamped with the first picosecond that is neither past nor handled yet,
//! and is a packet from then on; everything that follows happens at times that the ports compute, and is carried out
//! when [`LiveFabric::advance`] is told that these have come. So what leaves, and when, is a function of what came in
//! and when: [`replay`] of the [`Ingress`] log comes to the same [`Digest64`].

use plimsoll_fabric::engine::Streams;
use plimsoll_fabric::net::{Ecn, Flags, HostId, Network, Packet, Wait};
use plimsoll_fabric::{Extensions, Fabric, Handled, Hooks, Unbuildable};
use plimsoll_mechanisms::pfc::Priorities;
use plimsoll_results::outcome::{Counters, Queue};
use plimsoll_scenario::model::Model;
use plimsoll_units::{Span, Time};

use crate::frame::Header;

mod frames;

pub use frames::{Digest64, Egress, Ingress, Nowhere, Out};

/// A fabric whose packets are frames of real hosts.
#[derive(Debug)]
pub struct LiveFabric {
    fabric: Fabric<Losses>,
    /// Hosts wait for room in their NIC.
    backpressure: bool,
    /// The priorities of the scenario's workloads and programs.
    priorities: Priorities,
    /// The wire size of a full segment in bytes.
    full_size: u64,
    /// Everything up to here has happened.
    done: Time,
    /// The number of frames that have come in.
    entries: u32,
    digest: Digest64,
}

/// The packets that were lost in the current event, whose frames go back to the caller.
#[derive(Debug, Default)]
struct Losses(Vec<(Time, Packet)>);

impl Hooks for Losses {
    fn on_lost(&mut self, now: Time, packet: &Packet) {
        self.0.push((now, *packet));
    }
}

impl LiveFabric {
    /// Builds the fabric of `model`.
    ///
    /// # Errors
    /// Fails if the model cannot be built.
    pub fn new(model: &Model) -> Result<LiveFabric, Unbuildable> {
        let mut spec = model.fabric_spec()?;
        // The pacer's queue is in the host, which does not see how much room the NIC has.
        spec.pacers_wait = false;
        spec.counts_links = false;
        let (backpressure, full_size) = (spec.backpressure, spec.full_size);
        let streams = Streams::new(model.run.seed);
        Ok(LiveFabric {
            fabric: Fabric::build(spec, &streams, Extensions::default(), Losses::default())?,
            backpressure,
            priorities: priorities(model),
            full_size,
            done: Time::ZERO,
            entries: 0,
            digest: Digest64(0x243f_6a88_85a3_08d3),
        })
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        self.network().hosts()
    }

    /// Returns hosts, switches and links.
    pub fn network(&self) -> &Network {
        self.fabric.network()
    }

    /// Returns when something happens next.
    pub fn next_event(&self) -> Option<Time> {
        self.fabric.next_event_time()
    }

    /// Returns whether what `host` sends must wait: its NIC is paused for all priorities that workloads and programs
    /// have, or its queue is full and the scenario has senders wait for room. The caller then leaves unread what the
    /// host has sent.
    pub fn holds(&mut self, now: Time, host: HostId) -> bool {
        self.fabric.is_paused(host, self.priorities)
            || self.backpressure && !self.fabric.has_room(now.max(self.done), host, self.full_size)
    }

    /// A frame has come in at `now` or later; returns the log's entry of it. `frame` comes back with its [`Egress`].
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
        self.fabric.send(at, packet);
        self.after_event(at, out);
        Ingress { at, from, header, size }
    }

    /// Carries out everything up to `now`.
    pub fn advance(&mut self, now: Time, out: &mut impl Out) {
        let mut arrived = Packet::default();
        while let Some((at, owner)) = self.fabric.next_event(now) {
            match self.fabric.on_event(at, owner, &mut arrived) {
                Handled::Delivered(packet) => self.on_host(at, packet, out),
                Handled::Served | Handled::Done | Handled::Circuits => {}
                Handled::NotMine => unreachable!("a live fabric schedules no other events"),
            }
            self.after_event(at, out);
        }
        self.done = self.done.max(now);
    }

    /// Sends the pauses that were decided at `now`, and hands back the frames that were lost.
    fn after_event(&mut self, now: Time, out: &mut impl Out) {
        self.fabric.send_pauses(now);
        for (at, packet) in self.fabric.hooks_mut().0.drain(..) {
            self.digest.take(!at.as_ps());
            self.digest.take(u64::from(packet.seq));
            out.dropped(packet.ack);
        }
    }

    /// A packet has reached its host.
    fn on_host(&mut self, now: Time, packet: &Packet, out: &mut impl Out) {
        if packet.flags.has(Flags::ECE) {
            self.fabric.on_ece(now, packet);
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

    /// Returns the digest of everything that has left or was lost so far.
    pub fn digest(&self) -> Digest64 {
        self.digest
    }

    /// Returns the counters so far; packets that are still under way count as in flight.
    pub fn counters(&self) -> Counters {
        Counters { packets_in_flight: self.fabric.packets_inside(), ..*self.fabric.counters() }
    }

    /// Stops watching queues, and returns what was seen up to `end`, of a run whose times count from `origin` on.
    pub fn take_queues(&mut self, origin: Span, end: Time) -> Vec<Queue> {
        let mut queues = self.fabric.take_queues(end);
        for queue in &mut queues {
            queue.from = Time::ZERO + queue.from.saturating_since(Time::ZERO + origin);
        }
        queues
    }
}

/// Returns the priorities of the scenario's workloads and programs.
fn priorities(model: &Model) -> Priorities {
    let of_workload = |name: &String| model.host.priority.get(name).copied().unwrap_or(0);
    let of_programs = model.program.iter().map(|program| program.level.unwrap_or(0));
    let all = model.workload.keys().map(of_workload).chain(of_programs);
    all.fold(Priorities::default(), Priorities::with)
}

/// Replays in simulated time, until `end`, what came in by `log` to the fabric of `model`.
///
/// # Errors
/// Fails as [`LiveFabric::new`] does.
pub fn replay(model: &Model, log: &[Ingress], end: Time) -> Result<Digest64, Unbuildable> {
    let mut fabric = LiveFabric::new(model)?;
    for entry in log {
        fabric.on_frame(entry.at, entry.from, entry.header, entry.size, 0, &mut Nowhere);
    }
    fabric.advance(end, &mut Nowhere);
    Ok(fabric.digest())
}

/// The least time between two frames.
const TICK: Span = Span::from_ps(1);

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
