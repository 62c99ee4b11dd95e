//! [`Evaluation`]: the quality of a schedule, beside bounds for all schedules.

use plimsoll_units::{Rate, Span};

use crate::demand::Demand;
use crate::schedule::after;
use crate::scheduler::{Scheduler, Switching};
use crate::stuffing::MatrixSums;

/// Bounds that hold for every schedule of a demand (section 3.2 of Solstice's paper).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LowerBounds {
    /// With circuits alone: `LB_c = diameter / r_c + flows * night`, since a port's flows need as many configurations.
    pub circuits: Span,
    /// With both switches: `LB_h = r_c / (r_c + r_p) * (diameter / r_c + night)`, since both carry all the time but one
    /// night.
    pub hybrid: Span,
    /// With both switches and days of whole configurations, a bound that is not in the paper: see [`LowerBounds::of`].
    pub flows: Span,
}

impl LowerBounds {
    /// Computes the bounds of a demand.
    ///
    /// `flows` is the largest bound of any port, sender or receiver. A configuration serves one flow of a port, so with
    /// m configurations the packet switch carries all but m of its flows whole, the smallest at best: that takes
    /// `smallest / r_p`. And both switches carry all its bytes: `bytes <= r_c * (T - m * night) + r_p * T`. The bound
    /// is the least T of any m.
    pub fn of(demand: &Demand, switching: &Switching) -> LowerBounds {
        let diameter = switching.circuit_time(demand.diameter()).as_ps();
        let night = switching.night.as_ps();
        let nights = night.saturating_mul(demand.flows_at_a_port() as u64);
        let (circuit, packet) = (rate(switching.circuit_rate), rate(switching.packet_rate));
        let with_circuits = (u128::from(diameter) + u128::from(night)) * circuit / (circuit + packet).max(1);
        // Little goes by packets alone before a circuit is there.
        let by_packets = packet_time(demand.diameter(), switching).as_ps();
        let hybrid = with_circuits.min(by_packets.into());
        LowerBounds {
            circuits: Span::from_ps(diameter.saturating_add(nights)),
            hybrid: Span::from_ps(u64::try_from(hybrid).unwrap_or(u64::MAX)),
            flows: Span::from_ps(of_ports(demand, switching)),
        }
    }
}

fn of_ports(demand: &Demand, switching: &Switching) -> u64 {
    flows_of_ports(demand).map(|flows| of_port(&flows, switching)).max().unwrap_or(0)
}

/// Returns the bytes of each port's flows, the smallest first: the flows that it sends, and the flows that it receives.
pub(crate) fn flows_of_ports(demand: &Demand) -> impl Iterator<Item = Vec<u64>> + '_ {
    let ports = 0..demand.ports();
    let sent = ports.clone().map(|port| demand.row(port).to_vec());
    let received = ports.map(|port| demand.rows().map(|row| row[port]).collect());
    sent.chain(received).map(|mut flows: Vec<u64>| {
        flows.retain(|bytes| *bytes > 0);
        flows.sort_unstable();
        flows
    })
}

/// Returns the bound of a port with these flows, in picoseconds, rounded down.
fn of_port(flows: &[u64], switching: &Switching) -> u64 {
    let bits = |bytes: u64| u128::from(bytes) * 8 * 1_000_000_000_000;
    let (circuit, packet) = (rate(switching.circuit_rate), rate(switching.packet_rate));
    let night = u128::from(switching.night.as_ps());
    let all = bits(flows.iter().sum());
    let mut whole = 0;
    let mut least = u128::MAX;
    for number in 0..=flows.len() {
        // The flows from here on have a configuration each.
        let nights = (flows.len() - number) as u128 * night;
        let together = (all + circuit * nights) / (circuit + packet).max(1);
        let by_packets = if whole == 0 { Some(0) } else { bits(whole).checked_div(packet) };
        if let Some(by_packets) = by_packets {
            least = least.min(together.max(by_packets).max(nights));
        }
        whole += flows.get(number).copied().unwrap_or(0);
    }
    u64::try_from(least).unwrap_or(u64::MAX)
}

