//! [`ScenarioBuilder`]: from the text of a file, with its includes and layers, to checked runs.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::numbered::{Merged, combinations_of};
use super::twice;
use super::{Overrides, Point};
use crate::error::{Findings, Report, did_you_mean};
use crate::files::{CommandLineKeys, ScenarioFiles, foreign_start};
use crate::keys::{OUTER_KEYS, PRESET, TRANSPORTS};
use crate::model::Model;
use crate::node::{self, Table, Value, ValueNode, merge};
use crate::overlay::{self, Setting, SettingEffect, SweepAxis};
use crate::presets::{self, Presets};
use crate::registry::Registry;
use crate::source::{ScenarioTexts, SourceLayer, ValueOrigin};
use crate::unused::UnusedKeys;
use crate::{check, de, moved, ports, transports};

/// More points than anyone will run.
const POINTS_MAX: usize = 100_000;

const MODEL_KEYS: &[&str] = &[
    "version",
    "title",
    "description",
    PRESET,
    "run",
    "topology",
    "fault",
    "paths",
    "port",
    "host",
    "transport",
    TRANSPORTS,
    "circuits",
    "workload",
    "program",
    "observe",
];

/// The state of reading a file.
#[derive(Default)]
pub(super) struct ScenarioBuilder {
    pub(super) base_dir: PathBuf,
    /// The mechanisms from outside that the file may name.
    registry: Registry,
    pub(super) files: ScenarioFiles,
    /// The keys that the command line adds to the file.
    pub(super) flags: CommandLineKeys,
    /// Where the file itself has the keys of flags.
    pub(super) flag_places: Vec<(&'static str, Range<usize>)>,
    pub(super) sources: ScenarioTexts,
    presets: Presets,
    pub(super) objectives: Vec<(String, String)>,
    pub(super) errors: Findings,
    pub(super) warnings: Findings,
}

impl ScenarioBuilder {
    pub(super) fn new(base_dir: &Path, registry: &Registry) -> ScenarioBuilder {
        ScenarioBuilder {
            base_dir: base_dir.to_owned(),
            registry: registry.clone(),
            files: ScenarioFiles::new(base_dir.to_owned()),
            ..ScenarioBuilder::default()
        }
    }

    /// The points of a file with its layers; none if there are errors.
    pub(super) fn points(&mut self, name: &str, text: &str, overrides: &Overrides) -> Vec<Point> {
        let path = self.base_dir.join(file_name(name));
        let path = path.canonicalize().unwrap_or(path);
        self.files.give(&overrides.files);
        let mut root = self.read(name, text, Path::new(""), &mut vec![path]);
        self.hidden_files(&root);
        if !self.errors.is_empty() {
            return Vec::new();
        }
        let settings = self.settings(&mut root, overrides);
        let replicates = self.replicates(&mut root, overrides);
        let mut reports = Vec::new();
        let variants = overlay::variants(&self.sources, root.remove(&["variant"]), &mut reports);
        let mut axes = overlay::axes(&self.sources, root.remove(&["sweep"]), &mut reports);
        reports.extend(twice::keys(&self.sources, &axes));
        self.objectives(root.remove(&["slo"]));
        self.errors.extend(reports);
        self.outline(&mut root);
        let (of_presets, settings): (Vec<_>, Vec<_>) =
            settings.into_iter().partition(|setting| presets::is_key(&setting.path));
        let variants: Vec<(Arc<str>, ValueNode)> =
            variants.into_iter().map(|(name, over)| self.laid(&root, name, over, &of_presets)).collect();
        self.end_sweeps(&mut axes, &settings, &variants);
        self.nowhere(&settings, &axes, &variants);
        let all = variants.len();
        let variants: Vec<_> = variants.into_iter().filter(|(name, _)| overrides.has(name)).collect();
        let combinations =
            axes.iter().fold(variants.len(), |total, axis| total.saturating_mul(axis.values.len()));
        if combinations.saturating_mul(replicates as usize) > POINTS_MAX {
            let report =
                Report::at(&self.sources, &root.origin, "sweep", format!("more than {POINTS_MAX} runs"));
            self.errors.add(report.allowed("fewer variants, sweep values or replicates"));
            return Vec::new();
        }
        let mut merged = Vec::new();
        for (variant, tree) in &variants {
            for combination in combinations_of(&axes) {
                let run = self.run(variant, tree.clone(), combination, &settings);
                // Of a file with errors nothing runs, and a sweep may have many points.
                if self.errors.is_empty() {
                    merged.extend(run);
                } else {
                    merged.clear();
                }
            }
        }
        self.overridden(&settings, &axes, &variants);
        if self.errors.is_empty() {
            // A variant that is left out may read a file that the others do not.
            if variants.len() == all {
                self.unread_files(&root);
            }
            let mut unused = UnusedKeys::default();
            merged.iter().for_each(|run: &Merged| unused.add(&run.tree, &run.model));
            self.warnings.extend(unused.reports(&self.sources, &self.presets));
            self.errors.extend(twice::values(&self.sources, &axes, merged.iter().map(Merged::digest)));
        }
        self.errors.finish(&self.sources, all);
        self.warnings.finish(&self.sources, all);
        if self.errors.is_empty() { self.number(merged, replicates) } else { Vec::new() }
    }

