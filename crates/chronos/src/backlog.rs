//! [`Backlog`]: datagrams that wait to be sent, in their order.

/// Datagrams that wait to be sent by a socket or a device, each with its destination.
pub struct Backlog<To> {
    bytes: Vec<u8>,
    /// The end of each datagram in `bytes`, and its destination.
    ends: Vec<(usize, To)>,
}

impl<To> Default for Backlog<To> {
    fn default() -> Backlog<To> {
        Backlog { bytes: Vec::new(), ends: Vec::new() }
    }
}

impl<To> Backlog<To> {
    /// The most bytes that may wait for a socket or a device that takes no more for the moment.
    pub const BYTES_MAX: usize = 4 << 20;

    /// Appends a datagram.
    pub fn push(&mut self, to: To, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push((self.bytes.len(), to));
    }

    /// Reports whether a datagram of this length fits below [`Backlog::BYTES_MAX`].
    pub fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= Self::BYTES_MAX
    }

    /// Returns the number of datagrams.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Reports whether no datagram waits.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Iterates over the datagrams from index `from` on.
    pub fn iter_from(&self, from: usize) -> impl Iterator<Item = (&To, &[u8])> {
        let mut start = self.start_of(from);
        self.ends[from..].iter().map(move |(end, to)| {
            let datagram = &self.bytes[start..*end];
            start = *end;
            (to, datagram)
        })
    }

    /// Returns the bytes of the datagrams in a range of indices.
    pub fn bytes_of(&self, range: std::ops::Range<usize>) -> usize {
        self.start_of(range.end) - self.start_of(range.start)
    }

    /// Removes the datagrams before index `from`.
    pub fn forget(&mut self, from: usize) {
        let start = self.start_of(from);
        self.bytes.drain(..start);
        self.ends.drain(..from);
        self.ends.iter_mut().for_each(|(end, _)| *end -= start);
    }

    /// Returns the offset of the datagram with this index, or the end of the last.
    fn start_of(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before].0)
    }
}
