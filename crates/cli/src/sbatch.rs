//! Implements `plimsoll sbatch`, which prints a script that runs a scenario's points on a cluster with Slurm.
//!
//! ```text
//! script ──sbatch──> array of jobs: plimsoll run --shard I/N ──all end well──> job: plimsoll merge
//!        ──sbatch──> one job: plimsoll run --workers N ──srun──> plimsoll work
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use plimsoll_experiment::Question;
use plimsoll_experiment::question::{objectives, quoted};
use plimsoll_process::note;
use plimsoll_scenario::Registry;
use plimsoll_units::whole;

use crate::output::{self, Done};
use crate::run::approximate;
use crate::source::Source;
use crate::workers::all_approximate;

/// Print a script that runs the points of a scenario as an array of Slurm jobs, and merges them.
///
/// `plimsoll sbatch SCENARIO --points-per-task 10 | sh` submits it. Each job of the array is a shard of the scenario
/// (`plimsoll run --shard`), and one more merges the shards when all have ended well (`plimsoll merge`). Submitted
/// again, the script resumes: finished points are kept. The nodes need this program and a common file system.
///
/// `--workers N` is for approximate runs of large networks: one job, in which N processes simulate the links of all
/// points.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Most points that one job of the array runs, one after the other unless it has several processors.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..), required_unless_present = "workers")]
    points_per_task: Option<u32>,
    /// Processes of one job that simulate the links of approximate runs.
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..), conflicts_with_all = ["points_per_task", "cpus"])]
    workers: Option<u16>,
    /// Simulate a sample of links one by one in place of the network, which `run.approximate` sets.
    #[arg(long)]
    approximate: bool,
    /// Processors of each job, and its threads.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u16>(1..))]
    cpus: u16,
    /// Run directory of the merged shards, beside which the shards and the logs are; by default that of
    /// `plimsoll run`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Options for sbatch, in both jobs: `-- --time=2:00:00 --partition=long --mem=4G`.
    #[arg(last = true, value_name = "SBATCH OPTION")]
    options: Vec<String>,
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    let source = if args.approximate { approximate(&args.source) } else { args.source.clone() };
    let scenario = source.load(registry)?;
    let question = Question::new(&scenario, None, &[])?;
    objectives(&scenario, &[])?;
    let script = Script {
        points: scenario.points().len(),
        name: scenario_name(scenario.name()),
        command: source.command_of("run", &[]),
        out: args.out.clone().unwrap_or_else(|| question.default_dir()).to_string_lossy().into_owned(),
        options: &args.options,
    };
    let text = match (args.workers, args.points_per_task) {
        (Some(workers), _) => {
            all_approximate(scenario.points())?;
            script.with_workers(workers)?
        }
        (None, per_task) => {
            let tasks = script.points.div_ceil(per_task.unwrap_or(1) as usize);
            if tasks > ARRAY_MAX {
                let points = script.points.div_ceil(ARRAY_MAX);
                note!(
                    "warning: an array of {tasks} jobs is longer than Slurm's default of {ARRAY_MAX} \
                     (MaxArraySize); `--points-per-task {points}` makes it short enough"
                );
            }
            script.with_array(tasks, args.cpus)?
        }
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The most jobs of an array where Slurm's MaxArraySize has its default.
const ARRAY_MAX: usize = 1000;

/// Returns the name of the jobs: that of the scenario's file, in characters that every log's path may have.
fn scenario_name(file: &str) -> String {
    let stem = std::path::Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    stem.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

/// The jobs that run the points of a scenario.
struct Script<'a> {
    points: usize,
    name: String,
    /// The command that runs all points.
    command: String,
    /// The run directory of the merged shards.
    out: String,
    options: &'a [String],
}

impl Script<'_> {
    /// Checks that no name and no option has a line break, which would end its line of the script.
    fn check(&self) -> anyhow::Result<()> {
        let lines = [&self.command, &self.out].into_iter().chain(self.options);
        match lines.into_iter().find(|line| line.contains(['\n', '\r'])) {
            Some(wrong) => {
                Err(anyhow!("{wrong:?} has a line break, which a job's script cannot have: rename it"))
            }
            None => Ok(()),
        }
    }

    /// Returns the folder of the run directory, quoted.
    fn parent(&self) -> String {
        let parent =
            std::path::Path::new(&self.out).parent().map(|parent| parent.to_string_lossy().into_owned());
        quoted(&parent.filter(|parent| !parent.is_empty()).unwrap_or_else(|| ".".to_owned()))
    }

    /// Returns the path of a log, quoted: Slurm replaces what follows a per cent sign in it.
    fn log(&self, of: &str) -> String {
        quoted(&format!("{}-{of}.log", self.out.replace('%', "%%")))
    }

    /// Returns the lines of a job with the user's options.
    fn more(&self) -> String {
        self.options.iter().map(|option| format!("#SBATCH {}\n", quoted(option))).collect()
    }

    fn program(&self) -> &str {
        self.command.split(' ').next().unwrap_or("plimsoll")
    }

    /// Returns the script that submits one job, whose workers simulate the links of all points.
    fn with_workers(&self, workers: u16) -> anyhow::Result<String> {
        self.check()?;
        let Script { points, name, command, .. } = self;
        Ok(format!(
            r#"#!/bin/sh
# Submits a job that runs the points of a scenario ({points}) with processes on its nodes ({workers}): sh THIS-FILE
# Submitted again, it resumes: finished points are kept.
set -eu
mkdir -p {parent}
sbatch <<'JOB'
#!/bin/sh
#SBATCH --job-name=plimsoll-{name}
#SBATCH --ntasks={workers}
#SBATCH --output={log}
{more}exec {command} --out {out} --workers {workers} \
  --worker-command {worker}
JOB
"#,
            parent = self.parent(),
            log = self.log("workers"),
            more = self.more(),
            out = quoted(&self.out),
            // A step that asks for no memory of its own shares that of the job.
            worker = quoted(&format!("srun --ntasks=1 --exact --mem=0 {} work", self.program())),
        ))
    }

    /// Returns the script that submits an array of jobs, each a shard of the points, and the job that merges them.
    ///
    /// # Errors
    /// Returns an error for a line break in a name or an option.
    fn with_array(&self, tasks: usize, cpus: u16) -> anyhow::Result<String> {
        self.check()?;
        let Script { points, name, command, .. } = self;
        let (out, parent, more, program) = (quoted(&self.out), self.parent(), self.more(), self.program());
        Ok(format!(
            r#"#!/bin/sh
# Submits the points of a scenario ({points}) as an array of jobs ({tasks}), and a job that merges them: sh THIS-FILE
# Submitted again, it resumes: finished points are kept.
set -eu
mkdir -p {parent}
array=$(sbatch --parsable <<'JOB'
#!/bin/sh
#SBATCH --job-name=plimsoll-{name}
#SBATCH --array=1-{tasks}
#SBATCH --cpus-per-task={cpus}
#SBATCH --output={task_log}
{more}exec {command} --threads {cpus} --shard "$SLURM_ARRAY_TASK_ID/{tasks}" \
  --out {out}-shard-"$SLURM_ARRAY_TASK_ID"-of-{tasks}
JOB
)
sbatch --dependency="afterok:${{array%%;*}}" --kill-on-invalid-dep=yes <<'JOB'
#!/bin/sh
#SBATCH --job-name=plimsoll-{name}-merge
#SBATCH --output={merge_log}
{more}exec {program} merge {out} {out}-shard-*-of-{tasks}
JOB
"#,
            task_log = self.log("task-%a"),
            merge_log = self.log("merge"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(options: &[String]) -> Script<'_> {
        Script {
            points: 1000,
            name: scenario_name("my sweep.toml"),
            command: "plimsoll run 'my sweep.toml' --replicates 50".to_owned(),
            out: "results/my sweep-0a1b2c3d".to_owned(),
            options,
        }
    }

    #[test]
    fn the_script_submits_the_shards_and_then_their_merge() {
        let options = ["--time=2:00:00".to_owned(), "--comment=two words".to_owned()];
        let expected = r#"#!/bin/sh
# Submits the points of a scenario (1000) as an array of jobs (100), and a job that merges them: sh THIS-FILE
# Submitted again, it resumes: finished points are kept.
set -eu
mkdir -p results
array=$(sbatch --parsable <<'JOB'
#!/bin/sh
#SBATCH --job-name=plimsoll-my-sweep
#SBATCH --array=1-100
#SBATCH --cpus-per-task=2
#SBATCH --output='results/my sweep-0a1b2c3d-task-%a.log'
#SBATCH --time=2:00:00
#SBATCH '--comment=two words'
exec plimsoll run 'my sweep.toml' --replicates 50 --threads 2 --shard "$SLURM_ARRAY_TASK_ID/100" \
  --out 'results/my sweep-0a1b2c3d'-shard-"$SLURM_ARRAY_TASK_ID"-of-100
JOB
)
sbatch --dependency="afterok:${array%%;*}" --kill-on-invalid-dep=yes <<'JOB'
#!/bin/sh
#SBATCH --job-name=plimsoll-my-sweep-merge
#SBATCH --output='results/my sweep-0a1b2c3d-merge.log'
#SBATCH --time=2:00:00
#SBATCH '--comment=two words'
exec plimsoll merge 'results/my sweep-0a1b2c3d' 'results/my sweep-0a1b2c3d'-shard-*-of-100
JOB
"#;
        assert_eq!(script(&options).with_array(100, 2).expect("it has no line break"), expected);
        // Slurm's patterns are of the script, not of the user's path.
        let percent = Script { out: "results/50%avg %j%%".to_owned(), ..script(&options) };
        let text = percent.with_array(100, 2).expect("it has no line break");
        assert!(text.contains("--output='results/50%%avg %%j%%%%-task-%a.log'\n"), "{text}");
        assert!(text.contains("plimsoll merge 'results/50%avg %j%%' "), "{text}");
        let broken = ["--comment=a\nrm".to_owned()];
        let error = script(&broken).with_array(100, 2).expect_err("a line break").to_string();
        assert!(error.contains(r#""--comment=a\nrm" has a line break"#), "{error}");
    }
}
