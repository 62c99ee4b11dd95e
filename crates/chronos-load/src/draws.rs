//! Random numbers as a function of the seed, the client, the request's number and the part of the request. Thus the
//! content of a request is independent of earlier events: a stalled server, another number of threads or a lost
//! datagram changes no later request.

use rand_pcg::Pcg64Mcg;

/// Applies the finalizer of SplitMix64 (Steele, Lea and Flood 2014): each bit of `word` flips half of the result's
/// bits.
pub const fn mix64(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Returns the generator (PCG XSL RR 128/64, multiplicative) of part `part` of request `number` of client `client`.
pub fn draws(seed: u64, client: u32, number: u64, part: u32) -> Pcg64Mcg {
    let who = mix64(seed ^ mix64((u64::from(client) << 32) | u64::from(part)));
    let what = mix64(who ^ number);
    Pcg64Mcg::new((u128::from(who.rotate_left(32) ^ what) << 64) | u128::from(mix64(what)))
}

/// Maps `word`, of 64 uniform bits, to a number below `limit`.
pub const fn below(word: u64, limit: u64) -> u64 {
    ((word as u128 * limit as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn draws_differ_by_every_argument_and_repeat() {
        let first = |seed, client, number, part| draws(seed, client, number, part).next_u64();
        let base = first(1, 2, 3, 4);
        assert_eq!(base, first(1, 2, 3, 4));
        for other in [first(0, 2, 3, 4), first(1, 0, 3, 4), first(1, 2, 0, 4), first(1, 2, 3, 0)] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn first_draws_of_successive_requests_are_even() {
        let mut counts = [0_u32; 16];
        for number in 0..16_000 {
            counts[below(draws(7, 0, number, 0).next_u64(), 16) as usize] += 1;
        }
        // Expected are 1000, with a standard deviation of 31.
        assert!(counts.iter().all(|&count| (840..1160).contains(&count)), "{counts:?}");
    }
}
