//! [`Output`]: the replies of a connection, in the order of its requests, some of which are not here yet.
//!
//! ```text
//! [bytes][hole 7][bytes][hole 9] tail
//!    ^ sent so far  ^ can be sent once hole 7 is filled
//! ```
//!
//! Replies of own partitions are written straight into the tail. A request that goes to another thread leaves a hole.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem;

use crate::buffers::Buffers;

/// What a connection has to send.
#[derive(Debug, Default)]
pub(crate) struct Output {
    segments: VecDeque<Segment>,
    /// The number of the first segment.
    first: u32,
    /// Bytes of the first segment (of the tail, if there is none) that are sent already.
    sent: usize,
    /// Bytes in the segments.
    bytes: usize,
    holes: u32,
    /// Bytes that the kernel is sending.
    detached: usize,
    tail: Vec<u8>,
}

#[derive(Debug)]
enum Segment {
    Bytes(Vec<u8>),
    Hole,
}

/// So much that is sent already may lie in front of the tail before what follows is moved up.
const SENT_MAX: usize = 64 * 1024;

impl Output {
    /// Where the next reply is appended.
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// Gives the tail a buffer, if it has none.
    pub(crate) fn prepare(&mut self, buffers: &mut Buffers) {
        if self.tail.capacity() == 0 {
            self.tail = buffers.take();
        }
    }

    /// Leaves a hole for a reply that comes later, and says its number.
    pub(crate) fn hole(&mut self, buffers: &mut Buffers) -> u32 {
        if !self.tail.is_empty() {
            let full = mem::replace(&mut self.tail, buffers.take());
            self.bytes += full.len();
            self.segments.push_back(Segment::Bytes(full));
        }
        let number = self.first.wrapping_add(self.segments.len() as u32);
        self.segments.push_back(Segment::Hole);
        self.holes += 1;
        number
    }

    /// Fills the hole with this number.
    pub(crate) fn fill(&mut self, number: u32, reply: Vec<u8>) {
        let segment = &mut self.segments[number.wrapping_sub(self.first) as usize];
        debug_assert!(matches!(segment, Segment::Hole), "a hole is filled once");
        self.bytes += reply.len();
        self.holes -= 1;
        *segment = Segment::Bytes(reply);
    }

    /// Holes that are not filled yet.
    pub(crate) fn holes(&self) -> u32 {
        self.holes
    }

