//! Candidates: mechanisms that could raise a line, the capabilities that each needs of a fabric, and its settings. All
//! are data, in `candidates/`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use plimsoll_scenario::did_you_mean;
use serde::Deserialize;

/// One change of a scenario that may raise its line.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Candidate {
    /// The name, which is also that of its variant.
    pub name: String,
    /// A description of one line.
    pub what: String,
    /// The preset of its variant, if any.
    pub preset: Option<String>,
    /// The capabilities that the fabric needs.
    pub needs: Vec<String>,
    /// Who pays for it, in words.
    pub costs: String,
    /// The processor time that it takes at hosts, in words, by measurements on the kernel.
    pub processor: String,
    /// The keys of its variant.
    pub set: toml::Table,
    /// Keys that are a multiple of their value in the scenario.
    pub scale: Vec<ScaledKey>,
    /// The priority of the workloads that objectives are about.
    pub priority: Option<u8>,
    /// The keys that are tuned if it is the best; the first two count.
    pub tune: Vec<Tune>,
    /// The parts of a host policy that turn it on.
    pub policy: Vec<String>,
    /// The settings of switches that turn it on.
    pub switch: Vec<String>,
    /// The settings of hosts beside the policy.
    pub hosts: Vec<String>,
}

impl Candidate {
    /// Returns the combination of this candidate, a preset, with a single mechanism. Nothing of it is tuned.
    pub fn with(self, other: Candidate) -> Candidate {
        let joined = |mut all: Vec<String>, more: Vec<String>| {
            all.extend(more);
            let mut known = BTreeSet::new();
            all.retain(|name| known.insert(name.clone()));
            all
        };
        Candidate {
            name: format!("{}{AND}{}", self.name, other.name),
            what: format!("{}; {}", self.what, other.what),
            costs: format!("{}; {}", self.costs, other.costs),
            processor: format!("{}; {}", self.processor, other.processor),
            needs: joined(self.needs, other.needs),
            policy: joined(self.policy, other.policy),
            switch: joined(self.switch, other.switch),
            hosts: joined(self.hosts, other.hosts),
            priority: self.priority.or(other.priority),
            tune: Vec::new(),
            ..self
        }
    }
}

/// The word between the names of a combination.
pub const AND: &str = " + ";

/// A key that is a multiple of its value in the scenario.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaledKey {
    /// The dotted key of the scenario.
    pub key: String,
    /// The factor of the value in the scenario.
    pub times: f64,
}

/// A key that is tuned: other values, or multiples of the candidate's own.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tune {
    /// The dotted key, with `{objective}` for the workloads of the objectives.
    pub key: String,
    /// The values to try, as TOML.
    pub values: Vec<String>,
    /// The factors of the candidate's own value to try.
    pub times: Vec<f64>,
}

/// A template of settings, with an optional part for each workload that an objective is about.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Template {
    /// The text, with `{key}` for the value of a key.
    pub text: String,
    /// The part for each workload, as `{objective}`.
    pub each: String,
}

/// The templates of settings, by their names.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Templates {
    /// The parts of a host policy.
    pub policy: BTreeMap<String, Template>,
    /// The settings of switches.
    pub switch: BTreeMap<String, Template>,
    /// The settings of hosts beside the policy.
    pub hosts: BTreeMap<String, Template>,
}

#[derive(Deserialize)]
struct CandidateFile {
    candidate: Vec<Candidate>,
}

#[derive(Deserialize)]
struct CapabilityFile {
    capabilities: BTreeMap<String, String>,
}

/// Parses a file that is part of this crate.
fn own<T: for<'a> Deserialize<'a>>(text: &str) -> T {
    toml::from_str(text).expect("tests read every file of `candidates/`")
}

static CAPABILITIES: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| own::<CapabilityFile>(include_str!("../candidates/capabilities.toml")).capabilities);

static TEMPLATES: LazyLock<Templates> = LazyLock::new(|| own(include_str!("../candidates/settings.toml")));

/// Returns the templates of settings.
pub fn templates() -> &'static Templates {
    &TEMPLATES
}

/// Returns all candidates: every preset, then the single mechanisms.
pub fn candidates() -> Vec<Candidate> {
    let mut all = own::<CandidateFile>(include_str!("../candidates/presets.toml")).candidate;
    let described: BTreeSet<String> = all.iter().map(|candidate| candidate.name.clone()).collect();
    let others = plimsoll_scenario::presets().map(|(name, _)| name).filter(|name| !described.contains(*name));
    all.extend(others.map(|name| Candidate {
        name: name.to_owned(),
        what: format!("the preset `{name}`"),
        preset: Some(name.to_owned()),
        costs: "not described".to_owned(),
        processor: "not known".to_owned(),
        ..Candidate::default()
    }));
    all.extend(own::<CandidateFile>(include_str!("../candidates/mechanisms.toml")).candidate);
    all
}

