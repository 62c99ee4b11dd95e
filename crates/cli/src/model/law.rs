//! The latency of one request: a formula, the measurement of a file or of a run, and how often a request is sent.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use plimsoll_files::Origin;
use plimsoll_models::measured::{self, Hints, Unit};
use plimsoll_models::{CopyPolicy, CopyPolicyError, Empirical, Law, Redundant, chain};
use plimsoll_process::note;
use plimsoll_results::latencies::Latencies;
use plimsoll_text::printable_lines;
use plimsoll_units::{Span, whole};

use crate::output;

/// The distribution of the latency of one request.
#[derive(clap::Args, Clone)]
pub(super) struct LawOptions {
    /// Distribution of the latency of one request; normal for `fanout`, `rtts` for the others.
    #[arg(long, value_enum, conflicts_with = "from")]
    law: Option<LawName>,
    /// Mean of the distribution, unless it is `rtts`.
    #[arg(long, default_value = "90us", conflicts_with = "from")]
    mean: Span,
    /// Standard deviation of the distribution; an exponential one has its mean.
    #[arg(long, default_value = "50us", conflicts_with = "from")]
    sd: Span,
    #[command(flatten)]
    measured: MeasuredOptions,
}

/// The options that name measured latencies.
#[derive(clap::Args, Clone)]
pub(super) struct MeasuredOptions {
    /// Measured latencies instead of a formula: an HDR histogram (interval log, V2, or percentiles as text), the output
    /// of wrk2, a CSV file with a latency a line or `latency,share` of a cumulative distribution, or a run directory.
    #[arg(long, alias = "file", value_name = "FILE")]
    from: Option<PathBuf>,
    /// Unit of the numbers in FILE; by default us, ns for encoded histograms, and ms for wrk2.
    #[arg(long, value_enum, requires = "from")]
    unit: Option<UnitName>,
    /// Tag of the intervals of an HdrHistogram log; empty for those without one. A log with several tags needs it.
    #[arg(long, value_name = "TAG", requires = "from")]
    tag: Option<String>,
    /// Column of a CSV file that has the latencies.
    #[arg(long, value_name = "NAME", requires = "from")]
    column: Option<String>,
    /// Workload of a run directory whose completion times are the latencies.
    #[arg(long, value_name = "NAME", requires = "from", conflicts_with_all = ["unit", "column", "tag"])]
    workload: Option<String>,
    /// Point of a run directory: a variant, and where keys are swept, their values: `DCTCP, workload.a.load = 0.4`.
    #[arg(long, value_name = "POINT", requires = "from", conflicts_with_all = ["unit", "column", "tag"])]
    point: Option<String>,
}

/// A distribution by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum LawName {
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
#[derive(Clone, Copy, Debug, ValueEnum)]
enum UnitName {
    /// Numbers are nanoseconds.
    Ns,
    /// Numbers are microseconds.
    Us,
    /// Numbers are milliseconds.
    Ms,
    /// The numbers of the file are seconds.
    S,
}

/// A distribution, and the line that describes it above a table.
pub(super) struct DescribedLaw {
    pub(super) law: Law,
    /// Its source and its percentiles, without an end of line.
    pub(super) line: String,
}

impl LawOptions {
    /// Returns the distribution, which is `by_default` where nothing says otherwise.
    pub(super) fn law(&self, by_default: LawName) -> Result<DescribedLaw> {
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
        law.check()?;
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
    pub(super) fn law(&self) -> Result<Option<DescribedLaw>> {
        let Some(path) = &self.from else { return Ok(None) };
        let name = path.display();
        let measured = if path.is_dir() {
            if self.unit.is_some() || self.column.is_some() || self.tag.is_some() {
                return Err(anyhow!(
                    "--from {name}: a run directory has neither --unit nor --column nor --tag"
                ));
            }
            self.of_run(path).with_context(|| format!("--from {name}"))?
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
        let points = output::read_points(&output::open_run(path)?)?;
        let Latencies { us, unfinished } =
            Latencies::of(&points, self.workload.as_deref(), self.point.as_deref())?;
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
            suspect: Vec::new(),
        })
    }

    fn read(&self, path: &Path) -> Result<measured::MeasuredLatencies> {
        let name = path.display();
        if self.workload.is_some() || self.point.is_some() {
            return Err(anyhow!("--from {name}: only a run directory has workloads and points"));
        }
        let unit = self.unit.map(|unit| match unit {
            UnitName::Ns => Unit::Nanoseconds,
            UnitName::Us => Unit::Microseconds,
            UnitName::Ms => Unit::Milliseconds,
            UnitName::S => Unit::Seconds,
        });
        let bytes = plimsoll_files::read(path, Origin::Argument, output::TEXT_BYTES_MAX)
            .with_context(|| format!("--from: cannot read {name}"))?;
        let hints = Hints { unit, column: self.column.as_deref(), tag: self.tag.as_deref() };
        measured::read(&bytes, hints).with_context(|| format!("--from {name}"))
    }
}

/// How often a request is sent, and when.
#[derive(clap::Args, Clone)]
pub(super) struct PolicyOptions {
    /// Send each request to K servers at once and take the first reply.
    #[arg(long, value_name = "K", group = "policy", value_parser = whole::<u32>(..))]
    replicas: Option<u32>,
    /// Send a second copy of those requests that take longer than this share of them, and take the first reply.
    #[arg(long, value_name = "SHARE", group = "policy", value_parser = share)]
    hedge_at: Option<f64>,
    /// Give a request up after this time and send it again.
    #[arg(long, value_name = "SPAN", group = "policy")]
    timeout: Option<Span>,
    /// The most requests after the first with --timeout; the last is waited for.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "timeout", value_parser = whole::<u32>(..))]
    retries: u32,
}

impl PolicyOptions {
    /// Returns requests of that law by the policy of the options.
    pub(super) fn redundant(&self, law: Law) -> Result<Redundant> {
        let policy = match (self.replicas, self.hedge_at, self.timeout) {
            (Some(copies), ..) => CopyPolicy::Replicas { copies },
            (_, Some(share), _) => CopyPolicy::Hedge { after_us: law.quantile(share).max(0.0), copies: 2 },
            (.., Some(timeout)) => {
                CopyPolicy::Retry { timeout_us: timeout.as_us_f64(), retries: self.retries }
            }
            (None, None, None) => CopyPolicy::Once,
        };
        Redundant::new(law, policy).map_err(named)
    }
}

/// Rejects an option with a zero among its numbers.
pub(super) fn at_least_one(option: &str, numbers: &[u32]) -> Result<()> {
    if numbers.contains(&0) { Err(anyhow!("{option} 0: expected 1 or more")) } else { Ok(()) }
}

/// Names the option whose value a policy cannot have.
pub(super) fn named(error: CopyPolicyError) -> anyhow::Error {
    anyhow!("--{error}")
}

/// Parses a share of latencies: `95%` or `0.95`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = plimsoll_units::parse_share(text).ok();
    share
        .filter(|share| *share > 0.0 && *share < 1.0)
        .ok_or_else(|| "write a share above 0 % and below 100 %, such as 95%".to_owned())
}

/// Samples beyond a percentile without which it is hardly more than the largest samples.
const TAIL_SAMPLES: f64 = 10.0;
