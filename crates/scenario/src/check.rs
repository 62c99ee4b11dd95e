//! Checks that serde cannot do: values that are well-formed and impossible (errors), or possible and
//! probably not meant (warnings). Files that the model names are read here too.

mod approximate;
mod circuits;
mod classes;
mod dscp;
mod fault;
mod flow_control;
mod lossless;
mod port;
mod program;
mod qjump;
mod transport;
mod trimming;
mod workload;

use std::io;
use std::sync::Arc;

use plimsoll_fabric::net::topology;
use plimsoll_mechanisms::InvalidParam;
use plimsoll_mechanisms::nic_burst::NicBurstParams;
use plimsoll_mechanisms::transports::Feature;
use plimsoll_traffic::check::{InvalidWorkload, unknown_host};
use plimsoll_units::Span;

use crate::error::{Report, did_you_mean};
use crate::files::ScenarioFiles;
use crate::graph;
use crate::model::{Graph, Model, NicChoice, QueueOrder, Topology};
use crate::node::{ValueNode, dotted};
use crate::source::ScenarioTexts;

/// The largest number of a guest: a host with more keeps limiters that no workload of a scenario needs.
const GUEST_MAX: u8 = 63;

/// The errors and warnings that a check reports.
#[derive(Default)]
pub(crate) struct Checked {
    pub(crate) errors: Vec<Report>,
    pub(crate) warnings: Vec<Report>,
}

/// Checks a model against itself and loads its files. `tree` has the places of its values.
pub(crate) fn check(
    sources: &ScenarioTexts,
    tree: &ValueNode,
    model: &mut Model,
    files: &ScenarioFiles,
) -> Checked {
    let mut checker = Checker { sources, tree, files, found: Checked::default() };
    checker.head(model);
    let topology_ok = checker.topology(&mut model.topology);
    checker.run(model);
    checker.transport(model);
    checker.excluded(model);
    checker.ports(model);
    checker.paths(model);
    if topology_ok {
        checker.host(model);
        checker.circuits(model);
        checker.faults(model);
        checker.telemetry(model);
        checker.round_trips(model);
        checker.workloads(model);
        checker.flow_control(model);
        checker.lossless(model);
        checker.programs(model);
        checker.observe(model);
        checker.approximate(model);
    }
    checker.found
}

struct Checker<'a> {
    sources: &'a ScenarioTexts,
    tree: &'a ValueNode,
    files: &'a ScenarioFiles,
    found: Checked,
}

/// The fewest links of a class, and messages, of an approximate run: fewer miss the tail of what they stand for.
const LINKS_LEAST: u32 = 10;
const MESSAGES_LEAST: u32 = 1_000;

