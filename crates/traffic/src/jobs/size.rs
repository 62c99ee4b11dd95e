//! [`JobSize`]: the bytes by which bandwidths of a job are counted.

use super::graph::{JobGraph, OperationAction};

/// What an iteration of a job moves, from which bandwidths follow as nccl-tests has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct JobSize {
    /// The size of a collective operation; of other jobs the payload of all messages, in bytes.
    pub(crate) bytes: u64,
    /// The bytes that a rank's link carries at least; of other jobs the most of a rank.
    pub(crate) bus_bytes: u64,
}

impl JobSize {
    /// Returns the size of a job by its messages.
    pub(crate) fn of(graph: &JobGraph) -> JobSize {
        let mut carried = vec![[0; 2]; graph.ranks() as usize];
        for operation in graph.operations() {
            if let OperationAction::Send { to, bytes, .. } = operation.action {
                carried[operation.rank as usize][0] += bytes;
                carried[to as usize][1] += bytes;
            }
        }
        JobSize { bytes: graph.bytes(), bus_bytes: carried.into_iter().flatten().max().unwrap_or_default() }
    }
}
