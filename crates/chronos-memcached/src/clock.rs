//! Seconds as memcached counts them: from a little before its start, so that 0 can mean 'never' and 1 'long ago'.

use plimsoll_chronos::Now;

/// Seconds that memcached's clock shows when it starts.
const SECONDS_AT_START: u32 = 62;
/// Expiry times above this many seconds (30 days) are dates.
const RELATIVE_MAX: i64 = 60 * 60 * 24 * 30;

/// The second of one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// The number of seconds, which is never 0.
    pub second: u32,
    /// The number of seconds since 1970.
    pub unix_seconds: u64,
}

impl Clock {
    /// The clock of a server that starts, which has no date yet.
    pub const AT_START: Clock = Clock { second: SECONDS_AT_START, unix_seconds: 0 };

    /// Returns the clock at `now`.
    pub fn new(now: Now) -> Clock {
        let since_start = now.since_start.as_secs() as u32;
        Clock { second: since_start + SECONDS_AT_START, unix_seconds: now.unix_seconds }
    }

    /// Returns the seconds since the server started.
    pub fn uptime(self) -> u32 {
        self.second - SECONDS_AT_START
    }

    /// Returns the date of `second`, in seconds since 1970.
    pub fn date(self, second: u32) -> i64 {
        self.unix_seconds as i64 - i64::from(self.second) + i64::from(second)
    }

    /// Returns the second of an expiry time that a text client gave: 0 for never, negative for at once.
    pub fn expiry(self, given: i32) -> u32 {
        if given < 0 { 1 } else { self.expiry_unsigned(given as u32) }
    }

    /// The same for the binary protocol, whose expiry times have no sign.
    pub fn expiry_unsigned(self, given: u32) -> u32 {
        let given = i64::from(given);
        let started = self.unix_seconds as i64 - i64::from(self.second);
        if given == 0 {
            0
        } else if given <= RELATIVE_MAX {
            self.second.wrapping_add(given as u32)
        } else if given <= started {
            1
        } else {
            (given - started) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn thirty_days_divide_spans_from_dates() {
        let now = Now { since_start: Duration::from_secs(5), unix_seconds: 1_800_000_000 };
        let clock = Clock::new(now);
        assert_eq!(clock.second, 67);
        for (given, expected) in [
            (0, 0),
            (-1, 1),
            (10, 77),
            (2_592_000, 2_592_067),
            (2_592_001, 1),
            (1_800_000_010, 77),
            (1_799_999_000, 1),
        ] {
            assert_eq!(clock.expiry(given), expected, "{given}");
        }
    }
}
