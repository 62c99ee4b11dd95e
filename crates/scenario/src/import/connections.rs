//! The connection matrices of htsim (`.cm`; Broadcom/csg-htsim, ultraethernet/uet-htsim): a flow list, or a job where
//! triggers start flows when others end.
//!
//! ```text
//! Nodes 4
//! Connections 3
//! Triggers 1
//! 0->1 id 1 start 0 size 1000000 send_done_trigger 1      starts are in picoseconds
//! 2->1 id 2 start 0 size 1000000 send_done_trigger 1
//! 1->3 id 3 trigger 1 size 500000
//! trigger id 1 barrier count 2
//! ```
//!
//! In a job a node is a rank. A trigger is activated at the destination of a flow when it has arrived, and its targets
//! start at their sources: a message of 1 B tells a source that is another node. In htsim it needs none, and
//! `send_done_trigger` waits for the sender's last acknowledgement.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_text::counted;
use plimsoll_traffic::jobs::graph::{GraphBuilder, OperationAction, OperationNumber};
use plimsoll_units::Span;

use super::jobs::imported;
use super::{Imported, ImportedTraffic, Lines, flow_list, known_host};
use crate::error::ScenarioError;

type Failed = Box<ScenarioError>;

const CONNECTION: &str = "SOURCE->DESTINATION, then `id N`, `start PICOSECONDS` or `trigger N`, `size BYTES`, \
                          `prio N`, `send_done_trigger N`";
const TRIGGER: &str = "`trigger id N oneshot`, `multishot` or `barrier count N`";
const FAILURE: &str = "`failure switch_type TOR|AGG|CORE switch_id N link_id N`";

/// A connection matrix as a flow list, or as a job where it has triggers. A priority becomes the class `prio3` of a
/// flow list; failures are dead links of the topology.
///
/// # Errors
/// At the first word that does not fit, and at a trigger that would never start one of its flows.
pub fn htsim_connections(
    name: &str,
    text: &str,
    topology: Option<&Imported>,
) -> Result<ImportedTraffic, Failed> {
    let mut lines = Lines::new(name, text);
    let mut matrix = Matrix::default();
    let mut announced: BTreeMap<&str, u64> = BTreeMap::new();
    while let Some(words) = lines.next() {
        let value = || words.get(1).copied().ok_or_else(|| lines.error(words[0], "no value", "a number"));
        match words[0] {
            "Nodes" => matrix.nodes = Some(lines.number(value()?, "count of nodes")?),
            "Connections" | "Triggers" | "Failures" => {
                announced.insert(words[0], lines.number(value()?, "count")?);
            }
            "trigger" => matrix.triggers.push(trigger(&lines, &words)?),
            "failure" => matrix.dead_links.push(failure(&lines, &words, topology)?),
            ends if ends.contains("->") => {
                let nodes = matrix
                    .nodes
                    .ok_or_else(|| lines.error(ends, "a connection before `Nodes`", "`Nodes N`"))?;
                let hosts = topology.map(|topology| &topology.hosts);
                matrix.connections.push(connection(&lines, &words, (nodes, hosts))?);
            }
            other => return Err(lines.error(other, format!("`{other}` is not known"), CONNECTION)),
        }
    }
    if !announced.contains_key("Connections") {
        return Err(lines.error("", "no line `Connections N`", "one before the connections"));
    }
    for (word, thing, found) in [
        ("Connections", "connection", matrix.connections.len()),
        ("Triggers", "trigger", matrix.triggers.len()),
        ("Failures", "failure", matrix.dead_links.len()),
    ] {
        let count = announced.get(word).copied().unwrap_or(0);
        if count != found as u64 {
            let message = format!("{}, and `{word}` says {count}", counted(found as u64, thing));
            return Err(lines.error("", message, "as many as it says"));
        }
    }
    matrix.traffic(&lines)
}

