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
use std::io::{self, Read};

use plimsoll_units::Span;

use super::graph::{BadGraph, GraphBuilder, JobGraph, OperationNumber, nanoseconds};
use super::schedule::{Algorithm, Collective, CollectiveOperation, LastOperations};

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
    },
    /// The operations are no job.
    #[error(transparent)]
    Graph(#[from] BadGraph),
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

impl ChakraTrace {
    /// Reads the trace of a rank, a record at a time.
    ///
    /// # Errors
    /// Names the first byte that does not fit.
    pub fn read(mut input: impl Read) -> Result<ChakraTrace, BadChakra> {
        let mut trace = ChakraTrace::default();
        let (mut at, mut record, mut is_first) = (0, Vec::new(), true);
        while let Some((length, bytes)) = read_length(&mut input, at)? {
            let start = at + bytes;
            let problem = if at == 0 && length == 0x1f {
                "it may be compressed: `gunzip` it first"
            } else {
                "a record"
            };
            if length > RECORD_MAX {
                let problem = format!("{problem} of {length} bytes, where at most {RECORD_MAX} fit");
                return Err(BadChakra::Format { at, problem });
            }
            record.resize(length as usize, 0);
            input.read_exact(&mut record).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => BadChakra::Format {
                    at,
                    problem: format!("{problem} of {length} bytes, and the file ends before"),
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
    Ok((reader.builder.finish()?, notes))
}

/// Streams of a rank: computation, messages, and collective operations do not wait for each other.
const MESSAGES: u8 = 1;
const COLLECTIVES: u8 = 2;

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
        BadChakra::Node { rank, id: node.id, name: node.name.clone(), problem: problem.into() }
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
            let ranks = match self.groups.get(&group) {
                Some(ranks) => ranks,
                None if group.is_empty() || self.groups.is_empty() => &all,
                None => {
                    let problem = format!("group \"{group}\" is not among those of the file of groups");
                    return Err(self.error(first_rank as usize, first, problem));
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
                    return Err(self.error(rank as usize, node, problem));
                }
                place_of.insert(rank, place);
            }
            if let Some(missing) = ranks.iter().find(|rank| !place_of.contains_key(rank)) {
                let problem = format!("rank {missing} of group \"{group}\" has no operation {turn} of it");
                return Err(self.error(first_rank as usize, first, problem));
            }
            if let Some((&rank, &place)) = place_of.iter().find(|(rank, _)| !ranks.contains(rank)) {
                let node = &self.traces[rank as usize].nodes[place];
                return Err(self.error(
                    rank as usize,
                    node,
                    format!("rank {rank} is not in group \"{group}\""),
                ));
            }
            let Some((operation, algorithm, bytes)) = self.operation(first, ranks.len() as u64) else {
                let problem = format!("comm_type {} is not carried out", text_of(first.comm_type));
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

/// A value of a protobuf field.
enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Four or eight bytes, which nothing here needs.
    Fixed,
}

/// The fields of a protobuf message that begins at byte `start` of the file.
struct WireFields<'a> {
    bytes: &'a [u8],
    start: u64,
    at: usize,
}

impl<'a> Iterator for WireFields<'a> {
    type Item = Result<(u64, WireValue<'a>), BadChakra>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        if rest.is_empty() {
            return None;
        }
        let field = field(rest);
        let place = self.start + self.at as u64;
        self.at = match &field {
            Some((_, _, after)) => self.bytes.len() - after.len(),
            None => self.bytes.len(),
        };
        let bad = || BadChakra::Format { at: place, problem: "it is no protobuf field".to_owned() };
        Some(field.map(|(number, value, _)| (number, value)).ok_or_else(bad))
    }
}

/// Returns the number and the value of the first field, and what follows it.
fn field(bytes: &[u8]) -> Option<(u64, WireValue<'_>, &[u8])> {
    let (key, rest) = number_of(bytes)?;
    let (value, rest) = match key & 7 {
        0 => number_of(rest).map(|(number, rest)| (WireValue::Number(number), rest))?,
        1 => (WireValue::Fixed, rest.get(8..)?),
        2 => {
            let (length, rest) = number_of(rest)?;
            let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            (WireValue::Bytes(value), rest)
        }
        5 => (WireValue::Fixed, rest.get(4..)?),
        _ => return None,
    };
    Some((key >> 3, value, rest))
}

/// Returns the number at the beginning, seven bits a byte with the lowest first, and what follows it.
fn number_of(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (place, byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[place + 1..]));
        }
    }
    None
}

