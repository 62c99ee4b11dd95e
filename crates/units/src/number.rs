//! [`whole`] parses whole numbers of a command line within bounds, which its errors state in words.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

/// A type of whole numbers that a flag can have.
pub trait Whole: FromStr + PartialOrd + Display + Default + Copy + Send + Sync + 'static {
    /// The largest number of this type.
    const LARGEST: Self;
}

macro_rules! whole {
    ($($type:ty),+) => {
        $(impl Whole for $type {
            const LARGEST: $type = <$type>::MAX;
        })+
    };
}

whole!(u8, u16, u32, u64, usize, i32);

/// Returns a parser of whole numbers within `range`, which includes its end if it has one. Its error states the allowed
/// numbers: `write a whole number from 0 to 7`.
pub fn whole<T: Whole>(
    range: impl RangeBounds<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    let first = match range.start_bound() {
        Bound::Included(&first) | Bound::Excluded(&first) => first,
        Bound::Unbounded => T::default(),
    };
    let last = match range.end_bound() {
        Bound::Included(&last) | Bound::Excluded(&last) => Some(last),
        Bound::Unbounded => None,
    };
    move |text| {
        let most = last.unwrap_or(T::LARGEST);
        text.parse().ok().filter(|number| (first..=most).contains(number)).ok_or_else(|| {
            let is_large = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            match last {
                // The limit of a long type is stated only where the text exceeds it.
                None if text.parse::<T>().is_ok() || !is_large && size_of::<T>() > size_of::<u16>() => {
                    format!("write a whole number of at least {first}")
                }
                _ => format!("write a whole number from {first} to {most}"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_allowed_and_named_in_words() {
        let level = whole::<u8>(..=7);
        assert_eq!((level("0"), level("7")), (Ok(0), Ok(7)));
        for text in ["8", "-1", "x", "", "7.0", "300"] {
            assert_eq!(level(text), Err("write a whole number from 0 to 7".to_owned()), "{text}");
        }
        let count = whole::<u64>(1..);
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(count("0"), Err("write a whole number of at least 1".to_owned()));
        let port = whole::<u16>(..);
        for text in ["70000", "99999999999999999999", "-1", "22x", ""] {
            assert_eq!(port(text), Err("write a whole number from 0 to 65535".to_owned()), "{text}");
        }
        assert_eq!(whole::<u16>(1..)("0"), Err("write a whole number of at least 1".to_owned()));
        assert_eq!(whole::<u64>(..)("22x"), Err("write a whole number of at least 0".to_owned()));
        assert_eq!(whole::<i32>(-1..=65_535)("-1"), Ok(-1));
    }
}
