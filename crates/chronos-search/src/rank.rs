//! Ranking by BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section 3.4), over posting
//! lists sorted by number.
//!
//! ```text
//! score(d) = sum over the query's words t of  ln(1 + (N - n_t + 0.5) / (n_t + 0.5))
//!                                             * f (k1 + 1) / (f + k1 (1 - b + b |d| / mean |d|))
//! ```
//!
//! N documents, n_t of them with t, f the frequency of t in d, |d| the number of its words. The 1 within the logarithm
//! keeps a word that most documents have from counting against them. Sums are in the order of the query's words, so
//! that equal documents have equal scores; ties are broken by name.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use crate::catalogue::Catalogue;
use crate::document::Document;
use crate::index::Posting;

/// The frequency at which a word's repetition saturates.
const K1: f64 = 1.2;
/// The weight of a document's length.
const B: f64 = 0.75;

/// The totals over all documents that ranking needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Collection {
    /// The number of documents.
    pub documents: u64,
    /// Their number of words together.
    pub words: u64,
}

/// The documents that match a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Documents that have all its words.
    And,
    /// Documents that have at least one.
    Or,
}

/// The best documents, best first, and the number of matches.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// Documents that match. While documents change, versions just replaced may be among them.
    pub matches: usize,
    /// The best, with their scores.
    pub best: Vec<(f64, Arc<Document>)>,
}

#[derive(Clone, Copy)]
struct RankedDocument {
    score: f64,
    number: u32,
    generation: u32,
}

/// A word's weight and the means that all words share.
struct Weight {
    rarity: f64,
    mean_words: f64,
}

impl Weight {
    fn new(collection: Collection, with_word: usize) -> Weight {
        let (documents, with_word) = (collection.documents as f64, with_word as f64);
        // While documents change a list may be longer than their count.
        let without = (documents - with_word).max(0.0);
        let mean_words = collection.words as f64 / documents.max(1.0);
        Weight { rarity: (1.0 + (without + 0.5) / (with_word + 0.5)).ln(), mean_words }
    }

    fn score(&self, posting: &Posting) -> f64 {
        let frequency = f64::from(posting.frequency);
        let length = 1.0 - B + B * f64::from(posting.words) / self.mean_words;
        self.rarity * frequency * (K1 + 1.0) / (frequency + K1 * length)
    }
}

/// Returns the `limit` best documents of `lists`, one for each of the query's different words.
pub fn rank(lists: &[&[Posting]], mode: Mode, limit: usize, catalogue: &Catalogue) -> Ranking {
    let collection = catalogue.collection();
    let weights: Vec<Weight> = lists.iter().map(|list| Weight::new(collection, list.len())).collect();
    let candidates = match mode {
        Mode::And => in_all(lists, &weights),
        Mode::Or => in_any(lists, &weights),
    };
    let matches = candidates.len();
    Ranking { matches, best: best(candidates, limit, catalogue) }
}

/// Walks the shortest list and looks each document up in the others.
fn in_all(lists: &[&[Posting]], weights: &[Weight]) -> Vec<RankedDocument> {
    let Some(shortest) = lists.iter().min_by_key(|list| list.len()) else { return Vec::new() };
    let mut rests = lists.to_vec();
    let mut candidates = Vec::new();
    for &Posting { number, generation, .. } in *shortest {
        let mut score = Some(0.0);
        for (rest, weight) in rests.iter_mut().zip(weights) {
            *rest = skip_to(rest, number);
            let found =
                rest.first().filter(|posting| (posting.number, posting.generation) == (number, generation));
            score = score.zip(found).map(|(score, posting)| score + weight.score(posting));
        }
        candidates.extend(score.map(|score| RankedDocument { score, number, generation }));
    }
    candidates
}

/// Walks all lists at once, by number: a heap has the next list, and among lists at one number the first of the query's
/// words.
fn in_any(lists: &[&[Posting]], weights: &[Weight]) -> Vec<RankedDocument> {
    let mut rests = lists.to_vec();
    let heads =
        rests.iter().enumerate().filter_map(|(list, rest)| Some(Reverse((rest.first()?.number, list))));
    let mut heads: BinaryHeap<_> = heads.collect();
    let mut candidates: Vec<RankedDocument> = Vec::new();
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((number, list)) = *head;
        let (posting, after) = rests[list].split_first().expect("the heap has lists that are not empty");
        rests[list] = after;
        match after.first() {
            Some(next) => *head = Reverse((next.number, list)),
            None => drop(PeekMut::pop(head)),
        }
        let found =
            RankedDocument { score: weights[list].score(posting), number, generation: posting.generation };
        match candidates.last_mut().filter(|candidate| candidate.number == number) {
            None => candidates.push(found),
            Some(candidate) if candidate.generation == found.generation => candidate.score += found.score,
            // Two versions, while the document changes: the later one is fewer steps behind.
            Some(candidate) if found.generation.wrapping_sub(candidate.generation) < u32::MAX / 2 => {
                *candidate = found;
            }
            Some(_) => {}
        }
    }
    candidates
}

/// Returns the part of a sorted list from `number` on: by steps that double, since it is often near.
fn skip_to(list: &[Posting], number: u32) -> &[Posting] {
    let mut step = 1;
    while list.get(step).is_some_and(|posting| posting.number < number) {
        step *= 2;
    }
    let window = &list[..list.len().min(step + 1)];
    &list[window.partition_point(|posting| posting.number < number)..]
}

/// Returns the best candidates, by score and name, that are still their documents' versions.
fn best(
    mut candidates: Vec<RankedDocument>,
    limit: usize,
    catalogue: &Catalogue,
) -> Vec<(f64, Arc<Document>)> {
    let by_score = |a: &RankedDocument, b: &RankedDocument| b.score.total_cmp(&a.score);
    if (1..candidates.len()).contains(&limit) {
        // Candidates that cannot be among the best are not sorted: all below the score that ends them.
        let (_, last, _) = candidates.select_nth_unstable_by(limit - 1, by_score);
        let last = last.score;
        let mut kept: Vec<RankedDocument> =
            candidates.iter().copied().filter(|candidate| candidate.score >= last).collect();
        kept.sort_unstable_by(by_score);
        let found = resolve(&kept, limit, catalogue);
        if found.len() == limit {
            return found;
        }
    }
    candidates.sort_unstable_by(by_score);
    resolve(&candidates, limit, catalogue)
}

fn resolve(sorted: &[RankedDocument], limit: usize, catalogue: &Catalogue) -> Vec<(f64, Arc<Document>)> {
    let mut found: Vec<(f64, Arc<Document>)> = Vec::new();
    for equal in sorted.chunk_by(|a, b| a.score == b.score) {
        if found.len() >= limit {
            break;
        }
        let documents = equal.iter().filter_map(|candidate| {
            let document = catalogue.get(candidate.number)?;
            (document.generation == candidate.generation).then_some((candidate.score, document))
        });
        let start = found.len();
        found.extend(documents);
        found[start..].sort_unstable_by(|(_, a), (_, b)| a.about.id.cmp(&b.about.id));
    }
    found.truncate(limit);
    found
}
