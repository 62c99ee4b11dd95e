//! [`Traced`]: a report with everything else that is known about its trace.

use serde::Serialize;

use crate::{FutexSleeps, ProfileReport, Report, SlowRequest, Target};

/// A report with everything else that is known about its trace.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The breakdown of the requests.
    pub report: Report,
    /// The server that was traced.
    pub target: Target,
    /// The rate of the link in bits per second, where it is known.
    pub link_bps: Option<u64>,
    /// One connection of this many was traced.
    pub sample: u32,
    /// The share of the time in which requests were traced, 0 to 1.
    pub duty: f64,
    /// The records that were lost.
    pub lost_records: u64,
    /// The records that were read.
    pub records: u64,
    /// The futexes at which the server's threads slept longest.
    pub locks: Vec<FutexSleeps>,
    /// The functions that the processors ran for the server, or why they are not known.
    pub profile: Result<ProfileReport, String>,
    /// The cost of tracing, where that was measured.
    pub cost: Option<Cost>,
    /// The first requests, if they were asked for.
    pub first: Vec<SlowRequest>,
    /// The reason why tracing ended early.
    pub ended: Option<String>,
}

/// The cost of tracing while it was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cost {
    /// The requests, matched or not, in that time.
    pub requests: u64,
    /// Runs of the kernel's programs at packets and sockets, a request.
    pub runs: f64,
    /// Their processor time a request, in ns. Some of it is the clients' where these are on the same machine.
    pub kernel_ns: f64,
    /// The processors that the programs at the scheduler took, 1 for one. They also run for other processes.
    pub scheduler_processors: f64,
    /// The server's processor time a request, in ns, which includes most of that.
    pub server_ns: f64,
    /// The processors that this command used to join the records, 1 for one.
    pub own_processors: f64,
}

impl Cost {
    /// Returns the programs' processor time as a share of the server's time without them.
    pub fn share(&self) -> f64 {
        self.kernel_ns / (self.server_ns - self.kernel_ns).max(1.0)
    }
}

/// The rise of a quantity with tracing: the paired ratios.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rise {
    /// The name of the quantity.
    pub quantity: &'static str,
    /// The median without tracing, in us.
    pub without_us: f64,
    /// The median with tracing, in us.
    pub with_us: f64,
    /// The median of the ratios, with to without, of the pairs.
    pub median: f64,
    /// The least ratio. For six pairs or more, from the least to the largest ratio is a 95 % interval of the median or
    /// wider.
    pub low: f64,
    /// The largest ratio of the pairs.
    pub high: f64,
}
