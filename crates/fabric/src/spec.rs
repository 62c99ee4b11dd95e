//! [`FabricSpec`]: everything that a fabric is built from, as plain values.

use plimsoll_mechanisms::ecn::EcnParams;
use plimsoll_mechanisms::pacer::PacerParams;
use plimsoll_mechanisms::paths::adaptive::AdaptiveParams;
use plimsoll_mechanisms::paths::flowlet::FlowletParams;
use plimsoll_mechanisms::paths::spray::SprayParams;
use plimsoll_mechanisms::pfabric::PfabricParams;
use plimsoll_mechanisms::pfc::PfcParams;
use plimsoll_mechanisms::phantom_queue::PhantomQueueParams;
use plimsoll_mechanisms::red::RedParams;
use plimsoll_mechanisms::shared_buffer::SharedBufferParams;
use plimsoll_mechanisms::wred::WredParams;
use plimsoll_units::{Bytes, Span};

use crate::faults::LinkFault;
use crate::net::port::{BufferLimit, QueueDiscipline};
use crate::net::topology::Link;
use crate::net::{Network, Node, SelectPath};
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
    /// Senders wait while their NIC's queue is full, instead of losing the packet there.
    pub backpressure: bool,
    /// A pacer in front of the NIC waits for room there as well, where there is backpressure.
    pub pacers_wait: bool,
    /// The wire size of a full segment in bytes: the room that a waiting sender asks for, and the quantum of fair
    /// queues.
    pub full_size: u64,
    /// How many of the eight 802.1p priorities packets may have; flow control divides its buffers by it.
    pub priorities_in_use: u8,
    /// How a switch chooses among equally short paths.
    pub paths: PathSpec,
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
}

/// One kind of output queue.
#[derive(Clone, Debug)]
pub struct PortSpec {
    /// The most that may wait.
    pub limit: BufferLimit,
    /// The order of service.
    pub discipline: DisciplineSpec,
    /// Priority flow control on the links into the switch, and the buffer of each such link.
    pub pfc: Option<(PfcParams, Bytes)>,
    /// ECN marking at a threshold.
    pub ecn: Option<EcnParams>,
    /// Random early detection, in place of the threshold.
    pub red: Option<RedParams>,
    /// Random early detection by priority, in place of the threshold.
    pub wred: Option<WredParams>,
    /// HULL's phantom queue behind the queue. It marks in place of the port.
    pub phantom_queue: Option<PhantomQueueParams>,
    /// One buffer for all ports of the switch.
    pub shared_buffer: Option<SharedBufferParams>,
    /// The general engine serves the port even where the express engine could.
    pub general: bool,
}

/// A built-in order of service.
#[derive(Clone, Debug)]
pub enum DisciplineSpec {
    /// First come, first served.
    Fifo,
    /// Eight strict priorities.
    Priorities,
    /// One queue per flow, served by deficit round robin.
    FairPerFlow,
    /// pFabric's queue, which has a limit of its own.
    Pfabric(PfabricParams),
}

/// A built-in choice among equally short paths.
#[derive(Clone, Debug)]
pub enum PathSpec {
    /// ECMP: a hash of the flow.
    Hash,
    /// Packet spraying.
    Spray(SprayParams),
    /// Flowlet switching.
    Flowlet(FlowletParams),
    /// DeTail's adaptive load balancing.
    Adaptive(AdaptiveParams),
}

/// Makes the queue discipline of the port that sends on a link.
pub type MakeDiscipline<'a> = dyn Fn(&Link) -> Option<Box<dyn QueueDiscipline>> + 'a;

/// Mechanisms from outside, in place of those that the specification names.
#[derive(Default)]
pub struct Extensions<'a> {
    /// Makes the queue discipline of a switch port; where it returns `None`, the specified one stays. The port's
    /// limit still holds.
    pub queue_discipline: Option<&'a MakeDiscipline<'a>>,
    /// Chooses among shortest paths at every switch.
    pub path_selector: Option<Box<dyn SelectPath>>,
}

/// A fabric that cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct Unbuildable {
    /// The dotted key of the scenario.
    pub key: String,
    /// What is wrong with its value.
    pub problem: String,
}

impl Unbuildable {
    /// The value of `key` has a `problem`.
    pub fn new(key: impl Into<String>, problem: impl ToString) -> Unbuildable {
        Unbuildable { key: key.into(), problem: problem.to_string() }
    }
}

impl FabricSpec {
    /// The queue that sends on `link`.
    pub fn port(&self, link: &Link) -> &PortSpec {
        match link.from {
            Node::Host(_) => &self.nic,
            Node::Switch(_) => &self.tiers[usize::from(link.tier)],
        }
    }

    /// Some switch pauses its neighbours, so that every port may be paused.
    pub fn has_flow_control(&self) -> bool {
        self.tiers.iter().any(|tier| tier.pfc.is_some())
    }
}
