//! [`JobGraph`]: the operations of all ranks of a job, and which of them wait for others of their rank.
//!
//! ```text
//! GraphBuilder: send(rank, to, bytes), receive(rank, from), compute(rank, time), after(operation, earlier)
//!      └── finish(): dependents sorted by the operation that they wait for; circles are refused ──> JobGraph
//! ```

use std::fmt;

use plimsoll_text::counted;
use plimsoll_units::Span;

use super::counterparts;

/// Operations of the ranks of a job. They are numbered over all ranks, in the order in which they were added.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobGraph {
    operations: Vec<Operation>,
    /// The number of operations that each waits for.
    waits: Vec<u32>,
    /// The dependents of operation `n` are those from `first[n]` to `first[n + 1]`.
    first: Vec<u32>,
    dependents: Vec<Dependent>,
    ranks: u32,
    groups: Vec<String>,
}

/// An operation of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// The rank that carries it out.
    pub rank: u32,
    /// The work that it does.
    pub action: OperationAction,
    /// The stream of the rank, on which one operation at a time takes processor time (`cpu` in GOAL).
    pub stream: u8,
    /// The NIC that sends or receives it.
    pub nic: u8,
    /// The number of the communication group that it belongs to, for reports; 0 without one.
    pub group: u8,
}

/// The work of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperationAction {
    /// The rank computes for a time.
    Compute(Span),
    /// It sends a message to another rank.
    Send {
        /// The rank that receives it.
        to: u32,
        /// The payload: at least 1 B.
        bytes: u64,
        /// The number that the receive has as well.
        tag: u32,
    },
    /// It waits for a message to arrive.
    Receive {
        /// The sending rank; `None` takes one of any.
        from: Option<u32>,
        /// The payload that is expected.
        bytes: u64,
        /// The number that the send has as well; `None` takes any.
        tag: Option<u32>,
    },
}

/// An operation that waits for another's beginning or end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Dependent {
    pub(super) operation: u32,
    /// It waits for the beginning of the other (`irequires`), not for its end.
    pub(super) on_begin: bool,
}

/// An operation that was added to a [`GraphBuilder`].
pub type OperationNumber = u32;

/// The reasons why operations are no job.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadGraph {
    /// Operations wait for each other.
    #[error("operation {operation} of rank {rank} waits for itself, over others")]
    Circle {
        /// The rank of one of them.
        rank: u32,
        /// The place of one of them among those of its rank, from 0 on.
        operation: u32,
    },
    /// The computations of a rank take longer than any run.
    #[error("rank {rank} computes for more than 10^6 s")]
    Long {
        #[allow(missing_docs)]
        rank: u32,
    },
    /// A message is larger than any run sends.
    #[error("rank {rank} sends {bytes} bytes at once, where at most 10^12 fit")]
    Large {
        /// The rank that sends it.
        rank: u32,
        #[allow(missing_docs)]
        bytes: u64,
    },
    /// Sends or receives are without a counterpart of the same ranks and tag.
    #[error(
        "{} without a counterpart, for which the job would wait for ever; the first is `{action}` of rank {rank}",
        counterparts(*sends, *receives)
    )]
    WithoutCounterpart {
        /// The number of sends without a receive.
        sends: u64,
        /// The number of receives without a send.
        receives: u64,
        /// The first operation among them.
        operation: OperationNumber,
        #[allow(missing_docs)]
        rank: u32,
        #[allow(missing_docs)]
        action: OperationAction,
    },
    /// A rank that takes messages of any sender has more or fewer receives than messages.
    #[error("rank {rank} is sent {sent} messages and receives {received}")]
    Unequal {
        #[allow(missing_docs)]
        rank: u32,
        /// The number of messages that others send to it.
        sent: u64,
        /// The number of its receives.
        received: u64,
    },
}

/// Collects the operations of a job.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    ranks: u32,
    operations: Vec<Operation>,
    /// Pairs: an operation, and one that waits for it.
    edges: Vec<(u32, Dependent)>,
    groups: Vec<String>,
    stream: u8,
    nic: u8,
    group: u8,
}

