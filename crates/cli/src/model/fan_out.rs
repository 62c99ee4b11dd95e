//! Implements `plimsoll model fanout`, which computes the latency of the last of many replies.

use anyhow::{Result, anyhow};
use plimsoll_models::fan_out;
use plimsoll_units::whole;

use super::law::{LawName, LawOptions};
use super::table::Table;
use crate::output::Format;

/// Compute the latency of a request to S servers at once, which ends with the last reply, by S.
///
/// The expected time and its percentiles are integrals of the latency of one server; `drawn` is the mean over a few
/// repetitions, as in the Chronos dissertation (section 4.1), whose N(90 us, 50 us) is the default. The dissertation
/// prints 254.25 us as that distribution's 99th percentile, which is 206.3 us; 254.25 us is the 99.95th.
#[derive(clap::Args)]
pub(super) struct FanOut {
    /// S: number of servers in a request.
    #[arg(long = "servers", value_name = "S", value_delimiter = ',',
        default_values = ["1", "2", "5", "10", "24", "50", "100"], value_parser = whole::<u32>(..))]
    servers: Vec<u32>,
    #[command(flatten)]
    law: LawOptions,
    /// Number of repetitions of the draws.
    #[arg(long, default_value_t = 5, value_parser = whole::<u32>(..))]
    repetitions: u32,
    /// Seed of the random draws.
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,
    /// Form of the printed table.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl FanOut {
    pub(super) fn printed(&self) -> Result<String> {
        if let Some(servers) = self.servers.iter().find(|servers| **servers == 0) {
            return Err(anyhow!("--servers {servers}: expected 1 or more"));
        }
        if self.repetitions == 0 {
            return Err(anyhow!("--repetitions 0: expected 1 or more"));
        }
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
        Table { note, head, rows: self.servers.iter().map(row).collect() }.printed(self.format)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        fan_out: FanOut,
    }

    fn printed(arguments: &[&str]) -> Result<String> {
        let line = Line::try_parse_from(["fanout"].iter().chain(arguments));
        line.expect("the arguments are known").fan_out.printed()
    }

    #[test]
    fn the_dissertations_figure() {
        let json: serde_json::Value =
            serde_json::from_str(&printed(&["--format", "json"]).expect("it prints")).expect("JSON");
        let expected = |row: usize| json[row]["expected_us"].as_f64().expect("a number");
        assert!((expected(0) - 90.0).abs() < 0.01 && (expected(6) - 215.4).abs() < 0.1, "{json}");
        let text = printed(&[]).expect("it prints");
        assert!(text.starts_with("one request   p50 90.00 us, p99 206.32 us, p99.95 254.53 us"), "{text}");
    }

    #[test]
    fn a_file_of_latencies_is_a_law() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("latencies.csv");
        std::fs::write(&file, "us\n1\n2\n3\n4\n5\n6\n").expect("it can be written");
        let file = file.to_str().expect("its name is text");
        let csv = printed(&["--from", file, "--servers", "1,2", "--format", "csv"]).expect("it prints");
        let expected: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
        assert_eq!(expected, ["3.5", "4.472"]);
    }

    #[test]
    fn bad_input_says_what_is_allowed() {
        for (arguments, part) in [
            (vec!["--servers", "0"], "--servers 0: expected 1 or more"),
            (vec!["--sd", "0us"], "allowed: more than 0"),
            (vec!["--repetitions", "0"], "expected 1 or more"),
            (vec!["--file", "nowhere.csv"], "cannot read nowhere.csv"),
        ] {
            let error = printed(&arguments).expect_err("it cannot be").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
