//! Numbers with units as ns-3 reads them: `1e-05`, `+1000.0ns`, `12.5GB/s`.

use plimsoll_units::{Rate, Span};

/// Splits a word into its number and its unit, which begins with the first letter that is not an exponent's.
fn ns3_parts(word: &str) -> Option<(f64, &str)> {
    let is_exponent = |at: usize| {
        let rest = word.get(at..).and_then(|rest| rest.strip_prefix(['e', 'E']));
        rest.is_some_and(|rest| rest.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit()))
    };
    let unit =
        word.char_indices().find(|(at, c)| !matches!(c, '0'..='9' | '.' | '+' | '-') && !is_exponent(*at));
    let (number, unit) = word.split_at(unit.map_or(word.len(), |(at, _)| at));
    // Also leaves out what only Rust reads, such as `inf`.
    let value = number.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)?;
    Some((value, unit))
}

/// Reads a time as ns-3 does (`Time::Time(const std::string&)`): a number of seconds, or with a unit from `fs` to `y`.
/// Times that are no whole picoseconds are rounded. `None` for other texts and for times beyond a [`Span`].
pub(super) fn ns3_time(word: &str) -> Option<Span> {
    let (value, unit) = ns3_parts(word)?;
    let ps = match unit {
        "" | "s" => 1e12,
        "ms" => 1e9,
        "us" => 1e6,
        "ns" => 1e3,
        "ps" => 1.0,
        "fs" => 1e-3,
        "min" => 60e12,
        "h" => 3_600e12,
        "d" => 86_400e12,
        "y" => 365.0 * 86_400e12,
        _ => return None,
    };
    let ps = (value * ps).round();
    (ps < u64::MAX as f64).then(|| Span::from_ps(ps as u64))
}

/// Reads a rate as ns-3 does (`DataRate::DoParse`): a number of bits a second, or with a unit: `b` for bits and `B` for
/// bytes, `ps` or `/s`, a decimal prefix (`k`, `K`, `M`, `G`) or a binary one (`Ki`, `Mi`, `Gi`). `None` for others,
/// for 0 and for rates beyond a [`Rate`].
pub(super) fn ns3_rate(word: &str) -> Option<Rate> {
    let (value, unit) = ns3_parts(word)?;
    let (prefix, bits) = match unit.strip_suffix("ps").or_else(|| unit.strip_suffix("/s")) {
        None if unit.is_empty() => ("", 1.0),
        None => return None,
        Some(unit) => match unit.strip_suffix('b') {
            Some(prefix) => (prefix, 1.0),
            None => (unit.strip_suffix('B')?, 8.0),
        },
    };
    let factor = match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "ki" | "Ki" => 1_024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        _ => return None,
    };
    let bps = (value * bits * factor).round();
    (bps >= 1.0 && bps < u64::MAX as f64).then(|| Rate::from_bps(bps as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_read_as_ns_3_does() {
        for (word, ps) in [
            ("1e-05", 10_000_000),
            ("2.5e-05", 25_000_000),
            ("2.000000100", 2_000_000_100_000),
            ("+1000.0ns", 1_000_000),
            ("1e-06s", 1_000_000),
            ("1E3us", 1_000_000_000),
            ("0.5ms", 500_000_000),
            ("1500fs", 2),
            ("2min", 120_000_000_000_000),
            ("1h", 3_600_000_000_000_000),
            ("1d", 86_400_000_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(ns3_time(word), Some(Span::from_ps(ps)), "{word}");
        }
        for (word, bps) in [
            ("100Gb/s", 100_000_000_000),
            ("12.5GB/s", 100_000_000_000),
            ("100Gbps", 100_000_000_000),
            ("10Mbps", 10_000_000),
            ("1kb/s", 1_000),
            ("1KB/s", 8_000),
            ("1KiB/s", 8_192),
            ("1Mib/s", 1_048_576),
            ("1GiBps", 8_589_934_592),
            ("5000", 5_000),
            ("1e9bps", 1_000_000_000),
        ] {
            assert_eq!(ns3_rate(word), Some(Rate::from_bps(bps)), "{word}");
        }
        for word in ["", "s", "-1ns", "1xs", "nan", "inf", "1e", "1 ns", "0x10", "1e400", "\u{661}s"] {
            assert_eq!(ns3_time(word), None, "{word}");
        }
        for word in ["", "Gbps", "-1Gbps", "0bps", "1gbps", "1GBit", "1Tbps", "nan", "infbps", "1GB"] {
            assert_eq!(ns3_rate(word), None, "{word}");
        }
    }
}
