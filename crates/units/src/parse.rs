//! Parses quantities: a number followed by a mandatory unit. Files and command lines share this parser.
//!
//! Units are case-sensitive: `b` is a bit and `B` a byte, and `Ms` is not `ms`. Only the first letter of a decimal or
//! binary multiple may have either case (`KB`, `kB`; `Gbps`, `gbps`), since nothing else differs by it.

use std::fmt;
use std::str::FromStr;

use crate::{Bytes, Rate, Span};

/// The reason why a text is not a quantity. Its message quotes the text and the allowed forms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseQuantityError {
    text: String,
    kind: &'static Kind,
    problem: QuantityProblem,
}

/// A kind of quantity with its units in ascending order, each with its size in the smallest one.
#[derive(PartialEq, Eq, Debug)]
struct Kind {
    name: &'static str,
    units: &'static [(&'static str, u64)],
    /// First letters of units, which scale the basic unit.
    prefixes: &'static str,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum QuantityProblem {
    NotANumber,
    NoUnit,
    UnknownUnit(String),
    TooFine,
    TooLarge,
}

impl std::error::Error for ParseQuantityError {}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.kind.units.iter().map(|(name, _)| *name).collect();
        write!(f, "{}; write a number and one of {}", self.problem(), names.join(", "))
    }
}

impl ParseQuantityError {
    /// Describes the error and the unit that was probably meant, without the list of units.
    pub fn problem(&self) -> impl fmt::Display {
        let ParseQuantityError { text, kind: Kind { name: kind, units, .. }, problem } = self;
        let smallest = units[0].0;
        match problem {
            QuantityProblem::NotANumber => format!("`{text}` is not a {kind}"),
            QuantityProblem::NoUnit => format!("`{text}` has no unit, so it is not a {kind}"),
            QuantityProblem::UnknownUnit(unit) => match self.kind.confusion(unit) {
                Some(why) => format!("`{unit}` in `{text}` is not a unit of {kind}: {why}"),
                None => format!("`{unit}` in `{text}` is not a unit of {kind}{}", self.advice(unit)),
            },
            QuantityProblem::TooFine => format!("`{text}` is not a whole number of {smallest}"),
            QuantityProblem::TooLarge => format!("`{text}` is too large for a {kind}"),
        }
    }

    /// Returns ` (did you mean `10Gbps`?)` where exactly one unit is similar enough, else an empty text.
    fn advice(&self, unit: &str) -> String {
        let number = self.text.trim().trim_end_matches(unit);
        self.kind
            .nearest(unit)
            .map_or_else(String::new, |meant| format!(" (did you mean `{number}{meant}`?)"))
    }
}

impl Kind {
    /// Returns the size of a unit, counted in the smallest one.
    fn factor(&self, unit: &str) -> Option<u64> {
        let normal = self.normal(unit);
        self.units.iter().find(|(name, _)| *name == normal).map(|&(_, factor)| factor)
    }

    /// Returns a unit's spelling in the list, where it differs by the case of its prefix or by the Unicode letter mu.
    fn normal(&self, unit: &str) -> String {
        let mut letters = unit.chars();
        let rest = |letters: std::str::Chars<'_>| letters.as_str().to_owned();
        match letters.next() {
            Some('\u{b5}' | '\u{3bc}') if self.prefixes.contains('u') => format!("u{}", rest(letters)),
            Some(first) if self.prefixes.contains(first.to_ascii_uppercase()) => {
                format!("{}{}", first.to_ascii_uppercase(), rest(letters))
            }
            _ => unit.to_owned(),
        }
    }

    /// Explains a unit that is wrong only in the case of its letters.
    fn confusion(&self, unit: &str) -> Option<&'static str> {
        self.units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
        Some(match self.units[0].0 {
            "bps" => "`B` is a byte and `b` is a bit, and a rate is in bits per second",
            "B" => "`b` is a bit and `B` is a byte, and a size is in bytes",
            _ => "its letters are lower case",
        })
    }

    /// Returns the one unit within a typing error or two of `unit`. Returns none where units of different sizes are as
    /// near: the first letter is taken to state the size, and the rest must leave no choice.
    fn nearest(&self, unit: &str) -> Option<&'static str> {
        let normal = self.normal(unit);
        let first = normal.chars().next()?;
        // A `b` in a size, or a `B` in a rate, confuses bits with bytes.
        let other = [("B", 'b'), ("bps", 'B')].into_iter().find(|(unit, _)| *unit == self.units[0].0);
        if other.is_some_and(|(_, letter)| unit.contains(letter)) {
            return None;
        }
        let slips = 1 + normal.len() / 4;
        let is_near = |name: &str| (1..=slips).contains(&strsim::damerau_levenshtein(name, &normal));
        let mut near: Vec<_> = self.units.iter().filter(|(name, _)| is_near(name)).collect();
        if self.prefixes.contains(first) {
            near.retain(|(name, _)| name.starts_with(first));
        }
        let &&(name, factor) = near.first()?;
        let is_clear = near.iter().all(|(_, other)| *other == factor);
        // One letter is too little evidence: `10m` may mean minutes.
        (is_clear && name.starts_with(first) && normal.len() > 1).then_some(name)
    }
}