/// A file that has been read.
#[derive(Default)]
struct Matrix<'a> {
    nodes: Option<u32>,
    connections: Vec<Connection<'a>>,
    triggers: Vec<Trigger<'a>>,
    dead_links: Vec<(String, String)>,
}

struct Connection<'a> {
    /// Its first word, `0->1`.
    word: &'a str,
    from: u32,
    to: u32,
    /// When it starts, in picoseconds; none where a trigger starts it.
    start: Option<u64>,
    bytes: u64,
    prio: Option<u64>,
    trigger: Option<Reference<'a>>,
    /// The triggers that it activates.
    activates: Vec<Reference<'a>>,
    /// It activates one when its sender has the last acknowledgement.
    awaits_ack: bool,
}

/// The number of a trigger, where a connection names it.
#[derive(Clone, Copy)]
struct Reference<'a> {
    id: u64,
    word: &'a str,
}

struct Trigger<'a> {
    id: Reference<'a>,
    form: TriggerForm,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TriggerForm {
    /// Starts all targets at the only activation.
    Oneshot,
    /// Starts the next target at each activation.
    Multishot,
    /// Starts all targets at the activation of that number.
    Barrier(u64),
}

/// Returns the words that follow `keys`, which come one after the other with a value each.
fn values<'a, const N: usize>(
    lines: &Lines<'a>,
    words: &[&'a str],
    keys: [&str; N],
    allowed: &str,
) -> Result<[&'a str; N], Failed> {
    let mut found = [""; N];
    for (place, key) in keys.into_iter().enumerate() {
        let at = 1 + 2 * place;
        match words.get(at..at + 2) {
            Some([word, value]) if *word == key => found[place] = value,
            _ => {
                let word = words.get(at).copied().unwrap_or(words[0]);
                return Err(lines.error(word, format!("no `{key}` with a value"), allowed));
            }
        }
    }
    Ok(found)
}

