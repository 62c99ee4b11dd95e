//! [`Limiters`]: QJump's limiter, as an eBPF program at the egress of every host's device.
//!
//! A packet's level is its socket's `SO_PRIORITY`. It leaves with the level as class selector, by which the fabric's
//! ports serve it.

use plimsoll_fabric::Unbuildable;
use plimsoll_mechanisms::qjump::{LEVELS_MAX, Refill};
use plimsoll_scenario::model::Model;

use crate::emulate::EmulateError;
use crate::namespaces::Namespaces;

/// The limiters of a run, one a host; none where the scenario has none.
#[derive(Debug, Default)]
pub(crate) struct Limiters {
    #[cfg(feature = "kernel")]
    by_host: Vec<plimsoll_bpf::Limiter>,
}

/// Packets that went beyond their level's share, by level.
pub type Excess = [u64; LEVELS_MAX];

/// Whether the limiters of `model` can be had here.
///
/// # Errors
/// Says which key of `host.qjump` stands in the way, or what the build or the system lacks.
pub(crate) fn check(model: &Model) -> Result<(), EmulateError> {
    let Some(params) = model.host.qjump() else { return Ok(()) };
    let refuse = |key: &str, problem: String| Err(Unbuildable { key: key.to_owned(), problem }.into());
    if params.refill != Refill::OnPacket {
        return refuse(
            "host.qjump.refill",
            "a limiter of each connection is not emulated (only `on-packet`)".to_owned(),
        );
    }
    match lacks() {
        Some(reason) => refuse("host.qjump", reason),
        None => Ok(()),
    }
}

#[cfg(feature = "kernel")]
pub(crate) fn lacks() -> Option<String> {
    plimsoll_bpf::Program::empty().err().map(|error| format!("the limiter cannot be loaded: {error}"))
}

/// Why eBPF programs cannot be had; none if they can.
#[cfg(not(feature = "kernel"))]
pub(crate) fn lacks() -> Option<String> {
    Some("this build has no eBPF programs; `make kernel` builds them in".to_owned())
}

#[cfg(feature = "kernel")]
impl Limiters {
    /// Puts a limiter on every host of `model`. It goes with the host's namespace.
    ///
    /// # Errors
    /// If the system refuses, or as [`check`].
    pub(crate) fn attach(model: &Model, namespaces: &Namespaces) -> Result<Limiters, EmulateError> {
        use std::io;

        use plimsoll_bpf::{Direction, Inputs, Limiter};

        let Some(params) = model.host.qjump() else { return Ok(Limiters::default()) };
        let mut by_host = Vec::new();
        for host in 0..model.topology.host_count() {
            let levels = model.qjump_levels(params, host)?;
            let limiter = namespaces.inside(host, || {
                let limiter = Limiter::load(&levels, params.excess, true, Inputs::Kernel);
                let limiter = limiter.map_err(io::Error::other)?;
                let device = crate::namespaces::device()?;
                let attached = limiter.program().attach(device, Direction::Egress);
                attached.map_err(io::Error::other)?.keep();
                Ok(limiter)
            })?;
            by_host.push(limiter);
        }
        Ok(Limiters { by_host })
    }

    /// What went beyond its share so far, of all hosts; none without limiters.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub(crate) fn excess(&self) -> Result<Option<Excess>, EmulateError> {
        let mut excess = [0; LEVELS_MAX];
        for limiter in &self.by_host {
            for (level, sum) in (0..).zip(&mut excess) {
                *sum += limiter.bucket(level).map_err(std::io::Error::other)?.excess;
            }
        }
        Ok((!self.by_host.is_empty()).then_some(excess))
    }
}

/// Without eBPF programs there are none: [`check`] has said so.
#[cfg(not(feature = "kernel"))]
impl Limiters {
    pub(crate) fn attach(_: &Model, _: &Namespaces) -> Result<Limiters, EmulateError> {
        Ok(Limiters::default())
    }

    pub(crate) fn excess(&self) -> Result<Option<Excess>, EmulateError> {
        Ok(None)
    }
}
