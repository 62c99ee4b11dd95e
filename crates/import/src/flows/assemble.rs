//! [`found`]: the flows of all logs become classes of payload between numbered hosts, with notes on each step.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_text::{count, counted};
use plimsoll_units::Span;

use super::intake::{FlowClassBy, Intake, UDP};
use super::mapping::ColumnMapping;
use super::observations::FlowObservation;
use super::{FlowSettings, observations::JoinCounts};
use crate::found::{ClassTraffic, FoundFlow, ImportFound, Note, Remark, TrafficClass};
use crate::invalid::Invalid;

/// Facts about the files that become notes.
#[derive(Default)]
pub(crate) struct LogFacts {
    /// The number of files by the name of their format.
    formats: BTreeMap<String, u64>,
    /// Files whose records have no ports.
    without_ports: BTreeSet<String>,
}

impl LogFacts {
    pub(crate) fn file(&mut self, name: &str, format: &str, mapping: &ColumnMapping) {
        *self.formats.entry(format.to_owned()).or_default() += 1;
        if !mapping.has_ports() {
            self.without_ports.insert(name.to_owned());
        }
    }
}

/// The most classes; the smaller ones are one class together.
const CLASSES_MAX: usize = 16;

/// The bytes of the headers of IPv4 and UDP; IPv6 has 20 more, TCP with timestamps 24 more.
const HEADERS: u64 = 28;

/// The longest time that a run can have, in nanoseconds.
const DURATION_MAX: u64 = u64::MAX / 1000;

/// Returns the contents of the files.
pub(crate) fn found(
    intake: Intake,
    settings: &FlowSettings,
    times: bool,
    gap: Span,
    facts: LogFacts,
) -> Result<ImportFound, Invalid> {
    let mut notes = Notes::default();
    for (format, files) in &facts.formats {
        notes.found(format!("{} of the format {format}", counted(*files, "file")));
    }
    let damage = intake.damage_note();
    let Intake {
        hosts,
        exporters,
        classes,
        mut observations,
        ignored,
        records,
        sampling_max,
        without_packets,
        ..
    } = intake;
    if let (false, Some(duration)) = (times, settings.duration) {
        observations.spread(records, duration.as_ps() / 1000);
        notes.assumed(format!(
            "the log has no times: its records are spread evenly over {duration}, and all records of a connection are \
             one flow"
        ));
    }
    let (mut flows, counts) = observations.finish();
    notes.joined(records, flows.len() as u64, counts, gap, times);
    if exporters.names.len() > 1 && counts.repeated > 0 && sampling_max > 1 {
        notes.assumed(
            "several exporters sampled the same network: a short flow that the sender's own switch did not sample and \
             another one did is counted, too, so the load may be too high"
                .to_owned(),
        );
    }
    if !facts.without_ports.is_empty() {
        notes.assumed(
            "the records have no ports: each is a flow of its own, also where a timeout cut one flow into several or \
             two exporters saw the same"
                .to_owned(),
        );
    }
    flows.sort_unstable_by_key(|flow| (flow.start, flow.key, flow.end));
    let Some(first) = flows.first().map(|flow| flow.start) else {
        let problem = damage.map_or_else(
            || format!("no flows in {}", counted(records, "record")),
            |damage| format!("no flows: {}", damage.text),
        );
        return Err(Invalid::new("flows", problem, "records of TCP or UDP between two addresses"));
    };
    let last = flows.iter().map(|flow| flow.end).max().unwrap_or(first);
    if last - first > DURATION_MAX {
        return Err(Invalid::new("flows", "more than 213 days from the first to the last", "less"));
    }
    let duration = match settings.duration {
        Some(duration) if !times => duration,
        _ => Span::from_ns(last - first),
    };
    let mut assembly = Assembly { numbers: BTreeMap::new(), names: Vec::new(), classes: BTreeMap::new() };
    let mut without_payload = 0;
    for flow in &flows {
        match payload(flow, &hosts.names[flow.key.source as usize]) {
            0 => without_payload += 1,
            bytes => assembly.add(flow, &hosts.names, first, bytes),
        }
    }
    if without_payload > 0 {
        notes.ignored(format!(
            "{} without payload, such as acknowledgements",
            counted(without_payload, "flow")
        ));
    }
    if without_packets > 0 {
        notes.assumed(format!(
            "{} without a number of packets: their bytes are taken for payload, headers included",
            counted(without_packets, "record")
        ));
    }
    if without_packets < records {
        notes.assumed(
            "bytes are those of IP packets: headers of 28 bytes a packet with UDP and 52 with TCP (with timestamps), \
             and 20 more with IPv6, are subtracted"
                .to_owned(),
        );
    }
    for (reason, number) in ignored {
        notes.ignored(format!("{} {reason}", counted(number, "record")));
    }
    notes.list.extend(damage);
    let classes = assembly.finish(&settings.class_by, &classes.names, sampling_max, &mut notes);
    if classes.is_empty() {
        return Err(Invalid::new("flows", "no flow has payload", "bytes of payload"));
    }
    Ok(ImportFound { hosts: assembly.names, classes, duration, notes: notes.list })
}

/// Returns the payload of a flow. A TCP flow with up to a byte a packet, or up to the options of a SYN, only
/// acknowledges another.
fn payload(flow: &FlowObservation, source: &str) -> u64 {
    let is_udp = flow.key.protocol == UDP;
    let of_version = if source.contains(':') { 20 } else { 0 };
    let headers = HEADERS + of_version + if is_udp { 0 } else { 24 };
    let bytes = flow.bytes.saturating_sub(flow.packets.saturating_mul(headers));
    let acknowledges = !is_udp && flow.packets > 0 && (bytes <= 20 || bytes <= flow.packets);
    if acknowledges { 0 } else { bytes }
}

