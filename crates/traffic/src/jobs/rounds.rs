//! [`Chains`]: operations of a job that repeat from round to round.
//!
//! ```text
//! operation n ──stride──> the same of the next round ──stride──> ... ──> that of the last round
//! ```
//!
//! An operation continues in another if both are of one rank, do the same work with the same rank, and wait for
//! operations and are waited for by operations that lie one stride apart. So a job whose state is moved along its
//! chains by a number of rounds goes on as it would have from the state before.

use std::collections::{BTreeMap, HashMap};

use super::graph::{Dependent, JobGraph, Operation, OperationAction};

/// The chains of a job: those of a ring, of the micro-batches of a pipeline, of a file's rounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Chains {
    /// By operation: the distance to the one in which it continues; 0 if it continues in none.
    strides: Vec<u32>,
    /// By operation: whether another continues in it.
    is_continued: Vec<bool>,
    /// The distance of the tags of messages of two rounds.
    tag_stride: u32,
}

impl Chains {
    /// Finds the chains of a job; `None` if no operation continues in another.
    pub(super) fn of(graph: &JobGraph) -> Option<Chains> {
        let operations = graph.operations().len();
        let strides = likely_strides(graph);
        let tag_stride = common_tag_stride(graph, *strides.first()?);
        let mut chains =
            Chains { strides: vec![0; operations], is_continued: vec![false; operations], tag_stride };
        let earlier = earlier_of_each(graph);
        for stride in strides {
            for operation in 0..(operations as u32).saturating_sub(stride) {
                let next = operation + stride;
                let is_free = chains.strides[operation as usize] == 0 && !chains.is_continued[next as usize];
                if is_free && continues(graph, &earlier, operation, stride, tag_stride) {
                    chains.strides[operation as usize] = stride;
                    chains.is_continued[next as usize] = true;
                }
            }
        }
        chains.is_continued.contains(&true).then_some(chains)
    }

    /// Returns the first operation of each chain.
    pub(super) fn heads(&self) -> impl Iterator<Item = u32> + '_ {
        let is_head = |operation: &u32| {
            let place = *operation as usize;
            self.strides[place] > 0 && !self.is_continued[place]
        };
        (0..self.strides.len() as u32).filter(is_head)
    }

    /// Returns the operations of a chain from one of them on.
    pub(super) fn chain(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(from), |&operation| self.next(operation))
    }

    /// Returns the operation that is so many rounds further on in its chain.
    pub(super) fn further(&self, operation: u32, rounds: u32) -> Option<u32> {
        (0..rounds).try_fold(operation, |operation, _| self.next(operation))
    }

    /// Returns whether an operation belongs to a chain.
    pub(super) fn has(&self, operation: u32) -> bool {
        self.is_continued[operation as usize] || self.next(operation).is_some()
    }

    fn next(&self, operation: u32) -> Option<u32> {
        let stride = self.strides[operation as usize];
        (stride > 0).then_some(operation + stride)
    }
}

/// Returns whether an operation continues in the one a stride further on.
fn continues(graph: &JobGraph, earlier: &Earlier, operation: u32, stride: u32, tag_stride: u32) -> bool {
    let next = operation + stride;
    let [from, to] = [operation, next].map(|number| &graph.operations()[number as usize]);
    let [dependents, of_next] = [operation, next].map(|number| graph.dependents(number));
    let is_dependent_moved = |(from, to): (&Dependent, &Dependent)| {
        from.operation + stride == to.operation && from.on_begin == to.on_begin
    };
    is_moved(from, to, tag_stride)
        && are_moved(earlier.of(operation), earlier.of(next), stride)
        && dependents.len() == of_next.len()
        && dependents.iter().zip(of_next).all(is_dependent_moved)
}

/// The operations for which each operation waits.
struct Earlier {
    first: Vec<u32>,
    all: Vec<(u32, bool)>,
}

impl Earlier {
    fn of(&self, operation: u32) -> &[(u32, bool)] {
        let place = operation as usize;
        &self.all[self.first[place] as usize..self.first[place + 1] as usize]
    }
}

fn earlier_of_each(graph: &JobGraph) -> Earlier {
    let mut first = Vec::with_capacity(graph.operations().len() + 1);
    first.push(0);
    for waits in graph.waits() {
        first.push(first.last().copied().unwrap_or(0) + waits);
    }
    let mut free = first.clone();
    let mut all = vec![(0, false); first.last().copied().unwrap_or(0) as usize];
    for (operation, earlier, on_begin) in graph.edges() {
        let place = &mut free[operation as usize];
        all[*place as usize] = (earlier, on_begin);
        *place += 1;
    }
    Earlier { first, all }
}

fn are_moved(from: &[(u32, bool)], to: &[(u32, bool)], stride: u32) -> bool {
    let moved = |((from, on_begin), to): (&(u32, bool), &(u32, bool))| (from + stride, *on_begin) == *to;
    from.len() == to.len() && from.iter().zip(to).all(moved)
}

/// Returns whether `to` is `from` in the next round.
fn is_moved(from: &Operation, to: &Operation, tag_stride: u32) -> bool {
    use OperationAction::{Receive, Send};
    let moved = |tag: u32| tag.wrapping_add(tag_stride);
    let action = match from.action {
        Send { to, bytes, tag } => Send { to, bytes, tag: moved(tag) },
        Receive { from, bytes, tag } => Receive { from, bytes, tag: tag.map(moved) },
        compute => compute,
    };
    Operation { action, ..*from } == *to
}

