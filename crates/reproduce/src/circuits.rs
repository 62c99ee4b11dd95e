//! What circuits carried, for the studies of hybrid networks.

use plimsoll_results::Outcome;
use plimsoll_results::outcome::CircuitUse;
use plimsoll_results::summary::CircuitSummary;
use plimsoll_results::summary::circuits::{counted_circuits, counted_weeks, summarise};

/// Returns what circuits from `sender` to `receiver` carried in each week that counts, in percent of a circuit that
/// stands all the week.
pub(crate) fn percent(outcome: &Outcome, sender: u32, receiver: u32) -> Vec<f64> {
    let of_pair = |circuit: &&CircuitUse| (circuit.sender.0, circuit.receiver.0) == (sender, receiver);
    let share = |week: u64, seconds: f64| {
        let circuits = counted_circuits(outcome).filter(of_pair).filter(|circuit| circuit.week == week);
        circuits
            .map(|circuit| circuit.bytes as f64 * 8.0 / (circuit.rate.as_bps() as f64 * seconds))
            .sum::<f64>()
    };
    let weeks = counted_weeks(outcome);
    let percent =
        weeks.map(|week| 100.0 * share(week.week, week.ends.saturating_since(week.begins).as_secs_f64()));
    percent.collect()
}

/// Returns a share of the circuits' summary, in percent.
pub(crate) fn share(outcome: &Outcome, pick: fn(&CircuitSummary) -> f64) -> Vec<f64> {
    summarise(&[outcome]).map(|summary| 100.0 * pick(&summary)).into_iter().collect()
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
