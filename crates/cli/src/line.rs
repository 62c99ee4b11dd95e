//! Implements `plimsoll line`, which finds the highest load at which every objective is met.

mod board;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use plimsoll_experiment::question::{default_dir, quoted};
use plimsoll_experiment::{bench, points};
use plimsoll_line::lines::LineVariant;
use plimsoll_line::{AskedLine, ExpectedLines, LineQuestion, Lines, Over, Room, SearchStop, Smaller};
use plimsoll_process::note;
use plimsoll_results::run_dir::Existing;
use plimsoll_scenario::{Registry, Scenario};
use plimsoll_sim::RunError;
use plimsoll_units::whole;

use self::board::LineBoard;
use crate::memory::{Budget, Memory, Work};
use crate::output::{self, Done, Format};
use crate::progress::Show;
use crate::run::approximate;
use crate::signals::Interrupt;
use crate::source::Source;

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
    /// Objective: `p99(query) < 1ms`; also mean and max, `goodput(bulk) > 800Mbps`, and `deadline(query) > 99%`. May be
    /// repeated: all must be met. By default those of the scenario's table `slo`.
    #[arg(long, value_name = "OBJECTIVE")]
    slo: Vec<String>,
    /// The load to search, by its key or its workload. By default the only workload that has a load, or the one called
    /// `background`. Or any other key of a number, such as `port.switch.lossless.memory`, together with `--within`.
    #[arg(long, value_name = "KEY")]
    over: Option<String>,
    /// Value to judge against the line, written as in the scenario; the exit status is 1 if it violates an objective,
    /// as a load above a line does. By default the scenario's own.
    #[arg(long, value_name = "VALUE")]
    at: Option<String>,
    /// Lowest and highest value of the search: `0.05..0.9`, `100KB..2MB`. By default, of a load, from a hundredth of
    /// the scenario's to 0.99 of a host's link.
    #[arg(long, value_name = "LOW..HIGH")]
    within: Option<String>,
    /// First search by approximate runs (`plimsoll run --approximate`), then by whole runs near the lines found.
    #[arg(long)]
    approximate: bool,
    /// Largest width of a line's interval.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    precision: f64,
    /// Most runs of one load. A load that they leave undecided is within the noise of the line.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = whole::<u32>(2..=4096))]
    replicates_max: u32,
    /// Length of a run, in messages of the objectives' workloads; by default the scenario's `run.duration`. A p99 needs
    /// some thousands in all runs of a load together.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..))]
    messages: Option<u64>,
    /// Time for the search: `5m`. Chooses a length of runs with which the search fits, unless `--messages` does, and
    /// ends with the intervals that are known then.
    #[arg(long, value_name = "TIME", value_parser = bench::parse_budget)]
    budget: Option<Duration>,
    /// Search only this variant; may be repeated. The run directory is that of all variants, so that the rest can
    /// follow.
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// Number of concurrent runs; all cores by default. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    memory: Budget,
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

