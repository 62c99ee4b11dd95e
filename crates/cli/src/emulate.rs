//! `plimsoll emulate`: the points of a scenario between real hosts, into a run directory like that of a simulation.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, anyhow};
use plimsoll_linux::{Emulated, Options};
use plimsoll_results::PointOutcome;
use plimsoll_results::run_dir::{Existing, Plan};
use plimsoll_scenario::{Point, Scenario};
use plimsoll_units::Span;

use crate::job::{self, Job, key, label};
use crate::output::{self, Done, Format};
use crate::signals::Interrupt;
use crate::source::Source;
use crate::{batch, run};

/// Run a scenario between network namespaces on this kernel: its TCP, real programs, the simulator's fabric.
///
/// Needs root: CAP_SYS_ADMIN for network namespaces, CAP_NET_ADMIN for what is in them; `plimsoll check` lists all.
/// Whatever a killed run has left behind goes with the next start, or with `--clean`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Option<Source>,
    /// Run this variant only; may be given often.
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// In place of the file's `run.duration`.
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Microseconds before an event from which on the fabric spins rather than sleeps. More is more exact, and takes
    /// more of a core.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    spin_us: u64,
    /// Keep what comes in and replay it in simulated time: the fabric must do the same again. Takes 40 bytes of memory
    /// a packet.
    #[arg(long)]
    verify: bool,
    /// Run a program in the namespace of a host until `run.duration`, such as `h0=iperf3 -s`; may be given often.
    #[arg(long, value_name = "HOST=COMMAND")]
    program: Vec<Program>,
    /// A congestion control of this kernel, such as bbr, in place of the one in `transport.kind`.
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// In which form to print the results.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Run directory, made anew; results/emulate-SCENARIO-DIGEST by default.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only remove what killed runs have left behind.
    #[arg(long, exclusive = true)]
    clean: bool,
}

/// `h0=iperf3 -s`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Program {
    host: String,
    command: String,
}

impl FromStr for Program {
    type Err = String;
    fn from_str(text: &str) -> Result<Program, String> {
        match text.split_once('=') {
            Some((host, command)) if !host.is_empty() && !command.is_empty() => {
                Ok(Program { host: host.to_owned(), command: command.to_owned() })
            }
            _ => Err("write HOST=COMMAND, such as `h0=iperf3 -s`".to_owned()),
        }
    }
}

pub fn emulate(args: &Args) -> Done {
    if args.clean {
        let removed = plimsoll_linux::clean()?;
        eprintln!("removed {removed} namespaces of runs that are no more");
        return Ok(ExitCode::SUCCESS);
    }
    let mut source =
        args.source.clone().ok_or_else(|| anyhow!("which scenario? `plimsoll emulate SCENARIO`"))?;
    source.set.extend(args.duration.iter().map(|duration| format!("run.duration={duration}")));
    let scenario = source.load()?;
    let job = Job::new(&source, &scenario, None);
    let points = wanted(&job, &args.variant)?;
    // All that can be refused is, before anything is made.
    let options: Vec<Options> = points.iter().map(|point| options(args, point)).collect::<Result<_, _>>()?;
    for (point, options) in points.iter().zip(&options) {
        plimsoll_linux::check(&point.model, options).with_context(|| label(point))?;
    }
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    let plan = plan(args, &source, &job, &points);
    let out = args.out.clone().unwrap_or_else(|| default_dir(&scenario, &plan));
    let dir = run::create(&out, &plan, Existing::Replace)?;
    for (point, options) in points.iter().zip(&options) {
        let emulated = plimsoll_linux::emulate(&point.model, options, || interrupt.signal().is_some());
        if let Some(signal) = interrupt.signal() {
            eprintln!("cancelled at {}; nothing stays behind", label(point));
            return Ok(ExitCode::from(128 + signal));
        }
        let emulated = emulated.with_context(|| label(point))?;
        tell(point, &emulated);
        dir.write_point(&PointOutcome::new(key(point), point.seed, emulated.outcome))?;
    }
    let description = points.first().map_or("", |point| point.model.description.as_str());
    let summary = batch::conclude(&dir, description, false)?;
    output::print_summary(&summary, &[&dir], args.format)?;
    eprintln!("\nResults  {}\nRepeat   {}", dir.path().display(), plan.command);
    Ok(ExitCode::SUCCESS)
}

/// The points to run.
fn wanted<'a>(job: &Job<'a>, variants: &[String]) -> anyhow::Result<Vec<&'a Point>> {
    let all = job.share();
    for variant in variants {
        if !all.iter().any(|point| point.variant == *variant) {
            let mut names: Vec<&str> = all.iter().map(|point| point.variant.as_str()).collect();
            names.dedup();
            return Err(anyhow!("there is no variant `{variant}`; there are: {}", names.join(", ")));
        }
    }
    Ok(all.into_iter().filter(|point| variants.is_empty() || variants.contains(&point.variant)).collect())
}

fn options(args: &Args, point: &Point) -> anyhow::Result<Options> {
    let topology = &point.model.topology;
    let number = |program: &Program| {
        let host = topology.host(&program.host);
        host.ok_or_else(|| anyhow!("--program {}=...: there is no host `{0}`", program.host))
    };
    let programs = args.program.iter().map(|program| Ok((number(program)?, program.command.clone())));
    let programs = programs.collect::<anyhow::Result<Vec<_>>>()?;
    if !programs.is_empty() && point.model.run.duration.is_none() {
        return Err(anyhow!(
            "programs run until `run.duration`, which the scenario does not have; `--duration` gives one"
        ));
    }
    let congestion_control = args.congestion_control.clone();
    Ok(Options { spin: Span::from_us(args.spin_us), verify: args.verify, programs, congestion_control })
}

fn plan(args: &Args, source: &Source, job: &Job<'_>, points: &[&Point]) -> Plan {
    let mut plan = job.plan().clone();
    plan.command = source.command_of("emulate", plan.seed);
    for variant in &args.variant {
        plan.command.push_str(&format!(" --variant {}", crate::source::quoted(variant)));
    }
    if let Some(name) = &args.congestion_control {
        plan.command.push_str(&format!(" --congestion-control {}", crate::source::quoted(name)));
    }
    plan.points.retain(|planned| points.iter().any(|point| key(point) == planned.key));
    plan
}

fn default_dir(scenario: &Scenario, plan: &Plan) -> PathBuf {
    job::default_dir("emulate-", scenario, &plan.scenario, "")
}

/// What only a live run has, to stderr.
fn tell(point: &Point, emulated: &Emulated) {
    let Emulated { outcome, lateness, waited, foreign, startup, verified } = emulated;
    let counters = &outcome.counters;
    eprintln!("{}: ready after {startup}", label(point));
    eprintln!(
        "  frames    {} in, {} out, {} dropped by the fabric, {} marked, {foreign} not for it",
        counters.packets_sent,
        counters.packets_delivered,
        counters.nic_drops + counters.switch_drops,
        counters.marks
    );
    eprintln!("  TCP       {} retransmissions, {} timeouts", counters.retransmissions, counters.timeouts);
    let line = |name: &str, spread: &plimsoll_linux::Spread| {
        let (p50, p99) = (spread.quantile(0.5), spread.quantile(0.99));
        eprintln!("  {name:<9} p50 {p50}, p99 {p99}, max {}", spread.max());
    };
    line("lateness", lateness);
    line("waited", waited);
    match verified {
        Some(true) => eprintln!("  replay    the same digest"),
        Some(false) => eprintln!("  replay    ANOTHER digest"),
        None => {}
    }
}
