//! Distributions of sizes and times: the forms in a file, and [`Sampler`], which draws.
//!
//! A run is a pure function of its seed on every machine, so nothing here may depend on the C library's `log`, `exp` or
//! `cos`. All functions come from the `libm` crate, pinned exactly, and the methods are the textbook ones: inversion
//! for every distribution with an inverse (one uniform number a draw, so that scaled distributions stay paired),
//! Box-Muller for the normal, Marsaglia and Tsang (ACM TOMS 26:3, 2000) for the gamma. `rand_distr` is not used: it
//! takes its logarithms from `num-traits`, which silently switches to the C library's as soon as any crate in the build
//! turns on its `std` feature.

use std::fmt;
use std::io;
use std::sync::Arc;

use plimsoll_units::{Bytes, Span};
use rand::Rng;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::cdf::{CdfError, CdfTable};

/// A distribution of lengths of time, such as service times, in whole picoseconds.
pub type TimeDistribution = Distribution<Span>;
/// A distribution of message sizes, in whole bytes.
pub type SizeDistribution = Distribution<Bytes>;

/// A constant, written plainly (`"100us"`, `"900B"`), or a table whose `kind` names a distribution.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "{Q}Distribution")]
pub enum Distribution<Q> {
    /// The exponential distribution.
    Exponential {
        /// The mean of the draws.
        mean: Q,
    },
    /// Gamma, shifted by `offset`; the mean is `shape x scale + offset`.
    Gamma {
        /// The shape parameter, more than 0.
        shape: f64,
        /// The scale parameter, in the unit of the draws.
        scale: Q,
        /// Added to every draw; default 0.
        #[serde(default)]
        offset: Option<Q>,
    },
    /// Log-normal by its mean and either its standard deviation or the sigma of its logarithm.
    Lognormal {
        /// The mean of the draws.
        mean: Q,
        /// The standard deviation; this or `sigma`.
        #[serde(default)]
        sd: Option<Q>,
        /// The standard deviation of the logarithm; this or `sd`.
        #[serde(default)]
        sigma: Option<f64>,
    },
    /// Uniform from `min` to `max`.
    Uniform {
        /// The smallest value drawn.
        min: Q,
        /// The largest value drawn.
        max: Q,
    },
    /// Pareto: the share of draws above x is `(min / x)^shape`.
    Pareto {
        /// The smallest value drawn.
        min: Q,
        /// The tail index, more than 1 (so that there is a mean) unless `max` is given.
        shape: f64,
        /// The largest value, at which the tail is cut (a bounded Pareto).
        #[serde(default)]
        max: Option<Q>,
    },
    /// Points of a cumulative distribution.
    Cdf {
        /// A bundled one by name (`websearch`, `datamining`, `facebook-hadoop`, `homa-w1`, ...), or a CSV file beside
        /// the scenario with the columns `bytes,cdf` (for times `us,cdf`). For a time also a file of HdrHistogram: an
        /// interval log or a histogram in base64 in ns, or percentiles as text in us.
        cdf: String,
        /// The tag of the intervals that count, where `cdf` is an interval log with several tags; an
        /// empty tag is of intervals that have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
        /// Between the points, or only at them; default: as the source of a bundled one draws,
        /// linear for a file.
        #[serde(default)]
        interpolate: Option<Interpolate>,
        /// Every draw is rounded up to a multiple of this, as sources do that count in packets; default: not.
        /// A load is shared out by the mean before rounding.
        #[serde(default)]
        in_multiples_of: Option<Q>,
        /// The points, read when the scenario is checked.
        #[serde(skip)]
        table: Option<Arc<CdfTable>>,
    },
    /// Every draw has the same value.
    #[serde(untagged)]
    Constant(Q),
}

/// The shape that the scenario's own deserialiser reads; see the module `de`.
#[derive(Deserialize)]
#[serde(remote = "Distribution", rename_all = "kebab-case", deny_unknown_fields)]
enum InFile<Q> {
    Exponential {
        mean: Q,
    },
    Gamma {
        shape: f64,
        scale: Q,
        #[serde(default = "none")]
        offset: Option<Q>,
    },
    Lognormal {
        mean: Q,
        #[serde(default = "none")]
        sd: Option<Q>,
        #[serde(default)]
        sigma: Option<f64>,
    },
    Uniform {
        min: Q,
        max: Q,
    },
    Pareto {
        min: Q,
        shape: f64,
        #[serde(default = "none")]
        max: Option<Q>,
    },
    Cdf {
        cdf: String,
        #[serde(default)]
        tag: Option<String>,
        #[serde(default)]
        interpolate: Option<Interpolate>,
        #[serde(default = "none")]
        in_multiples_of: Option<Q>,
        #[serde(skip)]
        table: Option<Arc<CdfTable>>,
    },
    Constant(Q),
}

