//! A fabric is built from its specification.
//!
//! ```text
//! FabricSpec ──Schedule──> ports, general where links change or switches pause
//!            └──> shared buffers, flow control, pacers, path selector, faults
//! ```

mod ports;
mod shared_buffers;
mod spec;

use plimsoll_mechanisms::shared_buffer::SharedBuffer;
use plimsoll_units::Time;

use crate::engine::{EventQueue, Streams};
use crate::faults::{Faults, Schedule};
use crate::flow_control::FlowControl;
use crate::host_pacer::{HostPacer, host_pacers};
use crate::net::topology::Hashing;
use crate::net::{Network, PathSelector, Port, SelectPath};
use crate::observed::WatchedQueue;
use ports::PortBuilder;
use shared_buffers::SharedBuffers;

pub use spec::{DisciplineSpec, Extensions, FabricSpec, MakeDiscipline, PathSpec, PortSpec, Unbuildable};

/// The parts of a fabric.
#[derive(Debug)]
#[expect(missing_docs, reason = "a later change makes these the fields of one struct")]
pub struct Parts {
    pub network: Network,
    pub ports: Vec<Port>,
    pub pacers: Vec<HostPacer>,
    pub selector: Option<Box<PathSelector>>,
    pub events: EventQueue,
    pub shared_buffers: Vec<SharedBuffer>,
    pub flow_control: Option<Box<FlowControl>>,
    pub faults: Option<Box<Faults>>,
    pub watched: Vec<WatchedQueue>,
}

impl Parts {
    /// Builds the parts of the fabric that `spec` describes.
    ///
    /// # Errors
    /// Fails if flow control is asked of a link that cannot be paused or whose buffer is too small.
    pub fn build(
        mut spec: FabricSpec,
        streams: &Streams,
        extensions: Extensions,
    ) -> Result<Parts, Unbuildable> {
        let hashing = Hashing { salt: streams.word("paths"), symmetric: spec.symmetric_paths };
        spec.network = spec.network.with_hashing(hashing);
        let schedule = Schedule::new(&spec.faults, spec.convergence_delay);
        let shared = SharedBuffers::new(&spec);
        let mut builder = PortBuilder::new(&spec, streams, &shared, &schedule);
        builder.queue_discipline = extensions.queue_discipline;
        builder.counts_drain_bytes = extensions.path_selector.is_some();
        let mut ports = builder.ports();
        let mut selector = selector(&spec, streams, extensions.path_selector).map(Box::new);
        let pacers = host_pacers(&spec, streams);
        let flow_control = FlowControl::new(&spec, &schedule)?;
        let faults = Faults::new(schedule, &mut ports);
        let mut events = EventQueue::new();
        let FabricSpec { network, watched, .. } = spec;
        if let (Some(faults), Some(selector)) = (&faults, &mut selector) {
            selector.set_detours(faults.detours(&network));
            if let Some((at, owner)) = faults.next_event(Time::ZERO) {
                events.push(at, owner);
            }
        }
        let shared_buffers = shared.buffers;
        Ok(Parts { network, ports, pacers, selector, events, shared_buffers, flow_control, faults, watched })
    }
}

/// Builds what chooses among shortest paths in place of the flow's hash, if anything does; `custom` wins.
fn selector(
    spec: &FabricSpec,
    streams: &Streams,
    custom: Option<Box<dyn SelectPath>>,
) -> Option<PathSelector> {
    let switches = 0..spec.network.switches();
    let streams = || switches.map(|switch| streams.stream(&format!("switch/{switch}/paths"))).collect();
    if let Some(custom) = custom {
        return Some(PathSelector::custom(custom, streams()));
    }
    match &spec.paths {
        PathSpec::Spray(params) => Some(PathSelector::spray(params, streams())),
        PathSpec::Flowlet(params) => Some(PathSelector::flowlet(params, streams())),
        PathSpec::Adaptive(params) => Some(PathSelector::adaptive(params, streams())),
        // Detours around dead links need a selector even where the hash chooses.
        PathSpec::Hash => (!spec.faults.is_empty()).then(PathSelector::hash),
    }
}
