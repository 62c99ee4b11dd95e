//! [`CircuitCurves`]: the circuits of a run as a figure draws them, the first weeks circuit by circuit, and the bytes
//! of each pair of hosts week by week.

use std::collections::BTreeMap;

use plimsoll_units::Time;
use serde::{Deserialize, Serialize};

use crate::outcome::{CircuitUse, CircuitWeek, Outcome};
use crate::summary::circuits::{counted_circuits, counted_weeks};

/// The circuits of the first replicate of a variant at a sweep point. Times are counted in weeks since the begin of the
/// run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CircuitCurves {
    /// The name of the variant.
    pub variant: String,
    /// Swept keys and their values.
    pub sweep: Vec<(String, String)>,
    /// The length of a week in us.
    pub week_us: f64,
    /// The hosts that receive by circuits, ordered by bytes, the most first.
    pub receivers: Vec<u32>,
    /// The hosts that send by circuits in the window, in the order of their numbers.
    pub senders: Vec<u32>,
    /// Number of further hosts that send by circuits.
    pub other_senders: usize,
    /// The number of the first week of the window.
    pub first_week: u64,
    /// The number of weeks of the window.
    pub weeks: u64,
    /// The circuits of the window, by time and then by sender.
    pub bars: Vec<CircuitBar>,
    /// When the circuit switch was dark within the window: from, until.
    pub nights: Vec<(f64, f64)>,
    /// The bytes of the pairs that circuits carried the most bytes of, the greatest first.
    pub pairs: Vec<PairBytes>,
    /// Number of further pairs that had circuits.
    pub other_pairs: usize,
    /// The capacity in bytes of a circuit that is established for a whole week.
    pub week_bytes: f64,
    /// The weeks that a value of [`PairBytes::bytes`] is the mean of.
    pub weeks_per_value: u64,
}

/// One circuit of the window: a bar of the figure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CircuitBar {
    /// The number of the week, counted from the start of the run.
    pub week: u64,
    /// The time at which the circuit was established, in weeks.
    pub from: f64,
    /// The time at which the circuit was taken down, in weeks.
    pub until: f64,
    /// The number of the host that sends by the circuit.
    pub sender: u32,
    /// The number of the host that receives by the circuit.
    pub receiver: u32,
    /// The bytes on the wire that the circuit carried.
    pub bytes: u64,
    /// The bytes as a share of the capacity.
    pub filled: f64,
}

/// The bytes that circuits carried from one host to another.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PairBytes {
    /// The number of the host that sends.
    pub sender: u32,
    /// The number of the host that receives.
    pub receiver: u32,
    /// The middle of the weeks of each value, in weeks since the start of the run.
    pub week: Vec<f64>,
    /// Bytes in a week, at each of these middles.
    pub bytes: Vec<f64>,
}

/// The most senders, weeks by senders, and circuits of a window.
const SENDERS: usize = 16;
const CELLS: usize = 320;
const BARS: usize = 2_000;
/// The most weeks of a window.
pub(crate) const WINDOW_WEEKS: usize = 20;
/// The most pairs that have a line, and the part of the greatest that a pair must have for one.
const PAIRS: usize = 10;
const SHARE_OF_MOST: u64 = 20;
/// The most values of a line.
const VALUES: u64 = 80;

