//! Implements `plimsoll sbatch`, which prints a script that runs a scenario's points on a cluster with Slurm.
//!
//! ```text
//! script ──sbatch──> array of jobs: plimsoll run --shard I/N ──all end well──> job: plimsoll merge
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
use crate::source::Source;

/// Print a script that runs the points of a scenario as an array of Slurm jobs, and merges them.
///
/// `plimsoll sbatch SCENARIO --points-per-task 10 | sh` submits it. Each job of the array is a shard of the scenario
/// (`plimsoll run --shard`), and one more merges the shards when all have ended well (`plimsoll merge`). Submitted
/// again, the script resumes: finished points are kept. The nodes need this program and a common file system.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Most points that one job of the array runs, one after the other unless it has several processors.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..))]
    points_per_task: u32,
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
    let scenario = args.source.load(registry)?;
    let question = Question::new(&scenario, None, &[])?;
    objectives(&scenario, &[])?;
    let array = Array {
        points: scenario.points().len(),
        per_task: args.points_per_task as usize,
        name: scenario_name(scenario.name()),
        command: args.source.command_of("run", &[]),
        out: args.out.clone().unwrap_or_else(|| question.default_dir()).to_string_lossy().into_owned(),
        cpus: args.cpus,
        options: &args.options,
    };
    let script = array.script()?;
    if array.tasks() > ARRAY_MAX {
        let points = array.points.div_ceil(ARRAY_MAX);
        note!(
            "warning: an array of {} jobs is longer than Slurm's default of {ARRAY_MAX} (MaxArraySize); \
             `--points-per-task {points}` makes it short enough",
            array.tasks()
        );
    }
    output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// The most jobs of an array where Slurm's MaxArraySize has its default.
const ARRAY_MAX: usize = 1000;

/// Returns the name of the jobs: that of the scenario's file, in characters that every log's path may have.
fn scenario_name(file: &str) -> String {
    let stem = std::path::Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    stem.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

/// The points of a scenario as an array of jobs.
struct Array<'a> {
    points: usize,
    per_task: usize,
    name: String,
    /// The command that runs all points.
    command: String,
    /// The run directory of the merged shards.
    out: String,
    cpus: u16,
    options: &'a [String],
}

impl Array<'_> {
    fn tasks(&self) -> usize {
        self.points.div_ceil(self.per_task)
    }

    /// Returns the script that submits both jobs.
    ///
    /// # Errors
    /// Returns an error for a line break in a name or an option, which would end its line of the script.
    fn script(&self) -> anyhow::Result<String> {
        let lines = [&self.command, &self.out].into_iter().chain(self.options);
        if let Some(wrong) = lines.into_iter().find(|line| line.contains(['\n', '\r'])) {
            return Err(anyhow!("{wrong:?} has a line break, which a job's script cannot have: rename it"));
        }
        let Array { points, name, command, cpus, .. } = self;
        let tasks = self.tasks();
        let out = quoted(&self.out);
        let parent =
            std::path::Path::new(&self.out).parent().map(|parent| parent.to_string_lossy().into_owned());
        let parent = quoted(&parent.filter(|parent| !parent.is_empty()).unwrap_or_else(|| ".".to_owned()));
        // In names of logs, Slurm replaces what follows a per cent sign.
        let log = |of: &str| quoted(&format!("{}-{of}.log", self.out.replace('%', "%%")));
        let more: String =
            self.options.iter().map(|option| format!("#SBATCH {}\n", quoted(option))).collect();
        let program = command.split(' ').next().unwrap_or("plimsoll");
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
            task_log = log("task-%a"),
            merge_log = log("merge"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array<'a>(points: usize, per_task: usize, options: &'a [String]) -> Array<'a> {
        Array {
            points,
            per_task,
            name: scenario_name("my sweep.toml"),
            command: "plimsoll run 'my sweep.toml' --replicates 50".to_owned(),
            out: "results/my sweep-0a1b2c3d".to_owned(),
            cpus: 2,
            options,
        }
    }

    #[test]
    fn the_last_job_has_the_points_that_are_left() {
        for (points, per_task, tasks) in [(1000, 10, 100), (1001, 10, 101), (3, 10, 1), (10, 1, 10)] {
            assert_eq!(array(points, per_task, &[]).tasks(), tasks, "{points} points, {per_task} a task");
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
        assert_eq!(array(1000, 10, &options).script().expect("it has no line break"), expected);
        // Slurm's patterns are of the script, not of the user's path.
        let percent = Array { out: "results/50%avg %j%%".to_owned(), ..array(1000, 10, &options) };
        let script = percent.script().expect("it has no line break");
        assert!(script.contains("--output='results/50%%avg %%j%%%%-task-%a.log'\n"), "{script}");
        assert!(script.contains("plimsoll merge 'results/50%avg %j%%' "), "{script}");
        let broken = ["--comment=a\nrm".to_owned()];
        let error = array(1000, 10, &broken).script().expect_err("a line break").to_string();
        assert!(error.contains(r#""--comment=a\nrm" has a line break"#), "{error}");
    }
}
