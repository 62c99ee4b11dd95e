//! Implements `plimsoll compare`, which compares each variant with itself in the first run.

mod measured;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use plimsoll_experiment::question::{key, quoted};
use plimsoll_process::note;
use plimsoll_report::html;
use plimsoll_results::curves::{Curves, Detail};
use plimsoll_results::side_by_side::{Samples, side_by_side};
use plimsoll_results::{Interval, PointKey, PointOutcome, RunDir, Summary};
use plimsoll_scenario::{Registry, Scenario};

use crate::measured::FileHints;
use crate::memory::{Budget, Work};
use crate::output::{self, Done, Shown};

/// Compare run directories: each variant of the first with the same variant of the others.
///
/// Every paired difference comes with its 95 % confidence interval; if that contains zero, the difference is not
/// significant. A sample that several run directories contain counts once: the same scenario and seed with the same
/// result.
#[derive(clap::Args)]
pub struct Args {
    /// The run directory with which the others are compared.
    #[arg(value_name = "RUN")]
    first: PathBuf,
    /// Run directories to compare with it; without any, the first is shown alone.
    #[arg(value_name = "RUN")]
    others: Vec<PathBuf>,
    #[command(flatten)]
    shown: Shown,
    /// Also write a page with the figures, report.html, and summary.json into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Compare measured latencies with the runs instead, by quantile, and name the layer to which the difference
    /// points: `get=get.hlog` with the name of a workload; may be repeated. Reads HdrHistogram logs, CSV, the output
    /// of wrk2, memtier_benchmark and fio, and Prometheus histograms.
    #[arg(long, value_name = "[NAME=]FILE", conflicts_with = "out")]
    measured: Vec<String>,
    /// Times of the same requests inside the server, which tell a slower service from a longer queue; at most one for a
    /// workload.
    #[arg(long, value_name = "[NAME=]FILE", requires = "measured")]
    server: Vec<String>,
    #[command(flatten)]
    hints: FileHints,
    #[command(flatten)]
    budget: Budget,
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    args.budget.watch(Work::Other)?;
    if let Some(out) = &args.out
        && RunDir::open(out).is_ok()
    {
        bail!("--out {}: this is a run directory; choose another folder for the comparison", out.display());
    }
    let mut paths = std::iter::once(&args.first).chain(&args.others);
    if let Some(path) = paths.find(|path| path.join("lines.json").exists()) {
        bail!(
            "{} holds a search of `plimsoll line`, which compares the variants of its scenario; `compare` takes runs",
            path.display()
        );
    }
    let paths: Vec<&Path> = std::iter::once(&args.first).chain(&args.others).map(PathBuf::as_path).collect();
    let runs: Vec<RunDir> = paths.iter().map(|path| output::open_run(path)).collect::<anyhow::Result<_>>()?;
    let mut samples = Samples::default();
    let mut points: Vec<Vec<PointOutcome>> = Vec::new();
    let mut scenarios: Vec<Option<Scenario>> = Vec::new();
    for (run, path) in runs.iter().zip(&paths) {
        let scenario = output::scenario(registry, run, path)?;
        points.push(new_ones(&mut samples, scenario.as_ref(), run, path)?);
        scenarios.push(scenario);
    }
    // A run directory that only repeats others has no column of its own.
    let kept: Vec<usize> = (0..runs.len()).filter(|&at| at == 0 || !points[at].is_empty()).collect();
    let runs: Vec<&RunDir> = kept.iter().map(|&at| &runs[at]).collect();
    let points: Vec<Vec<PointOutcome>> = kept.iter().map(|&at| std::mem::take(&mut points[at])).collect();
    let names = names(&kept.iter().map(|&at| paths[at]).collect::<Vec<_>>());
    for (&at, name) in kept.iter().zip(&names).skip(1) {
        if let [Some(first), Some(other)] = [&scenarios[0], &scenarios[at]]
            && let Some(why) = first.shares_nothing_with(other)
        {
            bail!("{name} cannot be compared with {}: {why}", names[0]);
        }
    }
    for (run, name) in runs.iter().zip(&names) {
        for warning in &run.manifest().warnings {
            note!("warning: {name}: {warning}");
        }
        let missing = run.missing().len();
        if missing > 0 {
            note!("warning: {name} lacks {missing} of {} points", run.manifest().points.len());
        }
        if run.manifest().seed != runs[0].manifest().seed {
            note!(
                "warning: {name} has seed {}, not {}: its messages are not those of {}, so less cancels out \
                 and intervals are wider. Repeat one with the other's `--seed`",
                run.manifest().seed,
                runs[0].manifest().seed,
                names[0]
            );
        }
    }
    if let Some(warning) = bias(&names, &points) {
        note!("warning: {warning}");
    }
    if !args.measured.is_empty() {
        let scenarios = kept.iter().map(|&at| scenarios[at].as_ref()).collect::<Vec<_>>();
        return measured::run(args, &names, &points, &scenarios);
    }
    let (summary, points) = side_by_side(points, &names)?;
    let printed = output::print_compared(&summary, &runs, args.shown);
    if let Some(out) = &args.out {
        fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
        let page = page(&summary, &points, &runs, &names, &command(&paths, out));
        output::write_whole(&out.join("report.html"), &page)?;
        output::write_whole(&out.join("summary.json"), &output::as_json(&summary, &runs)?)?;
        note!("\nReport   {}", out.join("report.html").display());
    }
    printed.map(|()| ExitCode::SUCCESS)
}

