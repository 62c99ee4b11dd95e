//! [`Config`]: what a server is told when it starts, and what can be wrong with it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_mechanisms::partition_balancer::SplitBalance;

use crate::{DatagramDevice, DatagramSteering, Tls};

/// How a service is run. `Config::default()` is a blocking server of one thread that listens nowhere yet.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Worker threads, 1 to [`Config::THREADS_MAX`].
    pub threads: u32,
    /// Partitions, at least one a thread (with [`Balancing::split`]: a group a thread) and at most
    /// [`Config::PARTITIONS_MAX`]; None is 16 a thread, or 16 groups.
    pub partitions: Option<u32>,
    /// Whether a thread without work spins or sleeps.
    pub poll: Poll,
    /// How threads talk to the kernel.
    pub io: IoBackend,
    /// Moving partitions away from overloaded threads; None leaves them where they are.
    pub balancing: Option<Balancing>,
    /// Where clients come in.
    pub listen: Vec<Listen>,
    /// Sockets of IPv6 addresses take IPv6 only. Otherwise one of `[::]` takes IPv4 too, whatever `net.ipv6.bindv6only`
    /// says.
    pub ipv6_only: bool,
    /// Has the kernel, or a device, choose the thread of each datagram by its key; None leaves it to the client's
    /// address. Either way a request runs where its partition is.
    pub datagram_steering: Option<DatagramSteering>,
    /// What a connection may ask for.
    pub limits: Limits,
    /// The processors that threads are pinned to, one after the other, from the start again if there are more
    /// threads; empty pins none.
    pub processors: Vec<usize>,
    /// Messages that the ring from one thread to another holds, 1 or more.
    pub ring_messages: usize,
}

impl Config {
    /// The largest number of threads that is allowed.
    pub const THREADS_MAX: u32 = 1024;
    /// The largest number of partitions that is allowed.
    pub const PARTITIONS_MAX: u32 = 1 << 20;
    /// Partitions a thread, or groups of them, if nothing else is said.
    pub const PARTITIONS_PER_THREAD: u32 = 16;

    /// The number of partitions.
    pub fn partitions(&self) -> u32 {
        let count = || self.threads.saturating_mul(Config::PARTITIONS_PER_THREAD).saturating_mul(self.ways());
        self.partitions.unwrap_or_else(count)
    }

    /// The quantity that is counted as a partition's load, even if no balancer looks at it.
    pub fn load_metric(&self) -> LoadMetric {
        self.balancing.map_or(LoadMetric::Requests, |balancing| balancing.metric)
    }

    /// Partitions that begin as one group.
    fn ways(&self) -> u32 {
        self.balancing.and_then(|balancing| balancing.split).unwrap_or(1)
    }

    /// Whether every value is one that is allowed.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), StartError> {
        if !(1..=Config::THREADS_MAX).contains(&self.threads) {
            return Err(StartError::Threads { threads: self.threads });
        }
        if !(self.threads..=Config::PARTITIONS_MAX).contains(&self.partitions()) {
            return Err(StartError::Partitions { partitions: self.partitions(), threads: self.threads });
        }
        if let Some(ways) = self.balancing.and_then(|balancing| balancing.split) {
            if !(2..=Balancing::WAYS_MAX).contains(&ways) {
                return Err(StartError::Ways { ways });
            }
            let (partitions, threads) = (self.partitions(), self.threads);
            if partitions < threads.saturating_mul(ways) {
                return Err(StartError::Groups { partitions, threads, ways });
            }
        }
        let zeros = [
            ("ring_messages", self.ring_messages),
            ("limits.connections", self.limits.connections),
            ("limits.connections_per_address", self.limits.connections_per_address),
            ("limits.input_bytes", self.limits.input_bytes),
            ("limits.output_bytes", self.limits.output_bytes),
            ("limits.memory_bytes", self.limits.memory_bytes),
            ("limits.under_way", self.limits.under_way as usize),
            ("limits.turn", self.limits.turn as usize),
        ];
        if let Some((name, _)) = zeros.into_iter().find(|&(_, value)| value == 0) {
            return Err(StartError::Zero { name });
        }
        self.check_devices()
    }
}

