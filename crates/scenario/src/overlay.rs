//! The layers over the file: variants, sweep points and `--set`.

use std::sync::Arc;

use crate::error::{Report, did_you_mean};
use crate::keys::{OUTER_KEYS, TRANSPORTS};
use crate::node::{self, Table, Value, ValueNode, dotted, merge};
use crate::presets;
use crate::registry::Registry;
use crate::source::{ScenarioTexts, SourceLayer, ValueOrigin};

/// One value at one place of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) path: Vec<String>,
    /// Where each key of the path is written; empty where the path is written as one.
    pub(crate) places: Vec<ValueOrigin>,
    pub(crate) node: ValueNode,
}

impl Setting {
    /// The setting of a point of a sweep.
    pub(crate) fn of_sweep(axis: &SweepAxis, value: &ValueNode) -> Setting {
        Setting { path: axis.path.clone(), places: Vec::new(), node: value.clone() }
    }

    /// Where the key at this depth of the path is written.
    fn place(&self, depth: usize) -> &ValueOrigin {
        self.places.get(depth).unwrap_or(&self.node.key)
    }

    fn keys(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }
}

/// What became of a setting.
pub(crate) enum SettingEffect {
    /// The tree holds the new value.
    Done,
    /// It speaks of a parameter of a mechanism that is off here; nothing was changed.
    MechanismOff,
    /// The setting is invalid, for the reason that the report states.
    Wrong(Report),
}

/// Puts a value at its place. A setting addresses a key that the file has or could have: it turns on
/// no mechanism by setting one of its parameters, and it makes no workload by misspelling one.
pub(crate) fn apply(
    sources: &ScenarioTexts,
    registry: &Registry,
    tree: &mut ValueNode,
    setting: &Setting,
) -> SettingEffect {
    let Setting { path, node, .. } = setting;
    let Some((last, parents)) = path.split_last() else { return SettingEffect::Done };
    let mut here = tree;
    for (depth, key) in parents.iter().enumerate() {
        let so_far = &path[..=depth];
        let literal = here.literal();
        let Some(table) = here.as_table_mut() else {
            return SettingEffect::Wrong(not_a_table(sources, setting, &literal, depth));
        };
        if !table.contains_key(key) {
            if registry.is_mechanism(so_far) {
                return SettingEffect::MechanismOff;
            }
            if names_what_exists(so_far) {
                return SettingEffect::Wrong(unknown_name(sources, setting, table, depth));
            }
            let place = setting.place(depth).clone();
            let empty = ValueNode { value: Value::Table(Table::new()), origin: place.clone(), key: place };
            table.insert(key.clone(), empty);
        }
        let Some(child) = table.get_mut(key) else { return SettingEffect::Done };
        if registry.is_mechanism(so_far) && child.as_str() == Some("off") {
            return SettingEffect::MechanismOff;
        }
        here = child;
    }
    let literal = here.literal();
    let Some(table) = here.as_table_mut() else {
        return SettingEffect::Wrong(not_a_table(sources, setting, &literal, parents.len()));
    };
    match table.get_mut(last) {
        Some(existing) => merge(existing, node.clone(), &mut path.clone()),
        None => {
            table.insert(last.clone(), node.clone());
        }
    }
    SettingEffect::Done
}

/// Names in these tables are the user's own.
fn names_what_exists(path: &[String]) -> bool {
    match path {
        [first, _] => ["workload", TRANSPORTS, "variant"].contains(&first.as_str()),
        [first, second, _] => first == "observe" && second == "queue",
        _ => false,
    }
}

fn unknown_name(sources: &ScenarioTexts, setting: &Setting, table: &Table, depth: usize) -> Report {
    let name = &setting.path[depth];
    let what = dotted(&setting.path[..depth]);
    let names: Vec<&str> = table.keys().map(String::as_str).collect();
    let message = format!("there is no {what} `{name}`");
    Report::at(sources, setting.place(depth), dotted(&setting.path), message)
        .allowed(if names.is_empty() { "none: the file has none".to_owned() } else { names.join(", ") })
        .maybe_help(did_you_mean(name, names.iter().copied()))
}

fn not_a_table(sources: &ScenarioTexts, setting: &Setting, literal: &str, depth: usize) -> Report {
    let parent = dotted(&setting.path[..depth]);
    let message = format!("`{parent}` is {literal}, which has no keys");
    Report::at(sources, setting.place(depth), dotted(&setting.path), message)
        .allowed(format!("a value for `{parent}` itself"))
}

