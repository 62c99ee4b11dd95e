//! Read access for the caller: the fabric's parts during the run, and its observations at the end.

use std::collections::BTreeMap;

use plimsoll_mechanisms::pacer::AssociationCounts;
use plimsoll_mechanisms::telemetry::Stamps;
use plimsoll_units::{Rate, Span, Time};

use super::Fabric;
use crate::engine::{EventQueue, Lanes};
use crate::flow_control::{BlockedFlow, BufferUse};
use crate::host_gate::HostGate;
use crate::host_pacer::ScheduledPacer;
use crate::links::Hooks;
use crate::net::topology::Link;
use crate::net::{HostId, MeterReading, Network, Packet, PathSelector, Port, PortId};
use crate::observed::{Counters, LinkTraffic, PauseTotals, QueueObservation, number_name, port_name};

/// Observations of one direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkReading {
    /// The transmission rate of the link.
    pub rate: Rate,
    /// The length of the observation.
    pub observed: Span,
    /// The traffic that it carried meanwhile.
    pub carried: LinkTraffic,
    /// The number and length of its pauses meanwhile.
    pub pauses: PauseTotals,
    /// The time in which packets waited meanwhile while their priority was paused, summed over priorities.
    pub blocked: Span,
}

impl<H: Hooks> Fabric<H> {
    /// Returns hosts, switches and links.
    #[inline]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the output ports by number.
    #[inline]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Returns the packets in flight.
    #[inline]
    pub fn lanes(&self) -> &Lanes {
        &self.links.lanes
    }

    /// Returns the event queue, for callers that prefetch the memory of the next events.
    #[inline]
    pub fn events(&mut self) -> &mut EventQueue {
        &mut self.links.events
    }

    /// Returns when the next event is.
    pub fn next_event_time(&self) -> Option<Time> {
        self.links.events.peek_time()
    }

    /// Returns the selector that chooses paths in place of the flow's hash, if there is one.
    pub fn selector(&self) -> Option<&PathSelector> {
        self.selector.as_deref()
    }

    /// Returns whether each packet takes the path of its flow and entropy, [`Network::path`].
    pub fn has_fixed_paths(&self) -> bool {
        let spreads = self.selector.as_ref().is_some_and(|selector| selector.spreads());
        !spreads && self.links.faults.is_none() && self.circuits.is_none()
    }

    /// Returns whether switches pause each other.
    pub fn has_flow_control(&self) -> bool {
        self.links.flow_control.is_some()
    }

    /// Returns whether packets, bytes and drops are counted for every link.
    pub fn counts_links(&self) -> bool {
        self.links.meter.is_some()
    }

    /// Returns the counters so far.
    #[inline]
    pub fn counters(&self) -> &Counters {
        &self.links.counters
    }

    /// Returns the telemetry that an acknowledgement has brought back, for the transport that handles it: the stamps of
    /// the data packet before it. `packet` is as it was delivered, at this instant or earlier, and the stamps are
    /// returned once. `None` if it carries none.
    pub fn take_returned_stamps(&mut self, packet: &Packet) -> Option<Stamps> {
        let stamps = self.links.telemetry.as_mut()?.take_returned(packet)?;
        let counters = &mut self.links.counters;
        counters.echoes += 1;
        counters.echoed_stamps += stamps.hops().len() as u64;
        counters.echoed_queue_bytes += stamps.queue_bytes();
        counters.echoed_delay_ns += stamps.queueing_delay().as_ps() / 1_000;
        Some(stamps)
    }

    /// Forgets the telemetry of an acknowledgement that its host has dropped.
    pub fn forget_returned_stamps(&mut self, packet: &Packet) {
        if let Some(telemetry) = &mut self.links.telemetry {
            telemetry.take_returned(packet);
        }
    }

    /// Returns the world's hooks.
    #[inline]
    pub fn hooks(&self) -> &H {
        &self.links.hooks
    }

    /// Returns the world's hooks, to be changed.
    #[inline]
    pub fn hooks_mut(&mut self) -> &mut H {
        &mut self.links.hooks
    }
}

