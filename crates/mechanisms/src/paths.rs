//! Choice of a packet's path among several, beyond a hash of its flow (ECMP).
//!
//! | | decides for each | by | reorders |
//! |---|---|---|---|
//! | [`flowlet`] | burst of a flow | chance, once the flow has paused | rarely |
//! | [`spray`] | packet | chance or turn | yes |
//! | [`adaptive`] | packet | the bytes that wait at the ports (DeTail) | yes |
//!
//! A switch passes the possible ports, by their numbers or as candidates `0..count`; choosing allocates nothing, and a
//! uniform 64-bit value is passed as a closure, called at most once and only if there is a choice.

pub mod adaptive;
pub mod flowlet;
pub mod spray;

/// Draws one of `0..count`, uniformly to within `count / 2^64`; 0 if `count` is at most 1.
#[inline]
pub fn uniform(count: u32, draw: impl FnOnce() -> u64) -> u32 {
    if count <= 1 { 0 } else { ((u128::from(draw()) * u128::from(count)) >> 64) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_choice_draws_nothing() {
        let no_draw = || -> u64 { panic!("a draw was taken") };
        assert_eq!((uniform(0, no_draw), uniform(1, no_draw)), (0, 0));
    }

    proptest! {
        #[test]
        fn uniform_is_in_range_and_monotonic(count in 2u32.., a in any::<u64>(), b in any::<u64>()) {
            let (low, high) = (uniform(count, || a.min(b)), uniform(count, || a.max(b)));
            prop_assert!(low <= high && high < count);
            prop_assert_eq!((uniform(count, || 0), uniform(count, || u64::MAX)), (0, count - 1));
        }
    }
}
