//! [`Limiters`]: QJump's limiter, as an eBPF program at the egress of every host's device.
//!
//! A packet's level is its socket's `SO_PRIORITY`. It leaves with the level as class selector, by which the fabric's
//! ports serve it.

use std::io;

use plimsoll_fabric::Unbuildable;
use plimsoll_mechanisms::qjump::{LEVELS_MAX, Refill};
use plimsoll_scenario::model::Model;

use crate::net::namespaces::Namespaces;

/// The limiters of a run, one a host; none where the scenario has none.
#[derive(Debug, Default)]
pub(crate) struct Limiters {
    #[cfg(feature = "kernel")]
    by_host: Vec<plimsoll_bpf::LimiterProgram>,
}

/// The number of packets that went beyond their level's share, by level.
pub type ExcessPackets = [u64; LEVELS_MAX];

/// Checks that the limiters of `model` can be attached on this system.
///
/// # Errors
/// Names the key of `host.qjump` that is not emulated or out of range, or the feature that the build or the system
/// lacks.
pub(crate) fn check(model: &Model) -> Result<(), Unbuildable> {
    let Some(params) = model.host.qjump() else { return Ok(()) };
    if params.refill != Refill::OnPacket {
        let problem = "a limiter of each connection is not emulated (only `on-packet`)";
        return Err(Unbuildable::new("host.qjump.refill", problem));
    }
    if model.guests() > 1 {
        let problem = "guests are not emulated: a host's workloads share one network namespace";
        return Err(Unbuildable::new("host.guest", problem));
    }
    for host in 0..model.topology.host_count() {
        model.qjump_levels(params, host)?;
    }
    lacks().map_or(Ok(()), |reason| Err(Unbuildable::new("host.qjump", reason)))
}

/// Returns why eBPF programs cannot be loaded; `None` if they can.
#[cfg(feature = "kernel")]
pub(crate) fn lacks() -> Option<String> {
    plimsoll_bpf::Program::empty().err().map(|error| format!("the limiter cannot be loaded: {error}"))
}

/// Returns why eBPF programs cannot be loaded.
#[cfg(not(feature = "kernel"))]
pub(crate) fn lacks() -> Option<String> {
    Some("this build has no eBPF programs; `make kernel` builds them in".to_owned())
}

#[cfg(feature = "kernel")]
impl Limiters {
    /// Attaches a limiter to every host of `model`, which has been checked. It ends with the host's namespace.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub(crate) fn attach(model: &Model, namespaces: &Namespaces) -> io::Result<Limiters> {
        use plimsoll_bpf::{HookDirection, Inputs, LimiterProgram};

        let Some(params) = model.host.qjump() else { return Ok(Limiters::default()) };
        let mut by_host = Vec::new();
        for host in 0..model.topology.host_count() {
            let levels = model.qjump_levels(params, host).map_err(io::Error::other)?;
            let limiter = namespaces.inside(host, || {
                let limiter = LimiterProgram::load(&levels, params.excess, true, Inputs::Kernel);
                let limiter = limiter.map_err(io::Error::other)?;
                let device = crate::net::namespaces::device()?;
                let attached = limiter.program().attach(device, HookDirection::Egress);
                attached.map_err(io::Error::other)?.keep();
                Ok(limiter)
            })?;
            by_host.push(limiter);
        }
        Ok(Limiters { by_host })
    }

    /// Returns the packets of all hosts beyond their level's share so far; `None` without limiters.
    ///
    /// # Errors
    /// Fails if the kernel's counters cannot be read.
    pub(crate) fn excess(&self) -> io::Result<Option<ExcessPackets>> {
        let mut excess = [0; LEVELS_MAX];
        for limiter in &self.by_host {
            for (level, sum) in (0..).zip(&mut excess) {
                *sum += limiter.bucket(level).map_err(io::Error::other)?.excess;
            }
        }
        Ok((!self.by_host.is_empty()).then_some(excess))
    }
}

/// A build without eBPF programs has no limiters, and [`check`] rejects scenarios that need one.
#[cfg(not(feature = "kernel"))]
impl Limiters {
    pub(crate) fn attach(_: &Model, _: &Namespaces) -> io::Result<Limiters> {
        Ok(Limiters::default())
    }

    pub(crate) fn excess(&self) -> io::Result<Option<ExcessPackets>> {
        Ok(None)
    }
}
