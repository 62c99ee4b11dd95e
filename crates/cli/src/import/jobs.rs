//! Implements `plimsoll import goal`, `chakra` and `astra`, which turn jobs into a GOAL file with a scenario.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use plimsoll_files::Origin;
use plimsoll_process::note;
use plimsoll_scenario::ScenarioError;
use plimsoll_scenario::import::{self, ChakraTraces, ImportedJob, JobOptions};
use plimsoll_units::whole;

use super::SCENARIO;
use crate::output::{self, Done};
use crate::source::BadScenario;

/// Convert a job in GOAL's format, text or binary, as LogGOPSim and ATLAHS have it.
#[derive(clap::Args, Debug)]
pub struct GoalArgs {
    /// GOAL file, in its text or binary form.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Folder for `job.goal` and `scenario.toml`.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Convert Chakra execution traces of a job: one file a rank, `NAME.0.et`, `NAME.1.et`, ...; gzip may have compressed
/// them (`NAME.0.et.gz`).
///
/// Collective operations become the messages of a schedule. Sizes are as ASTRA-sim counts them: an all-gather's is that
/// of one rank. Attributes without a meaning here are named once.
#[derive(clap::Args, Debug)]
pub struct ChakraArgs {
    /// Folder with a trace of each rank.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// JSON of the communication groups: `{"0": [0, 1]}`. Without it a collective operation is of all ranks.
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    #[command(flatten)]
    schedule: ScheduleArgs,
    /// Folder for `job.goal` and `scenario.toml`.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Convert a table of layers of ASTRA-sim 1.0 or SimAI into an iteration of training.
#[derive(clap::Args, Debug)]
pub struct AstraArgs {
    /// Table: the parallelism, the number of layers, and twelve columns a layer.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Number of ranks; by default that of `all_gpus:`.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2..=1_048_576))]
    ranks: Option<u32>,
    #[command(flatten)]
    schedule: ScheduleArgs,
    /// Folder for `job.goal` and `scenario.toml`.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// How collective operations become messages.
#[derive(clap::Args, Debug)]
struct ScheduleArgs {
    /// ScheduleArgs of all-reduces; one that needs a power of two ranks is `ring` among other numbers.
    #[arg(long, value_name = "NAME", default_value = "ring",
        value_parser = ["ring", "halving-doubling", "recursive-doubling", "tree", "double-tree"])]
    algorithm: String,
    /// Parts of a collective operation that run beside each other.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1..=1024))]
    chunks: u32,
}

impl ScheduleArgs {
    fn options(&self) -> anyhow::Result<JobOptions> {
        JobOptions::new(&self.algorithm, self.chunks)
            .ok_or_else(|| anyhow!("no schedule is called {}", self.algorithm))
    }
}

impl GoalArgs {
    pub fn run(&self) -> Done {
        let name = self.file.display().to_string();
        let cannot = || format!("cannot read {name}");
        let file = plimsoll_files::open_to_read(&self.file, Origin::Argument).with_context(cannot)?;
        let imported = if file.metadata().with_context(cannot)?.is_file() {
            import::goal(&name, BufReader::new(file))
        } else {
            // The binary form has its ranks in any order, and a pipe has one.
            let mut bytes = Vec::new();
            file.take(JOB_BYTES_MAX).read_to_end(&mut bytes).with_context(cannot)?;
            import::goal(&name, Cursor::new(bytes))
        };
        write(&self.file, &imported.map_err(|error| bad(&name, *error))?, &self.out)
    }
}

impl AstraArgs {
    pub fn run(&self) -> Done {
        let name = self.file.display().to_string();
        let cannot = || format!("cannot read {name}");
        let file = plimsoll_files::open_to_read(&self.file, Origin::Argument).with_context(cannot)?;
        let input = BufReader::new(file.take(JOB_BYTES_MAX));
        let imported = import::astra(&name, input, self.ranks, self.schedule.options()?);
        write(&self.file, &imported.map_err(|error| bad(&name, *error))?, &self.out)
    }
}

impl ChakraArgs {
    pub fn run(&self) -> Done {
        let folder = self.folder.display().to_string();
        let mut files: BTreeMap<u32, PathBuf> = BTreeMap::new();
        for entry in fs::read_dir(&self.folder).with_context(|| format!("cannot read {folder}"))? {
            let path = entry.with_context(|| format!("cannot read {folder}"))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let unpacked = name.strip_suffix(".gz").unwrap_or(&name);
            let rank = unpacked.strip_suffix(".et").and_then(|name| name.rsplit('.').next()?.parse().ok());
            if let Some(rank) = rank
                && let Some(other) = files.insert(rank, path.clone())
            {
                bail!("{} and {} are both of rank {rank}", other.display(), path.display());
            }
        }
        if files.is_empty() {
            bail!(
                "{folder} has no trace: files are called NAME.RANK.et or NAME.RANK.et.gz, with ranks from 0 on"
            );
        }
        if let Some(missing) = (0..files.len() as u32).find(|rank| !files.contains_key(rank)) {
            bail!(
                "{folder} has no trace of rank {missing}, and one of rank {}",
                files.keys().max().unwrap_or(&0)
            );
        }
        let groups = self.groups.as_deref().map(read_groups).transpose()?.unwrap_or_default();
        let mut traces = ChakraTraces::default();
        for path in files.values() {
            let name = path.display().to_string();
            let file = plimsoll_files::open_to_read(path, Origin::Folder)
                .with_context(|| format!("cannot read {name}"))?;
            traces.add(&name, BufReader::new(file)).map_err(|error| bad(&name, *error))?;
        }
        let imported = traces.finish(&folder, &groups, self.schedule.options()?);
        write(&self.folder, &imported.map_err(|error| bad(&folder, *error))?, &self.out)
    }
}

/// Reads the ranks of each communication group.
fn read_groups(path: &Path) -> anyhow::Result<BTreeMap<String, Vec<u32>>> {
    let text = output::read_text(path, Origin::Argument)?;
    let form = "{\"0\": [0, 1]}: the ranks of each group by its name";
    serde_json::from_str(&text).with_context(|| format!("{} does not fit; allowed: {form}", path.display()))
}

fn bad(name: &str, error: ScenarioError) -> BadScenario {
    BadScenario::new(name.to_owned(), "imported", vec![error])
}

fn write(from: &Path, job: &ImportedJob, out: &Path) -> Done {
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let path = out.join(JOB);
    output::write_whole_by(&path, |file| job.write(file))?;
    note!("{}: {}", path.display(), job.graph());
    for note in &job.notes {
        note!("warning: {note}");
    }
    let scenario = out.join(SCENARIO);
    let from = from.file_name().unwrap_or_default().to_string_lossy();
    let made = import::job_scenario(&from, JOB, job.graph().ranks() as usize);
    if output::read_text(&scenario, Origin::Folder).is_ok_and(|there| there != made) {
        note!("{}: kept, as it is another one than the import makes", scenario.display());
        return Ok(ExitCode::SUCCESS);
    }
    output::write_whole(&scenario, &made)?;
    note!("{}: one switch and DCQCN, to be changed; `plimsoll run` runs it", scenario.display());
    Ok(ExitCode::SUCCESS)
}

pub(super) const JOB: &str = "job.goal";

/// The most bytes of a job from a pipe, and of a table of layers.
const JOB_BYTES_MAX: u64 = 2 << 30;
