//! [`LazyCall`]: one event for a deadline that moves.

use plimsoll_units::Time;

use crate::engine::{EventQueue, Owner, OwnerKind};
use crate::net::PortId;

/// The event for the next deadline of a port's pauses. A deadline that moves to a later time keeps its event, which
/// then finds nothing to do and asks again.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LazyCall(Option<Time>);

impl LazyCall {
    /// Asks for a call of `port` at `due`, unless one that is not later is expected after `now`.
    pub(super) fn at(&mut self, now: Time, due: Option<Time>, port: PortId, events: &mut EventQueue) {
        let Some(due) = due else { return };
        if self.0.is_none_or(|expected| expected <= now || expected > due) {
            events.push(due, Owner::new(OwnerKind::Pause, port.0));
            self.0 = Some(due);
        }
    }
}
