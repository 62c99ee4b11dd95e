//! Traffic of circuits in a hybrid network, and reactions of its control loop.

use std::collections::BTreeSet;

use plimsoll_results::outcome::CircuitUse;
use plimsoll_results::summary::CircuitSummary;
use plimsoll_results::summary::circuits::{counted_circuits, counted_weeks, summarise};
use plimsoll_units::Time;

use super::asked::QuantityQuestion;

/// Weeks that are not whole do not count.
pub(super) fn percent(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let (outcome, pair) = (of.outcome, of.pair());
    let of_pair = |circuit: &&CircuitUse| (circuit.sender.0, circuit.receiver.0) == pair;
    let whole = counted_weeks(outcome).map(|week| week.ends.saturating_since(week.begins)).max();
    let weeks = counted_weeks(outcome).filter(|week| Some(week.ends.saturating_since(week.begins)) == whole);
    let percent = weeks.zip(whole.iter().cycle()).map(|(week, whole)| {
        let circuits = counted_circuits(outcome).filter(of_pair).filter(|circuit| circuit.week == week.week);
        let fits = |circuit: &CircuitUse| circuit.rate.as_bps() as f64 / 8.0 * whole.as_secs_f64();
        circuits.fold(0.0, |percent, circuit| percent + 100.0 * circuit.bytes as f64 / fits(circuit))
    });
    percent.collect()
}

pub(super) fn rate(of: &QuantityQuestion<'_>) -> Option<f64> {
    let (to, week, weeks) = (of.host(), of.span(0), of.numbers(1));
    let weekly = |circuit: &&CircuitUse| circuit.receiver.0 == to && weeks.contains(&circuit.week);
    let bytes: u64 = of.outcome.circuits.iter().filter(weekly).map(|circuit| circuit.bytes).sum();
    let us = week.as_us_f64() * weeks.end.saturating_sub(weeks.start) as f64;
    Some(bytes as f64 * 8.0 / us)
}

pub(super) fn filled(of: &QuantityQuestion<'_>) -> Option<f64> {
    share(of, |summary| summary.filled)
}

pub(super) fn wasted(of: &QuantityQuestion<'_>) -> Option<f64> {
    share(of, |summary| summary.wasted)
}

fn share(of: &QuantityQuestion<'_>, pick: fn(&CircuitSummary) -> f64) -> Option<f64> {
    summarise(&[of.outcome]).map(|summary| 100.0 * pick(&summary))
}

pub(super) fn packet_switch(of: &QuantityQuestion<'_>) -> Option<f64> {
    Some(of.outcome.circuit_weeks.iter().map(|week| week.packet_bytes as f64 * 1e-6).sum())
}

pub(super) fn known(of: &QuantityQuestion<'_>) -> Vec<f64> {
    counted_weeks(of.outcome).map(|week| week.known_bytes as f64 * 1e-3).collect()
}

pub(super) fn known_sent(of: &QuantityQuestion<'_>) -> Option<f64> {
    let known: u64 = counted_weeks(of.outcome).map(|week| week.known_bytes).sum();
    let sent: u64 = counted_weeks(of.outcome).map(|week| week.known_sent_bytes).sum();
    (known > 0).then(|| 100.0 * sent as f64 / known as f64)
}

/// The times of a reaction, in ms.
struct Reaction {
    onset: f64,
    /// The time at which the circuit's week began.
    week: f64,
    /// The time from which on the circuit was established.
    stood: f64,
    /// The time at which the first packet had reached the circuit switch.
    first: f64,
}

pub(super) fn reaction(of: &QuantityQuestion<'_>) -> Vec<f64> {
    reactions(of, |reaction, _| reaction.first - reaction.onset)
}

pub(super) fn reaction_reading(of: &QuantityQuestion<'_>) -> Vec<f64> {
    reactions(of, |reaction, lead| reaction.week - lead - reaction.onset)
}

