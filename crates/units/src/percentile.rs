//! Names of percentiles: `p50`, `p99`, `p99.9`.

use std::fmt;

/// The reason why a text is not the name of a percentile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParsePercentileError {
    text: String,
    /// The name in the allowed form, where the number itself is a percentile.
    meant: Option<String>,
}

/// The names that [`parse_percentile`] accepts, in words.
pub const PERCENTILES: &str = "p and a plain decimal number above 0 and below 100: p50, p99, p99.9";

/// The digits after the point that a percentile may have.
const DECIMALS_MAX: usize = 9;

impl ParsePercentileError {
    /// Returns the same percentile in the allowed form.
    pub fn meant(&self) -> Option<&str> {
        self.meant.as_deref()
    }
}

impl std::error::Error for ParsePercentileError {}

impl fmt::Display for ParsePercentileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a percentile", self.text)
    }
}

/// Parses the name of a percentile and returns its share, above 0 and below 1. A percentile has one name: digits
/// without a sign, an exponent, a leading zero or a trailing zero after the point.
///
/// # Errors
/// Returns an error for any other text.
pub fn parse_percentile(text: &str) -> Result<f64, ParsePercentileError> {
    let number = text.strip_prefix('p').unwrap_or_default();
    if is_plain(number) {
        // Decimal arithmetic is exact here, whereas 99.9 / 100 is not 0.999 in binary.
        let share = format!("{number}e-2").parse().ok().filter(|share| *share > 0.0 && *share < 1.0);
        if let Some(share) = share {
            return Ok(share);
        }
    }
    Err(ParsePercentileError { text: text.to_owned(), meant: meant(text) })
}

fn is_plain(number: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, decimals) = match number.split_once('.') {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (number, None),
    };
    let is_whole = is_digits(whole) && (whole == "0" || !whole.starts_with('0'));
    is_whole
        && decimals.is_none_or(|decimals| {
            is_digits(decimals) && !decimals.ends_with('0') && decimals.len() <= DECIMALS_MAX
        })
}

/// Returns the allowed name of the percentile that a text writes otherwise.
fn meant(text: &str) -> Option<String> {
    let number = text.strip_prefix(['p', 'P'])?.trim().trim_start_matches('+');
    let percent: f64 = number.parse().ok()?;
    let name = format!("p{percent}");
    (name != text && parse_percentile(&name).is_ok()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_has_one_name() {
        for (text, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p0.5", 0.005), ("p1", 0.01)] {
            assert_eq!(parse_percentile(text), Ok(share), "{text}");
        }
        for (text, meant) in [
            ("p+99", Some("p99")),
            ("p050", Some("p50")),
            ("p1e1", Some("p10")),
            ("p99.", Some("p99")),
            ("p99.0", Some("p99")),
            ("p99.90", Some("p99.9")),
            ("p 99", Some("p99")),
            ("P99", Some("p99")),
            ("p.5", Some("p0.5")),
            ("p００", None),
            ("p１", None),
            ("p-1", None),
            ("p0", None),
            ("p0.0", None),
            ("p100", None),
            ("p100.0", None),
            ("pnan", None),
            ("pinf", None),
            ("p0x32", None),
            ("p99.9999999999", None),
            ("p1_0", None),
            ("p99%", None),
            ("99", None),
            ("p", None),
            ("", None),
        ] {
            let error = parse_percentile(text).unwrap_err();
            assert_eq!(error.meant(), meant, "{text}");
        }
    }
}
