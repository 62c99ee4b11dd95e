//! [`nearest`]: numbers that count without wrapping, from their low bits on the wire.

/// Returns the number whose low `BITS` bits are those of `low` and that is nearest to `near` (RFC 9293, section 3.4:
/// sequence space arithmetic). None is below zero, so that these bits are kept in any case.
#[inline]
pub fn nearest<const BITS: u32>(low: u64, near: u64) -> u64 {
    let unused = u64::BITS - BITS;
    let distance = (low.wrapping_sub(near) << unused) as i64 >> unused;
    near.checked_add_signed(distance).unwrap_or(low << unused >> unused)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn numbers_are_found_near_the_known_one() {
        assert_eq!(nearest::<32>(5, 3), 5);
        assert_eq!(nearest::<32>(3, 1 << 32), (1 << 32) + 3);
        assert_eq!(nearest::<32>(u64::from(u32::MAX), 1 << 32), (1 << 32) - 1);
        assert_eq!(nearest::<32>(0, (1 << 33) - 10), 1 << 33);
        assert_eq!(nearest::<16>(3, 65_530), 65_539);
        assert_eq!(nearest::<16>(65_530, 65_540), 65_530);
        // Bits above those of the wire do not count, and there is no number below zero.
        assert_eq!(nearest::<32>(7 << 40 | 0xffff_0003, 7), 0xffff_0003);
    }
}