/// Parses `number` and one of the kind's units into an integer count of the smallest unit. The result is exact:
/// decimals never pass through a float.
fn parse_with_units(text: &str, kind: &'static Kind) -> Result<u64, ParseQuantityError> {
    let error = |problem| ParseQuantityError { text: text.to_owned(), kind, problem };
    let trimmed = text.trim();
    let digits =
        trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..digits].replace('_', ""), trimmed[digits..].trim());
    let (whole, decimals) = number.split_once('.').unwrap_or((&number, ""));
    if number.is_empty() || whole.is_empty() && decimals.is_empty() || decimals.contains('.') {
        return Err(error(QuantityProblem::NotANumber));
    }
    if unit.is_empty() {
        return Err(error(QuantityProblem::NoUnit));
    }
    let Some(factor) = kind.factor(unit) else {
        return Err(error(QuantityProblem::UnknownUnit(unit.to_owned())));
    };
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > 18 {
        return Err(error(QuantityProblem::TooFine));
    }
    let scale = 10u128.pow(decimals.len() as u32);
    let mantissa: u128 =
        format!("0{whole}{decimals}").parse().map_err(|_| error(QuantityProblem::TooLarge))?;
    let scaled = mantissa.checked_mul(factor as u128).ok_or_else(|| error(QuantityProblem::TooLarge))?;
    if scaled % scale != 0 {
        return Err(error(QuantityProblem::TooFine));
    }
    u64::try_from(scaled / scale).map_err(|_| error(QuantityProblem::TooLarge))
}

/// The reason why a text is not a share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseShareError(String);

impl std::error::Error for ParseShareError {}

impl fmt::Display for ParseShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a share; write a number such as 0.05, or per cent such as 5%", self.0)
    }
}

/// Parses a share of a whole, written as a number or in per cent: `0.05`, `5%`. The caller checks its range.
///
/// # Errors
/// Returns an error for any other text, and for numbers that are not finite.
pub fn parse_share(text: &str) -> Result<f64, ParseShareError> {
    let trimmed = text.trim();
    let read = match trimmed.strip_suffix('%') {
        // Decimal arithmetic is exact here, whereas 99.9 / 100 is not 0.999 in binary.
        Some(number) => format!("{}e-2", number.trim_end()).parse::<f64>(),
        None => trimmed.parse(),
    };
    read.ok().filter(|share| share.is_finite()).ok_or_else(|| ParseShareError(text.to_owned()))
}

static SPAN: Kind = Kind {
    name: "length of time",
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
        ("min", 60_000_000_000_000),
        ("h", 3_600_000_000_000_000),
    ],
    prefixes: "pnum",
};

