//! [`SocketReader`]: a thread that reads the bytes that wait in the hosts' sockets, for the controller of circuits.
//!
//! ```text
//! week k - 1 ───────┬─────────┬─────────┬───────────┬──lead──┬── week k
//!       readings:   1         2         3   margin ─4        │
//!                                                   └─ the controller's reading
//! ```
//!
//! A reading takes a few microseconds a host, and is complete shortly before the controller needs it; a reading that is
//! complete later, because the machine was busy, is counted as late for its week. Slow estimators are read every
//! `circuits.poll`.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_circuits::{ControlParams, Demand, Estimator};
use plimsoll_fabric::net::HostId;

use plimsoll_units::{Span, Time};

use crate::clock::Clock;
use crate::edge::SocketBacklog;
use crate::edge::frame::host_at;
use crate::failure::start_thread;
use crate::net::namespaces::Namespaces;
use crate::read_outs::hints::Announcements;
use crate::read_outs::lateness::{Spread, rough};
use crate::read_outs::series::WindowSeries;
use crate::read_outs::sock_diag::SockDiag;
use crate::urgent;

/// The times at which sockets are read.
#[derive(Clone, Copy, Debug)]
struct Timetable {
    /// The time between two readings.
    every: Span,
    /// Each reading of this number is that before a week.
    a_week: u64,
    /// Time before the end of a week at which the controller needs its last reading.
    lead: Span,
}

impl Timetable {
    fn of(control: &ControlParams) -> Timetable {
        match control.estimator {
            Estimator::SlowSocketBuffers => Timetable { every: control.poll, a_week: 1, lead: Span::ZERO },
            _ => Timetable {
                every: Span::from_ps((control.week.as_ps() / READINGS).max(1)),
                a_week: READINGS,
                lead: control.lead,
            },
        }
    }

    /// Returns the first time after `now` at which a reading is to be complete, and whether it is a week's last.
    fn next(&self, now: Time) -> (Time, bool) {
        let number = (now + self.lead).as_ps() / self.every.as_ps() + 1;
        // The first readings of the first week may be before it.
        let at = (self.every * number).saturating_sub(self.lead);
        (Time::ZERO + at, number.is_multiple_of(self.a_week))
    }
}

/// The readings of a week.
const READINGS: u64 = 4;
/// The least time by which a reading begins before it is to be complete, and the time of the first.
const MARGIN_MIN: Span = Span::from_us(60);
const MARGIN_FIRST: Span = Span::from_us(400);
/// A reading that takes longer than others is forgotten by this share with each that follows.
const FORGOTTEN: u64 = 16;

/// Measurements of the readings of sockets.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// Duration of each reading of all hosts' sockets.
    pub took: Spread,
    /// The weeks for which a reading was to be made.
    pub weeks: u64,
    /// The weeks whose reading was complete after the controller needed it, so that an earlier one was used.
    pub late: u64,
    /// The windows of connections over time, where they are observed.
    pub(crate) series: Option<WindowSeries>,
    /// The warning of announcements that were rejected.
    pub(crate) hints_rejected: Option<String>,
}

/// Reads the hosts' sockets until it is dropped.
#[derive(Debug)]
pub(crate) struct SocketReader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Readings>>>,
}

/// State of a reader's thread.
struct ReadHosts {
    control: ControlParams,
    sockets: Vec<SockDiag>,
    /// The data that is announced, where it counts.
    announced: Option<Announcements>,
    /// The connections of MPTCP of a host, and where they lead.
    tokens: BTreeSet<(u32, HostId)>,
    /// The windows of connections over time, where they are observed.
    series: Option<WindowSeries>,
}

impl SocketReader {
    /// Starts a thread that reads the sockets of all hosts by `clock`, and returns it with its readings. A `series`
    /// gets samples from them. The demand in `announced` is added.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn start(
        control: &ControlParams,
        namespaces: &Namespaces,
        hosts: u32,
        clock: Clock,
        series: Option<WindowSeries>,
        announced: Option<Announcements>,
    ) -> io::Result<(SocketReader, Receiver<SocketBacklog>)> {
        let sockets = (0..hosts).map(|host| namespaces.inside(host, SockDiag::open));
        let hosts = ReadHosts {
            control: control.clone(),
            sockets: sockets.collect::<io::Result<_>>()?,
            announced,
            tokens: BTreeSet::new(),
            series,
        };
        let (send, readings) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (timetable, stops) = (Timetable::of(control), Arc::clone(&stop));
        let thread = start_thread("a thread that reads the hosts' sockets", move || {
            urgent::wake_in_time();
            run(hosts, timetable, clock, &stops, &send)
        })?;
        Ok((SocketReader { stop, thread: Some(thread) }, readings))
    }

    /// Ends the thread and returns the measurements of its readings.
    ///
    /// # Errors
    /// If the kernel has refused a reading.
    pub(crate) fn finish(mut self) -> io::Result<Readings> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().map(JoinHandle::join);
        let ended = thread.unwrap_or_else(|| Ok(Ok(Readings::default())));
        ended.unwrap_or_else(|_| Err(io::Error::other("the thread that reads sockets panicked")))
    }
}