fn trigger<'a>(lines: &Lines<'a>, words: &[&'a str]) -> Result<Trigger<'a>, Failed> {
    let [word] = values(lines, words, ["id"], TRIGGER)?;
    let id = Reference { id: lines.number(word, "number of a trigger")?, word };
    let form = match words.get(3..).unwrap_or_default() {
        ["oneshot"] => TriggerForm::Oneshot,
        ["multishot"] => TriggerForm::Multishot,
        ["barrier", "count", count] => TriggerForm::Barrier(lines.number(count, "count of activations")?),
        rest => {
            let word = rest.first().copied().unwrap_or(words[0]);
            return Err(lines.error(word, "a trigger without its form", TRIGGER));
        }
    };
    Ok(Trigger { id, form })
}

/// Returns the ends of a link upwards of a switch, or downwards of a core switch.
fn failure<'a>(
    lines: &Lines<'a>,
    words: &[&'a str],
    topology: Option<&Imported>,
) -> Result<(String, String), Failed> {
    let [tier, switch, link] = values(lines, words, ["switch_type", "switch_id", "link_id"], FAILURE)?;
    if !["TOR", "AGG", "CORE"].contains(&tier) {
        return Err(lines.error(tier, format!("a switch of type `{tier}`"), FAILURE));
    }
    let name = format!("{}{}", tier.to_lowercase(), lines.number::<u32>(switch, "number of a switch")?);
    let number: usize = lines.number(link, "number of a link")?;
    let Some(topology) = topology else {
        let message = "a failure of a link, and the links are not known";
        return Err(lines.error(words[0], message, "the topology beside it: --topology FILE"));
    };
    // Links are listed from below to above, and those of a bundle one after the other.
    let end =
        |(below, above): &(String, String)| if tier == "CORE" { above == &name } else { below == &name };
    let mut links: Vec<&(String, String)> = topology.links.iter().filter(|link| end(link)).collect();
    links.dedup();
    if links.is_empty() {
        return Err(lines.error(
            switch,
            format!("the topology has no switch `{name}` with such a link"),
            FAILURE,
        ));
    }
    let found = links.get(number).map(|link| (*link).clone());
    found.ok_or_else(|| {
        lines.error(link, format!("link {number} of {}", links.len()), "links are counted from 0")
    })
}

fn connection<'a>(
    lines: &Lines<'a>,
    words: &[&'a str],
    (nodes, hosts): (u32, Option<&BTreeSet<u32>>),
) -> Result<Connection<'a>, Failed> {
    let (from, to) = words[0].split_once("->").unwrap_or((words[0], ""));
    let [from, to] = [from, to].map(|word| match lines.number::<u32>(word, "number of a node") {
        Ok(node) if node < nodes => known_host(lines, word, node, hosts).map(|()| node),
        Ok(node) => Err(lines.error(word, format!("node {node} of {nodes}"), format!("less than {nodes}"))),
        Err(error) => Err(error),
    });
    let (from, to) = (from?, to?);
    if from == to {
        return Err(lines.error(words[0], "a flow from a host to itself", "another host"));
    }
    let (mut start, mut size, mut prio, mut trigger) = (None, None, None, None);
    let (mut activates, mut awaits_ack) = (Vec::new(), false);
    let mut rest = words[1..].iter().copied();
    while let Some(key) = rest.next() {
        let mut value =
            || rest.next().ok_or_else(|| lines.error(key, format!("`{key}` without a value"), CONNECTION));
        let reference = |word| lines.number(word, "number of a trigger").map(|id| Reference { id, word });
        match key {
            "id" | "msg" => drop(lines.number::<u64>(value()?, "number")?),
            "start" => {
                let word = value()?;
                let ps: f64 = lines.number(word, "time in picoseconds")?;
                if !(0.0..1e19).contains(&ps) {
                    return Err(lines.error(word, "a start outside all time", "picoseconds from 0"));
                }
                // A whole number keeps all its digits.
                start = Some(word.parse::<u64>().unwrap_or(ps.round() as u64));
            }
            "size" => {
                let word = value()?;
                let bytes: u64 = lines.number(word, "count of bytes")?;
                if bytes == 0 {
                    let allowed = "at least 1; a workload of kind `flows` without a size has no end";
                    return Err(lines.error(word, "a flow without an end", allowed));
                }
                size = Some(bytes);
            }
            "prio" => prio = Some(lines.number(value()?, "priority")?),
            "trigger" => trigger = Some(reference(value()?)?),
            "send_done_trigger" | "recv_done_trigger" => {
                activates.push(reference(value()?)?);
                awaits_ack |= key == "send_done_trigger";
            }
            other => return Err(lines.error(other, format!("`{other}` is not known"), CONNECTION)),
        }
    }
    let missing = |key: &str| lines.error(words[0], format!("no `{key}`"), CONNECTION);
    match (start, trigger) {
        (None, None) => return Err(missing("start")),
        (Some(_), Some(trigger)) => {
            return Err(lines.error(trigger.word, "a `trigger` beside a `start`", "one of the two"));
        }
        _ => {}
    }
    let bytes = size.ok_or_else(|| missing("size"))?;
    Ok(Connection { word: words[0], from, to, start, bytes, prio, trigger, activates, awaits_ack })
}

