//! Files of other simulators, turned into Plimsoll's own: a graph file, a flow list, a distribution.
//!
//! Hosts and switches keep their numbers: node 7 of the other simulator is `h7` or `s7`.

use std::collections::BTreeSet;
use std::fmt::Write;

use plimsoll_text::{count, counted};
use plimsoll_units::{Rate, Span};

use crate::error::{Report, ScenarioError};
use crate::source::{ScenarioTexts, SourceLayer, ValueOrigin};

mod cdf;
mod connections;
mod hpcc;
mod htsim;
mod jobs;

pub use cdf::cdf;
pub use connections::htsim_connections;
pub use hpcc::{HpccConfig, HpccScenario, hpcc_flows, hpcc_topology};
pub use htsim::htsim_topology;
pub use jobs::{ChakraTraces, ImportedJob, JobOptions, astra, goal, job_scenario, jobs, write_goal};

/// A file of another simulator, converted to a graph file or a flow list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// The text of the converted file.
    pub text: String,
    /// The contents, in words: `16 hosts, 20 links`.
    pub summary: String,
    /// The settings of the other file that are left out here.
    pub notes: Vec<String>,
    /// The numbers that the other file gives its hosts, if it is a topology.
    pub hosts: BTreeSet<u32>,
    /// The ends of each link, if it is a topology.
    pub links: Vec<(String, String)>,
}

/// Traffic of another simulator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportedTraffic {
    /// The flow list or the GOAL file.
    pub file: Imported,
    /// Whether it is a job, in which messages wait for others.
    pub is_job: bool,
    /// The ends of the links that are dead from the beginning on.
    pub dead_links: Vec<(String, String)>,
}

impl From<Imported> for ImportedTraffic {
    fn from(flows: Imported) -> ImportedTraffic {
        ImportedTraffic { file: flows, is_job: false, dead_links: Vec::new() }
    }
}

/// A text, read line by line; its errors point at the word at fault.
#[derive(Debug)]
struct Lines<'a> {
    sources: ScenarioTexts,
    text: &'a str,
    start: usize,
    line: &'a str,
}

impl<'a> Lines<'a> {
    fn new(name: &str, text: &'a str) -> Lines<'a> {
        let mut sources = ScenarioTexts::default();
        sources.add(name, text);
        Lines { sources, text, start: 0, line: "" }
    }

    /// Returns the name of the file.
    fn name(&self) -> &str {
        self.sources.name(0)
    }

    /// The words of the next line that has any; what follows `#` is a comment.
    fn next(&mut self) -> Option<Vec<&'a str>> {
        while self.start < self.text.len() {
            let rest = &self.text[self.start..];
            self.line = rest.split('\n').next().unwrap_or(rest);
            self.start += self.line.len() + 1;
            let before_comment = self.line.split('#').next().unwrap_or("");
            let words: Vec<&str> = before_comment.split_whitespace().collect();
            if !words.is_empty() {
                return Some(words);
            }
        }
        self.line = "";
        None
    }

    /// An error at `word`, a slice of the text, or at the last line for a missing part.
    fn error(
        &self,
        word: &str,
        message: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Box<ScenarioError> {
        let text = self.text.as_ptr() as usize;
        let inside = (text..=text + self.text.len()).contains(&(word.as_ptr() as usize));
        let start = if inside { word.as_ptr() as usize - text } else { self.text.trim_end().len() };
        let length = if inside { word.len() } else { 0 };
        let origin = ValueOrigin { source: 0, span: start..start + length, layer: SourceLayer::File(0) };
        Box::new(ScenarioError(Report::at(&self.sources, &origin, "", message).allowed(allowed)))
    }

    /// Parses a word as a number, or reports that `what` is expected.
    fn number<T: std::str::FromStr>(&self, word: &'a str, what: &str) -> Result<T, Box<ScenarioError>> {
        word.parse().map_err(|_| self.error(word, format!("`{word}` is no {what}"), "a number"))
    }
}

/// More nodes than this cannot be run.
const NODES_MAX: u32 = 1_000_000;

/// A graph file in the making.
#[derive(Default)]
struct GraphText {
    hosts: Vec<String>,
    switches: Vec<String>,
    links: Vec<(String, String, Rate, Span)>,
}

impl GraphText {
    fn finish(self, from: &str, notes: Vec<String>) -> Imported {
        let names = |names: &[String]| {
            let lines = names.chunks(16).map(|part| {
                let quoted: Vec<String> = part.iter().map(|name| format!("\"{name}\"")).collect();
                format!("    {},\n", quoted.join(", "))
            });
            format!("[\n{}]", lines.collect::<String>())
        };
        let mut text = format!("# Imported from {from}.\n");
        for note in &notes {
            let _ = writeln!(text, "# {note}");
        }
        let _ = writeln!(text, "hosts = {}", names(&self.hosts));
        let _ = writeln!(text, "switches = {}", names(&self.switches));
        for (from, to, rate, delay) in &self.links {
            let _ = write!(
                text,
                "\n[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{}bps\"\ndelay = \"{}ps\"\n",
                rate.as_bps(),
                delay.as_ps()
            );
        }
        let GraphText { hosts, switches, links } = self;
        let summary = format!(
            "{}, {} switch{}, {}",
            counted(hosts.len() as u64, "host"),
            count(switches.len() as u64),
            if switches.len() == 1 { "" } else { "es" },
            counted(links.len() as u64, "link")
        );
        let number = |name: &String| name.strip_prefix('h')?.parse().ok();
        let hosts = hosts.iter().filter_map(number).collect();
        let links = links.into_iter().map(|(from, to, _, _)| (from, to)).collect();
        Imported { text, summary, notes, hosts, links }
    }
}

/// Checks that a flow's host is one of the topology that was imported beside the flows, if one was.
fn known_host<'a>(
    lines: &Lines<'a>,
    word: &'a str,
    host: u32,
    hosts: Option<&BTreeSet<u32>>,
) -> Result<(), Box<ScenarioError>> {
    let Some(hosts) = hosts.filter(|hosts| !hosts.contains(&host)) else { return Ok(()) };
    let range = match (hosts.first(), hosts.last()) {
        (Some(first), Some(last)) => format!(", {first} to {last}"),
        _ => String::new(),
    };
    let allowed = format!("{} of the topology{range}", counted(hosts.len() as u64, "host"));
    Err(lines.error(word, format!("the topology has no host {host}"), allowed))
}

/// A flow list in the making; starts are in picoseconds.
fn flow_list(flows: &[(u64, u32, u32, u64, String)], notes: Vec<String>) -> Imported {
    let mut text = "start,source,destination,size,class\n".to_owned();
    for (start, source, destination, size, class) in flows {
        let _ = writeln!(text, "{start}ps,h{source},h{destination},{size}B,{class}");
    }
    let summary = counted(flows.len() as u64, "flow");
    Imported { text, summary, notes, hosts: BTreeSet::new(), links: Vec::new() }
}
