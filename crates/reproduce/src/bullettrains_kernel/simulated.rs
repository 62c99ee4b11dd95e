//! [`Simulated`]: the simulator's numbers of a figure, from the study of the simulated hosts.

use std::sync::Arc;

use plimsoll_scenario::Overrides;
use plimsoll_units::Span;

use crate::single_run::load;
use crate::study::{Base, Measured, Point, Runs, Study, Task};

/// A point of `studies/bullettrains`, with further settings.
struct Simulated {
    figure: &'static str,
    x: &'static str,
    series: &'static str,
    set: Vec<String>,
    seed: u64,
    study: fn(&str) -> Option<&'static Study>,
}

/// The simulated study's metrics, and the names that they have here.
const METRICS: &[(&str, &str)] = &[
    ("data_burst_p10", "train_p10"),
    ("data_burst_p50", "train_p50"),
    ("data_burst_p90", "train_p90"),
    ("ack_kb", "ack_kb"),
    ("throughput", "throughput"),
];

/// Settings of a quick look.
const QUICK: [&str; 2] = ["run.duration=\"60ms\"", "run.warmup=\"20ms\""];

pub(super) fn task(
    point: &Point<'_>,
    figure: &'static str,
    x: &'static str,
    series: &'static str,
    set: &[String],
) -> Arc<dyn Task> {
    let quick = QUICK.iter().filter(|_| point.quick).map(|&set| set.to_owned());
    let set = set.iter().cloned().chain(quick).collect();
    Arc::new(Simulated { figure, x, series, set, seed: point.seed, study: point.study })
}

impl Task for Simulated {
    fn settings(&self) -> String {
        let Simulated { figure, x, series, set, seed, .. } = self;
        format!("bullettrains {figure} at {x}, {series}: {set:?}, seed {seed}")
    }

    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let study = (self.study)("bullettrains").ok_or("there is no study `bullettrains`")?;
        let figure = study.figure(self.figure).expect("the study has the figures that the arms name");
        let case = figure.cases.iter().find(|case| case.x == self.x);
        let case = case.expect("the figure has the points that the arms name");
        let Runs::Scenario(name) = &figure.runs else { unreachable!("the figures run scenarios") };
        let folder = study.laid_out().map_err(|error| error.to_string())?;
        let set = case.set.iter().chain(&self.set).cloned().collect();
        let overrides = Overrides { set, seed: Some(self.seed), replicates: 1, ..Overrides::default() };
        let scenario = load(name, &study.text(name, Base::Source), folder.path(), &overrides)
            .map_err(|error| error.to_string())?;
        let point = scenario.points().iter().find(|point| point.variant == self.series);
        let point = point.expect("the scenario has the variants that the arms name");
        let outcome =
            plimsoll_sim::run(&point.model, &mut |_| goes_on()).map_err(|error| error.to_string())?;
        let measured = figure.metrics.iter().filter_map(|metric| {
            let (_, name) = METRICS.iter().find(|(known, _)| *known == metric.name)?;
            Some(Measured {
                series: None,
                metric: (*name).to_owned(),
                unit: metric.unit.clone(),
                estimate: metric.measure(&outcome, Span::ZERO)?,
                suspect: false,
            })
        });
        Ok(measured.collect())
    }
}
