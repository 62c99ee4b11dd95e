//! [`Output`]: the replies of a connection, in the order of its requests, some of which are not here yet.
//!
//! ```text
//! [bytes][hole 7][bytes][hole 9] tail
//!    ^ sent so far  ^ can be sent once hole 7 is filled
//! ```
//!
//! Replies of own partitions are written straight into the tail. A request that goes to another thread leaves a hole. A
//! reply without bytes (a quiet set, a miss of a multi-get) fills its hole with nothing: it never becomes a piece to
//! send, so that a thousand of them in a row do not look like a write without bytes.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem;

use crate::buffers::Buffers;

/// The bytes that a connection has to send.
#[derive(Debug, Default)]
pub(crate) struct Output {
    segments: VecDeque<OutputSegment>,
    /// The number of the first segment.
    first: u32,
    /// Bytes of the first segment (of the tail, if there is none) that are already sent.
    sent: usize,
    /// Bytes in the segments.
    bytes: usize,
    holes: u32,
    /// Bytes that the kernel is sending.
    detached: usize,
    /// Capacity of the segments, and of the pieces that the kernel is sending.
    segments_capacity: usize,
    detached_capacity: usize,
    /// The number of bytes that were sent in all.
    gone: usize,
    tail: Vec<u8>,
}

#[derive(Debug)]
enum OutputSegment {
    /// A piece of at least one byte.
    Bytes(Vec<u8>),
    /// A reply without bytes, behind a segment that is still to be sent or filled.
    Empty,
    Hole,
}

/// The most sent bytes in front of the tail before the rest is moved up.
const SENT_MAX: usize = 64 * 1024;

impl Output {
    /// Returns the buffer to which the next reply is appended.
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// Gives the tail a buffer, if it has none.
    pub(crate) fn prepare(&mut self, buffers: &mut Buffers) {
        if self.tail.capacity() == 0 {
            self.tail = buffers.take();
        }
    }

    /// Leaves a hole for a reply that arrives later, and returns its number.
    pub(crate) fn hole(&mut self, buffers: &mut Buffers) -> u32 {
        if !self.tail.is_empty() {
            let full = mem::replace(&mut self.tail, buffers.take());
            self.bytes += full.len();
            self.segments_capacity += full.capacity();
            self.segments.push_back(OutputSegment::Bytes(full));
        }
        let number = self.first.wrapping_add(self.segments.len() as u32);
        self.segments.push_back(OutputSegment::Hole);
        self.holes += 1;
        number
    }

    /// Fills the hole with this number.
    pub(crate) fn fill(&mut self, number: u32, reply: Vec<u8>, buffers: &mut Buffers) {
        let segment = &mut self.segments[number.wrapping_sub(self.first) as usize];
        debug_assert!(matches!(segment, OutputSegment::Hole), "a hole is filled once");
        self.holes -= 1;
        if reply.is_empty() {
            *segment = OutputSegment::Empty;
            buffers.give(reply);
            self.drop_empty();
        } else {
            self.bytes += reply.len();
            self.segments_capacity += reply.capacity();
            *segment = OutputSegment::Bytes(reply);
        }
    }

    /// Removes empty replies at both ends: the first segment is always one that can be sent or filled, and the numbers
    /// of the last ones are free again.
    fn drop_empty(&mut self) {
        while let Some(OutputSegment::Empty) = self.segments.front() {
            self.segments.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        while let Some(OutputSegment::Empty) = self.segments.back() {
            self.segments.pop_back();
        }
    }

    /// Returns the number of holes that are not filled yet.
    pub(crate) fn holes(&self) -> u32 {
        self.holes
    }

    /// Returns the number of bytes that are here and not sent.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.tail.len() - self.sent + self.detached
    }

    /// Returns the bytes of memory that it takes.
    pub(crate) fn held(&self) -> usize {
        let segments = self.segments_capacity + self.segments.len() * size_of::<OutputSegment>();
        segments + self.detached_capacity + self.tail.capacity()
    }

    /// Returns the bytes of its memory that remain until the kernel has finished with them.
    pub(crate) fn detached_capacity(&self) -> usize {
        self.detached_capacity
    }

    /// Returns the number of bytes sent in all; wraps.
    pub(crate) fn gone(&self) -> usize {
        self.gone
    }

    /// Gives the tail's buffer back if there is nothing in it.
    #[inline]
    pub(crate) fn give_back_empty(&mut self, buffers: &mut Buffers) {
        if self.tail.is_empty() && self.tail.capacity() > 0 {
            buffers.give(mem::take(&mut self.tail));
        }
    }

