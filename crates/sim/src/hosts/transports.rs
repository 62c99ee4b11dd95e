//! [`Transports`]: the parameters of the transports of a run, and which of them carries a workload.

use plimsoll_mechanisms::tcp::{Connections, TcpConfig};
use plimsoll_mechanisms::transports::Carrier;
use plimsoll_scenario::model::Model;

use crate::error::RunError;

/// The parameters of all transports.
#[derive(Debug)]
pub(super) struct Transports {
    /// The parameters by number; workloads with equal transports share one.
    configs: Vec<TcpConfig>,
    /// By workload: the number of its transport.
    of_workload: Vec<u16>,
}

impl Transports {
    /// Resolves the transports of `model`.
    pub(super) fn new(model: &Model) -> Result<Transports, RunError> {
        let keys: Vec<_> =
            model.workload.keys().map(|name| (model.transport_of(name), model.controller_of(name))).collect();
        let (mut configs, mut of_workload, mut known) = (Vec::new(), Vec::new(), Vec::new());
        for (name, key) in model.workload.keys().zip(&keys) {
            let number = match known.iter().position(|other| *other == key) {
                Some(number) => number,
                None => {
                    known.push(key);
                    configs.push(model.transport_config(name)?);
                    known.len() - 1
                }
            };
            of_workload.push(number as u16);
        }
        Ok(Transports { configs, of_workload })
    }

    /// Returns the number of the transport that carries a workload.
    pub(super) fn number(&self, workload: u16) -> u16 {
        self.of_workload[usize::from(workload)]
    }

    /// Returns the parameters of a transport.
    #[inline]
    pub(super) fn get(&self, number: u16) -> &TcpConfig {
        &self.configs[usize::from(number)]
    }

    /// Returns the parameters of all transports.
    pub(super) fn all(&self) -> impl Iterator<Item = &TcpConfig> {
        self.configs.iter()
    }

    /// Returns the parameters of the transport that carries a workload.
    pub(super) fn of_workload(&self, workload: u16) -> &TcpConfig {
        self.get(self.number(workload))
    }

    /// Returns whether the connections of a workload are closed when they fall idle.
    pub(super) fn closes(&self, workload: u16) -> bool {
        self.of_workload(workload).params.connections == Connections::PerMessage
    }

    /// Returns whether a connection of a workload has one message, and sends nothing once both ends are idle and no
    /// timer runs: a receiver may grant credit that was not asked for.
    pub(super) fn puts_away(&self, workload: u16) -> bool {
        let config = self.of_workload(workload);
        let rests = match config.carrier() {
            Carrier::Stack | Carrier::Ndp => true,
            Carrier::Roce => !config.reads(),
            Carrier::Uet => !config.uet.has_credit,
            Carrier::Homa => false,
        };
        rests && self.closes(workload)
    }

    /// Returns whether the connections of some workload are closed when they fall idle.
    pub(super) fn close_when_idle(&self) -> bool {
        self.configs.iter().any(|config| config.params.connections == Connections::PerMessage)
    }
}
