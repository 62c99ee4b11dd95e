//! [`Document`]: the stored part of a document: its identity, and the frequency of each of its words. Its text is not
//! kept.

use std::collections::BTreeMap;

use plimsoll_chronos::{KeyHash, PartitionId};

use crate::index::Posting;
use crate::words::words;

/// A document, as it was last put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    /// Its place in the catalogue; another document may have it after this one is deleted.
    pub number: u32,
    /// Counts the versions put into the catalogue, from 0 again after 2^32: distinguishes versions of one number.
    pub generation: u32,
    /// The name, title and URL of the document.
    pub about: About,
    /// The words of the document.
    pub terms: Terms,
}

/// The description of a document.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct About {
    /// Its name, 1 to [`crate::ID_BYTES_MAX`] bytes without spaces or control characters.
    pub id: Box<str>,
    /// The title, which results show.
    pub title: Option<Box<str>>,
    /// The URL, which results show.
    pub url: Option<Box<str>>,
}

/// The frequency of each of a document's words, by the partitions of the words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// For each word its length (1 byte), the word, and its frequency (4 bytes, little-endian).
    bytes: Box<[u8]>,
    /// The begin of each partition's words, and the end.
    starts: Box<[u32]>,
    words: u32,
    distinct: u32,
}

/// A word, with the hash by which it is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Term<'a> {
    /// The hash of the word.
    pub hash: u64,
    /// The word in lower case, or as requested where it names opaque postings.
    pub word: &'a [u8],
}

impl Document {
    /// Returns the bytes of memory that it takes, with its postings, but without words that no other document has.
    pub fn bytes(&self) -> u64 {
        /// Its name once more, in the catalogue, and its slots there and in the partitions.
        const BESIDE: usize = 128;
        let About { id, title, url } = &self.about;
        let about = 2 * id.len() + [title, url].into_iter().flatten().map(|text| text.len()).sum::<usize>();
        let terms = self.terms.bytes.len() + size_of_val(&*self.terms.starts);
        // Lists that grow have room for half as many more, in the mean.
        let postings = self.terms.distinct as usize * size_of::<Posting>() * 3 / 2;
        (size_of::<Document>() + BESIDE + about + terms + postings) as u64
    }
}

impl<'a> Term<'a> {
    /// Creates a term with the word's hash.
    pub fn new(hash: &KeyHash, word: &'a [u8]) -> Term<'a> {
        Term { hash: hash.hash(word), word }
    }

    /// Returns the partition that has the word.
    pub fn partition(&self, partitions: u32) -> PartitionId {
        KeyHash::partition(self.hash, partitions)
    }
}

impl Terms {
    /// Returns the words of `text`, for an index of `partitions` partitions.
    pub fn of(text: &str, hash: &KeyHash, partitions: u32) -> Terms {
        let mut frequencies: BTreeMap<String, u32> = BTreeMap::new();
        let mut count = 0;
        for word in words(text) {
            *frequencies.entry(word).or_default() += 1;
            count += 1;
        }
        let partition = |word: &str| Term::new(hash, word.as_bytes()).partition(partitions).0;
        let mut sorted: Vec<(u32, String, u32)> =
            frequencies.into_iter().map(|(word, frequency)| (partition(&word), word, frequency)).collect();
        sorted.sort_unstable();
        let distinct = sorted.len() as u32;
        let (mut bytes, mut starts) = (Vec::new(), vec![0; partitions as usize + 1]);
        for (partition, word, frequency) in sorted {
            bytes.push(u8::try_from(word.len()).expect("words are at most 250 bytes"));
            bytes.extend(word.as_bytes());
            bytes.extend(frequency.to_le_bytes());
            starts[partition as usize + 1] = bytes.len() as u32;
        }
        for partition in 1..starts.len() {
            starts[partition] = starts[partition].max(starts[partition - 1]);
        }
        Terms { bytes: bytes.into(), starts: starts.into(), words: count, distinct }
    }

    /// Returns the number of words of the text, with repetitions.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// Returns one partition's words, each with its frequency.
    pub fn of_partition(&self, PartitionId(partition): PartitionId) -> impl Iterator<Item = (&[u8], u32)> {
        let partition = partition as usize;
        let mut rest = &self.bytes[self.starts[partition] as usize..self.starts[partition + 1] as usize];
        std::iter::from_fn(move || {
            let (&length, after) = rest.split_first()?;
            let (word, after) = after.split_at(usize::from(length));
            let (frequency, after) = after.split_first_chunk().expect("a word is followed by its frequency");
            rest = after;
            Some((word, u32::from_le_bytes(*frequency)))
        })
    }

    /// Returns all words, each with its frequency.
    pub fn all(&self) -> impl Iterator<Item = (&[u8], u32)> {
        (0..self.starts.len() as u32 - 1).flat_map(|partition| self.of_partition(PartitionId(partition)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_and_in_their_partitions() {
        let hash = KeyHash::new(7);
        for partitions in [1, 3, 64] {
            let terms = Terms::of("one Two two three THREE three", &hash, partitions);
            assert_eq!(terms.words(), 6);
            let mut all: Vec<_> = terms.all().collect();
            all.sort_unstable();
            assert_eq!(all, [(&b"one"[..], 1), (b"three", 3), (b"two", 2)]);
            for partition in (0..partitions).map(PartitionId) {
                let own = |(word, _)| Term::new(&hash, word).partition(partitions) == partition;
                assert!(terms.of_partition(partition).all(own));
            }
        }
        assert_eq!(Terms::of("", &hash, 2).all().count(), 0);
    }
}