/// Parses a share in per cent or as a number: `5%`, or `0.05`.
fn percent(text: &str) -> Result<f64, String> {
    let share = plimsoll_units::parse_share(text).ok();
    share
        .filter(|share| (0.001..=1.0).contains(share))
        .ok_or_else(|| "write a share from 0.1% to 100%".to_owned())
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    let memory = args.memory.watch(Work::Points)?;
    if args.source.replicates.is_some() {
        return Err(anyhow!(
            "a search chooses how often it runs each load; bound that with `--replicates-max`, not `--replicates`"
        ));
    }
    let scenario = args.source.load_with(registry, 1)?;
    let mut question = LineQuestion {
        slo: args.slo.clone(),
        over: args.over.clone(),
        at: args.at.clone(),
        within: args.within.clone(),
        precision: args.precision,
        replicates_max: args.replicates_max,
        messages: args.messages,
        variants: args.variant.clone(),
    };
    let watched = Watched {
        interrupt: Interrupt::watch().context("cannot watch for Ctrl-C")?,
        show: Show { quiet: args.quiet, verbose: false },
        room: Room { threads: bench::threads(args.threads.map(usize::from)), memory_max: memory.limit() },
        memory,
    };
    let polled = memory.asked();
    let began = Instant::now();
    let left = || args.budget.map(|budget| budget.saturating_sub(began.elapsed()));
    // Of fewer racks it is only known that they keep a load's line.
    let smaller = match question.clone().ask(&scenario)?.over.is_load() {
        true => Smaller::of(&scenario),
        false => None,
    };
    let expected = match (&smaller, args.budget) {
        _ if args.approximate => {
            let scenario = approximate(&args.source).load_with(registry, 1)?;
            let budget = args.budget.map(|budget| budget / 2);
            watched.expected(&scenario, "by approximate runs", question.clone(), budget)?
        }
        (Some(Smaller { scenario, words }), Some(budget)) => {
            let words = format!("on an equivalent of {words}");
            watched.expected(scenario, &words, question.clone(), Some(budget / 2))?
        }
        (Some(Smaller { words, .. }), None) if !args.quiet => {
            note!("an equivalent of {words} would take less; `--budget 10m` searches it first");
            ExpectedLines::new()
        }
        _ => ExpectedLines::new(),
    };
    question.messages = watched.messages(&question, &scenario, left())?;
    let asked = AskedLine { expected, ..question.ask(&scenario)? };
    let mut command = args.source.command_of("line", scenario.points());
    command.push_str(if args.approximate { " --approximate" } else { "" });
    let plan = asked.plan(command, output::commit());
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| default_dir("line-", &scenario, &plan.scenario, ""));
    let existing = points::existing(args.force, args.repair);
    let dir = points::create(&out, &plan, existing)?;
    let board = watched.board(&asked.over, left());
    let in_dir = args.out.iter().map(|out| format!(" --out {}", quoted(&out.to_string_lossy())));
    let repeat = plan.command.clone() + &in_dir.collect::<String>();
    let ended = plimsoll_line::draw(&asked, Some(dir.path()), existing, watched.room, &board);
    drop(polled);
    board.bar.finish_and_clear();
    let lines = match ended {
        Ok(lines) => lines,
        Err(error) => {
            // A budget chooses the length of runs anew, so the command that resumes names it.
            let way = match args.budget {
                Some(_) => format!("To resume: {repeat}"),
                None => "To resume, run the same command.".to_owned(),
            };
            return stopped(&board, error, &out, &way);
        }
    };
    // The lines are printed before the files are written, which a full disk may prevent; a full stdout does not prevent
    // the files.
    if args.format == Format::Csv {
        lines.said().iter().for_each(|warning| note!("warning: {warning}"));
    }
    let printed = output::print(&lines.render(args.format.of_report(), &output::style()));
    lines.keep(&dir, &scenario)?;
    if !args.quiet {
        if lines.variants.iter().any(|variant| variant.unfinished.is_some()) {
            note!("The time ended; the command below goes on with the runs that are kept.");
        }
        note!();
        note!("Results  {}", out.display());
        note!("Report   {}", out.join("report.html").display());
        note!("Repeat   {repeat}");
    }
    printed.map(|()| verdict(args, &lines))
}

/// What all searches of one command share.
struct Watched {
    interrupt: Interrupt,
    show: Show,
    room: Room,
    memory: Memory,
}

