//! A fabric is built from its specification.
//!
//! ```text
//! FabricSpec ──Schedule──> ports, general where links change or switches pause
//!            └──> shared buffers, flow control, gates, path selector, faults, nights
//! ```

mod ports;
mod shared_buffers;

use plimsoll_mechanisms::tdma::Nights;
use plimsoll_units::{Streams, Time};

use crate::circuits::Circuits;
use crate::engine::{EventQueue, Lanes};
use crate::fabric::Fabric;
use crate::faults::{Faults, Schedule};
use crate::flow_control::FlowControl;
use crate::host_gate::host_gates;
use crate::links::{Hooks, Links};
use crate::net::PathSelector;
use crate::net::topology::Hashing;
use crate::nights::NightClock;
use crate::observed::{Counters, LinkMeter, PriorityPorts};
use crate::spec::FabricSpec;
use crate::unbuildable::Unbuildable;
use ports::PortBuilder;
use shared_buffers::SharedBuffers;

impl<H: Hooks> Fabric<H> {
    /// Builds the fabric that `spec` describes. Random numbers come from the named `streams`.
    ///
    /// # Errors
    /// Fails if flow control is asked of a link that cannot be paused or whose buffer is too small.
    pub fn build(mut spec: FabricSpec, streams: &Streams, hooks: H) -> Result<Fabric<H>, Unbuildable> {
        let hashing = Hashing { salt: streams.word("paths"), symmetric: spec.symmetric_paths };
        spec.network = spec.network.with_hashing(hashing);
        if spec.pacer.is_none() {
            spec.network = spec.network.without_pacers();
        }
        let schedule = Schedule::new(&spec.faults, spec.convergence_delay);
        let flow_control = FlowControl::new(&spec, &schedule)?;
        let circuits =
            Circuits::new(&spec.circuits.clone().unwrap_or_default(), &spec.network, spec.full_size)?;
        let shared = SharedBuffers::new(&spec);
        let mut ports = PortBuilder::new(&spec, streams, &shared, &schedule).ports();
        let mut selector = selector(&spec, streams).map(Box::new);
        let gates = host_gates(&spec, streams, hooks.observes_hops());
        let nights = spec.tdma.as_ref().and_then(Nights::new).map(NightClock::new);
        let faults = Faults::new(schedule, &mut ports);
        let mut events = EventQueue::new();
        let priority_ports = PriorityPorts::new(&spec);
        let has_telemetry = spec.has_telemetry();
        let FabricSpec { network, watched, backpressure, counts_links, window, .. } = spec;
        if let (Some(faults), Some(selector)) = (&faults, &mut selector) {
            selector.set_detours(faults.detours(&network));
            if let Some((at, owner)) = faults.next_event(Time::ZERO) {
                events.push(at, owner);
            }
        }
        if let Some((at, owner)) = circuits.as_ref().map(|circuits| circuits.next_event()) {
            events.push(at, owner);
        }
        if let Some(nights) = &nights {
            let (at, owner) = nights.next_event(Time::ZERO);
            events.push(at, owner);
        }
        let links = Links {
            events,
            lanes: Lanes::new(network.links().len()),
            counters: Counters::default(),
            priority_ports,
            shared_buffers: shared.buffers,
            flow_control,
            faults,
            nights,
            meter: counts_links.then(|| Box::new(LinkMeter::new(network.links().len(), window))),
            telemetry: has_telemetry.then(Box::default),
            bounced: Vec::new(),
            boundary: None,
            hosts: network.hosts(),
            hooks,
        };
        let inspects_more = links.faults.is_some()
            || links.meter.is_some()
            || circuits.is_some()
            || links.telemetry.is_some()
            || links.hooks.observes_hops();
        let controls = links.flow_control.is_some();
        let inspects_hops = controls || inspects_more;
        let controls_alone = controls && !inspects_more && selector.is_none();
        let sharing = shared.members;
        Ok(Fabric {
            sharing,
            network,
            ports,
            gates,
            selector,
            links,
            watched,
            inspects_hops,
            controls_alone,
            backpressure,
            circuits,
        })
    }
}

/// Builds the selector that chooses among shortest paths in place of the flow's hash, if there is one.
fn selector(spec: &FabricSpec, streams: &Streams) -> Option<PathSelector> {
    let switches = 0..spec.network.switches();
    let streams = || switches.map(|switch| streams.stream(&format!("switch/{switch}/paths"))).collect();
    if let Some(factory) = &spec.path_selector {
        return Some(PathSelector::custom(factory.make(), streams()));
    }
    // Detours around dead links need a selector even where the hash chooses. Packets that grow on their way, by
    // telemetry, carry the time that their links took.
    let hash = || (!spec.faults.is_empty() || spec.grows_packets()).then(PathSelector::hash);
    PathSelector::of(&spec.paths, streams).or_else(hash)
}