/// The capabilities of a fabric: all, or the ones that `--have` names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Have {
    named: Option<BTreeSet<String>>,
    /// The number of strict priorities.
    queues: u32,
}

/// A word of `--have` that does not name a capability.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("invalid value \"{word}\" for --have: expected some of {}{}", capabilities(), hint(word))]
pub struct UnknownCapability {
    /// The word as it was given.
    pub word: String,
}

fn hint(word: &str) -> String {
    did_you_mean(word, CAPABILITIES.keys().map(String::as_str))
        .map_or_else(String::new, |hint| format!("; {hint}"))
}

/// Writes the capabilities as `--have` takes them.
pub fn capabilities() -> String {
    let names: Vec<&str> = CAPABILITIES.keys().map(String::as_str).collect();
    format!("`{}`, `N queues`", names.join("`, `"))
}

impl Have {
    /// Reads `ecn, 8 queues, linux hosts`; without a text the fabric has everything.
    ///
    /// # Errors
    /// Returns the first word that does not name a capability, or the text if it has no words.
    pub fn parse(text: Option<&str>) -> Result<Have, UnknownCapability> {
        let Some(text) = text else { return Ok(Have::default()) };
        if text.split(',').all(|word| word.trim().is_empty()) {
            return Err(UnknownCapability { word: text.to_owned() });
        }
        let mut have = Have { named: Some(BTreeSet::new()), queues: 1 };
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let word = word.to_lowercase();
            match (queues(&word), &mut have.named) {
                (Some(count), _) => have.queues = count,
                (None, Some(named)) if CAPABILITIES.contains_key(&word) => drop(named.insert(word)),
                _ => return Err(UnknownCapability { word }),
            }
        }
        Ok(have)
    }

    /// Returns whether everything was assumed.
    pub fn is_assumed(&self) -> bool {
        self.named.is_none()
    }

    /// Returns the needs of a candidate that the fabric does not have.
    pub fn lacks<'a>(&self, candidate: &'a Candidate) -> Vec<&'a str> {
        let Some(named) = &self.named else { return Vec::new() };
        let has =
            |need: &str| queues(need).map_or_else(|| named.contains(need), |count| count <= self.queues);
        candidate.needs.iter().map(String::as_str).filter(|need| !has(need)).collect()
    }
}

/// Reads the number of strict priorities from `8 queues`.
fn queues(word: &str) -> Option<u32> {
    word.strip_suffix(" queues")?.trim().parse().ok().filter(|count| (1..=64).contains(count))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_valid_and_names_what_exists() {
        let (all, templates) = (candidates(), templates());
        for (name, _) in plimsoll_scenario::presets() {
            assert!(all.iter().any(|candidate| candidate.preset.as_deref() == Some(name)), "{name}");
        }
        let names: BTreeSet<&str> = all.iter().map(|candidate| candidate.name.as_str()).collect();
        assert_eq!(names.len(), all.len(), "names are unique");
        for candidate in &all {
            for need in &candidate.needs {
                assert!(queues(need).is_some() || CAPABILITIES.contains_key(need), "{need}");
            }
            assert!(candidate.policy.iter().all(|name| templates.policy.contains_key(name)));
            assert!(candidate.switch.iter().all(|name| templates.switch.contains_key(name)));
            assert!(candidate.hosts.iter().all(|name| templates.hosts.contains_key(name)));
            assert!(!candidate.what.is_empty() && !candidate.costs.is_empty() && candidate.tune.len() <= 2);
        }
    }

    #[test]
    fn have_restricts_the_candidates() {
        let all = candidates();
        let of = |have: &str| -> Vec<String> {
            let have = Have::parse(Some(have)).unwrap();
            all.iter().filter(|c| have.lacks(c).is_empty()).map(|c| c.name.clone()).collect()
        };
        assert_eq!(of("linux hosts"), ["linux", "per-flow NICs"]);
        assert_eq!(of("ECN, linux hosts"), ["dctcp", "linux", "per-flow NICs", "ECN"]);
        assert!(of("8 queues, linux hosts").contains(&"qjump".to_owned()));
        assert!(!of("4 queues, linux hosts").contains(&"qjump".to_owned()));
        let everything = Have::parse(None).unwrap();
        assert!(all.iter().all(|candidate| everything.lacks(candidate).is_empty()));
    }

    #[test]
    fn an_unknown_capability_is_an_error_that_names_the_known_ones() {
        let said = Have::parse(Some("ecn, linux host")).unwrap_err().to_string();
        assert!(
            said.contains("\"linux host\"") && said.contains("`pfc`") && said.contains("did you mean"),
            "{said}"
        );
        assert!(Have::parse(Some("no queues")).is_err());
        let said = Have::parse(Some(" , ")).unwrap_err().to_string();
        assert!(
            said.starts_with("invalid value \" , \" for --have: expected some of `adaptive paths`"),
            "{said}"
        );
    }
}