/// Reads a length and the bytes that it takes; `None` at the end of the file.
fn read_length(input: &mut impl Read, at: u64) -> Result<Option<(u64, u64)>, BadChakra> {
    let mut bytes = Vec::new();
    loop {
        let mut byte = [0];
        if input.read(&mut byte)? == 0 {
            return match bytes.is_empty() {
                true => Ok(None),
                false => Err(BadChakra::Format { at, problem: "the file ends within a length".to_owned() }),
            };
        }
        bytes.push(byte[0]);
        if let Some((length, _)) = number_of(&bytes) {
            return Ok(Some((length, bytes.len() as u64)));
        }
        if bytes.len() == 10 {
            return Err(BadChakra::Format { at, problem: "a length of more than ten bytes".to_owned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of protobuf.
    fn number(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    fn bytes_field(field: u64, value: &[u8]) -> Vec<u8> {
        [number(field << 3 | 2), number(value.len() as u64), value.to_vec()].concat()
    }

    fn number_field(field: u64, value: u64) -> Vec<u8> {
        [number(field << 3), number(value)].concat()
    }

    fn attribute(name: &str, field: u64, value: u64) -> Vec<u8> {
        bytes_field(10, &[bytes_field(1, name.as_bytes()), number_field(field, value)].concat())
    }

    fn record(fields: &[Vec<u8>]) -> Vec<u8> {
        let message = fields.concat();
        [number(message.len() as u64), message].concat()
    }

    /// The trace of a rank that computes, sums gradients with others and updates.
    fn trace(gradient: u64) -> Vec<u8> {
        [
            record(&[bytes_field(1, b"0.0.4")]),
            record(&[number_field(1, 1), bytes_field(2, b"fwd"), number_field(3, 4), number_field(7, 120)]),
            record(&[
                number_field(1, 2),
                bytes_field(2, b"grad"),
                number_field(3, 7),
                bytes_field(5, &number(1)),
                attribute("comm_type", 9, 0),
                attribute("comm_size", 13, gradient),
                attribute("is_cpu_op", 27, 0),
                attribute("colour", 9, 7),
            ]),
            record(&[
                number_field(1, 3),
                bytes_field(2, b"opt"),
                number_field(3, 4),
                number_field(5, 2),
                number_field(7, 30),
            ]),
        ]
        .concat()
    }

    const OPTIONS: ChakraOptions = ChakraOptions { all_reduce: Algorithm::Ring, chunks: 1 };

    #[test]
    fn traces_of_all_ranks_are_a_job() {
        let traces = [1_048_576; 2].map(|gradient| ChakraTrace::read(trace(gradient).as_slice()).unwrap());
        let (graph, notes) = chakra_job(&traces, &BTreeMap::new(), OPTIONS).unwrap();
        assert_eq!((graph.ranks(), graph.messages(), graph.bytes()), (2, 4, 2 * 1_048_576));
        assert_eq!(notes, ["left out, since no operation needs them: attributes colour (2)"]);
        let of_name: Vec<_> = graph.groups().iter().map(String::as_str).collect();
        assert_eq!(of_name, ["", "all"]);
        let groups = BTreeMap::from([("0".to_owned(), vec![0, 1])]);
        assert_eq!(chakra_job(&traces, &groups, OPTIONS).unwrap().0.messages(), 4);
    }

    #[test]
    fn errors_name_the_node_or_the_byte() {
        let read = |bytes: &[u8]| ChakraTrace::read(bytes);
        let whole = trace(1_000);
        let cut = read(&whole[..whole.len() - 3]).unwrap_err().to_string();
        assert!(
            cut.starts_with("byte 101: a record of 13 bytes") || cut.contains("the file ends before"),
            "{cut}"
        );
        let traces = [trace(1_000), trace(2_000)].map(|bytes| read(&bytes).unwrap());
        let error = chakra_job(&traces, &BTreeMap::new(), OPTIONS).unwrap_err().to_string();
        assert_eq!(
            error,
            "node 2 (\"grad\") of rank 1: operation 0 of group \"\" is of type 0 and 2000 bytes, and of type 0 and \
             1000 bytes at rank 0"
        );
        let alone = chakra_job(&traces[..1], &BTreeMap::from([(String::new(), vec![0, 1])]), OPTIONS);
        assert!(alone.unwrap_err().to_string().contains("rank 1 of group \"\" has no operation 0"));
        let far =
            [record(&[]), record(&[number_field(1, 1), number_field(3, 5), attribute("comm_dst", 9, 7)])];
        let traces = [read(&far.concat()).unwrap(), ChakraTrace::default()];
        let error = chakra_job(&traces, &BTreeMap::new(), OPTIONS).unwrap_err().to_string();
        assert_eq!(error, "node 1 (\"\") of rank 0: comm_dst is 7, and the job has ranks 0 to 1");
        assert!(
            read(b"\x05\x0f\x0f\x0f\x0f\x0f\x02\x0f\x0f")
                .unwrap_err()
                .to_string()
                .contains("no protobuf field")
        );
    }
}
