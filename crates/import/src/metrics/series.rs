//! [`rates`]: the rate of a series in each of its steps.

/// The quantity of a series' values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum SeriesForm {
    /// A sum since the start of a program, which begins at 0 again when the program restarts.
    Counter,
    /// An amount for each second of the step.
    Rate,
}

/// Returns the rate a second of each step by its time in milliseconds, and the number of restarts of the counter.
///
/// A counter has a rate for each step but its first; one that has become smaller was restarted, and has counted from 0.
/// Values that are no numbers, as of a host that was down, have no step.
pub(super) fn rates(values: &[(f64, String)], form: SeriesForm) -> Result<(Vec<(u64, f64)>, u64), String> {
    let (mut steps, mut resets) = (Vec::new(), 0);
    let mut last: Option<(u64, f64)> = None;
    for (seconds, text) in values {
        let value: f64 = text.parse().map_err(|_| format!("invalid value \"{text}\""))?;
        if !(0.0..1e12).contains(seconds) {
            return Err(format!("invalid time {seconds}"));
        }
        let time = milliseconds(*seconds);
        if last.is_some_and(|(before, _)| time <= before) {
            return Err(format!("the time {seconds} does not ascend"));
        }
        if value.is_nan() {
            continue;
        }
        if value < 0.0 || value.is_infinite() {
            return Err(format!("invalid value \"{text}\""));
        }
        match (form, last) {
            (SeriesForm::Rate, _) => steps.push((time, value)),
            (SeriesForm::Counter, Some((before, count))) => {
                let is_reset = value < count;
                resets += u64::from(is_reset);
                let increase = if is_reset { value } else { value - count };
                steps.push((time, increase * 1000.0 / (time - before) as f64));
            }
            (SeriesForm::Counter, None) => {}
        }
        last = Some((time, value));
    }
    Ok((steps, resets))
}

/// Returns a time in whole milliseconds.
pub(super) fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_become_rates() {
        let series = |values: &[(f64, &str)]| {
            values.iter().map(|(time, value)| (*time, (*value).to_owned())).collect::<Vec<_>>()
        };
        let counter = series(&[(0.0, "100"), (10.0, "600"), (20.0, "200"), (30.0, "NaN"), (40.0, "400")]);
        assert_eq!(
            rates(&counter, SeriesForm::Counter).unwrap(),
            (vec![(10_000, 50.0), (20_000, 20.0), (40_000, 10.0)], 1)
        );
        assert_eq!(rates(&series(&[(1.5, "7e1")]), SeriesForm::Rate).unwrap(), (vec![(1500, 70.0)], 0));
        for (values, problem) in [
            (vec![(1.0, "x")], "invalid value \"x\""),
            (vec![(1.0, "-1")], "invalid value \"-1\""),
            (vec![(1.0, "+Inf")], "invalid value \"+Inf\""),
            (vec![(-1.0, "1")], "invalid time -1"),
            (vec![(2.0, "1"), (2.0, "1")], "the time 2 does not ascend"),
        ] {
            assert_eq!(rates(&series(&values), SeriesForm::Rate).unwrap_err(), problem);
        }
    }
}
