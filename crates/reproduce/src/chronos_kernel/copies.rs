//! Reads from two servers that have the same keys: at once, as a hedge, or after a timeout.
//!
//! Both servers are on one processor, so a copy takes from what the other server has. The rate is a share of what the
//! two carry when each get goes to one of them, for all policies alike.

/// The policies of the figure, the first of which decides the rate.
pub(super) const COPIES: &[&str] = &["once", "2 replicas", "hedge 500 us", "retry 500 us"];

/// Returns the words of `chronos-load run` for a policy; none for other series.
pub(super) fn words(series: &str) -> &'static [&'static str] {
    match series {
        "2 replicas" => &["--replicas", "2"],
        "hedge 500 us" => &["--replicas", "2", "--hedge", "500us"],
        "retry 500 us" => &["--replicas", "2", "--retry", "500us"],
        // The keys are on both servers here as well, and a get goes to the first of a key's.
        "once" => &["--replicas", "2", "--hedge", "1000s"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_its_words() {
        assert!(COPIES.iter().all(|series| words(series).starts_with(&["--replicas", "2"])));
        assert_eq!(words("MC"), [""; 0]);
    }
}
