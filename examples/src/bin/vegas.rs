//! A congestion controller of one's own: TCP Vegas (Brakmo, O'Malley, Peterson, SIGCOMM 1994) keeps a few packets
//! in the queue, by the difference between the shortest round trip and the current one.

use plimsoll_examples::{percentile_us, with_and_without};
use plimsoll_mechanisms::tcp::{Ack, CongestionControl, Cut, Limits, MakeController, Window};
use plimsoll_sim::Extensions;
use plimsoll_stdio::outln;
use plimsoll_units::Span;

/// Packets that a flow keeps in queues: at least, at most.
const ALPHA: f64 = 2.0;
const BETA: f64 = 4.0;

#[derive(Debug)]
struct Vegas {
    shortest: Span,
    /// The ACK that ends the round trip in which the window was last changed.
    round_end: u64,
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
        if queued < ALPHA {
            window.cwnd += if window.in_slow_start() { window.cwnd } else { limits.segment };
        } else if queued > BETA {
            window.ssthresh = window.ssthresh.min(window.cwnd);
            window.cwnd = (window.cwnd - limits.segment).max(2 * limits.segment);
        }
    }

    fn cut(&mut self, _: &Limits, _: &Window, cut: &Cut) -> u64 {
        cut.base / 2
    }
}

fn main() {
    let vegas = MakeController::new(|| Box::new(Vegas { shortest: Span::from_secs(1), round_end: 0 }));
    let extensions = Extensions { congestion_control: Some(vegas), ..Extensions::default() };
    let (reno, vegas) = with_and_without(include_str!("../../beside-bulk.toml"), extensions);
    let (before, after) = (percentile_us(&reno, 1, 0.99), percentile_us(&vegas, 1, 0.99));
    outln!("p99 of requests beside bulk TCP: {before:.0} us with Reno, {after:.0} us with Vegas");
    assert!(after < before / 4.0);
}
