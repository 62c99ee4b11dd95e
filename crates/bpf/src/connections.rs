//! [`Connections`] sets up the TCP connections of a level's programs, so that they send within the level.

use std::path::Path;

use plimsoll_units::{Bytes, Span};

use crate::qjump::attach_cgroup;
use crate::shared::{ConnectionSettings, ConnectionSharers, Shared};
use crate::{CgroupLink, Error, Program};

/// The set-up of TCP connections.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ConnectionOptions {
    /// The value requested as SO_SNDBUF, in bytes, which the kernel doubles and bounds from below. None leaves it.
    pub send_buffer: Option<u32>,
    /// The bytes that the level may send in an epoch, and the epoch. All connections together are paced to that rate by
    /// [`plimsoll_mechanisms::qjump::pace`], and retransmit soon. None leaves pacing to TCP.
    pub share: Option<(Bytes, Span)>,
}

/// Sets up the TCP connections that a cgroup's programs open or accept.
#[derive(Debug)]
pub struct Connections(Program);

impl Connections {
    /// Loads the program. The connections of one loaded program share their level, at all cgroups to which it is
    /// attached.
    ///
    /// # Errors
    /// Returns the errors of [`crate::Limiter::load`].
    pub fn load(options: &ConnectionOptions) -> Result<Connections, Error> {
        let mut settings = ConnectionSettings {
            send_buffer: options.send_buffer.map_or(0, |bytes| u64::from(bytes.min(i32::MAX as u32))),
            ..Default::default()
        };
        if let Some((bucket, epoch)) = options.share {
            settings.bucket = bucket.get().min(u64::from(u32::MAX));
            settings.epoch_ns = epoch.as_ps().div_ceil(PS_PER_NS);
            settings.rto_min_us = (settings.epoch_ns / NS_PER_US).clamp(RTO_MIN_US, RTO_MAX_US);
        }
        Program::load("connections", "connections", Some(&settings.to_bytes())).map(Connections)
    }

    /// Attaches the program to the cgroup (version 2) of this folder, until the link is dropped.
    ///
    /// # Errors
    /// Returns the errors of [`crate::SocketClassifier::attach`].
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

    /// Reads the number of connections that share the level.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn sharers(&self) -> Result<ConnectionSharers, Error> {
        self.0.state(0)
    }

    /// Returns the loaded program.
    pub fn program(&self) -> &Program {
        &self.0
    }
}

/// Two jiffies of 4 ms, which is the minimum that Linux accepts at 250 jiffies a second.
const RTO_MIN_US: u64 = 8_000;
/// The value that Linux uses itself (TCP_RTO_MIN).
const RTO_MAX_US: u64 = 200_000;
const NS_PER_US: u64 = 1_000;
const PS_PER_NS: u64 = 1_000;
