//! [`Alarm`]: ends a wait of epoll at a time. The timeout of `epoll_wait` has whole milliseconds, and requests would be
//! sent up to one late; a timer has nanoseconds, on every kernel.

use std::io;

use plimsoll_units::Time;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::time::{self, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};

/// A timer that a poll watches.
pub struct Alarm {
    timer: OwnedFd,
    /// The time that the timer is set to.
    at: Time,
}

impl Alarm {
    /// The data of the alarm's event, in the place of a connection's index.
    pub const TOKEN: u64 = u64::MAX;

    /// Adds an alarm, which is not set yet, to a poll.
    pub fn new(poll: &OwnedFd) -> io::Result<Alarm> {
        let timer = time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        // Edge-triggered, so that it need not be read.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(poll, &timer, epoll::EventData::new_u64(Alarm::TOKEN), flags)?;
        Ok(Alarm { timer, at: Time::ZERO })
    }

    /// Sets the alarm to the time `at`; returns false, and leaves it, if that has come `now`.
    pub fn set(&mut self, now: Time, at: Time) -> io::Result<bool> {
        // Most waits end with a reply, so that the alarm is often set already.
        if at > now && at != self.at {
            let ns = at.saturating_since(now).as_ps().div_ceil(1_000);
            let it_value =
                Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
            let once = Itimerspec { it_interval: Timespec::default(), it_value };
            time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
            self.at = at;
        }
        Ok(at > now)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_units::Span;

    use super::*;

    #[test]
    fn an_alarm_ends_each_wait_and_is_not_rounded_up() {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let mut alarm = Alarm::new(&poll).unwrap();
        let mut events = Vec::with_capacity(2);
        for microseconds in [1, 200, 300] {
            let now = Time::ZERO + Span::from_secs(microseconds);
            assert!(!alarm.set(now, now).unwrap());
            assert!(alarm.set(now, now + Span::from_us(microseconds)).unwrap());
            let left = time::timerfd_gettime(&alarm.timer).unwrap().it_value;
            assert!(left.tv_sec == 0 && left.tv_nsec <= 1_000 * microseconds as i64, "{left:?}");
            // Without a timeout: the alarm alone ends it.
            events.clear();
            epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None).unwrap();
            assert_eq!(events.iter().map(|event| event.data.u64()).collect::<Vec<_>>(), [Alarm::TOKEN]);
        }
    }
}
