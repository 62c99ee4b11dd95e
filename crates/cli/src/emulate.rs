//! Implements `plimsoll emulate`, which runs a scenario's points between real hosts, into a run directory like that of
//! a simulation.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, anyhow};
use plimsoll_experiment::question::{self, key, label, objectives, quoted};
use plimsoll_experiment::{Question, points as kept};
use plimsoll_linux::{CaptureTo, Emulated, MultipathCounts, Options, ProgramEnd, Readings, rough};
use plimsoll_process::note;
use plimsoll_results::PointOutcome;
use plimsoll_results::run_dir::{RunPlan, point_id};
use plimsoll_scenario::{Point, Registry, Scenario, model};
use plimsoll_units::{Span, whole};

use crate::memory::{self, Work};
use crate::output::{self, Done, Shown};
use crate::run::{self, BatchStop};
use crate::signals::Interrupt;
use crate::source::Source;

/// Run a scenario between network namespaces on this kernel: its TCP, real programs, the simulator's fabric.
///
/// Needs root: CAP_SYS_ADMIN for network namespaces, CAP_NET_ADMIN for what is in them; `plimsoll check` lists all
/// requirements. The next start, or `--clean`, removes what a killed run has left behind.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Option<Source>,
    /// Run only this variant; may be repeated.
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// Spin instead of sleeping in the last N microseconds before an event of the fabric. More is more exact, and uses
    /// more of a core.
    #[arg(long, value_name = "N", default_value_t = SPIN_US, value_parser = whole::<u64>(..=1_000_000))]
    spin_us: u64,
    /// Record the fabric's input and replay it in simulated time: the fabric must do the same again. Uses 40 bytes of
    /// memory a packet.
    #[arg(long)]
    verify: bool,
    /// Run a program in the namespace of a host until `run.duration`, such as `h0=iperf3 -s`, or `h0@7=iperf3 -s` for
    /// QJump's level 7, in addition to the scenario's `program`; may be repeated.
    #[arg(long, value_name = "HOST[@LEVEL]=COMMAND")]
    program: Vec<Program>,
    /// Use this congestion control of the kernel, such as bbr, instead of `transport.kind`.
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// Use MPTCP for the workloads' connections, with up to this many subflows, each on its own path where the topology
    /// has several.
    #[arg(long, value_name = "N", value_parser = whole::<u8>(1..=8))]
    mptcp: Option<u8>,
    /// Open a shell in a host during the run; the run ends when the shell does. Workloads send until `run.duration` as
    /// usual.
    #[arg(long, value_name = "HOST")]
    shell: Option<String>,
    /// Capture the frames of every host for Wireshark: pcap/POINT/h0.pcapng and so on in the run directory, with times
    /// of the fabric's clock.
    #[arg(long)]
    capture: bool,
    /// Capture only this many bytes of each frame.
    #[arg(long, value_name = "N", requires = "capture", value_parser = whole::<u32>(14..))]
    capture_bytes: Option<u32>,
    #[command(flatten)]
    shown: Shown,
    /// Run directory; results/emulate-SCENARIO-DIGEST by default.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Remove the runs in the run directory, and run all points again.
    #[arg(long)]
    force: bool,
    /// Run damaged points again, and write the manifest anew.
    #[arg(long, conflicts_with = "force")]
    repair: bool,
    /// Suppress closing notes; warnings and errors remain.
    #[arg(long, short)]
    quiet: bool,
    /// Only remove what killed runs have left behind.
    #[arg(long, exclusive = true)]
    clean: bool,
}

const SPIN_US: u64 = 30;

/// A program for a host: `h0=iperf3 -s`, or `h0@7=iperf3 -s`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Program {
    host: String,
    level: Option<u8>,
    command: String,
}