/// Measures of how a scheduler serves a demand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Evaluation {
    /// The time until circuits and the packet switch have carried all; `None` if that is not within [`WEEKS`]
    /// schedules.
    pub time_to_serve: Option<Span>,
    /// The configurations until then.
    pub configurations: u64,
    /// The part of `configurations` that ends within the first window.
    pub configurations_in_window: u64,
    /// Bytes carried by all circuits over their capacity in the time to serve, or in the window if that is longer:
    /// demand comes once a window.
    pub circuit_utilisation: f64,
    /// The same for the links to the packet switch.
    pub packet_utilisation: f64,
}

/// Returns how a scheduler serves a demand. A scheduler that keeps to the window gets its residue again and again. All
/// is served at the end of the first day at which the packet switch can have carried the rest.
pub fn evaluate(scheduler: &mut dyn Scheduler, demand: &Demand, switching: &Switching) -> Evaluation {
    let mut residue = demand.clone();
    let mut sums = MatrixSums::default();
    sums.of(&residue);
    let (mut total, mut configurations, mut in_window, mut carried) = (Span::ZERO, 0, 0, 0u64);
    let fits = |sums: &MatrixSums, total: Span| sums.largest() <= switching.packet_bytes(total);
    let mut is_served = fits(&sums, total);
    for _ in 0..WEEKS {
        if is_served {
            break;
        }
        let schedule = scheduler.schedule(&residue, switching);
        for configuration in &schedule.configurations {
            let most = switching.circuit_bytes(configuration.duration);
            for (from, to) in configuration.matching.circuits() {
                let left = residue.get_mut(from, to);
                let bytes = most.min(*left);
                *left -= bytes;
                carried += bytes;
                sums.rows[from] -= bytes;
                sums.columns[to] -= bytes;
            }
            configurations += 1;
            total = after(total, configuration.duration, switching.night);
            in_window += u64::from(total <= switching.window);
            is_served = fits(&sums, total);
            if is_served {
                break;
            }
        }
        if !is_served && schedule.configurations.is_empty() {
            // No circuit helps, so that the packet switch takes as long as it does.
            total = total.max(packet_time(sums.largest(), switching));
            is_served = switching.packet_rate > Rate::ZERO;
            break;
        }
    }
    let period = total.max(switching.window);
    let capacity = |bytes: u64| bytes as f64 * demand.ports() as f64;
    let share = |bytes: u64, capacity: f64| if capacity > 0.0 { bytes as f64 / capacity } else { 0.0 };
    Evaluation {
        time_to_serve: is_served.then_some(total),
        configurations,
        configurations_in_window: in_window,
        circuit_utilisation: share(carried, capacity(switching.circuit_bytes(period))),
        packet_utilisation: share(residue.total(), capacity(switching.packet_bytes(period))),
    }
}

/// Schedules that a demand may take.
pub const WEEKS: usize = 1_000;

fn packet_time(bytes: u64, switching: &Switching) -> Span {
    Switching { circuit_rate: switching.packet_rate, ..*switching }.circuit_time(bytes)
}