fn none<T>() -> Option<T> {
    None
}

impl<'de, Q: DrawnQuantity> Deserialize<'de> for Distribution<Q> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Distribution<Q>, D::Error> {
        InFile::deserialize(deserializer)
    }
}

/// The rule for draws between the points of a CDF.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interpolate {
    /// Any size between two points is equally likely.
    Linear,
    /// Only the sizes listed.
    Step,
}

/// The type of value that a distribution draws: [`Span`] or [`Bytes`].
pub trait DrawnQuantity:
    Copy + PartialEq + fmt::Debug + fmt::Display + DeserializeOwned + private::Sealed
{
    /// The word for it in a message.
    const NAME: &'static str;
    /// Units that the first column of a CSV file may name, and their factor to the smallest unit.
    const COLUMNS: &'static [(&'static str, f64)];
    /// Returns the value nearest to a drawn number of smallest units (ps, bytes).
    fn from_f64(number: f64) -> Self;
    /// Returns the number of smallest units.
    fn to_f64(self) -> f64;
}

mod private {
    pub trait Sealed {}
    impl Sealed for plimsoll_units::Span {}
    impl Sealed for plimsoll_units::Bytes {}
}

impl DrawnQuantity for Span {
    const NAME: &'static str = "time";
    const COLUMNS: &'static [(&'static str, f64)] =
        &[("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];
    fn from_f64(picoseconds: f64) -> Span {
        Span::from_ps(picoseconds.round() as u64)
    }
    fn to_f64(self) -> f64 {
        self.as_ps() as f64
    }
}

/// A message has at least one byte.
impl DrawnQuantity for Bytes {
    const NAME: &'static str = "size";
    const COLUMNS: &'static [(&'static str, f64)] = &[("bytes", 1.0)];
    fn from_f64(bytes: f64) -> Bytes {
        Bytes::new(bytes.round().max(1.0) as u64)
    }
    fn to_f64(self) -> f64 {
        self.get() as f64
    }
}

impl Default for Distribution<Span> {
    fn default() -> TimeDistribution {
        Distribution::Constant(Span::ZERO)
    }
}

/// The reason why the parameters of a distribution are invalid.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum DistributionError {
    /// A number is outside its range.
    #[error("{value} does not fit")]
    Parameter {
        /// The key within the distribution's table; it is empty for a constant.
        key: &'static str,
        /// The value as the file writes it.
        value: String,
        /// The values that are allowed.
        allowed: &'static str,
    },
    /// Keys exclude each other, or one of them is missing.
    #[error("{message}")]
    Choice {
        /// The problem in words.
        message: &'static str,
        /// The values that are allowed.
        allowed: &'static str,
    },
    /// The points of a CDF cannot be read.
    #[error(transparent)]
    Cdf(#[from] CdfError),
}

impl<Q: DrawnQuantity> Distribution<Q> {
    /// Loads the points if this is a CDF; `read` returns the text of a file by its name.
    ///
    /// # Errors
    /// Fails if the file or bundled distribution does not exist, or its points are not a distribution.
    pub fn load(&mut self, read: &dyn Fn(&str) -> io::Result<String>) -> Result<(), DistributionError> {
        if let Distribution::Cdf { cdf, tag, table, .. } = self {
            *table = Some(Arc::new(CdfTable::open(cdf, tag.as_deref(), read, Q::COLUMNS)?));
        }
        Ok(())
    }

    /// Returns the points that were loaded, for the digest of a run.
    pub fn table(&self) -> Option<&CdfTable> {
        match self {
            Distribution::Cdf { table, .. } => table.as_deref(),
            _ => None,
        }
    }

    /// Returns the exact mean in the smallest unit, unless the points could not be read or it is infinite.
    pub fn known_mean(&self) -> Option<f64> {
        match self {
            Distribution::Cdf { table: None, .. } => None,
            known => Some(known.sampler().mean()).filter(|mean| mean.is_finite()),
        }
    }

