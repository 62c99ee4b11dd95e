//! [`Scheduling`]: a scheduler of circuits on demands of the workload of Solstice's evaluation.

use std::sync::Arc;

use plimsoll_circuits::{
    Demand, Evaluation, Islip, LowerBounds, Schedule, Scheduler, SchedulerKind, Switching, Workload, evaluate,
};
use plimsoll_results::stats::{Estimate, mean, mean_interval};
use plimsoll_servers::Parameters;
use serde::Deserialize;

use crate::study::{Base, Measured, Point, Task};

/// The keys of a figure in `study.toml` whose points are schedules: ports, noise and unit of the demand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SchedulingKeys {
    ports: usize,
    /// The noise of a flow, in per cent of a circuit's capacity in a window; without it, the workload's own.
    noise_percent: Option<f64>,
    /// The bytes in which demand is counted.
    #[serde(default = "one")]
    unit: u64,
}

fn one() -> u64 {
    1
}

/// A scheduler on some demands.
#[derive(Debug)]
struct Scheduling {
    scheduler: Scheme,
    workload: Workload,
    /// The bytes in which demand is counted.
    unit: u64,
    /// Whether the last day ends as soon as the packet switch can carry the rest.
    cut: bool,
    demands: u32,
    seed: u64,
}

/// The scheduler of a series: one of the scenarios', or one that differs from these.
#[derive(Clone, Copy, Debug)]
enum Scheme {
    /// A scheduler as scenarios have it.
    Kind(SchedulerKind),
    /// iSLIP with one iteration a matching.
    IslipOnce,
}

/// The switches of all schedules.
const SWITCHING: Switching = Switching::PAPER;

/// Makes the task that schedules the demands of a point by the scheduler of its series.
pub(super) fn task(all: &Parameters, point: &Point<'_>) -> Result<Arc<dyn Task>, String> {
    let SchedulingKeys { ports, noise_percent, unit } = all.read(point.x, point.series)?;
    let mut workload = Workload::paper(ports);
    workload.noise = noise_percent.map_or(workload.noise, |percent| percent / 100.0);
    let scheduler = Scheme::of(point.series).ok_or_else(|| format!("no scheduler `{}`", point.series))?;
    let demands = match (point.quick, ports) {
        (true, _) => 3,
        (false, ..=64) => DEMANDS,
        (false, _) => 10,
    };
    let cut = point.base == Base::Source;
    Ok(Arc::new(Scheduling { scheduler, workload, unit, cut, demands, seed: point.seed }))
}

/// The number of demands that a full run draws of each workload.
pub(crate) const DEMANDS: u32 = 50;

impl Scheme {
    /// Returns the scheduler of a series.
    fn of(series: &str) -> Option<Scheme> {
        match series {
            "iSLIP-1" => Some(Scheme::IslipOnce),
            _ => series.to_lowercase().parse().ok().map(Scheme::Kind),
        }
    }

    fn make(self) -> Box<dyn Scheduler> {
        match self {
            Scheme::Kind(kind) => kind.make(),
            Scheme::IslipOnce => Box::new(Islip::with_iterations(1)),
        }
    }

    /// Returns whether it ends when the packet switch can carry the rest.
    fn serves_all(self) -> bool {
        let Scheme::Kind(kind) = self else { return true };
        matches!(kind, SchedulerKind::Solstice | SchedulerKind::Bvn | SchedulerKind::Islip)
    }
}

impl Task for Scheduling {
    fn settings(&self) -> String {
        format!("{self:?} with {SWITCHING:?}")
    }

    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let mut all: [Vec<f64>; 7] = Default::default();
        for number in 0..self.demands {
            if !goes_on() {
                break;
            }
            let demand = self.demand(number);
            let evaluation = self.evaluation(&demand);
            let time = evaluation.time_to_serve.ok_or("a demand is never served")?;
            let bounds = LowerBounds::of(&demand, &SWITCHING);
            let values = [
                time.as_ms_f64(),
                evaluation.configurations as f64,
                evaluation.configurations_in_window as f64,
                100.0 * evaluation.circuit_utilisation,
                100.0 * evaluation.packet_utilisation,
                time.as_ms_f64() / bounds.hybrid.as_ms_f64(),
                time.as_ms_f64() / bounds.flows.as_ms_f64(),
            ];
            all.iter_mut().zip(values).for_each(|(list, value)| list.push(value));
        }
        let metrics = METRICS.into_iter().zip(&all);
        Ok(metrics.filter_map(|((metric, unit), values)| measured(metric, unit, values)).collect())
    }
}

const METRICS: [(&str, &str); 7] = [
    ("schedule_time_ms", "ms"),
    ("configurations", "configurations"),
    ("configurations_in_3ms", "configurations"),
    ("circuit_util_pct", "%"),
    ("packet_util_pct", "%"),
    ("times_lb_h", "x"),
    ("times_lb_f", "x"),
];

fn measured(metric: &str, unit: &str, values: &[f64]) -> Option<Measured> {
    let interval = mean_interval(values, 0.95);
    let estimate = Estimate { interval, ..Estimate::bare(mean(values)?, values.len() as u64) };
    Measured::own(metric, unit, Some(estimate))
}

impl Scheduling {
    fn demand(&self, number: u32) -> Demand {
        let demand = self.workload.demand(&SWITCHING, self.seed, number);
        let counted = |bytes: &u64| (bytes + self.unit / 2) / self.unit * self.unit;
        Demand::from_bytes(demand.ports(), demand.bytes().iter().map(counted).collect())
    }

    /// Cuts the last day of a scheduler that ends when the packet switch can carry the rest.
    fn evaluation(&self, demand: &Demand) -> Evaluation {
        let mut scheduler = self.scheduler.make();
        if !(self.cut && self.scheduler.serves_all()) {
            return evaluate(scheduler.as_mut(), demand, &SWITCHING);
        }
        let mut schedule = scheduler.schedule(demand, &SWITCHING);
        schedule.cut_last_day(demand, &SWITCHING);
        evaluate(&mut FixedSchedule(schedule), demand, &SWITCHING)
    }
}

/// A scheduler that returns a given schedule.
#[derive(Debug)]
struct FixedSchedule(Schedule);

impl Scheduler for FixedSchedule {
    fn schedule(&mut self, _: &Demand, _: &Switching) -> Schedule {
        self.0.clone()
    }
}
