//! Implements `plimsoll import`, which turns the user's own data, and files of other simulators, into a scenario.

mod capture;
mod flows;
mod jobs;
mod metrics;
mod shared;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Subcommand;
use plimsoll_files::Origin;
use plimsoll_process::note;
use plimsoll_scenario::import::{self, HpccConfig, Imported, ImportedTraffic};
use plimsoll_scenario::{Overrides, Registry, Scenario, ScenarioError};
use plimsoll_units::whole;

use crate::memory;
use crate::output::{self, Done};
use crate::source::BadScenario;

/// Convert captures, flow logs and metrics, and files of other simulators, into a scenario.
///
/// From files of other simulators it writes `network.toml`, `flows.csv` and a `scenario.toml` that runs them. Node 7 of
/// the other simulator is `h7` or, as a switch, `s7`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    from: From,
}

#[derive(Subcommand)]
enum From {
    Capture(capture::Args),
    Flows(flows::Args),
    Metrics(metrics::Args),
    /// Convert a run of HPCC's simulator: its settings (`config.txt`), topology and flows.
    ///
    /// Settings become a scenario with the same controller. It names each key beside the line that it became, and the
    /// keys that it leaves out are listed.
    Hpcc {
        /// Settings, with the files that they name; these are looked for beside them and in the folders above.
        #[arg(value_name = "CONFIG", required_unless_present_any = ["topology", "flows"])]
        config: Option<PathBuf>,
        /// Topology: `NODES SWITCHES LINKS`, the switches, and a line for each link. Default that of the settings.
        #[arg(long, value_name = "FILE")]
        topology: Option<PathBuf>,
        /// Flows: their number, and a line for each. Default those of the settings.
        #[arg(long, value_name = "FILE")]
        flows: Option<PathBuf>,
        /// Folder for the new files.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Convert htsim's fat-trees (`.topo`) and connection matrices (`.cm`).
    Htsim {
        /// Topology, with `Nodes`, `Tiers`, `Podsize` and the tiers.
        #[arg(long, value_name = "FILE", required_unless_present = "connections")]
        topology: Option<PathBuf>,
        /// Connections, with `Nodes` and `Connections`.
        #[arg(long, value_name = "FILE")]
        connections: Option<PathBuf>,
        /// Folder for the new files.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    Goal(jobs::GoalArgs),
    Chakra(jobs::ChakraArgs),
    Astra(jobs::AstraArgs),
    /// Convert a distribution of sizes: a value and a share a line, up to 1 or to 100, or ns-2's three columns.
    Cdf {
        /// File of the distribution.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Bytes in a unit of the file: 1460 where it counts packets.
        #[arg(long, value_name = "BYTES", default_value_t = 1, value_parser = whole::<u64>(1..=65_535))]
        unit: u64,
        /// CSV file to write.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

type Reader = fn(&str, &str) -> Result<Imported, Box<ScenarioError>>;
type TrafficReader = fn(&str, &str, Option<&Imported>) -> Result<ImportedTraffic, Box<ScenarioError>>;

pub fn run(args: &Args, registry: &Registry) -> Done {
    memory::watch_by_default()?;
    match &args.from {
        From::Capture(args) => capture::run(args),
        From::Flows(args) => flows::run(args),
        From::Metrics(args) => metrics::run(args),
        From::Goal(args) => args.run(),
        From::Chakra(args) => args.run(),
        From::Astra(args) => args.run(),
        From::Hpcc { config: Some(config), topology, flows, out } => {
            hpcc(registry, config, topology.as_deref(), flows.as_deref(), out)
        }
        From::Hpcc { config: None, topology, flows, out } => {
            let read_flows: TrafficReader = |name, text, topology| {
                import::hpcc_flows(name, text, topology.map(|topology| &topology.hosts)).map(Imported::into)
            };
            folder(topology.as_deref(), import::hpcc_topology, flows.as_deref(), read_flows, out)
        }
        From::Htsim { topology, connections, out } => folder(
            topology.as_deref(),
            import::htsim_topology,
            connections.as_deref(),
            import::htsim_connections,
            out,
        ),
        From::Cdf { file, unit, out } => {
            let imported = read(file, |name, text| import::cdf(name, text, *unit))?;
            write(out, &imported)?;
            note!("in a scenario: size = {{ cdf = \"{}\" }}", out.display());
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Converts the settings of HPCC's simulator with the files that they name, or those given instead.
fn hpcc(registry: &Registry, path: &Path, topology: Option<&Path>, flows: Option<&Path>, out: &Path) -> Done {
    let text = output::read_text(path, Origin::Argument)?;
    let name = path.display().to_string();
    let bad = |error: Box<ScenarioError>| BadScenario::new(name.clone(), "imported", vec![*error]);
    let config = HpccConfig::read(&name, &text).map_err(bad)?;
    let read = |given: Option<&Path>, named: Option<&str>, key: &str| -> anyhow::Result<(String, String)> {
        let file = match (given, named) {
            (Some(given), _) => given.to_owned(),
            (None, Some(named)) => named_beside(path, named),
            (None, None) => anyhow::bail!("{name} has no {key}; name a file with --topology and --flows"),
        };
        let text = output::read_text(&file, Origin::Name)?;
        Ok((file.display().to_string(), text))
    };
    let topology = read(topology, config.topology_file(), "TOPOLOGY_FILE")?;
    let flows = read(flows, config.flow_file(), "FLOW_FILE")?;
    let made = config.scenario((&topology.0, &topology.1), (&flows.0, &flows.1)).map_err(bad)?;
    // Each line of the scenario has the setting that it comes from as its comment, so an error shows that as well.
    let files = [(NETWORK, &made.network), (FLOWS, &made.flows)];
    let files = files.map(|(file, imported)| (file.to_owned(), imported.text.clone())).into();
    let overrides = Overrides { files, ..Overrides::default() };
    Scenario::parse_from(registry, SCENARIO, &made.scenario.text, out, &overrides)
        .map_err(|errors| BadScenario::new(name.clone(), "imported", errors))?;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    write(&out.join(NETWORK), &made.network)?;
    write(&out.join(FLOWS), &made.flows)?;
    let scenario = out.join(SCENARIO);
    write(&scenario, &made.scenario)?;
    note!("`plimsoll run {}` runs it", scenario.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns where `named` is, which the settings at `config` name from the folder in which the simulator is run: that
/// of the settings or one above. Where it is in none of them, it is beside the settings.
fn named_beside(config: &Path, named: &str) -> PathBuf {
    let folders = config.ancestors().skip(1);
    let found = folders.map(|folder| folder.join(named)).find(|file| file.is_file());
    found.unwrap_or_else(|| config.with_file_name(Path::new(named).file_name().unwrap_or_default()))
}

/// Both files are read before anything is written.
fn folder(
    topology: Option<&Path>,
    read_topology: Reader,
    flows: Option<&Path>,
    read_flows: TrafficReader,
    out: &Path,
) -> Done {
    let network = topology.map(|path| read(path, read_topology)).transpose()?;
    let traffic =
        flows.map(|path| read(path, |name, text| read_flows(name, text, network.as_ref()))).transpose()?;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    if let Some(network) = &network {
        write(&out.join(NETWORK), network)?;
    }
    if let Some(traffic) = &traffic {
        write(&out.join(if traffic.is_job { jobs::JOB } else { FLOWS }), &traffic.file)?;
    }
    if let (Some(topology), Some(flows), Some(traffic)) = (topology, flows, &traffic) {
        let path = out.join(SCENARIO);
        output::write_whole(&path, &scenario_of(topology, flows, traffic))?;
        note!("{}: switches and transport are Plimsoll's defaults; `plimsoll run` runs it", path.display());
    } else {
        note!("no {SCENARIO}, for which the import needs both a network and its traffic");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the scenario of a network and its traffic.
fn scenario_of(topology: &Path, flows: &Path, traffic: &ImportedTraffic) -> String {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().replace(['"', '\\'], "");
    let (kind, file) = if traffic.is_job { ("job", jobs::JOB) } else { ("flow-list", FLOWS) };
    let faults: String = traffic
        .dead_links
        .iter()
        .map(|(from, to)| format!("\n[[fault]]\nfrom = \"{from}\"\nto = \"{to}\"\ndown = true\n"))
        .collect();
    format!(
        "version = 1\ntitle = \"Imported from {} and {}\"\n\n[topology]\nkind = \"file\"\npath = \
         \"{NETWORK}\"\n\n[workload.flows]\nkind = \"{kind}\"\npath = \"{file}\"\n{faults}",
        name(topology),
        name(flows)
    )
}

const NETWORK: &str = "network.toml";
const FLOWS: &str = "flows.csv";
const SCENARIO: &str = "scenario.toml";

fn read<T>(path: &Path, reader: impl Fn(&str, &str) -> Result<T, Box<ScenarioError>>) -> anyhow::Result<T> {
    let text = output::read_text(path, Origin::Argument)?;
    let name = path.display().to_string();
    reader(&name, &text).map_err(|error| BadScenario::new(name, "imported", vec![*error]).into())
}

fn write(path: &Path, imported: &Imported) -> anyhow::Result<()> {
    output::write_whole(path, &imported.text)?;
    note!("{}: {}", path.display(), imported.summary);
    for note in &imported.notes {
        note!("warning: {note}");
    }
    Ok(())
}
