//! [`RateController`]: what a controller of a queue pair learns, and its decisions.
//!
//! ```text
//! ACK with stamps, CNP, bytes sent, timer ──> RateController ──> rate; a window, where it has its own
//! ```

use plimsoll_units::{Rate, Span, Time};

use crate::tcp::{Ack, Cause};
use crate::telemetry::Stamps;

/// The controllers of queue pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoceController {
    /// DCQCN, which cuts the rate by notifications of marks (Zhu et al., SIGCOMM 2015).
    Dcqcn,
    /// HPCC, which sets the window by telemetry (Li et al., SIGCOMM 2019).
    Hpcc,
    /// TIMELY, which sets the rate by the gradient of the round-trip time (Mittal et al., SIGCOMM 2015).
    Timely,
    /// PowerTCP, which sets the rate by arrivals and queues in telemetry (Addanki et al., NSDI 2022).
    PowerTcp,
    /// PowerTCP by round-trip times.
    ThetaPowerTcp,
    /// DCTCP, which cuts the rate by the share of marked bytes (RFC 8257).
    Dctcp,
    /// Swift, which sets the window by the delay (Kumar et al., SIGCOMM 2020).
    Swift,
}

/// An acknowledgement, as a queue pair passes it to its controller.
#[derive(Clone, Copy, Debug)]
pub struct RoceAck<'a> {
    /// The time at which it arrived.
    pub now: Time,
    /// The number of the packet that caused it. Packets are numbered from 0 in the order in which they were sent, each
    /// transmission by itself, so that a repair does not bring old numbers back.
    pub echo: u64,
    /// How many packets have been sent.
    pub sent: u64,
    /// The bytes that it newly acknowledges.
    pub acked: u64,
    /// Whether there is more data to be sent.
    pub has_more: bool,
    /// Whether it echoes a mark; only for controllers that have no CNPs.
    pub is_marked: bool,
    /// The round-trip time of the packet that caused the acknowledgement, from when the NIC took it from the queue
    /// pair; `None` where a later packet's has come before.
    pub rtt: Option<Span>,
    /// The stamps of the data that it acknowledges, if ports wrote some.
    pub stamps: Option<&'a Stamps>,
}

impl RoceAck<'_> {
    /// Returns an acknowledgement of nothing, at `now`.
    pub fn at(now: Time) -> RoceAck<'static> {
        RoceAck {
            now,
            echo: 0,
            sent: 0,
            acked: 0,
            has_more: false,
            is_marked: false,
            rtt: None,
            stamps: None,
        }
    }

    /// Returns the acknowledgement as a controller of TCP sees it, with packets in the place of stream offsets.
    pub(super) fn of_tcp(&self, srtt: Span, window_limited: bool) -> Ack {
        let RoceAck { now, acked, echo, sent: nxt, is_marked: ece, rtt, .. } = *self;
        let ack = echo + 1;
        Ack { now, acked, ack, nxt, ece, rtt, srtt, window_limited }
    }
}

/// The controller of a queue pair.
pub trait RateController {
    /// Takes note of an acknowledgement.
    fn on_ack(&mut self, _ack: &RoceAck) {}

    /// Takes note of a congestion notification packet.
    fn on_cnp(&mut self, _now: Time) {}

    /// A packet was lost, as a NAK or a timeout says.
    fn on_loss(&mut self, _now: Time, _cause: Cause) {}

    /// A data packet of `bytes` bytes was sent, its headers included.
    fn on_sent(&mut self, _now: Time, _bytes: u64) {}

    /// Returns when [`on_deadline`](RateController::on_deadline) must be called; [`Time::MAX`] if never.
    fn deadline(&self) -> Time {
        Time::MAX
    }

    /// Handles the deadline that has passed.
    fn on_deadline(&mut self, _now: Time) {}

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