/// The flows of a class, with the samples on which they are based.
#[derive(Default)]
struct ClassFlows {
    flows: Vec<FoundFlow>,
    bytes: u64,
    samples: u64,
}

/// Hosts and classes under way.
struct Assembly {
    /// The numbers of hosts by their numbers in the intake.
    numbers: BTreeMap<u32, u32>,
    names: Vec<String>,
    classes: BTreeMap<u32, ClassFlows>,
}

impl Assembly {
    fn add(&mut self, flow: &FlowObservation, hosts: &[String], first: u64, bytes: u64) {
        let mut number = |host: u32| {
            *self.numbers.entry(host).or_insert_with(|| {
                self.names.push(hosts[host as usize].clone());
                self.names.len() as u32 - 1
            })
        };
        let (source, destination) = (number(flow.key.source), number(flow.key.destination));
        let class = self.classes.entry(flow.key.class).or_default();
        let span = |time: u64| Span::from_ns(time - first);
        class.flows.push(FoundFlow {
            start: span(flow.start),
            end: span(flow.end),
            source,
            destination,
            bytes,
        });
        class.bytes = class.bytes.saturating_add(bytes);
        class.samples += flow.samples;
    }

    /// Returns the classes, the largest first.
    fn finish(
        &mut self,
        by: &FlowClassBy,
        labels: &[String],
        sampling: u64,
        notes: &mut Notes,
    ) -> Vec<TrafficClass> {
        let mut classes: Vec<(String, ClassFlows)> = std::mem::take(&mut self.classes)
            .into_iter()
            .map(|(class, flows)| (class_name(by, class, labels), flows))
            .collect();
        classes.sort_by_key(|(_, class)| std::cmp::Reverse(class.bytes));
        if classes.len() > CLASSES_MAX {
            let small = classes.split_off(CLASSES_MAX - 1);
            let mut rest = ClassFlows::default();
            notes.assumed(format!("the {} smallest classes are one, `other`", count(small.len() as u64)));
            for (_, class) in small {
                rest.flows.extend(class.flows);
                rest.bytes = rest.bytes.saturating_add(class.bytes);
                rest.samples += class.samples;
            }
            rest.flows.sort_by_key(|flow| flow.start);
            classes.push(("other".to_owned(), rest));
        }
        if sampling > 1 {
            for (name, class) in &classes {
                notes.sampled(name, class.samples, sampling);
            }
        }
        let class = |(name, class): (String, ClassFlows)| TrafficClass {
            name,
            traffic: ClassTraffic::Flows(class.flows),
        };
        classes.into_iter().map(class).collect()
    }
}

fn class_name(by: &FlowClassBy, class: u32, labels: &[String]) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match by {
        FlowClassBy::Port if class > 0 => format!("port-{class}"),
        FlowClassBy::Dscp => format!("dscp-{class}"),
        FlowClassBy::Column(column) => match labels.get(class as usize).filter(|label| !label.is_empty()) {
            Some(label) => label.chars().map(|c| if is_name(c) { c } else { '-' }).collect(),
            None => format!("no-{}", column.chars().filter(|c| is_name(*c)).collect::<String>()),
        },
        FlowClassBy::Port | FlowClassBy::One => "flows".to_owned(),
    }
}

/// The notes of an import, in order.
#[derive(Default)]
struct Notes {
    list: Vec<Note>,
}

impl Notes {
    fn found(&mut self, text: String) {
        self.list.push(Note { remark: Remark::Found, text });
    }

    fn assumed(&mut self, text: String) {
        self.list.push(Note { remark: Remark::Assumed, text });
    }

    fn ignored(&mut self, text: String) {
        self.list.push(Note { remark: Remark::Ignored, text });
    }

    fn joined(&mut self, records: u64, flows: u64, counts: JoinCounts, gap: Span, times: bool) {
        self.found(format!("{} of {}", counted(records, "record"), counted(flows, "flow")));
        if counts.joined > 0 && times {
            self.assumed(format!(
                "{} joined to the one before: an active timeout cuts a flow into records of the same connection, at \
                 most {gap} apart",
                counted(counts.joined, "record")
            ));
        }
        if counts.doubled > 0 {
            self.assumed(format!(
                "{} of packets that the same exporter saw at another interface: counted once",
                counted(counts.doubled, "record")
            ));
        }
        if counts.repeated > 0 {
            self.assumed(format!(
                "{} that several exporters saw: counted once, by the exporter that saw the most bytes of the sender",
                counted(counts.repeated, "flow")
            ));
        }
    }

    /// Adds the error of a sampled class: with n sampled packets, 95 % of such estimates are within 1.96 / sqrt(n).
    fn sampled(&mut self, class: &str, samples: u64, sampling: u64) {
        if samples == 0 {
            self.assumed(format!(
                "class {class}: bytes are multiplied by 1:{sampling}; the log has no packets to judge by"
            ));
            return;
        }
        self.assumed(format!(
            "class {class}: bytes are multiplied by the sampling rate, up to {}; with {} the 95 % interval of its load \
             is within {:.1} %",
            count(sampling),
            counted(samples, "sampled packet"),
            196.0 / (samples as f64).sqrt()
        ));
    }
}
