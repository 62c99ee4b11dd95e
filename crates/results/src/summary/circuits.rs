//! The circuits of a cell: how far they were filled, and the traffic that bypassed them.
//!
//! The weeks that count began at or after the warm-up, except week 0, in which nothing is scheduled yet. A circuit is
//! evaluated as a whole: the record has the bytes that it carried while it was established, not their times.

use plimsoll_units::Time;

use super::CircuitSummary;
use crate::outcome::{CircuitUse, CircuitWeek, Outcome};

/// A circuit that is filled to less than this share is waste (REACToR, Kapoor's thesis, section 7.1).
pub const FILLED_ENOUGH: f64 = 0.9;

/// Summarises the circuits of a cell over its replicates; `None` where there were none.
pub fn summarise(outcomes: &[&Outcome]) -> Option<CircuitSummary> {
    let weeks: Vec<&CircuitWeek> = outcomes.iter().flat_map(|outcome| counted_weeks(outcome)).collect();
    if weeks.is_empty() {
        return None;
    }
    let circuits: Vec<&CircuitUse> = outcomes.iter().flat_map(|outcome| counted_circuits(outcome)).collect();
    let seconds = |circuits: &mut dyn Iterator<Item = &&CircuitUse>| {
        circuits.map(|circuit| circuit.stood().as_secs_f64()).sum::<f64>()
    };
    let stood = seconds(&mut circuits.iter());
    let wasted = seconds(&mut circuits.iter().filter(|circuit| circuit.filled() < FILLED_ENOUGH));
    let bytes: u64 = circuits.iter().map(|circuit| circuit.bytes).sum();
    let capacity: f64 = circuits.iter().map(|circuit| circuit.capacity()).sum();
    let observed: f64 = weeks.iter().map(|week| week.ends.saturating_since(week.begins).as_secs_f64()).sum();
    let lit: f64 = outcomes.iter().map(|outcome| lit_seconds(outcome)).sum();
    let sum = |pick: fn(&CircuitWeek) -> u64| weeks.iter().map(|week| pick(week)).sum::<u64>();
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    Some(CircuitSummary {
        weeks: weeks.len() as u64,
        circuits: circuits.len() as u64,
        filled: share(bytes as f64, capacity),
        wasted: share(wasted, stood),
        dark: share((observed - lit).max(0.0), observed),
        configurations_per_week: sum(|week| week.configurations) as f64 / weeks.len() as f64,
        circuit_bytes: bytes,
        packet_bytes: sum(|week| week.packet_bytes),
        lost_dark: sum(|week| week.lost_dark),
        lost_unmatched: sum(|week| week.lost_unmatched),
    })
}

/// The weeks of a run that count.
pub fn counted_weeks(outcome: &Outcome) -> impl Iterator<Item = &CircuitWeek> {
    let since = outcome.warmup.as_ps();
    outcome.circuit_weeks.iter().filter(move |week| week.week > 0 && week.begins.as_ps() >= since)
}

/// The circuits of the weeks that count.
pub fn counted_circuits(outcome: &Outcome) -> impl Iterator<Item = &CircuitUse> {
    let first = counted_weeks(outcome).next().map(|week| week.week);
    outcome.circuits.iter().filter(move |circuit| first.is_some_and(|first| circuit.week >= first))
}

/// Returns the time in which some matching of the weeks that count was established, in the order of their beginnings.
/// Circuits of one configuration are established together, and several circuit switches have configurations at once.
fn lit_seconds(outcome: &Outcome) -> f64 {
    let circuits: Vec<&CircuitUse> = counted_circuits(outcome).collect();
    let together = circuits.chunk_by(|a, b| a.configuration == b.configuration);
    let mut lit = Time::ZERO;
    let seconds = together.map(|circuits| {
        let CircuitUse { from, until, .. } = *circuits[0];
        let begins = from.max(lit);
        lit = lit.max(until);
        until.saturating_since(begins).as_secs_f64()
    });
    seconds.sum()
}

#[cfg(test)]
mod tests {
    use plimsoll_fabric::net::HostId;
    use plimsoll_units::{Rate, Span, Time};

    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn week(week: u64, configurations: u64, packet_bytes: u64) -> CircuitWeek {
        let (begins, ends) = (at(100 * week), at(100 * (week + 1)));
        CircuitWeek {
            week,
            begins,
            ends,
            configurations,
            packet_bytes,
            lost_dark: week,
            ..CircuitWeek::default()
        }
    }

    /// A circuit of 8 Gb/s: 1,000 bytes fit a microsecond.
    fn circuit(week: u64, configuration: u64, from_to: [u64; 2], bytes: u64) -> CircuitUse {
        CircuitUse {
            week,
            configuration,
            from: at(from_to[0]),
            until: at(from_to[1]),
            sender: HostId(0),
            receiver: HostId(1),
            first: None,
            onset: None,
            packets: bytes / 1_000,
            bytes,
            rate: Rate::from_gbps(8),
        }
    }

    fn outcome() -> Outcome {
        Outcome {
            circuit_weeks: vec![week(0, 0, 7_000), week(1, 2, 1_000), week(2, 1, 3_000)],
            circuits: vec![
                circuit(1, 0, [110, 150], 40_000),
                // In the same configuration as the one before.
                circuit(1, 0, [110, 150], 20_000),
                circuit(1, 1, [160, 200], 36_000),
                circuit(2, 2, [200, 300], 0),
            ],
            ..Outcome::default()
        }
    }

    #[test]
    fn shares_are_of_circuit_time_and_of_time() {
        let outcome = outcome();
        let summary = summarise(&[&outcome, &outcome]).unwrap();
        assert_eq!((summary.weeks, summary.circuits, summary.configurations_per_week), (4, 8, 1.5));
        assert!((summary.filled - 96.0 / 220.0).abs() < 1e-9, "{}", summary.filled);
        // 36,000 of 40,000 bytes are exactly enough.
        assert!((summary.wasted - 140.0 / 220.0).abs() < 1e-9, "{}", summary.wasted);
        assert!((summary.dark - 20.0 / 200.0).abs() < 1e-9, "{}", summary.dark);
        assert_eq!((summary.circuit_bytes, summary.packet_bytes), (192_000, 8_000));
        assert_eq!((summary.lost_dark, summary.lost_unmatched), (6, 0));
    }

    /// Two circuit switches: the time of both counts once, and the share that was filled is of both.
    #[test]
    fn circuits_at_once_are_one_time_without_dark() {
        let outcome = Outcome {
            circuit_weeks: vec![week(1, 2, 0)],
            circuits: vec![circuit(1, 0, [110, 160], 50_000), circuit(1, 1, [130, 190], 0)],
            ..Outcome::default()
        };
        let summary = summarise(&[&outcome]).unwrap();
        assert!((summary.dark - 0.2).abs() < 1e-9, "{}", summary.dark);
        assert!((summary.filled - 50.0 / 110.0).abs() < 1e-9, "{}", summary.filled);
    }

    #[test]
    fn only_weeks_behind_the_warmup_count() {
        let outcome = Outcome { warmup: Span::from_us(150), ..outcome() };
        let summary = summarise(&[&outcome]).unwrap();
        assert_eq!((summary.weeks, summary.circuits, summary.dark), (1, 1, 0.0));
        assert_eq!((summary.filled, summary.wasted, summary.packet_bytes), (0.0, 1.0, 3_000));
        assert!(summarise(&[&Outcome::default()]).is_none());
    }
}
