//! `plimsoll reproduce`: a paper's experiments, measured beside their published values.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use plimsoll_reproduce::hull::explain::explanation;
use plimsoll_reproduce::{Options, Reproduction, Row, page, reproduce as run_hull};

use crate::output::{self, Done, Format};

/// Run a paper's experiments and print measured beside published.
///
/// Writes a page with figures, and the rows behind them. Exit status 1 if a number is off that no
/// known mechanism explains.
#[derive(clap::Args)]
pub struct Args {
    /// Which study.
    study: Study,
    /// Fewer and shorter runs: under a minute, the tails mean little.
    #[arg(long)]
    quick: bool,
    /// In which form to print.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Where to write the page, its figures and its rows.
    #[arg(long, value_name = "DIR", default_value = "results/reproductions")]
    out: PathBuf,
    /// Draw the page again from the rows that are in DIR, without a run.
    #[arg(long, conflicts_with = "quick")]
    redraw: bool,
    /// Seed of every run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs at a time; all cores by default.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// A study whose values are known.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Study {
    /// Phantom queues, DCTCP and pacing.
    Hull,
}

pub fn reproduce(args: &Args) -> Done {
    let Study::Hull = args.study;
    let rows_file = args.out.join("hull").join("rows.json");
    fs::create_dir_all(args.out.join("hull"))
        .with_context(|| format!("cannot write to {}", args.out.display()))?;
    let reproduction = if args.redraw { read(&rows_file)? } else { measure(args)? };
    for (name, text) in page::files(&reproduction) {
        let path = args.out.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    output::print(&printed(&reproduction, args.format)?)?;
    eprintln!("page     {}", args.out.join("hull.md").display());
    eprintln!("rows     {}", rows_file.display());
    // A quick look is not held to tolerances: its tails are too short.
    let unexplained = reproduction.rows.iter().any(|row| row.is_off() && explanation(row).is_none());
    Ok(ExitCode::from(u8::from(unexplained && !reproduction.quick)))
}

fn read(rows: &Path) -> anyhow::Result<Reproduction> {
    let text = fs::read_to_string(rows).with_context(|| format!("cannot read {}", rows.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} holds no rows", rows.display()))
}

fn measure(args: &Args) -> anyhow::Result<Reproduction> {
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{bar:24.cyan/dim} {pos} of {len} runs · {msg} · {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─"));
    let progress = |done: usize, of: usize, packet_hops: u64| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
        bar.set_message(format!("{:.1} G packet-hops", packet_hops as f64 / 1e9));
        true
    };
    let reproduction = run_hull(Options { quick: args.quick, threads, seed: args.seed }, &progress)?;
    bar.finish_and_clear();
    Ok(reproduction)
}

fn printed(reproduction: &Reproduction, format: Format) -> anyhow::Result<String> {
    Ok(match format {
        Format::Json => serde_json::to_string_pretty(&reproduction.rows)? + "\n",
        Format::Csv => lines(&reproduction.rows, ","),
        Format::Md => page::files(reproduction).remove("hull.md").unwrap_or_default(),
        Format::Table => table(reproduction),
    })
}

fn lines(rows: &[Row], separator: &str) -> String {
    let mut text = "figure,base,series,x,metric,unit,measured,ci_low,ci_high,published,original,ratio,tolerance,within\n"
        .replace(',', separator);
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for row in rows {
        let cells = [
            row.figure.clone(),
            row.base.clone(),
            row.series.clone(),
            format!("\"{}\"", row.x),
            row.metric.clone(),
            row.unit.clone(),
            row.measured.to_string(),
            optional(row.ci.map(|(low, _)| low)),
            optional(row.ci.map(|(_, high)| high)),
            optional(row.published),
            optional(row.original),
            optional(row.ratio),
            optional(row.tolerance),
            row.within.map_or_else(String::new, |within| within.to_string()),
        ];
        let _ = writeln!(text, "{}", cells.join(separator));
    }
    text
}

/// Measured beside published, source base; the other base is on the page and in the other formats.
fn table(reproduction: &Reproduction) -> String {
    let mut text = String::new();
    let mut figure = "";
    for row in reproduction.rows.iter().filter(|row| row.base == "source") {
        if row.figure != figure {
            figure = &row.figure;
            let _ = writeln!(
                text,
                "\n{figure}\n  {:<16} {:>20} {:<34} {:>10} {:>10} {:>7}",
                "scheme", "x", "metric", "measured", "published", "ratio"
            );
        }
        let verdict = match (row.within, explanation(row)) {
            (Some(true), _) => "ok",
            (Some(false), Some(_)) => "explained on the page",
            (Some(false), None) => "OFF",
            (None, _) => "",
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
    let judged = || reproduction.rows.iter().filter(|row| row.within.is_some());
    let held = judged().filter(|row| row.within == Some(true)).count();
    let _ = writeln!(
        text,
        "\n{held} of {} numbers that are held to a tolerance are within it{}.",
        judged().count(),
        if reproduction.quick { " (a quick look: runs are short)" } else { "" }
    );
    text
}
