//! [`KeyHash`]: one hash of a key, for its partition and for the table within the partition.

/// A partition's number, below the number of partitions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PartitionId(pub u32);

/// A keyed 64-bit hash: folded products of 8-byte words. It needs nothing that an eBPF program does not have, since
/// the kernel takes datagrams to the owner by the same hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyHash {
    /// The initial value of the hash.
    pub seed: u64,
    /// The factor by which words are multiplied; odd.
    pub multiplier: u64,
}

impl KeyHash {
    /// Creates the hash that belongs to `secret`: a random number, so that an attacker cannot choose keys that collide.
    pub const fn new(secret: u64) -> KeyHash {
        KeyHash { seed: secret ^ 0x9e37_79b9_7f4a_7c15, multiplier: secret.rotate_left(32) | 1 }
    }

    /// Returns 64 well-mixed bits of `key`.
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut hash = self.seed ^ key.len() as u64;
        let (words, rest) = key.as_chunks::<8>();
        for word in words {
            hash = self.fold(hash ^ u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // The last word, even an empty one, so that every key is folded once more than its words: the last fold mixes.
        self.fold(self.fold(hash ^ u64::from_le_bytes(last)) ^ self.seed)
    }

    /// Returns the partition of a key with this hash: its highest bits, so that the lowest remain for a table.
    pub fn partition(hash: u64, partitions: u32) -> PartitionId {
        PartitionId(((u128::from(hash) * u128::from(partitions)) >> 64) as u32)
    }

    /// Returns the factor by which words are multiplied, for a program that computes the same hash.
    pub const fn factor(&self) -> u64 {
        self.multiplier ^ 0xa076_1d64_78bd_642f
    }

    fn fold(&self, word: u64) -> u64 {
        let product = u128::from(word) * u128::from(self.factor());
        (product as u64) ^ ((product >> 64) as u64)
    }
}

/// How the kernel or a device finds a datagram's partition (memcached's protocols behind its UDP frame header).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramSteering {
    /// The hash by which [`KeyHash::partition`] gives the partition of a key.
    pub hash: KeyHash,
    /// A binary request's partition is its vBucket field (modulo the partitions), not its key's.
    pub by_vbucket: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_of_similar_keys_are_even() {
        let hash = KeyHash::new(7);
        let mut counts = [0_u32; 32];
        for key in 0..32_000 {
            counts[KeyHash::partition(hash.hash(format!("key-{key:061}").as_bytes()), 32).0 as usize] += 1;
        }
        // 1000 expected, standard deviation 31.
        assert!(counts.iter().all(|&count| (840..1160).contains(&count)), "{counts:?}");
    }

    #[test]
    fn lengths_and_zeros_count() {
        let hash = KeyHash::new(7);
        let keys: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"12345678", b"12345678\0", b"123456780"];
        let mut hashes = keys.map(|key| hash.hash(key));
        hashes.sort_unstable();
        assert!(hashes.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
