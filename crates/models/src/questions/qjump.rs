//! `plimsoll model qjump`: the network epoch, and the rate of each level.

use plimsoll_mechanisms::qjump::{Level, LevelShare, Levels, QjumpParams, latency_bound, priority_of};
use plimsoll_report::table::{Format, Listing, ListingColumn};
#[cfg(feature = "command")]
use plimsoll_units::whole;
use plimsoll_units::{Bytes, Rate, Span};
use serde::Deserialize;
use serde_json::json;

use super::{BadModel, Result, many};

/// Compute QJump's network epoch, and the rate and latency bound of each level (NSDI 2015, Eqs. 1 to 4).
///
/// `--level 1x` is one packet an epoch and never waits longer than the bound; a larger factor has a higher rate, and a
/// bound that holds only while fewer hosts send at once.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
pub struct QjumpArguments {
    /// n: number of hosts that may send to one at the same time.
    #[cfg_attr(feature = "command", arg(long, value_parser = whole::<u32>(..)))]
    hosts: u32,
    /// P: the largest packet, with its headers.
    #[cfg_attr(feature = "command", arg(long, default_value_t = QjumpArguments::default().packet))]
    packet: Bytes,
    /// R: rate of a host's link.
    #[cfg_attr(feature = "command", arg(long, default_value_t = QjumpArguments::default().rate))]
    rate: Rate,
    /// eps: propagation and processing along the longest path.
    #[cfg_attr(feature = "command", arg(long, default_value_t = QjumpArguments::default().epsilon))]
    epsilon: Span,
    /// Assume that only one in FACTOR hosts sends at a time: 2 for 2:1, 4 for 1:1 of four.
    #[cfg_attr(feature = "command",
        arg(long, default_value_t = QjumpArguments::default().assume, value_name = "FACTOR"))]
    assume: f64,
    /// Level, the lowest first: a factor `6x`, a target rate `5Gbps`, bytes an epoch `9KB`, or `line`.
    #[cfg_attr(feature = "command",
        arg(long = "level", value_name = "SHARE",
            default_values_t = QjumpArguments::default().levels))]
    #[serde(rename = "level", deserialize_with = "many")]
    levels: Vec<LevelShare>,
}

impl Default for QjumpArguments {
    fn default() -> QjumpArguments {
        QjumpArguments {
            hosts: 0,
            packet: Bytes::new(256),
            rate: Rate::from_gbps(10),
            epsilon: Span::ZERO,
            assume: 1.0,
            levels: vec![LevelShare::Factor(1.0)],
        }
    }
}

impl QjumpArguments {
    /// Returns the number of hosts that may send at a time under the assumption, at least one.
    fn contending(&self) -> Result<u32> {
        if !(self.assume >= 1.0 && self.assume.is_finite()) {
            let text = format!("--assume {}: expected 1 (the worst case) or more", self.assume);
            return Err(BadModel::new(text));
        }
        Ok((f64::from(self.hosts) / self.assume).ceil() as u32)
    }

    fn resolve(&self) -> Result<(u32, Levels)> {
        if self.rate == Rate::ZERO {
            return Err(BadModel::new(format!("--rate {}: expected more than 0bps", self.rate)));
        }
        let hosts = self.contending()?;
        let params = QjumpParams {
            packet: self.packet,
            epsilon: self.epsilon,
            levels: self.levels.clone(),
            ..QjumpParams::default()
        };
        let levels = params.resolve(hosts, self.rate).map_err(|invalid| {
            BadModel::new(format!("--{} {}: expected {}", invalid.key, invalid.value, invalid.allowed))
        })?;
        Ok((hosts, levels))
    }

    /// Writes the epoch and the levels in one of the forms.
    ///
    /// # Errors
    /// Names the option whose value is out of range.
    pub fn written(&self, format: Format) -> Result<String> {
        let (hosts, Levels { epoch, levels }) = self.resolve()?;
        let bound = latency_bound(hosts, self.packet, self.packet, self.rate, self.epsilon);
        if format == Format::Json {
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
            return Ok(format!("{all:#}\n"));
        }
        let row = |(number, level): (u32, &Level)| {
            let bytes = level.latency_bound.map_or_else(|| "any".to_owned(), |_| level.bucket.to_string());
            let bound = level.latency_bound.map_or_else(|| "no bound".to_owned(), |bound| bound.to_string());
            vec![number.to_string(), bytes, level.rate.to_string(), bound]
        };
        let column = |(name, width): (&str, usize)| ListingColumn {
            name: name.to_owned(),
            width,
            is_text: format == Format::Md,
        };
        let columns = [("level", 5), ("bytes per epoch", 18), ("rate", 16), ("longest wait", 14)];
        let rows = (0..).zip(&levels).map(row).collect();
        let listing = Listing { columns: columns.map(column).to_vec(), rows }.written(format);
        Ok(match format {
            Format::Table => format!(
                "network epoch  {epoch}    2 n P / R + eps, n = {hosts}\nbound          {bound}    n P / R + eps\n\n\
                 {listing}"
            ),
            _ => listing,
        })
    }
}
