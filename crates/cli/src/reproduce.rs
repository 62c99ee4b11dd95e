//! Implements `plimsoll reproduce`, which measures a paper's experiments and compares them with its published values.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser};
use indicatif::{ProgressBar, ProgressStyle};
use plimsoll_experiment::bench;
use plimsoll_files::Origin;
use plimsoll_process::note;
use plimsoll_reproduce::{
    Base, Journal, Options, Part, Replay, ReproduceError, Reproduction, RowState, Study, StudyRow, every,
    page,
};
use plimsoll_scenario::Registry;
use plimsoll_text::{csv_cell, printable_json, printable_lines};
use plimsoll_units::whole;

use crate::memory::{Budget, Memory, Work};
use crate::output::{self, Done, Format};
use crate::raster::{self, ImageKind};
use crate::signals::Interrupt;

/// Run a paper's experiments and print measured and published values.
///
/// Writes a page with figures, and the rows behind them. Every finished run goes to a journal in the study's folder,
/// and a repeated call runs only what is missing there. The exit status is 1 if a value is outside its tolerance
/// without a known explanation.
#[derive(clap::Args)]
pub struct Args {
    /// Study to reproduce.
    #[arg(value_parser = names())]
    study: String,
    /// Base that carries the packets.
    #[arg(long, value_enum, default_value_t)]
    on: On,
    /// Use fewer and shorter runs, whose tails are not reliable.
    #[arg(long)]
    quick: bool,
    /// Form of the printed table.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print every number of a quick look, too; a full run's are always printed.
    #[arg(long)]
    details: bool,
    /// Folder for the page, its figures and its rows.
    #[arg(long, value_name = "DIR", default_value = "results/reproductions")]
    out: PathBuf,
    /// Draw the page again from the rows in DIR, without a run.
    #[arg(long, conflicts_with = "quick")]
    redraw: bool,
    /// Also render the figures as PNG, which needs rsvg-convert or Chromium.
    #[arg(long)]
    png: bool,
    /// Run only this figure, or these of its points: `fig9@0.2,0.5`. May be repeated. The page shows all runs of the
    /// journal.
    #[arg(long, value_name = "FIGURE[@X,...]", conflicts_with = "redraw")]
    only: Vec<Part>,
    /// Run again what is in the journal; with `--only`, these parts alone.
    #[arg(long, conflicts_with = "redraw")]
    fresh: bool,
    /// Take over the runs of the page in DIR that the journal lacks, as if they had been made with today's settings.
    #[arg(long, conflicts_with_all = ["redraw", "quick"])]
    keep: bool,
    /// Run again those runs whose lines in the journal are damaged.
    #[arg(long, conflicts_with_all = ["redraw", "fresh"])]
    repair: bool,
    /// First run one in N of the finished runs again, and stop if one has other numbers than the journal.
    #[arg(long, value_name = "N", conflicts_with_all = ["redraw", "fresh"], value_parser = whole::<u16>(1..))]
    replay: Option<u16>,
    /// Seed of every run.
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,
    /// Folder of chronos-memcached and chronos-openflow; by default the folder of this program, or the one beside it in
    /// which `make servers` builds them.
    #[arg(long, value_name = "DIR")]
    server_dir: Option<PathBuf>,
    /// Suppress progress and closing notes; warnings and errors remain.
    #[arg(long, short)]
    quiet: bool,
    /// Number of concurrent runs; all cores by default.
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    budget: Budget,
}

/// The base of a study, which carries its packets.
#[derive(Clone, Copy, PartialEq, Default, Debug, ValueEnum)]
enum On {
    /// Simulate the study's figures.
    #[default]
    Simulator,
    /// Use this machine's kernel, and the simulator for comparison: network namespaces as for `plimsoll emulate` or,
    /// for breakdown and chronos, memcached and the servers of `make servers`.
    Kernel,
}

/// Returns the words for studies, each with its subject.
fn names() -> PossibleValuesParser {
    let named = every().iter().filter_map(|study| Some((word(study), study.about.as_deref()?)));
    let mut named: Vec<(&str, &str)> = named.collect();
    named.sort_unstable();
    PossibleValuesParser::new(named.into_iter().map(|(name, about)| PossibleValue::new(name).help(about)))
}

