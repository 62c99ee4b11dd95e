//! Implements `plimsoll calibrate`, which fits parameters of the hosts to measured latencies.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use plimsoll_calibrate::{
    CalibrateError, CalibratedFit, Calibration, Check, CheckVerdict, Comparison, Verdict, listing,
    shortest_timeout,
};
use plimsoll_experiment::bench::{self, Bench, BenchWatch};
use plimsoll_files::Origin;
use plimsoll_process::note;
use plimsoll_report::table::Listing;
use plimsoll_scenario::{Registry, Scenario};
use plimsoll_units::whole;
use serde::Serialize;

use crate::measured::{FileHints, longest_run};
use crate::memory::{Budget, Work};
use crate::output::{self, Done, Format};
use crate::signals::Interrupt;
use crate::source::Source;

/// Fit a scenario's host parameters to latencies that were measured at an idle load.
///
/// Writes the fitted values as a scenario that includes the original, and judges the prediction at another load with
/// `--check`: the exit status is 1 if a quantile is off by more than the tolerance.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Latencies measured at the scenario's load: `get=idle.hlog`. A scenario with one workload needs no name.
    #[arg(long, value_name = "[NAME=]FILE")]
    measured: String,
    /// Latencies measured at the load of `--at`, which are not fitted.
    #[arg(long, value_name = "[NAME=]FILE", requires = "at")]
    check: Option<String>,
    /// Key of the checked measurement: `--at workload.get.load=0.5`, or `--at load=0.5` for the measured workload. May
    /// be repeated.
    #[arg(long, value_name = "KEY=VALUE", requires = "check")]
    at: Vec<String>,
    /// Key to fit, whose value is a time; may be repeated. By default the workload's service time and
    /// `host.processor.interrupt`.
    #[arg(long, value_name = "KEY")]
    fit: Vec<String>,
    /// The variant to calibrate, where the scenario has several.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Largest deviation of a checked quantile.
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = tolerance)]
    tolerance: f64,
    #[command(flatten)]
    hints: FileHints,
    /// Number of concurrent runs; all cores by default. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    budget: Budget,
    /// Form of the printed results.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// File for the fitted scenario; `calibrated.toml` beside the scenario by default.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Parses a share in per cent or as a number: `10%`, or `0.1`.
fn tolerance(text: &str) -> Result<f64, String> {
    let share = plimsoll_units::parse_share(text).ok();
    share
        .filter(|share| (0.001..=1.0).contains(share))
        .ok_or_else(|| "write a share from 0.1% to 100%".to_owned())
}

/// A watch that ends the runs at Ctrl-C.
struct UntilInterrupt(Interrupt);

impl BenchWatch for UntilInterrupt {
    fn goes_on(&self) -> bool {
        self.0.signal().is_none()
    }
}

/// The results in the form that is printed as JSON.
#[derive(Serialize)]
struct Calibrated<'a> {
    fit: &'a CalibratedFit,
    /// The measurement beside the fitted scenario, at the load of the fit.
    fitted: &'a Comparison,
    check: Option<&'a Check>,
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    let memory = args.budget.watch(Work::Points)?;
    let scenario = args.source.load(registry)?;
    let out = args.out.clone().unwrap_or_else(|| args.source.path.with_file_name("calibrated.toml"));
    check_free(&out)?;
    let first = scenario.points().first().context("the scenario has no point")?;
    let workloads: Vec<&str> = first.model.workload.keys().map(String::as_str).collect();
    let run = longest_run(scenario.points().iter());
    let (workload, latencies) = args.hints.read("--measured", &args.measured, &workloads, run)?;
    let checked =
        args.check.as_ref().map(|text| args.hints.read("--check", text, &workloads, run)).transpose()?;
    if let Some((name, _)) = checked.as_ref().filter(|(name, _)| *name != workload) {
        bail!("--check measures `{name}`, and --measured `{workload}`; allowed: the same workload");
    }
    let watch = UntilInterrupt(Interrupt::watch().context("cannot watch for Ctrl-C")?);
    let threads = bench::threads(args.threads.map(usize::from));
    let bench = Bench { threads, memory_max: memory.limit(), watch: &watch, workers: None };
    let reported = |error| match error {
        CalibrateError::Scenario(errors) => args.source.bad(errors).into(),
        other => anyhow::Error::from(other),
    };
    let calibration =
        Calibration::new(&scenario, args.variant.as_deref(), &workload, bench).map_err(reported)?;
    let fit = calibration.fit(&latencies, &args.fit).map_err(reported)?;
    let timeout = shortest_timeout(&first.model);
    let modelled = calibration.run(&fit.set, &[]).map_err(reported)?;
    let fitted = Comparison::of(&workload, "fitted", &latencies, None, &modelled, timeout);
    let check = match &checked {
        Some((_, latencies)) => {
            let at: Vec<String> = args.at.iter().map(|at| key_of(at, &workload)).collect();
            Some(Check::of(latencies, &calibration.run(&fit.set, &at).map_err(reported)?, args.tolerance))
        }
        None => None,
    };
    print(args, &Calibrated { fit: &fit, fitted: &fitted, check: check.as_ref() })?;
    output::write_whole(&out, &include(&scenario, &args.source.path, &out, &fit)?)?;
    note!("\nScenario  {}", out.display());
    let is_off = check.is_some_and(|check| check.verdict == CheckVerdict::Fail);
    Ok(if is_off { ExitCode::from(output::FINDING) } else { ExitCode::SUCCESS })
}

