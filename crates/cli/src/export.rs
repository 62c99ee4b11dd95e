//! Implements `plimsoll export`, which writes results in the formats of other tools.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use plimsoll_experiment::question;
use plimsoll_process::note;
use plimsoll_results::run_dir::point_id;
use plimsoll_results::{PointKey, RunDir, hpcc, perfetto};
use plimsoll_scenario::model::Topology;
use plimsoll_scenario::{Overrides, Registry, Scenario, import};

use crate::memory;
use crate::output::{self, Done};
use crate::source::BadScenario;

/// Write the results of a run, or the jobs of a scenario, in the format of another simulator.
#[derive(clap::Args)]
pub struct Args {
    /// Format of the output.
    #[arg(value_enum)]
    form: Form,
    /// Run directory with the results; for `goal` a scenario.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Folder to write to; by default `fct` or `timeline` in the run directory, and for `goal` the current one.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// HPCC's `fct.txt`: source and destination address (hexadecimal), source and destination port, bytes, start,
    /// completion time and ideal completion time (ns).
    HpccFct,
    /// Timelines of jobs for Perfetto (`ui.perfetto.dev`), where `workload.NAME.run.timeline` asks for them.
    Perfetto,
    /// GOAL files of LogGOPSim and ATLAHS, of each job of a scenario's first run.
    Goal,
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    memory::watch_by_default()?;
    match args.form {
        Form::HpccFct => hpcc_fct(args, registry),
        Form::Perfetto => perfetto(args),
        Form::Goal => goal(args, registry),
    }
}

/// Writes the timeline of each point of a run.
fn perfetto(args: &Args) -> Done {
    let run = output::open_run(&args.run)?;
    let out = args.out.clone().unwrap_or_else(|| args.run.join("timeline"));
    let mut traces = Vec::new();
    for point in output::read_points(&run)? {
        traces.extend(perfetto::trace(&point.outcome).map(|text| (point_id(&point.key), text)));
    }
    if traces.is_empty() {
        anyhow::bail!(
            "{} has no operations of jobs; run it with `--set workload.NAME.run.timeline=true`",
            args.run.display()
        );
    }
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    for (name, text) in traces {
        let path = out.join(format!("{name}.json"));
        output::write_whole(&path, &text)?;
        note!("{}: open it in Perfetto", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the operations of a scenario's jobs.
fn goal(args: &Args, registry: &Registry) -> Done {
    let scenario = plimsoll_shipped::load(registry, &args.run, &Overrides::default())
        .map_err(|errors| BadScenario::new(args.run.display().to_string(), "exported", errors))?;
    let model = scenario.points().first().map(|point| &point.model);
    let jobs = model.map(import::jobs).unwrap_or_default();
    if jobs.is_empty() {
        anyhow::bail!("{} has no job: workloads of kind collective, training or job are", args.run.display());
    }
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("."));
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    for (name, graph) in jobs {
        let path = out.join(format!("{name}.goal"));
        output::write_whole_by(&path, |file| import::write_goal(graph, file))?;
        note!("{}: {graph}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn hpcc_fct(args: &Args, registry: &Registry) -> Done {
    let run = output::open_run(&args.run)?;
    let missing = run.missing().len();
    if missing > 0 {
        note!("warning: {missing} of {} points are missing", run.manifest().points.len());
    }
    let out = args.out.clone().unwrap_or_else(|| args.run.join("fct"));
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let topologies = topologies(registry, &run, &args.run)?;
    for point in output::read_points(&run)? {
        let path = out.join(format!("{}.txt", point_id(&point.key)));
        let topology = topologies.get(&point.key);
        let node = |host: u32| topology.map_or(host, |topology| node(topology, host));
        let text = hpcc::fct(&point.outcome, &node);
        output::write_whole(&path, &text)?;
        note!("{}: {} flows of {}", path.display(), text.lines().count(), point.key);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the network of every point, from the scenario that the run has recorded.
fn topologies(
    registry: &Registry,
    run: &RunDir,
    path: &Path,
) -> anyhow::Result<BTreeMap<PointKey, Topology>> {
    let scenario =
        Scenario::parse_from(registry, "scenario.toml", &run.scenario()?, path, &Overrides::default());
    let scenario = scenario.map_err(|errors| {
        let first = errors.first().map(ToString::to_string).unwrap_or_default();
        anyhow!("the scenario that is recorded in {} cannot be read: {first}", path.display())
    })?;
    Ok(scenario.points().iter().map(|point| (question::key(point), point.model.topology.clone())).collect())
}

/// Returns a host's number in the other simulator: that of its name, which an import keeps.
fn node(topology: &Topology, host: u32) -> u32 {
    let name = topology.host_name(host);
    name.strip_prefix('h').and_then(|digits| digits.parse().ok()).unwrap_or(host)
}
