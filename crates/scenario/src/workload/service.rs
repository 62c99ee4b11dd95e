//! Services: `closed-loop` and `pages`, whose users wait for servers.

use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HostName, Hosts, Pick};
use crate::distribution::{Distribution, SizeDistribution, TimeDistribution};

/// Clients that keep a number of requests in flight, as memaslap does to memcached: each answer lets the
/// next request go.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoop {
    /// The hosts that ask; default `client`.
    #[serde(default = "client")]
    pub clients: Hosts,
    /// The hosts that answer; default: all that do not ask.
    #[serde(default)]
    pub servers: Hosts,
    /// Requests that each client keeps in flight, each on a connection of its own to each server.
    #[serde(default = "ClosedLoop::default_outstanding")]
    pub outstanding: u32,
    /// Size of a request.
    #[serde(default = "request")]
    pub request: SizeDistribution,
    /// Size of a response.
    #[serde(default = "ClosedLoop::default_response")]
    pub response: SizeDistribution,
    /// Which server is asked next.
    #[serde(default)]
    pub pick: Pick,
    /// Time a server's thread takes for a request.
    #[serde(default)]
    pub service: TimeDistribution,
    /// Threads of each server; requests are served first come first served.
    #[serde(default = "one")]
    pub threads: u32,
    /// Time from an answer to the request that follows it.
    #[serde(default)]
    pub think: TimeDistribution,
    /// Stop after this many requests of each client.
    #[serde(default)]
    pub count: Option<u64>,
    /// When the first requests go.
    #[serde(default)]
    pub start: Span,
}

impl ClosedLoop {
    /// The concurrency of QJump's memaslap (section 6.2).
    fn default_outstanding() -> u32 {
        128
    }

    /// The values of QJump's memaslap.
    fn default_response() -> SizeDistribution {
        Distribution::Constant(Bytes::new(1_000))
    }
}

fn client() -> Hosts {
    Hosts::Selector(HostName::default().0)
}

fn request() -> SizeDistribution {
    Distribution::Constant(Bytes::new(100))
}

fn one() -> u32 {
    1
}

/// Pages that front-ends make of what back-ends hold: DeTail's page creation. A page is a query, a
/// retrieval a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pages {
    /// The hosts that make pages; default `client`.
    #[serde(default = "client")]
    pub front_ends: Hosts,
    /// The hosts that hold the parts; default: all that make no pages.
    #[serde(default)]
    pub back_ends: Hosts,
    /// Pages that each front-end begins per second (Poisson).
    pub pages_per_second: f64,
    /// Which retrievals wait for which.
    #[serde(default)]
    pub order: PageOrder,
    /// Retrievals of a page; for the orders `sequential` and `parallel`.
    #[serde(default)]
    pub retrievals: Option<u32>,
    /// Retrievals of each level of a page, as `[1, 5, 20, 10]`; for the order `graph`.
    #[serde(default)]
    pub levels: Vec<u32>,
    /// Size of a request.
    #[serde(default = "request")]
    pub request: SizeDistribution,
    /// Size of what is retrieved; this or `sizes`.
    #[serde(default)]
    pub size: Option<SizeDistribution>,
    /// Sizes of which each retrieval draws one, all equally likely; this or `size`. Default: 2, 4, 8, 16 and
    /// 32 KB, DeTail's.
    #[serde(default)]
    pub sizes: Vec<Bytes>,
    /// Time a back-end's thread takes for a request.
    #[serde(default)]
    pub service: TimeDistribution,
    /// Threads of each back-end; requests are served first come first served.
    #[serde(default = "one")]
    pub threads: u32,
    /// How long a page waits for a retrieval. It then goes on without it: the page is partial, and the share
    /// of its retrievals that met the deadline tells by how much.
    #[serde(default)]
    pub deadline: Option<Span>,
    /// Ask again, of the next back-ends, when a retrieval has taken so long since it was last asked for.
    #[serde(default)]
    pub timeout: Option<Span>,
    /// How often to ask again at most.
    #[serde(default = "Pages::default_retries")]
    pub retries: u32,
    /// Back-ends asked at once for each retrieval; the first answer counts.
    #[serde(default = "one")]
    pub replicas: u32,
    /// Stop after this many pages of each front-end.
    #[serde(default)]
    pub count: Option<u64>,
    /// When the first page may begin.
    #[serde(default)]
    pub start: Span,
}

impl Pages {
    fn default_retries() -> u32 {
        3
    }

    /// The sizes of DeTail's page creation, where a file names none.
    pub const SIZES: [Bytes; 5] =
        [Bytes::new(2_000), Bytes::new(4_000), Bytes::new(8_000), Bytes::new(16_000), Bytes::new(32_000)];

    /// How many retrievals each level has; a level begins when the one before it is done.
    pub fn level_sizes(&self) -> Vec<u32> {
        let retrievals = self.retrievals.unwrap_or(1);
        match self.order {
            PageOrder::Sequential => vec![1; retrievals as usize],
            PageOrder::Parallel => vec![retrievals],
            PageOrder::Graph => self.levels.clone(),
        }
    }
}

/// Which retrievals of a page wait for which.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PageOrder {
    /// Each begins when the one before it is done.
    Sequential,
    /// All begin at once.
    #[default]
    Parallel,
    /// Those of a level begin when all of the level before are done.
    Graph,
}
