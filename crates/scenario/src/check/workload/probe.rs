//! Checks of `ping` and `ptp`.

use plimsoll_units::Span;

use super::Demand;
use crate::check::Checker;
use crate::model::{Ping, PingOver, Ptp, Topology};

impl Checker<'_> {
    pub(super) fn ping(&mut self, name: &str, ping: &Ping, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let from = self.host_named(&at("from"), &ping.from.0, topology);
        let to = self.host_named(&at("to"), &ping.to.0, topology);
        if let Some(host) = from.filter(|_| from == to) {
            let message = format!("host `{}` would talk to itself", topology.host_name(host));
            self.error(&at("to"), message, "a host other than `from`");
        }
        match ping.over {
            PingOver::Datagram => self.one_packet(&at("size"), ping.size),
            PingOver::Tcp => self.some_bytes(&at("size"), ping.size),
        }
        self.interval(&at("interval"), ping.interval);
        Demand { ends: ping.count.is_some(), start: ping.start, towards: None }
    }

    pub(super) fn ptp(&mut self, name: &str, ptp: &Ptp, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let server = self.host_named(&at("server"), &ptp.server.0, topology);
        self.members(&at("clients"), &ptp.clients, topology, server.as_slice());
        self.one_packet(&at("size"), ptp.size);
        self.interval(&at("interval"), ptp.interval);
        Demand { ends: ptp.count.is_some(), start: ptp.start, towards: None }
    }

    fn interval(&mut self, path: &[&str], interval: Span) {
        if interval.is_zero() {
            self.error(path, "all at once", "more than 0s");
        }
    }
}
