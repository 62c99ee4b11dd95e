//! Circuits between real hosts: `plimsoll circuits serve` and `plimsoll circuits agent`.
//!
//! ```text
//! host: sockets ─────> CircuitAgent ─UDP, HMAC─> LiveController ─OpenFlow 1.3─> circuit switch: a rule a port
//!         packets ─> egress of the packet device ─> gate (eBPF): lease? ──yes──> circuit device ─> circuit switch
//!                                                                └──────no───> packet device  ─> packet switch
//! ```
//!
//! An agent reads sockets by sock_diag, or send calls by eBPF. The rules of the loop are in `plimsoll_circuits`; this
//! crate has the sockets, the clock, and the switch.

#![forbid(unsafe_code)]

#[cfg(feature = "kernel")]
mod agent;
mod config;
mod connection;
#[cfg(feature = "kernel")]
mod demand;
mod seal;
mod serve;
mod switch;

#[cfg(feature = "kernel")]
pub use agent::run_agent;
pub use config::{CircuitsConfig, ConfigError, LinkAddress, LiveEstimator, LiveHost};
pub use seal::ControlKey;
pub use serve::serve;
pub use switch::{CircuitSwitch, SwitchError, SwitchEvent};

/// An error that ends a controller or an agent.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system refuses an operation.
    #[error("{doing}: {source}")]
    System {
        /// The action that failed.
        doing: String,
        /// The reason that the system gives.
        source: std::io::Error,
    },
    /// The host is not set up for circuits.
    #[error("{0}")]
    Host(String),
    /// The kernel refuses an eBPF program: the gate, or the estimator by send calls.
    #[cfg(feature = "kernel")]
    #[error(transparent)]
    Kernel(#[from] plimsoll_bpf::Error),
}

impl LiveError {
    fn doing(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> LiveError {
        let doing = doing.into();
        move |source| LiveError::System { doing, source }
    }
}

/// Returns the length of time as the system's calls take it.
fn timespec(span: plimsoll_units::Span) -> rustix::event::Timespec {
    let ns = span.as_ps() / 1_000;
    rustix::event::Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// The longest wait for an event, after which a request to end is noticed.
const WAIT_MAX: plimsoll_units::Span = plimsoll_units::Span::from_ms(200);

/// The time since the start of a controller or an agent.
#[derive(Clone, Copy, Debug)]
struct LiveClock {
    start_ns: u64,
}

impl LiveClock {
    fn start() -> LiveClock {
        LiveClock { start_ns: monotonic_ns() }
    }

    fn now(&self) -> plimsoll_units::Time {
        plimsoll_units::Time::ZERO + plimsoll_units::Span::from_ns(monotonic_ns() - self.start_ns)
    }

    /// Returns the time of CLOCK_MONOTONIC, in ns.
    #[cfg(feature = "kernel")]
    fn monotonic(&self, time: plimsoll_units::Time) -> u64 {
        self.start_ns + time.as_ps() / 1_000
    }
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
