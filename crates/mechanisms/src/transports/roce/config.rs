//! [`RoceConfig`]: what all queue pairs of a transport share.

use plimsoll_units::{Rate, Span};

use super::params::{RoceOperation, RoceParams, RoceWindow};
use super::rate_control::RoceController;
use crate::tcp::controller::{DctcpParams, SwiftParams};

/// The configuration of queue pairs: sizes in bytes, and the parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct RoceConfig {
    /// The controller of its queue pairs.
    pub controller: RoceController,
    /// Whether data packets can carry marks, which receivers notify.
    pub uses_marks: bool,
    /// The payload of a full packet.
    pub payload: u64,
    /// The bytes of all headers of a data packet.
    pub header: u64,
    /// The gain and the first alpha of DCTCP.
    pub dctcp: DctcpParams,
    /// Swift's targets and steps.
    pub swift: SwiftParams,
    /// The bytes of Swift's largest window.
    pub max_window: u64,
    /// The parameters, which [`RoceParams::validate`] has accepted.
    pub params: RoceParams,
}

impl RoceConfig {
    /// Returns the time that a full packet takes at `rate`, at which a packet with `len` bytes of payload leaves the
    /// link to the next.
    pub(super) fn gap(&self, len: u64, rate: Rate) -> Span {
        plimsoll_units::Bytes::new(len + self.header).time_at(rate)
    }

    /// Returns whether messages are fetched by their receivers, with READ requests.
    pub fn reads(&self) -> bool {
        self.params.operation == RoceOperation::Read
    }

    /// Returns whether acknowledgements echo marks, in the place of CNPs.
    pub(super) fn echoes_marks(&self) -> bool {
        self.controller == RoceController::Dctcp
    }

    /// Returns whether the window of a queue pair follows its rate.
    pub(super) fn has_window(&self) -> bool {
        self.params.window == RoceWindow::Bdp
    }
}
