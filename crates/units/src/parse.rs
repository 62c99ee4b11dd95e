//! Text to quantity: a number, then a unit that must be there.

use std::fmt;
use std::str::FromStr;

use crate::{Bytes, Rate, Span};

/// Why a text is not a quantity. The message names the text and what would be allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseQuantityError {
    text: String,
    kind: &'static str,
    problem: Problem,
    units: &'static [(&'static str, u64)],
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Problem {
    NotANumber,
    NoUnit,
    UnknownUnit(String),
    TooFine,
    TooLarge,
}

impl std::error::Error for ParseQuantityError {}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseQuantityError { text, kind, problem, units } = self;
        let smallest = units[0].0;
        match problem {
            Problem::NotANumber => write!(f, "`{text}` is not a {kind}")?,
            Problem::NoUnit => write!(f, "`{text}` has no unit, so it is not a {kind}")?,
            Problem::UnknownUnit(unit) => write!(f, "`{unit}` in `{text}` is not a unit of {kind}")?,
            Problem::TooFine => write!(f, "`{text}` is not a whole number of {smallest}")?,
            Problem::TooLarge => write!(f, "`{text}` is too large for a {kind}")?,
        }
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        write!(f, "; write a number and one of {}", names.join(", "))
    }
}

/// `number` and one of `units`, as an integer count of the smallest unit. Exact: the decimals are
/// not taken through a float.
fn parse_with_units(
    text: &str,
    kind: &'static str,
    units: &'static [(&'static str, u64)],
) -> Result<u64, ParseQuantityError> {
    let error = |problem| ParseQuantityError { text: text.to_owned(), kind, problem, units };
    let trimmed = text.trim();
    let digits =
        trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..digits].replace('_', ""), trimmed[digits..].trim());
    let (whole, decimals) = number.split_once('.').unwrap_or((&number, ""));
    if number.is_empty() || whole.is_empty() && decimals.is_empty() || decimals.contains('.') {
        return Err(error(Problem::NotANumber));
    }
    if unit.is_empty() {
        return Err(error(Problem::NoUnit));
    }
    let Some(&(_, factor)) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
        return Err(error(Problem::UnknownUnit(unit.to_owned())));
    };
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > 18 {
        return Err(error(Problem::TooFine));
    }
    let scale = 10u128.pow(decimals.len() as u32);
    let mantissa: u128 = format!("0{whole}{decimals}").parse().map_err(|_| error(Problem::TooLarge))?;
    let scaled = mantissa.checked_mul(factor as u128).ok_or_else(|| error(Problem::TooLarge))?;
    if scaled % scale != 0 {
        return Err(error(Problem::TooFine));
    }
    u64::try_from(scaled / scale).map_err(|_| error(Problem::TooLarge))
}

/// Writes `value / unit` with exactly the decimals that it has.
pub(crate) fn write_decimal(f: &mut fmt::Formatter<'_>, value: u64, unit: u64) -> fmt::Result {
    let (whole, rest) = (value / unit, value % unit);
    write!(f, "{whole}")?;
    if rest > 0 {
        let width = unit.ilog10() as usize;
        let decimals = format!("{rest:0width$}");
        write!(f, ".{}", decimals.trim_end_matches('0'))?;
    }
    Ok(())
}

const SPAN_UNITS: &[(&str, u64)] = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
    ("min", 60_000_000_000_000),
];

const BYTES_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

const RATE_UNITS: &[(&str, u64)] =
    &[("bps", 1), ("Kbps", 1_000), ("Mbps", 1_000_000), ("Gbps", 1_000_000_000), ("Tbps", 1_000_000_000_000)];

impl FromStr for Span {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Span, ParseQuantityError> {
        parse_with_units(text, "length of time", SPAN_UNITS).map(Span::from_ps)
    }
}
impl FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Bytes, ParseQuantityError> {
        parse_with_units(text, "size", BYTES_UNITS).map(Bytes::new)
    }
}
impl FromStr for Rate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Rate, ParseQuantityError> {
        parse_with_units(text, "rate", RATE_UNITS).map(Rate::from_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_forms() {
        assert_eq!("1.5us".parse(), Ok(Span::from_ns(1500)));
        assert_eq!("10 ms".parse(), Ok(Span::from_ms(10)));
        assert_eq!("64KiB".parse(), Ok(Bytes::new(65_536)));
        assert_eq!("0.09Mbps".parse(), Ok(Rate::from_bps(90_000)));
        assert_eq!("10gbps".parse(), Ok(Rate::from_gbps(10)));
    }

    #[test]
    fn errors_say_what_is_allowed() {
        let message = |text: &str| text.parse::<Span>().unwrap_err().to_string();
        assert_eq!(
            message("10"),
            "`10` has no unit, so it is not a length of time; write a number and one of ps, ns, us, ms, s, min"
        );
        assert_eq!(
            message("10Gbps"),
            "`Gbps` in `10Gbps` is not a unit of length of time; write a number and one of ps, ns, us, ms, s, min"
        );
        assert!(message("fast").starts_with("`fast` is not a length of time"));
        assert!(message("0.0001ps").starts_with("`0.0001ps` is not a whole number of ps"));
        assert!(message("99999999999s").starts_with("`99999999999s` is too large"));
        assert!(message("1.2.3s").contains("is not a"));
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(value in any::<u64>()) {
            prop_assert_eq!(Span::from_ps(value).to_string().parse(), Ok(Span::from_ps(value)));
            prop_assert_eq!(Bytes::new(value).to_string().parse(), Ok(Bytes::new(value)));
            prop_assert_eq!(Rate::from_bps(value).to_string().parse(), Ok(Rate::from_bps(value)));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = (text.parse::<Span>(), text.parse::<Bytes>(), text.parse::<Rate>());
        }
    }
}
