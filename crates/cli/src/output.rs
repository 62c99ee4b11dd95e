//! Writes to stdout; no other module does.

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use plimsoll_experiment::points;
use plimsoll_experiment::question::quoted;
use plimsoll_files::Origin;
use plimsoll_process::note;
use plimsoll_report::{TableStyle, table};
use plimsoll_results::{PointOutcome, RunDir, Summary, run_dir};
use plimsoll_scenario::{Overrides, Registry, Scenario};
use plimsoll_text::printable_json;
use serde_json::{Map, Value, json};

/// The exit status of a finding: a load is above its line, a feature is missing.
pub const FINDING: u8 = 1;

/// The exit status of an error.
pub const ERROR: u8 = 2;

/// The message of a build without the eBPF programs, for commands that need them.
#[cfg(all(target_os = "linux", not(feature = "kernel")))]
pub const NO_PROGRAMS: &str =
    "this plimsoll was built without the eBPF programs; `make kernel` builds one with them";

/// The version and, where known, the commit of the build.
pub const VERSION: &str = env!("PLIMSOLL_VERSION");

/// The version, and on further lines whether the build has the eBPF programs and Parquet.
pub const LONG_VERSION: &str =
    concat!(env!("PLIMSOLL_VERSION"), "\n", env!("PLIMSOLL_FEATURES"), "\n", env!("PLIMSOLL_PARQUET"));

const COMMIT: &str = env!("PLIMSOLL_COMMIT");

/// Returns the commit of the build; `None` outside a checkout.
pub fn commit() -> Option<&'static str> {
    (!COMMIT.is_empty()).then_some(COMMIT)
}

/// The result of a command.
pub type Done = anyhow::Result<ExitCode>;

/// Returns an error with its causes, except causes that are already part of the message before them.
pub fn reasons(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = cause;
        } else if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

/// The output form of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    /// Text in aligned columns.
    #[default]
    Table,
    /// JSON: every number, with the digests of the runs.
    Json,
    /// CSV: one number a row.
    Csv,
    /// Markdown: a table to paste.
    Md,
}

/// Writes to stdout. A closed pipe (`| head`) is not an error.
///
/// # Errors
/// Returns an error if stdout cannot be written, as on a full disk.
pub fn print(text: &str) -> anyhow::Result<()> {
    plimsoll_process::print(text).context("cannot write to stdout")
}

/// Writes a whole file or none: on a full disk, the previous file stays.
///
/// # Errors
/// Returns an error if the file cannot be written; the error names it.
pub fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    write_whole_by(path, |file| file.write_all(text.as_bytes()))
}

/// Writes a file like [`write_whole`], with the text that `write` writes.
///
/// # Errors
/// Returns an error if the file cannot be written; the error names it.
pub fn write_whole_by(
    path: &Path,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let written = plimsoll_files::create(&unfinished, Origin::Folder)
        .and_then(|file| {
            let mut file = BufWriter::new(file);
            write(&mut file)?;
            file.flush()
        })
        .and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // The unfinished file only takes space, so an error here is ignored.
        let _ = fs::remove_file(&unfinished);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Reads a text file of at most [`TEXT_BYTES_MAX`] bytes.
///
/// # Errors
/// Returns an error if the file cannot be read or its origin does not allow it; the error names it.
pub fn read_text(path: &Path, origin: Origin) -> anyhow::Result<String> {
    plimsoll_files::read_text(path, origin, TEXT_BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))
}

/// The largest text file that a command reads, in bytes.
pub const TEXT_BYTES_MAX: u64 = 512 << 20;

/// Opens a run directory for reading.
///
/// # Errors
/// Returns an error if it cannot be read; the error says how to repair a damaged one.
pub fn open_run(path: &Path) -> anyhow::Result<RunDir> {
    RunDir::open(path).map_err(with_repair)
}

/// Returns the scenario of a run directory; `None` where this version cannot read it.
pub fn scenario(registry: &Registry, run: &RunDir, path: &Path) -> anyhow::Result<Option<Scenario>> {
    let text = run.scenario().map_err(with_repair)?;
    Ok(Scenario::parse_from(registry, "scenario.toml", &text, path, &Overrides::default()).ok())
}

/// Reads the finished points of a run.
///
/// # Errors
/// Returns an error if they cannot be read; the error says how to repair damaged ones.
pub fn read_points(run: &RunDir) -> anyhow::Result<Vec<PointOutcome>> {
    run.read_points().map_err(with_repair)
}

