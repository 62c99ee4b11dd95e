//! [`FanOutTask`]: the last of answers that follow the normal law, and values of that law that formulas settle.

use std::path::Path;
use std::sync::Arc;

use plimsoll_models::{Law, fan_out};
use plimsoll_results::stats::{Estimate, Samples, Statistic};
use plimsoll_servers::Parameters;
use serde::Deserialize;

use crate::error::ReproduceError;
use crate::row::StudyRow;
use crate::study::{Measured, Point, Study, Task};

/// The keys of a figure in `study.toml` whose points are the last of several answers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FanOutKeys {
    servers: u32,
    repetitions: Option<u32>,
}

/// The largest of draws from N(90, 50): exactly, or by the mean of repetitions.
#[derive(Debug)]
struct FanOutTask {
    servers: u32,
    /// Repetitions of the draws; none for the integral.
    repetitions: Option<u32>,
    seed: u64,
}

/// The law of a lightly loaded server's answers, in us.
const OBSERVED: Law = Law::Normal { mean: 90.0, sd: 50.0 };

/// Makes the task that computes a point: by draws if it has repetitions, else by the integral.
pub(super) fn task(all: &Parameters, point: &Point<'_>) -> Result<Arc<dyn Task>, String> {
    let FanOutKeys { servers, repetitions } = all.read(point.x, point.series)?;
    Ok(Arc::new(FanOutTask { servers, repetitions, seed: point.seed }))
}

impl Task for FanOutTask {
    fn settings(&self) -> String {
        format!("{self:?}")
    }

    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let estimate = match self.repetitions {
            None => Some(Estimate::bare(fan_out::expected(&OBSERVED, self.servers), 0)),
            Some(repetitions) => {
                let draws = fan_out::draw(&OBSERVED, self.servers, repetitions, self.seed);
                // Each draw is a replicate of its own.
                let draws = draws.into_iter().map(|draw| vec![draw]).collect();
                Samples::new(draws).estimate(Statistic::Mean)
            }
        };
        Ok(Measured::own("latency_us_mean", "us", estimate).into_iter().collect())
    }
}

/// Computes percentiles of the law by tables of the normal distribution, and expected maxima by tables of order
/// statistics.
pub(crate) fn normal_law(_: &Study, _: u64, _: &Path) -> Result<Vec<StudyRow>, ReproduceError> {
    let row = |x: &str, metric: &str, measured: f64, deviations: f64| {
        let row = StudyRow { measured, ..StudyRow::new("oracles", "source", "N(90, 50)", x, metric, "us") };
        row.compare(Some(90.0 + 50.0 * deviations), None, Some(1.0001))
    };
    let expected = |servers, deviations| {
        let measured = fan_out::expected(&OBSERVED, servers);
        row(&format!("{servers} servers"), "latency_us_mean", measured, deviations)
    };
    Ok(vec![
        row("p99", "latency_us", OBSERVED.quantile(0.99), 2.326_348),
        row("p99.95", "latency_us", OBSERVED.quantile(0.9995), 3.290_527),
        expected(1, 0.0),
        expected(10, 1.538_753),
        expected(100, 2.507_594),
    ])
}
