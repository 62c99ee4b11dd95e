//! Numbers, points in time and their units, as flow logs write them.

/// The unit of a column's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ColumnUnit {
    /// A fraction of the basic unit, which is a nanosecond, a byte or 1.
    Scaled(u64, u64),
    /// Seconds since 1970 where the value is a number, and a date otherwise.
    Instant,
}

/// Units of times, in nanoseconds.
const TIMES: &[(&str, u64, u64)] =
    &[("s", 1_000_000_000, 1), ("ms", 1_000_000, 1), ("us", 1_000, 1), ("ns", 1, 1)];

/// The units of sizes that a mapping may name, as a fraction of bytes.
const SIZES: &[(&str, u64, u64)] = &[
    ("B", 1, 1),
    ("KB", 1_000, 1),
    ("MB", 1_000_000, 1),
    ("GB", 1_000_000_000, 1),
    ("KiB", 1 << 10, 1),
    ("MiB", 1 << 20, 1),
    ("GiB", 1 << 30, 1),
    ("bit", 1, 8),
];

impl ColumnUnit {
    /// Returns the units of time by their names.
    pub(crate) fn times() -> impl Iterator<Item = (&'static str, ColumnUnit)> {
        TIMES.iter().map(|(name, times, by)| (*name, ColumnUnit::Scaled(*times, *by)))
    }

    /// Returns the units of size by their names.
    pub(crate) fn sizes() -> impl Iterator<Item = (&'static str, ColumnUnit)> {
        SIZES.iter().map(|(name, times, by)| (*name, ColumnUnit::Scaled(*times, *by)))
    }

    /// Returns the value of a cell in the basic unit, rounded down; `None` if it is neither a number nor a date.
    pub(crate) fn parse(self, text: &str) -> Option<u64> {
        match self {
            ColumnUnit::Scaled(times, by) => decimal(text, times, by),
            ColumnUnit::Instant => decimal(text, 1_000_000_000, 1).or_else(|| date(text)),
        }
    }
}

/// Returns a decimal number without a sign, multiplied by `times / by` and rounded down.
fn decimal(text: &str, times: u64, by: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let fraction = fraction.get(..18).unwrap_or(fraction);
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let below: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let all = u128::from(whole.parse::<u64>().ok()?) * scale + below;
    u64::try_from(all.checked_mul(u128::from(times))? / (scale * u128::from(by))).ok()
}

/// Returns the nanoseconds from 1970 to a date such as `2024-01-31 12:00:00.5` or `2024-01-31T12:00:00+01:00`; a date
/// without a zone is in UTC.
fn date(text: &str) -> Option<u64> {
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
    let [year, month, day] = numbers(day, '-').or_else(|| numbers(day, '/'))?;
    let (time, zone) = match time.find(['Z', '+', '-']) {
        Some(at) => (&time[..at], zone_seconds(&time[at..])?),
        None => (time, 0),
    };
    let (hours_and_minutes, seconds) = time.trim().rsplit_once(':')?;
    let (hours, minutes) = hours_and_minutes.split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = decimal(seconds, 1_000_000_000, 1)?;
    if !(1970..=2500).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || !(0..24).contains(&hours)
        || !(0..60).contains(&minutes)
        || seconds >= 61_000_000_000
    {
        return None;
    }
    let minutes = (days(year, month, day) * 24 + hours) * 60 + minutes;
    u64::try_from(minutes * 60 - zone).ok()?.checked_mul(1_000_000_000)?.checked_add(seconds)
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// Returns the seconds by which a zone such as `Z`, `+01:00` or `-0130` is ahead of UTC.
fn zone_seconds(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    let number: i64 = if digits.len() == 4 { digits.parse().ok()? } else { return None };
    let seconds = (number / 100 * 60 + number % 100) * 60;
    Some(if text.starts_with('-') { -seconds } else { seconds })
}

/// Returns the days from 1970 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let past = year - 1;
    let leap_days = past / 4 - past / 100 + past / 400 - 477;
    let month_days = BEFORE_MONTH[(month - 1) as usize] + i64::from(is_leap && month > 2);
    (year - 1970) * 365 + leap_days + month_days + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_their_units() {
        let second = 1_000_000_000;
        let named = |name| {
            ColumnUnit::times().chain(ColumnUnit::sizes()).find(|(known, _)| *known == name).unwrap().1
        };
        let cases: [(ColumnUnit, &str, Option<u64>); 17] = [
            (ColumnUnit::Instant, "1706702400", Some(1_706_702_400 * second)),
            (ColumnUnit::Instant, "1706702400.25", Some(1_706_702_400 * second + second / 4)),
            (ColumnUnit::Instant, "2024-01-31 12:00:00", Some(1_706_702_400 * second)),
            (ColumnUnit::Instant, "2024-01-31T12:00:00.250Z", Some(1_706_702_400 * second + second / 4)),
            (ColumnUnit::Instant, "2024-01-31T13:00:00+01:00", Some(1_706_702_400 * second)),
            (ColumnUnit::Instant, "2024/03/01 00:00:00", Some(1_709_251_200 * second)),
            (ColumnUnit::Instant, "1970-01-01", Some(0)),
            (ColumnUnit::Instant, "2024-13-01 00:00:00", None),
            (ColumnUnit::Instant, "yesterday", None),
            (ColumnUnit::Instant, "-1", None),
            (named("ms"), "1706702400123", Some(1_706_702_400_123_000_000)),
            (named("B"), "1500", Some(1500)),
            (named("KiB"), "1.5", Some(1536)),
            (named("bit"), "12000", Some(1500)),
            (named("B"), "12 M", None),
            (named("B"), "", None),
            (named("GB"), "99999999999999999999", None),
        ];
        for (unit, text, expected) in cases {
            assert_eq!(unit.parse(text), expected, "{text}");
        }
    }
}
