//! Implements `plimsoll model stragglers`: how many requests meet a rare slow server.

use anyhow::Result;
use plimsoll_models::fan_out;
use plimsoll_units::whole;

use super::law::{at_least_one, share};
use plimsoll_report::models::NumberTable;

/// Compute the share of requests to S servers at once that meet at least one slow server.
///
/// Of servers that are slow independently with probability p, 1 - (1 - p)^S of the requests meet one: with one in
/// 10,000 and 2,000 servers, 18 %. With copies of each request, all of them must be slow.
#[derive(clap::Args)]
pub(super) struct Stragglers {
    /// S: number of servers in a request.
    #[arg(long = "servers", value_name = "S", value_delimiter = ',',
        default_values = ["1", "10", "100", "1000", "2000", "10000"], value_parser = whole::<u32>(..))]
    servers: Vec<u32>,
    /// p: probability that a server is slow.
    #[arg(long, value_name = "SHARE", default_value = "0.0001", value_parser = share)]
    slow: f64,
    /// Number of servers that get a copy of each request.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = whole::<u32>(..))]
    copies: u32,
}

impl Stragglers {
    pub(super) fn table(&self) -> Result<NumberTable> {
        at_least_one("--servers", &self.servers)?;
        at_least_one("--copies", &[self.copies])?;
        let row = |&servers: &u32| {
            vec![f64::from(servers), 100.0 * fan_out::stragglers(self.slow, servers, self.copies)]
        };
        let rows = self.servers.iter().map(row).collect();
        Ok(NumberTable { note: String::new(), head: vec!["servers", "slow_percent"], rows })
    }
}
