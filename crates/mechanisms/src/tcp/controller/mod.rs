//! Congestion controllers: how the window opens, and to what it is cut.
//!
//! The sender decides *when* to cut (once a window, RFC 5681 and RFC 3168) and applies the floors; a
//! controller only says *to what*. Built-in controllers are arms of [`Controller`]; anything else
//! implements [`CongestionControl`] and comes in through [`Config::custom`].

mod cubic;
mod dctcp;
mod reno;

use std::fmt;

use plimsoll_units::{Span, Time};

use super::config::Config;
use super::params::{CutBase, Kind};

pub use cubic::Cubic;
pub use dctcp::{Dctcp, reduced_window, updated_alpha};

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

/// The controller of an endpoint.
#[derive(Debug)]
pub enum Controller {
    /// Reno (RFC 5681): has no state beyond the window.
    Reno,
    /// CUBIC (RFC 9438).
    Cubic(Cubic),
    /// DCTCP (RFC 8257).
    Dctcp(Dctcp),
    /// Made by [`Config::custom`].
    Custom(Box<dyn CongestionControl>),
}

impl Controller {
    pub(super) fn new(config: &Config) -> Controller {
        match (config.custom, config.kind) {
            (Some(make), _) => Controller::Custom(make(config)),
            (None, Kind::Tcp) => Controller::Reno,
            (None, Kind::Cubic) => Controller::Cubic(Cubic::default()),
            (None, Kind::Dctcp) => Controller::Dctcp(Dctcp::new(config)),
        }
    }

    #[inline]
    pub(super) fn on_ack(&mut self, config: &Config, ack: &Ack) {
        match self {
            Controller::Reno | Controller::Cubic(_) => {}
            Controller::Dctcp(dctcp) => dctcp.on_ack(config, ack),
            Controller::Custom(custom) => custom.on_ack(config, ack),
        }
    }

    #[inline]
    pub(super) fn grow(&mut self, config: &Config, window: &mut Window, ack: &Ack) {
        match self {
            Controller::Reno | Controller::Dctcp(_) => reno::grow(config, window, ack.acked),
            Controller::Cubic(cubic) => cubic.grow(config, window, ack),
            Controller::Custom(custom) => custom.grow(config, window, ack),
        }
        window.cwnd = window.cwnd.min(config.max_window);
    }

    pub(super) fn cut(&mut self, config: &Config, window: &Window, cut: &Cut) -> u64 {
        match self {
            Controller::Reno => cut.base / 2,
            Controller::Cubic(cubic) => cubic.cut(config, window, cut),
            Controller::Dctcp(dctcp) => dctcp.cut(cut),
            Controller::Custom(custom) => custom.cut(config, window, cut),
        }
    }

    pub(super) fn on_restart(&mut self, idle: Span) {
        match self {
            Controller::Reno | Controller::Dctcp(_) => {}
            Controller::Cubic(cubic) => cubic.on_restart(idle),
            Controller::Custom(custom) => custom.on_restart(idle),
        }
    }

    pub(super) fn alpha(&self) -> f64 {
        match self {
            Controller::Reno | Controller::Cubic(_) => 0.0,
            Controller::Dctcp(dctcp) => dctcp.alpha(),
            Controller::Custom(custom) => custom.alpha(),
        }
    }
}
