//! [`Verdict`]: the layer to which the differences of the quantiles point.
//!
//! Each layer has a shape over the quantiles, and a difference that is a multiple of one shape points to its layer:
//!
//! | layer | shape |
//! |---|---|
//! | host | the same at every quantile |
//! | queue | the queueing delay of the run's messages around each quantile |
//! | service | the time at the server of the run's messages around each quantile |
//! | loss | nothing at low quantiles, and half of the shortest retransmission timeout or more above |
//!
//! A shape fits if one multiple of it is inside the interval of every difference, each widened by a quarter of the
//! difference, since a longer queue is not exactly a multiple of a shorter one. The multiple of a queue and of a
//! service is at least -1: no more time can be missing than the run has. A loss is judged first. Times that were
//! measured inside the server decide about it: if they differ from the times of the run, only the shape of the service
//! counts, and otherwise only the others. Where a constant and a queue fit, and the constant misses the differences
//! clearly less, it is the host. Where no shape fits, a difference that grows with the quantile is a queue that the run
//! does not have. The verdict names no layer where several fit, or none.
//!
//! A measured latency below the idle latency of the run, which is its latency without queueing delay, means that the
//! model itself is too slow: less load or shorter queues cannot explain it.

use plimsoll_stats::{Estimate, Interval};
use serde::Serialize;

use crate::quantiles::DEVIATIONS;

/// A place where latency arises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyLayer {
    /// The network stack of the hosts, or another delay that every request has.
    Host,
    /// Queues: switches, NICs and pacers.
    Queue,
    /// Lost packets, which wait for a retransmission timeout.
    Loss,
    /// The server, waiting for it included.
    Service,
}

/// The layer to which the differences of all quantiles point, or why none is named.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "layers")]
pub enum Verdict {
    /// No difference has an interval: too few latencies, or an unknown number of them.
    NoIntervals,
    /// Every interval contains zero.
    NotSignificant,
    /// One layer explains the differences.
    Layer(LatencyLayer),
    /// Measured latencies are below the run's latencies without queueing delay: the model is too slow, in one of these
    /// layers where a shape fits.
    ModelTooSlow(Vec<LatencyLayer>),
    /// Each of these layers alone explains the differences.
    CannotTell(Vec<LatencyLayer>),
    /// No layer alone explains the differences.
    Several,
}

/// A difference at one quantile, with the parts of the run's messages around it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ObservedDifference {
    /// Measured minus modelled, in us.
    pub difference: Estimate,
    /// The mean queueing delay of the run's messages in us.
    pub queue_us: f64,
    /// The mean time at the server of the run's messages in us.
    pub service_us: f64,
}

/// The part of a difference by which a shape may miss it.
const SLACK: f64 = 0.25;
/// The difference of two weighted sums of squares from which on one shape is clearly nearer: 2 standard deviations.
const CLEARLY: f64 = 4.0;

/// How a layer's difference grows with the latency of a run: in proportion to the value.
type Shape = fn(&ObservedDifference) -> f64;

