//! [`DatagramQueues`] finds out whose datagram a thread reads: the queue of a UDP socket is first in, first out.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::event::{Flow, ThreadId};

/// The queues of the server's UDP sockets.
#[derive(Debug, Default)]
pub(crate) struct DatagramQueues {
    waiting: HashMap<u64, VecDeque<Flow>>,
    /// The socket and the client of the last datagram that each thread read.
    read: HashMap<ThreadId, (u64, Flow)>,
}

impl DatagramQueues {
    /// Notes a datagram in the socket's queue. A datagram that is never read, since the socket was closed, is
    /// forgotten.
    pub(crate) fn on_ready(&mut self, socket: u64, flow: Flow) {
        let queue = self.waiting.entry(socket).or_default();
        if queue.len() == QUEUE_MAX {
            queue.pop_front();
        }
        queue.push_back(flow);
    }

    /// Returns the client of the datagram that is read; `None` if its arrival was not seen. A datagram whose arrival
    /// was missed shifts the others only until the queue is next empty.
    pub(crate) fn on_read(&mut self, socket: u64, thread: ThreadId) -> Option<Flow> {
        let flow = self.waiting.get_mut(&socket)?.pop_front()?;
        self.read.insert(thread, (socket, flow));
        Some(flow)
    }

    /// Checks the client to which a thread replies. If it is not the one whose datagram the thread read last, but one
    /// that waits in the same queue, the queue's order is lost: forgets the queue, and returns the affected clients.
    pub(crate) fn reply(&mut self, thread: ThreadId, flow: Flow) -> Option<Vec<Flow>> {
        let (socket, read) = *self.read.get(&thread)?;
        if read == flow {
            return None;
        }
        let queue = self.waiting.get_mut(&socket).filter(|queue| queue.contains(&flow))?;
        Some(queue.drain(..).chain([read]).collect())
    }
}

/// Limit of the datagrams of a queue that are followed; about as many as a socket's buffer holds.
const QUEUE_MAX: usize = 4_096;
