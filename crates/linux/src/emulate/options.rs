//! [`Options`] of an emulated run, and why one has no outcome: [`EmulateError`].

use std::io;

use plimsoll_fabric::Unbuildable;
use plimsoll_units::Span;

use crate::agents::programs::Program;
use crate::edge::capture::CaptureTo;
use crate::net::congestion::NoCongestionControl;

/// The options of an emulated run.
#[derive(Clone, Default, Debug)]
pub struct Options {
    /// The time before an event at which the edge stops sleeping.
    pub spin: Span,
    /// Keeps all arrivals, and checks that their replay gives the digest of the run.
    pub verify: bool,
    /// The programs to run in hosts.
    pub programs: Vec<Program>,
    /// The congestion control of this kernel that replaces the scenario's.
    pub congestion_control: Option<String>,
    /// The most subflows of a connection ([`crate::SUBFLOWS`]), if all connections use MPTCP whatever the scenario.
    pub mptcp: Option<u8>,
    /// The host in which a shell opens; the run lasts as long as the shell.
    pub shell: Option<u32>,
    /// The folder in which the frames of all hosts are captured.
    pub capture: Option<CaptureTo>,
}

/// Reasons why an emulated run has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The system lacks a feature.
    #[error("emulating needs {}; run it as root. `plimsoll check` lists all", .0.join(", "))]
    Missing(Vec<&'static str>),
    /// The kernel lacks the congestion control.
    #[error(transparent)]
    NoCongestionControl(#[from] NoCongestionControl),
    /// The model cannot be emulated.
    #[error(transparent)]
    Unbuildable(#[from] Unbuildable),
    /// The system refused an operation.
    #[error("cannot emulate: {0}")]
    System(#[from] io::Error),
    /// A program of the hosts failed.
    #[error("{0}")]
    Agent(String),
}
