//! [`UnusedKeys`]: keys of transports that a scenario sets and that have no effect in any of its runs.
//!
//! Variants share the base's tables, so a key is unused only if no run has a use for it at the place where it is
//! written.

use std::ops::Range;

use indexmap::IndexMap;
use plimsoll_mechanisms::transports::unused_keys;

use crate::error::Report;
use crate::keys::TRANSPORTS;
use crate::model::Model;
use crate::node::{ValueNode, dotted};
use crate::presets::Presets;
use crate::source::{ScenarioTexts, ValueOrigin};

/// The keys of transports that were seen, by the place where they are written.
#[derive(Default)]
pub(crate) struct UnusedKeys(IndexMap<(usize, Range<usize>), SeenKey>);

struct SeenKey {
    origin: ValueOrigin,
    path: Vec<String>,
    /// Some run has a use for it.
    is_used: bool,
    /// The key or table that is unused, and the setting that would give it an effect.
    rule: (&'static str, &'static str),
}

impl UnusedKeys {
    /// Takes note of the keys of a run, whose values are in `tree`.
    pub(crate) fn add(&mut self, tree: &ValueNode, model: &Model) {
        if !model.outside.workload_controllers.is_empty() {
            // A controller from outside may read any key.
            return;
        }
        let named = model.transports.iter().map(|(name, params)| (vec![TRANSPORTS, name.as_str()], params));
        for (section, params) in [(vec!["transport"], &model.transport)].into_iter().chain(named) {
            let Some(table) = tree.at(&section) else { continue };
            let rules: Vec<_> = unused_keys(params).iter().map(|rule| (rule.key, rule.needs)).collect();
            let mut path: Vec<String> = section.iter().map(|key| (*key).to_owned()).collect();
            self.walk(table, &mut path, section.len(), &rules);
        }
    }

    /// Takes note of the values below `node`, which is at `path`; `section` is the length of the transport's own path.
    fn walk(
        &mut self,
        node: &ValueNode,
        path: &mut Vec<String>,
        section: usize,
        rules: &[(&'static str, &'static str)],
    ) {
        if let Some(table) = node.as_table() {
            for (key, child) in table {
                path.push(key.clone());
                self.walk(child, path, section, rules);
                path.pop();
            }
            return;
        }
        let inner = dotted(&path[section..]);
        let is_of =
            |key: &str| inner.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let rule = rules.iter().find(|(key, _)| is_of(key));
        let place = (node.key.source, node.key.span.clone());
        let seen = self.0.entry(place).or_insert_with(|| SeenKey {
            origin: node.key.clone(),
            path: path.clone(),
            is_used: false,
            rule: rule.copied().unwrap_or_default(),
        });
        seen.is_used |= rule.is_none();
    }

    /// Returns a warning for each key without a use, or for all of them that are in one unused table. Keys of presets
    /// are as their authors wrote them.
    pub(crate) fn reports(self, sources: &ScenarioTexts, presets: &Presets) -> Vec<Report> {
        let mut groups: IndexMap<_, Vec<SeenKey>> = IndexMap::new();
        for ((source, _), seen) in self.0 {
            if !seen.is_used && !presets.has_text(source) {
                groups.entry((source, seen.rule, seen.origin.layer.note())).or_default().push(seen);
            }
        }
        groups.into_iter().map(|((_, (_, needs), _), keys)| report(sources, needs, &keys)).collect()
    }
}

/// The warning for keys that one setting would give an effect.
fn report(sources: &ScenarioTexts, needs: &str, keys: &[SeenKey]) -> Report {
    let (first, others) = (&keys[0], &keys[1..]);
    let others: Vec<String> =
        others.iter().filter_map(|key| Some(format!("`{}`", key.path.last()?))).collect();
    let message = match others.is_empty() {
        true => "it has no effect in any run".to_owned(),
        false => format!("it has no effect in any run, and neither has {}", others.join(", ")),
    };
    let help = format!("remove it, or set {needs}");
    Report::at(sources, &first.origin, dotted(&first.path), message).help(help)
}
