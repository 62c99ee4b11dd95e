//! `plimsoll model fanout`, which computes the latency of the last of many replies.

use plimsoll_report::models::NumberTable;
#[cfg(feature = "command")]
use plimsoll_units::whole;
use serde::Deserialize;

use super::law::{LawName, LawOptions, at_least_one};
use super::{ModelQuestion, Result, many};
use crate::fan_out;

/// Compute the latency of a request to S servers at once, which ends with the last reply, by S.
///
/// The expected time and its percentiles are integrals of the latency of one server; `drawn` is the mean over a few
/// repetitions, as in the Chronos dissertation (section 4.1), whose N(90 us, 50 us) is the default. The dissertation
/// prints 254.25 us as that distribution's 99th percentile, which is 206.3 us; 254.25 us is the 99.95th.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
pub struct FanOutArguments {
    /// S: number of servers in a request.
    #[cfg_attr(feature = "command",
        arg(long = "servers", value_name = "S", value_delimiter = ',',
            default_values_t = FanOutArguments::default().servers, value_parser = whole::<u32>(..)))]
    #[serde(deserialize_with = "many")]
    servers: Vec<u32>,
    #[cfg_attr(feature = "command", command(flatten))]
    #[serde(flatten)]
    law: LawOptions,
    /// Number of repetitions of the draws.
    #[cfg_attr(feature = "command",
        arg(long, default_value_t = FanOutArguments::default().repetitions,
            value_parser = whole::<u32>(..)))]
    repetitions: u32,
    /// Seed of the random draws.
    #[cfg_attr(feature = "command",
        arg(long, default_value_t = FanOutArguments::default().seed,
            value_parser = whole::<u64>(..)))]
    seed: u64,
}

impl Default for FanOutArguments {
    fn default() -> FanOutArguments {
        let servers = vec![1, 2, 5, 10, 24, 50, 100];
        FanOutArguments { servers, law: LawOptions::default(), repetitions: 5, seed: 1 }
    }
}

impl ModelQuestion for FanOutArguments {
    fn table(&self) -> Result<NumberTable> {
        at_least_one("--servers", &self.servers)?;
        at_least_one("--repetitions", &[self.repetitions])?;
        let described = self.law.law(LawName::Normal)?;
        let law = described.law;
        let row = |&servers: &u32| {
            let drawn = fan_out::draw(&law, servers, self.repetitions, self.seed);
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let quantile = |share| fan_out::quantile(&law, servers, share);
            let expected = fan_out::expected(&law, servers);
            vec![f64::from(servers), expected, quantile(0.5), quantile(0.99), quantile(0.999), mean]
        };
        let note = described.line + "\n\n";
        let head = vec!["servers", "expected_us", "p50_us", "p99_us", "p999_us", "drawn_us"];
        Ok(NumberTable { note, head, rows: self.servers.iter().map(row).collect() })
    }
}
