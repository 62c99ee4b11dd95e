use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::*;
use crate::schema::schema;

/// The keys of one run as the schema describes them; `*` is a name that the user chooses.
#[derive(Default)]
struct Keys {
    /// The keys that take a table or `"off"`.
    mechanisms: BTreeSet<Vec<String>>,
    /// The keys that take a table of a distribution.
    distributions: BTreeSet<Vec<String>>,
    /// The keys that take any table.
    tables: BTreeSet<Vec<String>>,
}

impl Keys {
    fn of_the_schema() -> Keys {
        let (mut keys, schema) = (Keys::default(), schema());
        let around = ["variant", "sweep", "slo", "files"];
        let properties = schema["properties"].as_object().expect("the file is a table");
        for (key, inner) in properties.iter().filter(|(key, _)| !around.contains(&key.as_str())) {
            keys.read(&schema, inner, vec![key.clone()]);
        }
        keys
    }

    fn read(&mut self, root: &Json, schema: &Json, path: Vec<String>) {
        if let Some(name) = schema.get("$ref").and_then(Json::as_str) {
            let name = name.trim_start_matches("#/$defs/");
            if ["SpanDistribution", "BytesDistribution"].contains(&name) {
                self.distributions.insert(path.clone());
                self.tables.insert(path);
                return;
            }
            self.read(root, &root["$defs"][name], path.clone());
        }
        for options in ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array()) {
            let is_off = |option: &Json| option.get("const") == Some(&"off".into());
            if options.iter().any(is_off) && options.iter().any(|option| option.get("$ref").is_some()) {
                self.mechanisms.insert(path.clone());
            }
            options.iter().for_each(|option| self.read(root, option, path.clone()));
        }
        let properties = schema.get("properties").and_then(Json::as_object);
        let named = schema.get("additionalProperties").filter(|named| named.is_object());
        if properties.is_some() || named.is_some() {
            self.tables.insert(path.clone());
        }
        let below = |key: &str| path.iter().cloned().chain([key.to_owned()]).collect::<Vec<_>>();
        for (key, inner) in properties.into_iter().flatten() {
            self.read(root, inner, below(key));
        }
        if let Some(inner) = named {
            self.read(root, inner, below("*"));
        }
    }
}

#[test]
fn every_table_that_can_be_off_is_a_mechanism() {
    let keys = Keys::of_the_schema();
    assert!(keys.mechanisms.len() > 13, "{:?}", keys.mechanisms);
    // An approximate run is no mechanism of the network.
    for path in keys.mechanisms.iter().filter(|path| path[0] != "run") {
        assert!(is_mechanism(path), "{} can be \"off\" and is no registered mechanism", dotted(path));
    }
    // A controller's table holds parameters, and `transport.kind` turns the controller on.
    let others = keys.tables.difference(&keys.mechanisms).filter(|path| !path[0].starts_with("transport"));
    for path in others {
        assert!(!is_mechanism(path), "{} is registered as a mechanism and cannot be \"off\"", dotted(path));
    }
}

#[test]
fn every_distribution_and_the_servo_are_replaced_whole_and_of_a_workload_only_the_run_of_a_job_is_not() {
    let keys = Keys::of_the_schema();
    assert!(keys.distributions.len() > 5, "{:?}", keys.distributions);
    let table = ValueNode::empty_table();
    for path in &keys.distributions {
        assert!(replaces_whole(&table, &table, path), "{} is merged key by key", dotted(path));
    }
    let of_workloads = keys.tables.iter().filter(|path| path[0] == "workload" && path.len() > 2);
    let servo = ["workload", "*", "servo"].map(String::from).to_vec();
    assert!(replaces_whole(&table, &table, &servo));
    let (of_runs, others): (Vec<_>, Vec<_>) = of_workloads.partition(|path| path[2] == "run");
    for path in of_runs {
        assert!(!replaces_whole(&table, &table, path), "{} is replaced as one", dotted(path));
    }
    let expected: BTreeSet<&Vec<String>> = keys.distributions.iter().chain([&servo]).collect();
    assert_eq!(others.into_iter().collect::<BTreeSet<_>>(), expected);
}
