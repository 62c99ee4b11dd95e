//! Jobs of other tools as a GOAL file, with a scenario that runs it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Seek, Write};

use plimsoll_traffic::jobs::astra::AstraWorkload;
use plimsoll_traffic::jobs::chakra::{BadChakra, ChakraOptions, ChakraTrace, chakra_job};
use plimsoll_traffic::jobs::goal::{BadGoal, goal_text, read_goal};
use plimsoll_traffic::jobs::goal_binary::{is_goal_binary, read_goal_binary};
use plimsoll_traffic::jobs::graph::JobGraph;
use plimsoll_traffic::jobs::schedule::{Algorithm, CollectiveOperation};

pub use plimsoll_traffic::jobs::goal::write_goal;

use super::Imported;
use crate::error::{Report, ScenarioError};
use crate::model::Model;

/// How the collective operations of a job become messages.
#[derive(Clone, Copy, Debug)]
pub struct JobOptions {
    /// The schedule of all-reduces, as a scenario names it: `ring`, `halving-doubling`, `tree`, ...
    algorithm: Algorithm,
    /// The parts that run a schedule beside each other.
    chunks: u32,
}

impl JobOptions {
    /// Returns the options; `algorithm` is the name of a schedule of an all-reduce, and `chunks` is 1 or more.
    pub fn new(algorithm: &str, chunks: u32) -> Option<JobOptions> {
        let known = CollectiveOperation::AllReduce
            .algorithms()
            .iter()
            .filter(|known| **known != Algorithm::Hierarchical);
        let algorithm = *known.into_iter().find(|known| known.name() == algorithm)?;
        Some(JobOptions { algorithm, chunks })
    }
}

/// A job of another tool.
#[derive(Debug)]
pub struct ImportedJob {
    /// The name of its file, for the head of the GOAL file.
    from: String,
    graph: JobGraph,
    /// The parts of the other file that are left out here.
    pub notes: Vec<String>,
}

impl ImportedJob {
    fn new(name: &str, graph: JobGraph, notes: Vec<String>) -> ImportedJob {
        ImportedJob { from: name.rsplit('/').next().unwrap_or(name).to_owned(), graph, notes }
    }

    /// Returns the operations.
    pub fn graph(&self) -> &JobGraph {
        &self.graph
    }

    /// Writes the GOAL file.
    ///
    /// # Errors
    /// Fails if `out` does.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "// Imported from {}.", self.from)?;
        write_goal(&self.graph, out)
    }
}

/// Reads a GOAL file, in its text or in its binary form.
///
/// # Errors
/// At the first word or byte that does not fit.
pub fn goal(name: &str, mut input: impl BufRead + Seek) -> Result<ImportedJob, Box<ScenarioError>> {
    let is_binary = input.fill_buf().is_ok_and(is_goal_binary);
    let graph = if is_binary { read_goal_binary(input) } else { read_goal(input) };
    Ok(ImportedJob::new(name, graph.map_err(|bad| at_place(name, bad))?, Vec::new()))
}

/// Reads a table of layers of ASTRA-sim or SimAI, for `ranks` or as many as the file names.
///
/// # Errors
/// At the first word that does not fit, or where the ranks cannot be divided as the table says.
pub fn astra(
    name: &str,
    input: impl BufRead,
    ranks: Option<u32>,
    options: JobOptions,
) -> Result<ImportedJob, Box<ScenarioError>> {
    let workload = AstraWorkload::read(input).map_err(|bad| at_place(name, bad))?;
    let bad = |problem: String| {
        Box::new(ScenarioError(Report::of_file(name.to_owned(), format!("{name}: {problem}"))))
    };
    let ranks = ranks.or(workload.ranks()).ok_or_else(|| {
        bad("it has no `all_gpus:`, so the number of ranks is not known; give it: --ranks N".to_owned())
    })?;
    let graph = workload.job(ranks, options.algorithm, options.chunks).map_err(bad)?;
    Ok(ImportedJob::new(name, graph, Vec::new()))
}

/// The traces of a job, a rank after the other.
#[derive(Debug, Default)]
pub struct ChakraTraces(Vec<ChakraTrace>);

impl ChakraTraces {
    /// Reads the trace of the next rank from a file of that name.
    ///
    /// # Errors
    /// Names the first byte that does not fit.
    pub fn add(&mut self, name: &str, input: impl BufRead) -> Result<(), Box<ScenarioError>> {
        let trace = ChakraTrace::read(input).map_err(|bad| of_chakra(name, &bad))?;
        self.0.push(trace);
        Ok(())
    }

    /// Returns the job; `groups` are the ranks of each communication group by its name.
    ///
    /// # Errors
    /// Names the first node that cannot be carried out.
    pub fn finish(
        self,
        name: &str,
        groups: &BTreeMap<String, Vec<u32>>,
        options: JobOptions,
    ) -> Result<ImportedJob, Box<ScenarioError>> {
        let options = ChakraOptions { all_reduce: options.algorithm, chunks: options.chunks };
        let (graph, notes) = chakra_job(&self.0, groups, options).map_err(|bad| of_chakra(name, &bad))?;
        Ok(ImportedJob::new(name, graph, notes))
    }
}

/// Returns the operations of each job of a run, by workload; [`write_goal`] writes their GOAL file.
pub fn jobs(model: &Model) -> Vec<(&str, &JobGraph)> {
    let jobs = model.workload.iter().map(|(name, workload)| Some((name.as_str(), workload.params().job()?)));
    jobs.flatten().collect()
}

/// A scenario of a job on as many hosts as ranks, on one switch.
pub fn job_scenario(from: &str, job: &str, ranks: usize) -> String {
    let title = toml::Value::String(format!("Imported from {from}"));
    format!(
        "version = 1\ntitle = {title}\npreset = \"roce-nic\"\n\n[topology]\nkind = \"rack\"\nhosts = {}\n\
         rate = \"100Gbps\"\ndelay = \"1us\"\n\n[workload.job]\nkind = \"job\"\npath = \"{job}\"\n",
        ranks.max(2)
    )
}

/// A small job as text; `hosts` of the result are the ranks.
pub(super) fn imported(name: &str, graph: &JobGraph, notes: Vec<String>) -> Imported {
    let mut text = format!("// Imported from {}.\n", name.rsplit('/').next().unwrap_or(name));
    text.push_str(&goal_text(graph));
    let hosts = (0..graph.ranks()).collect();
    Imported { text, summary: graph.to_string(), notes, hosts, links: Vec::new() }
}

fn of_chakra(name: &str, bad: &BadChakra) -> Box<ScenarioError> {
    let report = Report::of_file(name.to_owned(), format!("{name}: {bad}"));
    Box::new(ScenarioError(report.maybe_help(bad.help().map(str::to_owned))))
}

/// Returns an error at its place in a line; where only the number of that is known, nothing is shown.
fn at_place(name: &str, bad: BadGoal) -> Box<ScenarioError> {
    let report = match (bad.at, bad.line) {
        (Some(at), Some(line)) => Report { message: bad.problem, ..Report::in_line(name, &line, at) },
        (_, Some(line)) => Report::without_excerpt(name, line.number, &bad.problem),
        (_, None) => Report::of_file(name.to_owned(), format!("{name}: {}", bad.problem)),
    };
    Box::new(ScenarioError(match bad.allowed {
        Some(allowed) => report.allowed(allowed),
        None => report,
    }))
}