impl Config {
    fn check_devices(&self) -> Result<(), StartError> {
        let mut names = Vec::new();
        for place in &self.listen {
            let Listen::Device { device, places } = place else { continue };
            let interface = device.name();
            let refused = |reason: &str| {
                Err(StartError::Device { interface: interface.to_owned(), reason: reason.to_owned() })
            };
            if names.contains(&interface) {
                return refused("it is named twice; once, with all places, is allowed");
            }
            names.push(interface);
            if places.iter().any(|place| place.port() == 0) {
                return refused("port 0 (any free one) is not allowed; 1 to 65535 are");
            }
        }
        Ok(())
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            threads: 1,
            partitions: None,
            poll: Poll::default(),
            io: IoBackend::default(),
            balancing: Some(Balancing::default()),
            listen: Vec::new(),
            ipv6_only: false,
            datagram_steering: None,
            limits: Limits::default(),
            processors: Vec::new(),
            ring_messages: 512,
        }
    }
}

/// What a thread without work does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Poll {
    /// It looks again: the shortest latency, for a processor of its own.
    Spin,
    /// It sleeps until something comes.
    #[default]
    Block,
}

/// How threads talk to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IoBackend {
    /// [`IoBackend::IoUring`] where the kernel has it, else [`IoBackend::Epoll`]: `docs/internals/chronos.md` has the
    /// measurement.
    #[default]
    Fastest,
    /// Readiness by epoll, edge-triggered; one read and one write for each connection with something to say.
    Epoll,
    /// Completions by io_uring: one call a turn submits all that is to be sent and fetches all that came. Needs
    /// Linux 6.1 and the right to use it.
    IoUring,
}

/// The load balancer: Algorithm 1 each epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Balancing {
    /// The epoch of threads that spin.
    pub epoch: Duration,
    /// The shortest epoch of threads that block. It doubles with every epoch that has too little load to judge by,
    /// up to `epoch_idle`, and is this again when there is load.
    pub epoch_blocking: Duration,
    /// The longest epoch of threads that block.
    pub epoch_idle: Duration,
    /// An epoch with less load than this (in the metric's unit) goes on: a handful of requests say nothing.
    pub load_min: u64,
    /// The quantity that the balancer takes for load.
    pub metric: LoadMetric,
    /// A thread has too much if it is above the ideal by more than so many standard deviations of its number of
    /// requests: chance does not move partitions then. 0 is Algorithm 1 as printed.
    pub deviations: u32,
    /// Has so many neighbouring partitions, 2 to 64, move as one group until the group is hot, and again when it has
    /// cooled down ([`SplitBalance`]); None moves every partition by itself.
    pub split: Option<u32>,
    /// Whether partitions move from one NUMA node to another. Threads are on the nodes of [`Config::processors`]; where
    /// threads are not pinned, or all on one node, it makes no difference.
    pub across_nodes: AcrossNodes,
}

impl Balancing {
    /// Partitions of a group, if nothing else is said where groups are asked for.
    pub const WAYS: u32 = 8;
    /// The most partitions of a group.
    pub const WAYS_MAX: u32 = SplitBalance::WAYS_MAX;
}

/// Whether partitions move from one NUMA node to another. The memory of one that did stays on the node of the thread
/// that touched it first; what the partition takes later is near its new owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AcrossNodes {
    /// Partitions move as freely as within one node.
    Freely,
    /// Only where the threads of a node together have more than chance explains
    /// ([`plimsoll_mechanisms::partition_balancer::NodeBalance`]).
    #[default]
    Overloaded,
    /// Partitions do not move to another node.
    Never,
}

/// By chance a thread is so much above the ideal in one of some 30 000 epochs.
const DEVIATIONS: u32 = 4;

impl Default for Balancing {
    fn default() -> Balancing {
        Balancing {
            epoch: Duration::from_micros(50),
            epoch_blocking: Duration::from_millis(1),
            epoch_idle: Duration::from_millis(100),
            load_min: 32,
            metric: LoadMetric::default(),
            deviations: DEVIATIONS,
            split: None,
            across_nodes: AcrossNodes::default(),
        }
    }
}

/// What the balancer takes for a partition's load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LoadMetric {
    /// Requests, all alike, as in the paper.
    #[default]
    Requests,
    /// Bytes of requests that came over a ring, and of replies.
    Bytes,
    /// Nanoseconds spent on requests: two looks at the clock for each.
    Nanoseconds,
}

/// Where clients come in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listen {
    /// TCP connections; port 0 is any free one.
    Tcp(SocketAddr),
    /// TLS over TCP; port 0 is any free one.
    Tls {
        /// The address and port that are listened on.
        address: SocketAddr,
        /// What clients are shown.
        tls: Tls,
    },
    /// Datagrams; port 0 is any free one.
    Udp(SocketAddr),
    /// Datagrams that a device delivers without a socket ([`DatagramDevice`]). Those that it leaves to the kernel, and
    /// those of other devices, are served by [`Listen::Udp`] at the same places.
    Device {
        /// The device; a name may occur once.
        device: Arc<dyn DatagramDevice>,
        /// Addresses and ports, of which those are served that the device has when the server starts; an unspecified
        /// address means all addresses of the device (0.0.0.0 all of IPv4). Ports are above 0.
        places: Vec<SocketAddr>,
    },
    /// A UNIX socket. An old socket there that nobody listens on is replaced.
    Unix {
        /// The path of the socket in the file system.
        path: PathBuf,
        /// Its permissions (0o700, say).
        mode: u32,
    },
}