impl Watched {
    fn board<'a>(&self, over: &'a Over, budget: Option<Duration>) -> LineBoard<'a> {
        LineBoard::new(self.show, over, self.interrupt.clone(), self.memory, budget)
    }

    /// Chooses the length of runs that fits the budget, where none is given.
    fn messages(
        &self,
        question: &LineQuestion,
        scenario: &Scenario,
        budget: Option<Duration>,
    ) -> anyhow::Result<Option<u64>> {
        let (Some(budget), None) = (budget, question.messages) else { return Ok(question.messages) };
        let asked = question.clone().ask(scenario)?;
        Ok(plimsoll_line::affordable(&asked, budget, self.room, &self.board(&asked.over, Some(budget)))?)
    }

    /// Searches a scenario that takes less, named by `words`, whose lines the search of the whole one expects.
    fn expected(
        &self,
        scenario: &Scenario,
        words: &str,
        mut question: LineQuestion,
        budget: Option<Duration>,
    ) -> anyhow::Result<ExpectedLines> {
        let began = Instant::now();
        if !self.show.quiet {
            note!("first {words}");
        }
        question.messages = self.messages(&question, scenario, budget)?;
        let asked = question.ask(scenario)?;
        let left = budget.map(|budget| budget.saturating_sub(began.elapsed()));
        let board = self.board(&asked.over, left);
        let drawn = plimsoll_line::draw(&asked, None, Existing::Resume, self.room, &board);
        board.bar.finish_and_clear();
        let lines = match drawn {
            Err(SearchStop::OutOfTime) => return Ok(ExpectedLines::new()),
            // The search has come to a load of which approximate runs know no error.
            Err(SearchStop::Run(RunError::Build { key, problem })) if key == "run.approximate" => {
                note!("approximate runs end here, and whole ones follow: {problem}");
                return Ok(ExpectedLines::new());
            }
            drawn => drawn?,
        };
        if !self.show.quiet {
            lines.sentences().iter().for_each(|sentence| note!("{sentence}"));
            note!("now by runs of the whole network");
        }
        Ok(lines.expected())
    }
}

/// Returns the exit status: a load that the user has named and that a variant does not carry is a finding, and so are
/// objectives that no load is known to meet in any variant.
fn verdict(args: &Args, lines: &Lines) -> ExitCode {
    let mut is_finding = !lines.is_met();
    if args.at.is_none() && !is_finding {
        return ExitCode::SUCCESS;
    }
    let (met, without): (Vec<&LineVariant>, Vec<&LineVariant>) =
        lines.overloaded().into_iter().partition(|variant| variant.line.is_met());
    let (below, above): (Vec<&LineVariant>, Vec<&LineVariant>) = met
        .into_iter()
        .partition(|variant| variant.least.zip(lines.at).is_some_and(|(least, at)| at < least));
    let at = lines.at.map_or_else(String::new, |at| lines.over.shown(at));
    let violates = match lines.over.is_load() {
        true => format!("a load of {at} is above the line of"),
        false => format!("{} = {at} does not meet {} with", lines.over.key, lines.objectives()),
    };
    let value = if lines.over.is_load() { "load" } else { "value" };
    for (variants, what) in [
        (above, violates),
        (below, format!("a load of {at} offers too little for the goodput of")),
        (without, format!("no {value} is known to meet {} with", lines.objectives())),
    ] {
        if !variants.is_empty() {
            is_finding = true;
            let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
            note!("{what} {}", names.join(", "));
        }
    }
    if is_finding { ExitCode::from(output::FINDING) } else { ExitCode::SUCCESS }
}

fn stopped(board: &LineBoard<'_>, error: SearchStop, out: &std::path::Path, way: &str) -> Done {
    match (board.interrupt.signal(), error) {
        (Some(signal), SearchStop::Cancelled) => {
            note!("cancelled: {} runs are kept in {}\n{way}", board.runs(), out.display());
            Ok(ExitCode::from(128 + signal))
        }
        (_, error) => {
            let error = match error {
                SearchStop::Cancelled if board.memory.is_exceeded() => board.memory.error().into(),
                error => error.into(),
            };
            if board.runs() == 0 {
                return Err(error);
            }
            Err(error.context(format!(
                "the search stopped; {} runs are kept in {}\n{way}",
                board.runs(),
                out.display()
            )))
        }
    }
}
