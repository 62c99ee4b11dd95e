//! The layouts and constants of `programs/shared.h`, translated by build.rs. The C header is authoritative.

/// A struct of 64-bit words that Rust and the programs share.
pub trait Shared: Sized {
    /// Appends the struct's words in order.
    fn write(&self, words: &mut Vec<u64>);

    /// Creates the struct from its words.
    fn read(words: SharedWords) -> Self;

    /// Returns the bytes as the kernel stores them.
    fn to_bytes(&self) -> Vec<u8> {
        let mut words = Vec::new();
        self.write(&mut words);
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    /// Reads the bytes that the kernel stores; returns none if the length is not this struct's.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, _) = bytes.as_chunks();
        let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        (bytes.len() == size_of::<Self>()).then(|| Self::read(SharedWords(words.into_iter())))
    }
}

/// The words of one [`Shared`] struct.
pub struct SharedWords(std::vec::IntoIter<u64>);

impl SharedWords {
    fn next(&mut self) -> u64 {
        self.0.next().expect("from_bytes counted them")
    }
}

include!(concat!(env!("OUT_DIR"), "/shared.rs"));