/// Returns the word that asks for a study, without its base.
fn word(study: &Study) -> &str {
    study.command.split(' ').next().unwrap_or_default()
}

/// Finds the study of a word on a base.
fn find(name: &str, on: On) -> anyhow::Result<&'static Study> {
    let is_on = |study: &&Study| (study.bases[0] == Base::Kernel) == (on == On::Kernel);
    let found = every().iter().find(|study| word(study) == name && is_on(study));
    found.ok_or_else(|| match on {
        On::Simulator => anyhow!("{name} measures this machine's kernel; allowed: `--on kernel`"),
        On::Kernel => anyhow!("{name} has no packets for a kernel to carry; allowed: `--on simulator`"),
    })
}

pub fn run(args: &Args, _: &Registry) -> Done {
    let memory = args.budget.watch(Work::Points)?;
    let study = find(&args.study, args.on)?;
    let folder = args.out.join(&study.id);
    let rows_file = folder.join(ROWS);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let began = Instant::now();
    let reproduction = if args.redraw {
        let mut reproduction = read(&rows_file)?;
        reproduction.sum_up(study);
        reproduction
    } else {
        match measure(study, args, memory, &folder)? {
            Ended::Whole(reproduction) => *reproduction,
            Ended::Cancelled(signal) => {
                note!("cancelled: the finished runs are kept in {}", folder.display());
                note!("To resume, run the same command.");
                return Ok(ExitCode::from(128 + signal));
            }
        }
    };
    if reproduction.builds.len() > 1 {
        note!(
            "warning: its runs are of several builds ({}); `--fresh` runs all again",
            reproduction.builds.iter().map(|build| build.commit.as_str()).collect::<Vec<_>>().join(", ")
        );
    }
    // The table is printed before the files are written, which a full disk may prevent; a full stdout does not prevent
    // the files.
    let is_printed = output::print(&printed(study, args, &reproduction)?);
    for (name, text) in page::files(study, &reproduction) {
        let text = if name.ends_with(".json") { printable_json(&text) } else { printable_lines(&text) };
        let file = args.out.join(name);
        output::write_whole(&file, &text)?;
        if args.png && raster::size(&text).is_some() {
            let png = file.with_extension("png");
            raster::draw(&text, ImageKind::Png, &png)?;
            note!("figure   {}", png.display());
        }
    }
    let html = page::html(study, &reproduction, env!("CARGO_PKG_VERSION"), output::commit());
    output::write_whole(&args.out.join(format!("{}.html", study.id)), &printable_lines(&html))?;
    if !args.quiet {
        closing_notes(study, args, &reproduction, began);
    }
    is_printed?;
    // A quick run is not compared with tolerances: its tails are too short.
    let unexplained = reproduction.rows.iter().any(|row| row.is_off() && study.explanation(row).is_none());
    Ok(ExitCode::from(u8::from(unexplained && !reproduction.quick)))
}

fn closing_notes(study: &Study, args: &Args, reproduction: &Reproduction, began: Instant) {
    note!("page     {}, and the same as HTML", args.out.join(format!("{}.md", study.id)).display());
    note!("rows     {}", args.out.join(&study.id).join("rows.json").display());
    if study.is_live() && !args.redraw {
        note!("time     {:.1} minutes", began.elapsed().as_secs_f64() / 60.0);
    }
    if !reproduction.missing.is_empty() {
        let count = reproduction.missing.len();
        note!("missing  {count} points; a call without --only and --quick runs them");
    }
}

fn read(rows: &Path) -> anyhow::Result<Reproduction> {
    let text = output::read_text(rows, Origin::Folder)?;
    serde_json::from_str(&text).with_context(|| format!("{} holds no rows", rows.display()))
}

/// The way in which the runs ended.
enum Ended {
    Whole(Box<Reproduction>),
    /// The process received this signal.
    Cancelled(u8),
}

