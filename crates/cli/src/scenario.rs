//! Implements `plimsoll scenario`, which writes, checks and shows scenario files.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Subcommand;
use plimsoll_experiment::question::{key, label, objectives};
use plimsoll_process::note;
use plimsoll_scenario::{Overrides, Point, Registry, did_you_mean};
use plimsoll_text::{printable, printable_json};

use crate::memory;
use crate::output::{self, Done};
use crate::source::Source;

/// Write, check and show scenario files.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a commented scenario to start from.
    New {
        /// Name of the scenario; the file is NAME.toml.
        #[arg(default_value = "scenario")]
        name: String,
        /// Built-in scenario to copy, with the files that it names; by default the file is a commented example.
        #[arg(long, value_name = "BUILT-IN")]
        from: Option<String>,
    },
    /// Print the built-in scenarios: `plimsoll run NAME` runs one.
    List,
    /// Check a scenario and print the runs that it defines.
    Check {
        #[command(flatten)]
        source: Source,
    },
    /// Print a point as it is run: every key, and the source of its value.
    Show {
        #[command(flatten)]
        source: Source,
        /// ID of the point in `plimsoll run --list`; the first by default.
        #[arg(long, value_name = "ID")]
        point: Option<String>,
    },
    /// Print the JSON Schema of scenario files, for editors.
    Schema,
}

const STARTER: &str = include_str!("starter.toml");

pub fn run(args: &Args, registry: &Registry) -> Done {
    memory::watch_by_default()?;
    match &args.command {
        Command::New { name, from } => new(name, from.as_deref()),
        Command::List => list(registry),
        Command::Check { source } => check(source, registry),
        Command::Show { source, point } => show(source, registry, point.as_deref()),
        Command::Schema => {
            output::print(&format!("{:#}\n", plimsoll_scenario::schema()))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn new(name: &str, from: Option<&str>) -> Done {
    let title = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    let text = match from {
        None => STARTER.replace("@TITLE@", &title.replace(['"', '\\'], "")),
        Some(from) => plimsoll_shipped::text(from).ok_or_else(|| no_built_in(from))?,
    };
    let path = PathBuf::from(format!("{}.toml", name.strip_suffix(".toml").unwrap_or(name)));
    let mut file = match File::create_new(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{} is there already; give another name: `plimsoll scenario new NAME`", path.display())
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
    };
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    output::print(&format!("{}\n", path.display()))?;
    note!("Now: plimsoll run {}", path.display());
    Ok(ExitCode::SUCCESS)
}

fn no_built_in(name: &str) -> anyhow::Error {
    let names: Vec<String> = plimsoll_shipped::names().collect();
    let nearest = did_you_mean(name, names.iter().map(String::as_str));
    let nearest = nearest.map_or_else(String::new, |nearest| format!("; {nearest}"));
    anyhow!("there is no built-in scenario `{name}`{nearest}; `plimsoll scenario list` prints all")
}

/// Prints the name and the title of every built-in scenario that can be run as it is.
fn list(registry: &Registry) -> Done {
    let mut rows = Vec::new();
    for name in plimsoll_shipped::names() {
        if let Ok(scenario) = plimsoll_shipped::load(registry, Path::new(&name), &Overrides::default()) {
            rows.push((name, scenario.title().to_owned()));
        }
    }
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, title): &(String, String)| format!("{name:<width$}  {}\n", printable(title));
    output::print(&rows.iter().map(line).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

fn check(source: &Source, registry: &Registry) -> Done {
    let scenario = source.load(registry)?;
    objectives(&scenario, &[])?;
    let points = scenario.points();
    let mut text = format!("{}\n{}\n", printable(scenario.title()), counted(points.len()));
    for point in points {
        text.push_str(&format!("  {}, seed {}\n", label(point), point.seed));
    }
    let mut memories: Vec<String> = Vec::new();
    for (point, memory) in points
        .iter()
        .flat_map(|point| point.model.memories_in_words().into_iter().map(move |memory| (point, memory)))
    {
        if !memories.contains(&memory) {
            text.push_str(&format!("{}: {memory}", label(point)));
            memories.push(memory);
        }
    }
    match scenario.warnings().len() {
        0 => {}
        1 => text.push_str("1 warning\n"),
        many => text.push_str(&format!("{many} warnings\n")),
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn show(source: &Source, registry: &Registry, wanted: Option<&str>) -> Done {
    let scenario = source.load(registry)?;
    let points = scenario.points();
    let named =
        |point: &&Point, id: &str| point.id == id || plimsoll_results::run_dir::point_id(&key(point)) == id;
    let point = match wanted {
        None => points.first(),
        Some(id) => points.iter().find(|point| named(point, id)),
    };
    let Some(point) = point else {
        let ids: Vec<&str> = points.iter().map(|point| point.id.as_str()).collect();
        bail!("there is no point `{}`; there are:\n  {}", wanted.unwrap_or_default(), ids.join("\n  "));
    };
    if wanted.is_none() && points.len() > 1 {
        note!("This is {}, the first of {}; `--point ID` shows another.", point.id, counted(points.len()));
    }
    // TOML has the escapes of JSON, so the output can be parsed again.
    output::print(&printable_json(&point.show()))?;
    Ok(ExitCode::SUCCESS)
}

fn counted(points: usize) -> String {
    if points == 1 { "1 point".to_owned() } else { format!("{points} points") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_scenario::Scenario;

    #[test]
    fn the_starter_is_a_scenario_without_warnings() {
        let text = STARTER.replace("@TITLE@", "mine");
        let scenario = Scenario::parse("mine.toml", &text, Path::new(".")).unwrap();
        assert_eq!(scenario.title(), "mine");
        assert_eq!(scenario.warnings(), []);
        assert!(scenario.points().len() > 1);
    }
}