impl FromStr for Program {
    type Err = String;
    fn from_str(text: &str) -> Result<Program, String> {
        let (place, command) = text.split_once('=').unwrap_or((text, ""));
        let (host, level) = place.split_once('@').map_or((place, None), |(host, level)| (host, Some(level)));
        if host.is_empty() || command.is_empty() {
            return Err("write HOST=COMMAND, such as `h0=iperf3 -s`".to_owned());
        }
        let level = level.map(|level| match level.parse() {
            Ok(level @ 0..=7) => Ok(level),
            _ => {
                Err(format!("there is no level `{level}`; write HOST@LEVEL=COMMAND with a level from 0 to 7"))
            }
        });
        Ok(Program { host: host.to_owned(), level: level.transpose()?, command: command.to_owned() })
    }
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    if args.clean {
        let removed = plimsoll_linux::clean()?;
        note!("removed {removed} namespaces of runs that have ended");
        return Ok(ExitCode::SUCCESS);
    }
    let source = args
        .source
        .as_ref()
        .ok_or_else(|| anyhow!("no scenario given; write `plimsoll emulate SCENARIO`"))?;
    let scenario = source.load(registry)?;
    let asked = Question::new(&scenario, None, &args.variant)?;
    objectives(&scenario, &[])?;
    let points = asked.share();
    // All invalid options are rejected before anything is created.
    let mut options: Vec<Options> =
        points.iter().map(|point| options(args, point)).collect::<Result<_, _>>()?;
    for (point, options) in points.iter().zip(&options) {
        plimsoll_linux::check(&point.model, options).with_context(|| label(point))?;
    }
    if args.shell.is_some() && points.len() > 1 {
        let count = points.len();
        return Err(anyhow!(
            "--shell needs a single run, and these are {count}; select one by --variant and --set"
        ));
    }
    memory::begin(Work::Emulate);
    let interrupt = Interrupt::watch_all().context("cannot watch for Ctrl-C")?;
    let plan = plan(args, source, &asked, &scenario);
    let out = args.out.clone().unwrap_or_else(|| default_dir(&scenario, &plan));
    let dir = kept::create(&out, &plan, kept::existing(args.force, args.repair))?;
    let missing = kept::missing(&dir, &points, args.repair)?;
    // A shell always gets a run, even if the point is finished.
    let todo = if args.shell.is_some() { points.clone() } else { missing };
    run::note_finished(&dir, points.len(), todo.len());
    let is_asked = |point: &Point| todo.iter().any(|asked| key(asked) == key(point));
    let mut is_another = false;
    for (point, options) in points.iter().zip(&mut options).filter(|(point, _)| is_asked(point)) {
        log_programs(dir.path(), point, &mut options.programs)?;
        if args.capture {
            let folder = dir.path().join("pcap").join(point_id(&key(point)));
            check_folder(&folder)?;
            let bytes_max = args.capture_bytes.map_or(usize::MAX, |bytes| bytes as usize);
            options.capture = Some(CaptureTo { folder, bytes_max });
        }
        if let Some(shell) = &args.shell {
            note!("a shell in {shell}; the run ends when it does (`exit`)\n{}", addresses(point));
        }
        let emulated = plimsoll_linux::emulate(&point.model, options, || interrupt.signal().is_some());
        if let Some(signal) = interrupt.signal() {
            dir.finish()?;
            return run::stop(BatchStop::Signal(signal), &dir, &points);
        }
        let emulated = emulated.with_context(|| label(point))?;
        is_another |= emulated.verified == Some(false);
        if !args.quiet {
            tell(point, &emulated);
        }
        dir.write_point(&PointOutcome::new(key(point), point.seed, emulated.outcome))?;
    }
    memory::begin(Work::Summary);
    let summary = kept::conclude(&dir, &output::read_points(&dir)?)?;
    let printed = output::print_summary(&summary, &[&dir], args.shown);
    if !args.quiet {
        output::note_places(dir.path(), args.shown);
        note!("Repeat   {}", plan.command);
    }
    printed?;
    if is_another {
        note!("warning: a replay had another digest, which is a defect of the fabric");
        return Ok(ExitCode::from(output::FINDING));
    }
    Ok(ExitCode::SUCCESS)
}

fn options(args: &Args, point: &Point) -> anyhow::Result<Options> {
    let topology = &point.model.topology;
    let of_scenario = point.model.program.iter().map(|program| {
        let host = host(topology, "program.host", &program.host.0)?;
        let model::Program { level, command, start, stop, .. } = program.clone();
        Ok(plimsoll_linux::Program { host, level, command, start, stop, log: None })
    });
    let of_command_line = args.program.iter().map(|Program { host: name, level, command }| {
        let host = host(topology, "--program", name)?;
        let (level, command, start) = (*level, command.clone(), Span::ZERO);
        Ok(plimsoll_linux::Program { host, level, command, start, stop: None, log: None })
    });
    let programs = of_scenario.chain(of_command_line).collect::<anyhow::Result<Vec<_>>>()?;
    if !programs.is_empty() && args.shell.is_none() && point.model.run.duration.is_none() {
        return Err(anyhow!(
            "programs run until `run.duration`, which the scenario does not set; set it with `--duration`"
        ));
    }
    let congestion_control = args.congestion_control.clone();
    let shell = args.shell.as_ref().map(|name| host(topology, "--shell", name)).transpose()?;
    let spin = Span::from_us(args.spin_us);
    let (verify, mptcp) = (args.verify, args.mptcp);
    Ok(Options { spin, verify, programs, congestion_control, mptcp, shell, capture: None })
}

/// Returns the number of the host named `place`.
fn host(topology: &model::Topology, place: &str, name: &str) -> anyhow::Result<u32> {
    topology.host(name).ok_or_else(|| {
        let last = topology.host_name(topology.host_count() - 1);
        anyhow!("{place} {name}: no such host; the topology has {} to {last}", topology.host_name(0))
    })
}

