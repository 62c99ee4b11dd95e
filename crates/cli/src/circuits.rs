//! Implements `plimsoll circuits`, which schedules the circuits of a hybrid network.

mod demand;
#[cfg(target_os = "linux")]
mod live;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use clap::Subcommand;
use plimsoll_circuits::{Comparison, Demand, SchedulerKind, Switching};
use plimsoll_files::Origin;
use plimsoll_report::schedules;
use plimsoll_scenario::Registry;
use plimsoll_units::{Rate, Span, whole};

use crate::files;
use crate::output::{self, Done, Format};
use demand::{DemandKeys, Generate};

/// Schedule the circuits of a hybrid circuit and packet network.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Schedule(Schedule),
    Compare(CompareSchedulers),
    Demand(Generate),
    #[cfg(target_os = "linux")]
    Serve(live::ServeArgs),
    #[cfg(target_os = "linux")]
    Agent(live::AgentArgs),
}

/// Compute the circuits that serve a demand, and what they leave to the packet switch.
///
/// DEMAND.csv has bytes, without a header: a row for each sender, a value for each receiver. A configuration gives each
/// sender its receiver; between two configurations the circuit switch is dark for a night. `compute_us` is the median
/// time of computing this schedule again and again in this process, and `phi` the most bytes that a port sends or
/// receives.
#[derive(clap::Args)]
struct Schedule {
    /// Demand to schedule; `-` reads stdin.
    #[arg(value_name = "DEMAND.csv")]
    demand: PathBuf,
    /// Scheduler: solstice, bvn, islip, tms, eclipse or rotor.
    #[arg(long, value_name = "NAME", default_value = "solstice")]
    scheduler: SchedulerKind,
    #[command(flatten)]
    switches: SwitchPair,
    /// Form of the printed schedule; JSON has all of it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Draw the schedule into this SVG: who sends to whom, when.
    #[arg(long, value_name = "FILE.svg")]
    figure: Option<PathBuf>,
}

/// Compare schedulers on one demand, or on generated ones.
///
/// The time to serve ends with the first day at which the packet switch can have carried what no circuit did; a
/// scheduler that keeps to the window gets what it leaves again and again. Utilisation is the share of their capacity
/// that circuits, and links to the packet switch, use in that time, or in the window if that is longer. The bounds are
/// what no schedule of circuits alone (LB_c) and of both switches (LB_h) can beat; LB_f also counts the nights that
/// flows need which the packet switch cannot carry whole. Numbers are means over the demands.
///
/// Eclipse computes for seconds at 128 ports and for minutes at 512; `--scheduler` leaves it out.
#[derive(clap::Args)]
struct CompareSchedulers {
    /// Demand to schedule; `-` reads stdin. By default demands are generated.
    #[arg(value_name = "DEMAND.csv",
        conflicts_with_all = ["ports", "seed", "demands", "large", "small", "large_share", "load", "noise", "skew",
            "sparsity"])]
    demand: Option<PathBuf>,
    /// Number of generated demands.
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = whole::<u32>(1..=100_000))]
    demands: u32,
    #[command(flatten)]
    keys: DemandKeys,
    #[command(flatten)]
    switches: SwitchPair,
    /// Schedulers to compare; all by default.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    scheduler: Vec<SchedulerKind>,
    /// Form of the printed table.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Draw the time to serve of each scheduler into this SVG, in days with and without use, and nights.
    #[arg(long, value_name = "FILE.svg")]
    figure: Option<PathBuf>,
}

/// The circuit switch and the packet switch.
#[derive(clap::Args, Clone)]
struct SwitchPair {
    /// Rate of a circuit.
    #[arg(long, value_name = "RATE", default_value = "100Gbps")]
    circuit_rate: Rate,
    /// Rate of a port's link to the packet switch.
    #[arg(long, value_name = "RATE", default_value = "10Gbps")]
    packet_rate: Rate,
    /// How long the circuit switch is dark before each configuration.
    #[arg(long, value_name = "SPAN", default_value = "20us")]
    night: Span,
    /// Time in which the demand comes together; TMS, Eclipse and rotor fill it.
    #[arg(long, value_name = "SPAN", default_value = "3ms")]
    window: Span,
}

