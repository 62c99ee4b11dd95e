//! [`Registry`]: the mechanisms from outside that a scenario may name, and how a scenario names them.
//!
//! ```toml
//! [transport]
//! kind = "my-controller"                    # a congestion controller, also for one workload:
//! workload.bulk = "my-controller"
//! [transport.my-controller]
//! target = "50us"
//! [port.switch]
//! discipline.my-queue = { target = "50us" } # a queue discipline
//! [paths]
//! my-paths = {}                             # a path selector
//! ```
//!
//! A table is replaced whole by a variant, and `"off"` removes a discipline and a selector, as for a mechanism that
//! Plimsoll brings along. The factories travel with the [`Model`], so whatever runs a model runs them too: `run`,
//! `line`, sweeps, parallel runs. Name, version and all parameters enter the digest of a run that has such a
//! mechanism, and of no other run.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use plimsoll_fabric::net::port::{DisciplineFactory, QueueDiscipline};
use plimsoll_fabric::net::topology::Link;
use plimsoll_fabric::net::{SelectPath, SelectorFactory};
use plimsoll_mechanisms::tcp::{CongestionControl, Kind, MakeController, TransportParams};
use plimsoll_mechanisms::{InvalidParam, TABLES};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use crate::de;
use crate::error::{Report, did_you_mean};
use crate::keys::{DISCIPLINE, PRESET, TRANSPORTS, WORKLOAD};
use crate::model::{Model, Paths};
use crate::node::{Table, ValueNode, dotted};
use crate::source::ScenarioTexts;
use crate::transports;
use crate::unmodelled;

/// The parameters of a mechanism from outside, which are its table in a scenario.
///
/// With `#[serde(deny_unknown_fields, default)]` a table may leave keys away, and a misspelt key is an error.
pub trait Parameters: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Checks the ranges of the values.
    ///
    /// # Errors
    /// Names the first key that is out of its range.
    fn validate(&self) -> Result<(), InvalidParam> {
        Ok(())
    }
}

/// The mechanisms from outside, by name. A clone shares them.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    controllers: IndexMap<String, Registered<MakeController>>,
    disciplines: IndexMap<String, Registered<DisciplineFactory>>,
    selectors: IndexMap<String, Registered<SelectorFactory>>,
}

/// A mechanism from outside that a scenario may name.
#[derive(Clone)]
struct Registered<F> {
    version: String,
    prepare: Arc<Prepare<F>>,
}

/// Reads a table of parameters and makes the factory of it; the errors are relative to the table.
type Prepare<F> =
    dyn Fn(&ScenarioTexts, &ValueNode) -> Result<(Map<String, Json>, F), Vec<Report>> + Send + Sync;

/// A mechanism from outside that a scenario names.
#[derive(Clone)]
pub struct Outside<F> {
    /// The name by which the scenario chooses the mechanism.
    pub name: String,
    /// The version that it was registered with.
    pub version: String,
    /// The parameters by name, defaults included; they are part of a run's digest.
    pub params: Map<String, Json>,
    /// The factory of the mechanism's instances: one for each port, endpoint or switch.
    pub factory: F,
}

/// The mechanisms from outside that a run has.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OutsideMechanisms {
    /// The congestion controller, in place of `transport.kind`.
    pub controller: Option<Outside<MakeController>>,
    /// The congestion controllers by the name of a table of `transports`, in place of its `kind`.
    pub transport_controllers: IndexMap<String, Outside<MakeController>>,
    /// The congestion controllers by workload, in place of `transport.workload`.
    pub workload_controllers: IndexMap<String, Outside<MakeController>>,
    /// The queue disciplines by tier; `host` is the NIC.
    pub disciplines: IndexMap<String, Outside<DisciplineFactory>>,
    /// The path selector, if one is named.
    pub selector: Option<Outside<SelectorFactory>>,
}

impl<F> fmt::Debug for Registered<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}", self.version)
    }
}

impl<F> fmt::Debug for Outside<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.name, self.version, self.params)
    }
}