fn measure(study: &'static Study, args: &Args, memory: Memory, folder: &Path) -> anyhow::Result<Ended> {
    let journal = folder.join("journal.jsonl");
    if args.fresh && args.only.is_empty() && journal.exists() {
        fs::remove_file(&journal).with_context(|| format!("cannot remove {}", journal.display()))?;
    }
    let path = journal;
    if args.repair {
        Journal::repair(&path)?;
    }
    let mut journal = Journal::open(&path)?;
    journal.dropped().into_iter().for_each(|warning| note!("warning: {warning}"));
    let threads = bench::threads(args.threads.map(usize::from));
    let servers = args.server_dir.clone().or_else(beside_this_program).unwrap_or_default();
    let commit = output::commit().map(str::to_owned);
    let options =
        Options { quick: args.quick, threads, seed: args.seed, only: args.only.clone(), servers, commit };
    let earlier = args.keep.then(|| read(&folder.join(ROWS))).transpose()?;
    if let Some(earlier) = &earlier {
        plimsoll_reproduce::keep(study, &options, &mut journal, earlier)?;
    }
    if args.fresh {
        plimsoll_reproduce::journal::forget(&mut journal, &args.only)?;
    }
    // An interrupted run removes what it has created outside this process.
    let interrupt =
        study.is_live().then(Interrupt::watch_all).transpose().context("cannot watch for Ctrl-C")?;
    let bar = if args.quiet { ProgressBar::hidden() } else { ProgressBar::new(0) };
    let style = ProgressStyle::with_template("{bar:24.cyan/dim} {pos} of {len} runs · {msg}{eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─"));
    let progress = |done: usize, of: usize, packet_hops: u64| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
        if packet_hops > 0 {
            bar.set_message(format!("{:.1} G packet-hops · ", packet_hops as f64 / 1e9));
        }
        interrupt.as_ref().is_none_or(|interrupt| interrupt.signal().is_none()) && !memory.is_exceeded()
    };
    let asked = memory.asked();
    let replay = args.replay.map(|one_in| {
        plimsoll_reproduce::replay(study, &options, &mut journal, usize::from(one_in), &progress)
    });
    let replay = replay.transpose();
    if let Ok(Some(replay)) = &replay {
        is_as_kept(replay)?;
    }
    let reproduction =
        replay.and_then(|_| plimsoll_reproduce::reproduce(study, &options, &mut journal, &progress));
    drop(asked);
    bar.finish_and_clear();
    match (reproduction, interrupt.and_then(|interrupt| interrupt.signal())) {
        (Ok(reproduction), _) => {
            earlier.map_or(Ok(()), |earlier| has_all_rows_of(&reproduction, &earlier))?;
            Ok(Ended::Whole(Box::new(reproduction)))
        }
        (Err(_), Some(signal)) => Ok(Ended::Cancelled(signal)),
        (Err(_), None) if memory.is_exceeded() => Err(anyhow::Error::from(memory.error())
            .context(format!("stopped; the finished runs are kept in {}", folder.display()))),
        (Err(error @ ReproduceError::Batch(_)), None) => Err(anyhow::Error::from(error)
            .context(format!("stopped; the finished runs are kept in {}", folder.display()))),
        (Err(error), None) => Err(error.into()),
    }
}

/// Checks that a page made of an earlier one's runs has all of its rows: some runs measure more than their figure
/// shows.
fn has_all_rows_of(made: &Reproduction, earlier: &Reproduction) -> anyhow::Result<()> {
    let name = |row: &StudyRow| [&row.figure, &row.base, &row.series, &row.x, &row.metric].map(String::clone);
    let rows: BTreeSet<_> = made.rows.iter().map(name).collect();
    let mut lost = earlier.rows.iter().map(name).filter(|row| !rows.contains(row));
    if let Some(first) = lost.next() {
        let (first, lost) = (first.join(", "), 1 + lost.count());
        bail!(
            "{lost} rows of the page would be lost, the first: {first}; the page is left as it was. Make the runs that \
             measure them with --only and --fresh, or all without --keep"
        );
    }
    Ok(())
}

/// Says how many runs were replayed, or which of them have other numbers than the journal.
fn is_as_kept(replay: &Replay) -> anyhow::Result<()> {
    let Replay { replayed, of, differing } = replay;
    if let Some(first) = differing.first() {
        let (first, differing) = (first.join(", "), differing.len());
        bail!(
            "{differing} of {replayed} replayed runs have other numbers than the journal, the first: {first}; without \
             --replay and with --fresh, all runs are made again"
        );
    }
    note!("replayed {replayed} of {of} finished runs: the numbers are those of the journal");
    Ok(())
}

