//! The answers of partitions to a request that went everywhere, for the merge.
//!
//! ```text
//! postings: the word's index in the query (4) | how many (4) | number, generation, frequency, words (4 each) ...
//! counts:   words (8) | postings (8) | opaque bytes (8)                                        all little-endian
//! ```

use crate::index::{Counts, Posting};

/// Appends a word's postings; nothing if it has none, as in all partitions but the word's own.
pub fn put_list(index: usize, postings: &[Posting], reply: &mut Vec<u8>) {
    if postings.is_empty() {
        return;
    }
    reply.reserve(8 + 16 * postings.len());
    for number in [index as u32, postings.len() as u32] {
        reply.extend(number.to_le_bytes());
    }
    for posting in postings {
        let numbers = [posting.number, posting.generation, posting.frequency, posting.words];
        reply.extend(numbers.map(u32::to_le_bytes).as_flattened());
    }
}

/// Returns the postings of each of a query's words.
pub fn lists(words: usize, replies: &[Vec<u8>]) -> Vec<Vec<Posting>> {
    let mut lists = vec![Vec::new(); words];
    for reply in replies {
        let (mut numbers, _) = reply.as_chunks::<4>();
        while let [index, count, rest @ ..] = numbers {
            let count = u32::from_le_bytes(*count) as usize;
            let (postings, after) = rest.split_at(4 * count);
            let posting = |&[number, generation, frequency, words]: &[[u8; 4]; 4]| Posting {
                number: u32::from_le_bytes(number),
                generation: u32::from_le_bytes(generation),
                frequency: u32::from_le_bytes(frequency),
                words: u32::from_le_bytes(words),
            };
            lists[u32::from_le_bytes(*index) as usize] = postings.as_chunks().0.iter().map(posting).collect();
            numbers = after;
        }
    }
    lists
}

/// Appends the counts of a partition.
pub fn put_counts(counts: Counts, reply: &mut Vec<u8>) {
    for count in [counts.words, counts.postings, counts.opaque_bytes] {
        reply.extend(count.to_le_bytes());
    }
}

/// Returns the sum over all partitions.
pub fn counts(replies: &[Vec<u8>]) -> Counts {
    let mut sum = Counts::default();
    for reply in replies {
        let counts = reply.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        for (sum, count) in [&mut sum.words, &mut sum.postings, &mut sum.opaque_bytes].into_iter().zip(counts)
        {
            *sum += count;
        }
    }
    sum
}
