//! QJump at a host: [`Limiter`] at the device, [`SocketClassifier`] for programs that know nothing of levels, and
//! [`PacketClassifier`] at the switch.
//!
//! Quantum: a nanosecond. The epoch is rounded up to one, which is the safe side; a limiter in Rust with that
//! epoch decides the same.

use std::path::Path;

use libbpf_rs::Link;
use plimsoll_mechanisms::qjump::{Excess, Levels, Verdict};
use plimsoll_units::Span;
use rustix::fs::{Mode, OFlags};

use crate::shared::{
    ACTION_DROP, ACTION_PASS, ACTION_REFUSE, QJUMP_LEVELS, QjumpBucket, QjumpClassifierSettings,
    QjumpSettings, Shared,
};
use crate::{Error, Inputs, Packet, Program};

/// The limiter of one device: `plimsoll_mechanisms::qjump::Limiter` in the kernel.
#[derive(Debug)]
pub struct Limiter(Program);

impl Limiter {
    /// Loads a limiter whose levels have sent nothing yet. A packet's level is `skb->priority`; 8 and more
    /// count as 0. With `write_dscp`, packets leave with DSCP 8 x level.
    ///
    /// # Errors
    /// [`Error::Unsupported`] or [`Error::Kernel`] as [`Program::clock`].
    pub fn load(levels: &Levels, excess: Excess, write_dscp: bool, inputs: Inputs) -> Result<Limiter, Error> {
        let mut settings = QjumpSettings {
            inputs_from_cb: inputs.in_packet(),
            epoch_ns: Limiter::epoch(levels).as_ps() / PS_PER_NS,
            excess_action: if excess == Excess::Refuse { ACTION_REFUSE } else { ACTION_DROP },
            write_dscp: u64::from(write_dscp),
            ..Default::default()
        };
        for (full, level) in settings.full.iter_mut().zip(&levels.levels) {
            *full = level.bucket.get();
        }
        Program::load("qjump", "qjump", Some(&settings.to_bytes())).map(Limiter)
    }

    /// The epoch that it works with: that of `levels`, rounded up to a whole nanosecond.
    pub fn epoch(levels: &Levels) -> Span {
        Span::from_ps(levels.epoch.as_ps().div_ceil(PS_PER_NS) * PS_PER_NS)
    }

    /// The program, to attach at the device's egress.
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// What becomes of `packet`.
    ///
    /// # Errors
    /// As [`Program::test_run`].
    pub fn test_run(&self, packet: &Packet) -> Result<Verdict, Error> {
        match self.0.test_run(packet)?.action {
            ACTION_PASS => Ok(Verdict::Send),
            ACTION_REFUSE => Ok(Verdict::Refuse),
            ACTION_DROP => Ok(Verdict::Drop),
            other => unreachable!("the program returns no TC_ACT {other}"),
        }
    }

    /// The bucket of `level`, which is less than 8.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the map cannot be read.
    pub fn bucket(&self, level: u8) -> Result<QjumpBucket, Error> {
        self.0.state(u32::from(level))
    }

    /// As if nothing had been sent yet.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the map cannot be written.
    pub fn reset(&self) -> Result<(), Error> {
        (0..QJUMP_LEVELS as u32).try_for_each(|level| self.0.set_state(level, &QjumpBucket::default()))
    }
}

/// Gives the sockets that a cgroup's programs open a level, so that the programs need no change.
#[derive(Debug)]
pub struct SocketClassifier(Program);

impl SocketClassifier {
    /// Loads a classifier for `level`, which is less than 8.
    ///
    /// # Errors
    /// As [`Limiter::load`].
    ///
    /// # Panics
    /// If `level` is 8 or more.
    pub fn load(level: u8) -> Result<SocketClassifier, Error> {
        assert!(u64::from(level) < QJUMP_LEVELS, "there is no level {level}");
        let settings = QjumpClassifierSettings { level: u64::from(level) };
        Program::load("classify", "classify_socket", Some(&settings.to_bytes())).map(SocketClassifier)
    }

    /// Attaches it to the cgroup (version 2) with this folder, until the link is dropped.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is no such cgroup, [`Error::Kernel`] if the kernel refuses.
    pub fn attach(&self, cgroup: &Path) -> Result<CgroupLink, Error> {
        use std::os::fd::AsRawFd;
        let folder = rustix::fs::open(cgroup, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| Error::Unsupported(format!("cgroup {}: {error}", cgroup.display())))?;
        let link = self.0.handle().attach_cgroup(folder.as_raw_fd());
        link.map(CgroupLink).map_err(self.0.failed("attaching"))
    }
}

/// A classifier at a cgroup, until dropped.
#[derive(Debug)]
pub struct CgroupLink(#[expect(dead_code, reason = "it detaches when dropped")] Link);

/// Turns the class selector of a packet into `skb->priority` again, at a switch's port.
#[derive(Debug)]
pub struct PacketClassifier(Program);

impl PacketClassifier {
    /// Loads it.
    ///
    /// # Errors
    /// As [`Limiter::load`].
    pub fn load() -> Result<PacketClassifier, Error> {
        let settings = QjumpClassifierSettings::default();
        Program::load("classify", "classify_packet", Some(&settings.to_bytes())).map(PacketClassifier)
    }

    /// The program, to attach where packets come in, or at the egress of a port with priorities.
    pub fn program(&self) -> &Program {
        &self.0
    }
}

const PS_PER_NS: u64 = 1_000;
