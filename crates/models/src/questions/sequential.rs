//! `plimsoll model sequential`: how many sequential requests fit into a time budget.

use plimsoll_report::models::NumberTable;
use plimsoll_units::Span;
use serde::Deserialize;

use super::law::MeasuredOptions;
use super::{BadModel, ModelQuestion, Result, many};
use crate::sequential::{Server, calls};

/// Compute the longest chain of requests, each of which needs the reply to the one before, within a budget, by the load
/// of the server.
///
/// Waiting times are those of an M/G/1 queue (Pollaczek and Khinchine), as in the Chronos dissertation (Eq. 4.2: W =
/// (rho + lambda mu Var(S)) / (2 (mu - lambda)), which holds with mu as the rate of service, though the text calls it a
/// time). Two servers that differ only in the variance of their service time differ in the length of the chain.
///
/// Measured service times (`--from`) are latencies of a server that nobody else asks, since those under load contain
/// the wait that is computed here; `plimsoll model page` adds up measured latencies as they are.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
pub struct Sequential {
    /// Mean service time of the server.
    #[cfg_attr(feature = "command",
        arg(long, default_value_t = Sequential::default().service, conflicts_with = "from"))]
    service: Span,
    /// Standard deviation of the service time.
    #[cfg_attr(feature = "command",
        arg(long, default_value_t = Sequential::default().sd, conflicts_with = "from"))]
    sd: Span,
    #[cfg_attr(feature = "command", command(flatten))]
    #[serde(flatten)]
    measured: MeasuredOptions,
    /// Latency of each request outside the server: the network.
    #[cfg_attr(feature = "command", arg(long, default_value_t = Sequential::default().network))]
    network: Span,
    /// Time budget of all requests together.
    #[cfg_attr(feature = "command", arg(long, default_value_t = Sequential::default().budget))]
    budget: Span,
    /// Loads of the server, as shares of its capacity.
    #[cfg_attr(feature = "command",
        arg(long = "load", value_name = "LOAD", value_delimiter = ',',
            default_values_t = Sequential::default().loads))]
    #[serde(rename = "load", deserialize_with = "many")]
    loads: Vec<f64>,
}

impl Default for Sequential {
    fn default() -> Sequential {
        Sequential {
            service: Span::from_us(90),
            sd: Span::from_us(50),
            measured: MeasuredOptions::default(),
            network: Span::ZERO,
            budget: Span::from_ms(10),
            loads: vec![0.1, 0.3, 0.5, 0.7, 0.9],
        }
    }
}

impl ModelQuestion for Sequential {
    fn table(&self) -> Result<NumberTable> {
        if self.service.is_zero() {
            return Err(BadModel::new(format!("--service {}: expected more than 0us", self.service)));
        }
        if let Some(load) = self.loads.iter().find(|load| !(0.0..1.0).contains(*load)) {
            return Err(BadModel::new(format!(
                "--load {load}: expected 0 or more and less than 1, where the queue grows without bound"
            )));
        }
        let measured = self.measured.law()?;
        let (mean_us, sd_us) = match &measured {
            Some(described) => described.law.moments(),
            None => (self.service.as_us_f64(), self.sd.as_us_f64()),
        };
        if mean_us <= 0.0 {
            let text = format!("--from: the mean service time is {mean_us} us; expected more than 0 us");
            return Err(BadModel::new(text));
        }
        let server = Server { mean_us, sd_us };
        let row = |&load: &f64| {
            let latency = server.latency_us(load) + self.network.as_us_f64();
            let room = calls(latency, self.budget.as_us_f64());
            vec![load, load * 1e6 / server.mean_us, server.wait_us(load), latency, room as f64]
        };
        let of = measured.map_or_else(String::new, |described| described.line + "\n");
        let note = format!(
            "{of}service       mean {mean_us:.2} us, standard deviation {sd_us:.2} us\nrequests one after the other \
             within {}\n\n",
            self.budget
        );
        let head = vec!["load", "requests_per_s", "wait_us", "latency_us", "requests"];
        Ok(NumberTable { note, head, rows: self.loads.iter().map(row).collect() })
    }
}
