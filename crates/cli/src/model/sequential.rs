//! Implements `plimsoll model sequential`: how many sequential requests fit into a time budget.

use anyhow::{Result, anyhow};
use plimsoll_models::sequential::{Server, calls};
use plimsoll_units::Span;

use super::law::MeasuredOptions;
use super::quantity::quantity;
use super::table::Table;
use crate::output::Format;

/// Compute the longest chain of requests, each of which needs the reply to the one before, within a budget, by the load
/// of the server.
///
/// Waiting times are those of an M/G/1 queue (Pollaczek and Khinchine), as in the Chronos dissertation (Eq. 4.2: W =
/// (rho + lambda mu Var(S)) / (2 (mu - lambda)), which holds with mu as the rate of service, though the text calls it a
/// time). Two servers that differ only in the variance of their service time differ in the length of the chain.
///
/// Measured service times (`--from`) are latencies of a server that nobody else asks, since those under load contain
/// the wait that is computed here; `plimsoll model page` adds up measured latencies as they are.
#[derive(clap::Args)]
pub(super) struct Sequential {
    /// Mean service time of the server.
    #[arg(long, default_value = "90us", value_parser = quantity::<Span>, conflicts_with = "from")]
    service: Span,
    /// Standard deviation of the service time.
    #[arg(long, default_value = "50us", value_parser = quantity::<Span>, conflicts_with = "from")]
    sd: Span,
    #[command(flatten)]
    measured: MeasuredOptions,
    /// Latency of each request outside the server: the network.
    #[arg(long, default_value = "0us", value_parser = quantity::<Span>)]
    network: Span,
    /// Time budget of all requests together.
    #[arg(long, default_value = "10ms", value_parser = quantity::<Span>)]
    budget: Span,
    /// Loads of the server, as shares of its capacity.
    #[arg(long = "load", value_name = "LOAD", value_delimiter = ',',
        default_values = ["0.1", "0.3", "0.5", "0.7", "0.9"])]
    loads: Vec<f64>,
    /// Form of the printed table.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Sequential {
    pub(super) fn printed(&self) -> Result<String> {
        if self.service.is_zero() {
            return Err(anyhow!("--service {}: expected more than 0us", self.service));
        }
        if let Some(load) = self.loads.iter().find(|load| !(0.0..1.0).contains(*load)) {
            return Err(anyhow!(
                "--load {load}: expected 0 or more and less than 1, where the queue grows without bound"
            ));
        }
        let measured = self.measured.law()?;
        let (mean_us, sd_us) = match &measured {
            Some(described) => described.law.moments(),
            None => (self.service.as_us_f64(), self.sd.as_us_f64()),
        };
        if mean_us <= 0.0 {
            return Err(anyhow!("--from: the mean service time is {mean_us} us; expected more than 0 us"));
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
        Table { note, head, rows: self.loads.iter().map(row).collect() }.printed(self.format)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        sequential: Sequential,
    }

    fn printed(arguments: &[&str]) -> Result<String> {
        let line = Line::try_parse_from(["sequential"].iter().chain(arguments));
        line.expect("the arguments are known").sequential.printed()
    }

    #[test]
    fn variance_shortens_the_chain() {
        let rooms = |sd: &str| {
            let csv = printed(&["--service", "1us", "--sd", sd, "--budget", "100us", "--format", "csv"]);
            let csv = csv.expect("it prints");
            let rooms: Vec<String> =
                csv.lines().skip(1).filter_map(|line| line.rsplit(',').next().map(str::to_owned)).collect();
            rooms
        };
        // The latency of M/M/1 is 1 / (1 - load).
        assert_eq!(rooms("1us"), ["90", "70", "50", "30", "10"]);
        assert_eq!(rooms("2us"), ["78", "48", "28", "14", "4"]);
    }

    /// Half of the times are 1 us and half are 3 us: M/G/1 at half load waits 1.25 us.
    #[test]
    fn measured_service_times_have_their_moments() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("times.csv");
        std::fs::write(&file, "1\n3\n").expect("it can be written");
        let file = file.to_str().expect("its name is text");
        let csv = printed(&["--from", file, "--load", "0.5", "--format", "csv"]).expect("it prints");
        let row = csv.lines().nth(1).expect("there is a row");
        assert_eq!(row, "0.5,250000,1.25,3.25,3076");
    }

    #[test]
    fn bad_input_says_what_is_allowed() {
        for (arguments, part) in [
            (["--load", "1"], "0 or more and less than 1"),
            (["--service", "0us"], "more than 0us"),
            (["--from", "nowhere.csv"], "cannot read nowhere.csv"),
        ] {
            let error = printed(&arguments).expect_err("it cannot be").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
