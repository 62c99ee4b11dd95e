//! [`Config`]: the configuration with which a server starts, and the errors in it.

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
    /// Moves partitions away from overloaded threads; None leaves them where they are.
    pub balancing: Option<Balancing>,
    /// The places at which clients connect.
    pub listen: Vec<Listen>,
    /// Sockets of IPv6 addresses take IPv6 only. Otherwise one of `[::]` takes IPv4 too, whatever `net.ipv6.bindv6only`
    /// says.
    pub ipv6_only: bool,
    /// Has the kernel, or a device, choose the thread of each datagram by its key; None leaves it to the client's
    /// address. Either way a request runs where its partition is.
    pub datagram_steering: Option<DatagramSteering>,
    /// Limits of connections and their requests.
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

    /// Checks that every value is allowed.
    ///
    /// # Errors
    /// Returns an error for the first value that is not.
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

/// Behaviour of a thread without work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Poll {
    /// The thread looks again: the shortest latency, for a processor of its own.
    Spin,
    /// The thread sleeps until something arrives. Where that was 30 us or less the last time, it looks for 30 us before
    /// it sleeps.
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
    /// Readiness by epoll, edge-triggered; one read and one write for each connection that is ready.
    Epoll,
    /// Completions by io_uring: one call a turn submits all that is to be sent and fetches all that arrived. Needs
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
    /// The least load of an epoch (in the metric's unit); an epoch with less is extended, as a handful of requests
    /// decides nothing.
    pub load_min: u64,
    /// The quantity that counts as load.
    pub metric: LoadMetric,
    /// The number of standard deviations, of a thread's number of requests, by which the thread must be above the ideal
    /// before it gives partitions away: chance then moves no partition. 0 is Algorithm 1 as printed.
    pub deviations: u32,
    /// The number of neighbouring partitions, 2 to 64, that move as one group until the group is hot, and again when it
    /// has cooled down ([`SplitBalance`]); None moves every partition by itself.
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

/// Whether partitions move from one NUMA node to another. The memory of a partition that has moved stays on the node of
/// the thread that touched it first; memory that it allocates later is near its new owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AcrossNodes {
    /// Partitions move as freely as within one node.
    Freely,
    /// Only where the threads of a node together have more load than chance explains
    /// ([`plimsoll_mechanisms::partition_balancer::NodeBalance`]).
    #[default]
    Overloaded,
    /// Partitions do not move to another node.
    Never,
}

/// By chance a thread is this far above the ideal in one of some 30 000 epochs.
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

/// The quantity that counts as a partition's load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LoadMetric {
    /// Requests, all alike, as in the paper.
    #[default]
    Requests,
    /// Bytes of requests that came over a ring, and of replies.
    Bytes,
    /// Nanoseconds spent on requests, by two readings of the clock for each.
    Nanoseconds,
}

/// A place at which clients connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listen {
    /// TCP connections; port 0 is any free one.
    Tcp(SocketAddr),
    /// TLS over TCP; port 0 is any free one.
    Tls {
        /// The address and port that are listened on.
        address: SocketAddr,
        /// The certificate that clients see.
        tls: Tls,
    },
    /// Datagrams; port 0 is any free one.
    Udp(SocketAddr),
    /// Datagrams that a device delivers without a socket ([`DatagramDevice`]). Datagrams that it leaves to the kernel,
    /// and datagrams of other devices, are served by [`Listen::Udp`] at the same places.
    Device {
        /// The device; a name may occur once.
        device: Arc<dyn DatagramDevice>,
        /// Addresses and ports. Of these, the addresses that the device has when the server starts are served; an
        /// unspecified address means all addresses of the device (0.0.0.0 all of IPv4). Ports are above 0.
        places: Vec<SocketAddr>,
    },
    /// A UNIX socket. An old socket file at its path, on which no process listens, is replaced.
    Unix {
        /// The path of the socket in the file system.
        path: PathBuf,
        /// Its permissions (0o700, say).
        mode: u32,
    },
}

/// Limits of connections and their requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections of all threads together.
    pub connections: usize,
    /// Connections by TCP from one source address, which is an IPv4 address or the first 64 bits of one of IPv6.
    pub connections_per_address: usize,
    /// The time after which a silent connection is closed, once it has fetched its replies, or has fetched none for as
    /// long again.
    pub idle: Option<Duration>,
    /// Bytes of the largest request; a connection that needs more is closed.
    pub input_bytes: usize,
    /// Bytes of replies that wait to be sent, including expected ones; above this, no further request of the connection
    /// is read. All connections of a thread may have 32 times as much before each gets one or two replies at a time.
    pub output_bytes: usize,
    /// Bytes that all connections together may hold: requests that are not whole, replies that wait to be sent, and
    /// free buffers for both. When much of it is held, connections that hold more than an equal share of the rest wait;
    /// if they wait in vain, the connections that have moved next to nothing for a quarter of a second are closed, the
    /// one that holds the most first ([`crate::ThreadStats::shed`]). A request or a reply that needs more closes its
    /// connection. Datagrams are bounded by the number that may be pending, and do not wait.
    pub memory_bytes: usize,
    /// Requests of one connection that are at other threads; at this number, no further request is read.
    pub under_way: u32,
    /// Requests of one connection that run in one turn, before other connections have theirs. One command may be many
    /// requests, such as a get of keys that do not exist.
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

/// The reason that a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The number of threads is not allowed.
    #[error("threads: {threads} is not allowed; 1 to {} are", Config::THREADS_MAX)]
    Threads {
        /// The number of threads that was configured.
        threads: u32,
    },
    /// The number of partitions is not allowed.
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
    /// The size of groups is not allowed.
    #[error("balancing.split: {ways} is not allowed; 2 to {} partitions a group are", Balancing::WAYS_MAX)]
    Ways {
        /// The size of a group that was configured.
        ways: u32,
    },
    /// There are fewer groups than threads.
    #[error(
        "partitions: {partitions} are not enough for {threads} threads with groups of {ways} (balancing.split); {} are",
        threads.saturating_mul(*ways)
    )]
    Groups {
        /// The number of partitions that was configured.
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
        /// The address or the path of the socket.
        place: String,
        /// The error of the kernel.
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
        /// The error of the kernel.
        source: io::Error,
    },
    /// Datagrams cannot be steered.
    #[error("datagram_steering: {reason}; without it (None) the kernel goes by the client's address")]
    Steering {
        /// The reason that the kernel or this build gives.
        reason: String,
    },
    /// The kernel did not give a resource that a thread needs.
    #[error("cannot start a worker thread: {what}: {source}")]
    Worker {
        /// The resource that the kernel did not give.
        what: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
}
