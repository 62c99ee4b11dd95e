//! Arrivals of requests: in an open loop, in bursts, or each client after its answer.

use plimsoll_mechanisms::InvalidParam;
use plimsoll_traffic::distribution::{Sampler, TimeDistribution, exponential, uniform};
use plimsoll_units::{Span, Stream, Streams, Time};
use serde::Deserialize;

use super::model::{is_rate, is_share, is_time, unless};
use super::spacing::Spacing;

/// The arrival process of requests.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ServerArrivals {
    /// Clients that do not wait for answers.
    Open {
        /// Requests per second of all clients together.
        rate: f64,
        /// The spacing of each client's requests.
        spacing: Spacing,
        /// Clients with the same rate; at least 1.
        clients: u32,
    },
    /// Poisson arrivals whose rate rises for a while, for all clients at the same time (Banga and Druschel 1999; the
    /// dissertation's section 6.2.3). A period has one burst of `length` and is
    /// `ratio x length / share` long.
    Bursts {
        /// Requests per second in the mean.
        rate: f64,
        /// The rate within a burst over the mean rate; more than `share`.
        ratio: f64,
        /// Length of a burst; more than zero.
        length: Span,
        /// The share of all requests that come in bursts; more than 0, less than 1.
        share: f64,
        /// The number of clients; at least 1.
        clients: u32,
    },
    /// Clients with one request at a time.
    Closed {
        /// The number of clients; at least 1.
        clients: u32,
        /// Time from an answer to the next request: the client's own time.
        think: TimeDistribution,
        /// Target rate of all clients together, in requests per second: each has a timetable with a random phase, and a
        /// late request leaves as soon as its predecessor's answer is there.
        rate: Option<f64>,
    },
    /// Clients that do not wait for answers: at each tick of its own timer a client sends the requests that came due
    /// since the tick before.
    Ticks {
        /// Time from one tick to the next; more than zero. Each client's timer has a random phase.
        every: Span,
        /// When requests come due; not in a closed loop.
        due: Box<ServerArrivals>,
    },
}

impl ServerArrivals {
    /// Returns the number of clients.
    pub(super) fn clients(&self) -> u32 {
        match self {
            ServerArrivals::Open { clients, .. }
            | ServerArrivals::Bursts { clients, .. }
            | ServerArrivals::Closed { clients, .. } => *clients,
            ServerArrivals::Ticks { due, .. } => due.clients(),
        }
    }

    pub(super) fn check(&self) -> Result<(), InvalidParam> {
        // An owner's number in the event queue has 29 bits; this limit is more than any use needs.
        unless((1..=1 << 20).contains(&self.clients()), "clients", self.clients(), "1 to 1048576")?;
        match self {
            ServerArrivals::Open { rate, .. } => unless(is_rate(*rate), "rate", rate, "more than 0"),
            ServerArrivals::Bursts { rate, ratio, length, share, .. } => {
                unless(is_rate(*rate), "rate", rate, "more than 0")?;
                unless(is_share(*share) && *share > 0.0 && *share < 1.0, "share", share, "between 0 and 1")?;
                unless(ratio.is_finite() && ratio > share, "ratio", ratio, "more than `share`")?;
                unless(*length > Span::ZERO, "length", length, "more than zero")
            }
            ServerArrivals::Closed { think, rate, .. } => {
                is_time("think", think)?;
                unless(rate.is_none_or(is_rate), "rate", rate.unwrap_or(0.0), "more than 0")
            }
            ServerArrivals::Ticks { every, due } => {
                unless(*every > Span::ZERO, "every", every, "more than zero")?;
                let is_open = matches!(**due, ServerArrivals::Open { .. } | ServerArrivals::Bursts { .. });
                unless(is_open, "due", "a closed loop, or ticks", "an open loop, or bursts")?;
                due.check()
            }
        }
    }
}

/// One client's next requests.
#[derive(Debug)]
pub(super) struct ArrivingClient {
    stream: Stream,
    kind: ArrivalKind,
    /// The time at which it sends, or should send by its timetable.
    next: Time,
    /// The timer that it waits for, if it does.
    ticks: Option<TimerTicks>,
}

/// The ticks of a timer, at which the requests of a client leave.
#[derive(Clone, Copy, Debug)]
struct TimerTicks {
    first: Time,
    every: Span,
}

#[derive(Debug)]
enum ArrivalKind {
    Open { gap: f64, spacing: Spacing },
    Bursts(BurstShape),
    Closed { think: Sampler<Span>, gap: Option<f64> },
}

