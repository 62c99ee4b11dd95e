//! Which nodes of a [`Topology`] have a link between them, by name and by number.

use crate::topology::Topology;

/// A host or a switch by its number; switches are numbered tier by tier, from the hosts upwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// A host, by its number.
    Host(u32),
    /// A switch, by its number.
    Switch(u32),
}

impl Topology {
    /// The node of that name.
    pub fn end(&self, name: &str) -> Option<End> {
        self.host(name).map(End::Host).or_else(|| self.switch(name).map(End::Switch))
    }

    /// Returns the name of a node.
    pub fn end_name(&self, end: End) -> String {
        match end {
            End::Host(host) => self.host_name(host),
            End::Switch(switch) => self.switch_name(switch),
        }
    }

    /// The names of all nodes, switches first.
    pub(crate) fn ends(&self) -> impl Iterator<Item = String> + '_ {
        let switches = (0..self.switches().iter().sum()).map(|switch| self.switch_name(switch));
        switches.chain((0..self.host_count()).map(|host| self.host_name(host)))
    }

    /// The name of the first switch of a tier, if the tier has any.
    pub(crate) fn first_of_tier(&self, tier: &str) -> Option<String> {
        let place = self.tiers().iter().position(|known| *known == tier)?;
        let counts = self.switches();
        (counts[place] > 0).then(|| self.switch_name(counts[..place].iter().sum()))
    }

    /// The nodes that a node has a link to.
    pub(crate) fn neighbours(&self, end: End) -> Vec<End> {
        let hosts = |range: std::ops::Range<u32>| range.map(End::Host);
        let switches = |range: std::ops::Range<u32>| range.map(End::Switch);
        match *self {
            Topology::Rack { hosts: count, .. } => match end {
                End::Host(_) => vec![End::Switch(0)],
                End::Switch(_) => hosts(0..count).collect(),
            },
            Topology::LeafSpine { leaves, spines, hosts_per_leaf, .. } => match end {
                End::Host(host) => vec![End::Switch(host / hosts_per_leaf)],
                End::Switch(leaf) if leaf < leaves => {
                    let below = hosts(leaf * hosts_per_leaf..(leaf + 1) * hosts_per_leaf);
                    switches(leaves..leaves + spines).chain(below).collect()
                }
                End::Switch(_) => switches(0..leaves).collect(),
            },
            Topology::FatTree { k, .. } => clos(k, [k / 2; 4], end),
            Topology::Clos { pods, edges, aggregations, cores, hosts_per_edge, .. } => {
                clos(pods, [edges, aggregations, cores, hosts_per_edge], end)
            }
            Topology::Dumbbell { left, right, .. } => match end {
                End::Host(host) => vec![End::Switch(u32::from(host >= left))],
                End::Switch(0) => switches(1..2).chain(hosts(0..left)).collect(),
                End::Switch(_) => switches(0..1).chain(hosts(left..left + right)).collect(),
            },
            Topology::File { ref graph, .. } => {
                let Some(graph) = graph else { return Vec::new() };
                let count = graph.hosts.len() as u32;
                let node =
                    |number| if number < count { End::Host(number) } else { End::Switch(number - count) };
                let links = graph.links.iter().map(|link| (node(link.from), node(link.to)));
                links.filter_map(|(a, b)| if a == end { Some(b) } else { (b == end).then_some(a) }).collect()
            }
        }
    }
}

/// Edges, aggregations, then cores; an aggregation switch has cores of its own, which it shares with those of the
/// same number in other pods.
fn clos(pods: u32, [edges, aggregations, cores, hosts_per_edge]: [u32; 4], end: End) -> Vec<End> {
    let (all_edges, all_aggregations) = (pods * edges, pods * aggregations);
    let switches = |first: u32, count: u32| (first..first + count).map(End::Switch);
    match end {
        End::Host(host) => vec![End::Switch(host / hosts_per_edge)],
        End::Switch(edge) if edge < all_edges => {
            let up = switches(all_edges + edge / edges * aggregations, aggregations);
            up.chain((edge * hosts_per_edge..(edge + 1) * hosts_per_edge).map(End::Host)).collect()
        }
        End::Switch(switch) if switch < all_edges + all_aggregations => {
            let aggregation = switch - all_edges;
            let up = all_edges + all_aggregations + aggregation % aggregations * cores;
            switches(aggregation / aggregations * edges, edges).chain(switches(up, cores)).collect()
        }
        End::Switch(switch) => {
            let core = switch - all_edges - all_aggregations;
            (0..pods).map(|pod| End::Switch(all_edges + pod * aggregations + core / cores)).collect()
        }
    }
}
