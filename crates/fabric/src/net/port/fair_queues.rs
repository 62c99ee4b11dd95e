//! [`FairQueues`]: a queue for each flow.

use std::collections::VecDeque;

use plimsoll_mechanisms::pfc::PauseState;

use super::waiting::Waiting;
use crate::net::Slot;

/// Deficit round robin over the flows that have packets here.
#[derive(Clone, Debug, Default)]
pub struct FairQueues {
    quantum: u64,
    /// The flows in the order of their turns.
    turns: VecDeque<FlowQueue>,
    /// The memory of the last flow without packets, for the next one that has some.
    spare: VecDeque<Waiting>,
}

/// The waiting packets of a flow.
#[derive(Clone, Debug)]
struct FlowQueue {
    /// The connection and its direction.
    flow: u64,
    deficit: u64,
    packets: VecDeque<Waiting>,
}

impl FairQueues {
    /// Makes queues of which none has a packet; a flow may send `quantum` bytes in its turn.
    pub(super) fn new(quantum: u64) -> FairQueues {
        FairQueues { quantum, ..FairQueues::default() }
    }

    /// Returns the packet that is served next.
    pub(super) fn first(&mut self) -> Option<&Waiting> {
        self.turn();
        self.turns.front().and_then(|flow| flow.packets.front())
    }

    pub(super) fn push(&mut self, waiting: Waiting, flow: u64) {
        // A NIC has few flows with packets waiting at a time; a scan beats a table.
        if let Some(queue) = self.turns.iter_mut().find(|queue| queue.flow == flow) {
            queue.packets.push_back(waiting);
        } else {
            let mut packets = std::mem::take(&mut self.spare);
            packets.push_back(waiting);
            self.turns.push_back(FlowQueue { flow, deficit: self.quantum, packets });
        }
    }

    /// Moves the flow to be served next to the front.
    fn turn(&mut self) {
        while let Some(first) = self.turns.front_mut()
            && let Some(head) = first.packets.front()
            && u64::from(head.size) > first.deficit
        {
            first.deficit += self.quantum;
            self.turns.rotate_left(1);
        }
    }

    pub(super) fn pop(&mut self, pause: PauseState) -> Option<Waiting> {
        self.turn();
        let first = self.turns.front_mut()?;
        let waiting = first.packets.pop_front_if(|waiting| pause.may(waiting.priority))?;
        first.deficit -= u64::from(waiting.size);
        if first.packets.is_empty() {
            self.spare = self.turns.pop_front().map(|flow| flow.packets).unwrap_or_default();
        }
        Some(waiting)
    }

    /// Returns the waiting packets of each flow.
    pub(super) fn lines(&self) -> impl Iterator<Item = Vec<Slot>> {
        self.turns.iter().map(|flow| flow.packets.iter().map(|waiting| waiting.slot).collect())
    }
}
