//! PowerTCP (Addanki et al., NSDI 2022): the rate follows the power of the bottleneck, arrivals times backlog.
//!
//! ```text
//! powertcp        each link    A = max(sent / dt + (queue - queue before) / dt,  B / 2)
//!                              u = A (queue + B T) / (B B T),   of the link where it is largest
//! theta-powertcp               A = max(1 + (rtt - rtt before) / dt,  1 / 2),     u = A rtt / T
//!
//! each ACK        U = (1 - dt / T) U + dt / T u,      dt at most T
//!                 R = gamma (Rc eta / U + increase) + (1 - gamma) Rc         eta = 0.95; theta: 1.05
//! each RTT        Rc = R
//! window          R T
//! ```
//!
//! A is the rate of arrivals at a link, B its rate, and T the base round-trip time. Beside the queue, which HPCC sees
//! as well, its growth counts, so that the flow reacts before a queue is there and stops before it is gone.
//! theta-PowerTCP needs no telemetry: the growth of the round-trip time is that of the queue.
//!
//! N flows on a link come to `U = eta / (1 - N increase / B)`: to a queue of `B T (U - 1)` if that is positive, and
//! else to a link that is not full. With the default T the window, which is that of the idle path, shortens the queue
//! a little.
//!
//! # Beside the paper and the released code
//! * Rates are those of the released RDMA code (ns3-datacenter); the paper has windows, by the same equations.
//! * The byte counter of a stamp has the bytes that the port has sent, and arrivals are computed, as in the released
//!   TCP code. The RDMA code's stamps have the bytes received for the port.
//! * T of theta-PowerTCP is `roce.base_rtt`, not the shortest time measured: a short last packet has a shorter one.
//! * Stamps that are not comparable are kept and not used, as with HPCC.

use plimsoll_units::{Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::links::LinkLoads;
use super::round_trip::RoundTrip;
use crate::InvalidParam;
use crate::telemetry::{Stamp, Stamps, averaged, bytes_in};
use crate::transports::describe::Description;
use crate::transports::roce::FAMILY;
use crate::transports::roce::rate_control::{RateController, RoceAck};

/// The description of PowerTCP.
pub const POWERTCP: Description = Description {
    name: "powertcp",
    family: &FAMILY,
    kernel_name: None,
    delays_acks: false,
    needs_marks: false,
    needs_stamps: true,
};

/// The description of theta-PowerTCP, which does without telemetry.
pub const THETA_POWERTCP: Description =
    Description { name: "theta-powertcp", needs_stamps: false, ..POWERTCP };

/// PowerTCP's target and steps, for `powertcp` and `theta-powertcp`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PowerTcpParams {
    /// The target eta of the power: more than 0, at most 2. Default absent: 0.95, and 1.05 with `theta-powertcp`.
    #[schemars(range(min = 0.0, max = 2.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta: Option<f64>,
    /// The weight gamma of the new rate: more than 0, at most 1. Default absent: 0.9, and 0.7 with `theta-powertcp`.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// The additive increase as a rate: more than 0. Default 150 Mb/s.
    pub increase: Rate,
    /// The lowest rate: more than 0. Default 100 Mb/s.
    pub min_rate: Rate,
}

impl Default for PowerTcpParams {
    fn default() -> PowerTcpParams {
        PowerTcpParams {
            eta: None,
            gamma: None,
            increase: Rate::from_mbps(150),
            min_rate: Rate::from_mbps(100),
        }
    }
}

impl PowerTcpParams {
    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        if let Some(eta) = self.eta {
            Invalid::unless(eta > 0.0 && eta <= 2.0, "roce.powertcp.eta", eta, "more than 0 and at most 2")?;
        }
        if let Some(gamma) = self.gamma {
            let ok = gamma > 0.0 && gamma <= 1.0;
            Invalid::unless(ok, "roce.powertcp.gamma", gamma, "more than 0 and at most 1")?;
        }
        for (key, rate) in
            [("roce.powertcp.increase", self.increase), ("roce.powertcp.min_rate", self.min_rate)]
        {
            Invalid::unless(rate > Rate::ZERO, key, rate, "more than 0")?;
        }
        Ok(())
    }
}

/// The signal by which the power is measured.
#[derive(Debug)]
enum Signal {
    /// The stamps of the last acknowledgement.
    Telemetry(Box<Stamps>),
    /// The round-trip time of the last acknowledgement, and when it arrived.
    Delay(Option<(Span, Time)>),
}