pub(super) fn reaction_night(of: &QuantityQuestion<'_>) -> Vec<f64> {
    reactions(of, |reaction, _| reaction.stood - reaction.week)
}

pub(super) fn reaction_packet(of: &QuantityQuestion<'_>) -> Vec<f64> {
    reactions(of, |reaction, _| reaction.first - reaction.stood)
}

/// Returns a part of each reaction, of which it gets the lead in ms.
fn reactions(of: &QuantityQuestion<'_>, part: fn(&Reaction, f64) -> f64) -> Vec<f64> {
    let (week, lead) = (of.span(0), of.span(1));
    let mut known = BTreeSet::new();
    let reaction = |circuit: &CircuitUse| {
        let (first, onset) = circuit.first.zip(circuit.onset)?;
        let is_new = known.insert((circuit.sender.0, circuit.receiver.0, onset));
        // A circuit that was established before has no reaction.
        if !is_new || circuit.from < onset {
            return None;
        }
        let ms = |time: Time| time.as_ps() as f64 * 1e-9;
        let begins = ms(Time::ZERO + week * circuit.week);
        let reaction = Reaction { onset: ms(onset), week: begins, stood: ms(circuit.from), first: ms(first) };
        Some(of.ms(part(&reaction, lead.as_ms_f64())))
    };
    of.outcome.circuits.iter().filter_map(reaction).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_fabric::net::HostId;
    use plimsoll_results::outcome::{CircuitWeek, Outcome};
    use plimsoll_units::{Rate, Span, Time};

    use super::*;
    use crate::Measure;

    fn samples(text: &str, outcome: &Outcome) -> Vec<f64> {
        Measure::parse(text).unwrap().samples(outcome, Span::ZERO)
    }

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
        assert_eq!(samples("circuit.mean(host.0 -> host.1)", &outcome), [50.0, 0.0]);
        assert_eq!(samples("circuit.mean(host.0 -> host.2)", &outcome), [0.0, 100.0]);
        assert!(samples("circuit.mean(host.0 -> host.1)", &Outcome::default()).is_empty());
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
        assert_eq!(samples("demand_known()", &outcome), [3.0, 9.0]);
        assert_eq!(samples("demand_sent()", &outcome), [25.0]);
        assert!(samples("demand_sent()", &Outcome::default()).is_empty());
    }

    /// A pair that was idle until 8 ms has its first packet by the circuit of week 1, which is established from 15.5 ms
    /// on; a pair that finds its circuit established has no reaction, and a second circuit of the same onset has none
    /// either.
    #[test]
    fn a_reaction_is_from_the_onset_to_the_first_circuit() {
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        let circuit = |week, receiver, from, first: Option<u64>, onset: Option<u64>| CircuitUse {
            week,
            configuration: week,
            from: at(from),
            until: at(15_000 * (week + 1)),
            sender: HostId(0),
            receiver: HostId(receiver),
            first: first.map(at),
            onset: onset.map(at),
            packets: 10,
            bytes: 15_000,
            rate: Rate::from_mbps(180),
        };
        let circuits = vec![
            circuit(1, 1, 15_500, Some(15_600), Some(8_000)),
            circuit(2, 1, 30_500, Some(30_700), Some(8_000)),
            circuit(2, 2, 30_500, Some(36_000), Some(35_000)),
            circuit(3, 3, 45_500, None, None),
        ];
        let outcome = Outcome { circuits, ..Outcome::default() };
        let parts = ["reaction", "reaction_reading", "reaction_night", "reaction_packet"];
        let parts = parts.map(|part| samples(&format!("{part}.mean(15ms, 4ms)"), &outcome));
        let rounded = parts.map(|of| of.iter().map(|us| us.round() as i64).collect::<Vec<_>>());
        assert_eq!(rounded, [[7_600], [3_000], [500], [100]]);
        assert_eq!(samples("circuit_rate(host.1, 15ms, 1..3)", &outcome), [8.0]);
    }
}
