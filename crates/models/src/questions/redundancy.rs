//! `plimsoll model replicas`, `hedge` and `retry`: the gain and the cost of a second copy of a request.

use plimsoll_report::models::NumberTable;
use plimsoll_units::Span;
#[cfg(feature = "command")]
use plimsoll_units::whole;
use serde::Deserialize;

use super::law::{DescribedLaw, LatencyShare, LawName, LawOptions, at_least_one, named};
use super::{ModelQuestion, Result, many};
use crate::chain::Chain;
use crate::{CopyPolicy, Law, Redundant};

/// Compute the latency of requests that go to several servers at once, where the first reply counts.
///
/// The share of latencies above x is the K-th power of that of one server. `load` is the number of requests that the
/// servers get for each; they are as fast as without them, which holds while they have nothing to do most of the time
/// (see docs/models.md).
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
pub struct Replicas {
    /// Numbers of servers that get the request, 1 to 64.
    #[cfg_attr(feature = "command",
        arg(long = "copies", value_name = "K", value_delimiter = ',',
            default_values_t = Replicas::default().copies, value_parser = whole::<u32>(..)))]
    #[serde(deserialize_with = "many")]
    copies: Vec<u32>,
    #[cfg_attr(feature = "command", command(flatten))]
    #[serde(flatten)]
    common: Common,
}

/// Compute the latency of requests of which a further copy goes to another server when the reply takes long.
///
/// The first reply counts. A second copy after the 95th percentile of one server adds 5 % of load. Servers are as fast
/// as without the copies.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
pub struct Hedge {
    /// Send the copy after the time within which this share of the replies is there.
    #[cfg_attr(feature = "command",
        arg(long, value_name = "SHARE", value_delimiter = ',',
            default_values_t = Hedge::default().at))]
    #[serde(deserialize_with = "many")]
    at: Vec<LatencyShare>,
    /// Send the copy after this time instead.
    #[cfg_attr(
        feature = "command",
        arg(long, value_name = "SPAN", value_delimiter = ',', conflicts_with = "at")
    )]
    #[serde(deserialize_with = "many")]
    after: Vec<Span>,
    /// The most copies, the first among them; each follows the one before after the same time.
    #[cfg_attr(feature = "command",
        arg(long, value_name = "K", default_value_t = Hedge::default().copies,
            value_parser = whole::<u32>(..)))]
    copies: u32,
    #[cfg_attr(feature = "command", command(flatten))]
    #[serde(flatten)]
    common: Common,
}

/// Compute the latency of requests that are given up after a timeout and sent again.
///
/// A reply after the timeout is lost, and the last retry is waited for; `timed_out_percent` is the share of requests
/// whose last retry is over the timeout as well, which a client that gives up altogether reports as errors. Servers are
/// as fast as without retries, and each try meets another server or another moment, independent of the one before.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
pub struct Retry {
    /// Timeouts of a request.
    #[cfg_attr(feature = "command",
        arg(long = "timeout", value_name = "SPAN", value_delimiter = ',',
            default_values_t = Retry::default().timeouts))]
    #[serde(rename = "timeout", deserialize_with = "many")]
    timeouts: Vec<Span>,
    /// The most requests after the first.
    #[cfg_attr(feature = "command",
        arg(long, value_name = "N", default_value_t = Retry::default().retries,
            value_parser = whole::<u32>(..)))]
    retries: u32,
    #[cfg_attr(feature = "command", command(flatten))]
    #[serde(flatten)]
    common: Common,
}

/// The options of all three.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
struct Common {
    /// Requests at once that belong together, each with its own copies; latencies are those of the last of them.
    #[cfg_attr(feature = "command",
        arg(long, value_name = "S", default_value_t = Common::default().servers,
            value_parser = whole::<u32>(..)))]
    servers: u32,
    #[cfg_attr(feature = "command", command(flatten))]
    #[serde(flatten)]
    law: LawOptions,
}

/// The columns that all three have.
const COLUMNS: [&str; 5] = ["mean_us", "p50_us", "p99_us", "p999_us", "load"];

impl Common {
    /// Computes the numbers of the columns that all three have.
    fn numbers(&self, latency: &Redundant) -> [f64; 5] {
        let mean =
            if self.servers == 1 { latency.mean() } else { Chain::new(latency, 1, self.servers).mean() };
        let quantile = |share| latency.quantile_of_last(self.servers, share);
        [mean, quantile(0.5), quantile(0.99), quantile(0.999), latency.load()]
    }

    /// Makes the row of each policy: its own numbers, and the common ones.
    fn table(
        &self,
        own: &[&'static str],
        policies: impl FnOnce(&Law) -> Vec<(Vec<f64>, CopyPolicy)>,
    ) -> Result<NumberTable> {
        at_least_one("--servers", &[self.servers])?;
        let DescribedLaw { law, line } = self.law.law(LawName::Rtts)?;
        let mut rows = Vec::new();
        for (mut row, policy) in policies(&law) {
            let latency = Redundant::new(law.clone(), policy).map_err(named)?;
            row.extend(self.numbers(&latency));
            row.extend(latency.timed_out().map(|share| 100.0 * share));
            rows.push(row);
        }
        let mut head: Vec<&'static str> = own.iter().chain(&COLUMNS).copied().collect();
        if rows.first().is_some_and(|row| row.len() > head.len()) {
            head.push("timed_out_percent");
        }
        Ok(NumberTable { note: line + "\n\n", head, rows })
    }
}

impl Default for Replicas {
    fn default() -> Replicas {
        Replicas { copies: vec![1, 2, 3], common: Common::default() }
    }
}

impl Default for Hedge {
    fn default() -> Hedge {
        let at = [0.5, 0.9, 0.95, 0.99].map(LatencyShare).to_vec();
        Hedge { at, after: Vec::new(), copies: 2, common: Common::default() }
    }
}

impl Default for Retry {
    fn default() -> Retry {
        let timeouts = [500, 1_000, 2_000, 5_000, 10_000].map(Span::from_us).to_vec();
        Retry { timeouts, retries: 1, common: Common::default() }
    }
}

impl Default for Common {
    fn default() -> Common {
        Common { servers: 1, law: LawOptions::default() }
    }
}

impl ModelQuestion for Replicas {
    fn table(&self) -> Result<NumberTable> {
        self.common.table(&["copies"], |_| {
            self.copies
                .iter()
                .map(|&copies| (vec![f64::from(copies)], CopyPolicy::Replicas { copies }))
                .collect()
        })
    }
}

impl ModelQuestion for Hedge {
    fn table(&self) -> Result<NumberTable> {
        self.common.table(&["replies_by_then", "after_us"], |law| {
            let after: Vec<f64> = if self.after.is_empty() {
                self.at.iter().map(|share| law.quantile(share.0).max(0.0)).collect()
            } else {
                self.after.iter().map(|after| after.as_us_f64()).collect()
            };
            let of = |after_us| {
                (vec![law.cdf(after_us), after_us], CopyPolicy::Hedge { after_us, copies: self.copies })
            };
            after.into_iter().map(of).collect()
        })
    }
}

impl ModelQuestion for Retry {
    fn table(&self) -> Result<NumberTable> {
        self.common.table(&["timeout_us"], |_| {
            let timeouts = self.timeouts.iter().map(|timeout| timeout.as_us_f64());
            let of = |timeout_us| (vec![timeout_us], CopyPolicy::Retry { timeout_us, retries: self.retries });
            timeouts.map(of).collect()
        })
    }
}
