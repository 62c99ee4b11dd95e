//! What circuits carried, for the studies of hybrid networks.

use plimsoll_results::Outcome;
use plimsoll_results::outcome::CircuitUse;
use plimsoll_results::summary::CircuitSummary;
use plimsoll_results::summary::circuits::{counted_circuits, counted_weeks, summarise};

/// Returns what circuits from `sender` to `receiver` carried in each whole week that counts, in percent of a circuit
/// that stands all the week.
pub(crate) fn percent(outcome: &Outcome, sender: u32, receiver: u32) -> Vec<f64> {
    let of_pair = |circuit: &&CircuitUse| (circuit.sender.0, circuit.receiver.0) == (sender, receiver);
    let whole = counted_weeks(outcome).map(|week| week.ends.saturating_since(week.begins)).max();
    let weeks = counted_weeks(outcome).filter(|week| Some(week.ends.saturating_since(week.begins)) == whole);
    let percent = weeks.zip(whole.iter().cycle()).map(|(week, whole)| {
        let circuits = counted_circuits(outcome).filter(of_pair).filter(|circuit| circuit.week == week.week);
        let fits = |circuit: &CircuitUse| circuit.rate.as_bps() as f64 / 8.0 * whole.as_secs_f64();
        circuits.fold(0.0, |percent, circuit| percent + 100.0 * circuit.bytes as f64 / fits(circuit))
    });
    percent.collect()
}

/// Returns a share of the circuits' summary, in percent.
pub(crate) fn share(outcome: &Outcome, pick: fn(&CircuitSummary) -> f64) -> Vec<f64> {
    summarise(&[outcome]).map(|summary| 100.0 * pick(&summary)).into_iter().collect()
}

/// Returns the megabytes that passed the packet switch between racks, in all weeks.
pub(crate) fn packet_switch_mb(outcome: &Outcome) -> f64 {
    outcome.circuit_weeks.iter().map(|week| week.packet_bytes as f64 * 1e-6).sum()
}

/// Returns the demand for which each week that counts was scheduled, in KB.
pub(crate) fn known_kb(outcome: &Outcome) -> Vec<f64> {
    counted_weeks(outcome).map(|week| week.known_bytes as f64 * 1e-3).collect()
}

/// Returns how much of that demand had been sent by the end of its week, in percent; nothing if none was known.
pub(crate) fn known_sent_percent(outcome: &Outcome) -> Vec<f64> {
    let known: u64 = counted_weeks(outcome).map(|week| week.known_bytes).sum();
    let sent: u64 = counted_weeks(outcome).map(|week| week.known_sent_bytes).sum();
    (known > 0).then(|| 100.0 * sent as f64 / known as f64).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_fabric::net::HostId;
    use plimsoll_results::outcome::CircuitWeek;
    use plimsoll_units::{Rate, Span, Time};

    use super::*;

    /// Three weeks of 1 ms, of which the last is cut off by the end of the run: half of the first and nothing of the
    /// second was carried.
    #[test]
    fn only_whole_weeks_count() {
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        let week = |week, ends| CircuitWeek {
            week,
            begins: at(1_000 * week),
            ends: at(ends),
            ..CircuitWeek::default()
        };
        let circuit = |week, receiver, bytes| CircuitUse {
            week,
            configuration: week,
            from: at(1_000 * week),
            until: at(1_000 * week + 1_000),
            sender: HostId(0),
            receiver: HostId(receiver),
            first: None,
            onset: None,
            packets: 1,
            bytes,
            rate: Rate::from_mbps(8),
        };
        let outcome = Outcome {
            circuit_weeks: vec![week(1, 2_000), week(2, 3_000), week(3, 3_000)],
            circuits: vec![circuit(1, 1, 500), circuit(2, 2, 1_000), circuit(3, 1, 1_000)],
            ..Outcome::default()
        };
        assert_eq!(percent(&outcome, 0, 1), [50.0, 0.0]);
        assert_eq!(percent(&outcome, 0, 2), [0.0, 100.0]);
        assert!(percent(&Outcome::default(), 0, 1).is_empty());
    }

    #[test]
    fn demand_that_was_sent_is_a_share_of_what_was_known() {
        let week = |week, known_bytes, known_sent_bytes| CircuitWeek {
            week,
            known_bytes,
            known_sent_bytes,
            ..CircuitWeek::default()
        };
        let outcome =
            Outcome { circuit_weeks: vec![week(1, 3_000, 3_000), week(2, 9_000, 0)], ..Outcome::default() };
        assert_eq!(known_kb(&outcome), [3.0, 9.0]);
        assert_eq!(known_sent_percent(&outcome), [25.0]);
        assert!(known_sent_percent(&Outcome::default()).is_empty());
    }
}
