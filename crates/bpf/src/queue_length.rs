//! [`QueueLength`]: the ECN threshold on a device's own queue, as DCTCP asks for.
//!
//! The queue is what the kernel's queueing discipline says, in bytes or packets; nothing is rounded.

use plimsoll_mechanisms::ecn::{Compare, EcnParams, MarkAt};
use plimsoll_mechanisms::{Depth, InvalidParam};

use crate::shared::{QueueLengthCounts, QueueLengthSettings, Shared};
use crate::{Error, Inputs, Needs, Program};

/// The marker of one device: `plimsoll_mechanisms::ecn::Ecn` at enqueue, in the kernel.
#[derive(Debug)]
pub struct QueueLength(Program);

impl QueueLength {
    /// Loads it.
    ///
    /// # Errors
    /// [`Error::Param`] for parameters outside their range, and for marking at dequeue, which a program at egress
    /// cannot see; [`Error::Unsupported`] (before Linux 6.2, too) or [`Error::Kernel`] as [`Program::clock`].
    pub fn load(params: &EcnParams, inputs: Inputs) -> Result<QueueLength, Error> {
        params.validate()?;
        InvalidParam::unless(params.at == MarkAt::Enqueue, "at", "dequeue", "enqueue")?;
        let threshold = params.threshold.count();
        let settings = QueueLengthSettings {
            inputs_from_cb: inputs.in_packet(),
            marks_from: match params.compare {
                // A queue of u64::MAX does not exist: what saturates never marks either way.
                Compare::More => threshold.saturating_add(1),
                Compare::AtLeast => threshold,
            },
            in_packets: u64::from(matches!(params.threshold, Depth::Packets(_))),
        };
        let program = Program::load("queue_length", "queue_length", Some(&settings.to_bytes()));
        program.map(QueueLength).map_err(Needs::KernelPackets.explain())
    }

    /// The program, to attach at the device's egress.
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// What it has seen.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the map cannot be read.
    pub fn counts(&self) -> Result<QueueLengthCounts, Error> {
        self.0.state(0)
    }
}
