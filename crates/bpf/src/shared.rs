//! The layouts and constants of `programs/shared.h`, made by build.rs. The C is the authority.

/// A struct of 64-bit words that Rust and the programs share.
pub trait Shared: Sized {
    /// Appends its words in order.
    fn write(&self, words: &mut Vec<u64>);

    /// The struct that these words are.
    fn read(words: Words) -> Self;

    /// As it lies in the kernel's memory.
    fn to_bytes(&self) -> Vec<u8> {
        let mut words = Vec::new();
        self.write(&mut words);
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    /// Reads what lies in the kernel's memory; None if the length is not this struct's.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, _) = bytes.as_chunks();
        let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        (bytes.len() == size_of::<Self>()).then(|| Self::read(Words(words.into_iter())))
    }
}

/// As many words as a [`Shared`] has.
pub struct Words(std::vec::IntoIter<u64>);

impl Words {
    fn next(&mut self) -> u64 {
        self.0.next().expect("from_bytes counted them")
    }
}

include!(concat!(env!("OUT_DIR"), "/shared.rs"));