    /// Lays a variant over the file, and presets below the keys beside them.
    fn laid(
        &mut self,
        root: &ValueNode,
        name: Arc<str>,
        over: ValueNode,
        of_presets: &[Setting],
    ) -> (Arc<str>, ValueNode) {
        let mut tree = root.clone();
        merge(&mut tree, over, &mut Vec::new());
        for setting in of_presets {
            if let SettingEffect::Wrong(report) =
                overlay::apply(&self.sources, &self.registry, &mut tree, setting)
            {
                self.errors.add_for(report, &name);
            }
        }
        for report in self.presets.resolve(&mut self.sources, &mut tree) {
            self.errors.add_for(report, &name);
        }
        (name, tree)
    }

    /// Parses a text and lays it over its include.
    /// `folder` is where it is, relative to the scenario.
    fn read(&mut self, name: &str, text: &str, folder: &Path, open: &mut Vec<PathBuf>) -> ValueNode {
        let source = self.sources.add(name, text);
        let layer = SourceLayer::File(open.len() - 1);
        let (mut tree, reports) = node::parse(&self.sources, source, text, &layer);
        self.errors.extend(reports);
        if let Some(table) = tree.remove(&["files"]) {
            self.embed(table, folder);
        }
        if open.len() == 1 {
            for key in ["set", "replicates"] {
                let place = |node: &ValueNode| (key, node.key.span.start..node.origin.span.end);
                self.flag_places.extend(tree.get(key).map(place));
            }
        }
        let Some(include) = tree.remove(&["include"]) else { return tree };
        let Value::String(file) = &include.value else {
            let report = Report::at(
                &self.sources,
                &include.origin,
                "include",
                format!("{} does not fit", include.literal()),
            );
            self.errors.add(report.allowed("the path of one file, relative to this one"));
            return tree;
        };
        let path = folder.join(file);
        let key = path.to_string_lossy();
        let identity = self.files.identity(&key);
        let fail = |message: String| Report::at(&self.sources, &include.origin, "include", message);
        if open.contains(&identity) || open.len() > INCLUDES_MAX {
            self.errors.add(fail(format!("\"{file}\" includes itself")).allowed("includes without a cycle"));
            return tree;
        }
        match self.files.read(&key) {
            Err(error) => {
                self.errors.add(
                    fail(format!("cannot read \"{file}\": {error}")).allowed("a file relative to this one"),
                );
                tree
            }
            Ok(text) if foreign_start(&text, &[MODEL_KEYS, OUTER_KEYS].concat()).is_some() => {
                let message = format!("\"{file}\" is no part of a scenario: it begins with none of its keys");
                self.errors.add(fail(message).allowed("a TOML file with keys of a scenario"));
                tree
            }
            Ok(text) => {
                let shown =
                    Path::new(name).parent().map_or_else(|| PathBuf::from(file), |parent| parent.join(file));
                open.push(identity);
                let folder = path.parent().unwrap_or(folder);
                let mut below = self.read(&shown.display().to_string(), &text, folder, open);
                open.pop();
                merge(&mut below, tree, &mut Vec::new());
                below
            }
        }
    }