impl Drop for SocketReader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    mut hosts: ReadHosts,
    timetable: Timetable,
    clock: Clock,
    stop: &AtomicBool,
    readings: &Sender<SocketBacklog>,
) -> io::Result<Readings> {
    let mut seen = Readings::default();
    let mut margin = MARGIN_FIRST;
    while !stop.load(Ordering::Relaxed) {
        let (due, is_last) = timetable.next(clock.now() + margin);
        let begin = Time::from_ps(due.as_ps().saturating_sub(margin.as_ps()));
        thread::sleep(Duration::from_nanos(begin.saturating_since(clock.now()).as_ps() / 1_000));
        let begun = clock.now();
        let demand = hosts.read(begun, due)?;
        let at = clock.now();
        seen.took.record(at.saturating_since(begun));
        seen.weeks += u64::from(is_last);
        seen.late += u64::from(is_last && at > due);
        // Twice the time from the planned begin of the reading to its end.
        let wanted = (at.saturating_since(begin) * 2).max(MARGIN_MIN).min(timetable.every);
        let forgotten = Span::from_ps(margin.as_ps() - margin.as_ps() / FORGOTTEN);
        margin = wanted.max(forgotten);
        if readings.send(SocketBacklog { at, demand }).is_err() {
            break;
        }
    }
    seen.hints_rejected = hosts.announced.as_ref().and_then(Announcements::warning);
    seen.series = hosts.series;
    Ok(seen)
}

impl ReadHosts {
    /// Reads at `now` the bytes that wait in all sockets, from each host to each other, and adds the announced bytes
    /// that count for a reading that is `due`.
    fn read(&mut self, now: Time, due: Time) -> io::Result<Demand> {
        let most = self.control.socket_buffer.get();
        let is_sampled = self.series.as_mut().is_some_and(|series| series.is_due(now));
        let mut series = self.series.as_mut().filter(|_| is_sampled);
        let hosts = self.sockets.len();
        let mut demand = Demand::new(hosts);
        for (sender, diag) in self.sockets.iter_mut().enumerate() {
            let tokens = &mut self.tokens;
            tokens.clear();
            diag.tcp(|socket| {
                if let Some(series) = &mut series {
                    series.take(now, HostId(sender as u32), &socket);
                }
                let Some(receiver) = host_at(socket.to, hosts as u32) else { return };
                *demand.get_mut(sender, receiver.0 as usize) += socket.unsent.min(most);
                tokens.extend(socket.token.map(|token| (token, receiver)));
            })?;
            for &(token, receiver) in &*tokens {
                *demand.get_mut(sender, receiver.0 as usize) += diag.mptcp_unsent(token)?.min(most);
            }
        }
        if let (Some(announced), Some(within)) = (&mut self.announced, self.control.hints_within(due)) {
            announced.add(now, &within, &mut demand)?;
        }
        Ok(demand)
    }
}

impl Readings {
    /// Returns why the run is suspect, if readings were late.
    pub(crate) fn suspect(&self) -> Option<String> {
        let Readings { took, weeks, late, .. } = self;
        (late * LATE_SHARE > *weeks).then(|| {
            format!(
                "suspect: for {late} of {weeks} weeks the hosts' sockets were read too late, so that an earlier \
                 reading counted; a reading took {} at the median and {} at most",
                rough(took.quantile(0.5)),
                rough(took.max())
            )
        })
    }
}

/// A run of which more than a share of 1 / 50 of the weeks have a late reading is suspect.
const LATE_SHARE: u64 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reading_of_a_week_is_when_the_controller_reads() {
        let control = ControlParams {
            week: Span::from_us(1_000),
            lead: Span::from_us(300),
            ..ControlParams::default()
        };
        let timetable = Timetable::of(&control);
        let next = |us| timetable.next(Time::ZERO + Span::from_us(us));
        let at = |us| Time::ZERO + Span::from_us(us);
        let expected =
            [(200, false), (450, false), (700, true), (950, false), (1_200, false), (1_450, false)];
        let found = [0, 200, 450, 700, 950, 1_200].map(next);
        assert_eq!(found, expected.map(|(us, is_last)| (at(us), is_last)));
        assert_eq!(next(1_450), (at(1_700), true));
    }

    #[test]
    fn slow_estimators_read_every_poll() {
        let control = ControlParams {
            estimator: Estimator::SlowSocketBuffers,
            poll: Span::from_ms(10),
            ..ControlParams::default()
        };
        let timetable = Timetable::of(&control);
        assert_eq!(timetable.next(Time::ZERO + Span::from_ms(3)), (Time::ZERO + Span::from_ms(10), true));
    }

    #[test]
    fn a_run_with_late_readings_is_suspect() {
        let late = |late| Readings { weeks: 100, late, ..Readings::default() }.suspect();
        assert_eq!(late(2), None);
        assert!(late(3).is_some_and(|said| said.starts_with("suspect: for 3 of 100 weeks")));
    }
}
