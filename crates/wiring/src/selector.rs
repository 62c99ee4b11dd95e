//! The scenario's paths become a path selector.

use plimsoll_fabric::engine::Streams;
use plimsoll_fabric::net::{PathSelector, SelectPath};
use plimsoll_scenario::model::Model;

/// What chooses among shortest paths in place of the flow's hash, if anything does; `custom` wins.
pub fn selector(
    model: &Model,
    switches: u32,
    streams: &Streams,
    custom: Option<Box<dyn SelectPath>>,
) -> Option<PathSelector> {
    let paths = &model.paths;
    let streams = || (0..switches).map(|switch| streams.stream(&format!("switch/{switch}/paths"))).collect();
    if let Some(custom) = custom {
        return Some(PathSelector::custom(custom, streams()));
    }
    match (paths.spray(), paths.flowlet(), paths.adaptive()) {
        (Some(params), ..) => Some(PathSelector::spray(params, streams())),
        (_, Some(params), _) => Some(PathSelector::flowlet(params, streams())),
        (.., Some(params)) => Some(PathSelector::adaptive(params, streams())),
        _ => model.has_scheduled_faults().then(PathSelector::hash),
    }
}