impl GraphBuilder {
    /// Begins a job of some ranks.
    pub fn new(ranks: u32) -> GraphBuilder {
        GraphBuilder { ranks, groups: vec![String::new()], ..GraphBuilder::default() }
    }

    /// Puts the operations that follow on a stream and a NIC.
    pub fn on(&mut self, stream: u8, nic: u8) -> &mut GraphBuilder {
        (self.stream, self.nic) = (stream, nic);
        self
    }

    /// Puts the operations that follow into the group of a name, of which a job has at most 255.
    pub fn in_group(&mut self, name: &str) -> &mut GraphBuilder {
        let known = self.groups.iter().position(|group| group == name);
        let number = known.unwrap_or_else(|| {
            self.groups.push(name.to_owned());
            self.groups.len() - 1
        });
        self.group = u8::try_from(number).unwrap_or(u8::MAX);
        self
    }

    /// Adds a computation of `rank`.
    pub fn compute(&mut self, rank: u32, time: Span) -> OperationNumber {
        self.add(rank, OperationAction::Compute(time))
    }

    /// Adds a message of `bytes` from `rank` to another.
    pub fn send(&mut self, rank: u32, to: u32, bytes: u64, tag: u32) -> OperationNumber {
        self.add(rank, OperationAction::Send { to, bytes: bytes.max(1), tag })
    }

    /// Adds the receive of a message of `bytes` from another rank.
    pub fn receive(&mut self, rank: u32, from: u32, bytes: u64, tag: u32) -> OperationNumber {
        self.add(rank, OperationAction::Receive { from: Some(from), bytes: bytes.max(1), tag: Some(tag) })
    }

    /// Adds an operation of `rank`.
    pub fn add(&mut self, rank: u32, action: OperationAction) -> OperationNumber {
        let GraphBuilder { stream, nic, group, .. } = *self;
        self.operations.push(Operation { rank, action, stream, nic, group });
        self.operations.len() as u32 - 1
    }

    /// Has `operation` wait for the end of an `earlier` one of the same rank.
    pub fn after(&mut self, operation: OperationNumber, earlier: OperationNumber) {
        self.edges.push((earlier, Dependent { operation, on_begin: false }));
    }

    /// Has `operation` wait for the end of each of some others of the same rank.
    pub fn after_all(&mut self, operation: OperationNumber, earlier: &[OperationNumber]) {
        earlier.iter().for_each(|&earlier| self.after(operation, earlier));
    }

    /// Has `operation` wait for the beginning of an `earlier` one of the same rank.
    pub fn after_begin(&mut self, operation: OperationNumber, earlier: OperationNumber) {
        self.edges.push((earlier, Dependent { operation, on_begin: true }));
    }

    /// Returns the number of operations so far.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns whether there are no operations yet.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns the job with its operations.
    ///
    /// # Errors
    /// Fails if operations wait for each other, or a rank has not as many receives as it is sent messages.
    pub fn finish(self) -> Result<JobGraph, BadGraph> {
        let GraphBuilder { ranks, mut operations, mut edges, groups, .. } = self;
        operations.shrink_to_fit();
        edges
            .sort_unstable_by_key(|(earlier, dependent)| (*earlier, dependent.operation, dependent.on_begin));
        let mut waits = vec![0; operations.len()];
        let mut first = Vec::with_capacity(operations.len() + 1);
        first.push(0);
        for (place, (earlier, dependent)) in (0..).zip(&edges) {
            while first.len() <= *earlier as usize {
                first.push(place);
            }
            waits[dependent.operation as usize] += 1;
        }
        first.resize(operations.len() + 1, edges.len() as u32);
        let dependents = edges.into_iter().map(|(_, dependent)| dependent).collect();
        let graph = JobGraph { operations, waits, first, dependents, ranks, groups };
        graph.check_matches()?;
        graph.check_circles()?;
        Ok(graph)
    }
}