/// The first line of the file that this command makes, by which it knows one that it may replace.
const HEAD: &str = "# Made by `plimsoll calibrate`: the included scenario with fitted values.\n";

/// Refuses a file that something else has made.
fn check_free(out: &Path) -> anyhow::Result<()> {
    match plimsoll_files::read(out, Origin::Argument, 1 << 20) {
        Ok(bytes) if bytes.starts_with(HEAD.as_bytes()) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        _ => {}
    }
    bail!("{} is not a file of `plimsoll calibrate`; choose another place with `--out`", out.display())
}

/// Returns the setting of `--at`; a key without a dot is one of the workload.
fn key_of(at: &str, workload: &str) -> String {
    match at.split_once('=') {
        Some((key, _)) if !key.contains('.') => format!("workload.{workload}.{at}"),
        _ => at.to_owned(),
    }
}

/// Returns the scenario that includes the original and sets the fitted values.
fn include(scenario: &Scenario, original: &Path, out: &Path, fit: &CalibratedFit) -> anyhow::Result<String> {
    let quoted = |text: &str| serde_json::to_string(text);
    let set = scenario.overrides().set.iter().chain(&fit.set).map(|set| quoted(set));
    let set = set.collect::<Result<Vec<_>, _>>()?.join(",\n    ");
    if !original.is_file() {
        // A built-in scenario has no file that could be included.
        return Ok(format!("{HEAD}set = [\n    {set},\n]\n\n{}", scenario.text()));
    }
    let folder = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
    let path = match (original.file_name(), folder(original) == folder(out)) {
        (Some(name), true) => PathBuf::from(name),
        _ => std::fs::canonicalize(original)?,
    };
    Ok(format!("{HEAD}include = {}\nset = [\n    {set},\n]\n", quoted(&path.to_string_lossy())?))
}

fn print(args: &Args, calibrated: &Calibrated<'_>) -> anyhow::Result<()> {
    match args.format {
        Format::Json => output::print(&format!("{}\n", serde_json::to_string_pretty(calibrated)?)),
        Format::Csv => output::print(&numbers(calibrated).written(args.format.of_report())),
        format => output::print(&text(calibrated, format)),
    }
}

/// Lists the fitted values in us and the checked ratios, which one file can have together.
fn numbers(calibrated: &Calibrated<'_>) -> Listing {
    let fitted = calibrated.fit.fitted.iter().map(|fitted| {
        let [low, high] = fitted.interval().map(|end| format!("{end:.3}"));
        vec![fitted.key.clone(), format!("{:.3}", fitted.us), low, high, String::new()]
    });
    let checked = calibrated.check.iter().flat_map(|check| &check.ratios).map(|(name, ratio, verdict)| {
        let number = |number: Option<f64>| number.map_or_else(String::new, |number| format!("{number:.3}"));
        let interval = ratio.and_then(|ratio| ratio.interval);
        let ends = [interval.map(|i| i.low), interval.map(|i| i.high)].map(number);
        let [low, high] = ends;
        vec![name.clone(), number(ratio.map(|ratio| ratio.value)), low, high, said(*verdict).to_owned()]
    });
    Listing::labelled(&["name", "value", "low", "high", "verdict"], fitted.chain(checked).collect())
}

fn text(calibrated: &Calibrated<'_>, format: Format) -> String {
    let format = format.of_report();
    let rows = calibrated.fit.fitted.iter().map(|fitted| {
        let [low, high] = fitted.interval();
        vec![fitted.key.clone(), format!("{:.3}", fitted.us), format!("{low:.3} .. {high:.3}")]
    });
    let mut text =
        Listing::labelled(&["key", "fitted us", "95 % interval"], rows.collect()).written(format) + "\n";
    for sentence in &calibrated.fit.merged {
        text += &(output::folded(sentence, "", "") + "\n");
    }
    text += &listing(std::slice::from_ref(calibrated.fitted)).written(format);
    let fitted = match calibrated.fitted.verdict {
        Verdict::NotSignificant => calibrated.fitted.sentence.as_str(),
        Verdict::NoIntervals => "cannot tell: too few latencies or messages for an interval",
        _ => {
            "the fitted scenario differs from the measurement: fit other keys, or change the service's distribution"
        }
    };
    text += &format!("\n{}", output::folded(&format!("at the fitted load: {fitted}"), "", "  "));
    if let Some(check) = calibrated.check {
        let rows = check.ratios.iter().map(|(name, ratio, verdict)| {
            let interval = ratio.and_then(|ratio| ratio.interval);
            vec![
                name.clone(),
                ratio.map_or_else(String::new, |ratio| format!("{:.3}", ratio.value)),
                interval.map_or_else(String::new, |i| format!("{:.3} .. {:.3}", i.low, i.high)),
                said(*verdict).to_owned(),
            ]
        });
        let names = ["check", "measured / predicted", "interval", "verdict"];
        text += &format!("\n{}", Listing::labelled(&names, rows.collect()).written(format));
        text += &format!("\nat the checked load: {}\n", said(check.verdict));
    }
    text
}

fn said(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Pass => "within the tolerance",
        CheckVerdict::Fail => "off",
        CheckVerdict::CannotTell => "cannot tell",
    }
}
