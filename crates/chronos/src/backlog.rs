//! [`Backlog`]: datagrams that wait to be sent, in their order.

/// Bytes of datagrams that wait for a socket or a device that takes no more for the moment; what comes on top of them is
/// dropped.
pub(crate) const WAITING_BYTES_MAX: usize = 4 << 20;

/// Datagrams that wait to be sent, each with where it goes.
pub(crate) struct Backlog<To> {
    bytes: Vec<u8>,
    /// Where each ends in `bytes`, and where it goes.
    ends: Vec<(usize, To)>,
}

impl<To> Default for Backlog<To> {
    fn default() -> Backlog<To> {
        Backlog { bytes: Vec::new(), ends: Vec::new() }
    }
}

impl<To> Backlog<To> {
    /// Adds a datagram behind the others.
    pub(crate) fn push(&mut self, to: To, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push((self.bytes.len(), to));
    }

    /// Whether one of this length can wait too.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= WAITING_BYTES_MAX
    }

    /// How many they are.
    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The datagrams from the one with index `from`.
    pub(crate) fn iter_from(&self, from: usize) -> impl Iterator<Item = (&To, &[u8])> {
        let mut start = self.start_of(from);
        self.ends[from..].iter().map(move |(end, to)| {
            let datagram = &self.bytes[start..*end];
            start = *end;
            (to, datagram)
        })
    }

    /// Bytes of the datagrams in a range of indices.
    pub(crate) fn bytes_of(&self, range: std::ops::Range<usize>) -> usize {
        self.start_of(range.end) - self.start_of(range.start)
    }

    /// Those before the one with index `from` are done with.
    pub(crate) fn forget(&mut self, from: usize) {
        let start = self.start_of(from);
        self.bytes.drain(..start);
        self.ends.drain(..from);
        self.ends.iter_mut().for_each(|(end, _)| *end -= start);
    }

    /// Where the datagram with this index begins, or the last ends.
    fn start_of(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before].0)
    }
}
