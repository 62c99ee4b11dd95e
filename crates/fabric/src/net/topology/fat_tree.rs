//! The k-ary fat-tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores.
//!
//! With `n` hosts there are exactly `n` ports of each of six classes, in this order: NICs, edge
//! down, edge up, aggregation down, aggregation up, core down.

use super::{Choices, Divisor, Link, LinkClass, Node, host_links};

#[derive(Clone, Copy, Debug)]
pub(super) struct FatTree {
    k: u32,
    half: u32,
    hosts: u32,
    edges: u32,
    by_half: Divisor,
}

impl FatTree {
    pub(super) fn new(k: u32) -> FatTree {
        assert!(k >= 2 && k.is_multiple_of(2), "a fat-tree's k is even and at least 2, not {k}");
        let half = k / 2;
        FatTree { k, half, hosts: k * half * half, edges: k * half, by_half: Divisor::new(half) }
    }

    pub(super) fn hosts(&self) -> u32 {
        self.hosts
    }

    pub(super) fn switches(&self) -> u32 {
        2 * self.edges + self.half * self.half
    }

    pub(super) fn links(&self, class: LinkClass) -> Vec<Link> {
        let FatTree { k, half, edges, .. } = *self;
        let edge = |pod, e| Node::Switch(pod * half + e);
        let aggregation = |pod, a| Node::Switch(edges + pod * half + a);
        let core = |c| Node::Switch(2 * edges + c);
        let mut links: Vec<Link> = host_links(self.hosts, class, |h| h / half).collect();
        let pairs = |outer: u32, inner: u32| (0..outer).flat_map(move |o| (0..inner).map(move |i| (o, i)));
        links.extend(
            pairs(edges, half)
                .map(|(e, a)| class.link(edge(e / half, e % half), aggregation(e / half, a), 0)),
        );
        links.extend(
            pairs(edges, half)
                .map(|(a, e)| class.link(aggregation(a / half, a % half), edge(a / half, e), 1)),
        );
        links.extend(
            pairs(edges, half)
                .map(|(a, c)| class.link(aggregation(a / half, a % half), core(a % half * half + c), 1)),
        );
        links
            .extend(pairs(half * half, k).map(|(c, pod)| class.link(core(c), aggregation(pod, c / half), 2)));
        links
    }

    #[inline]
    pub(super) fn choices(&self, switch: u32, dst: u32) -> Choices {
        let FatTree { k, half, hosts, edges, by_half } = *self;
        let dst_edge = by_half.divide(dst);
        if switch < edges {
            if switch == dst_edge {
                return Choices::one(hosts + dst);
            }
            return Choices { first: 2 * hosts + switch * half, count: half, tier: 0 };
        }
        let dst_pod = by_half.divide(dst_edge);
        if switch < 2 * edges {
            let aggregation = switch - edges;
            if by_half.divide(aggregation) == dst_pod {
                return Choices::one(3 * hosts + aggregation * half + (dst_edge - dst_pod * half));
            }
            return Choices { first: 4 * hosts + aggregation * half, count: half, tier: 1 };
        }
        Choices::one(5 * hosts + (switch - 2 * edges) * k + dst_pod)
    }
}
