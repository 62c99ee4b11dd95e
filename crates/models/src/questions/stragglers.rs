//! `plimsoll model stragglers`: how many requests meet a rare slow server.

use plimsoll_report::models::NumberTable;
#[cfg(feature = "command")]
use plimsoll_units::whole;
use serde::Deserialize;

use super::law::{LatencyShare, at_least_one};
use super::{ModelQuestion, Result, many};
use crate::fan_out;

/// Compute the share of requests to S servers at once that meet at least one slow server.
///
/// Of servers that are slow independently with probability p, 1 - (1 - p)^S of the requests meet one: with one in
/// 10,000 and 2,000 servers, 18 %. With copies of each request, all of them must be slow.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
pub struct Stragglers {
    /// S: number of servers in a request.
    #[cfg_attr(feature = "command",
        arg(long = "servers", value_name = "S", value_delimiter = ',',
            default_values_t = Stragglers::default().servers, value_parser = whole::<u32>(..)))]
    #[serde(deserialize_with = "many")]
    servers: Vec<u32>,
    /// p: probability that a server is slow.
    #[cfg_attr(feature = "command",
        arg(long, value_name = "SHARE", default_value_t = Stragglers::default().slow))]
    slow: LatencyShare,
    /// Number of servers that get a copy of each request.
    #[cfg_attr(feature = "command",
        arg(long, value_name = "K", default_value_t = Stragglers::default().copies,
            value_parser = whole::<u32>(..)))]
    copies: u32,
}

impl Default for Stragglers {
    fn default() -> Stragglers {
        Stragglers { servers: vec![1, 10, 100, 1_000, 2_000, 10_000], slow: LatencyShare(0.0001), copies: 1 }
    }
}

impl ModelQuestion for Stragglers {
    fn table(&self) -> Result<NumberTable> {
        at_least_one("--servers", &self.servers)?;
        at_least_one("--copies", &[self.copies])?;
        let row = |&servers: &u32| {
            vec![f64::from(servers), 100.0 * fan_out::stragglers(self.slow.0, servers, self.copies)]
        };
        let rows = self.servers.iter().map(row).collect();
        Ok(NumberTable { note: String::new(), head: vec!["servers", "slow_percent"], rows })
    }
}
