//! [`Mappings`]: which data the bytes of a subflow are (RFC 8684, section 3.3: the data sequence mapping).

use std::collections::VecDeque;

/// A run of bytes of a subflow that is a run of the data sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mapping {
    /// The subflow's stream offset of the first byte.
    pub subflow: u64,
    /// The offset of the first byte in the data sequence.
    pub data: u64,
    /// The length of the run in bytes.
    pub len: u64,
}

impl Mapping {
    /// Returns the subflow's stream offset after the last byte.
    pub fn subflow_end(&self) -> u64 {
        self.subflow + self.len
    }

    /// Returns the offset in the data sequence after the last byte.
    pub fn data_end(&self) -> u64 {
        self.data + self.len
    }

    /// Returns the part between two stream offsets of the subflow; `None` if it is empty.
    fn clipped(&self, start: u64, end: u64) -> Option<Mapping> {
        let (from, to) = (self.subflow.max(start), self.subflow_end().min(end));
        (from < to).then(|| Mapping {
            subflow: from,
            data: self.data + (from - self.subflow),
            len: to - from,
        })
    }

    /// Returns whether `next` continues both sequences.
    fn is_continued_by(&self, next: &Mapping) -> bool {
        self.subflow_end() == next.subflow && self.data_end() == next.data
    }
}

/// The mappings of a subflow by stream offset; they do not overlap.
#[derive(Clone, Default, Debug)]
pub(super) struct Mappings(VecDeque<Mapping>);

impl Mappings {
    /// Adds a mapping whose bytes follow the bytes of all others.
    pub(super) fn push(&mut self, mapping: Mapping) {
        match self.0.back_mut() {
            Some(last) if last.is_continued_by(&mapping) => last.len += mapping.len,
            _ => self.0.push_back(mapping),
        }
    }

    /// Adds the new part of a mapping that has arrived; a byte of a subflow is always the same data.
    pub(super) fn insert(&mut self, mapping: Mapping) {
        let mut at = self.0.partition_point(|known| known.subflow_end() <= mapping.subflow);
        let (mut from, end) = (mapping.subflow, mapping.subflow_end());
        while from < end {
            let known = self.0.get(at).copied();
            let until = known.map_or(end, |known| known.subflow.min(end));
            if let Some(new) = mapping.clipped(from, until) {
                match at.checked_sub(1).and_then(|before| self.0.get_mut(before)) {
                    Some(before) if before.is_continued_by(&new) => before.len += new.len,
                    _ => {
                        self.0.insert(at, new);
                        at += 1;
                    }
                }
            }
            from = known.map_or(end, |known| known.subflow_end().max(until));
            at += 1;
        }
    }

    /// Returns the data between two stream offsets.
    pub(super) fn between(&self, start: u64, end: u64) -> impl Iterator<Item = Mapping> + '_ {
        let first = self.0.partition_point(|mapping| mapping.subflow_end() <= start);
        self.0.range(first..).map_while(move |mapping| mapping.clipped(start, end))
    }

    /// Forgets all bytes below a stream offset.
    pub(super) fn drop_below(&mut self, offset: u64) {
        while let Some(first) = self.0.front_mut().filter(|first| first.subflow < offset) {
            match first.clipped(offset, u64::MAX) {
                Some(rest) => {
                    *first = rest;
                    return;
                }
                None => self.0.pop_front(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(subflow: u64, data: u64, len: u64) -> Mapping {
        Mapping { subflow, data, len }
    }

    fn all(mappings: &Mappings) -> Vec<(u64, u64, u64)> {
        mappings.0.iter().map(|mapping| (mapping.subflow, mapping.data, mapping.len)).collect()
    }

    #[test]
    fn what_continues_both_sequences_is_one_mapping() {
        let mut mappings = Mappings::default();
        for (subflow, data, len) in [(0, 100, 10), (10, 110, 10), (20, 500, 10), (30, 510, 1)] {
            mappings.push(mapping(subflow, data, len));
        }
        assert_eq!(all(&mappings), [(0, 100, 20), (20, 500, 11)]);
        mappings.drop_below(5);
        assert_eq!(all(&mappings), [(5, 105, 15), (20, 500, 11)]);
        mappings.drop_below(20);
        assert_eq!(all(&mappings), [(20, 500, 11)]);
        mappings.drop_below(31);
        assert_eq!(all(&mappings), []);
    }

    #[test]
    fn what_arrives_again_or_in_part_is_known_once() {
        let mut mappings = Mappings::default();
        mappings.insert(mapping(20, 200, 10));
        mappings.insert(mapping(0, 50, 10));
        assert_eq!(all(&mappings), [(0, 50, 10), (20, 200, 10)]);
        // The bytes 5 to 10 and 20 to 30 of the bytes 5 to 40 are known.
        for mapping in [mapping(5, 55, 5), mapping(10, 190, 30)] {
            mappings.insert(mapping);
        }
        assert_eq!(all(&mappings), [(0, 50, 10), (10, 190, 10), (20, 200, 20)]);
        mappings.insert(mapping(0, 50, 10));
        assert_eq!(all(&mappings).len(), 3);
        let parts: Vec<_> = mappings.between(8, 22).map(|part| (part.data, part.len)).collect();
        assert_eq!(parts, [(58, 2), (190, 10), (200, 2)]);
    }
}
