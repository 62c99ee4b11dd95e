//! Implements `plimsoll model qjump`: the network epoch, and the rate of each level.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use plimsoll_mechanisms::qjump::{LevelShare, Levels, QjumpParams, latency_bound, priority_of};
use plimsoll_units::{Bytes, Rate, Span, whole};
use serde_json::json;

use super::quantity::quantity;
use crate::output::Format;

/// Compute QJump's network epoch, and the rate and latency bound of each level (NSDI 2015, Eqs. 1 to 4).
///
/// `--level 1x` is one packet an epoch and never waits longer than the bound; a larger factor has a higher rate, and a
/// bound that holds only while fewer hosts send at once.
#[derive(clap::Args)]
pub(super) struct Qjump {
    /// n: number of hosts that may send to one at the same time.
    #[arg(long, value_parser = whole::<u32>(..))]
    hosts: u32,
    /// P: the largest packet, with its headers.
    #[arg(long, default_value = "256B", value_parser = quantity::<Bytes>)]
    packet: Bytes,
    /// R: rate of a host's link.
    #[arg(long, default_value = "10Gbps", value_parser = quantity::<Rate>)]
    rate: Rate,
    /// eps: propagation and processing along the longest path.
    #[arg(long, default_value = "0s", value_parser = quantity::<Span>)]
    epsilon: Span,
    /// Assume that only one in FACTOR hosts sends at a time: 2 for 2:1, 4 for 1:1 of four.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    assume: f64,
    /// Level, the lowest first: a factor `6x`, a target rate `5Gbps`, bytes an epoch `9KB`, or `line`.
    #[arg(long = "level", value_name = "SHARE", default_values = ["1x"], value_parser = quantity::<LevelShare>)]
    levels: Vec<LevelShare>,
    /// Form of the printed table.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Qjump {
    /// Returns the number of hosts that may send at a time under the assumption, at least one.
    fn contending(&self) -> Result<u32> {
        if !(self.assume >= 1.0 && self.assume.is_finite()) {
            return Err(anyhow!("--assume {}: expected 1 (the worst case) or more", self.assume));
        }
        Ok((f64::from(self.hosts) / self.assume).ceil() as u32)
    }

    fn resolve(&self) -> Result<(u32, Levels)> {
        if self.rate == Rate::ZERO {
            return Err(anyhow!("--rate {}: expected more than 0bps", self.rate));
        }
        let hosts = self.contending()?;
        let params = QjumpParams {
            packet: self.packet,
            epsilon: self.epsilon,
            levels: self.levels.clone(),
            ..QjumpParams::default()
        };
        let levels = params.resolve(hosts, self.rate).map_err(|invalid| {
            anyhow!("--{} {}: expected {}", invalid.key, invalid.value, invalid.allowed)
        })?;
        Ok((hosts, levels))
    }

    pub(super) fn printed(&self) -> Result<String> {
        let (hosts, Levels { epoch, levels }) = self.resolve()?;
        let bound = latency_bound(hosts, self.packet, self.packet, self.rate, self.epsilon);
        if self.format == Format::Json {
            let rows: Vec<_> = levels
                .iter()
                .enumerate()
                .map(|(number, level)| {
                    json!({
                        "level": number,
                        "priority": priority_of(number as u8),
                        "bytes_per_epoch": (level.latency_bound.is_some()).then(|| level.bucket.get()),
                        "rate_bps": level.rate.as_bps(),
                        "bound_ps": level.latency_bound.map(Span::as_ps),
                    })
                })
                .collect();
            let all = json!({ "hosts": hosts, "epoch_ps": epoch.as_ps(), "bound_ps": bound.as_ps(), "levels": rows });
            return Ok(serde_json::to_string_pretty(&all)? + "\n");
        }
        let (rule, separator) = match self.format {
            Format::Csv => (None, ","),
            Format::Md => (Some("|---|---|---|---|\n"), " | "),
            Format::Table | Format::Json => (None, "  "),
        };
        let mut text = String::new();
        if separator == "  " {
            let _ = writeln!(text, "network epoch  {epoch}    2 n P / R + eps, n = {hosts}");
            let _ = writeln!(text, "bound          {bound}    n P / R + eps\n");
        }
        let line = |cells: [String; 4]| match self.format {
            Format::Md => format!("| {} |\n", cells.join(separator)),
            Format::Csv => cells.join(separator) + "\n",
            Format::Table | Format::Json => {
                let [level, bytes, rate, bound] = cells;
                format!("{level:>5}  {bytes:>16}  {rate:>14}  {bound:>12}\n")
            }
        };
        text += &line(["level", "bytes per epoch", "rate", "longest wait"].map(str::to_owned));
        text += rule.unwrap_or_default();
        for (number, level) in levels.iter().enumerate() {
            let bytes = level.latency_bound.map_or_else(|| "any".to_owned(), |_| level.bucket.to_string());
            let bound = level.latency_bound.map_or_else(|| "no bound".to_owned(), |bound| bound.to_string());
            text += &line([number.to_string(), bytes, level.rate.to_string(), bound]);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        qjump: Qjump,
    }

    fn printed(arguments: &[&str]) -> Result<String> {
        Line::try_parse_from(["qjump"].iter().chain(arguments))
            .expect("the arguments are known")
            .qjump
            .printed()
    }

    #[test]
    fn the_papers_example() {
        // With 1000 hosts, 256 B and 10 Gb/s: 409.6 us, and less than 5 Mb/s a host.
        let text = printed(&["--hosts", "1000"]).expect("it resolves");
        assert!(text.contains("409.6us") && text.contains("204.8us"), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&printed(&["--hosts", "1000", "--format", "json"]).expect("it resolves"))
                .expect("JSON");
        assert_eq!(json["levels"][0]["rate_bps"], 5_000_000);
    }

    #[test]
    fn assumptions_divide_the_hosts() {
        // Of four hosts, 4:1 is the worst case, 2:1 allows twice the rate, 1:1 four times.
        let rate = |assume: &str| -> u64 {
            let text =
                printed(&["--hosts", "4", "--assume", assume, "--format", "json"]).expect("it resolves");
            serde_json::from_str::<serde_json::Value>(&text).expect("JSON")["levels"][0]["rate_bps"]
                .as_u64()
                .expect("a rate")
        };
        assert_eq!([rate("1"), rate("2"), rate("4")].map(|bps| bps / rate("1")), [1, 2, 4]);
    }

    #[test]
    fn bad_input_says_what_is_allowed() {
        for (arguments, part) in [
            (vec!["--hosts", "0"], "1 or more"),
            (vec!["--hosts", "10", "--assume", "0.5"], "1 (the worst case) or more"),
            (vec!["--hosts", "10", "--packet", "0B"], "1B to 65KB"),
        ] {
            let error = printed(&arguments).expect_err("it cannot be").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
