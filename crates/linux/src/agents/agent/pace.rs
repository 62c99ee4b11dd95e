//! [`Pace`]: paces a connection of the agent to the rate of its QJump level, as the eBPF program `connections` paces
//! the connections of programs. A segment that the limiter refuses would be retried by TCP after 200 ms.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_fabric::Unbuildable;
use plimsoll_mechanisms::qjump::{HeardOf, LEVELS_MAX, Sharers, pace};
use plimsoll_scenario::model::Model;
use plimsoll_units::{Bytes, Span, Time};

/// The rates of the levels that have a limit, and the connections that share them.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    epoch: Span,
    /// The bytes of a frame's headers.
    header: u64,
    /// The bytes of an epoch, by host and level.
    buckets: Vec<[Option<Bytes>; LEVELS_MAX]>,
    sharers: Vec<[Mutex<Sharers>; LEVELS_MAX]>,
}

/// The pace of one end of a connection; at a level without limit it changes nothing.
#[derive(Debug, Default)]
pub(super) struct Pace {
    shares: Arc<Shares>,
    host: usize,
    level: usize,
    /// The payload of a full frame, in bytes.
    segment: u64,
    heard_of: HeardOf,
    /// The rate in bytes of payload a second; 0 before the first is set.
    rate: u64,
}

impl Shares {
    /// Returns the rates of `model`; frames have `header` bytes of headers, Ethernet's included.
    ///
    /// # Errors
    /// Fails if the levels are invalid.
    pub(crate) fn new(model: &Model, header: u64) -> Result<Shares, Unbuildable> {
        let mut shares = Shares { header, ..Shares::default() };
        let Some(params) = model.host.qjump() else { return Ok(shares) };
        for host in 0..model.topology.host_count() {
            let levels = model.qjump_levels(params, host)?;
            shares.epoch = levels.epoch;
            let mut buckets = [None; LEVELS_MAX];
            for (bucket, level) in buckets.iter_mut().zip(&levels.levels) {
                *bucket = level.latency_bound.map(|_| level.bucket);
            }
            shares.buckets.push(buckets);
            shares.sharers.push(std::array::from_fn(|_| Mutex::default()));
        }
        Ok(shares)
    }

    /// Returns the bytes that connections at `level` of `host` may send together in an epoch, and the epoch; `None`
    /// without a limit.
    #[cfg(feature = "kernel")]
    pub(crate) fn of(&self, host: u32, level: u8) -> Option<(Bytes, Span)> {
        let bucket = self.buckets.get(host as usize)?.get(usize::from(level)).copied().flatten()?;
        Some((bucket, self.epoch))
    }
}

impl Pace {
    pub(super) fn new(shares: &Arc<Shares>, host: u32, level: u8, segment: u64) -> Pace {
        let (shares, host, level) = (Arc::clone(shares), host as usize, usize::from(level));
        Pace { shares, host, level, segment, ..Pace::default() }
    }

    /// Paces `socket`, which is about to send, by the number of connections that share its level now.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub(super) fn keep(&mut self, socket: impl AsFd, now: Time) -> io::Result<()> {
        let Shares { epoch, header, ref buckets, ref sharers } = *self.shares;
        let Some(bucket) = buckets.get(self.host).and_then(|levels| levels[self.level]) else {
            return Ok(());
        };
        let mut sharers = sharers[self.host][self.level].lock().unwrap_or_else(PoisonError::into_inner);
        let rate = pace(bucket, epoch, self.segment, header, sharers.heard_of(&mut self.heard_of, now));
        drop(sharers);
        if rate == self.rate {
            return Ok(());
        }
        if self.rate == 0 {
            let epoch_us = (epoch.as_ps() / PS_PER_US).clamp(RTO_MIN_US, RTO_MAX_US) as i32;
            // An older kernel keeps the smallest timeout that it has.
            let _ = set(&socket, libc::IPPROTO_TCP, TCP_RTO_MIN_US, epoch_us);
            set(&socket, libc::IPPROTO_TCP, libc::TCP_THIN_LINEAR_TIMEOUTS, 1)?;
        }
        set(&socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, rate)?;
        self.rate = rate;
        Ok(())
    }
}

/// Constant of linux/tcp.h, Linux 6.16.
const TCP_RTO_MIN_US: i32 = 45;
/// The values that Linux accepts: two jiffies of 4 ms, and its default.
const RTO_MIN_US: u64 = 8_000;
const RTO_MAX_US: u64 = 200_000;
const PS_PER_US: u64 = 1_000_000;

#[expect(unsafe_code, reason = "no safe crate of this workspace sets these options")]
fn set<T: Copy>(socket: &impl AsFd, level: i32, name: i32, value: T) -> io::Result<()> {
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the call reads `size_of::<T>()` bytes at the pointer, which lives until it returns; `T` is an integer.
    let set =
        unsafe { libc::setsockopt(socket, level, name, (&raw const value).cast(), size_of::<T>() as u32) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Two connections of a level have half of its pace each, and both sides of the rule are seen by the kernel.
    #[test]
    fn connections_share_the_pace_of_their_level() {
        let mut shares = Shares { epoch: Span::from_ms(2), header: 66, ..Shares::default() };
        shares.buckets.push([None, Some(Bytes::new(590)), None, None, None, None, None, None]);
        shares.sharers.push(std::array::from_fn(|_| Mutex::default()));
        let shares = Arc::new(shares);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (one, two, free) = (connect(), connect(), connect());
        let mut paces = [1, 1, 0].map(|level| Pace::new(&shares, 0, level, 524));
        paces[0].keep(&one, Time::ZERO).unwrap();
        assert_eq!(pacing_rate(&one), 131_000);
        paces[1].keep(&two, Time::ZERO).unwrap();
        paces[0].keep(&one, Time::ZERO).unwrap();
        paces[2].keep(&free, Time::ZERO).unwrap();
        assert_eq!([&one, &two, &free].map(pacing_rate), [65_500, 65_500, u64::MAX]);
    }

    #[expect(unsafe_code, reason = "as above")]
    fn pacing_rate(socket: &TcpStream) -> u64 {
        let (mut value, mut length) = (0u64, 8u32);
        let (level, name) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
        let at = (&raw mut value).cast();
        // SAFETY: the call writes at most `length` bytes at `at`, the bytes of `value`.
        let got = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, at, &raw mut length) };
        assert_eq!((got, length), (0, 8));
        value
    }
}
