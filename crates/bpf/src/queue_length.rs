//! [`QueueLength`] applies DCTCP's ECN threshold to a device's own queue.
//!
//! The queue length is the one that the kernel's queueing discipline reports, in bytes or packets; nothing is rounded.

use plimsoll_mechanisms::ecn::{Compare, EcnParams, MarkAt};
use plimsoll_mechanisms::{Depth, InvalidParam, Mechanism};

use crate::shared::{QueueLengthCounts, QueueLengthSettings, Shared};
use crate::{Error, Inputs, Needs, Program};

/// The marker of one device: `plimsoll_mechanisms::ecn::Ecn` at enqueue, in the kernel.
#[derive(Debug)]
pub struct QueueLength(Program);

impl QueueLength {
    /// Loads the marker with these parameters.
    ///
    /// # Errors
    /// Returns [`Error::Param`] for parameters outside their range, and for marking at dequeue, which a program at
    /// egress cannot see; [`Error::Unsupported`] (before Linux 6.2, too) or [`Error::Kernel`] as [`Program::clock`].
    pub fn load(params: &EcnParams, inputs: Inputs) -> Result<QueueLength, Error> {
        params.validate()?;
        InvalidParam::unless(params.at == MarkAt::Enqueue, "at", "dequeue", "enqueue")?;
        let threshold = params.threshold.count();
        let settings = QueueLengthSettings {
            inputs_from_cb: inputs.in_packet(),
            marks_from: match params.compare {
                // A queue of u64::MAX does not exist, so a saturated threshold never marks in either form.
                Compare::More => threshold.saturating_add(1),
                Compare::AtLeast => threshold,
            },
            in_packets: u64::from(matches!(params.threshold, Depth::Packets(_))),
        };
        let program = Program::load("queue_length", "queue_length", Some(&settings.to_bytes()));
        program.map(QueueLength).map_err(Needs::KernelPackets.explain())
    }

    /// Returns the program, to attach at the device's egress.
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// Reads the counts of the marker.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn counts(&self) -> Result<QueueLengthCounts, Error> {
        self.0.state(0)
    }
}