/// Returns the bias that the differences between approximate and whole runs have in them.
fn bias(names: &[String], points: &[Vec<PointOutcome>]) -> Option<String> {
    let approximate =
        |points: &Vec<PointOutcome>| points.iter().find_map(|point| point.outcome.approximation.clone());
    let (mut whole, mut sampled) = (false, None);
    for (name, points) in names.iter().zip(points) {
        match approximate(points) {
            Some(of) => sampled = sampled.or(Some((name, of))),
            None => whole = true,
        }
    }
    let (name, of) = sampled.filter(|_| whole)?;
    let [.., Interval { low, high }] = of.slowdowns.first()?.bias;
    Some(format!(
        "{name} is of approximate runs, whose bias is in the differences: at such a load a p99 was {:+.0} .. {:+.0} % \
         beside that of whole runs",
        low * 100.0,
        high * 100.0
    ))
}

/// Returns the command that makes the page again.
fn command(paths: &[&Path], out: &Path) -> String {
    let paths: Vec<String> = paths.iter().map(|path| quoted(&path.to_string_lossy())).collect();
    format!("plimsoll compare {} --out {}", paths.join(" "), quoted(&out.to_string_lossy()))
}

/// Renders the page: a report whose variants are named after their runs.
fn page(
    summary: &Summary,
    points: &[PointOutcome],
    runs: &[&RunDir],
    names: &[String],
    command: &str,
) -> String {
    let first = runs[0].manifest();
    let mut carriers: Vec<&str> = Vec::new();
    let mut warnings = Vec::new();
    for (run, name) in runs.iter().zip(names) {
        let manifest = run.manifest();
        if !carriers.contains(&manifest.carrier.as_str()) {
            carriers.push(&manifest.carrier);
        }
        warnings.extend(manifest.warnings.iter().map(|warning| format!("{name}: {warning}")));
    }
    let title = match names {
        [only] => only.clone(),
        [first, others @ ..] => format!("{} compared with {first}", others.join(", ")),
        [] => String::new(),
    };
    html::render(&html::Page {
        title: &title,
        description: &first.title,
        summary,
        curves: &Curves::of(points, Detail::for_runs(points.len())),
        command,
        carrier: &carriers.join(" and "),
        seed: first.seed,
        version: env!("CARGO_PKG_VERSION"),
        commit: output::commit(),
        scenario: &runs[0].scenario().unwrap_or_default(),
        warnings: &warnings,
    })
}

/// Returns the points of a run directory that none before it contains; reports how many others it has, and where.
fn new_ones(
    samples: &mut Samples,
    scenario: Option<&Scenario>,
    run: &RunDir,
    path: &Path,
) -> anyhow::Result<Vec<PointOutcome>> {
    let all = output::read_points(run)?;
    let count = all.len();
    let (new, again) = samples.new_ones(&inputs(scenario, run), all, path);
    for (first, repeated) in again {
        let (path, first) = (path.display(), first.display());
        note!(
            "warning: {repeated} of {count} runs in {path} are those of {first} (the same scenario and seed, the same \
             result); each counts once, in {first}"
        );
    }
    Ok(new)
}

/// Returns the input of each point: the digest of its model, or that of the whole scenario where that cannot be read.
fn inputs(scenario: Option<&Scenario>, run: &RunDir) -> BTreeMap<PointKey, String> {
    match scenario {
        Some(scenario) => scenario.points().iter().map(|p| (key(p), format!("{:016x}", p.digest))).collect(),
        None => {
            let manifest = run.manifest();
            let whole = manifest.scenario_digest.to_string();
            manifest.points.iter().map(|planned| (planned.key.clone(), whole.clone())).collect()
        }
    }
}

/// Returns the folders' names, or the whole paths where two folders have the same name.
fn names(paths: &[&Path]) -> Vec<String> {
    let short = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    paths
        .iter()
        .map(|path| {
            let alike = paths.iter().filter(|other| short(other) == short(path)).count();
            short(path).filter(|_| alike == 1).unwrap_or_else(|| path.display().to_string())
        })
        .collect()
}
