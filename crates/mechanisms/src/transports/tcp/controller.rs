//! [`Controller`]: the built-in congestion controllers, one file each, and the one from outside.
//!
//! A controller from outside implements [`CongestionControl`] and is configured by [`Config::custom`].

mod cubic;
mod dctcp;
mod reno;
mod swift;

use plimsoll_units::{Rate, Span};

use super::config::TcpConfig;
use super::congestion::{Ack, CongestionControl, Cut, SubflowWindow, Window};
use crate::transports::Kind;

pub use cubic::{CUBIC, Cubic, CubicParams};
pub use dctcp::{DCTCP, DctcpEstimator, DctcpParams, reduced_window, updated_alpha};
pub use reno::RENO;
pub use swift::{SWIFT, Swift, SwiftParams};

/// The congestion controller of an endpoint: a built-in one without indirection, or a boxed one.
#[derive(Debug)]
pub enum Controller {
    /// Reno has no state beyond the window (RFC 5681).
    Reno,
    /// CUBIC's window is a cubic function of time (RFC 9438).
    Cubic(Cubic),
    /// DCTCP cuts by the share of marked bytes (RFC 8257).
    Dctcp(DctcpEstimator),
    /// A controller that is called through its trait, such as one that [`Config::custom`] makes.
    Boxed(Box<dyn CongestionControl>),
}

impl Controller {
    pub(super) fn new(config: &TcpConfig) -> Controller {
        match (&config.custom, config.params.kind) {
            (Some(factory), _) => Controller::Boxed(factory.make()),
            (None, Kind::Cubic) => Controller::Cubic(Cubic::default()),
            (None, Kind::Dctcp) => Controller::Dctcp(DctcpEstimator::new(config.initial_alpha)),
            (None, Kind::Swift) => Controller::Boxed(Box::new(Swift::new(config.params.swift))),
            // `tcp`. Datagrams and queue pairs have no endpoint of TCP.
            (None, _) => Controller::Reno,
        }
    }

    /// Returns whether the controller sets the window itself.
    pub(super) fn sets_window(&self) -> bool {
        match self {
            Controller::Reno | Controller::Cubic(_) | Controller::Dctcp(_) => false,
            Controller::Boxed(controller) => controller.sets_window(),
        }
    }

    /// Returns whether the controller is called through its trait: it may pace, and take account of the path.
    pub(super) fn is_boxed(&self) -> bool {
        matches!(self, Controller::Boxed(_))
    }

    pub(super) fn on_path(&mut self, switches: u32) {
        match self {
            Controller::Reno | Controller::Cubic(_) | Controller::Dctcp(_) => {}
            Controller::Boxed(controller) => controller.on_path(switches),
        }
    }

    pub(super) fn on_subflows(&mut self, subflows: &[SubflowWindow], own: usize) {
        match self {
            Controller::Reno | Controller::Cubic(_) | Controller::Dctcp(_) => {}
            Controller::Boxed(controller) => controller.on_subflows(subflows, own),
        }
    }

    /// An ACK of new data. True if the window may have changed.
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        config: &TcpConfig,
        window: &mut Window,
        ack: &Ack,
        is_window_limited: impl FnOnce(&Window) -> bool,
    ) -> bool {
        match self {
            Controller::Reno | Controller::Cubic(_) => return false,
            Controller::Dctcp(dctcp) => {
                dctcp.on_ack(config.dctcp_gain, ack);
                return false;
            }
            Controller::Boxed(controller) => {
                let ack = Ack { window_limited: is_window_limited(window), ..*ack };
                controller.on_ack(&config.limits(), window, &ack);
            }
        }
        window.cwnd = window.cwnd.min(config.max_window);
        true
    }

    #[inline]
    pub(super) fn grow(&mut self, config: &TcpConfig, window: &mut Window, ack: &Ack) {
        match self {
            Controller::Cubic(cubic) if !window.in_slow_start() => {
                cubic.grow(&config.params.cubic, config.segment, window, ack);
            }
            // CUBIC's slow start is Reno's (RFC 9438, section 4.10).
            Controller::Reno | Controller::Dctcp(_) | Controller::Cubic(_) => {
                reno::grow(config.params.growth, config.segment, window, ack.acked);
            }
            // A copy: the other controllers' arguments stay in registers.
            Controller::Boxed(controller) => controller.grow(&config.limits(), window, &{ *ack }),
        }
        window.cwnd = window.cwnd.min(config.max_window);
    }

    pub(super) fn cut(&mut self, config: &TcpConfig, window: &Window, cut: &Cut) -> u64 {
        match self {
            Controller::Reno => cut.base / 2,
            Controller::Cubic(cubic) => cubic.cut(&config.params.cubic, &config.limits(), window, cut),
            Controller::Dctcp(dctcp) => dctcp.cut(cut),
            Controller::Boxed(controller) => controller.cut(&config.limits(), window, cut),
        }
    }

    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        match self {
            Controller::Reno | Controller::Cubic(_) | Controller::Dctcp(_) => None,
            Controller::Boxed(controller) => controller.pacing_rate(),
        }
    }

    pub(super) fn on_restart(&mut self, idle: Span) {
        match self {
            Controller::Reno | Controller::Dctcp(_) => {}
            Controller::Cubic(cubic) => cubic.on_restart(idle),
            Controller::Boxed(controller) => controller.on_restart(idle),
        }
    }

    pub(super) fn alpha(&self) -> f64 {
        match self {
            Controller::Reno | Controller::Cubic(_) => 0.0,
            Controller::Dctcp(dctcp) => dctcp.alpha(),
            Controller::Boxed(controller) => controller.alpha(),
        }
    }
}