/// The error for a setting that applied to no variant.
pub(crate) fn applies_nowhere(sources: &ScenarioTexts, registry: &Registry, setting: &Setting) -> Report {
    let (key, mechanism) = mechanism_of(registry, setting);
    Report::at(
        sources,
        &setting.node.key,
        dotted(&setting.path),
        format!("`{mechanism}` is off in every variant"),
    )
    .allowed("parameters of mechanisms that some variant turns on")
    .help(format!(
        "to turn it on, set the mechanism itself: `{mechanism} = {{ {key} = {} }}`",
        setting.node.literal()
    ))
}

/// The warning for a setting that does not apply to a variant.
pub(crate) fn applies_not_to(
    sources: &ScenarioTexts,
    registry: &Registry,
    setting: &Setting,
    variant: &str,
) -> Report {
    let (_, mechanism) = mechanism_of(registry, setting);
    let message = format!("no effect in variant `{variant}`, where `{mechanism}` is off");
    Report::at(sources, &setting.node.key, dotted(&setting.path), message)
}

fn mechanism_of(registry: &Registry, setting: &Setting) -> (String, String) {
    let keys = setting.keys();
    let end =
        (1..keys.len()).find(|end| registry.is_mechanism(&setting.path[..*end])).unwrap_or(keys.len() - 1);
    (dotted(&keys[end..]), dotted(&keys[..end]))
}

/// The `[variant.NAME]` tables in file order; one named `base` where there is none.
pub(crate) fn variants(
    sources: &ScenarioTexts,
    table: Option<ValueNode>,
    reports: &mut Vec<Report>,
) -> Vec<(Arc<str>, ValueNode)> {
    let base = || vec![(Arc::from("base"), ValueNode::empty_table())];
    let Some(table) = table else { return base() };
    let ValueNode { value: Value::Table(entries), .. } = table else {
        reports.push(
            Report::at(sources, &table.origin, "variant", format!("{} does not fit", table.literal()))
                .allowed("a table for each variant: [variant.NAME]"),
        );
        return base();
    };
    let mut variants = Vec::new();
    for (name, mut node) in entries {
        if node.as_table().is_none() {
            let report = Report::at(
                sources,
                &node.origin,
                format!("variant.{name}"),
                format!("{} does not fit", node.literal()),
            );
            reports.push(report.allowed("a table with the keys that the variant changes"));
            continue;
        }
        for key in OUTER_KEYS.iter().copied().chain(["version"]) {
            if let Some(inner) = node.remove(&[key]) {
                let report = Report::at(
                    sources,
                    &inner.key,
                    format!("variant.{name}.{key}"),
                    format!("a variant has no `{key}`"),
                );
                reports.push(report.allowed(
                    "the tables of a scenario: topology, port, host, transport, workload, run, observe",
                ));
            }
        }
        let name: Arc<str> = Arc::from(name);
        node.relayer(&SourceLayer::Variant(name.clone()));
        variants.push((name, node));
    }
    if variants.is_empty() { base() } else { variants }
}

/// One key of `[sweep]` and its values.
pub(crate) struct SweepAxis {
    pub(crate) path: Vec<String>,
    pub(crate) values: Vec<ValueNode>,
}

/// The axes of `[sweep]` in file order. Keys may be quoted (`"a.b" = [...]`) or plain (`a.b = [...]`).
pub(crate) fn axes(
    sources: &ScenarioTexts,
    table: Option<ValueNode>,
    reports: &mut Vec<Report>,
) -> Vec<SweepAxis> {
    let mut axes = Vec::new();
    let Some(table) = table else { return axes };
    if table.as_table().is_none() {
        let report = Report::at(sources, &table.origin, "sweep", format!("{} does not fit", table.literal()));
        reports.push(report.allowed("a table of dotted keys, each with a list of values"));
        return axes;
    }
    collect_axes(sources, &mut Vec::new(), table, &mut axes, reports);
    axes
}

