//! Two tiers: every leaf is connected to every spine.
//!
//! Ports after the NICs and the ports towards hosts: leaf up (leaf by leaf), then spine down.

use super::link::{Choices, Link, LinkClass, Node, host_links};

#[derive(Clone, Copy, Debug)]
pub(super) struct LeafSpine {
    pub(super) leaves: u32,
    pub(super) spines: u32,
    pub(super) hosts_per_leaf: u32,
}

impl LeafSpine {
    pub(super) fn links(&self, host: LinkClass, fabric: LinkClass) -> Vec<Link> {
        let LeafSpine { leaves, spines, hosts_per_leaf } = *self;
        let leaf = Node::Switch;
        let spine = |s| Node::Switch(leaves + s);
        let mut links: Vec<Link> =
            host_links(leaves * hosts_per_leaf, host, |h| h / hosts_per_leaf).collect();
        for l in 0..leaves {
            links.extend((0..spines).map(|s| fabric.link(leaf(l), spine(s), 0)));
        }
        for s in 0..spines {
            links.extend((0..leaves).map(|l| fabric.link(spine(s), leaf(l), 1)));
        }
        links
    }

    #[inline]
    pub(super) fn choices(&self, switch: u32, dst: u32) -> Choices {
        let LeafSpine { leaves, spines, hosts_per_leaf } = *self;
        let hosts = leaves * hosts_per_leaf;
        let dst_leaf = dst / hosts_per_leaf;
        if switch >= leaves {
            return Choices::one(2 * hosts + leaves * spines + (switch - leaves) * leaves + dst_leaf);
        }
        if switch == dst_leaf {
            return Choices::one(hosts + dst);
        }
        Choices { first: 2 * hosts + switch * spines, count: spines, tier: 0 }
    }
}