impl Checker<'_> {
    /// A report that points at the value of a key, or at the table that lacks it.
    fn report(&self, path: &[&str], message: impl Into<String>) -> Report {
        Report::at(self.sources, &self.tree.nearest_at(path).origin, dotted(path), message)
    }

    fn error(&mut self, path: &[&str], message: impl Into<String>, allowed: impl Into<String>) {
        let report = self.report(path, message).allowed(allowed);
        self.found.errors.push(report);
    }

    fn warn(&mut self, path: &[&str], message: impl Into<String>, help: impl Into<String>) {
        let report = self.report(path, message).help(help);
        self.found.warnings.push(report);
    }

    /// A mechanism's own verdict on its parameters.
    fn params(&mut self, path: &[&str], verdict: Result<(), InvalidParam>) {
        if let Err(invalid) = verdict {
            let path: Vec<&str> = path.iter().copied().chain(invalid.path()).collect();
            self.error(&path, format!("{} does not fit", invalid.value), invalid.allowed);
        }
    }

    fn head(&mut self, model: &Model) {
        if model.version != 1 {
            let report = self.report(&["version"], format!("version {} is not known", model.version));
            self.found.errors.push(report.allowed("1").help("did you mean `version = 1`?"));
        }
        if model.title.contains('\n') {
            self.warn(&["title"], "a title of several lines", "keep it to one; `description` may be long");
        }
    }

    fn topology(&mut self, topology: &mut Topology) -> bool {
        let before = self.found.errors.len();
        if let Some((file, table)) = topology.file() {
            let path = ["topology", table, "path"];
            let graph = self.graph(if table.is_empty() { &["topology", "path"] } else { &path }, &file.path);
            if let Some(file) = topology.file_mut() {
                file.graph = graph;
            }
        }
        for topology::InvalidValue { key, problem, allowed } in topology.check() {
            let path = ["topology", key];
            self.error(if key.is_empty() { &path[..1] } else { &path }, problem, allowed);
        }
        self.found.errors.len() == before
    }

    fn graph(&mut self, key: &[&str], path: &str) -> Option<Arc<Graph>> {
        let text = self.read(key, path)?;
        match graph::parse(path, &text) {
            Ok(graph) => Some(Arc::new(graph)),
            Err(mut reports) => {
                self.found.errors.append(&mut reports);
                None
            }
        }
    }

    /// The text of a file that a key names.
    fn read(&mut self, key: &[&str], file: &str) -> Option<String> {
        let text = self.files.read(file);
        self.readable(key, file, text)
    }

    /// The text of a file that a key names, or an error at the key.
    fn readable(&mut self, key: &[&str], file: &str, text: io::Result<String>) -> Option<String> {
        match text {
            Ok(text) => Some(text),
            Err(error) => {
                self.error(
                    key,
                    format!("cannot read \"{file}\": {error}"),
                    "a file, its path relative to the scenario",
                );
                None
            }
        }
    }

    fn run(&mut self, model: &Model) {
        let Some(duration) = model.run.duration else { return };
        if duration.is_zero() {
            self.error(&["run", "duration"], "a run without time", "more than 0s");
        } else if model.run.warmup >= duration {
            let message = format!("the warm-up of {} takes the whole run of {duration}", model.run.warmup);
            self.error(&["run", "warmup"], message, "less than run.duration");
        }
    }

    fn host(&mut self, model: &Model) {
        for active in model.host.mechanisms().active() {
            self.params(&["host", active.table.key], active.verdict);
        }
        if let Some(pacer) = model.host.pacer() {
            let packet = model.packet_bytes();
            if pacer.bucket.get() < packet {
                let message = format!("a bucket of {} never holds the tokens of a full packet", pacer.bucket);
                self.error(
                    &["host", "pacer", "bucket"],
                    message,
                    format!("at least segment and header, {packet}B"),
                );
            }
        }
        let loss = model.host.loss;
        if !(0.0..=1.0).contains(&loss) {
            self.error(&["host", "loss"], format!("a probability of {loss}"), "0 to 1");
        }
        self.qjump(model);
        self.several_nics(model);
        self.host_stack(model);
        self.nights(model);
        self.priorities(model);
    }

    /// Mechanisms of a host as a whole, which know one NIC.
    fn several_nics(&mut self, model: &Model) {
        if model.topology.nics() == topology::HostNics::One {
            return;
        }
        if matches!(&model.topology, Topology::LeafSpine(network) if network.planes)
            && model.paths.nics == NicChoice::Hash
        {
            let problem = "ends whose NICs no link connects, as each has a plane of its own";
            self.error(&["paths", "nics"], problem, "\"rail\", or a topology without `planes`");
        }
        let host = &model.host;
        let stack = host.bursts().is_some_and(NicBurstParams::has_stack);
        let on =
            [("qjump", host.qjump().is_some()), ("processor", host.processor().is_some()), ("bursts", stack)];
        for (key, _) in on.into_iter().filter(|(_, is_on)| *is_on) {
            self.error(&["host", key], "modelled for hosts with one NIC", "a topology without several NICs");
        }
    }

    /// A stack between TCP and the NIC, which knows neither of the NIC's room nor of subflows.
    fn host_stack(&mut self, model: &Model) {
        let path: &[&str] = if model.host.processor().is_some() {
            &["host", "processor"]
        } else if model.host.bursts().is_some_and(NicBurstParams::has_stack) {
            &["host", "bursts"]
        } else {
            return;
        };
        if model.host.backpressure {
            let message =
                "pieces wait in the transmit queues of the host, so TCP sees no room in the NIC's port";
            self.error(path, message, "`host.bursts.output_limit` in place of `host.backpressure`");
        }
        if let Some((family, reason)) = model.excludes(Feature::HostStack) {
            self.error(path, reason, format!("without `{}`", family.setting));
        }
    }

    /// Nights that pause no packet, or hold up more than they name.
    fn nights(&mut self, model: &Model) {
        let Some(tdma) = model.host.tdma() else { return };
        if matches!(model.topology, Topology::Hybrid(_)) {
            let message = "in a hybrid network the schedule of circuits pauses what hosts send";
            self.error(&["host", "tdma"], message, "another topology, or without `host.tdma`");
            return;
        }
        let used = model.used_priorities();
        let paused = |priority: &u8| tdma.priorities.contains(priority);
        let path = ["host", "tdma"];
        if !used.iter().any(paused) {
            let message = "no packet has a priority that is paused, so there is no night";
            let used: Vec<String> = used.iter().map(u8::to_string).collect();
            self.warn(&path, message, format!("packets have priority {}", used.join(", ")));
        } else if !used.iter().all(paused) && model.port.host.order != QueueOrder::Priorities {
            let message = "a paused packet holds up those behind it, whatever their priority";
            self.warn(&path, message, "port.host.order = \"priorities\" has a queue for each");
        }
    }

    fn priorities(&mut self, model: &Model) {
        let host = &model.host;
        for (name, priority) in &host.priority {
            let path = ["host", "priority", name];
            self.known_workload(&path, name, model);
            self.priority(&path, *priority);
        }
        self.dscp(model);
        for (name, guest) in &host.guest {
            let path = ["host", "guest", name];
            self.known_workload(&path, name, model);
            if *guest > GUEST_MAX {
                self.error(&path, format!("guest {guest}"), format!("0 to {GUEST_MAX}"));
            }
        }
        for (key, priority) in [("ack_priority", host.ack_priority), ("cnp_priority", host.cnp_priority)] {
            if let Some(priority) = priority {
                self.priority(&["host", key], priority);
            }
        }
        let sizes = &host.priority_by_size;
        if sizes.len() > 7 || !sizes.is_sorted_by(|a, b| a < b) {
            let message = "the sizes do not ascend, or are more than priorities";
            self.error(
                &["host", "priority_by_size"],
                message,
                "at most 7 sizes, each larger than the one before",
            );
        }
    }

    /// Reports an error at `path` if the scenario has no workload called `name`.
    fn known_workload(&mut self, path: &[&str], name: &str, model: &Model) {
        if !model.workload.contains_key(name) {
            let names = || model.workload.keys().map(String::as_str);
            let report = self
                .report(path, format!("no workload `{name}`"))
                .allowed(names().collect::<Vec<_>>().join(", "))
                .maybe_help(did_you_mean(name, names()));
            self.found.errors.push(report);
        }
    }

    fn priority(&mut self, path: &[&str], priority: u8) {
        if priority > 7 {
            self.error(path, format!("priority {priority}"), "0 to 7, the highest");
        }
    }

    fn paths(&mut self, model: &Model) {
        let on = model.paths.mechanisms().active();
        for active in &on {
            self.params(&["paths", active.table.key], active.verdict.clone());
        }
        let outside = model.outside.selector.iter().map(|outside| outside.name.as_str());
        let mut selectors = on.iter().map(|active| active.table.key).chain(outside);
        if let (Some(first), Some(second)) = (selectors.next(), selectors.next()) {
            let message = format!("`{first}` and `{second}` would both choose a packet's path");
            let allowed = format!("one of them; turn one off: `paths.{first} = \"off\"`");
            self.error(&["paths", second], message, allowed);
        }
    }

    fn observe(&mut self, model: &Model) {
        for (name, queue) in &model.observe.queue {
            let path = ["observe", "queue", name, "port"];
            self.observed_port(&path, &queue.port, &model.topology);
            if queue.every.is_zero() {
                self.error(&["observe", "queue", name, "every"], "intervals of no length", "more than 0s");
            }
        }
        self.watched_twice(model);
        for (key, every) in
            [("flow_series", model.observe.flow_series), ("goodput_every", model.observe.goodput_every)]
        {
            if every == Some(Span::ZERO) {
                self.error(&["observe", key], "intervals of no length", "more than 0s");
            }
        }
        if let Some(packets) = model.observe.packets.filter(|packets| !(1..=CAPTURE_MAX).contains(packets)) {
            self.error(&["observe", "packets"], format!("{packets} packets"), "1 to 10000000");
        }
    }

    /// A port has one meter, so all that watch it use one interval.
    fn watched_twice(&mut self, model: &Model) {
        let tiers = model.topology.tiers();
        let host = |name: &str| model.topology.host(name);
        // The tier, and the host of the port: none for a tier as a whole.
        let place = |port: &str| match (port.strip_prefix("tier:"), port.strip_prefix("nic:")) {
            (Some(tier), _) => tiers.iter().position(|known| *known == tier).map(|tier| (Some(tier), None)),
            (_, Some(nic)) => host(nic).map(|host| (None, Some(host))),
            _ => host(port).map(|host| (Some(0), Some(host))),
        };
        let queues: Vec<_> = model.observe.queue.iter().collect();
        for (index, (name, queue)) in queues.iter().enumerate() {
            let Some((tier, host)) = place(&queue.port) else { continue };
            let shares = |known: &str| {
                let known = place(known);
                known.is_some_and(|(t, h)| t == tier && (h == host || h.is_none() || host.is_none()))
            };
            let other =
                queues[..index].iter().find(|(_, known)| shares(&known.port) && known.every != queue.every);
            if let Some((before, known)) = other {
                let report = self
                    .report(
                        &["observe", "queue", name, "every"],
                        format!("{} for a port that `{before}` watches every {}", queue.every, known.every),
                    )
                    .allowed(format!("\"{}\", as in `observe.queue.{before}`", known.every));
                self.found.errors.push(report);
            }
        }
    }

    fn observed_port(&mut self, path: &[&str], port: &str, topology: &Topology) {
        if let Some(tier) = port.strip_prefix("tier:") {
            let tiers = topology.tiers();
            if !tiers.contains(&tier) {
                let allowed: Vec<String> = tiers.iter().map(|tier| format!("\"tier:{tier}\"")).collect();
                let help = did_you_mean(tier, tiers.iter().copied());
                let report = self.report(path, format!("there is no tier `{tier}`"));
                self.found.errors.push(report.allowed(allowed.join(", ")).maybe_help(help));
            }
            return;
        }
        self.host_named(path, port.strip_prefix("nic:").unwrap_or(port), topology);
    }

    /// Returns the number of a host, or reports the nearest name.
    fn host_named(&mut self, path: &[&str], name: &str, topology: &Topology) -> Option<u32> {
        let found = topology.host(name);
        if found.is_none() {
            let InvalidWorkload { problem, allowed, help, .. } = unknown_host(topology, "", name);
            let mut report = self.report(path, problem).maybe_help(help);
            report.allowed = allowed;
            self.found.errors.push(report);
        }
        found
    }
}

/// A captured packet takes about 100 bytes of memory.
const CAPTURE_MAX: u64 = 10_000_000;