/// Adds to an error of a run directory the command that repairs it, where there is one.
pub fn with_repair(error: run_dir::Error) -> anyhow::Error {
    // A run's folder contains its scenario, whichever of its files is damaged.
    let folder = match &error {
        run_dir::Error::Damaged { path, .. } => {
            path.ancestors().find(|folder| folder.join(SCENARIO).exists())
        }
        _ => None,
    };
    match folder.map(|folder| folder.to_string_lossy().into_owned()) {
        Some(folder) => {
            let (scenario, out) = (quoted(&format!("{folder}/{SCENARIO}")), quoted(&folder));
            anyhow!(
                "{error}; its command with `--repair` runs the damaged points again; for a simulated run: \
                 `plimsoll run {scenario} --out {out} --repair`"
            )
        }
        None => error.into(),
    }
}

const SCENARIO: &str = "scenario.toml";

/// How the results of runs are printed.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Shown {
    /// Form of the printed results.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also print means, goodputs, queues, losses, and where the slowest messages spent their time. JSON and CSV have
    /// them anyway.
    #[arg(long)]
    pub details: bool,
}

impl Shown {
    fn style(self) -> TableStyle {
        TableStyle { details: self.details, ..style() }
    }
}

/// Prints the summary of a run. The warnings of a CSV, which has a word for each, go to stderr.
///
/// # Errors
/// Returns an error if stdout cannot be written.
pub fn print_summary(summary: &Summary, runs: &[&RunDir], shown: Shown) -> anyhow::Result<()> {
    print_by(table::render, summary, runs, shown)
}

/// Prints runs side by side, with every paired difference, as [`print_summary`] prints one.
///
/// # Errors
/// Returns an error if stdout cannot be written.
pub fn print_compared(summary: &Summary, runs: &[&RunDir], shown: Shown) -> anyhow::Result<()> {
    print_by(table::render_compared, summary, runs, shown)
}

fn print_by(
    render: impl Fn(&Summary, table::Format, &TableStyle) -> String,
    summary: &Summary,
    runs: &[&RunDir],
    shown: Shown,
) -> anyhow::Result<()> {
    if shown.format == Format::Csv {
        for warning in &summary.warnings {
            note!("warning: {warning}");
        }
    }
    match shown.format {
        Format::Json => print(&as_json(summary, runs)?),
        other => print(&render(summary, other.of_report(), &shown.style())),
    }
}

/// Prints to stderr where the run directory and its report are.
pub fn note_places(dir: &Path, shown: Shown) {
    note!();
    note!("Results  {}", dir.display());
    note!("Report   {}", dir.join("report.html").display());
    if !shown.details && matches!(shown.format, Format::Table | Format::Md) {
        note!("Details  the report, or the same command with `--details`");
    }
}

impl Format {
    /// Returns the same form for the report.
    pub fn of_report(self) -> table::Format {
        match self {
            Format::Table => table::Format::Table,
            Format::Json => table::Format::Json,
            Format::Csv => table::Format::Csv,
            Format::Md => table::Format::Md,
        }
    }
}

/// Returns the summary as JSON, preceded by the runs and the digest of all.
///
/// # Errors
/// Returns an error if the summary cannot be written as JSON.
pub fn as_json(summary: &Summary, runs: &[&RunDir]) -> anyhow::Result<String> {
    let text = table::render(summary, table::Format::Json, &TableStyle::default());
    let numbers: Map<String, Value> = serde_json::from_str(&text).context("the summary is no JSON object")?;
    let about: Vec<Value> = runs
        .iter()
        .map(|run| {
            let manifest = run.manifest();
            json!({
                "title": manifest.title,
                "command": manifest.command,
                "seed": manifest.seed,
                "plimsoll": manifest.plimsoll,
                "commit": manifest.commit,
                "scenario_digest": manifest.scenario_digest,
                "warnings": manifest.warnings,
            })
        })
        .collect();
    let mut whole = Map::new();
    whole.insert("digest".to_owned(), json!(points::digest(summary)));
    whole.insert("of".to_owned(), Value::Array(about));
    whole.extend(numbers);
    Ok(format!("{}\n", printable_json(&format!("{:#}", Value::Object(whole)))))
}

/// Returns the table style for this stdout.
pub fn style() -> TableStyle {
    let stdout = io::stdout();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let width = terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0));
    TableStyle {
        color: stdout.is_terminal() && !plain,
        width: width.unwrap_or(TableStyle::default().width),
        folds: width.is_some(),
        ..TableStyle::default()
    }
}

/// The most columns of a line of explanation.
pub const COLUMNS: usize = 80;

/// Returns a text as lines of at most [`COLUMNS`], the first after `first` and the others after `next`.
pub fn folded(text: &str, first: &str, next: &str) -> String {
    table::folded(text, COLUMNS, first, next) + "\n"
}
