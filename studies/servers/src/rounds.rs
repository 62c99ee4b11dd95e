//! Servers in turn, round by round, and the medians of the rounds.

use anyhow::bail;
use plimsoll_stats as stats;

use crate::plan::Beside;
use crate::task::{Measured, ratio_name};

/// A number that is read of a turn.
pub(crate) struct TurnReading<'a, T> {
    pub(crate) metric: &'static str,
    pub(crate) unit: &'static str,
    /// Whether it is set beside another server's.
    pub(crate) is_compared: bool,
    pub(crate) read: Box<dyn Fn(&T) -> f64 + 'a>,
}

/// Gives every side its turn in every round, in the other order in each other round. Turns are by side, then by round.
pub(crate) fn in_rounds<T>(
    sides: usize,
    rounds: u32,
    goes_on: &dyn Fn() -> bool,
    mut turn: impl FnMut(usize, u32) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<Vec<T>>> {
    let mut turns: Vec<Vec<T>> = (0..sides).map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for place in 0..sides {
            if !goes_on() {
                bail!("stopped");
            }
            let side = if round % 2 == 0 { place } else { sides - 1 - place };
            turns[side].push(turn(side, round)?);
        }
    }
    Ok(turns)
}

/// Returns medians of the rounds, and of the rounds' ratios to the side that a side is set beside. A side is suspect if
/// more than half of its turns are.
pub(crate) fn medians<T>(
    sides: &[(&'static str, &[Beside])],
    turns: &[Vec<T>],
    is_doubted: impl Fn(&T) -> bool,
    readings: &[TurnReading<'_, T>],
) -> Vec<Measured> {
    let mut rows = Vec::new();
    for ((series, beside), of) in sides.iter().zip(turns) {
        let doubted = of.iter().filter(|turn| is_doubted(turn)).count();
        let mut push = |metric: &str, unit: &str, values: &[f64]| {
            rows.extend(stats::median(values).map(|estimate| Measured {
                series: Some(series),
                metric: metric.to_owned(),
                unit: unit.to_owned(),
                estimate,
                suspect: 2 * doubted > of.len(),
            }));
        };
        for TurnReading { metric, unit, is_compared, read } in readings {
            let values: Vec<f64> = of.iter().map(read).collect();
            push(metric, unit, &values);
            for beside in beside.iter().filter(|_| *is_compared) {
                let other = turns[beside.place].iter().map(read);
                let ratios: Vec<f64> = values.iter().zip(other).map(|(value, other)| value / other).collect();
                push(&ratio_name(metric, beside.name), "x", &ratios);
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(metric: &'static str, is_compared: bool) -> TurnReading<'static, f64> {
        TurnReading { metric, unit: "us", is_compared, read: Box::new(|turn| *turn) }
    }

    #[test]
    fn turns_go_there_and_back_and_ratios_are_of_the_same_round() {
        let mut order = Vec::new();
        let turns = in_rounds(2, 3, &|| true, |side, round| {
            order.push((side, round));
            Ok([[1.0, 4.0, 2.0], [3.0, 4.0, 1.0]][side][round as usize])
        });
        assert_eq!(order, [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2)]);
        let rows = medians(
            &[("MC", &[]), ("CH", &[Beside::FIRST])],
            &turns.unwrap(),
            |turn| *turn > 2.5,
            &[reading("latency_us_mean", true), reading("latency_us_p50", false)],
        );
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.series.unwrap(), row.metric.as_str(), row.estimate.value, row.suspect))
            .collect();
        assert_eq!(
            found,
            [
                ("MC", "latency_us_mean", 2.0, false),
                ("MC", "latency_us_p50", 2.0, false),
                ("CH", "latency_us_mean", 3.0, true),
                // 3, 1 and 1/2: not the ratio of the medians.
                ("CH", "mean_of_first", 1.0, true),
                ("CH", "latency_us_p50", 3.0, true),
            ]
        );
    }

    #[test]
    fn what_is_told_to_stop_stops_between_turns() {
        let left = std::cell::Cell::new(2);
        let goes_on = || left.replace(left.get() - 1) > 0;
        let mut count = 0;
        let stopped = in_rounds(2, 7, &goes_on, |_, _| {
            count += 1;
            Ok(())
        });
        assert_eq!((count, stopped.unwrap_err().to_string().as_str()), (2, "stopped"));
    }
}
