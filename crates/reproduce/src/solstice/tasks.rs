//! What a point of a figure runs: a scheduler on some demands of the paper's workload.

use std::sync::Arc;

use plimsoll_circuits::{
    Demand, Evaluation, Islip, LowerBounds, Schedule, Scheduler, SchedulerKind, Switching, Workload, evaluate,
};
use plimsoll_results::stats::{Estimate, mean, mean_interval};
use plimsoll_units::{Rate, Span, Streams};

use crate::study::{Base, MakeTask, Measured, Named, Point, Task};

pub(crate) const TASKS: Named<MakeTask> = &[
    ("solstice.ports", ports),
    ("solstice.noise", |point| noise(point, 64)),
    ("solstice.noise-8", |point| noise(point, 8)),
    ("solstice.unit", |point| unit(point, 64)),
    ("solstice.unit-8", |point| unit(point, 8)),
];

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

/// The scheduler behind a series, and what of it differs from the one that scenarios have.
#[derive(Clone, Copy, Debug)]
enum Scheme {
    /// A scheduler as scenarios have it.
    Kind(SchedulerKind),
    /// iSLIP with one iteration a matching.
    IslipOnce,
}

/// The switches of the paper's evaluation.
pub(crate) const SWITCHING: Switching = Switching {
    circuit_rate: Rate::from_gbps(100),
    packet_rate: Rate::from_gbps(10),
    night: Span::from_us(20),
    window: Span::from_ms(3),
};

fn ports(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    // BvN and iSLIP take seconds beyond, and Eclipse hours.
    let ports: usize = point.x.parse().ok()?;
    let most = match point.series {
        "Solstice" => 512,
        "Eclipse" => 32,
        _ => 64,
    };
    (ports <= most).then(|| scheduling(point, Workload::paper(ports), 1)).flatten()
}

fn noise(point: &Point<'_>, ports: usize) -> Option<Arc<dyn Task>> {
    let percent: f64 = point.x.parse().ok()?;
    scheduling(point, Workload { noise: percent / 100.0, ..Workload::paper(ports) }, 1)
}

fn unit(point: &Point<'_>, ports: usize) -> Option<Arc<dyn Task>> {
    scheduling(point, Workload::paper(ports), point.x.parse().ok()?)
}

fn scheduling(point: &Point<'_>, workload: Workload, unit: u64) -> Option<Arc<dyn Task>> {
    let scheduler = Scheme::of(point.series)?;
    let demands = match (point.quick, workload.ports) {
        (true, _) => 3,
        (false, ..=64) => DEMANDS,
        (false, _) => 10,
    };
    let cut = point.base == Base::Source;
    Some(Arc::new(Scheduling { scheduler, workload, unit, cut, demands, seed: point.seed }))
}

/// The number of demands that a full run draws of each workload.
pub(super) const DEMANDS: u32 = 50;

/// Draws the demand of a seed and a number.
pub(crate) fn draw(workload: &Workload, seed: u64, number: u32) -> Demand {
    let mut stream = Streams::new(seed).stream(&format!("circuits/demand/{number}"));
    workload.draw(&SWITCHING, &mut stream)
}

impl Scheme {
    /// Returns what a series of a figure schedules with.
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
    Some(Measured {
        series: None,
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        estimate,
        suspect: false,
    })
}

impl Scheduling {
    fn demand(&self, number: u32) -> Demand {
        let demand = draw(&self.workload, self.seed, number);
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
        evaluate(&mut Fixed(schedule), demand, &SWITCHING)
    }
}

/// A schedule that is there already.
#[derive(Debug)]
struct Fixed(Schedule);

impl Scheduler for Fixed {
    fn schedule(&mut self, _: &Demand, _: &Switching) -> Schedule {
        self.0.clone()
    }
}
