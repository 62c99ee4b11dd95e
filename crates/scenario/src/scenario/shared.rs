//! Compares the networks and the workloads of two scenarios.

use serde_json::{Map, Value};

use super::Scenario;

impl Scenario {
    /// Returns why no results of the two scenarios can be compared, if neither the network nor any workload that both
    /// name is the same. Compares the models of their first points.
    pub fn shares_nothing_with(&self, other: &Scenario) -> Option<String> {
        let [(network, mine), (other_network, theirs)] = [self.parts()?, other.parts()?];
        let shared: Vec<&str> =
            mine.keys().map(String::as_str).filter(|name| theirs.contains_key(*name)).collect();
        let is_same = |name: &&str| mine.get(*name) == theirs.get(*name);
        let differs = network != other_network && !shared.is_empty() && !shared.iter().any(is_same);
        differs.then(|| {
            format!(
                "they are of different networks, and of the workloads that both name ({}) none has the same parameters",
                shared.join(", ")
            )
        })
    }

    /// Returns the network and the workloads of the first point.
    fn parts(&self) -> Option<(Value, Map<String, Value>)> {
        let mut model = serde_json::to_value(&self.points().first()?.model).ok()?;
        let workloads = model.get_mut("workload")?.as_object_mut()?;
        let workloads = std::mem::take(workloads);
        Some((model.get("topology")?.clone(), workloads))
    }
}