fn collect_axes(
    sources: &ScenarioTexts,
    path: &mut Vec<String>,
    node: ValueNode,
    axes: &mut Vec<SweepAxis>,
    reports: &mut Vec<Report>,
) {
    let fail = |message: String| {
        let key = format!("sweep.{}", dotted(path));
        Report::at(sources, &node.origin, key, message).allowed("a list of one or more values")
    };
    match node.value {
        Value::Table(table) => {
            for (key, child) in table {
                let Some(mut keys) = node::parse_path(&key) else {
                    let report =
                        Report::at(sources, &child.key, "sweep", format!("{key:?} is not a dotted key"));
                    reports.push(report.allowed("a key of the scenario, such as \"workload.small.load\""));
                    continue;
                };
                let depth = path.len();
                path.append(&mut keys);
                let is_outer = OUTER_KEYS.contains(&path[0].as_str()) || path[0] == "version";
                if is_outer || presets::is_key(path) {
                    let report = Report::at(
                        sources,
                        &child.key,
                        "sweep",
                        format!("`{}` cannot be swept", dotted(path)),
                    );
                    reports.push(report.allowed("a key of a run, such as \"workload.small.load\""));
                } else {
                    collect_axes(sources, path, child, axes, reports);
                }
                path.truncate(depth);
            }
        }
        Value::Array(values) if values.is_empty() => {
            reports.push(fail("there is nothing to sweep".to_owned()))
        }
        Value::Array(mut values) => {
            values.iter_mut().for_each(|value| value.relayer(&SourceLayer::Sweep));
            axes.push(SweepAxis { path: path.clone(), values });
        }
        _ => reports.push(fail(format!("{} is not a list", node.literal()))),
    }
}

/// Returns whether a setting replaces the values of an axis, so that labels of its points would not be true: it sets
/// the swept key itself, or a table that has the key in such a way that no variant keeps a swept value.
pub(crate) fn replaces(
    sources: &ScenarioTexts,
    registry: &Registry,
    setting: &Setting,
    axis: &SweepAxis,
    variants: &[(Arc<str>, ValueNode)],
) -> bool {
    if setting.path == axis.path || !axis.path.starts_with(&setting.path) {
        return setting.path == axis.path;
    }
    let Some(first) = axis.values.first() else { return false };
    let keys: Vec<&str> = axis.path.iter().map(String::as_str).collect();
    // Whether a swept value stays in a variant; `None` where it has no effect anyway.
    let stays = |(_, variant): &(Arc<str>, ValueNode)| {
        let mut tree = variant.clone();
        match apply(sources, registry, &mut tree, &Setting::of_sweep(axis, first)) {
            SettingEffect::Done => {}
            SettingEffect::MechanismOff | SettingEffect::Wrong(_) => return None,
        }
        let swept = tree.at(&keys).cloned();
        apply(sources, registry, &mut tree, setting);
        Some(tree.at(&keys) == swept.as_ref())
    };
    let mut known = variants.iter().filter_map(stays).peekable();
    known.peek().is_some() && !known.any(|stays| stays)
}

/// Lays a setting of a key within swept tables over the tables that have the key, so that labels of points are true.
pub(crate) fn set_within(axis: &mut SweepAxis, setting: &Setting) {
    let Some(inner) = setting.path.strip_prefix(&axis.path[..]) else { return };
    for value in &mut axis.values {
        let found = inner.iter().try_fold(value, |node, key| node.as_table_mut()?.get_mut(key));
        if let Some(node) = found {
            merge(node, setting.node.clone(), &mut setting.path.clone());
        }
    }
}

/// Parses `key=value` of `--set`. The value is TOML; any other value is taken as a text, so that
/// `--set transport.kind=dctcp` needs no second pair of quotes. `place` is where a file has it.
pub(crate) fn parse_set(
    sources: &mut ScenarioTexts,
    argument: &str,
    place: Option<ValueOrigin>,
) -> Result<Setting, Vec<Report>> {
    let parsed = match argument.split_once('=') {
        Some((key, value)) => node::parse_path(key.trim()).map(|path| (key.trim(), value.trim(), path)),
        None => None,
    };
    let Some((key, value, path)) = parsed else {
        let origin = place.unwrap_or_else(|| {
            let source = sources.add("--set", argument);
            ValueOrigin { source, span: 0..argument.len(), layer: SourceLayer::Flag }
        });
        let report = Report::at(sources, &origin, "", "this is not `key=value`");
        return Err(vec![
            report.allowed("a dotted key, =, and a TOML value, such as workload.small.load=0.2"),
        ]);
    };
    let as_toml = format!("{key} = {value}");
    let text = match toml::de::DeTable::parse(&as_toml) {
        Ok(_) => as_toml,
        Err(_) => format!("{key} = {}", node::toml_string(value)),
    };
    let source = sources.add("--set", &text);
    let (mut node, reports) = node::parse(sources, source, &text, &SourceLayer::Flag);
    if !reports.is_empty() {
        return Err(reports);
    }
    let mut places = Vec::with_capacity(path.len());
    for key in &path {
        let child = node.as_table_mut().and_then(|table| table.shift_remove(key));
        node = child.unwrap_or_else(ValueNode::empty_table);
        places.push(node.key.clone());
    }
    if let Some(place) = place {
        let place = ValueOrigin { layer: SourceLayer::Flag, ..place };
        node.move_to(&place);
        places.fill(place);
    }
    Ok(Setting { path, places, node })
}
