//! Named random streams.
//!
//! A stream is found by the run's seed and its path (`"workload/small/arrivals"`), so that adding a component never
//! moves another's draws. A *keyed* stream adds a number, the index of a request: its draws depend on nothing that
//! happened before, so that the same request draws the same in every variant.

use rand::SeedableRng;
use rand_pcg::Pcg64;

/// The generator of every stream: PCG XSL RR 128/64 (O'Neill 2014).
pub type Stream = Pcg64;

/// The random streams of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// Returns the streams of `seed`.
    pub fn new(seed: u64) -> Streams {
        Streams { seed }
    }

    /// Returns the stream of the component at `path`.
    pub fn stream(&self, path: &str) -> Stream {
        Stream::seed_from_u64(self.word(path))
    }

    /// Returns 64 bits derived from `path`: a salt, or the family of [`Streams::keyed`].
    pub fn word(&self, path: &str) -> u64 {
        // FNV-1a over the path, started from the mixed seed.
        let start = mix64(self.seed ^ 0x9e37_79b9_7f4a_7c15);
        let hash = path
            .bytes()
            .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        mix64(hash)
    }

    /// Returns the stream of number `index` in the family `word` (from [`Streams::word`]).
    pub fn keyed(word: u64, index: u64) -> Stream {
        Stream::seed_from_u64(mix64(word ^ mix64(index.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood: OOPSLA 2014): every input bit changes every output bit with
/// probability one half.
#[inline]
pub fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_differ_by_path_seed_and_index_and_repeat() {
        let draw = |seed, path| Streams::new(seed).stream(path).next_u64();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        let word = Streams::new(1).word("a");
        assert_ne!(Streams::keyed(word, 0).next_u64(), Streams::keyed(word, 1).next_u64());
    }

    #[test]
    fn draws_are_the_same_on_every_machine() {
        assert_eq!(Streams::new(1).stream("workload/small/arrivals").next_u64(), PINNED);
    }

    const PINNED: u64 = 5_346_284_887_803_810_493;
}
