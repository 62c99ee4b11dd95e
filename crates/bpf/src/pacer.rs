//! [`PacerProgram`] is HULL's pacer at a device, by departure times; [`PacerFeedback`] associates flows with it.
//!
//! Quantum and rounding are the same as in `plimsoll_mechanisms::pacer::EarliestDeparture`; the only difference is that
//! the kernel remembers 65,536 flows, and evicts the least recently used ones.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};

use libbpf_rs::{MapCore, MapFlags, MapHandle, OpenObject};
use plimsoll_mechanisms::InvalidParam;
use plimsoll_mechanisms::pacer::{EarliestDepartureConstants, PacerParams};

use crate::shared::{
    PACER_CGROUPS, PacerCounts, PacerFeedbackCounts, PacerFeedbackSettings, PacerFlow, PacerSettings,
    PacerState, Shared,
};
use crate::{Error, Inputs, Program};

/// The pacer of one device: `plimsoll_mechanisms::pacer::EarliestDeparture` in the kernel.
#[derive(Debug)]
pub struct PacerProgram {
    program: Program,
    start: PacerState,
}

impl PacerProgram {
    /// Loads a pacer that has seen no packet. It paces the packets of programs in `cgroups`, which are at most 8; an
    /// empty list paces all programs.
    ///
    /// # Errors
    /// Returns [`Error::Param`] for parameters outside their range, [`Error::Unsupported`] or [`Error::Kernel`] as
    /// [`Program::clock`].
    pub fn load(
        params: &PacerParams,
        cgroups: &[ChosenCgroup],
        inputs: Inputs,
    ) -> Result<PacerProgram, Error> {
        PacerProgram::load_for(params, cgroups, None, inputs)
    }

    /// Loads a pacer that, if given a class, puts packets into that class of the device's HTB (by priority, major and
    /// minor number) instead of giving them a departure time.
    ///
    /// # Errors
    /// Returns the errors of [`PacerProgram::load`].
    pub fn load_for(
        params: &PacerParams,
        cgroups: &[ChosenCgroup],
        class: Option<(u16, u16)>,
        inputs: Inputs,
    ) -> Result<PacerProgram, Error> {
        let constants = EarliestDepartureConstants::new(params)?;
        let few = cgroups.len() <= PACER_CGROUPS as usize;
        InvalidParam::unless(few, "cgroups", cgroups.len(), "at most 8")?;
        let mut settings = PacerSettings {
            inputs_from_cb: inputs.in_packet(),
            cgroups: cgroups.len() as u64,
            bucket_bits: constants.bucket_bits,
            interval_ns: constants.interval_ns,
            floor: constants.floor,
            keep: constants.keep,
            measured: constants.measured,
            push: constants.push,
            received_max: constants.received_max,
            pushing_max: constants.pushing_max,
            pushes_max: constants.pushes_max,
            class_id: class.map_or(0, |(major, minor)| u64::from(major) << 16 | u64::from(minor)),
            ..Default::default()
        };
        for (index, cgroup) in cgroups.iter().enumerate() {
            settings.cgroup_id[index] = cgroup.id;
            settings.cgroup_depth[index] = cgroup.depth;
        }
        let start =
            PacerState { rate: constants.initial_rate, tokens: constants.bucket_bits, ..Default::default() };
        let program = Program::load("pacer", "pacer", Some(&settings.to_bytes()))?;
        let pacer = PacerProgram { program, start };
        pacer.reset()?;
        Ok(pacer)
    }

    /// Returns the program, to attach at the device's egress. The device's queue must obey departure times.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the program, to pin its maps `state`, `counts` (a [`PacerCounts`] a processor) and `flows`.
    pub fn into_program(self) -> Program {
        self.program
    }

    /// Reads the state that changes with time.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn state(&self) -> Result<PacerState, Error> {
        self.program.state(0)
    }

    /// Reads the counts over all processors.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn counts(&self) -> Result<PacerCounts, Error> {
        Ok(PacerCounts::sum(&self.program.counts(0)?))
    }

    /// Reads the state of the flow with this number; none if it was never associated, or is evicted.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn flow(&self, number: u64) -> Result<Option<PacerFlow>, Error> {
        let flows = self.program.map_named("flows");
        let found =
            flows.lookup(&number.to_ne_bytes(), MapFlags::ANY).map_err(self.program.failed("reading"))?;
        Ok(found.map(|bytes| PacerFlow::from_bytes(&bytes).expect("the map has this layout")))
    }

    /// Returns the map of flows, by which [`PacerFeedback`] associates others.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the kernel has no descriptor left.
    pub fn flows(&self) -> Result<MapHandle, Error> {
        MapHandle::try_from(&self.program.map_named("flows")).map_err(self.program.failed("sharing a map of"))
    }

    /// Resets the pacer to the state before the first packet; flows stay associated.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be written.
    pub fn reset(&self) -> Result<(), Error> {
        self.program.set_state(0, &self.start)
    }
}

