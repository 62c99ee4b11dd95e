//! `plimsoll-torture` attacks the programs of this workspace from outside, and counts broken promises.
//!
//! ```text
//! seed ──> Trial (attack, number, random numbers) ──> attack ──> held | lost: what | not tried: why
//!                                                       │
//!          kernel's objects: before ────────────────────┴──────> after, the same within a deadline
//! table of tries and losses ──> stdout;  exit status 1 if anything was lost
//! ```
//!
//! A trial draws all its choices from the seed, the attack's name and the trial's number, so `plimsoll-torture --seed S
//! --attack NAME --first N --tries 1` repeats it; only the timing of the machine differs.

mod attacks;
mod kernel;
mod program;
mod table;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use plimsoll_process::note;

use attacks::{ATTACKS, Attack};
use kernel::Inventory;
use program::ProgramFolder;
use table::Table;
use trial::{Broken, Trial};

/// Attacks the programs beside this one, and prints a table of tries and losses.
#[derive(Debug, Parser)]
#[command(name = "plimsoll-torture", version)]
struct Options {
    /// Seconds after which no further trial starts.
    #[arg(long, default_value_t = 1800)]
    seconds: u64,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run only this attack; may be repeated. Without it, all attacks take turns.
    #[arg(long, value_name = "NAME")]
    attack: Vec<String>,
    /// At most this many trials of each attack.
    #[arg(long, value_name = "N")]
    tries: Option<u64>,
    /// Number of the first trial, to repeat one that failed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u64,
    /// Folder of the programs under attack [default: this program's own].
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Keep the folders of failed trials.
    #[arg(long)]
    keep: bool,
}

fn main() -> ExitCode {
    let options =
        Options::try_parse().unwrap_or_else(|said| plimsoll_process::end(said.print(), said.exit_code()));
    match run(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            note!("plimsoll-torture: {error:#}");
            ExitCode::from(plimsoll_process::ERROR)
        }
    }
}

/// Runs trials in turn until the time is up; returns the number of losses.
fn run(options: &Options) -> Result<u64> {
    let attacks = chosen(&options.attack)?;
    let folder = match &options.programs {
        Some(folder) => folder.clone(),
        None => std::env::current_exe().context("the folder of this program")?.with_file_name(""),
    };
    let programs = ProgramFolder::find(&folder)?;
    let deadline = Instant::now() + Duration::from_secs(options.seconds);
    let last = options.tries.map_or(u64::MAX, |tries| options.first.saturating_add(tries));
    let mut table = Table::new(&attacks);
    Inventory::settle(Duration::from_secs(30));
    for number in options.first..last {
        for (row, attack) in attacks.iter().enumerate() {
            if Instant::now() >= deadline || table.gives_up(row) {
                continue;
            }
            let begun = Instant::now();
            let outcome = attempt(&programs, options, attack, number)?;
            if let Err(Broken::Lost(what)) = &outcome {
                let seed = options.seed;
                note!("LOST: {what}");
                let name = attack.name;
                note!(
                    "  again: plimsoll-torture --seed {seed} --attack {name} --first {number} --tries 1 --keep"
                );
            }
            table.count(row, outcome, begun.elapsed());
        }
        if Instant::now() >= deadline || (0..attacks.len()).all(|row| table.gives_up(row)) {
            break;
        }
    }
    plimsoll_process::print(&table.to_string()).context("cannot write to stdout")?;
    Ok(table.losses())
}

/// The longest time in which the kernel must return to its initial state.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs one trial, and compares the kernel's objects before and after; returns how long the kernel took to return to
/// its initial state.
fn attempt(
    programs: &ProgramFolder,
    options: &Options,
    attack: &Attack,
    number: u64,
) -> Result<Result<Duration, Broken>> {
    let mut trial = Trial::new(options.seed, attack.name, number)?;
    let before = Inventory::take();
    let outcome = (attack.run)(&mut trial, programs);
    let outcome = outcome.and_then(|()| before.is_restored(PATIENCE).map_err(Broken::Lost));
    if matches!(outcome, Err(Broken::Lost(_))) && options.keep {
        note!("  kept: {}", trial.keep().display());
    }
    Ok(outcome)
}

/// Returns the attacks with these names, or all if no name is given.
fn chosen(names: &[String]) -> Result<Vec<&'static Attack>> {
    if names.is_empty() {
        return Ok(ATTACKS.iter().collect());
    }
    let find = |name: &String| match ATTACKS.iter().find(|attack| attack.name == *name) {
        Some(attack) => Ok(attack),
        None => {
            let all: Vec<&str> = ATTACKS.iter().map(|attack| attack.name).collect();
            bail!("unknown attack `{name}`: expected one of {}", all.join(", "))
        }
    };
    names.iter().map(find).collect()
}
