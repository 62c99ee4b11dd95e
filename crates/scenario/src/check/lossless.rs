//! Checks `port.*.lossless`: what excludes it, and a memory that its links can share.

use plimsoll_fabric::{SwitchMemory, Unbuildable, lossless_memories};
use plimsoll_mechanisms::Mechanism;
use plimsoll_mechanisms::lossless::LosslessParams;
use plimsoll_units::Bytes;

use super::Checker;
use super::port::keys;
use crate::model::Model;

impl Checker<'_> {
    /// Checks the tables of the NIC and of every tier, and divides the memories of the switches.
    pub(super) fn lossless(&mut self, model: &Model) {
        let before = self.found.errors.len();
        let tiers = model.topology.tiers().iter().map(|tier| (*tier, model.port.of_tier(tier)));
        let all = tiers.chain([("host", &model.port.host)]);
        let with: Vec<_> = all.filter(|(_, port)| port.lossless().is_some()).collect();
        for (name, port) in &with {
            let path = self.path_of(name, "lossless");
            let others = [
                ("pfc", port.pfc().is_some(), "has a buffer for each link"),
                ("shared_buffer", port.shared_buffer().is_some(), "has another memory of the switch"),
                ("trim", port.trim().is_some(), "cuts packets that have no room"),
            ];
            if *name == "host" {
                self.error(&keys(&path), "no link leads into a NIC", "switch ports only");
            } else if let Some((other, _, does)) = others.into_iter().find(|(_, is_on, _)| *is_on) {
                let help = format!("turn one off: `lossless = \"off\"` or `{other} = \"off\"`");
                self.error(&keys(&path), format!("{other} {does}"), help);
            }
            // The text that shows a scenario has every default, beside a threshold as well.
            let has_both = |own: &LosslessParams| {
                own.threshold.is_some() && own.alpha != LosslessParams::default().alpha
            };
            if port.lossless().is_some_and(has_both) {
                let message = "`threshold` is fixed, and takes the place of `alpha`";
                self.error(
                    &[&path[0], &path[1], &path[2], "alpha"],
                    message,
                    "one of `alpha` and `threshold`",
                );
            }
        }
        // Values out of range and faults of links that are missing are reported where they are.
        let in_range = |params: &LosslessParams| params.validate().is_ok();
        let all_in_range = with.iter().all(|(_, port)| port.lossless().is_none_or(in_range));
        if with.is_empty() || !all_in_range || self.found.errors.len() > before {
            return;
        }
        let Ok(spec) = model.fabric_spec() else { return };
        match lossless_memories(&spec, &|node| model.topology.node_name(node)) {
            Ok(memories) => self.memories(&memories, spec.network.tiers(), model.packet_bytes()),
            Err(Unbuildable { key, problem }) => {
                let path = self.path_of(key.split('.').nth(1).unwrap_or("switch"), "lossless");
                let allowed =
                    "parts that fit into `memory`, `headroom` for every link, and `quanta` for a refresh";
                self.error(&keys(&path), problem, allowed);
            }
        }
    }

    fn memories(&mut self, memories: &[SwitchMemory], tiers: &[&str], packet: u64) {
        for (number, tier) in (0..).zip(tiers) {
            let mut of_tier = memories.iter().filter(|memory| memory.tier == number).peekable();
            let path = self.path_of(tier, "lossless");
            if of_tier.peek().is_some_and(|memory| memory.buffers.plan().lossless_in_use == 0) {
                self.warn(
                    &keys(&path),
                    "no packet has a lossless priority",
                    "`priorities` that packets have",
                );
            }
            let alone =
                memories.iter().filter(|memory| memory.tier == number).map(|of| of.buffers.plan().alone());
            if let Some(alone) = alone.min().filter(|alone| alone.get() < packet) {
                let message = format!(
                    "each full packet ({packet} B) pauses its sender: the threshold is {alone} at most"
                );
                self.warn(&keys(&path), message, "a larger `memory`, `alpha` or `threshold`");
            }
            let too_high = |memory: &SwitchMemory| {
                let plan = memory.buffers.plan();
                plan.fixed_threshold().filter(|threshold| threshold.get() > plan.shared).map(|_| plan.shared)
            };
            if let Some(shared) = memories.iter().filter(|memory| memory.tier == number).find_map(too_high) {
                let shared = Bytes::new(shared);
                let message = format!(
                    "it is never reached: {shared} are shared, and senders are paused once they are full"
                );
                let key = [&path[0], &path[1], &path[2], "threshold"];
                self.warn(&key, message, format!("at most {shared}, or a larger `memory`"));
            }
            if let Some(problem) = of_tier.find_map(|memory| memory.too_small.as_ref()) {
                self.warn(&keys(&path), problem, "leave `headroom` out for what every link needs");
            }
        }
    }
}