    /// Reports whether nothing is to be sent, now or later.
    pub(crate) fn is_done(&self) -> bool {
        self.holes == 0 && self.bytes() == 0
    }

    /// Reports whether all replies are here.
    pub(crate) fn is_whole(&self) -> bool {
        self.holes == 0
    }

    /// Appends everything that is here and not sent, of an output that is whole.
    pub(crate) fn copy_to(&self, whole: &mut Vec<u8>) {
        let start = whole.len() + self.sent;
        for segment in &self.segments {
            if let OutputSegment::Bytes(bytes) = segment {
                whole.extend_from_slice(bytes);
            }
        }
        whole.extend_from_slice(&self.tail);
        whole.drain(start - self.sent..start);
    }

    /// Gives all buffers back.
    pub(crate) fn discard(&mut self, buffers: &mut Buffers) {
        for segment in self.segments.drain(..) {
            if let OutputSegment::Bytes(bytes) = segment {
                buffers.give(bytes);
            }
        }
        buffers.give(mem::take(&mut self.tail));
        (self.bytes, self.sent, self.segments_capacity) = (0, 0, 0);
    }

    /// Returns everything that can be sent now, if it lies in one piece: the usual case of a thread's own partitions.
    pub(crate) fn one_piece(&self) -> Option<&[u8]> {
        self.segments.is_empty().then(|| &self.tail[self.sent..])
    }

