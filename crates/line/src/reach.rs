//! [`Reach`]: what goodput a range of loads offers. An objective above it is met at no load, and one on the searched
//! workload itself is met at no load that offers less.

use plimsoll_experiment::slo::{Metric, Slo};
use plimsoll_scenario::model::Model;
use plimsoll_stats::search::{self, Objectives};
use plimsoll_traffic::facts::NetworkFacts;
use plimsoll_units::Rate;

use crate::over::{Over, shared_link_bps};
use crate::search::{SearchRange, rounded};

/// The loads of a range that offer enough for every goodput objective.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Reach {
    /// The lowest load at which a goodput objective can be met, if that is in the range.
    pub(crate) floor: Option<Floor>,
    /// The reason why no load meets an objective, after the text of the objective.
    pub(crate) impossible: Option<String>,
}

/// The lowest load that offers the goodput of an objective.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Floor {
    /// The load that offers the limit on average.
    pub(crate) least: f64,
    /// The number of the objective.
    pub(crate) slo: usize,
}

/// The arrivals of a run offer more or less than their mean, so the search begins this much above the lowest load.
const MARGIN: f64 = 1.25;

impl Reach {
    /// Computes the reach of a variant from its model at the highest load.
    pub(crate) fn of(model: &Model, over: &Over, slos: &[Slo]) -> Reach {
        let mut reach = Reach::default();
        let goodput = slos.iter().enumerate().filter(|(_, slo)| slo.metric == Metric::Goodput);
        for (number, slo) in goodput {
            let Some(workload) = model.workload.get(&slo.workload) else { continue };
            let offered = workload.params().offered_bps(&model.topology).map(|bps| bps / 1e6);
            let shared = shared_link_bps(model, workload).map(|bps| bps / 1e6);
            let carried = shared.unwrap_or_else(|| links_mbps(model));
            let most = offered.map_or(carried, |offered| offered.min(carried));
            if most < slo.limit || slo.operator.is_strict() && most == slo.limit {
                let rate = plimsoll_report::figures::rate(most);
                let bound = match (offered, shared) {
                    (Some(offered), _) if offered <= carried => {
                        format!("{} offers at most {rate} at {}", slo.workload, over.shown(over.high))
                    }
                    (_, Some(_)) => format!("the link that {} shares carries {rate}", slo.workload),
                    _ => format!("the links of all hosts together carry {rate}"),
                };
                reach.impossible.get_or_insert(format!("no load can meet {}, as {bound}", slo.text));
            } else if let Some(offered) = offered.filter(|_| slo.workload == over.workload()) {
                let least = over.high * slo.limit / offered;
                if least > over.low && reach.floor.is_none_or(|known| known.least < least) {
                    reach.floor = Some(Floor { least, slo: number });
                }
            }
        }
        reach
    }
}

impl Reach {
    /// Makes the search of the loads within reach.
    pub(crate) fn search<O: Objectives>(&self, objectives: O, range: SearchRange) -> search::Search<O> {
        let worth_a_run = |Floor { least, .. }| {
            rounded((least * MARGIN).min((least * range.high).sqrt())).clamp(range.low, range.high)
        };
        let low = self.floor.map_or(range.low, worth_a_run);
        let mut search =
            search::Search::new(objectives, SearchRange { low, start: range.start.max(low), ..range });
        if self.impossible.is_some() {
            search.rule_out();
        }
        search
    }
}

/// Returns the rates of all hosts' links together in Mb/s.
fn links_mbps(model: &Model) -> f64 {
    let hosts = NetworkFacts::host_count(&model.topology);
    (0..hosts).map(|host| NetworkFacts::host_rate(&model.topology, host)).map(Rate::as_mbps_f64).sum()
}