    /// Returns the largest value in the smallest unit, unless there is none or the points could not be read.
    pub fn largest(&self) -> Option<f64> {
        match self {
            Distribution::Constant(value) => Some(value.to_f64()),
            Distribution::Cdf { table, .. } => Some(table.as_ref()?.points().last()?.0),
            Distribution::Uniform { max, .. } => Some(max.to_f64()),
            Distribution::Pareto { max, .. } => max.map(DrawnQuantity::to_f64),
            Distribution::Exponential { .. }
            | Distribution::Gamma { .. }
            | Distribution::Lognormal { .. } => None,
        }
    }

    /// Checks that all parameters are in their range.
    ///
    /// # Errors
    /// Names the key, its value and the values that are allowed.
    pub fn validate(&self) -> Result<(), DistributionError> {
        let unless = |ok: bool, key, value: String, allowed| {
            if ok { Ok(()) } else { Err(DistributionError::Parameter { key, value, allowed }) }
        };
        let positive = |key, value: Q| unless(value.to_f64() > 0.0, key, value.to_string(), "more than zero");
        let shape = |shape: f64, least: f64, allowed| {
            unless(shape > least && shape.is_finite(), "shape", shape.to_string(), allowed)
        };
        match self {
            Distribution::Constant(_) => Ok(()),
            Distribution::Cdf { in_multiples_of, .. } => {
                in_multiples_of.map_or(Ok(()), |multiple| positive("in_multiples_of", multiple))
            }
            Distribution::Exponential { mean } => positive("mean", *mean),
            Distribution::Gamma { shape: k, scale, .. } => {
                shape(*k, 0.0, "more than 0")?;
                positive("scale", *scale)
            }
            Distribution::Lognormal { mean, sd, sigma } => {
                positive("mean", *mean)?;
                if sd.is_some() == sigma.is_some() {
                    let message = "its width is not given once";
                    return Err(DistributionError::Choice {
                        message,
                        allowed: "exactly one of sd and sigma",
                    });
                }
                let sigma = sigma.unwrap_or(0.0);
                unless((0.0..=20.0).contains(&sigma), "sigma", sigma.to_string(), "0 to 20")
            }
            Distribution::Uniform { min, max } => {
                unless(min.to_f64() <= max.to_f64(), "max", max.to_string(), "at least min")
            }
            Distribution::Pareto { min, shape: alpha, max } => {
                positive("min", *min)?;
                match max {
                    None => shape(*alpha, 1.0, "more than 1 (or give max)"),
                    Some(max) => {
                        shape(*alpha, 0.0, "more than 0")?;
                        unless(max.to_f64() > min.to_f64(), "max", max.to_string(), "more than min")
                    }
                }
            }
        }
    }

    /// Returns the sampler that draws from the distribution.
    ///
    /// # Panics
    /// Panics if it is a CDF whose points were not loaded; the points of a checked scenario are.
    pub fn sampler(&self) -> Sampler<Q> {
        let law = match self {
            Distribution::Constant(value) => {
                return Sampler {
                    law: DrawnLaw::Constant(value.to_f64()),
                    value: Some(*value),
                    table: None,
                    multiple: None,
                };
            }
            Distribution::Exponential { mean } => DrawnLaw::Exponential { mean: mean.to_f64() },
            Distribution::Gamma { shape, scale, offset } => DrawnLaw::Gamma {
                shape: *shape,
                scale: scale.to_f64(),
                offset: offset.map_or(0.0, DrawnQuantity::to_f64),
            },
            Distribution::Lognormal { mean, sd, sigma } => {
                let mean = mean.to_f64();
                let variance = match (sd, sigma) {
                    (Some(sd), _) => libm::log1p((sd.to_f64() / mean) * (sd.to_f64() / mean)),
                    (None, sigma) => sigma.unwrap_or(0.0) * sigma.unwrap_or(0.0),
                };
                DrawnLaw::Lognormal { mu: libm::log(mean) - variance / 2.0, sigma: variance.sqrt(), mean }
            }
            Distribution::Uniform { min, max } => DrawnLaw::Uniform { min: min.to_f64(), max: max.to_f64() },
            Distribution::Pareto { min, shape, max } => {
                DrawnLaw::Pareto { min: min.to_f64(), shape: *shape, max: max.map(DrawnQuantity::to_f64) }
            }
            Distribution::Cdf { interpolate, in_multiples_of, table, .. } => {
                let table = table.clone().expect("the points of a checked scenario are loaded");
                let interpolate = interpolate.unwrap_or(table.interpolate());
                let multiple = in_multiples_of.map(DrawnQuantity::to_f64);
                return Sampler {
                    law: DrawnLaw::Cdf(interpolate),
                    value: None,
                    table: Some(table),
                    multiple,
                };
            }
        };
        Sampler { law, value: None, table: None, multiple: None }
    }
}

