//! The latency of one request: a formula, the measurement of a file or of a run, and how often a request is sent.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use plimsoll_files::Origin;
use plimsoll_process::note;
use plimsoll_results::RunDir;
use plimsoll_results::latencies::Latencies;
use plimsoll_text::printable_lines;
use plimsoll_units::Span;
#[cfg(feature = "command")]
use plimsoll_units::whole;
use serde::{Deserialize, Deserializer, de};

use super::{BadModel, Result};
use crate::measured::{self, Hints, Unit};
use crate::{CopyPolicy, CopyPolicyError, Empirical, Law, Redundant, chain};

/// The distribution of the latency of one request.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
pub struct LawOptions {
    /// Distribution of the latency of one request; normal for `fanout`, `rtts` for the others.
    #[cfg_attr(feature = "command", arg(long, value_enum, conflicts_with = "from"))]
    law: Option<LawName>,
    /// Mean of the distribution, unless it is `rtts`.
    #[cfg_attr(feature = "command",
        arg(long, default_value_t = LawOptions::default().mean, conflicts_with = "from"))]
    mean: Span,
    /// Standard deviation of the distribution; an exponential one has its mean.
    #[cfg_attr(feature = "command",
        arg(long, default_value_t = LawOptions::default().sd, conflicts_with = "from"))]
    sd: Span,
    #[cfg_attr(feature = "command", command(flatten))]
    #[serde(flatten)]
    measured: MeasuredOptions,
}

/// The options that name measured latencies.
#[derive(Clone, Default, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
pub struct MeasuredOptions {
    /// Measured latencies instead of a formula: an HDR histogram (interval log, V2, or percentiles as text), the
    /// output of wrk2, JSON of memtier_benchmark or fio, buckets of Prometheus, a CSV file with a latency a line or
    /// `latency,share` of a cumulative distribution, or a run directory.
    #[cfg_attr(feature = "command", arg(long, alias = "file", value_name = "FILE"))]
    from: Option<PathBuf>,
    /// Unit of the numbers in FILE; by default us, ns for encoded histograms, and ms for wrk2.
    #[cfg_attr(feature = "command", arg(long, value_enum, requires = "from"))]
    unit: Option<UnitName>,
    /// Tag of the intervals of an HdrHistogram log; empty for those without one. A log with several tags needs it.
    #[cfg_attr(feature = "command", arg(long, value_name = "TAG", requires = "from"))]
    tag: Option<String>,
    /// Column of a CSV file that has the latencies.
    #[cfg_attr(feature = "command", arg(long, value_name = "NAME", requires = "from"))]
    column: Option<String>,
    /// Workload of a run directory whose completion times are the latencies.
    #[cfg_attr(feature = "command",
        arg(long, value_name = "NAME", requires = "from", conflicts_with_all = ["unit", "column",
            "tag"]))]
    workload: Option<String>,
    /// Point of a run directory: a variant, and where keys are swept, their values: `DCTCP, workload.a.load = 0.4`.
    #[cfg_attr(feature = "command",
        arg(long, value_name = "POINT", requires = "from", conflicts_with_all = ["unit", "column",
            "tag"]))]
    point: Option<String>,
}

/// A distribution by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum LawName {
    /// Normal: it has negative latencies where the standard deviation is not small relative to the mean.
    Normal,
    /// Exponential, whose standard deviation is its mean.
    Exponential,
    /// Log-normal, with this mean and standard deviation.
    Lognormal,
    /// Round-trip times of a page's retrievals (DeTail): median 334 us, 6 % above 2 ms, up to 14 ms.
    Rtts,
}

/// A unit of time by its name.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum UnitName {
    /// Numbers are nanoseconds.
    Ns,
    /// Numbers are microseconds.
    Us,
    /// Numbers are milliseconds.
    Ms,
    /// The numbers of the file are seconds.
    S,
}

impl From<UnitName> for Unit {
    fn from(name: UnitName) -> Unit {
        match name {
            UnitName::Ns => Unit::Nanoseconds,
            UnitName::Us => Unit::Microseconds,
            UnitName::Ms => Unit::Milliseconds,
            UnitName::S => Unit::Seconds,
        }
    }
}