    /// Bytes that are here and not sent.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.tail.len() - self.sent + self.detached
    }

    /// Nothing is to be sent, now or later.
    pub(crate) fn is_done(&self) -> bool {
        self.holes == 0 && self.bytes() == 0
    }

    /// All replies are here.
    pub(crate) fn is_whole(&self) -> bool {
        self.holes == 0
    }

    /// Appends everything that is here and not sent, of an output that is whole.
    pub(crate) fn copy_to(&self, whole: &mut Vec<u8>) {
        let start = whole.len() + self.sent;
        for segment in &self.segments {
            if let Segment::Bytes(bytes) = segment {
                whole.extend_from_slice(bytes);
            }
        }
        whole.extend_from_slice(&self.tail);
        whole.drain(start - self.sent..start);
    }

    /// Gives all buffers back.
    pub(crate) fn discard(&mut self, buffers: &mut Buffers) {
        for segment in self.segments.drain(..) {
            if let Segment::Bytes(bytes) = segment {
                buffers.give(bytes);
            }
        }
        buffers.give(mem::take(&mut self.tail));
        (self.bytes, self.sent) = (0, 0);
    }

    /// Everything that can be sent now, if it lies in one piece: the usual case of a thread's own partitions.
    pub(crate) fn one_piece(&self) -> Option<&[u8]> {
        self.segments.is_empty().then(|| &self.tail[self.sent..])
    }

    /// Puts what can be sent now into `slices`, as far as there is room, and says how many it filled.
    pub(crate) fn ready<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut sent = self.sent;
        let mut count = 0;
        for segment in &self.segments {
            let Segment::Bytes(bytes) = segment else { return count };
            if count == slices.len() {
                return count;
            }
            if bytes.len() > sent {
                slices[count] = IoSlice::new(&bytes[sent..]);
                count += 1;
            }
            sent = 0;
        }
        if self.tail.len() > sent && count < slices.len() {
            slices[count] = IoSlice::new(&self.tail[sent..]);
            count += 1;
        }
        count
    }

    /// Moves at most `most` pieces of what can be sent now into `pieces`, for the kernel to send while the connection
    /// goes on. Says how many bytes that is.
    pub(crate) fn detach(&mut self, pieces: &mut Vec<Vec<u8>>, most: usize) -> usize {
        debug_assert_eq!(self.sent, 0, "all is sent this way, or nothing");
        let mut detached = 0;
        while let Some(Segment::Bytes(_)) = self.segments.front()
            && pieces.len() < most
        {
            if let Some(Segment::Bytes(bytes)) = self.segments.pop_front() {
                self.bytes -= bytes.len();
                detached += bytes.len();
                pieces.push(bytes);
            }
            self.first = self.first.wrapping_add(1);
        }
        if self.segments.is_empty() && !self.tail.is_empty() && pieces.len() < most {
            detached += self.tail.len();
            pieces.push(mem::take(&mut self.tail));
        }
        self.detached += detached;
        detached
    }

    /// `sent` bytes that were detached are sent.
    pub(crate) fn on_sent(&mut self, sent: usize) {
        self.detached -= sent;
    }

    /// `sent` more bytes are sent.
    pub(crate) fn advance(&mut self, sent: usize, buffers: &mut Buffers) {
        self.sent += sent;
        while let Some(Segment::Bytes(bytes)) = self.segments.front() {
            let length = bytes.len();
            if self.sent < length {
                return;
            }
            self.sent -= length;
            self.bytes -= length;
            if let Some(Segment::Bytes(bytes)) = self.segments.pop_front() {
                buffers.give(bytes);
            }
            self.first = self.first.wrapping_add(1);
        }
        if !self.segments.is_empty() {
            return;
        }
        if self.sent == self.tail.len() {
            self.sent = 0;
            buffers.give(mem::take(&mut self.tail));
        } else if self.sent > SENT_MAX && self.sent > self.tail.len() / 2 {
            self.tail.drain(..self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ready(output: &Output) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); 3];
        let count = output.ready(&mut slices);
        slices[..count].iter().flat_map(|slice| slice.to_vec()).collect()
    }

    proptest! {
        /// Whatever the order of fills and however few bytes a write takes, the bytes leave in the order of requests.
        #[test]
        fn replies_leave_in_order(
            replies in prop::collection::vec((any::<bool>(), 0_usize..9), 0..40),
            order in prop::collection::vec(any::<prop::sample::Index>(), 40),
            writes in prop::collection::vec(0_usize..7, 200),
        ) {
            let (mut output, mut buffers) = (Output::default(), Buffers::default());
            let (mut expected, mut holes, mut wire) = (Vec::new(), Vec::new(), Vec::new());
            let mut writes = writes.into_iter();
            for (number, &(foreign, length)) in replies.iter().enumerate() {
                let reply = vec![number as u8; length];
                expected.extend_from_slice(&reply);
                output.prepare(&mut buffers);
                if foreign {
                    holes.push((output.hole(&mut buffers), reply));
                } else {
                    output.tail().extend_from_slice(&reply);
                }
                let part = ready(&output);
                let taken = writes.next().unwrap_or(9).min(part.len());
                wire.extend_from_slice(&part[..taken]);
                output.advance(taken, &mut buffers);
            }
            for index in order {
                if holes.is_empty() { break }
                let (hole, reply) = holes.swap_remove(index.index(holes.len()));
                output.fill(hole, reply);
                let part = ready(&output);
                let taken = writes.next().unwrap_or(9).min(part.len());
                wire.extend_from_slice(&part[..taken]);
                output.advance(taken, &mut buffers);
            }
            loop {
                let part = ready(&output);
                output.advance(part.len(), &mut buffers);
                if part.is_empty() { break }
                wire.extend_from_slice(&part);
            }
            prop_assert_eq!(wire, expected);
            prop_assert!(output.is_done());
        }
    }
}
