//! [`Config`]: what both ends of an MPTCP connection go by.

use super::lia::Lia;
use super::params::{Coupling, MptcpParams, Scheduler};
use crate::tcp::{self, MakeController};

/// The configuration of an MPTCP connection, resolved.
#[derive(Clone, Debug)]
pub struct Config {
    /// The configuration of each subflow. Its `max_window` is also the receive window that the subflows share.
    pub tcp: tcp::Config,
    /// The number of subflows, at least 1.
    pub subflows: usize,
    /// Which subflow sends next.
    pub scheduler: Scheduler,
}

impl MptcpParams {
    /// Resolves the parameters of connections whose subflows are as `tcp` says. A controller that `tcp` brings from
    /// outside stays: it may couple the subflows in its own way.
    pub fn resolve(&self, mut tcp: tcp::Config) -> Config {
        if self.coupling == Coupling::Lia && tcp.custom.is_none() {
            tcp.custom = Some(MakeController::new(|| Box::<Lia>::default()));
        }
        Config { tcp, subflows: self.subflows as usize, scheduler: self.scheduler }
    }
}
