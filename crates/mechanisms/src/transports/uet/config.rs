//! [`UetConfig`]: what all packet delivery contexts of a transport share.

use super::params::UetParams;

/// The configuration of packet delivery contexts: sizes in bytes, and the parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct UetConfig {
    /// Whether senders have a window (NSCC).
    pub has_window: bool,
    /// Whether receivers grant credit (RCCC).
    pub has_credit: bool,
    /// Whether data packets can carry marks.
    pub uses_marks: bool,
    /// The payload of a full packet.
    pub payload: u64,
    /// The bytes of all headers of a data packet.
    pub header: u64,
    /// The parameters, which [`UetParams::validate`] has accepted.
    pub params: UetParams,
}

impl UetConfig {
    /// Returns the size of a full packet on the wire.
    pub(super) fn mtu(&self) -> u64 {
        self.payload + self.header
    }
}
