//! [`Stamper`]: a port's telemetry, which it writes into data packets at their departure.

use plimsoll_mechanisms::telemetry::{IntParams, Stamp};
use plimsoll_units::{Rate, Span, Time};

use crate::net::{Sink, Slot};

/// Writes the state of a port into the data packets that it sends.
#[derive(Debug)]
pub struct Stamper {
    params: IntParams,
    /// The bytes of all packets that the port has started to send.
    sent_bytes: u64,
}

impl Stamper {
    /// Makes the stamper of a port that has sent nothing; `params` must be valid.
    pub fn new(params: IntParams) -> Stamper {
        Stamper { params, sent_bytes: 0 }
    }

    /// The packet in `slot` starts to be sent at `now`, after it has `waited`, and leaves `queue_bytes` behind. Where a
    /// pacer holds it behind the queue, `now` is the time at which it left the queue.
    pub(super) fn on_transmit(
        &mut self,
        now: Time,
        slot: Slot,
        waited: Span,
        queue_bytes: u64,
        rate: Rate,
        sink: &mut impl Sink,
    ) {
        if !sink.packet(slot).is_header() {
            let stamp = Stamp { queue_bytes, sent_bytes: self.sent_bytes, at: now, rate, waited };
            sink.stamp(slot, self.params.written(stamp), &self.params);
        }
        self.sent_bytes += u64::from(sink.packet(slot).size);
    }
}
