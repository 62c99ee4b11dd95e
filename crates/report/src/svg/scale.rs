//! Conversion of numbers to positions along an axis, and the positions of its ticks.

use crate::chart::{Axis, Format};
use crate::figures::{self, RATES, SIZES, TIMES, Unit};

/// An axis whose range is known.
pub(super) struct Scale {
    log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    /// The unit of the numbers at the ticks.
    unit: Option<Unit>,
    format: Format,
}

/// A labelled position on an axis.
pub(super) struct Tick {
    pub(super) value: f64,
    /// The label is empty for a minor tick.
    pub(super) label: String,
}

impl Scale {
    /// Fits an axis to its data; `from` and `to` are the positions of its ends.
    pub(super) fn fit(axis: &Axis, data: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let usable = data.filter(|value| value.is_finite() && (!axis.log || *value > 0.0));
        let (mut low, mut high) =
            usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = if axis.log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if axis.log {
            // Half a step of room on both sides of the outermost mark.
            (low, high) = (axis.min.unwrap_or(low / 1.15), axis.max.unwrap_or(high * 1.15));
        } else {
            let room = if high > low { 0.04 * (high - low) } else { 0.5 * high.abs().max(1.0) };
            (low, high) = (axis.min.unwrap_or(low - room), axis.max.unwrap_or(high + room));
        }
        if high <= low {
            high = if axis.log { low * 10.0 } else { low + 1.0 };
        }
        let units = match axis.format {
            Format::Time => Some(TIMES),
            Format::Rate => Some(RATES),
            Format::Size => Some(SIZES),
            _ => None,
        };
        let unit = units.filter(|_| !axis.log).map(|units| {
            let fits = |unit: &&Unit| high.abs() >= unit.size;
            *units.iter().rev().find(fits).unwrap_or(&units[0])
        });
        Scale { log: axis.log, low, high, from, to, unit, format: axis.format }
    }

    /// The position of a number.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// About fifty round numbers between the ends, the greatest first.
    pub(super) fn levels(&self) -> Vec<f64> {
        if !self.log {
            let step = round_step((self.high - self.low) / 50.0);
            let (first, last) = ((self.low / step).ceil() as i64, (self.high / step + 1e-9).floor() as i64);
            return (first..=last).rev().map(|i| i as f64 * step).collect();
        }
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let mantissas = |decade: i32| (1..10).rev().map(move |m| f64::from(m) * 10f64.powi(decade));
        let inside = |value: &f64| *value >= self.low && *value <= self.high * (1.0 + 1e-9);
        (first..=last).rev().flat_map(mantissas).filter(inside).collect()
    }

    /// The label of the axis with the unit of its ticks.
    pub(super) fn label(&self, label: &str) -> String {
        match (self.unit, self.format) {
            (Some(unit), _) => format!("{label} ({})", unit.name),
            (None, Format::Percent) if !self.log => format!("{label} (%)"),
            _ => label.to_owned(),
        }
    }

    /// Places as many ticks as have room beside each other on a horizontal axis.
    pub(super) fn ticks_across(&self) -> Vec<Tick> {
        let between = if self.log { 54.0 } else { 72.0 };
        self.ticks(((self.to - self.from) / between).floor().max(4.0) as usize)
    }