/// The state of one flow. Rates are in bits per second.
#[derive(Debug)]
pub struct PowerTcp {
    params: PowerTcpParams,
    eta: f64,
    gamma: f64,
    line: Rate,
    base_rtt: Span,
    rate: f64,
    reference: f64,
    /// The smoothed power U.
    power: f64,
    round_trip: RoundTrip,
    signal: Signal,
}

impl PowerTcp {
    /// Makes the controller of a flow at a NIC of rate `line`, with an idle round trip of `base_rtt`, that steers by
    /// telemetry.
    pub fn by_telemetry(params: PowerTcpParams, line: Rate, base_rtt: Span) -> PowerTcp {
        PowerTcp::new(params, line, base_rtt, [0.95, 0.9], Signal::Telemetry(Box::default()))
    }

    /// As [`by_telemetry`](PowerTcp::by_telemetry), of a flow that steers by its round-trip times.
    pub fn by_delay(params: PowerTcpParams, line: Rate, base_rtt: Span) -> PowerTcp {
        PowerTcp::new(params, line, base_rtt, [1.05, 0.7], Signal::Delay(None))
    }

    fn new(params: PowerTcpParams, line: Rate, base_rtt: Span, own: [f64; 2], signal: Signal) -> PowerTcp {
        let rate = line.as_bps() as f64;
        PowerTcp {
            eta: params.eta.unwrap_or(own[0]),
            gamma: params.gamma.unwrap_or(own[1]),
            params,
            line,
            base_rtt,
            rate,
            reference: rate,
            power: 1.0,
            round_trip: RoundTrip::default(),
            signal,
        }
    }

    /// Returns the power that an acknowledgement shows, and the time for which it was measured; `None` if it cannot be
    /// compared with the last one.
    fn measured(&mut self, ack: &RoceAck) -> Option<(f64, Span)> {
        let base_rtt = self.base_rtt;
        match &mut self.signal {
            Signal::Telemetry(last) => {
                let stamps = ack.stamps?;
                let measured = LinkLoads::between([stamps, last], |new, old, sent, time| {
                    power_of_link(new, old, sent, time, base_rtt)
                });
                **last = *stamps;
                measured.map(|loads| loads.most())
            }
            Signal::Delay(last) => {
                let rtt = ack.rtt?;
                let (last_rtt, at) = last.replace((rtt, ack.now))?;
                let time = ack.now.saturating_since(at);
                if time.is_zero() {
                    return None;
                }
                let growth = (rtt.as_ps() as f64 - last_rtt.as_ps() as f64) / time.as_ps() as f64;
                Some(((1.0 + growth).max(0.5) * rtt.as_ps() as f64 / base_rtt.as_ps() as f64, time))
            }
        }
    }
}

/// Returns the power of a link as a share of what it has at its full rate without a queue.
fn power_of_link(new: &Stamp, old: &Stamp, sent: u64, time: Span, base_rtt: Span) -> f64 {
    let arrived = sent as f64 + new.queue_bytes as f64 - old.queue_bytes as f64;
    let arrivals = (arrived / bytes_in(new.rate, time)).max(0.5);
    arrivals * (1.0 + new.queue_bytes as f64 / bytes_in(new.rate, base_rtt))
}

impl RateController for PowerTcp {
    fn on_ack(&mut self, ack: &RoceAck) {
        let Some((power, time)) = self.measured(ack) else { return };
        self.power = averaged(self.power, power, time, self.base_rtt);
        let increase = self.params.increase.as_bps() as f64;
        let rate = self.gamma * (self.reference * self.eta / self.power + increase)
            + (1.0 - self.gamma) * self.reference;
        let (least, most) = (self.params.min_rate.as_bps() as f64, self.line.as_bps() as f64);
        self.rate = rate.max(least).min(most);
        if self.round_trip.has_passed(ack) {
            self.reference = self.rate;
            self.round_trip.begin(ack.now);
        }
    }

    fn rate(&self) -> Rate {
        Rate::from_bps(self.rate.round() as u64)
    }

