//! The mechanisms as sans-IO state machines: integer time comes in as an argument, decisions come
//! out, and nothing here reads a clock, does I/O, starts a thread or owns a random generator.
//!
//! Each mechanism is one module: a `Params` struct, which is its table in a scenario file and whose doc comments are
//! its reference, its description for the scenario's reader ([`Mechanism`]), and the machine itself.
//! [`Mechanism::validate`] checks the values; the machines take parameters that passed it. A mechanism that a scenario
//! can turn on is named once, in the list below.

mod by_priority;
mod chance;
pub mod classes;
mod depth;
pub mod ecn;
mod invalid;
pub mod loss;
pub mod lossless;
mod mechanism;
pub mod nic_burst;
pub mod pacer;
pub mod partition_balancer;
pub mod paths;
pub mod pfabric;
pub mod pfc;
pub mod phantom_queue;
pub mod processor;
pub mod qjump;
pub mod red;
pub mod reorder_buffer;
pub mod shared_buffer;
pub mod tdma;
pub mod telemetry;
pub mod transmit_queues;
pub mod transports;
pub mod trim;
pub mod wred;

pub use depth::{Depth, ParseDepthError};
pub use invalid::InvalidParam;
pub use mechanism::{Active, EngineNeed, Marking, Mechanism, Section, Table};
pub use transports::{mptcp, tcp};

mechanism::registry! { $
    /// The mechanisms of one kind of output queue that are on.
    PortMechanisms by with_port_mechanisms {
        /// pFabric's queue: by the rank that the sending host gives a packet (`host.rank`). It has a limit of its
        /// own, and `buffer` and `order` do not count.
        pfabric: pfabric::PfabricParams,
        /// Priority flow control on the links into the switch: no packet is lost for lack of room. `buffer`, in bytes,
        /// then limits the packets that arrive by one link, and is shared among the priorities in use.
        pfc: pfc::PfcParams,
        /// Queues by class: strict ones, and ones that share the link by weight. `order` does not count.
        classes: classes::ClassesParams,
        /// Trimming: a data packet that finds no room loses its payload, and its header goes on.
        trim: trim::TrimParams,
        /// Telemetry in the packet (INT): the port writes its state into each data packet that it starts to send.
        int: telemetry::IntParams,
        /// Mark ECN at a threshold on the instantaneous queue.
        ecn: ecn::EcnParams,
        /// Random early detection.
        red: red::RedParams,
        /// Random early detection by priority, which `order = "priorities"` serves.
        wred: wred::WredParams,
        /// HULL's phantom queue, in series after the queue. The port's own marking is then off.
        phantom_queue: phantom_queue::PhantomQueueParams,
        /// One buffer shared by all ports of the switch, with a dynamic threshold.
        shared_buffer: shared_buffer::SharedBufferParams,
        /// Lossless priorities as switches on sale have them: reserve, shared memory and headroom by ingress link and
        /// priority. `memory` limits what waits in the whole switch, and `buffer` does not count.
        lossless: lossless::LosslessParams,
    }
    /// The mechanisms of a host that are on.
    HostMechanisms by with_host_mechanisms {
        /// HULL's pacer, between the transport and the NIC.
        pacer: pacer::PacerParams,
        /// Segmentation offload, interrupt coalescing and receive offload; off by default.
        bursts: nic_burst::NicBurstParams,
        /// QJump: each priority may send a limited number of bytes in a network epoch. A workload's level is its
        /// `priority`.
        qjump: qjump::QjumpParams,
        /// Day and night: a timer pauses and resumes all NICs.
        tdma: tdma::TdmaParams,
        /// The receiver's reorder buffer, which hides reordering from TCP for a limited time.
        reorder_buffer: reorder_buffer::ReorderBufferParams,
        /// The processor: the costs of the host's network stack, by frame, segment and byte.
        processor: processor::ProcessorParams,
    }
    /// The path selectors that are on; a checked scenario has at most one.
    PathMechanisms by with_path_mechanisms {
        /// Each packet by itself, by chance or in turn.
        spray: paths::spray::SprayParams,
        /// A flow keeps its path until it pauses.
        flowlet: paths::flowlet::FlowletParams,
        /// DeTail's adaptive load balancing: each packet takes one of the ports before which little waits.
        adaptive: paths::adaptive::AdaptiveParams,
    }
}
