//! [`Plain`]: quantities as files have them, which are numbers in the unit that the name of the column says.

use std::fmt;
use std::str::FromStr;

use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Rate, Span, Time};

/// A quantity that files have as a plain number.
pub(crate) trait Plain: Sized {
    /// The type of the number in a file.
    type As: fmt::Display + FromStr;
    fn to_plain(&self) -> Self::As;
    fn from_plain(number: Self::As) -> Self;
}

macro_rules! plain {
    ($($type:ty as $number:ty: $to:expr, $from:expr;)+) => {
        $(impl Plain for $type {
            type As = $number;

            fn to_plain(&self) -> $number {
                $to(*self)
            }

            fn from_plain(number: $number) -> $type {
                $from(number)
            }
        })+
    };
}

plain! {
    u8 as u8: u8::from, u8::from;
    u32 as u32: u32::from, u32::from;
    u64 as u64: u64::from, u64::from;
    f64 as Decimal: Decimal, |Decimal(value)| value;
    Time as u64: Time::as_ps, Time::from_ps;
    Span as u64: Span::as_ps, Span::from_ps;
    Rate as u64: Rate::as_bps, Rate::from_bps;
    Bytes as u64: Bytes::get, Bytes::new;
    HostId as u32: |HostId(host)| host, HostId;
}

/// A number that shows a decimal point also where it is whole, so that readers take its column for floating point.
pub(crate) struct Decimal(f64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl FromStr for Decimal {
    type Err = std::num::ParseFloatError;

    fn from_str(text: &str) -> Result<Decimal, Self::Err> {
        text.parse().map(Decimal)
    }
}