    /// Puts the bytes that can be sent now into `slices`, as far as there is room, and returns the number of slices.
    pub(crate) fn ready<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut sent = self.sent;
        let mut count = 0;
        for segment in &self.segments {
            let bytes = match segment {
                OutputSegment::Bytes(bytes) => bytes,
                OutputSegment::Empty => continue,
                OutputSegment::Hole => return count,
            };
            if count == slices.len() {
                return count;
            }
            slices[count] = IoSlice::new(&bytes[sent..]);
            count += 1;
            sent = 0;
        }
        if self.tail.len() > sent && count < slices.len() {
            slices[count] = IoSlice::new(&self.tail[sent..]);
            count += 1;
        }
        count
    }

    /// Moves at most `most` pieces of the bytes that can be sent now into `pieces`, for the kernel to send while the
    /// connection continues. Returns the number of bytes: 0 only if nothing can be sent until a hole is filled or the
    /// tail grows.
    pub(crate) fn detach(&mut self, pieces: &mut Vec<Vec<u8>>, most: usize) -> usize {
        debug_assert_eq!(self.sent, 0, "all is sent this way, or nothing");
        let mut detached = 0;
        while let Some(OutputSegment::Bytes(_)) = self.segments.front()
            && pieces.len() < most
        {
            if let Some(OutputSegment::Bytes(bytes)) = self.segments.pop_front() {
                self.bytes -= bytes.len();
                self.segments_capacity -= bytes.capacity();
                self.detached_capacity += bytes.capacity();
                detached += bytes.len();
                pieces.push(bytes);
            }
            self.first = self.first.wrapping_add(1);
            self.drop_empty();
        }
        if self.segments.is_empty() && !self.tail.is_empty() && pieces.len() < most {
            detached += self.tail.len();
            self.detached_capacity += self.tail.capacity();
            pieces.push(mem::take(&mut self.tail));
        }
        self.detached += detached;
        detached
    }

    /// Notes that `sent` bytes that were detached are sent.
    pub(crate) fn on_sent(&mut self, sent: usize) {
        self.detached -= sent;
        self.gone = self.gone.wrapping_add(sent);
    }

    /// Notes that the kernel has finished with the detached pieces.
    pub(crate) fn on_landed(&mut self) {
        self.detached_capacity = 0;
    }

    /// Removes `sent` bytes, which have been sent.
    pub(crate) fn advance(&mut self, sent: usize, buffers: &mut Buffers) {
        self.sent += sent;
        self.gone = self.gone.wrapping_add(sent);
        while let Some(OutputSegment::Bytes(bytes)) = self.segments.front() {
            let length = bytes.len();
            if self.sent < length {
                return;
            }
            self.sent -= length;
            self.bytes -= length;
            if let Some(OutputSegment::Bytes(bytes)) = self.segments.pop_front() {
                self.segments_capacity -= bytes.capacity();
                buffers.give(bytes);
            }
            self.first = self.first.wrapping_add(1);
            self.drop_empty();
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

    /// More holes than one send takes.
    const PIECES: usize = 64;

    fn ready(output: &Output) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); 3];
        let count = output.ready(&mut slices);
        assert!(slices[..count].iter().all(|slice| !slice.is_empty()), "an empty slice is sent");
        slices[..count].iter().flat_map(|slice| slice.to_vec()).collect()
    }

    /// The ways in which a driver takes bytes out: by slices, some of them written (epoll), or by pieces (io_uring).
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Taking {
        Slices,
        Pieces,
    }

    impl Taking {
        /// Takes at most `most` bytes or pieces of the ready ones; true if there were any.
        fn take(self, output: &mut Output, most: usize, wire: &mut Vec<u8>, buffers: &mut Buffers) -> bool {
            match self {
                Taking::Slices => {
                    let part = ready(output);
                    let taken = most.min(part.len());
                    wire.extend_from_slice(&part[..taken]);
                    output.advance(taken, buffers);
                    !part.is_empty()
                }
                Taking::Pieces => {
                    let mut pieces = Vec::new();
                    let detached = output.detach(&mut pieces, most.max(1));
                    assert!(pieces.iter().all(|piece| !piece.is_empty()), "an empty piece is sent");
                    assert_eq!(detached, pieces.iter().map(Vec::len).sum::<usize>());
                    pieces.iter().for_each(|piece| wire.extend_from_slice(piece));
                    output.on_sent(detached);
                    pieces.into_iter().for_each(|piece| buffers.give(piece));
                    detached > 0
                }
            }
        }
    }

    proptest! {
        /// Whatever the order of fills, however few bytes a write takes and however many replies are empty, the bytes
        /// leave in the order of requests, and nothing is left behind.
        #[test]
        fn replies_leave_in_order(
            replies in prop::collection::vec((any::<bool>(), prop_oneof![3 => Just(0), 1 => 0_usize..9]), 0..400),
            order in prop::collection::vec(any::<prop::sample::Index>(), 400),
            writes in prop::collection::vec(0_usize..7, 200),
            pieces in any::<bool>(),
        ) {
            let taking = if pieces { Taking::Pieces } else { Taking::Slices };
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
                taking.take(&mut output, writes.next().unwrap_or(9), &mut wire, &mut buffers);
            }
            for index in order {
                if holes.is_empty() { break }
                let (hole, reply) = holes.swap_remove(index.index(holes.len()));
                output.fill(hole, reply, &mut buffers);
                taking.take(&mut output, writes.next().unwrap_or(9), &mut wire, &mut buffers);
            }
            while taking.take(&mut output, 9, &mut wire, &mut buffers) {}
            prop_assert_eq!(wire, expected);
            prop_assert!(output.is_done());
            prop_assert!(output.segments.is_empty(), "{:?}", output.segments);
            output.on_landed();
            output.give_back_empty(&mut buffers);
            prop_assert_eq!(output.held(), 0);
        }
    }

    /// More empty replies than one send takes pieces, and then one with bytes: it is ready at once.
    #[test]
    fn empty_replies_hide_nothing() {
        for count in [1, PIECES - 1, PIECES, PIECES + 1, 5000] {
            let (mut output, mut buffers) = (Output::default(), Buffers::default());
            let holes: Vec<u32> = (0..=count).map(|_| output.hole(&mut buffers)).collect();
            for &hole in &holes[..count] {
                output.fill(hole, Vec::with_capacity(100), &mut buffers);
            }
            output.fill(holes[count], b"END\r\n".to_vec(), &mut buffers);
            let mut slices = [IoSlice::new(&[]); PIECES];
            assert_eq!(output.ready(&mut slices), 1, "{count} before it");
            let mut pieces = Vec::new();
            assert_eq!(output.detach(&mut pieces, PIECES), 5, "{count} before it");
            assert_eq!(pieces, [b"END\r\n"]);
        }
    }

    /// Empty replies keep neither their buffers nor a place, whatever the order in which they come.
    #[test]
    fn empty_replies_are_kept_nowhere() {
        for reverse in [false, true] {
            let (mut output, mut buffers) = (Output::default(), Buffers::default());
            for _ in 0..10 {
                let mut holes: Vec<u32> = (0..300).map(|_| output.hole(&mut buffers)).collect();
                if reverse {
                    holes.reverse();
                }
                for hole in holes {
                    output.fill(hole, Vec::with_capacity(100), &mut buffers);
                }
                assert!(output.segments.is_empty() && output.is_done());
                assert!((0..300).all(|_| buffers.take().capacity() >= 100), "their buffers are given back");
            }
        }
    }
}
