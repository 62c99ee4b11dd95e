//! What a point of a figure measures, as plain data: the servers that take turns, their requests, and what is read.

use std::path::Path;

use crate::study::Point;

/// A server that takes turns with others.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    /// Its name in the rows.
    pub(crate) series: &'static str,
    /// The program that is started.
    pub(crate) program: Program,
    /// Threads of each process.
    pub(crate) threads: u32,
    /// Processes; keys are shared out to them.
    pub(crate) processes: u32,
    /// Words of its command line beyond what all have.
    pub(crate) options: &'static [&'static str],
    /// The way on which requests reach it.
    pub(crate) stack: Stack,
    /// Whether a job beside it receives bulk streams during the measurement.
    pub(crate) has_neighbour: bool,
    /// The servers that its numbers are set beside.
    pub(crate) beside: Vec<Beside>,
}

/// The way on which requests reach a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stack {
    /// TCP over the loopback.
    Loopback,
    /// TCP over a veth pair.
    Streams,
    /// UDP over a veth pair, through the kernel's stack.
    Kernel,
    /// UDP over a veth pair, past the kernel's stack by AF_XDP.
    Bypassed,
}

/// Another server of the same rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beside {
    /// Its place in the order of the servers.
    pub(crate) place: usize,
    /// The name that ratios have for it: `p99_of_first`.
    pub(crate) name: &'static str,
}

impl Stack {
    /// Returns whether requests come by TCP; by UDP if not.
    pub(super) fn is_tcp(self) -> bool {
        matches!(self, Stack::Loopback | Stack::Streams)
    }
}

impl Beside {
    /// The first server of a figure.
    pub(super) const FIRST: Beside = Beside { place: 0, name: "first" };
    /// Returns the name of a ratio: that of `latency_us_p99` is `p99_of_first`.
    pub(super) fn metric(self, metric: &str) -> String {
        let short = match metric {
            "requests_per_s" => "rate",
            "server_us_per_request" => "cost",
            latency => latency.rsplit('_').next().unwrap_or(latency),
        };
        format!("{short}_of_{}", self.name)
    }
}

/// A program that answers memcached's protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Program {
    /// memcached, from the system.
    Memcached,
    /// chronos-memcached, from the folder of the servers.
    Chronos,
    /// chronos-memcached-locked, the lock baselines, from the same folder.
    ChronosLocked,
    /// chronos-search, an index by memcached's protocol, from the same folder.
    Search,
    /// chronos-search-locked, its lock baselines, from the same folder.
    SearchLocked,
}

impl Program {
    /// Returns the name of a program of this project; None for memcached.
    pub(crate) fn built(self) -> Option<&'static str> {
        match self {
            Program::Memcached => None,
            Program::Chronos => Some("chronos-memcached"),
            Program::ChronosLocked => Some("chronos-memcached-locked"),
            Program::Search => Some("chronos-search"),
            Program::SearchLocked => Some("chronos-search-locked"),
        }
    }
}

impl Side {
    /// Returns memcached, or chronos-memcached, with so many threads.
    pub(crate) fn new(series: &'static str, program: Program, threads: u32) -> Side {
        let (options, stack) = (&[][..], Stack::Loopback);
        Side {
            series,
            program,
            threads,
            processes: 1,
            options,
            stack,
            has_neighbour: false,
            beside: Vec::new(),
        }
    }

    /// Returns the words of its command line, with `{port}` still in them; `place` is its address and its device.
    pub(crate) fn words(&self, servers: &Path, (address, device): (&str, &str)) -> Vec<String> {
        let own = self.program.built().map(|name| servers.join(name).display().to_string());
        let program = own.unwrap_or_else(|| "memcached".to_owned());
        let threads = self.threads.to_string();
        if matches!(self.program, Program::Search | Program::SearchLocked) {
            let listen = format!("{address}:{{port}}");
            let common = ["--listen", &listen, "--preset", "paper", "--threads", &threads];
            let words = common.iter().chain(self.options).map(|word| (*word).to_owned());
            return std::iter::once(program).chain(words).collect();
        }
        let (tcp, udp) = if self.stack.is_tcp() { ("{port}", "0") } else { ("0", "{port}") };
        let common = ["-u", "root", "-l", address, "-p", tcp, "-U", udp, "-m", "256", "-t", &threads];
        let words = common.iter().chain(self.options).map(|word| word.replace("{device}", device));
        std::iter::once(program).chain(words).collect()
    }
}

