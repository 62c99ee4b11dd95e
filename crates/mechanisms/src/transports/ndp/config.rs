//! [`NdpConfig`]: what all connections of a transport share.

use plimsoll_units::{Rate, Span};

use super::params::NdpParams;

/// The configuration of NDP's connections: sizes in bytes, and the parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct NdpConfig {
    /// The payload of a full packet.
    pub payload: u64,
    /// The parameters, which [`NdpParams::validate`] has accepted.
    pub params: NdpParams,
}

impl NdpConfig {
    /// Returns the time between two pulls of a host whose NIC has the rate `rate`.
    pub fn pull_interval(&self, rate: Rate) -> Span {
        let bytes = self.params.pull_bytes.map_or(self.payload, |bytes| bytes.get());
        Span::from_secs_f64((bytes * 8) as f64 / (rate.as_bps() as f64 * self.params.pull_share))
    }
}
