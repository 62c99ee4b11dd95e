//! [`CongestionControl`]: the input of a congestion controller, and its decisions.
//!
//! The sender detects *that* something happened and repairs losses; a controller decides the new window. It does so in
//! one of two ways ([`CongestionControl::sets_window`]):
//!
//! ```text
//!                  by ssthresh (the RFCs' way)                 by itself (delay- or rate-based)
//! ACK of new data  on_ack; grow, where the RFCs allow growth   on_ack changes cwnd, also during recovery
//! mark             cut, once a window                          Ack::ece, no cut
//! loss, timeout    cut gives ssthresh; cwnd as recovery says   cut gives cwnd
//! cwnd at least    one segment, and the configured floors      one byte
//! ```
//!
//! **Pacing.** Where cwnd is less than a segment, one segment may be outstanding, and segments leave `segment / cwnd`
//! round trips apart. A controller may also set a rate ([`CongestionControl::pacing_rate`]); the slower of the two
//! holds, and so does a rate of the configuration (`pacing_rate`). The built-in controllers that go by ssthresh never
//! pace by themselves, and the sender then spends nothing on it.

use std::fmt;
use std::sync::Arc;

use plimsoll_units::{Rate, Span, Time};

/// The congestion window and the values that control its growth, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The congestion window (cwnd), in bytes.
    pub cwnd: u64,
    /// Slow start threshold; `u64::MAX` while slow start has no end, 0 where the controller sets the window.
    pub ssthresh: u64,
    /// ACKs counted since cwnd last changed, for `growth = "count"`. A cut sets it to zero.
    pub count: u64,
}

impl Window {
    /// Whether the window is in slow start (RFC 5681, section 3.1).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// Limits that are the same for the whole life of a connection, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The payload of a full segment, in bytes (`transport.segment`).
    pub segment: u64,
    /// The largest window that the sender may use.
    pub max_window: u64,
    /// The window with which a connection begins.
    pub initial_window: u64,
}

/// An ACK that acknowledges new data, as the sender passes it to the controller.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// The time at which the ACK arrived.
    pub now: Time,
    /// The number of bytes that the ACK newly acknowledges.
    pub acked: u64,
    /// The acknowledgement number: the stream offset of the next expected byte.
    pub ack: u64,
    /// SND.NXT: the next offset to be sent.
    pub nxt: u64,
    /// Whether the ACK carries ECE, the echo of an ECN mark (RFC 3168).
    pub ece: bool,
    /// The round-trip time of the oldest segment that it acknowledges, as measured; `None` if that was sent more
    /// than once (Karn's algorithm) or, with `rtt_sampling = "one-per-window"`, not timed.
    pub rtt: Option<Span>,
    /// Smoothed RTT, this sample included; zero before the first sample.
    pub srtt: Span,
    /// True if the window limits the sender, not the application (RFC 7661, section 4.3), nor the controller's own
    /// pacing rate. Computed for controllers that set the window; true for others, whose `grow` is only called if it
    /// is.
    pub window_limited: bool,
}

/// The event for which the window is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A loss found by duplicate ACKs.
    Loss,
    /// A loss found by the retransmission timer.
    Timeout,
    /// A queue marked a packet (ECE).
    Ecn,
}

/// The cause of a cut, and the values from which it is computed.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The time at which the sender detected the cause.
    pub now: Time,
    /// The loss or mark that the sender detected.
    pub cause: Cause,
    /// The bytes to take the share of: `cut_from` for a loss, and the window for a mark.
    pub base: u64,
    /// SND.UNA: the stream offset of the first unacknowledged byte.
    pub una: u64,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
}

/// The window of one subflow of an MPTCP connection, as the controllers of its other subflows see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubflowWindow {
    /// The congestion window in bytes.
    pub cwnd: u64,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
}

/// A congestion controller. An endpoint owns one; it sees that endpoint's ACKs only, and as a subflow of an MPTCP
/// connection the windows of the others.
pub trait CongestionControl: fmt::Debug + Send {
    /// Returns whether the controller sets the window itself, as the head of this file describes; otherwise ssthresh
    /// does. Called once, when the endpoint is made.
    fn sets_window(&self) -> bool {
        false
    }

    /// Receives the number of switches on the way of the connection's packets. Called when a connection opens, where
    /// its path is known.
    fn on_path(&mut self, _switches: u32) {}

    /// The endpoint is subflow `own` of an MPTCP connection, whose subflows have these windows. Called before every
    /// segment that arrives.
    fn on_subflows(&mut self, _subflows: &[SubflowWindow], _own: usize) {}

    /// Takes note of every ACK of new data, before the window is cut or opened for it. A controller that sets the
    /// window does so here; the sender caps cwnd at `max_window`.
    fn on_ack(&mut self, _limits: &Limits, _window: &mut Window, _ack: &Ack) {}

    /// Opens the window for an ACK of new data. Not called during recovery, for ACKs whose ECE forbids growth, or while
    /// the application limits the sender. The sender caps cwnd at `max_window`. A controller that sets the window does
    /// not need it.
    fn grow(&mut self, _limits: &Limits, _window: &mut Window, _ack: &Ack) {}

    /// Returns the window in bytes after `cut`. The sender rounds it, applies the floors, and sets cwnd and ssthresh;
    /// after a timeout only ssthresh, cwnd being one segment. Where the controller sets the window, cwnd becomes this
    /// value.
    fn cut(&mut self, limits: &Limits, window: &Window, cut: &Cut) -> u64;

    /// Returns the rate, header included, at which segments leave at most; `None` for as fast as the window allows.
    /// Called before each segment. A rate of zero counts as none.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Called when transmission starts again after `idle` without sending.
    fn on_restart(&mut self, _idle: Span) {}

    /// Returns the smoothed share of marked bytes, for time series; 0 for a controller without one.
    fn alpha(&self) -> f64 {
        0.0
    }
}

/// Makes the controller of each endpoint: a closure, which may hold parameters.
#[derive(Clone)]
pub struct MakeController(Arc<Factory>);

type Factory = dyn Fn() -> Box<dyn CongestionControl> + Send + Sync;

impl MakeController {
    /// A factory that calls `make` for each endpoint.
    pub fn new(make: impl Fn() -> Box<dyn CongestionControl> + Send + Sync + 'static) -> MakeController {
        MakeController(Arc::new(make))
    }

    /// The controller of a new endpoint.
    pub(super) fn make(&self) -> Box<dyn CongestionControl> {
        (self.0)()
    }
}

impl fmt::Debug for MakeController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeController")
    }
}