    fn window(&self) -> Option<u64> {
        Some(bytes_in(self.rate(), self.base_rtt) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{IntParams, Written};

    const LINE: Rate = Rate::from_gbps(100);
    const RTT: Span = Span::from_us(8);

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    /// The stamps of links of 100 Gb/s, each with its queue and the bytes that it has sent by `ns`.
    fn stamps(ns: u64, links: &[(u64, u64)]) -> Stamps {
        let mut stamps = Stamps::default();
        for (queue_bytes, sent_bytes) in links.iter().copied() {
            let stamp = Stamp { queue_bytes, sent_bytes, at: at(ns), rate: LINE, waited: Span::ZERO };
            stamps.push(Written::Stamp(stamp), &IntParams::default());
        }
        stamps
    }

    /// An acknowledgement with `stamps` that arrives at `ns`, 8 us after its packet was sent.
    fn seen(flow: &mut PowerTcp, ns: u64, stamps: &Stamps) {
        flow.on_ack(&RoceAck { rtt: Some(RTT), stamps: Some(stamps), ..RoceAck::at(at(ns)) });
    }

    /// An acknowledgement that arrives at `ns`, `rtt` after its packet was sent.
    fn timed(flow: &mut PowerTcp, ns: u64, rtt: u64) {
        let rtt = Some(Span::from_ns(rtt));
        flow.on_ack(&RoceAck { rtt, ..RoceAck::at(at(ns)) });
    }

    #[track_caller]
    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6 * expected, "{value}, not {expected}");
    }

    #[test]
    fn arrivals_times_backlog_of_the_most_loaded_link_is_the_power() {
        let mut flow = PowerTcp::by_telemetry(PowerTcpParams::default(), LINE, RTT);
        seen(&mut flow, 10_000, &stamps(0, &[(10_000, 0), (0, 0)]));
        assert_eq!((flow.power, flow.rate(), flow.window()), (1.0, LINE, Some(100_000)));
        // In 2 us, 25 KB at full rate: the first link sent as much and its queue grew by 5 KB, so 1.2 arrived; with a
        // queue of 0.15 bandwidth-delay products. The second one had less than half: A = 1/2.
        seen(&mut flow, 12_000, &stamps(2_000, &[(15_000, 25_000), (0, 5_000)]));
        near(flow.power, 1.0 + 0.25 * (1.2 * 1.15 - 1.0));
        let rate = 0.9 * (100e9 * 0.95 / flow.power + 150e6) + 0.1 * 100e9;
        near(flow.rate, rate);
        near(flow.reference, rate);
        // Within the round trip the reference stays; a queue that shrinks as fast as it is served has no arrivals.
        seen(&mut flow, 13_000, &stamps(3_000, &[(2_500, 37_500), (0, 5_000)]));
        near(flow.power, 1.095 + 0.125 * (0.5 * 1.025 - 1.095));
        near(flow.reference, rate);
        near(flow.rate, 0.9 * (rate * 0.95 / flow.power + 150e6) + 0.1 * rate);
    }

    #[test]
    fn growth_of_the_round_trip_time_does_for_arrivals() {
        let mut flow = PowerTcp::by_delay(PowerTcpParams::default(), LINE, RTT);
        timed(&mut flow, 20_000, 10_000);
        assert_eq!((flow.power, flow.rate()), (1.0, LINE));
        // 2 us later and 1 us longer: arrivals at 1.5 times the rate, 11 us of 8.
        timed(&mut flow, 22_000, 11_000);
        near(flow.power, 1.0 + 0.25 * (1.5 * 11.0 / 8.0 - 1.0));
        near(flow.rate, 0.7 * (100e9 * 1.05 / flow.power + 150e6) + 0.3 * 100e9);
        // A fast fall counts as half the rate; a sample at the same time is kept only.
        let before = flow.power;
        timed(&mut flow, 23_000, 8_000);
        near(flow.power, before + 0.125 * (0.5 - before));
        let before = flow.power;
        timed(&mut flow, 23_000, 9_000);
        near(flow.power, before);
    }

    #[test]
    fn the_rate_stays_within_its_limits_and_stamps_of_other_links_leave_it() {
        let params = PowerTcpParams { min_rate: Rate::from_gbps(1), ..PowerTcpParams::default() };
        let mut flow = PowerTcp::by_telemetry(params, LINE, RTT);
        seen(&mut flow, 10_000, &stamps(1_000, &[(0, 0)]));
        for other in [stamps(1_000, &[(90_000, 90_000)]), stamps(2_000, &[(90_000, 90_000), (0, 0)])] {
            seen(&mut flow, 12_000, &other);
            assert_eq!((flow.power, flow.rate()), (1.0, LINE));
        }
        // A thousand bandwidth-delay products wait.
        for round in 1..20u64 {
            let ns = 12_000 + 8_000 * round;
            seen(&mut flow, ns, &stamps(ns, &[(100_000_000, 100_000 * round)]));
        }
        assert_eq!((flow.rate(), flow.window()), (Rate::from_gbps(1), Some(1_000)));
    }
}
