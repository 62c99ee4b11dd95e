//! [`RateController`]: what a controller of a queue pair learns, and its decisions. One file a controller.
//!
//! ```text
//! ACK with stamps, CNP, bytes sent, timer ──> RateController ──> rate; a window, where it has its own
//! ```

mod dcqcn;
mod hpcc;

use plimsoll_units::{Rate, Span, Time};

use super::config::RoceConfig;
use crate::telemetry::Stamps;
use crate::transports::Kind;

pub use dcqcn::{DCQCN, Dcqcn, DcqcnForm, DcqcnParams};
pub use hpcc::{HPCC, Hpcc, HpccParams};

/// An acknowledgement, as a queue pair passes it to its controller.
#[derive(Clone, Copy, Debug)]
pub struct RoceAck<'a> {
    /// When it arrived.
    pub now: Time,
    /// The next offset that the other end expects.
    pub ack: u64,
    /// The next offset to be sent.
    pub nxt: u64,
    /// The stamps of the data that it acknowledges, if ports wrote some.
    pub stamps: Option<&'a Stamps>,
}

/// The controller of a queue pair.
pub trait RateController {
    /// Takes note of an acknowledgement.
    fn on_ack(&mut self, _config: &RoceConfig, _ack: &RoceAck) {}

    /// Takes note of a congestion notification packet.
    fn on_cnp(&mut self, _config: &RoceConfig, _now: Time) {}

    /// A data packet of `bytes` bytes was sent, its headers included.
    fn on_sent(&mut self, _config: &RoceConfig, _now: Time, _bytes: u64) {}

    /// Returns when [`on_deadline`](RateController::on_deadline) must be called; [`Time::MAX`] if never.
    fn deadline(&self) -> Time {
        Time::MAX
    }

    /// Handles the deadline that has passed.
    fn on_deadline(&mut self, _config: &RoceConfig, _now: Time) {}

    /// Returns the rate at which packets leave, headers included.
    fn rate(&self) -> Rate;

    /// Returns the bytes of payload that may be outstanding; `None` where the controller has no window of its own.
    fn window(&self) -> Option<u64> {
        None
    }

    /// Returns DCQCN's alpha, the estimate of congestion; 0 for others.
    fn alpha(&self) -> f64 {
        0.0
    }
}

/// The controllers, without indirection.
#[derive(Debug)]
pub(super) enum Controller {
    Dcqcn(Dcqcn),
    Hpcc(Box<Hpcc>),
}

impl Controller {
    /// Makes the controller of a queue pair whose NIC sends at `line`, with an idle round trip of `round_trip`.
    pub(super) fn new(config: &RoceConfig, line: Rate, round_trip: Span) -> Controller {
        match config.kind {
            Kind::Hpcc => Controller::Hpcc(Box::new(Hpcc::new(config, line, round_trip))),
            _ => Controller::Dcqcn(Dcqcn::new(line)),
        }
    }
}

/// Calls a method of whichever controller it is.
macro_rules! of_each {
    ($self:ident, $own:ident => $call:expr) => {
        match $self {
            Controller::Dcqcn($own) => $call,
            Controller::Hpcc($own) => $call,
        }
    };
}

impl RateController for Controller {
    fn on_ack(&mut self, config: &RoceConfig, ack: &RoceAck) {
        of_each!(self, own => own.on_ack(config, ack));
    }

    fn on_cnp(&mut self, config: &RoceConfig, now: Time) {
        of_each!(self, own => own.on_cnp(config, now));
    }

    fn on_sent(&mut self, config: &RoceConfig, now: Time, bytes: u64) {
        of_each!(self, own => own.on_sent(config, now, bytes));
    }

    fn deadline(&self) -> Time {
        of_each!(self, own => own.deadline())
    }

    fn on_deadline(&mut self, config: &RoceConfig, now: Time) {
        of_each!(self, own => own.on_deadline(config, now));
    }

    fn rate(&self) -> Rate {
        of_each!(self, own => own.rate())
    }

    fn window(&self) -> Option<u64> {
        of_each!(self, own => own.window())
    }

    fn alpha(&self) -> f64 {
        of_each!(self, own => own.alpha())
    }
}