impl JobGraph {
    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns all operations.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Returns the names of the groups, of which the first is that of operations without a group.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Returns the number of operations for which each operation waits.
    pub(super) fn waits(&self) -> &[u32] {
        &self.waits
    }

    /// Returns the operations that wait for `operation`.
    pub(super) fn dependents(&self, operation: u32) -> &[Dependent] {
        let place = operation as usize;
        &self.dependents[self.first[place] as usize..self.first[place + 1] as usize]
    }

    /// Returns each operation with one that it waits for.
    pub fn edges(&self) -> impl Iterator<Item = (OperationNumber, OperationNumber, bool)> {
        let of =
            |operation: u32| self.dependents(operation).iter().map(move |dependent| (operation, dependent));
        let pairs = (0..self.operations.len() as u32).flat_map(of);
        pairs.map(|(earlier, dependent)| (dependent.operation, earlier, dependent.on_begin))
    }

    /// Returns the payload of all messages.
    pub fn bytes(&self) -> u64 {
        let sent = self.operations.iter().map(|operation| match operation.action {
            OperationAction::Send { bytes, .. } => bytes,
            _ => 0,
        });
        sent.sum()
    }

    /// Returns the number of messages.
    pub fn messages(&self) -> u64 {
        let is_send = |operation: &&Operation| matches!(operation.action, OperationAction::Send { .. });
        self.operations.iter().filter(is_send).count() as u64
    }

    /// Returns numbers that differ whenever two jobs do, but for the names of groups.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        let of = |operation: &Operation| {
            let any = |number: Option<u32>| number.map_or(u64::MAX, u64::from);
            let action = match operation.action {
                OperationAction::Compute(time) => [0, time.as_ps(), 0, 0],
                OperationAction::Send { to, bytes, tag } => [1, bytes, to.into(), tag.into()],
                OperationAction::Receive { from, bytes, tag } => [2, bytes, any(from), any(tag)],
            };
            let Operation { rank, stream, nic, group, .. } = *operation;
            let place =
                u64::from(rank) << 24 | u64::from(stream) << 16 | u64::from(nic) << 8 | u64::from(group);
            action.into_iter().chain([place])
        };
        let waits = self.edges().flat_map(|(operation, earlier, on_begin)| {
            [u64::from(operation), u64::from(earlier) << 1 | u64::from(on_begin)]
        });
        self.operations.iter().flat_map(of).chain(waits)
    }

    /// Returns the number of pairs of ranks of which one sends to the other.
    pub fn pairs(&self) -> u64 {
        let to = |operation: &Operation| match operation.action {
            OperationAction::Send { to, .. } => Some((operation.rank, to)),
            _ => None,
        };
        let mut pairs: Vec<(u32, u32)> = self.operations.iter().filter_map(to).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs.len() as u64
    }

    fn check_matches(&self) -> Result<(), BadGraph> {
        let mut counts = vec![(0_u64, 0_u64); self.ranks as usize];
        let mut computed = vec![0_u64; self.ranks as usize];
        for &Operation { rank, action, .. } in &self.operations {
            match action {
                OperationAction::Send { bytes, .. } if bytes > BYTES_MAX => {
                    return Err(BadGraph::Large { rank, bytes });
                }
                OperationAction::Send { to, .. } => counts[to as usize].0 += 1,
                OperationAction::Receive { .. } => counts[rank as usize].1 += 1,
                OperationAction::Compute(time) => {
                    let computed = &mut computed[rank as usize];
                    *computed = computed.saturating_add(time.as_ps());
                    if *computed > PS_MAX {
                        return Err(BadGraph::Long { rank });
                    }
                }
            }
        }
        counterparts::check(&self.operations, self.ranks)?;
        match (0..).zip(counts).find(|(_, (sent, received))| sent != received) {
            Some((rank, (sent, received))) => Err(BadGraph::Unequal { rank, sent, received }),
            None => Ok(()),
        }
    }

    fn check_circles(&self) -> Result<(), BadGraph> {
        let mut waits = self.waits.clone();
        let mut ready: Vec<u32> = (0..waits.len() as u32).filter(|&at| waits[at as usize] == 0).collect();
        let mut left = waits.len();
        while let Some(operation) = ready.pop() {
            left -= 1;
            for dependent in self.dependents(operation) {
                let waits = &mut waits[dependent.operation as usize];
                *waits -= 1;
                if *waits == 0 {
                    ready.push(dependent.operation);
                }
            }
        }
        if left == 0 {
            return Ok(());
        }
        let circle = waits.iter().position(|waits| *waits > 0).unwrap_or_default();
        let rank = self.operations[circle].rank;
        let before = self.operations[..circle].iter().filter(|operation| operation.rank == rank);
        Err(BadGraph::Circle { rank, operation: before.count() as u32 })
    }
}

