//! What a point of a figure runs: a scheduler on some demands of the paper's workload.

use std::sync::Arc;

use plimsoll_circuits::{
    Demand, Evaluation, LowerBounds, Schedule, SchedulerKind, Switching, Workload, evaluate,
};
use plimsoll_fabric::engine::Streams;
use plimsoll_results::stats::{Estimate, mean, mean_interval};
use plimsoll_units::{Rate, Span};

use crate::study::{Base, MakeTask, Measured, Named, Point, Task};

pub(crate) const TASKS: Named<MakeTask> =
    &[("solstice.ports", ports), ("solstice.noise", noise), ("solstice.unit", unit)];

/// A scheduler on some demands.
#[derive(Debug)]
struct Scheduling {
    kind: SchedulerKind,
    workload: Workload,
    /// The bytes in which demand is counted.
    unit: u64,
    /// Whether the last day ends as soon as the packet switch can carry the rest.
    cut: bool,
    demands: u32,
    seed: u64,
}

/// The switches of the paper's evaluation.
pub(super) const SWITCHING: Switching = Switching {
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

fn noise(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let percent: f64 = point.x.parse().ok()?;
    scheduling(point, Workload { noise: percent / 100.0, ..Workload::paper(64) }, 1)
}

fn unit(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    scheduling(point, Workload::paper(64), point.x.parse().ok()?)
}

fn scheduling(point: &Point<'_>, workload: Workload, unit: u64) -> Option<Arc<dyn Task>> {
    let kind = point.series.to_lowercase().parse().ok()?;
    let demands = match (point.quick, workload.ports) {
        (true, _) => 3,
        (false, ..=64) => 50,
        (false, _) => 10,
    };
    let cut = point.base == Base::Source;
    Some(Arc::new(Scheduling { kind, workload, unit, cut, demands, seed: point.seed }))
}

impl Task for Scheduling {
    fn settings(&self) -> String {
        format!("{self:?} with {SWITCHING:?}")
    }

    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let mut all: [Vec<f64>; 6] = Default::default();
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

const METRICS: [(&str, &str); 6] = [
    ("schedule_time_ms", "ms"),
    ("configurations", "configurations"),
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
        let mut stream = Streams::new(self.seed).stream(&format!("circuits/demand/{number}"));
        let demand = self.workload.draw(&SWITCHING, &mut stream);
        let counted = |bytes: &u64| (bytes + self.unit / 2) / self.unit * self.unit;
        Demand::from_bytes(demand.ports(), demand.bytes().iter().map(counted).collect())
    }

    /// Cuts the last day of a scheduler that ends when the packet switch can carry the rest.
    fn evaluation(&self, demand: &Demand) -> Evaluation {
        let mut scheduler = self.kind.make();
        let serves_all =
            matches!(self.kind, SchedulerKind::Solstice | SchedulerKind::Bvn | SchedulerKind::Islip);
        if !(self.cut && serves_all) {
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

impl plimsoll_circuits::Scheduler for Fixed {
    fn schedule(&mut self, _: &Demand, _: &Switching) -> Schedule {
        self.0.clone()
    }
}