    /// Places about `wanted` ticks at round numbers.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<Tick> {
        if self.log { self.log_ticks(wanted) } else { self.linear_ticks(wanted) }
    }

    fn linear_ticks(&self, wanted: usize) -> Vec<Tick> {
        let size = match (self.unit, self.format) {
            (Some(unit), _) => unit.size,
            (None, Format::Percent) => 0.01,
            _ => 1.0,
        };
        let (low, high) = (self.low / size, self.high / size);
        let least = if self.format == Format::Count { 1.0 } else { 0.0 };
        let step = round_step((high - low) / wanted.max(1) as f64).max(least);
        let decimals = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        (first..=last)
            .map(|i| {
                let value = i as f64 * step;
                let mut label = figures::fixed(value, decimals);
                if self.format == Format::Ratio {
                    label.push('x');
                }
                Tick { value: value * size, label }
            })
            .collect()
    }

    fn log_ticks(&self, wanted: usize) -> Vec<Tick> {
        let first = (self.low.log10() + 1e-9).floor() as i32;
        let last = (self.high.log10() - 1e-9).ceil() as i32;
        let decades = f64::from(last - first).max(1.0);
        // Few decades have room for labels at 2 and 5; many have not even for every decade.
        let span = self.high.log10() - self.low.log10();
        let room = 3.0 * span <= 1.4 * wanted as f64;
        let labelled: &[f64] = if room { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = (decades / wanted.max(1) as f64).ceil().max(1.0) as i32;
        let mut ticks = Vec::new();
        for decade in first..=last {
            for mantissa in 1..10 {
                let value = f64::from(mantissa) * 10f64.powi(decade);
                if value < self.low * (1.0 - 1e-9) || value > self.high * (1.0 + 1e-9) {
                    continue;
                }
                let has_label = labelled.contains(&f64::from(mantissa)) && decade.rem_euclid(every) == 0;
                let label = if has_label { self.log_label(value) } else { String::new() };
                ticks.push(Tick { value, label });
            }
        }
        ticks
    }

    fn log_label(&self, value: f64) -> String {
        let short = |value: f64| trimmed(format!("{value:.6}"));
        let with_unit = |units: &'static [Unit]| {
            let unit = units.iter().rev().find(|unit| value >= unit.size * (1.0 - 1e-9)).unwrap_or(&units[0]);
            format!("{} {}", short(value / unit.size), unit.name)
        };
        match self.format {
            Format::Time => with_unit(TIMES),
            Format::Rate => with_unit(RATES),
            Format::Size => with_unit(SIZES),
            Format::Percent => format!("{} %", short(value * 100.0)),
            Format::Ratio => format!("{}x", short(value)),
            Format::Number | Format::Count => short(value),
        }
    }
}

impl Format {
    /// Writes a number of this format with the unit that fits it.
    pub(super) fn written(self, value: f64) -> String {
        match self {
            Format::Number => figures::number(value),
            Format::Count => trimmed(format!("{value:.1}")),
            Format::Time => figures::time(value),
            Format::Rate => figures::rate(value),
            Format::Size => figures::size(value),
            Format::Ratio => format!("{}x", figures::number(value)),
            // Close to the whole, two digits of the missing share: 99.71 %.
            Format::Percent if value > 0.99 && value < 1.0 => {
                let decimals = (-(1.0 - value).log10() - 1e-9).ceil().max(1.0) as usize - 1;
                format!("{} %", trimmed(format!("{:.*}", decimals.max(1), value * 100.0)))
            }
            Format::Percent => format!("{} %", trimmed(format!("{:.2}", value * 100.0))),
        }
    }
}

/// A decimal number without the zeros at its end.
fn trimmed(text: String) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns 1, 2 or 5 times a power of ten, at least `raw`.
fn round_step(raw: f64) -> f64 {
    let magnitude = 10f64.powf((raw.log10() + 1e-9).floor());
    let mantissa = raw / magnitude;
    let round = [1.0, 2.0, 5.0].into_iter().find(|step| mantissa <= step + 1e-9).unwrap_or(10.0);
    round * magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, data: &[f64]) -> Vec<String> {
        let scale = Scale::fit(axis, data.iter().copied(), 0.0, 100.0);
        scale.ticks(5).into_iter().map(|tick| tick.label).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let axis = Axis::from_zero("delay", Format::Time);
        assert_eq!(labels(&axis, &[0.0, 1890.0]), ["0.0", "0.5", "1.0", "1.5"]);
        assert_eq!(labels(&axis, &[0.0, 40.0]), ["0", "10", "20", "30", "40"]);
        let percent = Axis { max: Some(1.0), ..Axis::from_zero("share", Format::Percent) };
        assert_eq!(labels(&percent, &[]), ["0", "20", "40", "60", "80", "100"]);
    }

    #[test]
    fn logarithmic_ticks_carry_their_unit() {
        let axis = Axis::log("time", Format::Time);
        assert_eq!(labels(&axis, &[37.6, 12_000.0]), ["100 us", "1 ms", "10 ms"]);
        let ratio = Axis::log("change", Format::Ratio);
        assert_eq!(labels(&ratio, &[0.5, 3.0]), ["0.5x", "1x", "2x"]);
    }

    #[test]
    fn no_data_and_equal_data_still_make_an_axis() {
        for axis in [Axis::default(), Axis::log("", Format::Number), Axis::from_zero("", Format::Time)] {
            for data in [&[][..], &[5.0, 5.0][..], &[0.0][..]] {
                let scale = Scale::fit(&axis, data.iter().copied(), 0.0, 100.0);
                assert!(scale.place(5.0).is_finite());
                assert!(scale.ticks(5).len() < 40);
            }
        }
    }
}
