//! [`Stamper`]: a port's telemetry, which it writes into data packets at their departure.

use plimsoll_mechanisms::telemetry::{IntParams, LoadEstimate, Stamp, Written};
use plimsoll_units::{Rate, Span, Time};

use crate::net::{Sink, Slot};

/// Writes the state of a port into the data packets that it sends.
#[derive(Debug)]
pub struct Stamper {
    params: IntParams,
    /// The bytes of all packets that the port has started to send.
    sent_bytes: u64,
    /// The load of the link, for digests.
    load: LoadEstimate,
}

impl Stamper {
    /// Makes the stamper of a port that has sent nothing; `params` must be valid.
    pub fn new(params: IntParams) -> Stamper {
        Stamper { params, sent_bytes: 0, load: LoadEstimate::default() }
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
        let written = match self.params.digest {
            None => {
                let stamp = Stamp { queue_bytes, sent_bytes: self.sent_bytes, at: now, rate, waited };
                Written::Stamp(self.params.written(stamp))
            }
            Some(digest) => {
                let bytes = u64::from(sink.packet(slot).size);
                let load = self.load.on_transmit(now, [queue_bytes, bytes], rate, digest.base_rtt);
                Written::Load(digest.rounded(load))
            }
        };
        if !sink.packet(slot).is_header() {
            sink.stamp(slot, written, &self.params);
        }
        self.sent_bytes += u64::from(sink.packet(slot).size);
    }
}
