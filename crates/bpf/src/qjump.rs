//! QJump at a host: [`LimiterProgram`] at the device, [`SocketClassifier`] for unmodified programs, and
//! [`PacketClassifier`] at the switch.
//!
//! The quantum of time is a nanosecond. The epoch is rounded up to one, which errs on the side of fewer bytes; a
//! limiter in Rust with that epoch makes the same decisions.

use std::os::fd::AsRawFd;
use std::path::Path;

use plimsoll_mechanisms::qjump::{Excess, Levels, Verdict};
use plimsoll_units::Span;
use rustix::fs::{Mode, OFlags};

use crate::shared::{
    ACTION_DROP, ACTION_PASS, ACTION_REFUSE, CLASSIFIED_PORTS, PortClassifierSettings, QJUMP_GUESTS,
    QJUMP_LEVELS, QjumpBucket, QjumpClassifierSettings, QjumpCounts, QjumpSettings, Shared,
};
use crate::{Error, Inputs, Packet, Program};

/// The limiter of one device: `plimsoll_mechanisms::qjump::Limiter` in the kernel.
#[derive(Debug)]
pub struct LimiterProgram(Program);

impl LimiterProgram {
    /// Loads a limiter whose levels have sent nothing yet. A packet's level is `skb->priority`; 8 and more count as 0.
    /// With `write_dscp`, packets leave with DSCP 8 x level.
    ///
    /// # Errors
    /// Returns the errors of [`LimiterProgram::load_tagging`].
    pub fn load(
        levels: &Levels,
        excess: Excess,
        write_dscp: bool,
        inputs: Inputs,
    ) -> Result<LimiterProgram, Error> {
        let tag = if write_dscp { Tag::Dscp } else { Tag::None };
        LimiterProgram::load_tagging(levels, excess, tag, inputs)
    }

    /// Loads a limiter as [`LimiterProgram::load`] does, which marks each packet with its level by `tag`.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] or [`Error::Kernel`] as [`Program::clock`].
    pub fn load_tagging(
        levels: &Levels,
        excess: Excess,
        tag: Tag,
        inputs: Inputs,
    ) -> Result<LimiterProgram, Error> {
        LimiterProgram::load_for_guests(levels, excess, tag, &[], inputs)
    }

    /// Loads a limiter as [`LimiterProgram::load_tagging`] does, in which each of these guests, at most 8, has buckets
    /// of its own. Packets of other source addresses are the host's.
    ///
    /// # Errors
    /// Returns the errors of [`LimiterProgram::load_tagging`].
    ///
    /// # Panics
    /// Panics if there are more guests, or a level is 8 or more.
    pub fn load_for_guests(
        levels: &Levels,
        excess: Excess,
        tag: Tag,
        guests: &[LimitedGuest],
        inputs: Inputs,
    ) -> Result<LimiterProgram, Error> {
        assert!(guests.len() <= QJUMP_GUESTS as usize, "{} guests", guests.len());
        let mut settings = QjumpSettings {
            inputs_from_cb: inputs.in_packet(),
            epoch_ns: LimiterProgram::epoch(levels).as_ps() / PS_PER_NS,
            excess_action: if excess == Excess::Refuse { ACTION_REFUSE } else { ACTION_DROP },
            write_dscp: u64::from(tag == Tag::Dscp),
            write_pcp: u64::from(matches!(tag, Tag::Pcp { .. })),
            vlan: if let Tag::Pcp { vlan } = tag { u64::from(vlan) } else { 0 },
            ..Default::default()
        };
        for (full, level) in settings.full.iter_mut().zip(&levels.levels) {
            *full = level.bucket.get();
        }
        for (index, guest) in guests.iter().enumerate() {
            let level = guest.level.map_or(QJUMP_LEVELS, u64::from);
            assert!(guest.level.is_none() || level < QJUMP_LEVELS, "guest {index} has level {level}");
            settings.guest_address[index] = guest.address;
            settings.guest_level[index] = level;
        }
        Program::load("qjump", "qjump", Some(&settings.to_bytes())).map(LimiterProgram)
    }

    /// Returns the epoch in use: that of `levels`, rounded up to a whole nanosecond.
    pub fn epoch(levels: &Levels) -> Span {
        Span::from_ps(levels.epoch.as_ps().div_ceil(PS_PER_NS) * PS_PER_NS)
    }