impl<H: Hooks> Fabric<H> {
    /// Returns how many packets wait in ports and pacers or are in flight, less the packets that a discipline has
    /// forgotten.
    pub fn packets_inside(&self) -> u64 {
        let paced = self.pacers().map(ScheduledPacer::held).sum::<usize>();
        let forgotten = self.ports.iter().map(Port::forgotten).sum::<usize>();
        (paced + self.links.lanes.held() - forgotten) as u64
    }

    fn pacers(&self) -> impl Iterator<Item = &ScheduledPacer> {
        self.gates.iter().filter_map(|gate| gate.pacer.as_ref())
    }

    /// Completes the counters at the `end` of the run: carries out the departures until then, counts the packets that
    /// are still inside, and takes back the marks that ports have foreseen for a later time.
    pub fn settle(&mut self, end: Time) {
        for (number, port) in (0..).zip(&mut self.ports) {
            port.settle(PortId(number), end, &mut self.links);
        }
        self.links.counters.packets_in_flight = self.packets_inside();
        self.links.counters.marks -= self.ports.iter().map(|port| port.marks_after(end)).sum::<u64>();
    }

    /// Asserts, of a settled fabric, that packets in = packets out + lost + inside.
    ///
    /// # Panics
    /// Panics if packets were not conserved.
    pub fn assert_conservation(&self) {
        let counters = &self.links.counters;
        assert_eq!(
            counters.packets_sent,
            counters.packets_accounted_for(),
            "packets are conserved: {counters:?}"
        );
    }

    /// Stops watching queues, and returns their observations up to `end`.
    pub fn take_queues(&mut self, end: Time) -> Vec<QueueObservation> {
        let mut queues = Vec::new();
        // A port may be watched under several names.
        let mut readings: BTreeMap<PortId, MeterReading> = BTreeMap::new();
        for watched in &self.watched {
            let read = self.ports[watched.port.0 as usize].take_meter(end);
            let Some(reading) = read.or_else(|| readings.get(&watched.port).cloned()) else { continue };
            readings.entry(watched.port).or_insert_with(|| reading.clone());
            queues.push(QueueObservation {
                name: watched.name.clone(),
                port: port_name(&self.network, watched.port, &number_name),
                rate: self.network.link(watched.port).rate,
                every: watched.every,
                from: reading.from,
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

    /// Returns the totals of each link up to `end`, by number; nothing where links are not counted.
    pub fn link_readings(&self, end: Time) -> Vec<LinkReading> {
        let Some(meter) = &self.links.meter else { return Vec::new() };
        let observed = meter.window().part_of(Time::ZERO, end);
        let links = (0..).map(PortId).zip(self.network.links()).zip(meter.carried());
        let reading = |((port, link), carried): ((PortId, &Link), &LinkTraffic)| {
            let (pauses, blocked) = match &self.links.flow_control {
                Some(control) => (control.pauses(port, end), control.blocked_time(port, end)),
                None => Default::default(),
            };
            LinkReading { rate: link.rate, observed, carried: *carried, pauses, blocked }
        };
        links.map(reading).collect()
    }

    /// Returns how far the buffers whose senders are paused were used, by kind.
    pub fn buffer_uses(&self) -> Vec<BufferUse> {
        self.links.flow_control.as_ref().map_or_else(Vec::new, |control| control.uses())
    }

    /// Returns the flows of which data packets waited for pauses, where links are counted.
    pub fn blocked_flows(&self) -> Vec<BlockedFlow> {
        let by_hash = self.selector.is_none();
        let control = self.links.flow_control.as_ref();
        control.map_or_else(Vec::new, |control| control.blocked_flows(&self.network, by_hash))
    }

    /// Returns how often each connection of `host` was associated with its pacer up to `end`.
    pub fn pacing_counts(&mut self, host: HostId, end: Time) -> Vec<(u64, AssociationCounts)> {
        match self.gates.get(host.0 as usize) {
            Some(HostGate { pacer: Some(pacer), .. }) => pacer.flows().counts(end).collect(),
            _ => {
                let pacer = self.ports[host.0 as usize].head_pacer();
                pacer.map_or_else(Vec::new, |pacer| pacer.counts(end).into_iter().collect())
            }
        }
    }
}
