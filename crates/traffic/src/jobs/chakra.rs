//! Chakra execution traces (MLCommons, `et_def.proto`): a job as profilers of training runs and ASTRA-sim write it.
//!
//! ```text
//! NAME.<rank>.et: length, GlobalMetadata, length, Node, length, Node, ...      of each rank ──> ChakraTrace
//! ChakraTrace of all ranks, groups ──> collective operations meet by their order in a group ──> JobGraph
//! ```
//!
//! The two protobuf messages of the format are read by hand: each field is a number, eight or four bytes, or a length
//! with bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use plimsoll_units::Span;

use wire::{WireFields, WireValue, number_of, read_length};

use super::graph::{BadGraph, GraphBuilder, JobGraph, OperationNumber, nanoseconds};
use super::schedule::{Algorithm, Collective, CollectiveOperation, LastOperations};

mod wire;

#[cfg(test)]
mod tests;

/// The nodes of one rank.
#[derive(Clone, Debug, Default)]
pub struct ChakraTrace {
    nodes: Vec<ChakraNode>,
    /// Attributes that mean nothing here, with how often they came.
    ignored: BTreeMap<String, u64>,
}

/// A node of a rank's trace.
#[derive(Clone, Debug, Default)]
struct ChakraNode {
    id: u64,
    name: String,
    kind: u64,
    waits_for: Vec<u64>,
    duration_us: u64,
    comm_type: Option<u64>,
    bytes: u64,
    from: Option<u64>,
    to: Option<u64>,
    tag: u64,
    group: String,
}

/// The types of nodes (`NodeType`).
mod kind {
    pub(super) const SEND: u64 = 5;
    pub(super) const RECEIVE: u64 = 6;
    pub(super) const COLLECTIVE: u64 = 7;
    pub(super) const LAST: u64 = 7;
}

/// The reasons why traces are no job.
#[derive(Debug, thiserror::Error)]
pub enum BadChakra {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The bytes are no trace.
    #[error("byte {at}: {problem}")]
    Format {
        /// The place in the file.
        at: u64,
        /// The problem in words.
        problem: String,
    },
    /// The file is that of Zstandard.
    #[error("it is compressed by Zstandard")]
    Zstandard,
    /// A node cannot be carried out.
    #[error("node {id} (\"{name}\") of rank {rank}: {problem}")]
    Node {
        #[allow(missing_docs)]
        rank: usize,
        /// The number of the node.
        id: u64,
        #[allow(missing_docs)]
        name: String,
        /// The problem in words.
        problem: String,
        /// The change to make, where one is likely.
        help: Option<String>,
    },
    /// The operations are no job.
    #[error(transparent)]
    Graph(#[from] BadGraph),
}

impl BadChakra {
    fn with_help(self, text: String) -> BadChakra {
        match self {
            BadChakra::Node { rank, id, name, problem, .. } => {
                BadChakra::Node { rank, id, name, problem, help: Some(text) }
            }
            other => other,
        }
    }

    /// Returns the change to make, where one is likely.
    pub fn help(&self) -> Option<&str> {
        match self {
            BadChakra::Zstandard => {
                Some("unpack it by `zstd -d`; traces are read as they are, or compressed by gzip")
            }
            BadChakra::Node { help, .. } => help.as_deref(),
            _ => None,
        }
    }
}

/// How the collective operations of traces are carried out.
#[derive(Clone, Copy, Debug)]
pub struct ChakraOptions {
    /// The schedule of all-reduces; others have their default.
    pub all_reduce: Algorithm,
    /// The parts that run a schedule beside each other: 1 or more.
    pub chunks: u32,
}

/// The longest record of a trace.
const RECORD_MAX: u64 = 64 << 20;
/// The most bytes of a compressed trace when it is unpacked.
const UNPACKED_MAX: u64 = 4 << 30;
/// The first bytes of gzip's files and of Zstandard's.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTANDARD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl ChakraTrace {
    /// Reads the trace of a rank, as it is or compressed by gzip, a record at a time.
    ///
    /// # Errors
    /// Names the first byte that does not fit, of a compressed trace when it is unpacked.
    pub fn read(mut input: impl BufRead) -> Result<ChakraTrace, BadChakra> {
        let begin = input.fill_buf()?;
        if begin.starts_with(&ZSTANDARD) {
            return Err(BadChakra::Zstandard);
        }
        match begin.starts_with(&GZIP) {
            true => ChakraTrace::read_records(MultiGzDecoder::new(input), UNPACKED_MAX),
            false => ChakraTrace::read_records(input, u64::MAX),
        }
    }