    /// Takes the texts of a file's table `files`.
    fn embed(&mut self, table: ValueNode, folder: &Path) {
        let Value::Table(entries) = table.value else {
            let report = Report::at(&self.sources, &table.origin, "files", "this is no table");
            return self.errors.add(report.allowed(FILES_ALLOWED));
        };
        for (name, mut node) in entries {
            match node.remove(&["text"]).map(|text| text.value) {
                Some(Value::String(text)) if node.as_table().is_some_and(Table::is_empty) => {
                    // Values name files relative to the scenario, includes relative to their own file.
                    let from_here = folder.join(&name).to_string_lossy().into_owned();
                    self.files.embed(name, text.clone());
                    self.files.embed(from_here, text);
                }
                _ => {
                    let key = node::dotted(&["files", &name]);
                    let report = Report::at(&self.sources, &node.key, key, "this is no file");
                    self.errors.add(report.allowed(FILES_ALLOWED));
                }
            }
        }
    }

    /// Reports the given files that the scenario has in its own table.
    fn hidden_files(&mut self, root: &ValueNode) {
        for name in self.files.hidden().map(str::to_owned).collect::<Vec<_>>() {
            let message = format!("\"{name}\" is given, and the scenario has its own file of that name");
            let key = node::dotted(&["files", &name]);
            let report = Report::at(&self.sources, &root.origin, key, message);
            self.errors.add(report.allowed("another name, which a key names: cdf = \"NAME.csv\""));
        }
    }

    /// Reports the given files that no key names.
    fn unread_files(&mut self, root: &ValueNode) {
        for name in self.files.unread() {
            let message = format!("\"{name}\" is given, and no key names that file");
            let key = node::dotted(&["files", &name]);
            let report = Report::at(&self.sources, &root.origin, key, message);
            self.errors.add(report.allowed("a file that the scenario names: cdf = \"NAME.csv\""));
        }
    }

