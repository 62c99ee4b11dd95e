//! [`FabricSpec`]: everything that a fabric is built from, as plain values.

use plimsoll_circuits::{ControlParams, SchedulerFactory};
use plimsoll_mechanisms::lossless::LosslessParams;
use plimsoll_mechanisms::pacer::PacerParams;
use plimsoll_mechanisms::pfc::{PfcParams, Priorities};
use plimsoll_mechanisms::tdma::TdmaParams;
use plimsoll_mechanisms::{Active, PathMechanisms, PortMechanisms};
use plimsoll_units::{Bytes, Span, Time};

use crate::faults::LinkFault;
use crate::net::port::{BufferLimit, DisciplineFactory, ServiceOrder};
use crate::net::topology::Link;
use crate::net::{Network, Node, SelectorFactory};
use crate::observed::{MeasurementWindow, WatchedQueue};

/// Everything that a [`Fabric`](crate::Fabric) is built from. A scenario's model makes one; a program may write one
/// by hand.
#[derive(Clone, Debug)]
pub struct FabricSpec {
    /// Hosts, switches and links. A link that is slower all the time has its lower rate here.
    pub network: Network,
    /// The queue of every host's NIC.
    pub nic: PortSpec,
    /// The queues of the switches, by tier from the hosts upwards: one for each of [`Network::tiers`].
    pub tiers: Vec<PortSpec>,
    /// HULL's pacer in every host, in the form that its parameters say.
    pub pacer: Option<PacerParams>,
    /// The probability, 0 to 1, with which every host loses a packet before its pacer and its NIC.
    pub host_loss: f64,
    /// Days and nights of all NICs.
    pub tdma: Option<TdmaParams>,
    /// Senders wait while their NIC's queue is full, instead of losing the packet there.
    pub backpressure: bool,
    /// A pacer in front of the NIC waits for room there as well, where there is backpressure.
    pub pacers_wait: bool,
    /// The wire size of a full segment in bytes: the room that a waiting sender needs, and the quantum of fair queues.
    pub full_size: u64,
    /// The wire size of the largest packet, single packets without a transport among them: the MTU of flow control.
    pub largest_packet: u64,
    /// The 802.1p priorities that packets may have; flow control divides its buffers among them.
    pub priorities_in_use: Priorities,
    /// The mechanism by which a switch chooses among equally short paths; a hash of the flow (ECMP) where none is on.
    pub paths: PathMechanisms,
    /// The path selector from outside, in place of `paths`.
    pub path_selector: Option<SelectorFactory>,
    /// Both directions of a flow hash to the same path.
    pub symmetric_paths: bool,
    /// The time from a change of a link until all switches route accordingly.
    pub convergence_delay: Span,
    /// The links that fail, degrade or come back during the run.
    pub faults: Vec<LinkFault>,
    /// The queues to observe. A port that is watched under two names has the same interval in both.
    pub watched: Vec<WatchedQueue>,
    /// Packets, bytes, drops and pauses are counted for every link.
    pub counts_links: bool,
    /// When queues, links and pauses are measured.
    pub window: MeasurementWindow,
    /// The schedule of circuits in a hybrid network; other networks have none.
    pub circuits: Option<CircuitSpec>,
}

/// Parameters of the circuit schedule of a hybrid network.
#[derive(Clone, Debug, Default)]
pub struct CircuitSpec {
    /// The parameters of the control loop.
    pub control: ControlParams,
    /// The scheduler from outside, in place of `control.scheduler`.
    pub scheduler: Option<SchedulerFactory>,
}

impl CircuitSpec {
    /// Specifies `control` with its own scheduler.
    pub fn new(control: ControlParams) -> CircuitSpec {
        CircuitSpec { control, scheduler: None }
    }
}