/// Factories of the same name and version are the same.
impl<F> PartialEq for Outside<F> {
    fn eq(&self, other: &Outside<F>) -> bool {
        (&self.name, &self.version, &self.params) == (&other.name, &other.version, &other.params)
    }
}

impl Registry {
    /// Makes a registry without mechanisms from outside.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Returns whether a mechanism from outside may be called so: lower-case letters, digits, `-` and `_`.
    pub fn may_be_mechanism(name: &str) -> bool {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        !name.is_empty() && name.chars().all(fits)
    }

    /// Returns whether a congestion controller from outside may be called so, as none of ours is and no key of
    /// `transport`.
    pub fn may_be_controller(name: &str) -> bool {
        let is_built_in = Kind::ALL.iter().any(|kind| kind.name() == name);
        let is_key = || name == PRESET || keys_of::<TransportParams>().contains(&name.to_owned());
        Registry::may_be_mechanism(name) && !is_built_in && !is_key()
    }

    /// Registers a congestion controller, which a scenario chooses by `transport.kind = "NAME"` and gives parameters
    /// in the table `transport.NAME`. `make` is called for each end of a connection.
    ///
    /// # Panics
    /// Panics if the name is taken, or is none that a key can have: lower-case letters, digits, `-` and `_`.
    #[must_use]
    pub fn congestion_controller<P: Parameters>(
        mut self,
        name: &str,
        version: &str,
        make: impl Fn(&P) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Registry {
        assert!(Registry::may_be_controller(name), "{name} is taken, or no name of a mechanism");
        let make = Arc::new(make);
        let factory = move |params: Arc<P>| {
            let make = Arc::clone(&make);
            MakeController::new(move || make(&params))
        };
        register(&mut self.controllers, name, version, factory);
        self
    }

    /// Registers a queue discipline, which a scenario gives to ports by `port.TIER.discipline.NAME = {..}`. `make` is
    /// called for each port with the link that it sends on. The port's `buffer` limits the waiting packets.
    ///
    /// # Panics
    /// Panics as [`Registry::congestion_controller`].
    #[must_use]
    pub fn queue_discipline<P: Parameters>(
        mut self,
        name: &str,
        version: &str,
        make: impl Fn(&P, &Link) -> Box<dyn QueueDiscipline> + Send + Sync + 'static,
    ) -> Registry {
        let make = Arc::new(make);
        let factory = move |params: Arc<P>| {
            let make = Arc::clone(&make);
            DisciplineFactory::new(move |link| make(&params, link))
        };
        register(&mut self.disciplines, name, version, factory);
        self
    }

    /// Registers a path selector, which a scenario turns on by `paths.NAME = {..}`. `make` is called once for each
    /// network that is built.
    ///
    /// # Panics
    /// Panics as [`Registry::congestion_controller`].
    #[must_use]
    pub fn path_selector<P: Parameters>(
        mut self,
        name: &str,
        version: &str,
        make: impl Fn(&P) -> Box<dyn SelectPath> + Send + Sync + 'static,
    ) -> Registry {
        assert!(!keys_of::<Paths>().contains(&name.to_owned()), "{name} is taken");
        let make = Arc::new(make);
        let factory = move |params: Arc<P>| {
            let make = Arc::clone(&make);
            SelectorFactory::new(move || make(&params))
        };
        register(&mut self.selectors, name, version, factory);
        self
    }

    /// Whether a path leads to the table of a mechanism that `"off"` removes.
    pub(crate) fn is_mechanism(&self, path: &[String]) -> bool {
        match path {
            [section, _, key] if section == "port" && key == DISCIPLINE => true,
            [section, name] if section == "paths" && self.selectors.contains_key(name) => true,
            _ => TABLES.iter().any(|table| table.is_at(path)),
        }
    }

    /// Takes the mechanisms from outside out of the tree of one run, whose other keys are then keys of a [`Model`].
    pub(crate) fn take(
        &self,
        sources: &ScenarioTexts,
        tree: &mut ValueNode,
        reports: &mut Vec<Report>,
    ) -> OutsideMechanisms {
        let mut taker = Taker { sources, reports };
        let controller = self.take_controller(&mut taker, tree, &["transport"], &["kind"]);
        let workload_controllers = self.take_workload_controllers(&mut taker, tree);
        let mut transport_controllers = IndexMap::new();
        let transports = transports::names(tree);
        for name in &transports {
            let outside = self.take_controller(&mut taker, tree, &[TRANSPORTS, name], &["kind"]);
            transport_controllers.extend(outside.map(|outside| (name.clone(), outside)));
        }
        // The parameters of a controller that no key chooses are kept for a variant that chooses it.
        for name in self.controllers.keys() {
            tree.remove(&["transport", name]);
            transports.iter().for_each(|transport| drop(tree.remove(&[TRANSPORTS, transport, name])));
        }
        let disciplines = self.take_disciplines(&mut taker, tree);
        let selector = self.take_selector(&mut taker, tree);
        OutsideMechanisms { controller, transport_controllers, workload_controllers, disciplines, selector }
    }

    /// Takes the controller that a key of the table at `section` names, if it is registered.
    fn take_controller(
        &self,
        taker: &mut Taker<'_>,
        tree: &mut ValueNode,
        section: &[&str],
        key: &[&str],
    ) -> Option<Outside<MakeController>> {
        let path = &[section, key].concat();
        let kind = tree.at(path).filter(|_| !self.controllers.is_empty())?.clone();
        let name = kind.as_str().filter(|name| Kind::ALL.iter().all(|kind| kind.name() != *name))?;
        tree.remove(path);
        let Some(registered) = self.controllers.get(name) else {
            let built_in = Kind::ALL.iter().map(|kind| kind.name());
            let names: Vec<&str> = built_in.chain(self.controllers.keys().map(String::as_str)).collect();
            let message = format!("\"{name}\" is not one of its values");
            let keys: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
            taker.unknown(&kind, &dotted(path), message, name, &names);
            if let (Some(report), Some(help)) = (taker.reports.last_mut(), unmodelled::help(&keys, name)) {
                report.help = Some(help);
            }
            return None;
        };
        let place = [section, &[name]].concat();
        let table = tree.at(&place).cloned();
        let table = table.unwrap_or_else(|| ValueNode { key: kind.key.clone(), ..ValueNode::empty_table() });
        taker.prepare(&place, name, registered, &table)
    }

    fn take_workload_controllers(
        &self,
        taker: &mut Taker<'_>,
        tree: &mut ValueNode,
    ) -> IndexMap<String, Outside<MakeController>> {
        let table = tree.at(&["transport", WORKLOAD]).and_then(ValueNode::as_table);
        let workloads: Vec<String> = table.map_or_else(Vec::new, |table| table.keys().cloned().collect());
        let take = |workload: String| {
            let outside = self.take_controller(taker, tree, &["transport"], &[WORKLOAD, &workload])?;
            Some((workload, outside))
        };
        workloads.into_iter().filter_map(take).collect()
    }

    fn take_disciplines(
        &self,
        taker: &mut Taker<'_>,
        tree: &mut ValueNode,
    ) -> IndexMap<String, Outside<DisciplineFactory>> {
        let mut taken = IndexMap::new();
        let tiers: Vec<String> = tree
            .get("port")
            .and_then(ValueNode::as_table)
            .map_or_else(Vec::new, |ports| ports.keys().cloned().collect());
        // `port.switch` has been laid below each tier; its errors are reported there.
        let several = tiers.iter().any(|tier| !["host", "switch"].contains(&tier.as_str()));
        for tier in tiers {
            let Some(node) = tree.remove(&["port", &tier, DISCIPLINE]) else { continue };
            if node.as_str() == Some("off") || tier == "switch" && several {
                continue;
            }
            let path = ["port", &tier, DISCIPLINE];
            let empty = Table::new();
            let entries: Vec<(&String, &ValueNode)> = node
                .as_table()
                .unwrap_or(&empty)
                .iter()
                .filter(|(_, inner)| inner.as_str() != Some("off"))
                .collect();
            match entries[..] {
                [] if node.as_table().is_some_and(|table| !table.is_empty()) => {}
                [(name, inner)] => match self.disciplines.get(name) {
                    Some(registered) => {
                        let path = ["port", &tier, DISCIPLINE, name];
                        let outside = taker.prepare(&path, name, registered, inner);
                        taken.extend(outside.map(|outside| (tier.clone(), outside)));
                    }
                    None => {
                        let names: Vec<&str> = self.disciplines.keys().map(String::as_str).collect();
                        let message = format!("there is no queue discipline `{name}`");
                        taker.unknown(
                            &ValueNode { origin: inner.key.clone(), ..inner.clone() },
                            &dotted(&path),
                            message,
                            name,
                            &names,
                        );
                    }
                },
                _ => {
                    let report =
                        Report::at(taker.sources, &node.origin, dotted(&path), "this is not one discipline");
                    taker
                        .reports
                        .push(report.allowed("one name with its table, such as { NAME = {} }, or \"off\""));
                }
            }
        }
        taken
    }

    fn take_selector(&self, taker: &mut Taker<'_>, tree: &mut ValueNode) -> Option<Outside<SelectorFactory>> {
        let mut taken: Option<Outside<SelectorFactory>> = None;
        let own = keys_of::<Paths>();
        let paths = tree.get("paths").and_then(ValueNode::as_table);
        let named: Vec<String> = paths
            .map_or_else(Vec::new, |paths| paths.keys().filter(|key| !own.contains(key)).cloned().collect());
        for name in named {
            if self.selectors.is_empty() {
                // The reader of the model reports an unknown key.
                break;
            }
            let Some(node) = tree.remove(&["paths", &name]) else { continue };
            let path = ["paths", name.as_str()];
            match (self.selectors.get(&name), &taken) {
                _ if node.as_str() == Some("off") && self.selectors.contains_key(&name) => {}
                (None, _) => {
                    let names: Vec<&str> = own
                        .iter()
                        .map(String::as_str)
                        .chain(self.selectors.keys().map(String::as_str))
                        .collect();
                    let place = ValueNode { origin: node.key.clone(), ..node.clone() };
                    taker.unknown(&place, &dotted(&path), format!("unknown key `{name}`"), &name, &names);
                }
                (Some(_), Some(first)) => {
                    let message = format!("`{}` and `{name}` would both choose a packet's path", first.name);
                    let report = Report::at(taker.sources, &node.origin, dotted(&path), message);
                    let allowed = format!("one of them; turn one off: `paths.{name} = \"off\"`");
                    taker.reports.push(report.allowed(allowed));
                }
                (Some(registered), None) => taken = taker.prepare(&path, &name, registered, &node),
            }
        }
        taken
    }
}

fn register<P: Parameters, F: 'static>(
    known: &mut IndexMap<String, Registered<F>>,
    name: &str,
    version: &str,
    factory: impl Fn(Arc<P>) -> F + Send + Sync + 'static,
) {
    assert!(Registry::may_be_mechanism(name), "`{name}` is no name of a mechanism");
    let prepare = move |sources: &ScenarioTexts, table: &ValueNode| {
        let params: P = de::deserialize(sources, table)?;
        params.validate().map_err(|invalid| {
            let path: Vec<&str> = invalid.path().collect();
            let origin = &table.nearest_at(&path).origin;
            let message = format!("{} does not fit", invalid.value);
            vec![Report::at(sources, origin, dotted(&path), message).allowed(invalid.allowed)]
        })?;
        let Ok(Json::Object(written)) = serde_json::to_value(&params) else {
            panic!("the parameters of a mechanism from outside are a table");
        };
        Ok((written, factory(Arc::new(params))))
    };
    let registered = Registered { version: version.to_owned(), prepare: Arc::new(prepare) };
    let before = known.insert(name.to_owned(), registered);
    assert!(before.is_none(), "{name} is taken");
}