/// The controllers that take turns; the others are set beside the first. The third never sleeps.
pub(super) const CONTROLLERS: [&str; 3] = ["ovs-testcontroller", "Chronos-OF", "Chronos-OF spin"];

/// On which processors servers and generator run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Processors {
    /// Servers on the first, the generator on the second, where it spins.
    Apart,
    /// Both on both, and a generator of two threads that sleep when there is nothing to do.
    Shared,
}

/// The requests to the servers of a point.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Clients, each with a connection to every process.
    pub(super) clients: u32,
    /// How requests follow each other.
    pub(super) pace: Pace,
    /// Words of `chronos-load run` beyond what all loads have.
    pub(super) words: Vec<String>,
    /// How long a turn is, in milliseconds, and in a quick look.
    pub(super) turn_ms: (u64, u64),
}

/// How requests follow each other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Pace {
    /// Every client waits for its answer.
    Closed,
    /// Every client has so many operations under way, so that the server is at work all the time.
    UnderWay(u32),
    /// A share of what the first server carries with 32 or more requests outstanding, found anew for each point.
    Share(f64),
}

/// A number that is read of a turn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Gauge {
    Mean,
    P50,
    P99,
    /// The number of operations a second.
    Rate,
    /// Processor time of the server for each operation.
    Cost,
    /// Requests at the 99th percentile that fit one after the other into so many us.
    Calls(f64),
    /// Of operations, those without an answer.
    Lost,
    /// Values of a turn that were read and were what had been stored.
    Verified,
}

impl Gauge {
    /// Returns its name and its unit in the rows; those of the server's model where it has them.
    pub(super) fn name(self) -> (&'static str, &'static str) {
        match self {
            Gauge::Mean => ("latency_us_mean", "us"),
            Gauge::P50 => ("latency_us_p50", "us"),
            Gauge::P99 => ("latency_us_p99", "us"),
            Gauge::Rate => ("requests_per_s", "1/s"),
            Gauge::Cost => ("server_us_per_request", "us"),
            Gauge::Calls(_) => ("calls", "requests"),
            Gauge::Lost => ("lost_percent", "%"),
            Gauge::Verified => ("values_verified", "values"),
        }
    }

    /// Returns whether the first server's number is set beside it.
    pub(super) fn is_compared(self) -> bool {
        matches!(self, Gauge::Mean | Gauge::P99 | Gauge::Rate | Gauge::Cost)
    }
}

/// Servers that take turns.
#[derive(Clone, Debug)]
pub(super) struct TurnsPlan {
    /// The servers, the first of which decides the rate.
    pub(super) sides: Vec<Side>,
    /// The processors on which they run.
    pub(super) processors: Processors,
    /// The requests that they get.
    pub(super) load: Load,
    /// The numbers that are read.
    pub(super) gauges: Vec<Gauge>,
}

/// How often every server has its turn, and how long a turn is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) count: u32,
    pub(crate) warm_up_ms: u64,
    pub(crate) turn_ms: u64,
}

impl Rounds {
    /// Returns the rounds of a point: `count` in full, of turns of so many milliseconds in full and in a quick look.
    pub(crate) fn of(point: &Point<'_>, count: u32, (full, quick): (u64, u64)) -> Rounds {
        if point.quick {
            Rounds { count: ROUNDS_QUICK, warm_up_ms: 50, turn_ms: quick }
        } else {
            Rounds { count, warm_up_ms: 100, turn_ms: full }
        }
    }
}

/// Pairs: enough for an interval of the median.
pub(crate) const ROUNDS: u32 = 7;
/// As many where the ratios of seven rounds leave no order: the interval is then between the fourth least and the
/// fourth largest of them.
pub(crate) const MANY_ROUNDS: u32 = 15;
const ROUNDS_QUICK: u32 = 3;

/// Six clients of 440 Mb/s (section 6.3 of the dissertation).
pub(super) const NEIGHBOUR: (usize, f64) = (6, 440e6);