/// Returns the distances at which the same work of the same rank comes again, the most common ones first.
fn likely_strides(graph: &JobGraph) -> Vec<u32> {
    let mut last: HashMap<[u64; 3], u32> = HashMap::new();
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for (number, operation) in (0..).zip(graph.operations()) {
        if let Some(before) = last.insert(work(operation), number) {
            *counts.entry(number - before).or_insert(0) += 1;
        }
    }
    let mut counts: Vec<(u32, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(stride, count)| (std::cmp::Reverse(*count), *stride));
    counts.into_iter().take(STRIDES_TRIED).map(|(stride, _)| stride).collect()
}

/// Returns numbers that are the same for the same work, but for its tag.
fn work(operation: &Operation) -> [u64; 3] {
    let Operation { rank, action, stream, nic, group } = *operation;
    let (kind, peer, amount) = match action {
        OperationAction::Compute(time) => (0, 0, time.as_ps()),
        OperationAction::Send { to, bytes, .. } => (1, to, bytes),
        OperationAction::Receive { from, bytes, .. } => (2, from.unwrap_or(u32::MAX), bytes),
    };
    let place = u64::from(stream) << 24 | u64::from(nic) << 16 | u64::from(group) << 8 | kind;
    [u64::from(rank) << 32 | u64::from(peer), place, amount]
}

/// Returns the most common distance of the tags of messages a stride apart.
fn common_tag_stride(graph: &JobGraph, stride: u32) -> u32 {
    let tag = |operation: &Operation| match operation.action {
        OperationAction::Send { tag, .. } => Some(tag),
        _ => None,
    };
    let operations = graph.operations();
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for (from, to) in operations.iter().zip(operations.iter().skip(stride as usize)) {
        if let (Some(from), Some(to)) = (tag(from), tag(to)) {
            *counts.entry(to.wrapping_sub(from)).or_insert(0) += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map_or(0, |(distance, _)| distance)
}

/// The number of strides that are tried, of which each takes a pass over all operations.
const STRIDES_TRIED: usize = 4;

#[cfg(test)]
mod tests {
    use plimsoll_units::Span;

    use super::*;
    use crate::jobs::graph::GraphBuilder;
    use crate::jobs::schedule::{Algorithm, Collective, CollectiveOperation};

    fn collective(operation: CollectiveOperation, algorithm: Algorithm, chunks: u32, sum: Span) -> JobGraph {
        let mut builder = GraphBuilder::new(8);
        let ranks: Vec<u32> = (0..8).collect();
        Collective { operation, algorithm, bytes: 8_000, chunks, per_server: 4, reduce_per_byte: sum }.add(
            &mut builder,
            &ranks,
            &vec![None; 8],
            &mut 0,
        );
        builder.finish().unwrap()
    }

    #[test]
    fn a_ring_has_a_chain_for_each_operation_of_a_round() {
        use CollectiveOperation::{AllGather, AllReduce};
        let found = |operation, chunks, sum| {
            let chains = Chains::of(&collective(operation, Algorithm::Ring, chunks, sum)).unwrap();
            let lengths: Vec<usize> = chains.heads().map(|head| chains.chain(head).count()).collect();
            let longest = lengths.iter().copied().max().unwrap();
            (chains.tag_stride, lengths.iter().filter(|length| **length == longest).count(), longest)
        };
        // Sends of all seven rounds but the first, which waits for nothing; receives end a round earlier, as nothing
        // waits for the last.
        assert_eq!(found(AllGather, 1, Span::ZERO), (1, 8, 6));
        assert_eq!(found(AllGather, 4, Span::ZERO), (1, 32, 6));
        // Both halves of an all-reduce without sums are one.
        assert_eq!(found(AllReduce, 1, Span::ZERO), (1, 8, 13));
        // With sums, a rank has three operations a round in the first half and two in the second.
        let (tag_stride, _, rounds) = found(AllReduce, 1, Span::from_ns(1));
        assert!(tag_stride == 1 && rounds >= 5, "{rounds}");
    }

    #[test]
    fn what_is_further_in_a_chain_is_the_same_work_of_a_later_round() {
        let graph = collective(CollectiveOperation::AllGather, Algorithm::Ring, 1, Span::ZERO);
        let chains = Chains::of(&graph).unwrap();
        let head = chains.heads().next().unwrap();
        let third = chains.further(head, 3).unwrap();
        let [first, third] = [head, third].map(|number| graph.operations()[number as usize]);
        assert!(is_moved(&first, &third, 3), "{first:?} {third:?}");
        assert_eq!((chains.further(head, 6), chains.has(0), chains.has(head)), (None, false, true));
    }

    #[test]
    fn rounds_with_other_partners_do_not_repeat() {
        for (operation, algorithm) in [
            (CollectiveOperation::AllToAll, Algorithm::Shift),
            (CollectiveOperation::AllReduce, Algorithm::RecursiveDoubling),
            (CollectiveOperation::Barrier, Algorithm::Dissemination),
        ] {
            assert_eq!(Chains::of(&collective(operation, algorithm, 1, Span::ZERO)), None, "{algorithm:?}");
        }
    }
}