/// The keys of a table of the model.
fn keys_of<T: JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T).to_value();
    let properties = schema.get("properties").and_then(Json::as_object);
    properties.map_or_else(Vec::new, |properties| properties.keys().cloned().collect())
}

struct Taker<'a> {
    sources: &'a ScenarioTexts,
    reports: &'a mut Vec<Report>,
}

impl Taker<'_> {
    fn prepare<F>(
        &mut self,
        path: &[&str],
        name: &str,
        registered: &Registered<F>,
        table: &ValueNode,
    ) -> Option<Outside<F>> {
        match (registered.prepare)(self.sources, table) {
            Ok((params, factory)) => {
                Some(Outside { name: name.to_owned(), version: registered.version.clone(), params, factory })
            }
            Err(reports) => {
                let within = |mut report: Report| {
                    let below =
                        if report.key.is_empty() { String::new() } else { format!(".{}", report.key) };
                    report.key = format!("{}{below}", dotted(path));
                    report
                };
                self.reports.extend(reports.into_iter().map(within));
                None
            }
        }
    }

    fn unknown(&mut self, node: &ValueNode, key: &str, message: String, name: &str, names: &[&str]) {
        let allowed = if names.is_empty() { "none: none is registered".to_owned() } else { names.join(", ") };
        let report = Report::at(self.sources, &node.origin, key, message).allowed(allowed);
        self.reports.push(report.maybe_help(did_you_mean(name, names.iter().copied())));
    }
}