/// Assigns each program an output file in the run directory: `program-h0.log`, in a folder named after the point.
fn log_programs(dir: &Path, point: &Point, programs: &mut [plimsoll_linux::Program]) -> anyhow::Result<()> {
    if programs.is_empty() {
        return Ok(());
    }
    let folder = dir.join("programs").join(&point.id);
    check_folder(&folder)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut of_host: BTreeMap<u32, u32> = BTreeMap::new();
    for program in programs {
        let name = point.model.topology.host_name(program.host);
        let number = of_host.entry(program.host).or_default();
        *number += 1;
        let number = if *number > 1 { format!("-{number}") } else { String::new() };
        program.log = Some(folder.join(format!("program-{name}{number}.log")));
    }
    Ok(())
}

/// Checks that a folder of the run directory, if it exists, is not a link to another place.
fn check_folder(folder: &Path) -> anyhow::Result<()> {
    plimsoll_files::check_folder(folder).with_context(|| format!("cannot write to {}", folder.display()))
}

/// Returns the addresses of the hosts, for the user of a shell in one.
fn addresses(point: &Point) -> String {
    let last = point.model.topology.host_count() - 1;
    let of = plimsoll_linux::address;
    format!("hosts: h0 {} to h{last} {}", of(0), of(last))
}

fn plan(args: &Args, source: &Source, asked: &Question<'_>, scenario: &Scenario) -> RunPlan {
    // Options that change the measurement select another run directory.
    let measured = measured(args);
    let command = source.command_of("emulate", scenario.points()) + &measured;
    let mut plan = asked.plan(command, output::commit());
    plan.carrier = format!("this kernel{measured}");
    if args.spin_us != SPIN_US {
        plan.command.push_str(&format!(" --spin-us {}", args.spin_us));
    }
    if args.verify {
        plan.command.push_str(" --verify");
    }
    if let Some(shell) = &args.shell {
        plan.command.push_str(&format!(" --shell {}", quoted(shell)));
    }
    plan
}

/// Returns the options that change the behaviour of a point, as they are written.
fn measured(args: &Args) -> String {
    let mut words = String::new();
    for Program { host, level, command } in &args.program {
        let level = level.map_or_else(String::new, |level| format!("@{level}"));
        let program = quoted(&format!("{host}{level}={command}"));
        words.push_str(&format!(" --program {program}"));
    }
    if let Some(name) = &args.congestion_control {
        words.push_str(&format!(" --congestion-control {}", quoted(name)));
    }
    if let Some(subflows) = args.mptcp {
        words.push_str(&format!(" --mptcp {subflows}"));
    }
    if args.capture {
        words.push_str(" --capture");
    }
    if let Some(bytes) = args.capture_bytes {
        words.push_str(&format!(" --capture-bytes {bytes}"));
    }
    words
}

fn default_dir(scenario: &Scenario, plan: &RunPlan) -> PathBuf {
    question::default_dir("emulate-", scenario, &format!("{}\n{}", plan.carrier, plan.scenario), "")
}

/// Prints measurements that only a live run has to stderr.
fn tell(point: &Point, emulated: &Emulated) {
    let Emulated {
        outcome, lateness, waited, foreign, startup, verified, excess, multipath, programs, ..
    } = emulated;
    let counters = &outcome.counters;
    note!("{}: ready after {}", label(point), rough(*startup));
    note!(
        "  frames    {} in, {} out, {} dropped by the fabric, {} marked, {foreign} not for it",
        counters.packets_sent,
        counters.packets_delivered,
        counters.packets_lost(),
        counters.marks
    );
    note!("  TCP       {} retransmissions, {} timeouts", counters.retransmissions, counters.timeouts);
    if let Some(excess) = excess {
        let levels = (0..).zip(excess).filter(|(_, packets)| **packets > 0);
        let levels: Vec<String> =
            levels.map(|(level, packets)| format!("{packets} at level {level}")).collect();
        let said = if levels.is_empty() { "none".to_owned() } else { levels.join(", ") };
        note!("  QJump     packets beyond their level's share: {said}");
    }
    if let Some(MultipathCounts { connections, joined, fallbacks }) = multipath {
        note!(
            "  MPTCP     {connections} connections, {joined} further subflows, {fallbacks} times back to TCP"
        );
    }
    let line = |name: &str, spread: &plimsoll_linux::Spread| {
        let [p50, p99, max] = [spread.quantile(0.5), spread.quantile(0.99), spread.max()].map(rough);
        note!("  {name:<9} p50 {p50}, p99 {p99}, max {max}");
    };
    line("lateness", lateness);
    line("waited", waited);
    if let Some(Readings { took, weeks, late, .. }) = &emulated.readings {
        line("readings", took);
        note!("  sockets   read {} times, too late for {late} of {weeks} weeks", took.count());
    }
    for ProgramEnd { program, status } in programs {
        let host = point.model.topology.host_name(program.host);
        let status = status.map_or_else(|| "ran to its end".to_owned(), |status| status.to_string());
        let log = program.log.as_ref().map_or_else(String::new, |log| format!(" ({})", log.display()));
        note!("  program   {host}: `{}`: {status}{log}", program.command);
    }
    match verified {
        Some(true) => note!("  replay    the same digest"),
        Some(false) => note!("  replay    ANOTHER digest"),
        None => {}
    }
}
