//! The files that turn the best candidate on: a host policy, settings of switches and hosts, and its scenario.

use std::collections::BTreeMap;

use plimsoll_scenario::model::Model;

use crate::advice::{Advice, RankedCandidate};
use crate::candidates::{Template, templates};
use crate::prepare::PreparedAdvice;
use crate::variants::{bytes, value};

/// The files that turn a candidate on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CandidateFiles {
    /// `policy.toml` for `plimsoll host`, if the candidate has a part at hosts that a policy can do.
    pub policy: Option<String>,
    /// `settings.md`: settings of switches and hosts, in words and as snippets.
    pub settings: String,
    /// `best.toml`: the scenario with the candidate.
    pub scenario: String,
}

/// The values that templates name.
struct Values<'a> {
    settings: String,
    model: Model,
    objectives: &'a [String],
    priority: Option<u8>,
}

impl CandidateFiles {
    /// Fills in the templates of the best candidate; `None` where nothing is better than the scenario as it is.
    pub fn of(prepared: &PreparedAdvice, advice: &Advice) -> Option<CandidateFiles> {
        advice.best().and_then(|best| CandidateFiles::one(prepared, advice, best))
    }

    /// Fills in the templates of a candidate.
    pub fn one(prepared: &PreparedAdvice, advice: &Advice, best: &RankedCandidate) -> Option<CandidateFiles> {
        let (candidate, lines) = prepared.find(&best.name)?;
        let (settings, model) = prepared.settings(&best.name)?;
        let values =
            Values { settings, model, objectives: &prepared.base.objectives, priority: candidate.priority };
        let filled = |known: &BTreeMap<String, Template>, names: &[String]| -> Vec<String> {
            names.iter().filter_map(|name| Some(values.fill(known.get(name)?))).collect()
        };
        let parts = templates();
        let policy = filled(&parts.policy, &candidate.policy);
        let policy = (!policy.is_empty()).then(|| {
            format!(
                "# {}: hosts. `plimsoll host policy.toml` prints what would change; docs/host.md has the keys.\n\
                 # Devices, networks and members are examples: replace them by those of your hosts.\nversion = 1\n\n{}",
                best.name,
                policy.join("\n")
            )
        });
        let mut sections = filled(&parts.switch, &candidate.switch);
        let hosts = filled(&parts.hosts, &candidate.hosts);
        if sections.is_empty() {
            sections.push("Switches need nothing.\n".to_owned());
        }
        let mut settings = format!(
            "# {}\n\n{}, for {}. Values are those of the scenario; try them on one switch and one host first.\n\n\
             ## Switches\n\n{}\n## Hosts\n\n",
            best.name,
            candidate.what,
            advice.objectives,
            sections.join("\n")
        );
        if policy.is_some() {
            settings.push_str("`policy.toml` beside this file is for `plimsoll host`.\n");
        }
        if hosts.is_empty() && policy.is_none() {
            settings.push_str("Nothing that `plimsoll host` or a setting of Linux could turn on.\n");
        }
        settings.push_str(&hosts.join("\n"));
        settings.push_str(&format!(
            "\n## Costs\n\nWho pays: {}. Host processors: {}.\n",
            best.costs, best.processor
        ));
        Some(CandidateFiles { policy, settings, scenario: prepared.base.alone(&best.name, &lines) })
    }
}

impl Values<'_> {
    fn fill(&self, template: &Template) -> String {
        let mut text = self.replaced(&template.text);
        for objective in self.objectives.iter().filter(|_| !template.each.is_empty()) {
            let priority = value(&self.settings, &format!("host.priority.{objective}"));
            let priority =
                priority.or(self.priority.map(|priority| priority.to_string())).unwrap_or_default();
            let each = template.each.replace("{objective}", objective).replace("{priority}", &priority);
            text.push_str(&self.replaced(&each));
        }
        text
    }

    /// Replaces `{key}` and `{key:bytes}` by their values; braces around anything else stay.
    fn replaced(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            rest = &rest[start..];
            let end = rest.find('}').unwrap_or(0);
            let key = rest.get(1..end).unwrap_or_default();
            let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || "._:".contains(c));
            if is_key {
                filled.push_str(&self.value(key));
                rest = &rest[end + 1..];
            } else {
                filled.push('{');
                rest = &rest[1..];
            }
        }
        filled + rest
    }

    /// Returns the value of a key, or the key itself in angle brackets where the scenario has no value for it.
    fn value(&self, key: &str) -> String {
        if key == "hosts" {
            return self.model.topology.host_count().to_string();
        }
        let (key, in_bytes) = key.strip_suffix(":bytes").map_or((key, false), |key| (key, true));
        let found = value(&self.settings, key).map(|value| value.trim_matches('"').to_owned());
        let found =
            found.and_then(|value| if in_bytes { Some(bytes(&value)?.to_string()) } else { Some(value) });
        found.unwrap_or_else(|| format!("<{key}>"))
    }
}