    /// Returns the program, to attach at the device's egress.
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// Returns the program, to pin its maps `state` (a [`QjumpBucket`] a level) and `counts` (a [`QjumpCounts`] a level
    /// and processor). The entry of a guest's level is that of [`LimiterProgram::place`].
    pub fn into_program(self) -> Program {
        self.0
    }

    /// Returns the index in the maps of the level of a guest, by its number from 1; the host itself is guest 0.
    pub fn place(guest: usize, level: u8) -> u32 {
        guest as u32 * QJUMP_LEVELS as u32 + u32::from(level)
    }

    /// Reads the counts of the host's packets of `level`, which is less than 8, over all processors.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn counts(&self, level: u8) -> Result<QjumpCounts, Error> {
        self.counts_of(0, level)
    }

    /// Reads the counts of a guest's packets of `level`, which is less than 8, over all processors.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn counts_of(&self, guest: usize, level: u8) -> Result<QjumpCounts, Error> {
        Ok(QjumpCounts::sum(&self.0.counts(LimiterProgram::place(guest, level))?))
    }

    /// Returns the limiter's verdict on `packet`.
    ///
    /// # Errors
    /// Returns the errors of [`Program::test_run`].
    pub fn test_run(&self, packet: &Packet) -> Result<Verdict, Error> {
        match self.0.test_run(packet)?.action {
            ACTION_PASS => Ok(Verdict::Send),
            ACTION_REFUSE => Ok(Verdict::Refuse),
            ACTION_DROP => Ok(Verdict::Drop),
            other => unreachable!("the program returns no TC_ACT {other}"),
        }
    }

    /// Reads the host's bucket of `level`, which is less than 8.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn bucket(&self, level: u8) -> Result<QjumpBucket, Error> {
        self.bucket_of(0, level)
    }

    /// Reads a guest's bucket of `level`, which is less than 8.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn bucket_of(&self, guest: usize, level: u8) -> Result<QjumpBucket, Error> {
        self.0.state(LimiterProgram::place(guest, level))
    }

    /// Resets all levels to the state before the first packet.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be written.
    pub fn reset(&self) -> Result<(), Error> {
        let places = (1 + QJUMP_GUESTS) * QJUMP_LEVELS;
        (0..places as u32).try_for_each(|place| self.0.set_state(place, &QjumpBucket::default()))
    }
}

/// A guest that shares the device of a limiter, such as a virtual machine behind a bridge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LimitedGuest {
    /// The source address of its frames, the first byte in bits 40 to 47; not 0.
    pub address: u64,
    /// The level of its packets, less than 8; `None` for the class selector that it has written into their DSCP.
    pub level: Option<u8>,
}

/// The header field that carries a packet's level to the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tag {
    /// No field carries the level.
    None,
    /// The class selector of the DSCP carries it, as 8 x level.
    Dscp,
    /// The priority of the 802.1Q tag carries it; a packet without a tag gets one of this VLAN.
    Pcp {
        /// The VLAN of a new tag, at most 4094; 0 for none.
        vlan: u16,
    },
}

impl QjumpCounts {
    /// Adds the counts of all processors.
    pub fn sum(processors: &[QjumpCounts]) -> QjumpCounts {
        processors.iter().fold(QjumpCounts::default(), |sum, one| QjumpCounts {
            passed: sum.passed + one.passed,
            bytes: sum.bytes + one.bytes,
            refused: sum.refused + one.refused,
        })
    }
}

/// Gives packets a level by their ports, ahead of the [`LimiterProgram`].
#[derive(Debug)]
pub struct PortClassifier(Program);

impl PortClassifier {
    /// Loads a classifier for at most 16 pairs of a port, which is 1 or more, and a level less than 8.
    ///
    /// # Errors
    /// Returns the errors of [`LimiterProgram::load`].
    ///
    /// # Panics
    /// Panics if there are more pairs, or a port is 0, or a level is 8 or more.
    pub fn load(levels: &[(u16, u8)]) -> Result<PortClassifier, Error> {
        assert!(levels.len() <= CLASSIFIED_PORTS as usize, "{} ports", levels.len());
        let mut settings = PortClassifierSettings::default();
        for (index, (port, level)) in levels.iter().enumerate() {
            assert!(*port > 0 && u64::from(*level) < QJUMP_LEVELS, "port {port}, level {level}");
            settings.port[index] = u64::from(*port);
            settings.level[index] = u64::from(*level);
        }
        Program::load("ports", "classify_ports", Some(&settings.to_bytes())).map(PortClassifier)
    }