impl Matrix<'_> {
    fn traffic(self, lines: &Lines<'_>) -> Result<ImportedTraffic, Failed> {
        let is_job = self.connections.iter().any(|one| one.trigger.is_some() || !one.activates.is_empty());
        let file = if is_job {
            self.job(lines)?
        } else {
            let flow = |one: &Connection<'_>| {
                let class = one.prio.map_or_else(String::new, |prio| format!("prio{prio}"));
                (one.start.unwrap_or(0), one.from, one.to, one.bytes, class)
            };
            flow_list(&self.connections.iter().map(flow).collect::<Vec<_>>(), Vec::new())
        };
        Ok(ImportedTraffic { file, is_job, dead_links: self.dead_links })
    }

    fn job(&self, lines: &Lines<'_>) -> Result<Imported, Failed> {
        let mut builder = GraphBuilder::new(self.nodes.unwrap_or(0));
        self.check_triggers(lines)?;
        let count = self.connections.len() as u32;
        // A multishot trigger takes whichever flow arrives first, so those to its source have one number in common.
        let mut tags: Vec<u32> = (0..count).collect();
        for (number, trigger) in (count..).zip(&self.triggers) {
            let Some(source) = self.targets(trigger).next().map(|target| self.connections[target].from)
            else {
                continue;
            };
            if trigger.form != TriggerForm::Multishot {
                continue;
            }
            for one in self.activators(trigger).filter(|one| self.connections[*one].to == source) {
                if self.connections[one].activates.len() > 1 {
                    let message =
                        "a flow that activates a multishot trigger of its destination and another one";
                    return Err(lines.error(self.connections[one].word, message, "one trigger"));
                }
                tags[one] = number;
            }
        }
        let begins = self.begins(&mut builder);
        let mut flows: Vec<(OperationNumber, Option<OperationNumber>)> = Vec::new();
        for ((one, &tag), begin) in self.connections.iter().zip(&tags).zip(begins) {
            let send = builder.send(one.from, one.to, one.bytes, tag);
            if let Some(begin) = begin {
                builder.after(send, begin);
            }
            let receive = (tag < count).then(|| builder.receive(one.to, one.from, one.bytes, tag));
            flows.push((send, receive));
        }
        let mut told = 0;
        for (number, trigger) in (count..).zip(&self.triggers) {
            let sources: BTreeSet<u32> =
                self.targets(trigger).map(|target| self.connections[target].from).collect();
            for source in sources {
                let mut activations = Vec::new();
                for one in self.activators(trigger) {
                    let at = self.connections[one].to;
                    if at != source {
                        let tell = builder.send(at, source, 1, number);
                        flows[one].1.into_iter().for_each(|receive| builder.after(tell, receive));
                        told += 1;
                    }
                    activations.push(match flows[one].1 {
                        Some(receive) if at == source => receive,
                        _ => builder.add(
                            source,
                            OperationAction::Receive { from: None, bytes: 1, tag: Some(number) },
                        ),
                    });
                }
                let targets = self.targets(trigger).filter(|target| self.connections[*target].from == source);
                for (place, target) in targets.enumerate() {
                    match trigger.form {
                        TriggerForm::Multishot => builder.after(flows[target].0, activations[place]),
                        _ => builder.after_all(flows[target].0, &activations),
                    }
                }
            }
        }
        let graph =
            builder.finish().map_err(|bad| lines.error("", bad.to_string(), "flows that can all start"))?;
        Ok(imported(lines.name(), &graph, self.notes(told)))
    }

    /// Returns the flows that a trigger starts.
    fn targets(&self, trigger: &Trigger<'_>) -> impl Iterator<Item = usize> {
        let is_target = |one: &Connection<'_>| one.trigger.is_some_and(|by| by.id == trigger.id.id);
        self.connections.iter().enumerate().filter(move |(_, one)| is_target(one)).map(|(number, _)| number)
    }

    /// Returns the flows that activate a trigger.
    fn activators(&self, trigger: &Trigger<'_>) -> impl Iterator<Item = usize> {
        let activates = |one: &Connection<'_>| one.activates.iter().any(|of| of.id == trigger.id.id);
        self.connections.iter().enumerate().filter(move |(_, one)| activates(one)).map(|(number, _)| number)
    }

    /// Checks that each trigger starts all its flows.
    fn check_triggers(&self, lines: &Lines<'_>) -> Result<(), Failed> {
        let known: BTreeSet<u64> = self.triggers.iter().map(|trigger| trigger.id.id).collect();
        let named = self.connections.iter().flat_map(|one| one.activates.iter().chain(&one.trigger));
        if let Some(unknown) = named.into_iter().find(|reference| !known.contains(&reference.id)) {
            return Err(lines.error(unknown.word, format!("there is no trigger {}", unknown.id), TRIGGER));
        }
        for (place, trigger) in self.triggers.iter().enumerate() {
            let Trigger { id: Reference { id, word }, form } = *trigger;
            let sources: BTreeSet<u32> =
                self.targets(trigger).map(|target| self.connections[target].from).collect();
            let (targets, activations) =
                (self.targets(trigger).count() as u64, self.activators(trigger).count() as u64);
            let bad = |problem: String, allowed: &str| Err(lines.error(word, problem, allowed));
            let activated = format!("trigger {id} is activated by {}", counted(activations, "flow"));
            match form {
                _ if self.triggers[..place].iter().any(|other| other.id.id == id) => {
                    return bad(format!("trigger {id} comes twice"), "each trigger once");
                }
                _ if targets == 0 => {
                    return bad(format!("trigger {id} starts no flow"), "`trigger N` of a flow");
                }
                TriggerForm::Oneshot if activations != 1 => return bad(activated, "1 of a oneshot trigger"),
                TriggerForm::Barrier(count) if activations != count => {
                    return bad(activated, "as many as its `count`");
                }
                TriggerForm::Multishot if activations < targets => {
                    return bad(format!("{activated}, and starts {targets}"), "as many or more");
                }
                TriggerForm::Multishot if sources.len() > 1 => {
                    let problem = format!("trigger {id} starts flows of {} nodes one by one", sources.len());
                    return bad(problem, "flows of one node");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds waits until flows start, and returns that of each flow; starts of a node wait for each other, as it waits
    /// for one at a time.
    fn begins(&self, builder: &mut GraphBuilder) -> Vec<Option<OperationNumber>> {
        // GOAL has nanoseconds.
        let start = |one: &Connection<'_>| {
            let ps = one.start.unwrap_or(0);
            (one.from, ps / 1_000 + u64::from(ps % 1_000 >= 500))
        };
        let starts: BTreeSet<(u32, u64)> =
            self.connections.iter().map(start).filter(|(_, ns)| *ns > 0).collect();
        let mut waits = BTreeMap::new();
        let mut before: Option<(u32, u64, OperationNumber)> = None;
        for (node, ns) in starts {
            let same = before.filter(|(of, _, _)| *of == node);
            let wait = builder.compute(node, Span::from_ns(ns - same.map_or(0, |(_, earlier, _)| earlier)));
            if let Some((_, _, earlier)) = same {
                builder.after(wait, earlier);
            }
            waits.insert((node, ns), wait);
            before = Some((node, ns, wait));
        }
        self.connections.iter().map(|one| waits.get(&start(one)).copied()).collect()
    }

    /// Returns the differences from htsim, of a job in which that many messages tell sources of activations.
    fn notes(&self, told: u64) -> Vec<String> {
        let mut notes = Vec::new();
        if self.connections.iter().any(|one| one.awaits_ack) {
            notes.push(
                "`send_done_trigger` is activated when the flow has arrived; in htsim when its sender has the last \
                 acknowledgement"
                    .to_owned(),
            );
        }
        if told > 0 {
            notes.push(format!(
                "{} of 1 B tell{} the source of a flow that a trigger starts; in htsim it needs none",
                counted(told, "message"),
                if told == 1 { "s" } else { "" }
            ));
        }
        if self.connections.iter().any(|one| one.start.is_some_and(|start| start % 1_000 > 0)) {
            notes.push("starts are rounded to nanoseconds".to_owned());
        }
        if self.connections.iter().any(|one| one.prio.is_some()) {
            notes.push("`prio` is left out: a job has one class".to_owned());
        }
        notes
    }
}