/// A distribution, and the line that describes it above a table.
pub struct DescribedLaw {
    pub law: Law,
    /// Its source and its percentiles, without an end of line.
    pub line: String,
}

impl Default for LawOptions {
    fn default() -> LawOptions {
        let (mean, sd) = (Span::from_us(90), Span::from_us(50));
        LawOptions { law: None, mean, sd, measured: MeasuredOptions::default() }
    }
}

impl Default for PolicyOptions {
    fn default() -> PolicyOptions {
        PolicyOptions { replicas: None, hedge_at: None, timeout: None, retries: 1 }
    }
}

impl LawOptions {
    /// Returns the distribution, which is `by_default` where nothing says otherwise.
    pub fn law(&self, by_default: LawName) -> Result<DescribedLaw> {
        if let Some(measured) = self.measured.law()? {
            return Ok(measured);
        }
        let (mean, sd) = (self.mean.as_us_f64(), self.sd.as_us_f64());
        let law = match self.law.unwrap_or(by_default) {
            LawName::Normal => Law::Normal { mean, sd },
            LawName::Exponential => Law::Exponential { mean },
            LawName::Lognormal => Law::Lognormal { mean, sd },
            LawName::Rtts => chain::page_rtts(),
        };
        law.check().map_err(|error| BadModel::new(error.to_string()))?;
        let line = line(&law);
        Ok(DescribedLaw { law, line })
    }
}

/// Describes one request by percentiles that need not be rounded to be compared with the literature.
fn line(law: &Law) -> String {
    let [p50, p99, p9995] = [0.5, 0.99, 0.9995].map(|share| law.quantile(share));
    format!("one request   p50 {p50:.2} us, p99 {p99:.2} us, p99.95 {p9995:.2} us")
}

impl MeasuredOptions {
    /// Returns the measured distribution, or `None` where no file is named. A suspect measurement is a warning.
    pub fn law(&self) -> Result<Option<DescribedLaw>> {
        let Some(path) = &self.from else { return Ok(None) };
        let name = path.display();
        let measured = if path.is_dir() {
            if self.unit.is_some() || self.column.is_some() || self.tag.is_some() {
                let text =
                    format!("--from {name}: a run directory has neither --unit nor --column nor --tag");
                return Err(BadModel::new(text));
            }
            self.of_run(path)?
        } else {
            self.read(path)?
        };
        for reason in &measured.suspect {
            note!("warning: {name} is marked SUSPECT: {}", printable_lines(reason));
        }
        let law = Law::Empirical(measured.distribution);
        let mut line = line(&law);
        if let Some(samples) = measured.samples {
            line += &format!("; {samples} latencies");
            let known = 1.0 - TAIL_SAMPLES / samples as f64;
            if known > 0.0 {
                line += &format!(
                    "\n              shares of one request above {:.4} % rest on fewer than {TAIL_SAMPLES} of them",
                    100.0 * known
                );
            }
        }
        Ok(Some(DescribedLaw { law, line }))
    }

    /// Reads the completion times of a workload from a run directory.
    fn of_run(&self, path: &Path) -> Result<measured::MeasuredLatencies> {
        let name = path.display().to_string();
        let read = || RunDir::open(path)?.read_points();
        let points = read().map_err(|error| BadModel::Run { name: name.clone(), error })?;
        let latencies = Latencies::of(&points, self.workload.as_deref(), self.point.as_deref());
        let Latencies { us, unfinished } =
            latencies.map_err(|error| BadModel::new(format!("--from {name}: {error}")))?;
        if unfinished > 0 {
            note!(
                "warning: {unfinished} of {} messages were unfinished when the run ended, and are left out",
                unfinished + us.len() as u64
            );
        }
        let samples = Some(us.len() as u64);
        Ok(measured::MeasuredLatencies {
            distribution: Empirical::of_samples(us),
            samples,
            bounded: 1.0,
            suspect: Vec::new(),
        })
    }

