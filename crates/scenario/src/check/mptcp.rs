//! Checks `transport.mptcp` against the rest of a scenario.

use plimsoll_mechanisms::mptcp::{Coupling, Paths};
use plimsoll_mechanisms::tcp::Kind;

use super::Checker;
use crate::model::Model;

impl Checker<'_> {
    /// MPTCP with what it does not go with.
    pub(super) fn mptcp(&mut self, model: &Model) {
        let (transport, outside) = (&model.transport, &model.outside);
        let Some(mptcp) = &transport.mptcp else { return };
        let path = |key| ["transport", "mptcp", key];
        for name in mptcp.workloads.iter().flatten() {
            self.known_workload(&path("workloads"), name, model);
        }
        let is_linked = mptcp.coupling == Coupling::Lia;
        for name in model.workload.keys().filter(|name| is_linked && mptcp.is_for(name)) {
            let from_outside = outside.workload_controllers.get(name).map(|own| &own.name);
            let from_outside = from_outside.or(outside.controller.as_ref().map(|own| &own.name));
            let kind = transport.kind_of(name);
            if from_outside.is_some() || kind != Kind::Tcp {
                let kind = from_outside.map_or(kind.name(), |name| name.as_str());
                let message = format!("`lia` takes the place of `tcp`, and workload `{name}` has `{kind}`");
                self.error(&path("coupling"), message, "\"uncoupled\" with other congestion controllers");
                break;
            }
        }
        if transport.restart_on_write {
            let message =
                "the scheduler writes segment by segment, so every segment would restart the window";
            self.error(&["transport", "restart_on_write"], message, "false with transport.mptcp");
        }
        if model.host.bursts().is_some_and(|bursts| bursts.segmentation.get() > 0) {
            let message = "segmentation offload of MPTCP is not modelled";
            self.error(&["host", "bursts", "segmentation"], message, "\"0B\" with transport.mptcp");
        }
        let tiers = model.topology.tiers().iter().map(|tier| (*tier, model.port.of_tier(tier)));
        let mut ports = tiers.chain([("host", &model.port.host)]);
        if let Some((name, _)) = ports.find(|(_, port)| port.pfabric().is_some()) {
            let message = "a packet of MPTCP carries the data ACK where pFabric's queue has its rank";
            self.error(&["port", name, "pfabric"], message, "\"off\" with transport.mptcp");
        }
        if mptcp.paths == Paths::Classes && model.topology.kind() != "hybrid" {
            let message = "there are no circuits in this network, so subflows differ as with `hash`";
            self.warn(&path("paths"), message, "use `topology.kind = \"hybrid\"`, or `paths = \"distinct\"`");
        }
    }
}
