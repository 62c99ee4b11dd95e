//! [`MptcpConfig`]: the resolved configuration of both ends of an MPTCP connection.

use super::lia::Lia;
use super::params::{Coupling, MptcpParams, SubflowPaths, SubflowScheduler};
use crate::transports::tcp::{self, Flags, MakeController, TcpSegment};

/// The configuration of an MPTCP connection, resolved.
#[derive(Clone, Debug)]
pub struct MptcpConfig {
    /// The configuration of each subflow. Its `max_window` is also the receive window that the subflows share.
    pub tcp: tcp::TcpConfig,
    /// The number of subflows, at least 1.
    pub subflows: usize,
    /// The rule that chooses the subflow for new data.
    pub scheduler: SubflowScheduler,
    /// The rule by which subflows get different paths.
    pub paths: SubflowPaths,
}

impl MptcpParams {
    /// Resolves the parameters of connections whose subflows have the configuration `tcp`. A controller from outside in
    /// `tcp` stays: it may couple the subflows in its own way.
    pub fn resolve(&self, mut tcp: tcp::TcpConfig) -> MptcpConfig {
        if self.coupling == Coupling::Lia && tcp.custom.is_none() {
            tcp.custom = Some(MakeController::new(|| Box::<Lia>::default()));
        }
        MptcpConfig { tcp, subflows: self.subflows as usize, scheduler: self.scheduler, paths: self.paths }
    }
}

impl MptcpConfig {
    /// Returns the bytes of `segment` on the wire: TCP's and, where options are counted, MPTCP's (RFC 8684, sections
    /// 3.1 to 3.3): 12 B on a SYN, and data sequence signals with 32-bit numbers and without a checksum, which with
    /// padding take 20 B on data and 8 B on a pure ACK.
    pub fn wire_bytes(&self, segment: &TcpSegment) -> u32 {
        let option = match segment.len {
            _ if !self.tcp.params.count_options => 0,
            _ if segment.flags.has(Flags::SYN) => 12,
            0 => 8,
            _ => 20,
        };
        self.tcp.wire_bytes(segment) + option
    }
}
