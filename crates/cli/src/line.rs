//! Implements `plimsoll line`, which finds the highest load at which every objective is met.

mod board;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use plimsoll_line::lines::Variant;
use plimsoll_line::page::About;
use plimsoll_line::{Lines, Options, Over, Slo, Stopped};
use plimsoll_process::note;
use plimsoll_results::RunDir;
use plimsoll_results::run_dir::{Columns, Plan, SIMULATOR};
use plimsoll_scenario::{Registry, Scenario, Warning};
use plimsoll_units::whole;

use self::board::Board;
use crate::batch;
use crate::job;
use crate::memory::{Budget, Work};
use crate::objectives::{objective, own_objectives};
use crate::output::{self, Done, Format};
use crate::progress::Show;
use crate::run;
use crate::signals::Interrupt;
use crate::source::{Source, quoted};

/// Find the highest load at which the network meets its objectives, for every variant.
///
/// Brackets the load and halves the bracket, with as many seeds at each load as its interval needs to decide. Every
/// finished run is kept: the same command resumes a stopped search.
#[derive(clap::Args)]
// The search chooses how often it runs each load, so `--replicates` is an error.
#[command(mut_arg("replicates", |replicates| replicates.hide(true)))]
pub struct Args {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    question: Question,
    /// Number of concurrent runs; all cores by default. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    budget: Budget,
    /// Form of the printed lines.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Run directory; results/line-SCENARIO-DIGEST by default.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Remove the runs in the run directory.
    #[arg(long)]
    force: bool,
    /// Run damaged runs again, and write the manifest anew.
    #[arg(long, conflicts_with = "force")]
    repair: bool,
    /// Suppress progress and closing notes; warnings and errors remain.
    #[arg(long, short)]
    quiet: bool,
}

/// The question of a search: objectives, load, and how exact the line shall be.
#[derive(clap::Args, Clone, Debug)]
pub struct Question {
    /// Objective: `p99(query) < 1ms`; also mean and max, `goodput(bulk) > 800Mbps`, and `deadline(query) > 99%`. May be
    /// repeated: all must be met. By default those of the scenario's table `slo`.
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<String>,
    /// The load to search, by its key or its workload. By default the only workload that has a load, or the one called
    /// `background`.
    #[arg(long, value_name = "KEY")]
    pub over: Option<String>,
    /// Load to judge against the line, written as in the scenario; the exit status is 1 if it is above a line. By
    /// default the scenario's own load.
    #[arg(long, value_name = "LOAD")]
    pub at: Option<String>,
    /// Lowest and highest load of the search. By default from a hundredth of the scenario's load to 0.99 of a host's
    /// link.
    #[arg(long, value_name = "LOW..HIGH")]
    pub within: Option<String>,
    /// Largest width of a line's interval.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    pub precision: f64,
    /// Most runs of one load. A load that they leave undecided is within the noise of the line.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = whole::<u32>(2..=4096))]
    pub replicates_max: u32,
    /// Length of a run, in messages of the objectives' workloads; by default the scenario's `run.duration`. A p99 needs
    /// some thousands in all runs of a load together.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..))]
    pub messages: Option<u64>,
    /// Search only this variant; may be repeated. The run directory is that of all variants, so that the rest can
    /// follow.
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
}