    /// `set` of the file, and after it `--set` and `--seed`. The settings of variants or the sweep
    /// are applied to the file here; the others are returned, for every point.
    fn settings(&mut self, root: &mut ValueNode, overrides: &Overrides) -> Vec<Setting> {
        let mut settings = Vec::new();
        let mut arguments: Vec<(String, Option<ValueOrigin>)> = Vec::new();
        let own = root.remove(&["set"]);
        let items = own.as_ref().map(|own| match &own.value {
            Value::Array(items) => items.iter().map(|item| Some((item.as_str()?.to_owned(), item))).collect(),
            _ => None,
        });
        match items {
            None => {}
            Some(Some(items)) => {
                let items: Vec<(String, &ValueNode)> = items;
                arguments.extend(items.into_iter().map(|(text, item)| (text, Some(item.origin.clone()))));
            }
            Some(None) => {
                let origin = own.as_ref().map_or_else(ValueOrigin::start, |own| own.origin.clone());
                let report = Report::at(&self.sources, &origin, "set", "this is no list of texts");
                self.errors
                    .add(report.allowed(r#"texts as `--set` takes them: ["workload.small.load=0.2"]"#));
            }
        }
        arguments.extend(overrides.set.iter().map(|argument| (argument.clone(), None)));
        if !overrides.set.is_empty() || overrides.seed.is_some() {
            let seed = overrides.seed.map(|seed| format!("run.seed={seed}"));
            self.flags.set = Some(arguments.iter().map(|(text, _)| text.clone()).chain(seed).collect());
        }
        for (argument, place) in arguments {
            match overlay::parse_set(&mut self.sources, &argument, place) {
                Err(reports) => self.errors.extend(reports),
                Ok(setting) if NOT_SET.contains(&setting.path[0].as_str()) => {
                    let key = node::dotted(&setting.path);
                    let report = Report::at(&self.sources, &setting.node.key, key, "this key cannot be set");
                    self.errors.add(report.allowed("in the file itself; `--set` takes all other keys"));
                }
                Ok(setting) if OUTER_KEYS.contains(&setting.path[0].as_str()) => {
                    if let SettingEffect::Wrong(report) =
                        overlay::apply(&self.sources, &self.registry, root, &setting)
                    {
                        self.errors.add(report);
                    }
                }
                Ok(setting) => settings.push(setting),
            }
        }
        if let Some(seed) = overrides.seed {
            let text = seed.to_string();
            let source = self.sources.add("--seed", &text);
            let origin = ValueOrigin { source, span: 0..text.len(), layer: SourceLayer::Flag };
            let node =
                ValueNode { value: Value::Integer(i128::from(seed)), origin: origin.clone(), key: origin };
            let path = vec!["run".to_owned(), "seed".to_owned()];
            settings.push(Setting { path, places: Vec::new(), node });
        }
        settings
    }

    /// Takes out the axes of keys that the settings give another value, and sets keys within swept tables: every point
    /// has the value that its label names.
    fn end_sweeps(
        &self,
        axes: &mut Vec<SweepAxis>,
        settings: &[Setting],
        variants: &[(Arc<str>, ValueNode)],
    ) {
        let replaces = |setting: &Setting, axis: &SweepAxis| {
            overlay::replaces(&self.sources, &self.registry, setting, axis, variants)
        };
        axes.retain(|axis| !settings.iter().any(|setting| replaces(setting, axis)));
        for axis in axes {
            settings.iter().for_each(|setting| overlay::set_within(axis, setting));
        }
    }

    /// Runs of each point: the command line's number, else the file's `replicates`.
    fn replicates(&mut self, root: &mut ValueNode, overrides: &Overrides) -> u32 {
        let own = root.remove(&["replicates"]);
        if overrides.replicates > 0 {
            let known =
                own.as_ref().is_some_and(|own| own.value == Value::Integer(overrides.replicates.into()));
            self.flags.replicates =
                Some(overrides.replicates).filter(|number| !known && (*number > 1 || own.is_some()));
            return overrides.replicates;
        }
        match own.as_ref().map(|own| (&own.value, own)) {
            None => 1,
            Some((Value::Integer(number), _)) if (1..=i128::from(REPLICATES_MAX)).contains(number) => {
                *number as u32
            }
            Some((_, own)) => {
                let message = format!("{} does not fit", own.literal());
                let report = Report::at(&self.sources, &own.origin, "replicates", message);
                self.errors.add(report.allowed(format!("1 to {REPLICATES_MAX}")));
                1
            }
        }
    }

    /// The table `slo`: a text for each name.
    fn objectives(&mut self, table: Option<ValueNode>) {
        let Some(table) = table else { return };
        let allowed = r#"a text for each name: query = "p99(query) < 1ms""#;
        let Value::Table(entries) = table.value else {
            let report = Report::at(&self.sources, &table.origin, "slo", "this is no table");
            return self.errors.add(report.allowed(allowed));
        };
        for (name, node) in entries {
            match &node.value {
                Value::String(text) => self.objectives.push((name, text.clone())),
                _ => {
                    let key = node::dotted(&["slo", &name]);
                    let message = format!("{} does not fit", node.literal());
                    let report = Report::at(&self.sources, &node.origin, key, message);
                    self.errors.add(report.allowed(allowed));
                }
            }
        }
    }

    /// Unknown and missing tables at the top, where the keys of the file and of the model meet.
    fn outline(&mut self, root: &mut ValueNode) {
        for key in ["version", "title", "topology"] {
            if root.get(key).is_none() {
                let message = format!("the key `{key}` is missing");
                self.errors.add(Report::at(&self.sources, &root.origin, "", message).without_value());
            }
        }
        let known = |key: &str| MODEL_KEYS.contains(&key) || OUTER_KEYS.contains(&key);
        let Some(table) = root.as_table_mut() else { return };
        let unknown: Vec<String> = table.keys().filter(|key| !known(key)).cloned().collect();
        for key in unknown {
            let Some(node) = table.shift_remove(&key) else { continue };
            let names = || MODEL_KEYS.iter().chain(OUTER_KEYS).copied();
            let report =
                Report::at(&self.sources, &node.key, node::quoted_key(&key), format!("unknown key `{key}`"));
            self.errors.add(
                report
                    .allowed(names().collect::<Vec<_>>().join(", "))
                    .maybe_help(did_you_mean(&key, names())),
            );
        }
    }

    /// One variant at one sweep point.
    fn run(
        &mut self,
        variant: &Arc<str>,
        mut tree: ValueNode,
        sweep: Vec<Setting>,
        settings: &[Setting],
    ) -> Option<Merged> {
        let before = self.errors.len();
        for setting in sweep.iter().chain(settings) {
            match overlay::apply(&self.sources, &self.registry, &mut tree, setting) {
                SettingEffect::Done => {}
                SettingEffect::MechanismOff => {
                    let report = overlay::applies_not_to(&self.sources, &self.registry, setting, variant);
                    self.warnings.add(report);
                }
                SettingEffect::Wrong(report) => self.errors.add_for(report, variant),
            }
        }
        for report in self.presets.at_rate(&self.sources, &mut tree) {
            self.errors.add_for(report, variant);
        }
        let named = transports::names(&tree);
        let sections = named.iter().map(|name| vec![TRANSPORTS, name]).chain([vec!["transport"]]);
        for warning in sections.flat_map(|section| moved::resolve(&self.sources, &mut tree, &section)) {
            self.warnings.add_for(warning, variant);
        }
        transports::resolve(&mut tree);
        let mut reports = Vec::new();
        ports::resolve(&self.sources, &mut tree, &mut reports);
        let mut own = tree.clone();
        let carried_by = transports::take(&self.sources, &mut own, &mut reports);
        let outside = self.registry.take(&self.sources, &mut own, &mut reports);
        let model = match de::deserialize::<Model>(&self.sources, &own) {
            Err(mut errors) => {
                reports.append(&mut errors);
                None
            }
            Ok(mut model) => {
                (model.outside, model.carried_by) = (outside, carried_by);
                let mut checked = check::check(&self.sources, &tree, &mut model, &self.files);
                reports.append(&mut checked.errors);
                checked.warnings.into_iter().for_each(|warning| self.warnings.add_for(warning, variant));
                Some(model)
            }
        };
        let failed = !reports.is_empty() || self.errors.len() > before;
        reports.into_iter().for_each(|report| self.errors.add_for(report, variant));
        let model = model.filter(|_| !failed)?;
        Some(Merged { variant: variant.to_string(), sweep, tree: Arc::new(tree), model })
    }

    /// Checks the values that a sweep overrides: no run has them, so a mistake in one would show only when the sweep is
    /// taken away.
    fn overridden(&mut self, settings: &[Setting], axes: &[SweepAxis], variants: &[(Arc<str>, ValueNode)]) {
        for (variant, tree) in variants {
            for axis in axes {
                let path: Vec<&str> = axis.path.iter().map(String::as_str).collect();
                let Some(node) = tree.at(&path) else { continue };
                let first = |axis: &SweepAxis| Some(Setting::of_sweep(axis, axis.values.first()?));
                let others = axes.iter().filter(|other| other.path != axis.path).filter_map(first).collect();
                // Errors elsewhere are known from the runs.
                let known = (std::mem::take(&mut self.errors), std::mem::take(&mut self.warnings));
                self.run(variant, tree.clone(), others, settings);
                let errors = std::mem::replace(&mut self.errors, known.0);
                self.warnings = known.1;
                for mut report in errors.reports().filter(|report| report.is_about(&self.sources, node)) {
                    report
                        .notes
                        .push("the sweep has other values; this one has to be right all the same".to_owned());
                    self.errors.add_for(report, variant);
                }
            }
        }
    }

    /// A setting that no variant has a use for is an error; the warnings for each then go.
    fn nowhere(&mut self, settings: &[Setting], axes: &[SweepAxis], variants: &[(Arc<str>, ValueNode)]) {
        let swept = axes.iter().filter_map(|axis| Some(Setting::of_sweep(axis, axis.values.first()?)));
        for setting in settings.iter().cloned().chain(swept) {
            let off = |tree: &ValueNode| {
                let mut tree = tree.clone();
                matches!(
                    overlay::apply(&self.sources, &self.registry, &mut tree, &setting),
                    SettingEffect::MechanismOff
                )
            };
            if variants.iter().all(|(_, tree)| off(tree)) {
                let report = overlay::applies_nowhere(&self.sources, &self.registry, &setting);
                self.errors.add(report);
            }
        }
    }
}

const FILES_ALLOWED: &str =
    "a table for each file, with its text: [files.\"sizes.csv\"] and text = '''...'''";

/// More replicates than points may be.
const REPLICATES_MAX: u32 = 100_000;

/// Keys that `set` does not reach: they have been read before.
const NOT_SET: &[&str] = &["include", "set", "files"];

/// Longer chains of includes are taken for a cycle.
const INCLUDES_MAX: usize = 16;

fn file_name(name: &str) -> &std::ffi::OsStr {
    Path::new(name).file_name().unwrap_or_default()
}
