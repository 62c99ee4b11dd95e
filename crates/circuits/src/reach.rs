//! [`ScheduleReach`]: the range of results of any scheduler whose schedule is at most as long as a given time.
//!
//! With T the time of a schedule, m its configurations, r_c and r_p the rates of a circuit and of the packet switch:
//!
//! ```text
//! lower bound <= T <= the given time
//! bytes of a port <= r_c (T - m night) + r_p T       so that m is at most ...
//! flows of a port without a circuit <= r_p T         so that m is at least the number of its other flows
//! bytes by circuits >= demand - r_p T, and <= r_c (T - m night)
//! ```

use plimsoll_units::Span;

use crate::demand::Demand;
use crate::evaluation::{LowerBounds, flows_of_ports};
use crate::scheduler::Switching;

/// The least and the most that any schedule has which serves a demand within a given time, as
/// [`evaluate`](crate::evaluate) measures it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScheduleReach {
    /// The time to serve the demand.
    pub time: (Span, Span),
    /// The configurations until then.
    pub configurations: (u64, u64),
    /// Bytes carried by all circuits over their capacity.
    pub circuit_utilisation: (f64, f64),
}

impl ScheduleReach {
    /// Computes the reach of all schedules that serve `demand` within `most`, which is a time that some schedule takes.
    pub fn of(demand: &Demand, switching: &Switching, most: Span) -> ScheduleReach {
        let bounds = LowerBounds::of(demand, switching);
        let least = bounds.hybrid.max(bounds.flows).min(most);
        let configurations =
            (configurations_min(demand, switching, most), configurations_max(demand, switching, most));
        let circuit_utilisation = utilisation(demand, switching, most, configurations.0);
        ScheduleReach { time: (least, most), configurations, circuit_utilisation }
    }
}

/// Returns the flows of a port that the packet switch cannot carry whole in `time`: each has a configuration.
fn configurations_min(demand: &Demand, switching: &Switching, time: Span) -> u64 {
    let room = switching.packet_bytes(time);
    let of_port = |flows: Vec<u64>| {
        let mut whole = 0u64;
        let fits = |bytes: &u64| {
            whole = whole.saturating_add(*bytes);
            whole <= room
        };
        let without = flows.iter().copied().take_while(fits).count();
        (flows.len() - without) as u64
    };
    flows_of_ports(demand).map(of_port).max().unwrap_or(0)
}

/// Returns the nights that leave the fullest port enough of `time`.
fn configurations_max(demand: &Demand, switching: &Switching, time: Span) -> u64 {
    let [circuit, packet] =
        [switching.circuit_rate, switching.packet_rate].map(|rate| u128::from(rate.as_bps()));
    let capacity = (circuit + packet) * u128::from(time.as_ps());
    let spare = capacity.saturating_sub(u128::from(demand.diameter()) * 8 * PS_PER_SECOND);
    let nights = spare.checked_div(circuit * u128::from(switching.night.as_ps()));
    nights.map_or(u64::MAX, |nights| u64::try_from(nights).unwrap_or(u64::MAX))
}

/// Returns the least and the most utilisation of the circuits in at most `time`, with at least `configurations`
/// configurations.
///
/// For a port in the mean, in time of a circuit: circuits carry at least `demand - T r_p / r_c` in `max(T, window)`,
/// which falls with T. They carry at most the smaller of `demand` and `T - nights`: that share of `max(T, window)`
/// grows with T until all is carried, and falls afterwards.
fn utilisation(demand: &Demand, switching: &Switching, time: Span, configurations: u64) -> (f64, f64) {
    let ports = demand.ports().max(1) as f64;
    let circuit_bps = switching.circuit_rate.as_bps().max(1) as f64;
    let (time, window) = (time.as_ps() as f64, switching.window.as_ps() as f64);
    let nights = switching.night.as_ps() as f64 * configurations as f64;
    let all = demand.total() as f64 * 8.0 * PS_PER_SECOND as f64 / (ports * circuit_bps);
    let by_packets = time * switching.packet_rate.as_bps() as f64 / circuit_bps;
    let best = time.min(window.max(all + nights));
    let share = |carried: f64, of: f64| if of > 0.0 { carried.max(0.0) / of } else { 0.0 };
    (share(all - by_packets, time.max(window)), share(all.min(best - nights), best.max(window)))
}

const PS_PER_SECOND: u128 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::evaluation::evaluate;
    use crate::evaluation::tests::SWITCHING;
    use crate::kind::SchedulerKind;

    #[test]
    fn a_port_of_three_flows() {
        // Two nights and 150 bytes take 154.5 ps. In 155 ps packets carry the 10 whole, so that the others need a
        // configuration each, and 155 * 1.1 - 150 = 20.5 ps are left for nights.
        let demand = Demand::from_rows(&[&[0, 100, 40, 10], &[0; 4], &[0; 4], &[0; 4]]);
        let reach = ScheduleReach::of(&demand, &SWITCHING, Span::from_ps(155));
        assert_eq!(reach.time, (Span::from_ps(154), Span::from_ps(155)));
        assert_eq!(reach.configurations, (2, 2));
        // A port has 37.5 bytes in the mean, of which packets carry at most 15.5.
        assert_eq!(reach.circuit_utilisation, (22.0 / 200.0, 37.5 / 200.0));
    }

    proptest! {
        /// Every scheduler's schedule is within the range that its own length gives.
        #[test]
        fn schedules_are_within_reach(
            bytes in prop::collection::vec(prop_oneof![Just(0u64), 1u64..300], 16),
            night in 0u64..40,
        ) {
            let demand = Demand::from_bytes(4, bytes);
            let switching = Switching { night: Span::from_ps(night), ..SWITCHING };
            for kind in SchedulerKind::ALL {
                let evaluation = evaluate(kind.make().as_mut(), &demand, &switching);
                let Some(time) = evaluation.time_to_serve else { continue };
                for most in [time, time + Span::from_ps(50)] {
                    let reach = ScheduleReach::of(&demand, &switching, most);
                    prop_assert!(reach.time.0 <= time, "{}: {} in {:?}", kind, time, reach);
                    let (least, most) = reach.configurations;
                    prop_assert!((least..=most).contains(&evaluation.configurations), "{}: {:?}", kind, reach);
                    let (low, high) = reach.circuit_utilisation;
                    let used = evaluation.circuit_utilisation;
                    prop_assert!((low - 1e-9..=high + 1e-9).contains(&used), "{}: {} in {:?}", kind, used, reach);
                }
            }
        }
    }
}
