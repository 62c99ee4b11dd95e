//! `stats detail`: counts for the keys of each prefix (the part before the delimiter).

use std::collections::BTreeMap;

use memchr::memchr;

/// One count of a prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prefixed {
    /// A fetch, and whether it found an item.
    Get {
        /// True if the item existed.
        hit: bool,
    },
    /// The request stores an item.
    Set,
    /// The request deletes an item.
    Delete,
}

/// Gets, hits, sets and deletions of each prefix.
#[derive(Debug, Default)]
pub struct Prefixes {
    counts: BTreeMap<Vec<u8>, [u64; 4]>,
}

/// Prefixes beyond this many are not counted: clients choose them.
const PREFIXES_MAX: usize = 10_000;

impl Prefixes {
    /// Counts `what` for the prefix of `key`, if it has one.
    pub fn count(&mut self, key: &[u8], delimiter: u8, what: Prefixed) {
        let Some(end) = memchr(delimiter, key) else { return };
        let prefix = &key[..end];
        if !self.counts.contains_key(prefix) && self.counts.len() < PREFIXES_MAX {
            self.counts.insert(prefix.to_vec(), [0; 4]);
        }
        let Some(counts) = self.counts.get_mut(prefix) else { return };
        match what {
            Prefixed::Get { hit } => {
                counts[0] += 1;
                counts[1] += u64::from(hit);
            }
            Prefixed::Set => counts[2] += 1,
            Prefixed::Delete => counts[3] += 1,
        }
    }

    /// Removes all prefixes and their counts.
    pub fn clear(&mut self) {
        self.counts.clear();
    }

    /// Encodes the counts for [`Prefixes::add`].
    pub fn encode(&self, message: &mut Vec<u8>) {
        for (prefix, counts) in &self.counts {
            message.push(prefix.len() as u8);
            message.extend_from_slice(prefix);
            for count in counts {
                message.extend_from_slice(&count.to_le_bytes());
            }
        }
    }

    /// Adds counts that [`Prefixes::encode`] wrote.
    pub fn add(&mut self, mut message: &[u8]) {
        const OURS: &str = "a message of this program's own";
        while let Some((&bytes, rest)) = message.split_first() {
            let (prefix, mut rest) = rest.split_at(usize::from(bytes));
            let sums = self.counts.entry(prefix.to_vec()).or_default();
            for sum in sums {
                let (count, more) = rest.split_first_chunk().expect(OURS);
                *sum += u64::from_le_bytes(*count);
                rest = more;
            }
            message = rest;
        }
    }

    /// Each prefix with its gets, hits, sets and deletions.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u64; 4])> {
        self.counts.iter().map(|(prefix, counts)| (&prefix[..], counts))
    }
}