/// Judges the differences, in order of their quantiles. `server` is whether the times inside the server differ between
/// measurement and run, where they were measured. `timeout_us` is the shortest retransmission timeout.
pub fn judge(observed: &[ObservedDifference], server: Option<bool>, timeout_us: f64) -> Verdict {
    let known: Vec<(Interval, &ObservedDifference)> =
        observed.iter().filter_map(|seen| Some((seen.difference.interval?, seen))).collect();
    if known.is_empty() {
        return Verdict::NoIntervals;
    }
    if known.iter().all(|(interval, _)| interval.contains(0.0)) {
        return Verdict::NotSignificant;
    }
    if is_step(&known, timeout_us) {
        return Verdict::Layer(LatencyLayer::Loss);
    }
    let queue: Shape = |seen| seen.queue_us;
    // Every multiple of a constant is possible: it is not known how much of the run's latency is the hosts'.
    let shapes: [(LatencyLayer, Shape, f64); 3] = [
        (LatencyLayer::Host, |_| 1.0, f64::NEG_INFINITY),
        (LatencyLayer::Queue, queue, -1.0),
        (LatencyLayer::Service, |seen| seen.service_us, -1.0),
    ];
    let fitting = shapes.iter().filter(|(_, shape, lowest)| fits(&known, shape, *lowest));
    let mut fitting: Vec<LatencyLayer> = fitting.map(|(layer, ..)| *layer).collect();
    if let Some(differs) = server {
        fitting.retain(|layer| (*layer == LatencyLayer::Service) == differs);
    }
    let is_constant =
        fitting.contains(&LatencyLayer::Host) && misfit(&known, &|_| 1.0) + CLEARLY < misfit(&known, &queue);
    fitting.retain(|layer| *layer != LatencyLayer::Queue || !is_constant);
    let is_below =
        |(interval, seen): &(Interval, &ObservedDifference)| interval.high < -(1.0 + SLACK) * seen.queue_us;
    if known.iter().any(is_below) && known.iter().all(|(interval, _)| interval.low <= 0.0) {
        fitting.retain(|layer| *layer != LatencyLayer::Queue);
        return Verdict::ModelTooSlow(fitting);
    }
    match &fitting[..] {
        [only] => Verdict::Layer(*only),
        [] if server != Some(true) && grows(&known) => Verdict::Layer(LatencyLayer::Queue),
        [] => Verdict::Several,
        _ => Verdict::CannotTell(fitting),
    }
}

/// Returns whether the differences jump, from near zero, to half of the timeout or more, in either direction.
fn is_step(known: &[(Interval, &ObservedDifference)], timeout_us: f64) -> bool {
    let size =
        |interval: &Interval| if interval.low > 0.0 { interval.low } else { (-interval.high).max(0.0) };
    known.windows(2).any(|pair| {
        let above = size(&pair[1].0);
        above >= 0.5 * timeout_us && pair[0].1.difference.value.abs() < 0.25 * above
    })
}

/// Returns whether one multiple of a shape, `lowest` or more, is inside all intervals.
fn fits(
    known: &[(Interval, &ObservedDifference)],
    shape: &dyn Fn(&ObservedDifference) -> f64,
    lowest: f64,
) -> bool {
    let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
    for (interval, seen) in known {
        let slack = SLACK * seen.difference.value.abs();
        let (low, high) = (interval.low - slack, interval.high + slack);
        let at = shape(seen);
        if at > 0.0 {
            (least, most) = (least.max(low / at), most.min(high / at));
        } else if low > 0.0 || high < 0.0 {
            return false;
        }
    }
    least <= most && least.is_finite() && (least > 0.0 || most < 0.0) && most >= lowest
}

/// Returns the weighted sum of squares by which the nearest multiple of a shape misses the differences.
fn misfit(known: &[(Interval, &ObservedDifference)], shape: &dyn Fn(&ObservedDifference) -> f64) -> f64 {
    let scaled = known.iter().map(|(interval, seen)| {
        let deviation = ((interval.high - interval.low) / (2.0 * DEVIATIONS)).max(f64::MIN_POSITIVE.sqrt());
        (seen.difference.value / deviation, shape(seen) / deviation)
    });
    let [dd, ds, ss] = scaled.fold([0.0; 3], |[dd, ds, ss], (d, s)| [dd + d * d, ds + d * s, ss + s * s]);
    dd - if ss > 0.0 { ds * ds / ss } else { 0.0 }
}

