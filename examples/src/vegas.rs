//! A congestion controller of one's own: TCP Vegas (Brakmo, O'Malley, Peterson, SIGCOMM 1994) keeps a few packets
//! in the queue, by the difference between the shortest round trip and the current one.

use plimsoll_mechanisms::InvalidParam;
use plimsoll_mechanisms::tcp::{Ack, CongestionControl, Cut, Limits, Window};
use plimsoll_scenario::Parameters;
use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

/// The table of Vegas in a scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VegasParams {
    /// The least number of packets that a flow keeps in queues.
    pub alpha: f64,
    /// The most packets that a flow keeps in queues.
    pub beta: f64,
}

impl Default for VegasParams {
    fn default() -> VegasParams {
        VegasParams { alpha: 2.0, beta: 4.0 }
    }
}

impl Parameters for VegasParams {
    fn validate(&self) -> Result<(), InvalidParam> {
        let ok = 0.0 < self.alpha && self.alpha <= self.beta;
        InvalidParam::unless(ok, "alpha", self.alpha, "more than 0 and at most `beta`")
    }
}

/// The controller of one end of a connection.
#[derive(Debug)]
pub struct Vegas {
    params: VegasParams,
    shortest: Span,
    /// The ACK that ends the round trip in which the window was last changed.
    round_end: u64,
}

impl Vegas {
    /// Creates a controller that has seen no round trip yet.
    pub fn new(params: &VegasParams) -> Vegas {
        Vegas { params: params.clone(), shortest: Span::from_secs(1), round_end: 0 }
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, _: &Limits, _: &mut Window, ack: &Ack) {
        if !ack.srtt.is_zero() {
            self.shortest = self.shortest.min(ack.srtt);
        }
    }

    fn grow(&mut self, limits: &Limits, window: &mut Window, ack: &Ack) {
        if ack.ack < self.round_end || ack.srtt.is_zero() {
            return;
        }
        self.round_end = ack.nxt;
        let packets = window.cwnd as f64 / limits.segment as f64;
        let queued = packets * (1.0 - self.shortest.as_secs_f64() / ack.srtt.as_secs_f64());
        if queued < self.params.alpha {
            window.cwnd += if window.in_slow_start() { window.cwnd } else { limits.segment };
        } else if queued > self.params.beta {
            window.ssthresh = window.ssthresh.min(window.cwnd);
            window.cwnd = (window.cwnd - limits.segment).max(2 * limits.segment);
        }
    }

    fn cut(&mut self, _: &Limits, _: &Window, cut: &Cut) -> u64 {
        cut.base / 2
    }
}