impl OutsideMechanisms {
    /// Puts the mechanisms into the tables of a written model, where a scenario has them.
    pub(crate) fn write_into(&self, model: &mut Map<String, Json>) {
        let mut put = |path: &[&str], key: &str, value: Json| {
            let mut table = &mut *model;
            for name in path {
                let inner = table.entry((*name).to_owned()).or_insert_with(|| Json::Object(Map::new()));
                let Json::Object(inner) = inner else { return };
                table = inner;
            }
            table.insert(key.to_owned(), value);
        };
        if let Some(Outside { name, params, .. }) = &self.controller {
            put(&["transport"], "kind", Json::String(name.clone()));
            put(&["transport"], name, Json::Object(params.clone()));
        }
        for (transport, Outside { name, params, .. }) in &self.transport_controllers {
            put(&[TRANSPORTS, transport], "kind", Json::String(name.clone()));
            put(&[TRANSPORTS, transport], name, Json::Object(params.clone()));
        }
        for (workload, Outside { name, params, .. }) in &self.workload_controllers {
            put(&["transport", WORKLOAD], workload, Json::String(name.clone()));
            put(&["transport"], name, Json::Object(params.clone()));
        }
        for (tier, Outside { name, params, .. }) in &self.disciplines {
            let named = [(name.clone(), Json::Object(params.clone()))];
            put(&["port", tier], DISCIPLINE, Json::Object(named.into_iter().collect()));
        }
        if let Some(Outside { name, params, .. }) = &self.selector {
            put(&["paths"], name, Json::Object(params.clone()));
        }
    }

