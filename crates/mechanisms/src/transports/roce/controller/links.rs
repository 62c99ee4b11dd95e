//! The most loaded of the links that two acknowledgements have stamps of, for controllers that steer by telemetry.

use plimsoll_units::{Rate, Span, Time};

use crate::telemetry::{Stamp, Stamps};

/// Returns the largest load of a link, and the time for which it was measured; `None` if the stamps of the last two
/// acknowledgements are not comparable. `load` computes the load of a link from its new stamp, its old one, and the
/// time between them.
pub(super) fn most_loaded(
    [new, old]: [&Stamps; 2],
    load: impl Fn(&Stamp, &Stamp, Span) -> f64,
) -> Option<(f64, Span)> {
    if new.hops().len() != old.hops().len() {
        return None;
    }
    let mut most: Option<(f64, Span)> = None;
    for (new, old) in new.hops().iter().zip(old.hops()) {
        let time = Time::saturating_since(new.at, old.at);
        if time.is_zero() {
            return None;
        }
        let load = load(new, old, time);
        if most.is_none_or(|(largest, _)| load > largest) {
            most = Some((load, time));
        }
    }
    most
}

/// Returns the bytes that a link of `rate` sends in `time`.
pub(super) fn bytes_in(rate: Rate, time: Span) -> f64 {
    rate.as_bps() as f64 / 8.0 * time.as_secs_f64()
}

/// Returns `average` after a sample that holds for `time`, of the last `span`.
pub(super) fn averaged(average: f64, sample: f64, time: Span, span: Span) -> f64 {
    average + (time.as_ps() as f64 / span.as_ps() as f64).min(1.0) * (sample - average)
}
