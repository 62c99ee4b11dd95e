//! [`Comparison`]: the schedulers on the same demands, beside the bounds.

use plimsoll_units::Span;

use crate::demand::Demand;
use crate::evaluation::{LowerBounds, evaluate};
use crate::kind::SchedulerKind;
use crate::scheduler::Switching;

/// How several schedulers serve the same demands. All numbers are means over the demands.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The number of ports.
    pub ports: usize,
    /// The number of demands.
    pub demands: usize,
    /// The bounds of [`LowerBounds`] in ms: circuits, hybrid, flows.
    pub bounds_ms: [f64; 3],
    /// The schedulers, in the order in which they were named.
    pub schedulers: Vec<Compared>,
}

/// The means of one scheduler over the demands.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    /// The scheduler that is compared.
    pub scheduler: SchedulerKind,
    /// The share of what all circuits could carry that they did, 0 to 1.
    pub circuit_utilisation: f64,
    /// The same for the links to the packet switch.
    pub packet_utilisation: f64,
    /// The time to serve in ms; `None` unless all demands are served.
    pub time_to_serve_ms: Option<f64>,
    /// The number of configurations.
    pub configurations: f64,
    /// The time of computing a schedule, in us.
    pub compute_us: f64,
    /// The time to serve as a multiple of each bound.
    pub times_bounds: [Option<f64>; 3],
}

impl Comparison {
    /// Runs the schedulers on the demands, of which there is at least one. `compute_us` measures how long a scheduler
    /// takes to compute the schedule of a demand, in us.
    ///
    /// # Panics
    /// Panics without a demand.
    pub fn of(
        schedulers: &[SchedulerKind],
        demands: &[Demand],
        switching: &Switching,
        compute_us: impl Fn(SchedulerKind, &Demand) -> f64,
    ) -> Comparison {
        let ports = demands.first().expect("there is a demand").ports();
        let bounds_ms = |demand: &Demand| {
            let LowerBounds { circuits, hybrid, flows } = LowerBounds::of(demand, switching);
            [circuits, hybrid, flows].map(Span::as_ms_f64)
        };
        let bounds: Vec<[f64; 3]> = demands.iter().map(bounds_ms).collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / demands.len() as f64;
        let compared = |&scheduler: &SchedulerKind| {
            let evaluated = |demand| evaluate(scheduler.make().as_mut(), demand, switching);
            let all: Vec<_> = demands.iter().map(evaluated).collect();
            let times: Option<Vec<f64>> =
                all.iter().map(|each| each.time_to_serve.map(Span::as_ms_f64)).collect();
            let over = |number: usize| {
                let bounds = bounds.iter().map(|bounds| bounds[number]);
                let pairs: Vec<(f64, f64)> = times.iter().flatten().copied().zip(bounds).collect();
                let is_known = times.is_some() && pairs.iter().all(|(_, bound)| *bound != 0.0);
                is_known.then(|| mean(&mut pairs.iter().map(|(time, bound)| time / bound)))
            };
            Compared {
                scheduler,
                circuit_utilisation: mean(&mut all.iter().map(|each| each.circuit_utilisation)),
                packet_utilisation: mean(&mut all.iter().map(|each| each.packet_utilisation)),
                time_to_serve_ms: times.as_ref().map(|times| mean(&mut times.iter().copied())),
                configurations: mean(&mut all.iter().map(|each| each.configurations as f64)),
                compute_us: mean(&mut demands.iter().map(|demand| compute_us(scheduler, demand))),
                times_bounds: [0, 1, 2].map(over),
            }
        };
        Comparison {
            ports,
            demands: demands.len(),
            bounds_ms: [0, 1, 2].map(|number| mean(&mut bounds.iter().map(|bounds| bounds[number]))),
            schedulers: schedulers.iter().map(compared).collect(),
        }
    }
}
