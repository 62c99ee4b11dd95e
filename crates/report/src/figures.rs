//! Numbers as people read them: three or four significant digits, and one unit a column.

use plimsoll_text::grouped;
pub use plimsoll_text::{count, counted};

/// A unit that a column of numbers is written in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Unit {
    /// The abbreviation that is printed for the unit, such as `ms`.
    pub name: &'static str,
    /// The size in units of the summary.
    pub size: f64,
}

/// Units of a time that is given in microseconds.
pub const TIMES: &[Unit] = &[
    Unit { name: "ns", size: 1e-3 },
    Unit { name: "us", size: 1.0 },
    Unit { name: "ms", size: 1e3 },
    Unit { name: "s", size: 1e6 },
];

/// Units of a rate that is given in Mb/s.
pub const RATES: &[Unit] = &[
    Unit { name: "kb/s", size: 1e-3 },
    Unit { name: "Mb/s", size: 1.0 },
    Unit { name: "Gb/s", size: 1e3 },
    Unit { name: "Tb/s", size: 1e6 },
];

/// Units of a size that is given in bytes.
pub const SIZES: &[Unit] = &[
    Unit { name: "B", size: 1.0 },
    Unit { name: "KB", size: 1e3 },
    Unit { name: "MB", size: 1e6 },
    Unit { name: "GB", size: 1e9 },
];

/// Returns the largest unit in which at least half of the values that are not zero reach 1, so that one
/// column has one unit and most of its numbers are short.
pub fn common_unit(values: impl IntoIterator<Item = f64>, units: &'static [Unit]) -> Unit {
    let mut sizes: Vec<f64> = values.into_iter().map(f64::abs).filter(|v| *v > 0.0).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    // A column of zeros is written in microseconds or Mb/s.
    let Some(&middle) = sizes.get(sizes.len() / 2) else { return units[1] };
    *units.iter().rev().find(|unit| middle >= unit.size).unwrap_or(&units[0])
}

/// Returns the decimals that give a number three significant digits, four from 1,000 on.
pub fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.09995 => 3,
        _ => 4,
    }
}

/// Writes a number with three significant digits (all digits before the point), thousands separated from 10,000 on.
pub fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 {
        return format!("{value:.1e}");
    }
    fixed(value, decimals(value))
}

/// Writes a number with `decimals` decimals, its thousands separated from 10,000 on.
pub fn fixed(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let plain =
        if plain.trim_start_matches(['-', '0', '.']).is_empty() { plain.replace('-', "") } else { plain };
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let digits = whole.trim_start_matches('-');
    if digits.len() <= 4 {
        return plain;
    }
    let sign = &whole[..whole.len() - digits.len()];
    format!("{sign}{}{rest}", grouped(digits))
}

/// Writes a time in microseconds with the unit that fits it: `37.6 us`, `3.36 ms`.
pub fn time(us: f64) -> String {
    let unit = common_unit([us], TIMES);
    format!("{} {}", number(us / unit.size), unit.name)
}

/// Writes a size in bytes with the unit that fits it: `500 B`, `2 MB`.
pub fn size(bytes: f64) -> String {
    let unit = SIZES.iter().rev().find(|unit| bytes >= unit.size).unwrap_or(&SIZES[0]);
    format!("{} {}", (bytes / unit.size * 100.0).round() / 100.0, unit.name)
}

/// Writes a rate in Mb/s with the unit that fits it: `7.20 Mb/s`, `1.00 Gb/s`.
pub fn rate(mbps: f64) -> String {
    let unit = common_unit([mbps], RATES);
    format!("{} {}", number(mbps / unit.size), unit.name)
}

/// Writes a ratio to a base in words: `4.2x lower`, `29 % lower`, `72 % higher`, `2.0x higher`.
pub fn change(ratio: f64) -> String {
    let (factor, word) = if ratio < 1.0 { (1.0 / ratio, "lower") } else { (ratio, "higher") };
    let percent = (ratio - 1.0).abs() * 100.0;
    match factor {
        f if !f.is_finite() => word.to_owned(),
        f if f >= 9.95 => format!("{}x {word}", fixed(f, 0)),
        f if f >= 1.995 => format!("{f:.1}x {word}"),
        _ if percent >= 9.95 => format!("{percent:.0} % {word}"),
        _ => format!("{percent:.1} % {word}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (37.6, "37.6"),
            (0.123456, "0.123"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (99.96, "100"),
            (421.4, "421"),
            (3359.6, "3360"),
            (-12.34, "-12.3"),
            (123456.7, "123,457"),
            (-1234567.0, "-1,234,567"),
            (0.00001234, "1.2e-5"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(fixed(-0.001, 1), "0.0");
        assert_eq!(count(9_366), "9366");
        assert_eq!(count(93_661), "93,661");
    }

    #[test]
    fn one_unit_a_column() {
        assert_eq!(common_unit([37.6, 421.0, 3360.0], TIMES).name, "us");
        assert_eq!(common_unit([83_000.0, 140_000.0], TIMES).name, "ms");
        assert_eq!(common_unit([0.3, 0.0, 0.2], TIMES).name, "ns");
        assert_eq!(common_unit([0.0], TIMES).name, "us");
        assert_eq!(common_unit([9_300.0], RATES).name, "Gb/s");
        assert_eq!(time(3_360.0), "3.36 ms");
    }

    #[test]
    fn changes_in_words() {
        assert_eq!(change(1.0 / 4.21), "4.2x lower");
        assert_eq!(change(0.0428), "23x lower");
        assert_eq!(change(0.71), "29 % lower");
        assert_eq!(change(1.72), "72 % higher");
        assert_eq!(change(1.034), "3.4 % higher");
        assert_eq!(change(f64::INFINITY), "higher");
    }
}
