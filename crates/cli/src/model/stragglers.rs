//! Implements `plimsoll model stragglers`: how many requests meet a rare slow server.

use anyhow::{Result, anyhow};
use plimsoll_models::fan_out;
use plimsoll_units::whole;

use super::law::share;
use super::table::Table;
use crate::output::Format;

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
    /// Form of the printed table.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Stragglers {
    pub(super) fn printed(&self) -> Result<String> {
        for (option, is_zero) in [("servers", self.servers.contains(&0)), ("copies", self.copies == 0)] {
            if is_zero {
                return Err(anyhow!("--{option} 0: expected 1 or more"));
            }
        }
        let row = |&servers: &u32| {
            vec![f64::from(servers), 100.0 * fan_out::stragglers(self.slow, servers, self.copies)]
        };
        let rows = self.servers.iter().map(row).collect();
        Table { note: String::new(), head: vec!["servers", "slow_percent"], rows }.printed(self.format)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        stragglers: Stragglers,
    }

    fn printed(arguments: &[&str]) -> Result<String> {
        let line = Line::try_parse_from(["stragglers"].iter().chain(arguments));
        line.expect("the arguments are known").stragglers.printed()
    }

    /// The figure that QJump's authors quote: 18 %.
    #[test]
    fn one_in_ten_thousand_hits_18_percent_of_2000_way_requests() {
        let csv = printed(&["--servers", "2000", "--format", "csv"]).expect("it prints");
        assert_eq!(csv, "servers,slow_percent\n2000,18.128\n");
        let csv = printed(&["--servers", "2000", "--copies", "2", "--format", "csv"]).expect("it prints");
        assert_eq!(csv, "servers,slow_percent\n2000,0.002\n");
    }

    #[test]
    fn bad_input_says_what_is_allowed() {
        let error = printed(&["--servers", "0"]).expect_err("it cannot be").to_string();
        assert_eq!(error, "--servers 0: expected 1 or more");
    }
}