/// Makes the curves of a run, with a window of at most this many weeks; `None` where circuits carried nothing.
pub(crate) fn curves(
    variant: &str,
    sweep: &[(String, String)],
    outcome: &Outcome,
    window_weeks: usize,
) -> Option<CircuitCurves> {
    let weeks: Vec<&CircuitWeek> = counted_weeks(outcome).collect();
    let circuits: Vec<&CircuitUse> = counted_circuits(outcome).collect();
    let (first, rate) = (circuits.first()?.week, circuits.first()?.rate);
    // The last week may be cut by the end of the run.
    let week =
        weeks.iter().map(|week| week.ends.saturating_since(week.begins)).max().filter(|w| !w.is_zero())?;
    let in_weeks = |time: Time| time.as_ps() as f64 / week.as_ps() as f64;
    let senders_in_order = by_bytes(circuits.iter().map(|circuit| (circuit.sender.0, circuit.bytes)));
    let mut senders: Vec<u32> = senders_in_order.iter().copied().take(SENDERS).collect();
    senders.sort_unstable();
    let of_week = |number: u64| circuits.iter().filter(move |circuit| circuit.week == number);
    let (mut shown, mut bars) = (0, 0);
    for number in first..first + window_weeks.min(CELLS / senders.len().max(1)).max(1) as u64 {
        bars += of_week(number).filter(|circuit| senders.contains(&circuit.sender.0)).count();
        let exists = weeks.iter().any(|week| week.week == number);
        if !exists || bars > BARS && shown > 0 {
            break;
        }
        shown += 1;
    }
    let window: Vec<&CircuitUse> =
        circuits.iter().copied().filter(|circuit| circuit.week < first + shown).collect();
    let bar = |circuit: &&CircuitUse| CircuitBar {
        week: circuit.week,
        from: in_weeks(circuit.from),
        until: in_weeks(circuit.until),
        sender: circuit.sender.0,
        receiver: circuit.receiver.0,
        bytes: circuit.bytes,
        filled: circuit.filled(),
    };
    let (pairs, other_pairs, weeks_per_value) = pairs(&circuits, &weeks);
    Some(CircuitCurves {
        variant: variant.to_owned(),
        sweep: sweep.to_vec(),
        week_us: week.as_us_f64(),
        receivers: by_bytes(circuits.iter().map(|circuit| (circuit.receiver.0, circuit.bytes))),
        other_senders: senders_in_order.len() - senders.len(),
        first_week: first,
        weeks: shown,
        bars: window.iter().filter(|circuit| senders.contains(&circuit.sender.0)).map(bar).collect(),
        nights: nights(&window, first as f64, (first + shown) as f64, in_weeks),
        senders,
        pairs,
        other_pairs,
        week_bytes: rate.as_bps() as f64 / 8.0 * week.as_secs_f64(),
        weeks_per_value,
    })
}

/// Returns the hosts of a list with bytes, the most bytes first, equal ones by number.
fn by_bytes(list: impl Iterator<Item = (u32, u64)>) -> Vec<u32> {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    list.for_each(|(host, bytes)| *sums.entry(host).or_default() += bytes);
    let mut sums: Vec<(u32, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    sums.into_iter().map(|(host, _)| host).collect()
}

/// The times between configurations.
fn nights(window: &[&CircuitUse], first: f64, last: f64, in_weeks: impl Fn(Time) -> f64) -> Vec<(f64, f64)> {
    let mut dark = Vec::new();
    let mut since = first;
    for together in window.chunk_by(|a, b| a.configuration == b.configuration) {
        let from = in_weeks(together[0].from);
        if from > since {
            dark.push((since, from));
        }
        since = in_weeks(together[0].until).max(since);
    }
    if last > since + 1e-9 {
        dark.push((since, last));
    }
    dark
}

/// The pairs of the most bytes, the number of the others, and the weeks of a value.
fn pairs(circuits: &[&CircuitUse], weeks: &[&CircuitWeek]) -> (Vec<PairBytes>, usize, u64) {
    let mut sums: BTreeMap<(u32, u32), BTreeMap<u64, u64>> = BTreeMap::new();
    for circuit in circuits.iter().filter(|circuit| circuit.bytes > 0) {
        let of_pair = sums.entry((circuit.sender.0, circuit.receiver.0)).or_default();
        *of_pair.entry(circuit.week).or_default() += circuit.bytes;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, weeks)| std::cmp::Reverse(weeks.values().sum::<u64>()));
    let total = |weeks: &BTreeMap<u64, u64>| weeks.values().sum::<u64>();
    let least = sums.first().map_or(0, |(_, weeks)| total(weeks) / SHARE_OF_MOST);
    let shown = sums.iter().take(PAIRS).take_while(|(_, weeks)| total(weeks) >= least).count();
    let others = sums.len() - shown;
    sums.truncate(shown);
    // Weeks after the last byte of any pair would be zeros.
    let first = weeks.first().map_or(0, |week| week.week);
    let last = sums.iter().filter_map(|(_, weeks)| weeks.keys().last().copied()).max().unwrap_or(first) + 1;
    let last = last.min(weeks.last().map_or(0, |week| week.week));
    let each = (last + 1 - first).div_ceil(VALUES).max(1);
    let lines = sums.into_iter().map(|((sender, receiver), bytes)| {
        let starts = (first..=last).step_by(each as usize);
        let (week, bytes) = starts
            .map(|start| {
                let end = (start + each).min(last + 1);
                let sum: u64 = bytes.range(start..end).map(|(_, bytes)| *bytes).sum();
                ((start + end - 1) as f64 / 2.0, sum as f64 / (end - start) as f64)
            })
            .unzip();
        PairBytes { sender, receiver, week, bytes }
    });
    (lines.collect(), others, each)
}