/// Returns whether the difference at the highest quantile is above that at the lowest, with their intervals apart.
fn grows(known: &[(Interval, &ObservedDifference)]) -> bool {
    known.first().zip(known.last()).is_some_and(|(first, last)| last.0.low > first.0.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(differences: [(f64, f64); 4], queue: [f64; 4], service: [f64; 4]) -> Verdict {
        let seen = |at: usize| {
            let (value, half) = differences[at];
            let interval = (half >= 0.0).then_some(Interval { low: value - half, high: value + half });
            ObservedDifference {
                difference: Estimate { value, interval, samples: 10_000 },
                queue_us: queue[at],
                service_us: service[at],
            }
        };
        judge(&[0, 1, 2, 3].map(seen), None, 10_000.0)
    }

    #[test]
    fn the_shape_of_the_differences_names_the_layer() {
        let (queue, service) = ([0.1, 3.0, 12.0, 20.0], [7.0, 23.0, 46.0, 69.0]);
        let of = |differences| judged(differences, queue, service);
        let shift = [(20.0, 0.2), (20.1, 0.5), (20.5, 2.0), (19.0, 5.0)];
        assert_eq!(of(shift), Verdict::Layer(LatencyLayer::Host));
        assert_eq!(
            of([(3.6, 0.2), (12.0, 1.0), (22.0, 2.0), (37.0, 6.0)]),
            Verdict::Layer(LatencyLayer::Service)
        );
        assert_eq!(
            of([(0.1, 0.1), (3.3, 0.5), (11.0, 2.0), (21.0, 4.0)]),
            Verdict::Layer(LatencyLayer::Queue)
        );
        // A queue without an equal in the run.
        assert_eq!(
            of([(0.1, 0.05), (60.0, 1.0), (70.0, 5.0), (80.0, 9.0)]),
            Verdict::Layer(LatencyLayer::Queue)
        );
        assert_eq!(
            of([(0.0, 0.1), (0.2, 0.5), (9_800.0, 400.0), (9_900.0, 99.0)]),
            Verdict::Layer(LatencyLayer::Loss)
        );
        assert_eq!(of([(0.1, 0.2), (0.2, 0.5), (-1.0, 2.0), (3.0, 5.0)]), Verdict::NotSignificant);
        assert_eq!(of([(20.0, 0.2), (-10.0, 1.0), (3.0, 1.0), (0.0, 1.0)]), Verdict::Several);
        assert_eq!(of([(20.0, -1.0); 4]), Verdict::NoIntervals);
    }

    #[test]
    fn a_constant_is_the_host_although_a_flat_queue_fits_too() {
        let flat = [14.0, 18.0, 21.0, 24.0];
        let of = |differences| judged(differences, flat, [0.0; 4]);
        let constant = [(20.0, 2.0), (20.5, 3.0), (19.0, 4.0), (21.0, 6.0)];
        assert_eq!(of(constant), Verdict::Layer(LatencyLayer::Host));
        // Intervals that allow both.
        let wide = constant.map(|(value, half)| (value, 4.0 * half));
        assert_eq!(of(wide), Verdict::CannotTell(vec![LatencyLayer::Host, LatencyLayer::Queue]));
    }

    #[test]
    fn a_measurement_below_the_idle_latency_means_that_the_model_is_too_slow() {
        let (queue, service) = ([1.0, 3.0, 12.0, 20.0], [7.0, 23.0, 46.0, 69.0]);
        let of = |differences| judged(differences, queue, service);
        let faster = [(-20.0, 0.2), (-20.1, 0.5), (-20.5, 2.0), (-19.0, 5.0)];
        assert_eq!(of(faster), Verdict::ModelTooSlow(vec![LatencyLayer::Host]));
        assert_eq!(
            of([(-3.6, 0.2), (-12.0, 1.0), (-22.0, 2.0), (-37.0, 6.0)]),
            Verdict::ModelTooSlow(vec![LatencyLayer::Service])
        );
        // More than the whole time at the server is missing, so it is not the server alone.
        assert_eq!(
            of([(-14.0, 0.2), (-46.0, 1.0), (-92.0, 2.0), (-138.0, 6.0)]),
            Verdict::ModelTooSlow(vec![])
        );
        // Less load in the measurement: only queueing delay is missing.
        let less = judged([(-1.0, 0.2), (-2.9, 0.3), (-11.5, 1.0), (-20.0, 5.0)], queue, [7.0; 4]);
        assert_eq!(less, Verdict::Layer(LatencyLayer::Queue));
    }

    #[test]
    fn a_constant_service_is_not_told_from_the_host() {
        let found =
            judged([(20.0, 0.2), (20.0, 0.2), (20.0, 1.0), (21.0, 3.0)], [0.0, 1.0, 9.0, 20.0], [10.0; 4]);
        assert_eq!(found, Verdict::CannotTell(vec![LatencyLayer::Host, LatencyLayer::Service]));
    }
}