/// A distribution made ready to draw from. Numbers are in the smallest unit: ps or bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Sampler<Q> {
    law: DrawnLaw,
    value: Option<Q>,
    table: Option<Arc<CdfTable>>,
    /// Draws from a table are rounded up to a multiple of this.
    multiple: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum DrawnLaw {
    Constant(f64),
    Exponential { mean: f64 },
    Gamma { shape: f64, scale: f64, offset: f64 },
    Lognormal { mu: f64, sigma: f64, mean: f64 },
    Uniform { min: f64, max: f64 },
    Pareto { min: f64, shape: f64, max: Option<f64> },
    Cdf(Interpolate),
}

impl<Q: DrawnQuantity> Sampler<Q> {
    /// Draws one value. A constant draws no random number.
    pub fn sample(&self, rng: &mut impl Rng) -> Q {
        if let Some(value) = self.value {
            return value;
        }
        Q::from_f64(match self.law {
            DrawnLaw::Constant(value) => value,
            DrawnLaw::Exponential { mean } => mean * exponential(rng),
            DrawnLaw::Gamma { shape, scale, offset } => offset + scale * gamma(rng, shape),
            DrawnLaw::Lognormal { mu, sigma, .. } => libm::exp(mu + sigma * normal(rng)),
            DrawnLaw::Uniform { min, max } => min + (max - min) * uniform(rng),
            DrawnLaw::Pareto { min, shape, max: None } => min * libm::pow(1.0 - uniform(rng), -1.0 / shape),
            DrawnLaw::Pareto { min, shape, max: Some(max) } => {
                let cut = 1.0 - libm::pow(min / max, shape);
                min * libm::pow(1.0 - cut * uniform(rng), -1.0 / shape)
            }
            DrawnLaw::Cdf(interpolate) => {
                let draw = self.table.as_ref().map_or(0.0, |table| table.quantile(uniform(rng), interpolate));
                self.multiple.map_or(draw, |multiple| (draw / multiple).ceil() * multiple)
            }
        })
    }

    /// Returns the exact mean in the smallest unit (ps or bytes), before draws are rounded to whole ones.
    pub fn mean(&self) -> f64 {
        match self.law {
            DrawnLaw::Constant(value) => value,
            DrawnLaw::Exponential { mean } | DrawnLaw::Lognormal { mean, .. } => mean,
            DrawnLaw::Gamma { shape, scale, offset } => shape * scale + offset,
            DrawnLaw::Uniform { min, max } => (min + max) / 2.0,
            DrawnLaw::Pareto { min, shape, max: None } => shape * min / (shape - 1.0),
            DrawnLaw::Pareto { min, shape, max: Some(max) } => bounded_pareto_mean(min, shape, max),
            DrawnLaw::Cdf(interpolate) => self.table.as_ref().map_or(0.0, |table| table.mean(interpolate)),
        }
    }
}

fn bounded_pareto_mean(min: f64, shape: f64, max: f64) -> f64 {
    let ratio = min / max;
    let cut = 1.0 - libm::pow(ratio, shape);
    if (shape - 1.0).abs() < 1e-9 {
        return min * libm::log(max / min) / cut;
    }
    min * shape / (shape - 1.0) * (1.0 - libm::pow(ratio, shape - 1.0)) / cut
}

/// Draws uniformly from [0, 1): the upper 53 bits of one draw.
pub fn uniform(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Draws from the exponential distribution of mean 1, by inversion of one draw.
pub fn exponential(rng: &mut impl Rng) -> f64 {
    -libm::log(1.0 - uniform(rng))
}

/// Draws from the standard normal distribution, by Box and Muller, with two draws.
pub fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (2.0 * exponential(rng)).sqrt();
    radius * libm::cos(2.0 * std::f64::consts::PI * uniform(rng))
}

/// Draws from the gamma distribution of scale 1, by Marsaglia and Tsang; a shape below 1 is raised by one and scaled
/// back.
fn gamma(rng: &mut impl Rng, shape: f64) -> f64 {
    if shape < 1.0 {
        let shrink = libm::pow(1.0 - uniform(rng), 1.0 / shape);
        return shrink * gamma(rng, shape + 1.0);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        let u = 1.0 - uniform(rng);
        if libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests;