#[cfg(test)]
mod tests {
    use plimsoll_units::Span;

    use super::*;
    use crate::synthetic::{self, Shape};

    fn run(hosts: u32, weeks: u64) -> Outcome {
        let mut outcome = synthetic::outcome(&Shape::default(), 1, "TCP");
        outcome.warmup = Span::ZERO;
        synthetic::with_circuits(&mut outcome, hosts, weeks);
        outcome
    }

    #[test]
    fn a_window_has_its_bars_and_its_nights() {
        let curves = curves("TCP", &[], &run(4, 50), WINDOW_WEEKS).unwrap();
        assert_eq!((curves.first_week, curves.weeks, curves.week_us), (1, 20, 1_500.0));
        assert_eq!((curves.senders.as_slice(), curves.other_senders), (&[0, 1, 2, 3][..], 0));
        assert_eq!(curves.bars.len(), 20 * 2 * 4);
        let CircuitBar { week, from, until, sender, receiver, bytes, filled } = curves.bars[0];
        assert_eq!((week, sender, receiver, bytes), (1, 0, 1, 891_000));
        assert!((filled - 0.99).abs() < 1e-9 && (from - 1.02).abs() < 1e-9 && (until - 1.5).abs() < 1e-9);
        assert_eq!(curves.nights.len(), 40);
        assert!((curves.nights[1].1 - curves.nights[1].0 - 0.02).abs() < 1e-9);
        assert_eq!((curves.pairs.len(), curves.other_pairs, curves.weeks_per_value), (8, 0, 1));
        assert_eq!(curves.pairs[0].bytes.len(), 50);
        assert_eq!(curves.week_bytes, 1_875_000.0);
    }

    #[test]
    fn many_hosts_and_many_weeks_stay_within_bounds() {
        let curves = curves("TCP", &[], &run(40, 1_000), WINDOW_WEEKS).unwrap();
        assert_eq!((curves.senders.len(), curves.other_senders, curves.weeks), (16, 24, 20));
        assert_eq!((curves.pairs.len(), curves.other_pairs, curves.weeks_per_value), (10, 70, 13));
        assert!(curves.pairs.iter().all(|pair| pair.bytes.len() <= VALUES as usize));
        // The mean of all weeks equals the mean of the values, except for the last, which has fewer weeks.
        assert!((curves.pairs[0].bytes[0] - 882_000.0).abs() < 1e-6);
    }

    #[test]
    fn no_circuits_are_no_curves() {
        assert!(curves("TCP", &[], &Outcome::default(), WINDOW_WEEKS).is_none());
        assert!(curves("TCP", &[], &run(4, 0), WINDOW_WEEKS).is_none());
    }
}
