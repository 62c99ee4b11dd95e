//! [`Buffers`]: a thread's free buffers, so that the request path allocates nothing once it is warm.
//!
//! A buffer travels with its message and stays where it ends. Every request that crosses brings one and every reply
//! takes one back, so threads do not run out.

/// Free buffers, the last one used first (it is in the cache).
#[derive(Debug)]
pub(crate) struct Buffers {
    free: Vec<Vec<u8>>,
    /// The sum of the buffers' capacities in bytes.
    bytes: usize,
    /// The most bytes of free buffers that the thread keeps.
    bytes_max: usize,
}

/// A larger buffer is freed rather than kept: one large value must not hold memory forever.
const KEPT_BYTES: usize = 32 * 1024;

impl Buffers {
    /// Creates an empty pool, which keeps at most `bytes_max` bytes of buffers.
    pub(crate) fn new(bytes_max: usize) -> Buffers {
        Buffers { free: Vec::new(), bytes: 0, bytes_max }
    }

    /// Returns an empty buffer, a used one if there is one.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let buffer = self.free.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }

    /// Takes a buffer back for a later use.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if (1..=KEPT_BYTES).contains(&bytes) && self.bytes + bytes <= self.bytes_max {
            self.bytes += bytes;
            buffer.clear();
            self.free.push(buffer);
        }
    }
}

#[cfg(test)]
impl Default for Buffers {
    fn default() -> Buffers {
        Buffers::new(4 << 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let mut buffers = Buffers::default();
        buffers.give(Vec::with_capacity(KEPT_BYTES + 1));
        assert_eq!(buffers.take().capacity(), 0, "too large");
        (0..1000).for_each(|_| buffers.give(Vec::with_capacity(KEPT_BYTES)));
        let kept = (0..1000).filter(|_| buffers.take().capacity() > 0).count();
        assert_eq!(kept * KEPT_BYTES, buffers.bytes_max);
    }
}