    /// The name and the version of each mechanism, and where a scenario has it.
    pub fn named(&self) -> Vec<(String, &str, &str)> {
        let controller =
            self.controller.iter().map(|own| ("transport".to_owned(), &*own.name, &*own.version));
        let of_transports = self.transport_controllers.iter();
        let of_transports =
            of_transports.map(|(of, own)| (format!("{TRANSPORTS}.{of}"), &*own.name, &*own.version));
        let of_workloads = self.workload_controllers.iter();
        let of_workloads =
            of_workloads.map(|(of, own)| (format!("transport.{of}"), &*own.name, &*own.version));
        let disciplines = self.disciplines.iter();
        let disciplines = disciplines.map(|(tier, own)| (format!("port.{tier}"), &*own.name, &*own.version));
        let selector = self.selector.iter().map(|own| ("paths".to_owned(), &*own.name, &*own.version));
        controller.chain(of_transports).chain(of_workloads).chain(disciplines).chain(selector).collect()
    }
}

/// Writes a model as the tables of a scenario.
pub(crate) fn written(model: &Model) -> Option<Map<String, Json>> {
    let Ok(Json::Object(mut table)) = serde_json::to_value(model) else { return None };
    model.outside.write_into(&mut table);
    transports::write_into(&model.carried_by, &mut table);
    Some(table)
}