pub fn run(args: &Args, _: &Registry) -> Done {
    let printed = match &args.what {
        What::Schedule(schedule) => schedule.printed(),
        What::Compare(compare) => compare.printed(),
        What::Demand(generate) => generate.printed(),
        #[cfg(target_os = "linux")]
        What::Serve(serve) => return serve.run(),
        #[cfg(target_os = "linux")]
        What::Agent(agent) => return agent.run(),
    };
    output::print(&printed?)?;
    Ok(ExitCode::SUCCESS)
}

impl Schedule {
    fn printed(&self) -> Result<String> {
        let switching = self.switches.switching();
        files::check_extension("--figure", self.figure.as_deref(), "svg")?;
        let demand = read_demand(&self.demand)?;
        switching.check(&demand)?;
        let schedule = self.scheduler.make().schedule(&demand, &switching);
        if let Some(file) = &self.figure {
            files::write_svg(file, &schedules::of_schedule(self.scheduler, &schedule, &switching))?;
        }
        let compute_us = || compute_us(self.scheduler, &demand, &switching);
        let format = self.format.of_report();
        Ok(schedules::schedule(&schedule, &demand, self.scheduler, switching.night, compute_us, format))
    }
}

impl CompareSchedulers {
    fn printed(&self) -> Result<String> {
        let switching = self.switches.switching();
        files::check_extension("--figure", self.figure.as_deref(), "svg")?;
        let demands = match &self.demand {
            Some(path) => vec![read_demand(path)?],
            None => self.keys.demands(&switching, self.demands)?,
        };
        demands.iter().try_for_each(|demand| switching.check(demand))?;
        let schedulers = if self.scheduler.is_empty() { &SchedulerKind::ALL[..] } else { &self.scheduler };
        let compute_us = |scheduler, demand: &Demand| compute_us(scheduler, demand, &switching);
        let comparison = Comparison::of(schedulers, &demands, &switching, compute_us);
        if let Some(file) = &self.figure {
            files::write_svg(file, &schedules::of_times(&comparison, &switching))?;
        }
        let seed = self.demand.is_none().then_some(self.keys.seed);
        Ok(schedules::comparison(&comparison, seed, self.format.of_report()))
    }
}

impl SwitchPair {
    fn switching(&self) -> Switching {
        Switching {
            circuit_rate: self.circuit_rate,
            packet_rate: self.packet_rate,
            night: self.night,
            window: self.window,
        }
    }
}

/// Reads a demand from a file, or from stdin for `-`.
fn read_demand(path: &Path) -> Result<Demand> {
    let (name, bytes) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read stdin")?;
        ("stdin".to_owned(), bytes)
    } else {
        (
            path.display().to_string(),
            plimsoll_files::read(path, Origin::Argument, output::TEXT_BYTES_MAX)
                .with_context(|| format!("cannot read {}", path.display()))?,
        )
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column = 1 + String::from_utf8_lossy(before).rsplit('\n').next().unwrap_or("").chars().count();
        anyhow!("{name}:{line}:{column}: not UTF-8 text; allowed: CSV of bytes, a row for each sender")
    })?;
    Ok(Demand::parse(&name, &text)?)
}

/// Returns the median time of computing a schedule, in us. The scheduler keeps its memory, as in a control loop.
fn compute_us(kind: SchedulerKind, demand: &Demand, switching: &Switching) -> f64 {
    let mut scheduler = kind.make();
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < REPEATED_MOST && (times.len() < REPEATED_LEAST || begin.elapsed() < REPEATED_FOR) {
        let start = Instant::now();
        std::hint::black_box(scheduler.schedule(std::hint::black_box(demand), switching));
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// A slow scheduler is computed this often, a fast one as often as it is within the time below.
const REPEATED_LEAST: usize = 3;
const REPEATED_MOST: usize = 1_001;
const REPEATED_FOR: Duration = Duration::from_millis(50);
