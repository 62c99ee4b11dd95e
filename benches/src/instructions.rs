//! The regression gate: instructions per packet-hop, as valgrind counts them.
//!
//! A count of instructions is the same on a busy machine and on a quiet one, so 5 % can be seen where a timing would
//! not show 30 %. Two runs of different length are subtracted, which removes loading and set-up. The count depends on
//! the compiler and on the build profile, so the table names both, and nothing is compared across them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, exit};

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_process::outln;
use serde::{Deserialize, Serialize};

use crate::cases::{Case, folder};
use crate::markdown::{Table, number};
use crate::one::{OneArguments, Report};

/// `instructions.json`: counts by profile, then scenario.
#[derive(Serialize, Deserialize, Default)]
struct Committed {
    /// `rustc 1.95`: compiler whose code was counted.
    compiler: String,
    profiles: BTreeMap<String, BTreeMap<String, f64>>,
}

/// Counts, prints, and compares or updates. Exits with 1 when a scenario is above the table, with 77 when counting is
/// not possible or a count to compare with is missing.
pub fn run(update: bool) -> Result<()> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        skip("valgrind is not installed (apt-get install valgrind)");
    }
    let compiler = compiler()?;
    let text = fs::read_to_string(table_path());
    let mut committed: Committed = match (&text, update) {
        (Ok(text), _) => serde_json::from_str(text).context("benches/instructions.json")?,
        (Err(_), true) => Committed::default(),
        (Err(error), false) => bail!("benches/instructions.json: {error}"),
    };
    if committed.compiler != compiler {
        if !update {
            skip(&format!("the table was made with {}, this is {compiler}", committed.compiler));
        }
        committed = Committed { compiler, ..Committed::default() };
    }
    let before = committed.profiles.get(PROFILE).cloned().unwrap_or_default();
    let mut now = BTreeMap::new();
    for case in Case::ALL {
        let count = per_hop(&OneArguments::new(&case.scenario(), 0.0), case.gate_s())?;
        now.insert(case.name().to_owned(), (count * 10.0).round() / 10.0);
    }
    let above = print(&before, &now);
    if update {
        committed.profiles.insert(PROFILE.to_owned(), now);
        let text = serde_json::to_string_pretty(&committed)? + "\n";
        return fs::write(table_path(), text).context("cannot write benches/instructions.json");
    }
    if before.is_empty() {
        skip(&format!("the table has no counts for the {PROFILE} profile"));
    }
    if !above.is_empty() {
        let flag = if PROFILE == "release" { " --release" } else { " --profile test" };
        outln!(
            "{} more than 5 % above benches/instructions.json. If that is the price of something worth it, \
             say so in the commit and run\n    cargo run{flag} -p plimsoll-benches -- instructions --update",
            above.join(" and ")
        );
        exit(1);
    }
    Ok(())
}

/// Prints both; returns the names of the scenarios that are too far above.
fn print(before: &BTreeMap<String, f64>, now: &BTreeMap<String, f64>) -> Vec<String> {
    let mut table = Table::new(&["instructions per packet-hop", "table", "now", "change"]);
    let mut above = Vec::new();
    for (name, &count) in now {
        let old = before.get(name).copied();
        let change = old.map(|old| count / old - 1.0);
        table.row([
            name.clone(),
            old.map_or_else(|| "-".to_owned(), number),
            number(count),
            change.map_or_else(|| "-".to_owned(), |change| format!("{:+.1} %", change * 100.0)),
        ]);
        if change.is_some_and(|change| change > TOLERANCE) {
            above.push(name.clone());
        }
    }
    table.print();
    above
}

/// Counts the instructions of a packet-hop, as the difference between runs of these two lengths in seconds.
pub fn per_hop(run: &OneArguments, (short, long): (f64, f64)) -> Result<f64> {
    let (few, few_hops) = count(run, short)?;
    let (many, many_hops) = count(run, long)?;
    Ok((many - few) as f64 / (many_hops - few_hops) as f64)
}

/// Counts the instructions and the packet-hops of a run.
fn count(run: &OneArguments, seconds: f64) -> Result<(u64, u64)> {
    let run = OneArguments { untimed: true, seconds, ..run.clone() };
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().context("this program's path")?)
        .args(run.words())
        .output()
        .context("cannot start valgrind")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{} under valgrind failed: {errors}", run.scenario);
    }
    let report: Report = serde_json::from_slice(&output.stdout).context("a run printed no report")?;
    let collected = errors.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    let instructions = collected.ok_or_else(|| anyhow!("callgrind printed no count: {errors}"))?;
    Ok((instructions, report.packet_hops))
}

/// Returns the compiler's name and minor version: patch releases rarely change code.
fn compiler() -> Result<String> {
    let output = Command::new("rustc").arg("--version").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().nth(1).context("rustc printed no version")?;
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    Ok(format!("rustc {minor}"))
}

fn skip(why: &str) -> ! {
    outln!("skipped: {why}");
    exit(EXIT_SKIP)
}

fn table_path() -> PathBuf {
    folder().join("instructions.json")
}

/// The profile with which this program was built.
const PROFILE: &str = if cfg!(debug_assertions) { "test" } else { "release" };
const TOLERANCE: f64 = 0.05;
/// The exit status that test runners take for 'skip'.
const EXIT_SKIP: i32 = 77;
