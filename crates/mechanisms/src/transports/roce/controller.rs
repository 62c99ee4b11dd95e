//! [`Controller`]: the controllers of queue pairs, one file each.

mod dcqcn;
mod dctcp;
mod hpcc;
mod links;
mod powertcp;
mod round_trip;
mod swift;
mod timely;

use plimsoll_units::{Rate, Span, Time};

use super::config::RoceConfig;
use super::rate_control::{RateController, RoceAck, RoceController};
use crate::tcp::Cause;

pub use dcqcn::{DCQCN, Dcqcn, DcqcnForm, DcqcnParams};
pub use dctcp::{ROCE_DCTCP, RoceDctcp, RoceDctcpParams};
pub use hpcc::{HPCC, Hpcc, HpccForm, HpccParams, HpccReaction, HpccReferences};
pub use powertcp::{POWERTCP, PowerTcp, PowerTcpParams, THETA_POWERTCP};
pub use swift::{ROCE_SWIFT, RoceSwift};
pub use timely::{TIMELY, Timely, TimelyForm, TimelyParams};

/// The controllers, without indirection.
#[derive(Debug)]
pub(super) enum Controller {
    Dcqcn(Box<Dcqcn>),
    Hpcc(Box<Hpcc>),
    Timely(Box<Timely>),
    PowerTcp(Box<PowerTcp>),
    Dctcp(Box<RoceDctcp>),
    Swift(Box<RoceSwift>),
}

impl Controller {
    /// Makes the controller of a queue pair whose NIC sends at `line`, with an idle round trip of `round_trip` over
    /// `switches` switches.
    pub(super) fn new(config: &RoceConfig, line: Rate, round_trip: Span, switches: u32) -> Controller {
        let params = &config.params;
        match config.controller {
            RoceController::Hpcc => {
                Controller::Hpcc(Box::new(Hpcc::new(params.hpcc.clone(), line, round_trip)))
            }
            RoceController::Timely => Controller::Timely(Box::new(Timely::new(params.timely.clone(), line))),
            RoceController::PowerTcp => Controller::PowerTcp(Box::new(PowerTcp::by_telemetry(
                params.powertcp.clone(),
                line,
                round_trip,
            ))),
            RoceController::ThetaPowerTcp => {
                Controller::PowerTcp(Box::new(PowerTcp::by_delay(params.powertcp.clone(), line, round_trip)))
            }
            RoceController::Dctcp => {
                // A packet in a round trip.
                let increase = config.payload as f64 * 8.0 / round_trip.as_secs_f64();
                let increase = Rate::from_bps(increase.round().max(1.0) as u64);
                Controller::Dctcp(Box::new(RoceDctcp::new(&params.dctcp, &config.dctcp, line, increase)))
            }
            RoceController::Swift => {
                let bytes = [config.payload, config.header, config.max_window];
                Controller::Swift(Box::new(RoceSwift::new(config.swift, bytes, line, round_trip, switches)))
            }
            RoceController::Dcqcn => Controller::Dcqcn(Box::new(Dcqcn::new(params.dcqcn.clone(), line))),
        }
    }
}

/// Calls a method of whichever controller it is.
macro_rules! of_each {
    ($self:ident, $own:ident => $call:expr) => {
        match $self {
            Controller::Dcqcn($own) => $call,
            Controller::Hpcc($own) => $call,
            Controller::Timely($own) => $call,
            Controller::PowerTcp($own) => $call,
            Controller::Dctcp($own) => $call,
            Controller::Swift($own) => $call,
        }
    };
}

impl RateController for Controller {
    fn on_ack(&mut self, ack: &RoceAck) {
        of_each!(self, own => own.on_ack(ack));
    }

    fn on_cnp(&mut self, now: Time) {
        of_each!(self, own => own.on_cnp(now));
    }

    fn on_loss(&mut self, now: Time, cause: Cause) {
        of_each!(self, own => own.on_loss(now, cause));
    }

    fn on_sent(&mut self, now: Time, bytes: u64) {
        of_each!(self, own => own.on_sent(now, bytes));
    }

    fn deadline(&self) -> Time {
        of_each!(self, own => own.deadline())
    }

    fn on_deadline(&mut self, now: Time) {
        of_each!(self, own => own.on_deadline(now));
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