/// Parses a share in per cent or as a number: `5%`, or `0.05`.
fn percent(text: &str) -> Result<f64, String> {
    let share = plimsoll_units::parse_share(text).ok();
    share
        .filter(|share| (0.001..=1.0).contains(share))
        .ok_or_else(|| "write a share from 0.1% to 100%".to_owned())
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    let memory = args.budget.watch(Work::Points)?;
    if args.source.replicates.is_some() {
        return Err(anyhow!(
            "a search chooses how often it runs each load; bound that with `--replicates-max`, not `--replicates`"
        ));
    }
    let scenario = args.source.load_with(registry, 1)?;
    let question = &args.question;
    job::check_variants(scenario.points(), &question.variant)?;
    let slos = question.objectives(&scenario)?;
    let over = question.over(&scenario)?;
    let options = Options {
        anew: args.force,
        repair: args.repair,
        ..question.options(&over, batch::threads(args.threads.map(usize::from)))?
    };
    let command = args.source.command_of("line", scenario.points());
    let plan = line_plan(question, &scenario, &slos, &over, command);
    let out = args.out.clone().unwrap_or_else(|| job::default_dir("line-", &scenario, &plan.scenario, ""));
    let dir = run::create(&out, &plan, run::existing(args.force, args.repair))?;
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    let board = Board::new(Show { quiet: args.quiet, verbose: false }, &over, interrupt, memory);
    let asked = memory.asked();
    let ended = plimsoll_line::draw(&scenario, &over, &slos, &options, Some(dir.path()), &board);
    drop(asked);
    board.bar.finish_and_clear();
    let lines = match ended {
        Ok(lines) => lines,
        Err(error) => return stopped(&board, error, &out),
    };
    // The lines are printed before the files are written, which a full disk may prevent; a full stdout does not prevent
    // the files.
    if args.format == Format::Csv {
        lines.said().iter().for_each(|warning| note!("warning: {warning}"));
    }
    let printed = output::print(&lines.render(args.format.of_report(), &output::style()));
    keep_lines(&dir, &scenario, &lines)?;
    if !args.quiet {
        note!();
        note!("Results  {}", out.display());
        note!("Report   {}", out.join("report.html").display());
        note!("Repeat   {}", dir.manifest().command);
    }
    printed.map(|()| verdict(args, &lines))
}

/// Writes `lines.json` and `report.html` of a search, and returns the latter.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn keep_lines(dir: &RunDir, scenario: &Scenario, lines: &Lines) -> anyhow::Result<String> {
    let manifest = dir.manifest();
    let page = lines.page(&About {
        description: scenario.points().first().map_or("", |point| &point.model.description),
        command: &manifest.command,
        seed: manifest.seed,
        version: &manifest.plimsoll,
        commit: manifest.commit.as_deref(),
        scenario: scenario.text(),
    });
    dir.write_report(&page)?;
    dir.write_file("lines.json", &lines.render(Format::Json.of_report(), &output::style()))?;
    Ok(page)
}

/// Returns the exit status: a load that the user has named and that a variant does not carry is a finding, and so are
/// objectives that no load is known to meet in any variant.
fn verdict(args: &Args, lines: &Lines) -> ExitCode {
    let mut is_finding = !lines.is_met();
    if args.question.at.is_none() && !is_finding {
        return ExitCode::SUCCESS;
    }
    let (met, without): (Vec<&Variant>, Vec<&Variant>) =
        lines.overloaded().into_iter().partition(|variant| variant.line.is_met());
    let (below, above): (Vec<&Variant>, Vec<&Variant>) =
        met.into_iter().partition(|variant| variant.least.is_some_and(|least| lines.at < least));
    let at = lines.over.shown(lines.at);
    for (variants, what) in [
        (above, format!("a load of {at} is above the line of")),
        (below, format!("a load of {at} offers too little for the goodput of")),
        (without, format!("no load is known to meet {} with", lines.objectives())),
    ] {
        if !variants.is_empty() {
            is_finding = true;
            let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
            note!("{what} {}", names.join(", "));
        }
    }
    if is_finding { ExitCode::from(output::FINDING) } else { ExitCode::SUCCESS }
}

fn stopped(board: &Board<'_>, error: Stopped, out: &std::path::Path) -> Done {
    match (board.interrupt.signal(), error) {
        (Some(signal), Stopped::Cancelled) => {
            note!(
                "cancelled: {} runs are kept in {}\nTo resume, run the same command.",
                board.runs(),
                out.display()
            );
            Ok(ExitCode::from(128 + signal))
        }
        (_, error) => {
            let error = match error {
                Stopped::Cancelled if board.memory.is_exceeded() => board.memory.error(),
                error => error.into(),
            };
            if board.runs() == 0 {
                return Err(error);
            }
            Err(error.context(format!(
                "the search stopped; {} runs are kept in {}, and the same command resumes",
                board.runs(),
                out.display()
            )))
        }
    }
}

impl Question {
    /// Returns the objectives of the question, else those of the file; each must be observed in every variant.
    ///
    /// # Errors
    /// Returns an error for an objective that cannot be read or observed, and if there is none.
    pub fn objectives(&self, scenario: &Scenario) -> anyhow::Result<Vec<Slo>> {
        let given = self.slo.iter().map(|text| ("--slo".to_owned(), text.as_str()));
        let own = own_objectives(scenario);
        let texts: Vec<(String, &str)> = if self.slo.is_empty() { own.collect() } else { given.collect() };
        if texts.is_empty() {
            return Err(anyhow!(
                "no objective; give one with `--slo 'p99(NAME) < 1ms'`, or in the scenario's table `slo`"
            ));
        }
        texts.into_iter().map(|(place, text)| objective(&place, text, scenario)).collect()
    }