    fn read_records(mut input: impl Read, most: u64) -> Result<ChakraTrace, BadChakra> {
        let mut trace = ChakraTrace::default();
        let (mut at, mut record, mut is_first) = (0, Vec::new(), true);
        while let Some((length, bytes)) = read_length(&mut input, at)? {
            let start = at + bytes;
            if length > RECORD_MAX || start > most {
                let most = if start > most { most } else { RECORD_MAX };
                let problem = format!("a record of {length} bytes, where at most {most} fit");
                return Err(BadChakra::Format { at, problem });
            }
            record.resize(length as usize, 0);
            input.read_exact(&mut record).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => BadChakra::Format {
                    at,
                    problem: format!("a record of {length} bytes, and the file ends before"),
                },
                _ => BadChakra::Io(error),
            })?;
            if !std::mem::take(&mut is_first) {
                trace.add(start, &record)?;
            }
            at = start + length;
        }
        Ok(trace)
    }

    fn add(&mut self, start: u64, record: &[u8]) -> Result<(), BadChakra> {
        let mut node = ChakraNode::default();
        for field in (WireFields { bytes: record, start, at: 0 }) {
            let (number, value) = field?;
            match (number, value) {
                (1, WireValue::Number(id)) => node.id = id,
                (2, WireValue::Bytes(name)) => node.name = String::from_utf8_lossy(name).into_owned(),
                (3, WireValue::Number(kind)) => node.kind = kind,
                (4 | 5, WireValue::Number(id)) => node.waits_for.push(id),
                (4 | 5, WireValue::Bytes(packed)) => {
                    let mut rest = packed;
                    while let Some((id, after)) = number_of(rest) {
                        node.waits_for.push(id);
                        rest = after;
                    }
                }
                (7, WireValue::Number(duration)) => node.duration_us = duration,
                (10, WireValue::Bytes(attribute)) => self.attribute(&mut node, start, attribute)?,
                _ => {}
            }
        }
        self.nodes.push(node);
        Ok(())
    }

    fn attribute(&mut self, node: &mut ChakraNode, start: u64, bytes: &[u8]) -> Result<(), BadChakra> {
        let (mut name, mut number, mut text) = (String::new(), None, String::new());
        for field in (WireFields { bytes, start, at: 0 }) {
            match field? {
                (1, WireValue::Bytes(bytes)) => name = String::from_utf8_lossy(bytes).into_owned(),
                (29, WireValue::Bytes(bytes)) => text = String::from_utf8_lossy(bytes).into_owned(),
                (3..=27, WireValue::Number(value)) => number = Some(value),
                _ => {}
            }
        }
        match (name.as_str(), number) {
            ("comm_type", value) => node.comm_type = value,
            ("comm_size", Some(value)) => node.bytes = value,
            ("comm_src", value) => node.from = value,
            ("comm_dst", value) => node.to = value,
            ("comm_tag", Some(value)) => node.tag = value,
            ("pg_name", _) => node.group = text,
            // The type and the duration of a node say the same.
            ("is_cpu_op" | "num_ops" | "tensor_size" | "comm_priority", _) => {}
            _ => *self.ignored.entry(name).or_default() += 1,
        }
        Ok(())
    }
}

/// Returns the job of the traces of all ranks; `groups` are the ranks of each group by its name, and a collective
/// operation without a group is of all ranks. Notes name the attributes that were left out.
///
/// # Errors
/// Names the first node that cannot be carried out, such as one of a group whose other ranks do something else.
pub fn chakra_job(
    traces: &[ChakraTrace],
    groups: &BTreeMap<String, Vec<u32>>,
    options: ChakraOptions,
) -> Result<(JobGraph, Vec<String>), BadChakra> {
    let mut reader = ChakraReader {
        traces,
        groups,
        options,
        builder: GraphBuilder::new(traces.len() as u32),
        begins: traces.iter().map(|trace| vec![0; trace.nodes.len()]).collect(),
        ends: traces.iter().map(|trace| vec![0; trace.nodes.len()]).collect(),
        meetings: BTreeMap::new(),
    };
    reader.add_operations()?;
    reader.add_collectives()?;
    reader.add_dependencies()?;
    let mut ignored: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in traces.iter().flat_map(|trace| &trace.ignored) {
        *ignored.entry(name).or_default() += count;
    }
    let names: Vec<String> = ignored.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    let notes = match names.is_empty() {
        true => Vec::new(),
        false => vec![format!("left out, since no operation needs them: attributes {}", names.join(", "))],
    };
    let ChakraReader { builder, begins, .. } = reader;
    let graph = builder.finish().map_err(|bad| match bad {
        BadGraph::WithoutCounterpart { operation, rank, .. } => {
            let rank = rank as usize;
            let place = begins[rank].iter().position(|begin| *begin == operation).unwrap_or_default();
            let ChakraNode { id, name, .. } = traces[rank].nodes[place].clone();
            let help =
                "a send and its receive have each other's rank (comm_dst, comm_src) and the same comm_tag";
            BadChakra::Node { rank, id, name, problem: bad.to_string(), help: Some(help.to_owned()) }
        }
        _ => BadChakra::Graph(bad),
    })?;
    Ok((graph, notes))
}

