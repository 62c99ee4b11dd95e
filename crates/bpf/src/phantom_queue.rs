//! [`PhantomQueueProgram`] is HULL's marker for one port.
//!
//! The quantum of time is a nanosecond, that of the level 2^-16 ps. The program receives constants that Rust computed,
//! and so rounds nothing itself.

use plimsoll_mechanisms::Mechanism;
use plimsoll_mechanisms::phantom_queue::{self as mechanism, PhantomQueueParams};
use plimsoll_units::Rate;

use crate::shared::{PhantomQueue as State, PhantomSettings, Shared};
use crate::{Error, Inputs, Program};

/// The phantom queue of one port: `plimsoll_mechanisms::phantom_queue::PhantomQueue` in the kernel.
#[derive(Debug)]
pub struct PhantomQueueProgram(Program);

impl PhantomQueueProgram {
    /// Loads an empty phantom queue beside a link of rate `link`.
    ///
    /// # Errors
    /// Returns [`Error::Param`] for parameters outside their range, [`Error::Unsupported`] or [`Error::Kernel`] as
    /// [`Program::clock`].
    ///
    /// # Panics
    /// Panics where the mechanism does: if the drain rounds to zero.
    pub fn load(
        params: &PhantomQueueParams,
        link: Rate,
        inputs: Inputs,
    ) -> Result<PhantomQueueProgram, Error> {
        params.validate()?;
        let twin = mechanism::PhantomQueue::new(params, link);
        let settings = PhantomSettings {
            inputs_from_cb: inputs.in_packet(),
            byte_cost: twin.byte_cost(),
            threshold: twin.threshold(),
        };
        Program::load("phantom_queue", "phantom_queue", Some(&settings.to_bytes())).map(PhantomQueueProgram)
    }

    /// Returns the program, to attach where packets have left the port: the ingress of the link's other end.
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// Returns the program, to pin its map `state`.
    pub fn into_program(self) -> Program {
        self.0
    }

    /// Reads the level, and the number of marked packets.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn state(&self) -> Result<State, Error> {
        self.0.state(0)
    }

    /// Empties the queue, and sets its clock and counts to zero.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be written.
    pub fn reset(&self) -> Result<(), Error> {
        self.0.set_state(0, &State::default())
    }
}
