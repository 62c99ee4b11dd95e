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
use plimsoll_results::{PointKey, RunDir, hpcc};
use plimsoll_scenario::model::Topology;
use plimsoll_scenario::{Overrides, Registry, Scenario};

use crate::memory;
use crate::output::{self, Done};

/// Write the results of a run in the format of another simulator.
#[derive(clap::Args)]
pub struct Args {
    /// Format of the output.
    #[arg(value_enum)]
    form: Form,
    /// Run directory with the results.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Folder to write to; by default `fct` in the run directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// HPCC's `fct.txt`: source and destination address (hexadecimal), source and destination port, bytes, start,
    /// completion time and ideal completion time (ns).
    HpccFct,
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    let Form::HpccFct = args.form;
    memory::watch_by_default()?;
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
