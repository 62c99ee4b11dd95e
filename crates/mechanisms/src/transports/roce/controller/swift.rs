//! Swift over RoCE: the window of `transport.kind = "swift"`, for a queue pair that is paced by it.
//!
//! ```text
//! ACK, NAK, timeout ──> Swift (transports/tcp/controller/swift.rs) ──> cwnd
//!                                                 rate = cwnd / smoothed round-trip time, at most the line's
//! ```
//!
//! The decisions and the keys (`transport.swift`, `transport.max_window`) are those of Swift over TCP. A flow starts
//! with a bandwidth-delay product, at line rate, as other queue pairs do. A NAK counts as a loss found by duplicate
//! acknowledgements. The window grows while there is more to send and the line does not limit the rate.
//!
//! # Beside the paper
//! Swift has no pacing at windows above a packet; NICs with RoCE pace in any case.

use plimsoll_units::{Rate, Span, Time};

use crate::tcp::controller::{Swift, SwiftParams};
use crate::tcp::{Cause, CongestionControl, Cut, Limits, Window};
use crate::telemetry::bytes_in;
use crate::transports::describe::Description;
use crate::transports::roce::FAMILY;
use crate::transports::roce::rate_control::{RateController, RoceAck};

/// The description of Swift over RoCE.
pub const ROCE_SWIFT: Description = Description {
    name: "roce-swift",
    family: &FAMILY,
    kernel_name: None,
    delays_acks: false,
    needs_marks: false,
    needs_stamps: false,
};

/// The state of one flow.
#[derive(Debug)]
pub struct RoceSwift {
    swift: Swift,
    limits: Limits,
    window: Window,
    line: Rate,
    /// Bytes on the wire for each byte of payload.
    overhead: f64,
    /// The smoothed round-trip time; that of an idle path before the first sample.
    srtt: Span,
}

impl RoceSwift {
    /// Makes the controller of a flow whose packets have `header` bytes beside `payload`, at most `max_window` bytes of
    /// it outstanding, at a NIC of rate `line` that is `switches` switches and an idle round trip of `base_rtt` away.
    pub fn new(
        params: SwiftParams,
        [payload, header, max_window]: [u64; 3],
        line: Rate,
        base_rtt: Span,
        switches: u32,
    ) -> RoceSwift {
        let mut swift = Swift::new(params);
        swift.on_path(switches);
        let first = (bytes_in(line, base_rtt) as u64).clamp(payload, max_window.max(payload));
        RoceSwift {
            swift,
            limits: Limits { segment: payload, max_window, initial_window: first },
            window: Window { cwnd: first, ssthresh: 0, count: 0 },
            line,
            overhead: (payload + header) as f64 / payload as f64,
            srtt: base_rtt,
        }
    }
}

impl RateController for RoceSwift {
    fn on_ack(&mut self, ack: &RoceAck) {
        if let Some(rtt) = ack.rtt {
            self.srtt = (self.srtt * 7 + rtt) / 8;
        }
        let is_limited = ack.has_more && self.rate() < self.line;
        let ack = ack.of_tcp(self.srtt, is_limited);
        self.swift.on_ack(&self.limits, &mut self.window, &ack);
    }

    fn on_loss(&mut self, now: Time, cause: Cause) {
        let cut = Cut { now, cause, base: self.window.cwnd, una: 0, srtt: self.srtt };
        self.window.cwnd = self.swift.cut(&self.limits, &self.window, &cut).max(1);
    }

    fn rate(&self) -> Rate {
        let bits = self.window.cwnd as f64 * self.overhead * 8.0 / self.srtt.as_secs_f64();
        Rate::from_bps(bits.max(1.0) as u64).min(self.line)
    }

    fn window(&self) -> Option<u64> {
        Some(self.window.cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Rate = Rate::from_gbps(100);

    /// A flow over one switch, whose idle path takes 8 us: a target of 21 us for windows of 100 packets or more.
    fn flow() -> RoceSwift {
        RoceSwift::new(SwiftParams::default(), [1_000, 48, 65_536_000], LINE, Span::from_us(8), 1)
    }

    fn hear(flow: &mut RoceSwift, us: u64, rtt: u64, has_more: bool) -> u64 {
        let now = Time::ZERO + Span::from_us(us);
        let rtt = Some(Span::from_us(rtt));
        flow.on_ack(&RoceAck { rtt, acked: 1_000, has_more, ..RoceAck::at(now) });
        flow.window.cwnd
    }

    #[test]
    fn a_flow_starts_with_the_bandwidth_delay_product_at_line_rate() {
        let mut flow = flow();
        assert_eq!((flow.window(), flow.rate()), (Some(100_000), LINE));
        // The line limits the rate: the window does not grow.
        assert_eq!(hear(&mut flow, 10, 8, true), 100_000);
    }

    #[test]
    fn the_delay_sets_the_window_and_the_window_the_rate() {
        let mut flow = flow();
        // 0.8 (42 - 21) / 42 = 0.4 of the window goes. The smoothed round-trip time is 8 + 34 / 8 = 12.25 us.
        assert_eq!(hear(&mut flow, 50, 42, true), 60_000);
        let rate = 60_000.0 * 1.048 * 8.0 / 12.25e-6;
        assert!((flow.rate().as_bps() as f64 - rate).abs() < 10.0, "{}", flow.rate());
        // Below the target of a window of 60 packets, a packet a round trip: 1,000 / 60 B an ACK, if there is more.
        assert_eq!(hear(&mut flow, 51, 12, false), 60_000);
        assert_eq!(hear(&mut flow, 52, 12, true), 60_016);
    }

    #[test]
    fn losses_take_half_once_a_round_trip_and_the_fifth_timeout_takes_all() {
        let mut flow = flow();
        let at = |us| Time::ZERO + Span::from_us(us);
        flow.on_loss(at(100), Cause::Loss);
        assert_eq!(flow.window.cwnd, 50_000);
        flow.on_loss(at(104), Cause::Loss);
        assert_eq!(flow.window.cwnd, 50_000);
        (1..=5).for_each(|count| flow.on_loss(at(1_000 * count), Cause::Timeout));
        // A thousandth of a packet: one packet in a thousand round trips.
        assert_eq!((flow.window(), flow.rate()), (Some(1), Rate::from_bps(1_048_000)));
    }
}