    /// Returns the program, to attach at the device's egress, ahead of the limiter.
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// Returns the program without the classifier.
    pub fn into_program(self) -> Program {
        self.0
    }
}

/// Gives a level to the sockets that a cgroup's programs open, so that the programs need no change. A socket that a
/// listener accepts gets none (Linux sets the priority of a cloned socket to 0): use [`TrafficClassifier`] for it.
#[derive(Debug)]
pub struct SocketClassifier(Program);

impl SocketClassifier {
    /// Loads a classifier for `level`, which is less than 8.
    ///
    /// # Errors
    /// Returns the errors of [`LimiterProgram::load`].
    ///
    /// # Panics
    /// Panics if `level` is 8 or more.
    pub fn load(level: u8) -> Result<SocketClassifier, Error> {
        assert!(u64::from(level) < QJUMP_LEVELS, "there is no level {level}");
        let settings = QjumpClassifierSettings { level: u64::from(level) };
        Program::load("classify", "classify_socket", Some(&settings.to_bytes())).map(SocketClassifier)
    }

    /// Attaches the classifier to the cgroup (version 2) of this folder, until the link is dropped.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] if the cgroup does not exist, [`Error::Kernel`] if the kernel rejects the
    /// program.
    pub fn attach(&self, cgroup: &Path) -> Result<CgroupLink, Error> {
        attach_cgroup(&self.0, cgroup)
    }
}

/// Gives a level to every packet that leaves a socket of a cgroup's programs, including sockets that are already open,
/// and overrides the priority that the program has set.
#[derive(Debug)]
pub struct TrafficClassifier(Program);

impl TrafficClassifier {
    /// Loads a classifier for `level`, which is less than 8.
    ///
    /// # Errors
    /// Returns the errors of [`LimiterProgram::load`].
    ///
    /// # Panics
    /// Panics if `level` is 8 or more.
    pub fn load(level: u8) -> Result<TrafficClassifier, Error> {
        assert!(u64::from(level) < QJUMP_LEVELS, "there is no level {level}");
        let settings = QjumpClassifierSettings { level: u64::from(level) };
        Program::load("classify", "classify_traffic", Some(&settings.to_bytes())).map(TrafficClassifier)
    }

    /// Attaches the classifier to the cgroup (version 2) of this folder, until the link is dropped.
    ///
    /// # Errors
    /// Returns the errors of [`SocketClassifier::attach`].
    pub fn attach(&self, cgroup: &Path) -> Result<CgroupLink, Error> {
        attach_cgroup(&self.0, cgroup)
    }

    /// Pins the program at `path`, so that other processes can attach it.
    ///
    /// # Errors
    /// Returns the errors of [`Program::pin`].
    pub fn pin(&mut self, path: &Path) -> Result<(), Error> {
        self.0.pin(path)
    }
}

/// A program that is attached to a cgroup until the link is dropped.
pub use libbpf_rs::Link as CgroupLink;

/// Turns a packet's class selector back into `skb->priority`, at a switch's port.
#[derive(Debug)]
pub struct PacketClassifier(Program);

impl PacketClassifier {
    /// Loads the classifier of packets.
    ///
    /// # Errors
    /// Returns the errors of [`LimiterProgram::load`].
    pub fn load() -> Result<PacketClassifier, Error> {
        let settings = QjumpClassifierSettings::default();
        Program::load("classify", "classify_packet", Some(&settings.to_bytes())).map(PacketClassifier)
    }

    /// Returns the program, to attach at the ingress of packets, or at the egress of a port with priorities.
    pub fn program(&self) -> &Program {
        &self.0
    }
}

pub(crate) fn attach_cgroup(program: &Program, cgroup: &Path) -> Result<CgroupLink, Error> {
    let folder = rustix::fs::open(cgroup, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| Error::Unsupported(format!("cgroup {}: {error}", cgroup.display())))?;
    program.handle().attach_cgroup(folder.as_raw_fd()).map_err(program.failed("attaching"))
}

const PS_PER_NS: u64 = 1_000;