/// One kind of output queue.
#[derive(Clone, Debug)]
pub struct PortSpec {
    /// The most that may wait.
    pub limit: BufferLimit,
    /// The order of service where neither a mechanism nor a discipline from outside decides it.
    pub order: ServiceOrder,
    /// The queue discipline from outside, in place of `order` and of any mechanism that orders the queue.
    pub discipline: Option<DisciplineFactory>,
    /// The mechanisms of the queue. A phantom queue marks in place of the port; random early detection, by priority or
    /// not, marks in place of the threshold.
    pub mechanisms: PortMechanisms,
    /// The buffer of each link into the switch, which flow control divides among the priorities.
    pub link_buffer: Option<Bytes>,
    /// The general engine serves the port even where the express engine could.
    pub general: bool,
    /// Every departure of the general engine is an event, even where nothing can tell the difference.
    pub explicit_departures: bool,
}

impl PortSpec {
    /// Priority flow control on the links into the switch, and the buffer of each such link.
    pub fn pfc(&self) -> Option<(&PfcParams, Bytes)> {
        self.mechanisms.pfc.as_ref().zip(self.link_buffer)
    }

    /// The memory of the switch, with lossless priorities.
    pub fn lossless(&self) -> Option<&LosslessParams> {
        self.mechanisms.lossless.as_ref()
    }
}

impl Default for PortSpec {
    /// An unlimited queue, first come, first served, that marks nothing.
    fn default() -> PortSpec {
        PortSpec {
            limit: BufferLimit::UNLIMITED,
            order: ServiceOrder::Fifo,
            discipline: None,
            mechanisms: PortMechanisms::default(),
            link_buffer: None,
            general: false,
            explicit_departures: false,
        }
    }
}

impl FabricSpec {
    /// Specifies `network` with unlimited queues and no mechanism, observed from the beginning to the end. The fields
    /// can then be changed.
    pub fn new(network: Network) -> FabricSpec {
        FabricSpec {
            nic: PortSpec::default(),
            tiers: vec![PortSpec::default(); network.tiers().len()],
            network,
            pacer: None,
            host_loss: 0.0,
            tdma: None,
            backpressure: false,
            pacers_wait: true,
            full_size: 1_500,
            largest_packet: 1_500,
            priorities_in_use: Priorities::one(0),
            paths: PathMechanisms::default(),
            path_selector: None,
            symmetric_paths: false,
            convergence_delay: Span::ZERO,
            faults: Vec::new(),
            watched: Vec::new(),
            counts_links: false,
            window: MeasurementWindow { from: Time::ZERO, until: Time::MAX },
            circuits: None,
        }
    }

    /// Returns the queue that sends on `link`.
    pub fn port(&self, link: &Link) -> &PortSpec {
        match link.from {
            Node::Host(_) => &self.nic,
            Node::Switch(_) => &self.tiers[usize::from(link.tier)],
        }
    }

    /// Some switch pauses its neighbours, so that every port may be paused.
    pub fn has_flow_control(&self) -> bool {
        self.tiers.iter().any(|tier| tier.pfc().is_some() || tier.lossless().is_some())
    }

    /// Some port stamps packets with its state.
    pub fn has_telemetry(&self) -> bool {
        self.tiers.iter().chain([&self.nic]).any(|port| port.mechanisms.int.is_some())
    }

    /// Some port adds the bytes of its state to packets, which grow on their way.
    pub(crate) fn grows_packets(&self) -> bool {
        let mut int = self.tiers.iter().chain([&self.nic]).filter_map(|port| port.mechanisms.int.as_ref());
        int.any(|int| int.bytes_max() > 0)
    }

    /// Whether a mechanism excludes the express engine at the ports that `port` describes.
    pub(crate) fn needs_general_engine(&self, port: &PortSpec, at_switch: bool) -> bool {
        let general = |active: Active, has_it| active.engine.is_general(at_switch, has_it);
        let mut here = port.mechanisms.active().into_iter();
        let elsewhere = self.tiers.iter().flat_map(|tier| tier.mechanisms.active());
        here.any(|active| general(active, true))
            || elsewhere.chain(self.paths.active()).any(|active| general(active, false))
            || at_switch && self.path_selector.is_some()
    }
}