/// The shape of the rate, in requests and seconds.
#[derive(Clone, Copy, Debug)]
struct BurstShape {
    period: f64,
    length: f64,
    rate_in: f64,
    rate_out: f64,
}

impl ArrivingClient {
    pub(super) fn new(arrivals: &ServerArrivals, number: u32, streams: &Streams) -> ArrivingClient {
        let clients = f64::from(arrivals.clients());
        let (arrivals, ticks) = match arrivals {
            ServerArrivals::Ticks { every, due } => {
                let phase = uniform(&mut streams.stream(&format!("server/client/{number}/ticks")));
                let first = Time::ZERO + Span::from_secs_f64(every.as_secs_f64() * phase);
                (&**due, Some(TimerTicks { first, every: *every }))
            }
            arrivals => (arrivals, None),
        };
        let kind = match arrivals {
            ServerArrivals::Open { rate, spacing, .. } => {
                ArrivalKind::Open { gap: clients / rate, spacing: *spacing }
            }
            ServerArrivals::Bursts { rate, ratio, length, share, .. } => {
                let (rate, length) = (rate / clients, length.as_secs_f64());
                let period = ratio * length / share;
                let rate_out = rate * (1.0 - share) * period / (period - length);
                ArrivalKind::Bursts(BurstShape { period, length, rate_in: rate * ratio, rate_out })
            }
            ServerArrivals::Closed { think, rate, .. } => {
                ArrivalKind::Closed { think: think.sampler(), gap: rate.map(|rate| clients / rate) }
            }
            ServerArrivals::Ticks { .. } => unreachable!("`check` has rejected ticks of ticks"),
        };
        let stream = streams.stream(&format!("server/client/{number}"));
        let mut client = ArrivingClient { stream, kind, next: Time::ZERO, ticks };
        client.start();
        client
    }

    /// The time of its first request.
    fn start(&mut self) {
        let phase = |stream: &mut Stream, gap: f64| Time::ZERO + Span::from_secs_f64(gap * uniform(stream));
        match &self.kind {
            ArrivalKind::Open { gap, spacing: Spacing::Constant }
            | ArrivalKind::Closed { gap: Some(gap), .. } => {
                self.next = phase(&mut self.stream, *gap);
            }
            ArrivalKind::Open { .. } | ArrivalKind::Bursts(_) => self.advance(),
            ArrivalKind::Closed { think, .. } => self.next = Time::ZERO + think.sample(&mut self.stream),
        }
    }

    /// Returns the time of the client's next request.
    pub(super) fn next(&self) -> Time {
        self.ticks.map_or(self.next, |ticks| ticks.at_or_after(self.next))
    }

    /// Records that it has sent; returns `false` if it now waits for the answer.
    pub(super) fn on_sent(&mut self) -> bool {
        let is_open = !matches!(self.kind, ArrivalKind::Closed { .. });
        if is_open {
            self.advance();
        }
        is_open
    }

    /// Schedules the next request once the answer to the last one has arrived.
    pub(super) fn on_answer(&mut self, now: Time) {
        if let ArrivalKind::Closed { think, gap } = &self.kind {
            let free = now + think.sample(&mut self.stream);
            let due = gap.map_or(Time::ZERO, |gap| self.next + Span::from_secs_f64(gap));
            // A late request moves the timetable: a client does not send twice as fast afterwards.
            self.next = free.max(due);
        }
    }

    fn advance(&mut self) {
        match &self.kind {
            ArrivalKind::Open { gap, spacing } => {
                self.next += Span::from_secs_f64(gap * spacing.draw(&mut self.stream));
            }
            ArrivalKind::Bursts(burst) => {
                let work = exponential(&mut self.stream);
                self.next = Time::ZERO + Span::from_secs_f64(burst.after(self.next.as_secs_f64(), work));
            }
            ArrivalKind::Closed { .. } => {}
        }
    }
}

impl TimerTicks {
    fn at_or_after(self, due: Time) -> Time {
        let ticks = due.saturating_since(self.first).as_ps().div_ceil(self.every.as_ps());
        self.first + self.every.saturating_mul(ticks)
    }
}

impl BurstShape {
    /// Returns when `work` more requests are due after `at`, by the integral of the rate.
    fn after(&self, mut at: f64, mut work: f64) -> f64 {
        loop {
            let phase = at % self.period;
            let (rate, left) = if phase < self.length {
                (self.rate_in, self.length - phase)
            } else {
                (self.rate_out, self.period - phase)
            };
            // A rest too short to move the clock is passed over whole.
            let left = left.max(1e-12);
            if work <= rate * left {
                return at + work / rate;
            }
            work -= rate * left;
            at += left;
        }
    }
}