/// Streams of a rank: computation, messages, and collective operations do not wait for each other.
const MESSAGES: u8 = 1;
const COLLECTIVES: u8 = 2;
/// The most ranks of a group that a message lists.
const GROUP_SHOWN: usize = 16;

struct ChakraReader<'a> {
    traces: &'a [ChakraTrace],
    groups: &'a BTreeMap<String, Vec<u32>>,
    options: ChakraOptions,
    builder: GraphBuilder,
    /// The operations with which each node begins and ends, by rank.
    begins: Vec<Vec<OperationNumber>>,
    ends: Vec<Vec<OperationNumber>>,
    /// The nodes of each collective operation, by group and number: rank and place.
    meetings: BTreeMap<(String, usize), Vec<(u32, usize)>>,
}

impl ChakraReader<'_> {
    fn error(&self, rank: usize, node: &ChakraNode, problem: impl Into<String>) -> BadChakra {
        BadChakra::Node { rank, id: node.id, name: node.name.clone(), problem: problem.into(), help: None }
    }

    fn add_operations(&mut self) -> Result<(), BadChakra> {
        let ranks = self.traces.len() as u64;
        for (rank, trace) in self.traces.iter().enumerate() {
            let mut turns: BTreeMap<&str, usize> = BTreeMap::new();
            for (place, node) in trace.nodes.iter().enumerate() {
                let number = rank as u32;
                let peer = |peer: Option<u64>, key: &str| {
                    let found = peer.filter(|peer| *peer < ranks && *peer != rank as u64);
                    found.map(|peer| peer as u32).ok_or_else(|| {
                        let problem =
                            format!("{key} is {}, and the job has ranks 0 to {}", text_of(peer), ranks - 1);
                        self.error(rank, node, problem)
                    })
                };
                let tag = u32::try_from(node.tag % u64::from(u32::MAX / 2)).unwrap_or_default();
                let operation = match node.kind {
                    kind::SEND => {
                        let to = peer(node.to, "comm_dst")?;
                        self.builder.in_group("p2p").on(MESSAGES, 0).send(number, to, node.bytes, tag)
                    }
                    kind::RECEIVE => {
                        let from = peer(node.from, "comm_src")?;
                        self.builder.in_group("p2p").on(MESSAGES, 0).receive(number, from, node.bytes, tag)
                    }
                    kind::COLLECTIVE => {
                        let turn = turns.entry(&node.group).or_default();
                        let meeting = (node.group.clone(), *turn);
                        *turn += 1;
                        self.meetings.entry(meeting).or_default().push((number, place));
                        self.builder.in_group("").on(COLLECTIVES, 0).compute(number, Span::ZERO)
                    }
                    other if other > kind::LAST => {
                        return Err(self.error(
                            rank,
                            node,
                            format!("type {other}, where 0 to {} are known", kind::LAST),
                        ));
                    }
                    _ => {
                        let time = nanoseconds(node.duration_us.saturating_mul(1_000).max(1));
                        self.builder.in_group("").on(0, 0).compute(number, time)
                    }
                };
                self.begins[rank][place] = operation;
                self.ends[rank][place] = operation;
            }
        }
        Ok(())
    }

    fn add_collectives(&mut self) -> Result<(), BadChakra> {
        let mut tag = 1 << 31;
        for ((group, turn), members) in std::mem::take(&mut self.meetings) {
            let (first_rank, first_place) = members[0];
            let first = &self.traces[first_rank as usize].nodes[first_place];
            let all: Vec<u32> = (0..self.traces.len() as u32).collect();
            let bad = |rank: u32, place: usize, problem: String| {
                let node = &self.traces[rank as usize].nodes[place];
                self.error(rank as usize, node, problem).with_help(self.groups_help(&group, &members))
            };
            let ranks = match self.groups.get(&group) {
                Some(ranks) => ranks,
                None if group.is_empty() || self.groups.is_empty() => &all,
                None => {
                    let problem = format!("group \"{group}\" is not among those of the file of groups");
                    return Err(bad(first_rank, first_place, problem));
                }
            };
            let mut place_of: BTreeMap<u32, usize> = BTreeMap::new();
            for &(rank, place) in &members {
                let node = &self.traces[rank as usize].nodes[place];
                if (node.comm_type, node.bytes) != (first.comm_type, first.bytes) {
                    let problem = format!(
                        "operation {turn} of group \"{group}\" is of type {} and {} bytes, and of type {} and {} bytes \
                         at rank {first_rank}",
                        text_of(node.comm_type),
                        node.bytes,
                        text_of(first.comm_type),
                        first.bytes
                    );
                    return Err(bad(rank, place, problem));
                }
                place_of.insert(rank, place);
            }
            if let Some(missing) = ranks.iter().find(|rank| !place_of.contains_key(rank)) {
                let problem = format!("rank {missing} of group \"{group}\" has no operation {turn} of it");
                return Err(bad(first_rank, first_place, problem));
            }
            if let Some((&rank, &place)) = place_of.iter().find(|(rank, _)| !ranks.contains(rank)) {
                return Err(bad(rank, place, format!("rank {rank} is not in group \"{group}\"")));
            }
            let Some((operation, algorithm, bytes)) = self.operation(first, ranks.len() as u64) else {
                let problem = format!(
                    "comm_type {}, where 0 (all-reduce), 1 (reduce), 2 (all-gather), 5 (broadcast), 6 (all-to-all), \
                     7 and 8 (reduce-scatter) and 9 (barrier) are carried out",
                    text_of(first.comm_type)
                );
                return Err(self.error(first_rank as usize, first, problem));
            };
            let last: LastOperations =
                ranks.iter().map(|rank| Some(self.begins[*rank as usize][place_of[rank]])).collect();
            let collective = Collective {
                operation,
                algorithm,
                bytes,
                chunks: self.options.chunks,
                per_server: 1,
                reduce_per_byte: Span::ZERO,
            };
            let name = if group.is_empty() { "all" } else { &group };
            self.builder.in_group(name).on(COLLECTIVES, 0);
            let ends = collective.add(&mut self.builder, ranks, &last, &mut tag);
            for (rank, end) in ranks.iter().zip(ends) {
                let place = place_of[rank];
                self.ends[*rank as usize][place] = end.unwrap_or(self.ends[*rank as usize][place]);
            }
        }
        Ok(())
    }

    /// Returns the change that gives a group the ranks that have operations of it.
    fn groups_help(&self, group: &str, members: &[(u32, usize)]) -> String {
        let ranks: BTreeSet<u32> = members.iter().map(|(rank, _)| *rank).collect();
        let mut shown: Vec<String> = ranks.iter().take(GROUP_SHOWN).map(u32::to_string).collect();
        if ranks.len() > GROUP_SHOWN {
            shown.push("...".to_owned());
        }
        let ranks = shown.join(", ");
        match self.groups.is_empty() {
            true => format!(
                "without --groups an operation is of all {} ranks; give the ranks of each group: --groups FILE, with \
                 {{\"{group}\": [{ranks}], ...}}",
                self.traces.len()
            ),
            false => format!("it is at ranks {ranks}; the file of groups would have \"{group}\": [{ranks}]"),
        }
    }

    /// Returns the operation of a node, its schedule, and its size as nccl-tests counts it; traces have the size of one
    /// rank for an all-gather.
    fn operation(&self, node: &ChakraNode, ranks: u64) -> Option<(CollectiveOperation, Algorithm, u64)> {
        use CollectiveOperation as Operation;
        let operation = match node.comm_type? {
            0 => Operation::AllReduce,
            1 => Operation::Reduce,
            2 => Operation::AllGather,
            5 => Operation::Broadcast,
            6 => Operation::AllToAll,
            7 | 8 => Operation::ReduceScatter,
            9 => Operation::Barrier,
            _ => return None,
        };
        let bytes =
            if operation == Operation::AllGather { node.bytes.saturating_mul(ranks) } else { node.bytes };
        let algorithm = match operation {
            Operation::AllReduce
                if ranks.is_power_of_two() || !self.options.all_reduce.needs_power_of_two() =>
            {
                self.options.all_reduce
            }
            _ => operation.algorithms()[0],
        };
        Some((operation, algorithm, bytes))
    }

    fn add_dependencies(&mut self) -> Result<(), BadChakra> {
        for (rank, trace) in self.traces.iter().enumerate() {
            let mut places: BTreeMap<u64, usize> = BTreeMap::new();
            for (place, node) in trace.nodes.iter().enumerate() {
                if places.insert(node.id, place).is_some() {
                    return Err(self.error(rank, node, "another node of this rank has the same number"));
                }
            }
            for (place, node) in trace.nodes.iter().enumerate() {
                let waits_for: BTreeSet<u64> = node.waits_for.iter().copied().collect();
                for earlier in waits_for {
                    let Some(&before) = places.get(&earlier) else {
                        return Err(self.error(
                            rank,
                            node,
                            format!("it waits for node {earlier}, which is not there"),
                        ));
                    };
                    self.builder.after(self.begins[rank][place], self.ends[rank][before]);
                }
            }
        }
        Ok(())
    }
}

fn text_of(number: Option<u64>) -> String {
    number.map_or("not given".to_owned(), |number| number.to_string())
}
