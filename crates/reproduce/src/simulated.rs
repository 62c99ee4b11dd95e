//! [`Simulated`]: the simulator's numbers of a point that is also run on this machine's kernel, from the figure of
//! another study.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_scenario::Overrides;
use plimsoll_servers::Parameters;
use plimsoll_servers::parameters::text;
use plimsoll_units::Span;
use serde::Deserialize;
use toml::Value;

use crate::single_run::load;
use crate::study::{Base, Measured, Point, Runs, Study, Task};

/// The keys of a figure for its simulated base.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SimulatedKeys {
    /// The other study, and its figure, point and scheme.
    study: String,
    figure: String,
    x: Value,
    scheme: String,
    /// Settings beyond the settings of that point, and further ones of a quick look.
    #[serde(default)]
    set: Vec<String>,
    quick_set: Vec<String>,
    /// The metrics of that figure, and the names that they have in this one.
    metrics: BTreeMap<String, String>,
    /// Whether the point is not simulated.
    #[serde(default)]
    is_left_out: bool,
}

/// A point of another study, with further settings.
pub(crate) struct Simulated {
    keys: SimulatedKeys,
    set: Vec<String>,
    seed: u64,
    study: fn(&str) -> Option<&'static Study>,
}

impl Simulated {
    /// Makes the task of a point; `None` where the point is not simulated.
    pub(crate) fn task(parameters: &Parameters, point: &Point<'_>) -> Option<Arc<dyn Task>> {
        let keys: SimulatedKeys =
            parameters.read(point.x, point.series).expect("a test makes every task of every study");
        let quick = keys.quick_set.iter().filter(|_| point.quick);
        let set = keys.set.iter().chain(quick).cloned().collect();
        let (seed, study) = (point.seed, point.study);
        (!keys.is_left_out).then(|| Arc::new(Simulated { keys, set, seed, study }) as Arc<dyn Task>)
    }
}

impl Task for Simulated {
    fn settings(&self) -> String {
        let Simulated { keys: SimulatedKeys { study, figure, x, scheme, .. }, set, seed, .. } = self;
        format!("{study} {figure} at {}, {scheme}: {set:?}, seed {seed}", text(x))
    }

    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let SimulatedKeys { study, figure: id, x, scheme, metrics, .. } = &self.keys;
        let x = text(x);
        let missing = || format!("there is no {scheme} at {x} in {id} of {study}");
        let study = (self.study)(study).ok_or_else(missing)?;
        let figure = study.figure(id).ok_or_else(missing)?;
        let case = figure.cases.iter().find(|case| case.x == x).ok_or_else(missing)?;
        let Runs::Scenario(name) = &figure.runs else { return Err(missing()) };
        let folder = study.laid_out().map_err(|error| error.to_string())?;
        let set = case.set.iter().chain(&self.set).cloned().collect();
        let overrides = Overrides { set, seed: Some(self.seed), replicates: 1, ..Overrides::default() };
        let scenario = load(name, &study.text(name, Base::Source), folder.path(), &overrides)
            .map_err(|error| error.to_string())?;
        let point = scenario.points().iter().find(|point| point.variant == *scheme).ok_or_else(missing)?;
        let outcome =
            plimsoll_sim::run(&point.model, &mut |_| goes_on()).map_err(|error| error.to_string())?;
        let measured = figure.metrics.iter().filter_map(|metric| {
            let name = metrics.get(&metric.name)?;
            Measured::own(name, &metric.unit, metric.measure(&outcome, Span::ZERO))
        });
        Ok(measured.collect())
    }
}