static BYTES: Kind = Kind {
    name: "size",
    units: &[
        ("B", 1),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    prefixes: "KMGT",
};

static RATE: Kind = Kind {
    name: "rate",
    units: &[
        ("bps", 1),
        ("Kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
    ],
    prefixes: "KMGT",
};

impl FromStr for Span {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Span, ParseQuantityError> {
        parse_with_units(text, &SPAN).map(Span::from_ps)
    }
}
impl FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Bytes, ParseQuantityError> {
        parse_with_units(text, &BYTES).map(Bytes::new)
    }
}
impl FromStr for Rate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Rate, ParseQuantityError> {
        parse_with_units(text, &RATE).map(Rate::from_bps)
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
        assert_eq!("3kB".parse(), Ok(Bytes::new(3_000)));
        assert_eq!("2kiB".parse(), Ok(Bytes::new(2_048)));
        for micro in ["us", "\u{b5}s", "\u{3bc}s", " \u{b5}s"] {
            assert_eq!(format!("7{micro}").parse(), Ok(Span::from_us(7)), "{micro}");
        }
        assert_eq!("2min".parse(), Ok(Span::from_secs(120)));
        assert_eq!("1.5h".parse(), Ok(Span::from_secs(5_400)));
    }

    #[test]
    fn shares_are_numbers_or_per_cent() {
        for (text, share) in [("0.4", 0.4), ("40%", 0.4), (" 40 % ", 0.4), ("99.9%", 0.999), ("0", 0.0)] {
            assert_eq!(parse_share(text), Ok(share), "{text}");
        }
        for text in ["", "%", "nan", "inf%", "4x", "0.4 0.5", "5%%"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bits_are_no_bytes() {
        for (text, words) in [
            ("10GBps", "`GBps` in `10GBps` is not a unit of rate: `B` is a byte and `b` is a bit"),
            ("10GBPS", "is not a unit of rate: `B` is a byte"),
            ("10Bps", "is not a unit of rate: `B` is a byte"),
        ] {
            let message = text.parse::<Rate>().unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
        for text in ["1Mb", "1b", "1mib", "1KIb"] {
            let message = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(message.contains("is not a unit of size: `b` is a bit and `B` is a byte"), "{message}");
        }
        for text in ["1MS", "1Ms", "1S", "1MIN", "1H", "1Us"] {
            let message = text.parse::<Span>().unwrap_err().to_string();
            assert!(message.contains("its letters are lower case"), "{message}");
        }
    }

    /// Returns every combination of upper and lower case of a unit's letters.
    fn cases(unit: &str) -> Vec<String> {
        let mut all = vec![String::new()];
        for letter in unit.chars() {
            let both = [letter.to_ascii_lowercase(), letter.to_ascii_uppercase()];
            all = all.iter().flat_map(|start| both.map(|letter| format!("{start}{letter}"))).collect();
        }
        all
    }

    #[test]
    fn another_case_is_refused_or_the_same() {
        for kind in [&SPAN, &BYTES, &RATE] {
            for &(name, factor) in kind.units {
                for unit in cases(name) {
                    let read = parse_with_units(&format!("3{unit}"), kind);
                    assert!(read == Ok(3 * factor) || read.is_err(), "{name} as {unit}: {read:?}");
                    let has_other_b = unit.contains('b') != name.contains('b');
                    assert!(!(has_other_b && read.is_ok()), "{unit} is read as {name}");
                }
            }
        }
    }

    /// Returns every text that is one typing error away from a unit.
    fn slips(unit: &str) -> Vec<String> {
        let letters: Vec<char> = unit.chars().collect();
        let keys = || ('a'..='z').chain('A'..='Z').chain(['\u{b5}', '/', '%']);
        let put = |at: usize, removed: usize, key: Option<char>| -> String {
            letters[..at].iter().copied().chain(key).chain(letters[at + removed..].iter().copied()).collect()
        };
        let mut slips = Vec::new();
        for at in 0..=letters.len() {
            slips.extend(keys().map(|key| put(at, 0, Some(key))));
            if at < letters.len() {
                slips.push(put(at, 1, None));
                slips.extend(keys().map(|key| put(at, 1, Some(key))));
            }
            if at + 1 < letters.len() {
                let mut swapped = letters.clone();
                swapped.swap(at, at + 1);
                slips.push(swapped.into_iter().collect());
            }
        }
        slips
    }

    #[test]
    fn no_suggestion_has_another_magnitude() {
        let mut suggestions = 0;
        for kind in [&SPAN, &BYTES, &RATE] {
            for &(name, factor) in kind.units {
                for slip in slips(name).into_iter().filter(|slip| kind.factor(slip).is_none()) {
                    let Some(meant) = kind.nearest(&slip) else { continue };
                    suggestions += 1;
                    // A typing error may produce the first letter of another multiple, which then states the size.
                    let first = kind.normal(&slip).chars().next().unwrap();
                    let is_said = kind.prefixes.contains(first) && !name.starts_with(first);
                    let same = kind.factor(meant) == Some(factor);
                    assert!(same || is_said && meant.starts_with(first), "{name}, {slip}: {meant}");
                    assert!(kind.confusion(&slip).is_none() || same, "{slip}: {meant}");
                }
            }
        }
        assert!(suggestions > 500, "{suggestions} suggestions were tried");
    }

    #[test]
    fn suggestions() {
        for (text, words) in [
            ("10Gps", Some("did you mean `10Gbps`?")),
            ("10gps", Some("did you mean `10Gbps`?")),
            ("10 Gbp", Some("did you mean `10 Gbps`?")),
            ("10bsp", Some("did you mean `10bps`?")),
            ("10Gbits", Some("did you mean `10Gbps`?")),
            ("10Xbps", None),
            ("10pps", None),
            ("10GBps", None),
            ("10G", None),
        ] {
            let message = text.parse::<Rate>().unwrap_err().to_string();
            match words {
                Some(words) => assert!(message.contains(words), "{message}"),
                None => assert!(!message.contains("did you mean"), "{message}"),
            }
        }
        assert!("5usec".parse::<Span>().unwrap_err().to_string().contains("(did you mean `5us`?)"));
        assert!(!"5Kbit".parse::<Bytes>().unwrap_err().to_string().contains("did you mean"));
        assert!("10m".parse::<Span>().unwrap_err().to_string().ends_with("one of ps, ns, us, ms, s, min, h"));
    }

    #[test]
    fn errors_say_what_is_allowed() {
        let message = |text: &str| text.parse::<Span>().unwrap_err().to_string();
        assert_eq!(
            message("10"),
            "`10` has no unit, so it is not a length of time; write a number and one of ps, ns, us, ms, s, min, h"
        );
        assert_eq!(
            message("10Gbps"),
            "`Gbps` in `10Gbps` is not a unit of length of time; write a number and one of ps, ns, us, ms, s, min, h"
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