/// The file of a page's rows, in the study's folder.
const ROWS: &str = "rows.json";

/// Returns the folder of this program; if the servers are not there, but in `release` beside it, that folder.
fn beside_this_program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?.parent()?.to_owned();
    let release = own.with_file_name("release");
    let has_servers = |folder: &Path| folder.join("chronos-memcached").is_file();
    Some(if !has_servers(&own) && has_servers(&release) { release } else { own })
}

fn printed(study: &Study, args: &Args, reproduction: &Reproduction) -> anyhow::Result<String> {
    Ok(match args.format {
        Format::Json => {
            printable_json(&serde_json::to_string_pretty(&reproduction.rows)?).into_owned() + "\n"
        }
        Format::Csv => lines(&reproduction.rows, ","),
        Format::Md => {
            let page = page::files(study, reproduction).remove(&format!("{}.md", study.id));
            printable_lines(&page.unwrap_or_default()).into_owned()
        }
        Format::Table => {
            let has_table = !reproduction.quick || args.details;
            let table = if has_table { table(study, reproduction) + "\n" } else { String::new() };
            let page = args.out.join(format!("{}.html", study.id));
            let end = plimsoll_reproduce::in_brief(study, reproduction, &page.display().to_string());
            printable_lines(&(table + &end)).into_owned()
        }
    })
}

fn lines(rows: &[StudyRow], separator: &str) -> String {
    let mut text = "figure,base,series,x,metric,unit,measured,ci_low,ci_high,\
         published,original,ratio,tolerance,within,state\n"
        .replace(',', separator);
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for row in rows {
        let cells = [
            csv_cell(&row.figure).into_owned(),
            csv_cell(&row.base).into_owned(),
            csv_cell(&row.series).into_owned(),
            format!("\"{}\"", csv_cell(&row.x).trim_matches('"')),
            csv_cell(&row.metric).into_owned(),
            csv_cell(&row.unit).into_owned(),
            row.measured.to_string(),
            optional(row.ci.map(|(low, _)| low)),
            optional(row.ci.map(|(_, high)| high)),
            optional(row.published),
            optional(row.original),
            optional(row.ratio),
            optional(row.tolerance),
            row.within.map_or_else(String::new, |within| within.to_string()),
            row.state.map_or_else(String::new, |state| state.name().to_owned()),
        ];
        let _ = writeln!(text, "{}", cells.join(separator));
    }
    text
}

/// Prints measured and published values of the base that has tolerances; the other base is on the page and in the other
/// forms.
fn table(study: &Study, reproduction: &Reproduction) -> String {
    let mut text = String::new();
    let held = study.bases[0].name();
    let mut figure = "";
    // A time series has no points to run, and is shown on the page.
    let is_course = |row: &&StudyRow| {
        study.figures.iter().any(|figure| figure.id == row.figure && figure.cases.is_empty())
    };
    for row in reproduction.rows.iter().filter(|row| row.base == held && !is_course(row)) {
        if row.figure != figure {
            figure = &row.figure;
            let _ = writeln!(
                text,
                "\n{figure}\n  {:<16} {:>20} {:<34} {:>10} {:>10} {:>7}",
                "scheme", "x", "metric", "measured", "published", "ratio"
            );
        }
        let verdict = match row.state {
            _ if row.suspect => "suspect: the machine was too slow",
            _ if row.quick => "a quick run",
            Some(RowState::Held) if row.order_only => "same order",
            Some(RowState::Open) if row.within.is_none() => "undecided",
            Some(RowState::Explained) => "explained on the page",
            Some(RowState::Open) => "OPEN",
            Some(state) => state.name(),
            None => "",
        };
        let optional = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let _ = writeln!(
            text,
            "  {:<16} {:>20} {:<34} {:>10.3} {:>10} {:>7} {verdict}",
            row.series,
            row.x,
            format!("{} ({})", row.metric, row.unit),
            row.measured,
            optional(row.published, 3),
            optional(row.ratio, 3),
        );
    }
    text
}