fn rate(rate: Rate) -> u128 {
    u128::from(rate.as_bps())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kind::SchedulerKind;

    /// A byte a picosecond by circuit and a tenth by packets.
    pub(crate) const SWITCHING: Switching = Switching {
        circuit_rate: Rate::from_bps(8_000_000_000_000),
        packet_rate: Rate::from_bps(800_000_000_000),
        night: Span::from_ps(10),
        window: Span::from_ps(200),
    };

    #[test]
    fn bounds_and_use_of_an_exchange() {
        let demand = Demand::from_rows(&[&[0, 100], &[100, 0]]);
        let bounds = LowerBounds::of(&demand, &SWITCHING);
        // A configuration each is shorter than packets alone: (100 + 10) / 1.1 against 100 / 0.1.
        let [circuits, hybrid, flows] = [110, 100, 100].map(Span::from_ps);
        assert_eq!(bounds, LowerBounds { circuits, hybrid, flows });
        for kind in SchedulerKind::ALL {
            let evaluation = evaluate(kind.make().as_mut(), &demand, &SWITCHING);
            assert_eq!(evaluation.configurations, 1, "{kind}");
            let time = evaluation.time_to_serve.expect("it is served");
            let fills = matches!(kind, SchedulerKind::Tms | SchedulerKind::Rotor);
            assert_eq!(time, Span::from_ps(if fills { 200 } else { 110 }), "{kind}");
            // 100 bytes of the window's 200.
            assert_eq!((evaluation.circuit_utilisation, evaluation.packet_utilisation), (0.5, 0.0), "{kind}");
        }
    }

    #[test]
    fn small_flows_need_no_configuration_of_their_own() {
        // 100 and 40 by circuits and 10 by packets: T = (150 + 2 * 10) / 1.1, in which 15 bytes fit; without the 40, it
        // would be 50 / 0.1.
        let demand = Demand::from_rows(&[&[0, 100, 40, 10], &[0; 4], &[0; 4], &[0; 4]]);
        let bounds = LowerBounds::of(&demand, &SWITCHING);
        assert_eq!(bounds.flows, Span::from_ps(154));
        assert_eq!(bounds.hybrid, Span::from_ps(145));
    }

    #[test]
    fn nothing_and_little_have_no_night_in_their_bounds() {
        let night = Span::from_ps(30);
        let of = |bytes: u64| {
            LowerBounds::of(&Demand::from_rows(&[&[0, bytes], &[0, 0]]), &Switching { night, ..SWITCHING })
        };
        assert_eq!((of(0).hybrid, of(0).flows), (Span::ZERO, Span::ZERO));
        // A byte takes 10 ps by packets, and 28 with a circuit.
        assert_eq!(of(1).hybrid, Span::from_ps(10));
    }

    proptest! {
        /// No scheduler beats a bound.
        #[test]
        fn bounds_hold(
            bytes in prop::collection::vec(prop_oneof![Just(0u64), 1u64..300], 16),
            night in 0u64..40,
        ) {
            let demand = Demand::from_bytes(4, bytes);
            let switching = Switching { night: Span::from_ps(night), ..SWITCHING };
            let bounds = LowerBounds::of(&demand, &switching);
            for kind in SchedulerKind::ALL {
                let evaluation = evaluate(kind.make().as_mut(), &demand, &switching);
                let time = evaluation.time_to_serve.unwrap_or(Span::MAX);
                // A picosecond: capacity is rounded down, and a bound as well.
                let time = time + Span::from_ps(u64::from(time < Span::MAX));
                prop_assert!(time >= bounds.hybrid.max(bounds.flows), "{}: {} < {:?}", kind, time, bounds);
            }
        }
    }

    #[test]
    fn what_no_circuit_helps_goes_by_packets() {
        // The window holds no day, so that Eclipse has no circuit.
        let switching = Switching { window: SWITCHING.night, ..SWITCHING };
        let demand = Demand::from_rows(&[&[0, 100], &[0, 0]]);
        let evaluation = evaluate(SchedulerKind::Eclipse.make().as_mut(), &demand, &switching);
        assert_eq!(evaluation.time_to_serve, Some(Span::from_ps(1_000)));
        assert_eq!((evaluation.configurations, evaluation.packet_utilisation), (0, 0.5));
        let without = Switching { packet_rate: Rate::ZERO, ..switching };
        let evaluation = evaluate(SchedulerKind::Eclipse.make().as_mut(), &demand, &without);
        assert_eq!(evaluation.time_to_serve, None);
    }
}
