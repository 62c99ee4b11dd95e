//! The division of the switches' memories in words, for `plimsoll scenario check`.

use plimsoll_fabric::net::Node;
use plimsoll_fabric::{SwitchMemory, lossless_memories, port_name};
use plimsoll_mechanisms::lossless::HeadroomTerms;
use plimsoll_units::Bytes;

use crate::model::Model;

impl Model {
    /// Describes how `lossless` divides the memories of the switches, each different division once: the parts, the
    /// thresholds, and the terms of each different headroom.
    pub fn memories_in_words(&self) -> Vec<String> {
        let Ok(spec) = self.fabric_spec() else { return Vec::new() };
        let name_of = |node| self.topology.node_name(node);
        let mut texts = Vec::new();
        let mut known: Vec<SwitchMemory> = Vec::new();
        for memory in lossless_memories(&spec, &name_of).unwrap_or_default() {
            let plan = memory.buffers.plan();
            if known.iter().any(|known| known.tier == memory.tier && known.buffers.plan() == plan) {
                continue;
            }
            let links = memory.links.len() as u64;
            let reserve = Bytes::new(plan.reserve * plan.priorities * links);
            let headroom = Bytes::new(plan.headroom.iter().sum::<u64>() * plan.lossless_in_use);
            let mut text = format!(
                "port.{}.lossless, as in {} with {links} links:\n  memory: {} shared, {reserve} of reserve, \
                 {headroom} of headroom\n  threshold: {} for one link and priority alone; {} for each where all use \
                 theirs; ECN thresholds below {} mark before a pause\n",
                spec.network.tiers()[usize::from(memory.tier)],
                name_of(Node::Switch(memory.switch)),
                Bytes::new(plan.shared),
                plan.alone(),
                plan.together(),
                plan.ecn_first_below(),
            );
            let mut terms: Vec<HeadroomTerms> = Vec::new();
            for ((port, needed), kept) in memory.links.iter().zip(&plan.needed).zip(&plan.headroom) {
                if !terms.contains(needed) {
                    terms.push(*needed);
                    let (name, kept) = (port_name(&spec.network, *port, &name_of), Bytes::new(*kept));
                    text.push_str(&format!("  headroom of {name}: {kept}, needs {needed}\n"));
                }
            }
            texts.push(text);
            known.push(memory);
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Scenario;

    #[test]
    fn a_division_is_described_once() {
        let text = "version = 1\ntitle = 't'\nrun.duration = '1ms'\n\
                    [topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\n\
                    hosts_per_leaf = 4\nrate = '10Gbps'\nfabric_rate = '40Gbps'\ndelay = '1us'\n\
                    [port.switch.lossless]\nmemory = '1MB'\nreserve = '2KB'\n\
                    [workload.w]\nkind = 'transfer'\nsize = '10KB'\nload = 0.1\n";
        let scenario = Scenario::parse("t.toml", text, Path::new(".")).unwrap();
        let texts = scenario.points()[0].model.memories_in_words();
        assert_eq!(texts.len(), 2, "{texts:?}");
        let lines: Vec<&str> = texts[0].lines().collect();
        let parts = "  memory: 930.496KB shared, 12KB of reserve, 57.504KB of headroom";
        let thresholds = "  threshold: 103.388KB for one link and priority alone; 66.464KB for each where all use \
                          theirs; ECN thresholds below 17.231KB mark before a pause";
        assert_eq!(lines[..3], ["port.leaf.lossless, as in leaf0 with 6 links:", parts, thresholds]);
        let host = "  headroom of h0 -> leaf0: 7.084KB, needs 7.084KB: 1.5KB that cross the threshold, ";
        assert!(lines[3].starts_with(host), "{}", lines[3]);
        assert!(lines[4].starts_with("  headroom of spine0 -> leaf0: 14.584KB, needs 14.584KB: "));
        assert_eq!(lines.len(), 5);
    }
}