    fn read(&self, path: &Path) -> Result<measured::MeasuredLatencies> {
        let name = path.display();
        if self.workload.is_some() || self.point.is_some() {
            let text = format!("--from {name}: only a run directory has workloads and points");
            return Err(BadModel::new(text));
        }
        let bytes = plimsoll_files::read(path, Origin::Argument, FILE_BYTES_MAX)
            .map_err(|error| BadModel::new(format!("--from: cannot read {name}: {error}")))?;
        let unit = self.unit.map(Unit::from);
        let hints = Hints { unit, column: self.column.as_deref(), tag: self.tag.as_deref(), run_us: None };
        measured::read(&bytes, hints).map_err(|error| BadModel::new(format!("--from {name}: {error}")))
    }
}

/// How often a request is sent, and when.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
pub struct PolicyOptions {
    /// Send each request to K servers at once and take the first reply.
    #[cfg_attr(feature = "command",
        arg(long, value_name = "K", group = "policy", value_parser = whole::<u32>(..)))]
    replicas: Option<u32>,
    /// Send a second copy of those requests that take longer than this share of them, and take the first reply.
    #[cfg_attr(feature = "command", arg(long, value_name = "SHARE", group = "policy"))]
    hedge_at: Option<LatencyShare>,
    /// Give a request up after this time and send it again.
    #[cfg_attr(feature = "command", arg(long, value_name = "SPAN", group = "policy"))]
    timeout: Option<Span>,
    /// The most requests after the first with --timeout; the last is waited for.
    #[cfg_attr(feature = "command",
        arg(long, value_name = "N", default_value_t = PolicyOptions::default().retries,
            requires = "timeout", value_parser = whole::<u32>(..)))]
    retries: u32,
}

impl PolicyOptions {
    /// Returns requests of that law by the policy of the options.
    pub fn redundant(&self, law: Law) -> Result<Redundant> {
        let chosen = [self.replicas.is_some(), self.hedge_at.is_some(), self.timeout.is_some()];
        if chosen.into_iter().filter(|is_chosen| *is_chosen).count() > 1 {
            return Err(BadModel::new("only one of --replicas, --hedge-at and --timeout can be given"));
        }
        let policy = match (self.replicas, self.hedge_at, self.timeout) {
            (Some(copies), ..) => CopyPolicy::Replicas { copies },
            (_, Some(share), _) => CopyPolicy::Hedge { after_us: law.quantile(share.0).max(0.0), copies: 2 },
            (.., Some(timeout)) => {
                CopyPolicy::Retry { timeout_us: timeout.as_us_f64(), retries: self.retries }
            }
            (None, None, None) => CopyPolicy::Once,
        };
        Redundant::new(law, policy).map_err(named)
    }
}

/// Rejects an option with a zero among its numbers.
pub fn at_least_one(option: &str, numbers: &[u32]) -> Result<()> {
    let text = || BadModel::new(format!("{option} 0: expected 1 or more"));
    if numbers.contains(&0) { Err(text()) } else { Ok(()) }
}

/// Names the option whose value a policy cannot have.
pub fn named(error: CopyPolicyError) -> BadModel {
    BadModel::new(format!("--{error}"))
}

/// A share of latencies, `95%` or `0.95`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LatencyShare(pub f64);

impl FromStr for LatencyShare {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<LatencyShare, String> {
        let share = plimsoll_units::parse_share(text).ok();
        let share = share.filter(|share| *share > 0.0 && *share < 1.0).map(LatencyShare);
        share.ok_or_else(|| "write a share above 0 % and below 100 %, such as 95%".to_owned())
    }
}

impl fmt::Display for LatencyShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A product such as 0.999 x 100 has digits that nobody wrote.
        write!(f, "{}%", (self.0 * 1e12).round() / 1e10)
    }
}

impl<'de> Deserialize<'de> for LatencyShare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<LatencyShare, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.parse().map_err(de::Error::custom)
    }
}

/// The most bytes of a file of latencies.
pub const FILE_BYTES_MAX: u64 = 512 << 20;

/// Samples beyond a percentile without which it is hardly more than the largest samples.
const TAIL_SAMPLES: f64 = 10.0;
