//! Checks of `workload.*`: names, what each kind finds in its own table, and the sums over workloads.

use std::collections::BTreeMap;

use plimsoll_traffic::Workload;
use plimsoll_traffic::check::{
    Directed, FileReader, InvalidWorkload, JobFile, WorkloadCheck, WorkloadDemand, busiest_cut,
};
use plimsoll_traffic::record::Supply;
use plimsoll_units::{Bytes, Rate, Span};

use super::Checker;
use crate::error::Report;
use crate::files::ScenarioFiles;
use crate::model::{Model, Topology};
use crate::node::dotted;
use crate::source::{ScenarioTexts, SourceLayer, ValueOrigin};

impl FileReader for ScenarioFiles {
    fn read(&self, name: &str) -> std::io::Result<String> {
        self.read(name)
    }

    fn read_flow_list(&self, name: &str) -> std::io::Result<String> {
        self.read_flow_list(name)
    }

    fn open_job(&self, name: &str) -> std::io::Result<JobFile<'_>> {
        self.open_job(name)
    }
}

impl Checker<'_> {
    pub(super) fn workloads(&mut self, model: &mut Model) {
        if model.workload.is_empty() {
            self.error(&["workload"], "nothing is sent", "at least one [workload.NAME]");
        }
        let limited = model.host.qjump().is_some();
        let Model { workload: workloads, topology, run, fault, .. } = model;
        let is_alone = workloads.len() == 1;
        let mut directed: Vec<Directed> = Vec::new();
        let mut loading: Vec<&str> = Vec::new();
        let mut between_all: Vec<(&str, f64)> = Vec::new();
        let has_endless = workloads.values().any(|workload| workload.params().supply() == Supply::Endless);
        let drain = if has_endless { Span::ZERO } else { run.drain };
        let time = run.duration.map(|duration| {
            let ps = duration.as_ps().saturating_add(drain.as_ps()).saturating_sub(run.warmup.as_ps());
            Span::from_ps(ps)
        });
        for (name, workload) in workloads {
            self.name(name);
            let Some((demand, longest)) = self.workload(name, workload, topology) else { continue };
            if let Some((time, (key, bytes))) = time.zip(longest) {
                self.too_long(name, &key, bytes, time, topology);
            }
            // A limiter at the hosts lets less than the offered load into the network.
            let towards = demand.directed.filter(|_| !limited);
            if demand.between_all > 0.0 || towards.is_some() {
                loading.push(name);
            }
            directed.extend(towards);
            if demand.between_all > 0.0 {
                between_all.push((name, demand.between_all));
            }
            if workload.params().repeats() && (!is_alone || !fault.is_empty()) {
                let others = if is_alone { "faults" } else { "other workloads" };
                let message =
                    format!("a job whose rounds are replayed beside {others}, which make them differ");
                self.error(&["workload", name, "run", "repeat"], message, "one workload, without faults");
            }
            if !demand.ends && run.duration.is_none() {
                let missing = workload.params().bounding_key();
                let message = format!("it never ends: neither `{missing}` nor `run.duration` is given");
                self.error(&["workload", name], message, format!("`run.duration`, or `{missing}` here"));
            }
            if let Some(duration) =
                run.duration.filter(|duration| demand.start >= *duration && !demand.start.is_zero())
            {
                let message = format!("it starts at {}, when the run of {duration} is over", demand.start);
                self.error(&["workload", name, "start"], message, "less than run.duration");
            }
        }
        let all: f64 = between_all.iter().map(|(_, bits)| bits).sum();
        let place: &[&str] = if let [name] = loading[..] { &["workload", name] } else { &["workload"] };
        // Of one workload between all hosts, its own check speaks.
        if !limited && (between_all.len() > 1 || !directed.is_empty()) {
            self.host_links(place, topology, all, &directed);
        }
        let Some((links, share)) = busiest_cut(topology, all, &directed).filter(|(_, share)| *share > 1.0)
        else {
            return;
        };
        let message = format!("load {share:.3} of {links} (oversubscription)");
        let path: &[&str] = match between_all[..] {
            [(name, _)] if loading.len() == 1 => &["workload", name, "load"],
            _ => place,
        };
        self.warn(path, message, "queues grow as long as the run lasts; lower the load");
    }

    /// Warns of the hosts' links that get more than they carry: of those towards hosts, else of those from hosts. Each
    /// host sends `all` bits per second to all others.
    fn host_links(&mut self, path: &[&str], topology: &Topology, all: f64, directed: &[Directed]) {
        type Side = fn(&Directed) -> &[u32];
        let sides: [(&str, Side); 2] =
            [("towards", |directed| &directed.to), ("from", |directed| &directed.from)];
        for (direction, side) in sides {
            let mut loads = BTreeMap::from([(0, 0.0)]);
            for of in directed {
                let each = of.bits / side(of).len() as f64;
                side(of).iter().for_each(|host| *loads.entry(*host).or_default() += each);
            }
            let share =
                |(host, bits): (u32, f64)| (host, (bits + all) / topology.host_rate(host).as_bps() as f64);
            let loads: Vec<(u32, f64)> =
                loads.into_iter().map(share).filter(|(_, share)| *share > 1.0).collect();
            let Some((host, share)) = loads.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
            let of = match loads.len() {
                1 => String::new(),
                links => format!(", one of {links} that get more than they carry"),
            };
            let name = topology.host_name(*host);
            let message = format!("load {share:.3} of the link {direction} `{name}`{of}");
            self.warn(path, message, "queues grow as long as the run lasts; lower the loads");
            return;
        }
    }

    /// Warns of messages that a run has no time for even where nothing is in their way.
    fn too_long(&mut self, name: &str, key: &str, bytes: f64, time: Span, topology: &Topology) {
        let fastest = (0..topology.host_count()).map(|host| topology.host_rate(host)).max();
        let Some(rate) = fastest.filter(|rate| *rate > Rate::ZERO) else { return };
        let takes = Span::from_secs_f64(bytes * 8.0 / rate.as_bps() as f64);
        if takes > time {
            let keys = key.split('.').filter(|key| !key.is_empty());
            let path: Vec<&str> = ["workload", name].into_iter().chain(keys).collect();
            let message = format!(
                "a message of up to {} takes {takes} on a link of {rate}, and the run has {time} for it",
                Bytes::new(bytes as u64)
            );
            self.warn(&path, message, "a longer `run.duration`, or `run.drain`, lets it complete");
        }
    }

    /// Reports a name that objectives (`p99(small) < 1ms`) and file names cannot hold.
    fn name(&mut self, name: &str) {
        let good = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !good {
            let report = Report::at(
                self.sources,
                &self.tree.nearest_at(&["workload", name]).key,
                dotted(&["workload", name]),
                format!("{name:?} is no name for a workload"),
            );
            self.found.errors.push(report.allowed("a letter, then letters, digits, _ and -"));
        }
    }

    /// Returns the demand of a workload and the key and bytes of its longest message, unless its table has errors,
    /// which are reported.
    fn workload(
        &mut self,
        name: &str,
        workload: &mut Workload,
        topology: &Topology,
    ) -> Option<(WorkloadDemand, Option<(String, f64)>)> {
        let files = self.files;
        let mut check = WorkloadCheck::new(topology, files);
        let demand = workload.params_mut().check(&mut check);
        let WorkloadCheck { errors, warnings, longest, .. } = check;
        let is_valid = errors.is_empty();
        let warnings: Vec<Report> = warnings.into_iter().map(|found| self.found_in(name, found)).collect();
        let errors: Vec<Report> = errors.into_iter().map(|found| self.found_in(name, found)).collect();
        self.found.warnings.extend(warnings);
        self.found.errors.extend(errors);
        is_valid.then_some((demand, longest))
    }

    /// Adds file and line to a finding about the workload `name`.
    fn found_in(&self, name: &str, found: InvalidWorkload) -> Report {
        let InvalidWorkload { key, problem, allowed, help, place } = found;
        let mut report = match place {
            None => {
                let keys = key.split('.').filter(|key| !key.is_empty());
                let path: Vec<&str> = ["workload", name].into_iter().chain(keys).collect();
                self.report(&path, problem)
            }
            Some(place) => match (place.span, place.line) {
                (None, line) => {
                    let number = line.map_or(1, |line| line.number);
                    Report::without_excerpt(&place.file, number, &problem)
                }
                (Some(span), Some(line)) => Report::in_line(&place.file, &line, span).quantity(&problem),
                (Some(span), None) => {
                    let mut sources = ScenarioTexts::default();
                    let text = self.files.read_flow_list(&place.file).unwrap_or_default();
                    let source = sources.add(place.file, text);
                    let origin = ValueOrigin { source, span, layer: SourceLayer::File(0) };
                    Report::at(&sources, &origin, "", "").quantity(&problem)
                }
            },
        };
        report.allowed = allowed.or(report.allowed);
        report.maybe_help(help)
    }
}