/// What a connection may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections of all threads together.
    pub connections: usize,
    /// Connections by TCP from one source address, which is an IPv4 address or the first 64 bits of one of IPv6.
    pub connections_per_address: usize,
    /// A connection that says nothing for so long is closed, once it has fetched its replies, or has fetched none for
    /// as long again.
    pub idle: Option<Duration>,
    /// Bytes of the largest request; a connection that needs more is closed.
    pub input_bytes: usize,
    /// Bytes of replies that wait to be sent, those that are expected included; above, no further request of the
    /// connection is looked at. All connections of a thread may have 32 times as much before each gets one or two
    /// replies at a time.
    pub output_bytes: usize,
    /// Bytes that all connections together may hold: requests that are not whole, replies that wait to be sent, and
    /// free buffers for both. When much of it is held, connections wait that hold more than an equal share of the rest;
    /// if they wait in vain, those are closed that have moved next to nothing for a quarter of a second, the one that
    /// holds the most first ([`crate::ThreadStats::shed`]). A request or a reply that needs more closes its connection.
    /// Datagrams are bounded by what may be pending, and do not wait.
    pub memory_bytes: usize,
    /// Requests of one connection that are at other threads; at that many, no further one is looked at.
    pub under_way: u32,
    /// Requests of one connection that run in one turn, before other connections have theirs. One command may be many
    /// requests: a get of keys that are not there, say.
    pub turn: u32,
    /// Connections that wait to be accepted (the kernel's limit is `net.core.somaxconn`).
    pub backlog: u16,
    /// How long connections may take to fetch their replies when the server stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1024,
            connections_per_address: usize::MAX,
            idle: None,
            input_bytes: 64 << 20,
            output_bytes: 1 << 20,
            memory_bytes: 256 << 20,
            under_way: 256,
            turn: 1024,
            backlog: 1024,
            drain: Duration::from_secs(1),
        }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// So many threads cannot be.
    #[error("threads: {threads} is not allowed; 1 to {} are", Config::THREADS_MAX)]
    Threads {
        /// The number of threads that was configured.
        threads: u32,
    },
    /// So many partitions cannot be.
    #[error(
        "partitions: {partitions} is not allowed with {threads} threads; {threads} to {} are",
        Config::PARTITIONS_MAX
    )]
    Partitions {
        /// The number of partitions that was configured.
        partitions: u32,
        /// The number of threads that was configured.
        threads: u32,
    },
    /// So many partitions cannot be a group.
    #[error("balancing.split: {ways} is not allowed; 2 to {} partitions a group are", Balancing::WAYS_MAX)]
    Ways {
        /// The size of a group that was configured.
        ways: u32,
    },
    /// There is not a group for each thread.
    #[error(
        "partitions: {partitions} are not enough for {threads} threads with groups of {ways} (balancing.split); {} are",
        threads.saturating_mul(*ways)
    )]
    Groups {
        /// The partitions that there are to be.
        partitions: u32,
        /// The number of threads that was configured.
        threads: u32,
        /// Partitions of a group.
        ways: u32,
    },
    /// A limit that lets nothing through.
    #[error("{name}: 0 is not allowed; 1 or more is")]
    Zero {
        /// The field of [`Config`].
        name: &'static str,
    },
    /// A socket could not be opened.
    #[error("listen: cannot listen on {place}: {source}")]
    Listen {
        /// The address or the path that was to be listened on.
        place: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Datagrams cannot be taken from a device.
    #[error("listen: cannot take datagrams from device {interface}: {reason}")]
    Device {
        /// The name of the device.
        interface: String,
        /// The reason that the device gives.
        reason: String,
    },
    /// A thread could not be pinned.
    #[error("processors: cannot pin a thread to processor {processor}: {source}")]
    Processor {
        /// The number of the processor.
        processor: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// Datagrams cannot be steered.
    #[error("datagram_steering: {reason}; without it (None) the kernel goes by the client's address")]
    Steering {
        /// The reason that the kernel or this build gives.
        reason: String,
    },
    /// The kernel did not give what a thread needs.
    #[error("cannot start a worker thread: {what}: {source}")]
    Worker {
        /// The resource that the kernel did not give.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}
