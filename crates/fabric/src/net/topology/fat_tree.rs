//! The k-ary fat-tree: the Clos network in which every switch has as many links up as down.

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Kind, Racks, TopologyCheck};
use super::link::{LinkClass, Node};
use super::{Clos, ClosShape, Network};
use crate::Unbuildable;

/// The k-ary fat-tree: k^3/4 hosts on k pods. Tier names: `edge`, `aggregation`, `core`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Ports of a switch; even, at least 2.
    pub k: u32,
    /// Rate of every link.
    pub rate: Rate,
    /// One-way propagation of every link.
    pub delay: Span,
}

impl FatTree {
    pub(super) const TIERS: &[&str] = Clos::TIERS;
}

impl Kind for FatTree {
    fn check(&self, check: &mut TopologyCheck) {
        if self.k < 2 || self.k % 2 == 1 {
            check.error("k", format!("a fat-tree of {} ports", self.k), "an even number, at least 2");
        }
        check.rate("rate", self.rate);
    }

    fn tiers(&self) -> &'static [&'static str] {
        FatTree::TIERS
    }

    fn hosts(&self) -> u64 {
        shape(self.k).hosts()
    }

    fn links(&self) -> u64 {
        shape(self.k).link_count()
    }

    fn switches(&self) -> Vec<u32> {
        shape(self.k).switches().to_vec()
    }

    fn switch_ports(&self, tier: usize) -> u32 {
        shape(self.k).switch_ports(tier)
    }

    fn host_rate(&self, _host: u32) -> Rate {
        self.rate
    }

    fn link_classes(&self) -> Vec<(Rate, Span)> {
        vec![(self.rate, self.delay)]
    }

    fn racks(&self) -> Option<Racks> {
        Some(Racks { name: "pods", count: self.k, hosts: self.k / 2 * (self.k / 2) })
    }

    fn with_racks(&self, count: u32) -> Option<String> {
        let half = self.k / 2;
        let FatTree { rate, delay, .. } = self;
        Some(format!(
            "topology={{kind=\"clos\",pods={count},edges={half},aggregations={half},cores={half},\
             hosts_per_edge={half},rate=\"{rate}\",delay=\"{delay}\"}}"
        ))
    }

    fn neighbours(&self, node: Node) -> Vec<Node> {
        shape(self.k).neighbours(node)
    }

    fn network(&self) -> Result<Network, Unbuildable> {
        Ok(Network::fat_tree(self.k, LinkClass { rate: self.rate, propagation: self.delay }))
    }
}

impl Network {
    /// Returns the k-ary fat-tree of Al-Fares et al. (SIGCOMM 2008): k^3/4 hosts (tiers `edge`, `aggregation`,
    /// `core`).
    ///
    /// # Panics
    /// If `k` is odd or zero; scenarios reject that.
    pub fn fat_tree(k: u32, class: LinkClass) -> Network {
        assert!(k >= 2 && k.is_multiple_of(2), "a fat-tree's k is even and at least 2, not {k}");
        Network::clos(shape(k), class, class, class)
    }
}

/// Returns the numbers of a fat-tree, also of one whose `k` is still to be rejected.
fn shape(k: u32) -> ClosShape {
    let half = k / 2;
    ClosShape { pods: k, edges: half, aggregations: half, cores: half, hosts_per_edge: half }
}
