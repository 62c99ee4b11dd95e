//! Draws that sources have in common.

use plimsoll_units::{Span, Stream};
use rand::Rng;

/// Draws a uniform choice out of `0..choices`, by multiplication (Lemire 2019, without the rejection: the bias is
/// below choices / 2^64).
pub(crate) fn uniform_choice(stream: &mut Stream, choices: u64) -> u64 {
    ((u128::from(stream.next_u64()) * u128::from(choices)) >> 64) as u64
}

/// Returns `mean_seconds` stretched by `factor`.
pub(crate) fn stretched(mean_seconds: f64, factor: f64) -> Span {
    Span::from_secs_f64(mean_seconds * factor)
}
