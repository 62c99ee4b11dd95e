//! Circuits: their control loop, and what does not go together with them.

use plimsoll_circuits::InvalidControl;
use plimsoll_fabric::circuit_drain;

use super::Checker;
use crate::model::{Model, Topology};

impl Checker<'_> {
    pub(super) fn circuits(&mut self, model: &Model) {
        let is_hybrid = matches!(model.topology, Topology::Hybrid(_));
        let Some(control) = &model.circuits else {
            return if is_hybrid {
                self.beside_circuits(model)
            };
        };
        if !is_hybrid {
            let kind = model.topology.kind();
            let message = format!("a topology of kind `{kind}` has no circuits");
            return self.error(&["circuits"], message, "the topology `hybrid`, or no such table");
        }
        for (key, names) in [("packet_only", &control.packet_only), ("circuit_only", &control.circuit_only)] {
            for name in names {
                let end = [".client", ".server"].into_iter().find_map(|end| name.strip_suffix(end));
                self.known_workload(&["circuits", key], end.unwrap_or(name), model);
            }
        }
        if let Some(both) = control.packet_only.iter().find(|name| control.circuit_only.contains(name)) {
            let message = format!("`{both}` is to go by the packet switch only, and by circuits only");
            self.error(&["circuits", "circuit_only"], message, "one of the two");
        }
        let full_size = model.packet_bytes();
        let drain = model.topology.network().ok().and_then(|network| circuit_drain(&network, full_size));
        if let Some(drain) = drain
            && let Err(InvalidControl { key, problem, allowed }) = control.validate(drain)
        {
            self.error(&["circuits", key], problem, allowed);
        }
        self.beside_circuits(model);
    }

    /// Mechanisms that choose what circuits and their hosts' queues choose.
    fn beside_circuits(&mut self, model: &Model) {
        let has_paths = matches!(&model.topology, Topology::Hybrid(hybrid) if hybrid.packet.is_some());
        let selectors = if has_paths { Vec::new() } else { model.paths.mechanisms().active() };
        let outside = model.outside.selector.iter().filter(|_| !has_paths);
        let outside = outside.map(|outside| outside.name.as_str());
        if let Some(selector) = selectors.iter().map(|active| active.table.key).chain(outside).next() {
            let message = "in a hybrid network hosts choose the switch, and there is one path by each";
            self.error(
                &["paths", selector],
                message,
                "off, or a network with several paths in `topology.packet`",
            );
        }
        if model.has_flow_control() {
            let message = "flow control would pause the circuits' queues as well";
            self.error(&["port"], message, "`pfc` and `lossless` off in a hybrid network");
        }
        if let Some(active) =
            model.port.host.mechanisms().active().iter().find(|active| active.table.limits_queue)
        {
            let message =
                format!("`{}` orders the queue, which a host has for each destination", active.table.key);
            self.error(&["port", "host", active.table.key], message, "off, in a hybrid network");
        }
    }
}
