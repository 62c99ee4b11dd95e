//! [`CongestionControl`]: what a congestion controller sees, and what it decides.
//!
//! The sender decides *when* to cut (once a window, RFC 5681 and RFC 3168) and applies the floors; a
//! controller only says *to what*. The built-in controllers are in [`super::controller`].

use std::fmt;

use plimsoll_units::{Span, Time};

use super::config::Config;
use super::params::CutBase;

/// The congestion window and what steers its growth, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow start threshold; `u64::MAX` while slow start has no end.
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

/// An ACK of new data.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// The acknowledgement number.
    pub ack: u64,
    /// SND.NXT: the next offset to be sent.
    pub nxt: u64,
    /// Whether it carries ECE.
    pub ece: bool,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
}

/// What happened to the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A loss found by duplicate ACKs.
    Loss,
    /// A loss found by the retransmission timer.
    Timeout,
    /// A mark.
    Ecn,
}

/// Why and from what the window is to be cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The reason.
    pub cause: Cause,
    /// The bytes to take the share of: `cut_from` for a loss, and the window for a mark.
    pub base: u64,
    /// First unacknowledged offset.
    pub una: u64,
}

impl Cut {
    /// A cut of `window` for `cause` while `flight` bytes are outstanding.
    pub(super) fn new(config: &Config, window: &Window, cause: Cause, flight: u64, una: u64) -> Cut {
        let base = match (cause, config.cut_from) {
            (Cause::Loss | Cause::Timeout, CutBase::Flight) => flight,
            _ => window.cwnd.min(config.max_window),
        };
        Cut { cause, base, una }
    }
}

/// A congestion controller. An endpoint owns one; it sees that endpoint's ACKs only.
pub trait CongestionControl: fmt::Debug + Send {
    /// Takes note of every ACK of new data, before the window is cut or opened for it.
    fn on_ack(&mut self, _config: &Config, _ack: &Ack) {}

    /// Opens the window for an ACK of new data. Not called during recovery, for ACKs whose ECE forbids
    /// growth, or while the application limits what is sent. The sender caps cwnd at `max_window`.
    fn grow(&mut self, config: &Config, window: &mut Window, ack: &Ack);

    /// The window in bytes after `cut`. The sender rounds it, applies the floors, and sets cwnd and
    /// ssthresh; after a timeout only ssthresh, cwnd being one segment.
    fn cut(&mut self, config: &Config, window: &Window, cut: &Cut) -> u64;

    /// Nothing was sent for `idle`; transmission starts again now.
    fn on_restart(&mut self, _idle: Span) {}

    /// The smoothed share of marked bytes, for time series; 0 if there is no such thing.
    fn alpha(&self) -> f64 {
        0.0
    }
}

/// Makes a controller for one endpoint.
pub type MakeController = fn(&Config) -> Box<dyn CongestionControl>;