impl PacerCounts {
    /// Adds the counts of all processors.
    pub fn sum(processors: &[PacerCounts]) -> PacerCounts {
        processors.iter().fold(PacerCounts::default(), |sum, one| PacerCounts {
            paced: sum.paced + one.paced,
            bypassed: sum.bypassed + one.bypassed,
            held_ns: sum.held_ns + one.held_ns,
        })
    }
}

impl PacerFeedbackCounts {
    /// Adds the counts of all processors.
    pub fn sum(processors: &[PacerFeedbackCounts]) -> PacerFeedbackCounts {
        processors.iter().fold(PacerFeedbackCounts::default(), |sum, one| PacerFeedbackCounts {
            draws: sum.draws + one.draws,
            associations: sum.associations + one.associations,
        })
    }
}

/// Associates flows with a [`PacerProgram`] when their acknowledgements carry ECE.
#[derive(Debug)]
pub struct PacerFeedback(Program);

impl PacerFeedback {
    /// Loads the association for the pacer with these `flows` ([`PacerProgram::flows`], or its pinned map).
    ///
    /// # Errors
    /// Returns the errors of [`PacerProgram::load`].
    pub fn load(params: &PacerParams, flows: BorrowedFd, inputs: Inputs) -> Result<PacerFeedback, Error> {
        let constants = EarliestDepartureConstants::new(params)?;
        let settings = PacerFeedbackSettings {
            inputs_from_cb: inputs.in_packet(),
            hits: constants.hits,
            timeout_ns: constants.timeout_ns,
        };
        let (name, settings) = ("pacer_feedback", settings.to_bytes());
        let share = |open: &mut OpenObject| {
            let mut own =
                open.maps_mut().find(|own| own.name() == "flows").expect("the program has this map");
            own.reuse_fd(flows)
        };
        Program::load_with(name, name, Some(&settings), share).map(PacerFeedback)
    }

    /// Returns the program, to attach at the device's ingress.
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// Returns the program, to pin its map `counts` (a [`PacerFeedbackCounts`] a processor).
    pub fn into_program(self) -> Program {
        self.0
    }

    /// Reads the counts over all processors.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn counts(&self) -> Result<PacerFeedbackCounts, Error> {
        Ok(PacerFeedbackCounts::sum(&self.0.counts(0)?))
    }
}

/// A cgroup (version 2), by its ID in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChosenCgroup {
    id: u64,
    depth: u64,
}

impl ChosenCgroup {
    /// Returns the cgroup with this folder, in a hierarchy whose root is mounted at `root`.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] if there is none.
    pub fn of(root: &Path, folder: &Path) -> Result<ChosenCgroup, Error> {
        let missing = |why: String| Error::Unsupported(format!("cgroup {}: {why}", folder.display()));
        let below = folder.strip_prefix(root).map_err(|_| missing(format!("not in {}", root.display())))?;
        let depth = below.components().filter(|part| matches!(part, Component::Normal(_))).count() as u64;
        // On 64-bit machines, the ID of a cgroup is the inode of its folder.
        let id = std::fs::metadata(folder).map_err(|error| missing(error.to_string()))?.ino();
        Ok(ChosenCgroup { id, depth })
    }
}

/// Returns the number of the TCP connection between this host's `local` and `remote`, which [`PacerProgram::flow`]
/// expects.
///
/// # Panics
/// Panics if one address is IPv4 and the other IPv6.
pub fn flow_number(local: SocketAddr, remote: SocketAddr) -> u64 {
    let addresses = match (local.ip(), remote.ip()) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => {
            let word = |address: [u8; 4]| u64::from(u32::from_ne_bytes(address));
            mixed(0, (word(local.octets()) << 32) | word(remote.octets()))
        }
        (IpAddr::V6(local), IpAddr::V6(remote)) => {
            let bytes = [local.octets(), remote.octets()].concat();
            let (words, _) = bytes.as_chunks();
            words.iter().fold(0, |number, word| mixed(number, u64::from_ne_bytes(*word)))
        }
        _ => panic!("{local} and {remote}: expected two IPv4 or two IPv6 addresses"),
    };
    let port = |address: SocketAddr| u64::from(u16::from_ne_bytes(address.port().to_be_bytes()));
    mixed(addresses, (port(local) << 16) | port(remote))
}

/// Mixes addresses and ports as `mixed` of pacer.h does.
fn mixed(number: u64, word: u64) -> u64 {
    let number = (number ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ (number >> 32)
}
