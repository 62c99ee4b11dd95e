//! State that all drivers of a run share: [`AgentContext`], [`AgentSettings`] and the state [`Shared`] by their
//! threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_fabric::net::Network;
use plimsoll_units::{Span, Time};

use super::pace::Shares;
use super::plan::DrivenSource;
use crate::clock::Clock;
use crate::net::transports::KernelTransport;
use crate::read_outs::hints::SourceHints;

/// Interval at which a thread that waits for a socket checks whether the run has ended.
pub(super) const PATIENCE: Duration = Duration::from_millis(200);

/// The settings that all connections have in common.
#[derive(Clone, Debug)]
pub(crate) struct AgentSettings {
    /// The time at which workloads begin, on the fabric's clock.
    pub(crate) origin: Span,
    /// The clock that the fabric runs on.
    pub(crate) clock: Clock,
    /// The rates of QJump's levels.
    pub(crate) shares: Arc<Shares>,
}

impl AgentSettings {
    /// Returns the time on the workloads' clock: zero before they begin.
    pub(crate) fn now(&self) -> Time {
        Time::ZERO + self.clock.now().saturating_since(Time::ZERO + self.origin)
    }
}

/// The hosts between which sources send, and the network between them.
#[derive(Debug)]
pub(crate) struct AgentContext {
    /// The settings of all connections.
    pub(crate) settings: AgentSettings,
    /// The names of the hosts' namespaces.
    pub(crate) names: Vec<String>,
    /// The network, from which ideal times are computed.
    pub(crate) network: Network,
    /// The transports, by workload.
    pub(crate) transports: Vec<KernelTransport>,
    /// Where sources announce the data that they will send, if the controller of circuits takes account of it.
    pub(crate) hints: Option<Arc<SourceHints>>,
}

impl AgentContext {
    /// Returns the transport of a source.
    pub(super) fn transport(&self, driven: &DrivenSource) -> &KernelTransport {
        &self.transports[usize::from(driven.number)]
    }
}

/// The state that the drivers' threads share with the run.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Whether the run has ended.
    pub(super) stop: AtomicBool,
    /// The number of drivers whose connections are open.
    pub(super) connected: AtomicUsize,
    /// The number of drivers whose source is not finished.
    pub(super) open: AtomicUsize,
    failure: Mutex<Option<String>>,
}

impl Shared {
    /// Returns the state of a run with `sources` sources.
    pub(super) fn new(sources: usize) -> Shared {
        Shared { open: AtomicUsize::new(sources), ..Shared::default() }
    }

    /// Records why a driver has failed, unless the run has ended.
    pub(super) fn fail(&self, text: String) {
        if !self.stop.load(Ordering::Relaxed) {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(text);
        }
    }

    /// Returns why a driver has failed, if one has.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