    /// Returns the load to search.
    ///
    /// # Errors
    /// Returns an error if the scenario has no such load, the range is empty, or the scenario sweeps the length of the
    /// runs that the question chooses.
    pub fn over(&self, scenario: &Scenario) -> anyhow::Result<Over> {
        let mut swept = scenario.points().iter().flat_map(|point| &point.sweep);
        if self.messages.is_some() && swept.any(|(key, _)| key == "run.duration") {
            return Err(anyhow!(
                "--messages: the scenario sweeps `run.duration`, which this chooses; omit `--messages`, or set one \
                 duration with `--set run.duration=...`"
            ));
        }
        let over = Over::find(scenario.points(), self.over.as_deref())?;
        let Some(within) = &self.within else { return Ok(over) };
        let ends =
            within.split_once("..").ok_or_else(|| anyhow!("--within: write LOW..HIGH, such as 0.05..0.9"))?;
        let read = |text: &str| over.parse(text).map_err(|why| anyhow!("--within: {why}"));
        let (low, high) = (read(ends.0)?, read(ends.1)?);
        Ok(over.within(low, high)?)
    }

    /// Returns the options of a search that resumes an earlier one.
    ///
    /// # Errors
    /// Returns an error if the load to judge cannot be read.
    pub fn options(&self, over: &Over, threads: usize) -> anyhow::Result<Options> {
        let at = self.at.as_deref();
        let at = at.map(|text| over.parse(text).map_err(|why| anyhow!("--at: {why}"))).transpose()?;
        let Question { precision, replicates_max, messages, .. } = *self;
        let variants = self.variant.clone();
        Ok(Options { variants, precision, replicates_max, messages, at, threads, anew: false, repair: false })
    }
}

/// Returns what the run directory records of the search. Its scenario begins with the question, so that another
/// question is another run; precision and speed are not part of it. `command` is the one that repeats the search,
/// without the question.
pub fn line_plan(
    question: &Question,
    scenario: &Scenario,
    slos: &[Slo],
    over: &Over,
    mut command: String,
) -> Plan {
    let seed = scenario.points().first().map_or(0, |point| point.seed);
    for slo in slos {
        command.push_str(&format!(" --slo {}", quoted(&slo.text)));
    }
    command.push_str(&format!(" --over {}", over.key));
    let mut asked: String = slos.iter().map(|slo| format!("# {}\n", slo.text)).collect();
    asked.push_str(&format!("# over {}\n", over.key));
    let flags = [("at", question.at.clone()), ("within", question.within.clone())];
    for (flag, value) in flags.into_iter().filter_map(|(flag, value)| Some((flag, value?))) {
        command.push_str(&format!(" --{flag} {}", quoted(&value)));
    }
    for variant in &question.variant {
        command.push_str(&format!(" --variant {}", quoted(variant)));
    }
    if question.precision != 0.05 {
        command.push_str(&format!(" --precision {}", question.precision));
    }
    if question.replicates_max != 32 {
        command.push_str(&format!(" --replicates-max {}", question.replicates_max));
    }
    if let Some(messages) = question.messages {
        command.push_str(&format!(" --messages {messages}"));
        asked.push_str(&format!("# runs of {messages} messages"));
        // Another initial load changes the length of a run.
        asked.push_str(&format!(" at {}\n", question.at.as_deref().unwrap_or("today's load")));
    }
    Plan {
        title: scenario.title().to_owned(),
        description: scenario
            .points()
            .first()
            .map_or_else(String::new, |point| point.model.description.clone()),
        carrier: SIMULATOR.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: output::commit().map(str::to_owned),
        command,
        seed,
        scenario: format!(
            "# The search for a load line: `plimsoll line` with\n{asked}\n{}",
            scenario.self_contained()
        ),
        shard: None,
        points: Vec::new(),
        warnings: scenario.warnings().iter().map(Warning::brief).collect(),
        columns: Columns::Csv,
    }
}
