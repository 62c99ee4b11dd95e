//! Implements `plimsoll advise`, which finds what raises a load line, and writes how it is turned on.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use plimsoll_advise::{
    Advice, AdviseError, AdviseQuestion, AdviseWatch, CandidateFiles, Have, advise, prepare,
};
use plimsoll_experiment::question::{default_dir, quoted};
use plimsoll_experiment::{bench, points};
use plimsoll_host::{ExampleHost, Policy};
use plimsoll_line::{Room, SearchStop};
use plimsoll_process::note;
use plimsoll_results::run_dir::Existing;
use plimsoll_scenario::Registry;
use plimsoll_units::whole;

use crate::memory::{Budget, Memory, Work};
use crate::output::{self, Done, Format};
use crate::signals::Interrupt;
use crate::source::Source;

/// Find what to turn on: which mechanism raises the load line, what it costs whom, and the settings that do it.
///
/// Tries all presets and single mechanisms that the fabric can have in a few short runs each, searches the lines of the
/// best, and writes a host policy, switch settings and the scenario of the best. Every finished run is kept: the same
/// command resumes a stopped search.
#[derive(clap::Args)]
// The search chooses how often it runs each load, so `--replicates` is an error.
#[command(mut_arg("replicates", |replicates| replicates.hide(true)))]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Objective: `p99(query) < 1ms`, as for `plimsoll line`; may be repeated: all must be met. By default those of the
    /// scenario's table `slo`.
    #[arg(long, value_name = "OBJECTIVE")]
    slo: Vec<String>,
    /// The load to search, by its key or its workload. By default the only workload that has a load, or the one called
    /// `background`.
    #[arg(long, value_name = "KEY")]
    over: Option<String>,
    /// What the fabric has, such as `ecn, 8 queues, linux hosts`; candidates that need more are not tried. By default
    /// everything is assumed.
    #[arg(long, value_name = "CAPABILITIES")]
    have: Option<String>,
    /// The variant of the scenario that is in use today; by default the first.
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Time for the whole search, such as `5m`. A first ranking is printed after a tenth of it, and what is known when
    /// it ends.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = bench::parse_budget)]
    budget: Duration,
    /// Length of a run, in messages of the objectives' workloads; by default as many as have 40 over the limit at the
    /// line, such as 4,000 for a p99.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..))]
    messages: Option<u64>,
    /// Number of concurrent runs; all cores by default. Results within the budget do not depend on it.
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    memory: Budget,
    /// Form of the printed ranking.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Folder of the runs and of the files to apply; results/advise-SCENARIO-DIGEST by default.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Remove the runs in the folder.
    #[arg(long)]
    force: bool,
    /// Suppress progress and closing notes; warnings and errors remain.
    #[arg(long, short)]
    quiet: bool,
}

/// The clock, the signals and the progress of a search.
struct Watch {
    began: Instant,
    budget: Duration,
    interrupt: Interrupt,
    memory: Memory,
    quiet: bool,
}

impl AdviseWatch for Watch {
    fn spent(&self) -> f64 {
        self.began.elapsed().as_secs_f64() / self.budget.as_secs_f64()
    }

    fn goes_on(&self) -> bool {
        self.interrupt.signal().is_none() && !self.memory.is_exceeded()
    }

    fn on_news(&self, text: &str) {
        if !self.quiet {
            note!("{text}");
        }
    }

    fn on_first(&self, advice: &Advice) {
        if !self.quiet {
            let took = bench::duration(self.began.elapsed());
            note!("First ranking, after {took}:\n{}", advice.grid().to_terminal(&output::style()));
        }
    }
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    let began = Instant::now();
    let memory = args.memory.watch(Work::Points)?;
    if args.source.replicates.is_some() {
        return Err(anyhow!("a search chooses how often it runs each load; omit `--replicates`"));
    }
    let question = AdviseQuestion {
        slo: args.slo.clone(),
        over: args.over.clone(),
        from: args.from.clone(),
        have: Have::parse(args.have.as_deref())?,
        messages: args.messages,
        ..AdviseQuestion::default()
    };
    let scenario = args.source.load_with(registry, 1)?;
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    let watch = Watch { began, budget: args.budget, interrupt, memory, quiet: args.quiet };
    let polled = memory.asked();
    let prepared = match prepare(registry, &scenario, &question, &watch) {
        Ok(prepared) => prepared,
        Err(AdviseError::Scenario(errors)) => return Err(args.source.bad(errors).into()),
        Err(error) => return stopped(&watch, error, None),
    };
    let asked = prepared.ask()?;
    let mut command = args.source.command_of("advise", scenario.points());
    for (flag, value) in [("have", &args.have), ("from", &args.from)] {
        command.extend(value.iter().map(|value| format!(" --{flag} {}", quoted(value))));
    }
    let plan = asked.plan(command, output::commit());
    let out = args.out.clone().unwrap_or_else(|| default_dir("advise-", &scenario, &plan.scenario, ""));
    let existing = if args.force { Existing::Replace } else { Existing::Resume };
    let dir = points::create(&out, &plan, existing)?;
    let room = Room { threads: bench::threads(args.threads.map(usize::from)), memory_max: memory.limit() };
    let advice = match advise(&prepared, dir.path(), room, &watch) {
        Ok(advice) => advice,
        Err(error) => return stopped(&watch, error, Some(&out)),
    };
    drop(polled);
    if watch.spent() >= 1.0 {
        note!("the budget is spent; the same command with a larger `--budget` resumes");
    }
    let printed = output::print(&advice.render(args.format.of_report(), &output::style()));
    dir.write_file("advice.json", &advice.render(Format::Json.of_report(), &output::style()))?;
    if let Some(applied) = CandidateFiles::of(&prepared, &advice) {
        dir.write_file("best.toml", &applied.scenario)?;
        dir.write_file("settings.md", &applied.settings)?;
        if let Some(policy) = &applied.policy {
            dir.write_file("policy.toml", policy)?;
            check(policy).with_context(|| format!("{}", out.join("policy.toml").display()))?;
        }
        if !args.quiet {
            let policy = if applied.policy.is_some() { ", policy.toml" } else { "" };
            note!("\nApply    settings.md{policy} in {}", out.display());
            note!("Try      plimsoll run {}", quoted(&out.join("best.toml").to_string_lossy()));
        }
    }
    if !args.quiet {
        note!("Results  {}", out.display());
    }
    printed.map(|()| if advice.is_met { ExitCode::SUCCESS } else { ExitCode::from(output::FINDING) })
}

/// Checks a policy as `plimsoll host` does, on a host that has all that the policy names.
fn check(policy: &str) -> anyhow::Result<()> {
    ExampleHost::plan(&Policy::parse(policy, "advised")?)?;
    Ok(())
}

/// Reports why a search has no result.
fn stopped(watch: &Watch, error: AdviseError, out: Option<&PathBuf>) -> Done {
    let is_cancelled = matches!(error, AdviseError::Search(SearchStop::Cancelled));
    match watch.interrupt.signal() {
        Some(signal) if is_cancelled => {
            let kept = out.map_or_else(String::new, |out| {
                format!("; finished runs are kept in {}\nTo resume, run the same command.", out.display())
            });
            note!("cancelled{kept}");
            Ok(ExitCode::from(128 + signal))
        }
        _ if is_cancelled && watch.memory.is_exceeded() => Err(watch.memory.error().into()),
        _ => Err(error.into()),
    }
}