/// The work of an operation in the words of GOAL; a computation's is rounded to whole nanoseconds.
impl fmt::Display for OperationAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let any = |number: Option<u32>| number.map_or("-1".to_owned(), |number| number.to_string());
        match *self {
            OperationAction::Compute(time) => write!(f, "calc {}", (time.as_ps() + 500) / 1_000),
            OperationAction::Send { to, bytes, tag } => write!(f, "send {bytes}b to {to} tag {tag}"),
            OperationAction::Receive { from, bytes, tag } => {
                write!(f, "recv {bytes}b from {} tag {}", any(from), any(tag))
            }
        }
    }
}

fn counterparts(sends: u64, receives: u64) -> String {
    let [sends, receives] = [(sends, "send"), (receives, "receive")]
        .map(|(count, name)| (count > 0).then(|| counted(count, name)));
    [sends, receives].into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

/// Returns a time of a file; one that is longer than any run is the longest there is.
pub(super) fn nanoseconds(ns: u64) -> Span {
    Span::from_ps(ns.saturating_mul(1_000))
}

/// The longest sum of a rank's computations, and the largest message.
const PS_MAX: u64 = 1_000_000_000_000_000_000;
const BYTES_MAX: u64 = 1_000_000_000_000;

impl fmt::Display for JobGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations = self.operations.len() as u64;
        let parts = [
            counted(self.ranks.into(), "rank"),
            counted(operations, "operation"),
            counted(self.messages(), "message"),
        ];
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_know_who_waits_for_them() {
        let mut builder = GraphBuilder::new(2);
        let first = builder.compute(0, Span::from_us(1));
        let send = builder.send(0, 1, 10, 0);
        let second = builder.compute(0, Span::from_us(2));
        builder.after(send, first);
        builder.after_begin(second, first);
        builder.after(second, send);
        builder.receive(1, 0, 10, 0);
        let graph = builder.finish().unwrap();
        assert_eq!(graph.waits(), [0, 1, 2, 0]);
        let edges: Vec<_> = graph.edges().collect();
        assert_eq!(edges, [(send, first, false), (second, first, true), (second, send, false)]);
        assert_eq!((graph.bytes(), graph.to_string().as_str()), (10, "2 ranks, 4 operations, 1 message"));
    }

    #[test]
    fn circles_and_messages_without_a_receive_are_refused() {
        let mut builder = GraphBuilder::new(2);
        builder.compute(1, Span::ZERO);
        let [a, b] = [0, 1].map(|_| builder.compute(1, Span::ZERO));
        builder.after(a, b);
        builder.after(b, a);
        assert_eq!(builder.finish(), Err(BadGraph::Circle { rank: 1, operation: 1 }));
        let mut builder = GraphBuilder::new(2);
        builder.send(0, 1, 10, 0);
        let bad = builder.finish().unwrap_err().to_string();
        assert_eq!(
            bad,
            "1 send without a counterpart, for which the job would wait for ever; the first is `send 10b to 1 tag 0` \
             of rank 0"
        );
        let mut builder = GraphBuilder::new(2);
        builder.send(0, 1, 10, 0);
        for _ in 0..2 {
            builder.add(1, OperationAction::Receive { from: None, bytes: 10, tag: Some(0) });
        }
        assert_eq!(builder.finish(), Err(BadGraph::Unequal { rank: 1, sent: 1, received: 2 }));
    }
}
