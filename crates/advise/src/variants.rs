//! The scenario of a search: the base as it is, and a variant for each candidate over it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plimsoll_experiment::Slo;
use plimsoll_scenario::{Overrides, Point, Registry, Scenario, ScenarioError, with_files};
use plimsoll_units::{Bytes, Span};

use crate::candidates::Candidate;

/// The name of the variant without a change.
pub const BASE: &str = "as it is";

/// The largest frame of Ethernet in bytes, by which lengths in packets are written in bytes.
const FRAME: u64 = 1_500;

/// The base of a search: one point of the user's scenario.
#[derive(Clone, Debug)]
pub struct AdviseBase {
    /// The settings of the point, one key a line, without the length of a run.
    settings: String,
    title: String,
    /// The length of a run, in words of the scenario.
    pub duration: Option<String>,
    files: BTreeMap<String, String>,
    registry: Registry,
    /// The workloads that objectives are about.
    pub objectives: Vec<String>,
}

impl AdviseBase {
    /// Takes the settings of `point`, which may name the mechanisms of `registry`.
    pub fn of(registry: &Registry, scenario: &Scenario, point: &Point, slos: &[Slo]) -> AdviseBase {
        let mut settings = settings(point);
        let duration = value(&settings, "run.duration");
        if duration.is_some() {
            settings = settings
                .lines()
                .filter(|line| !line.starts_with("run.duration = "))
                .fold(String::new(), |text, line| text + line + "\n");
        }
        let mut objectives: Vec<String> = Vec::new();
        for slo in slos {
            // A measure such as `p99(queue.client)` is about no workload.
            if point.model.workload.contains_key(&slo.workload) && !objectives.contains(&slo.workload) {
                objectives.push(slo.workload.clone());
            }
        }
        AdviseBase {
            settings,
            title: scenario.title().to_owned(),
            duration,
            files: files(scenario.self_contained()),
            registry: registry.clone(),
            objectives,
        }
    }

    /// Writes a scenario of these variants, whose runs last `duration`; each variant is a name with its table's lines.
    fn text(&self, title: &str, duration: Option<&str>, variants: &[(String, String)]) -> String {
        let mut text = format!("title = {}\n{}", quoted(title), self.settings);
        text.extend(duration.map(|duration| format!("run.duration = {duration}\n")));
        for (name, lines) in variants {
            text.push_str(&format!("\n[variant.{}]\n{lines}", quoted(name)));
        }
        with_files(&text, &self.files)
    }

    /// Checks a scenario of the base and these variants, with runs of `length`.
    ///
    /// # Errors
    /// Returns the problem with it.
    pub fn scenario(
        &self,
        length: Option<Span>,
        variants: &[(String, String)],
    ) -> Result<Scenario, Vec<ScenarioError>> {
        let all: Vec<(String, String)> =
            std::iter::once((BASE.to_owned(), String::new())).chain(variants.iter().cloned()).collect();
        let duration = length.map(|length| format!("\"{}us\"", length.as_us_f64().ceil()));
        let text = self.text(&self.title, duration.as_deref().or(self.duration.as_deref()), &all);
        let overrides = Overrides { replicates: 1, ..Overrides::default() };
        Scenario::parse_from(&self.registry, "advise.toml", &text, Path::new("."), &overrides)
    }

    /// Returns the title of the scenario.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Writes the scenario of one variant, as a file of its own with the user's run length.
    pub fn alone(&self, name: &str, lines: &str) -> String {
        self.text(
            &format!("{}, with {name}", self.title),
            self.duration.as_deref(),
            &[(name.to_owned(), lines.to_owned())],
        )
    }

    /// Writes the lines of a candidate's variant.
    pub fn lines(&self, candidate: &Candidate) -> String {
        let mut text = String::new();
        text.extend(candidate.preset.iter().map(|preset| format!("preset = {}\n", quoted(preset))));
        flatten(&mut text, &mut Vec::new(), &candidate.set);
        for scale in &candidate.scale {
            let today = value(&self.settings, &scale.key).and_then(|today| times(&today, scale.times));
            text.extend(today.map(|value| format!("{} = {value}\n", scale.key)));
        }
        if let Some(priority) = candidate.priority {
            text.extend(
                self.objectives.iter().map(|name| format!("host.priority.{} = {priority}\n", dotted(name))),
            );
        }
        text
    }

    /// Returns the tuned forms of a candidate: name and lines, which follow from the settings of its own `point`.
    pub fn tuned(&self, candidate: &Candidate, lines: &str, point: &Point) -> Vec<(String, String)> {
        let settings = settings(point);
        let mut found = Vec::new();
        for tune in candidate.tune.iter().take(2) {
            let each: Vec<String> = match tune.key.contains("{objective}") {
                true => self
                    .objectives
                    .iter()
                    .map(|name| tune.key.replace("{objective}", &dotted(name)))
                    .collect(),
                false => vec![tune.key.clone()],
            };
            let scaled = tune.times.iter().filter_map(|factor| times(&value(&settings, &tune.key)?, *factor));
            for value in tune.values.iter().cloned().chain(scaled) {
                let short = tune.key.rsplit('.').find(|part| !part.starts_with('{')).unwrap_or(&tune.key);
                let name = format!("{}, {short} {}", candidate.name, value.trim_matches('"'));
                let set: String = each.iter().map(|key| format!("{key} = {value}\n")).collect();
                let kept: String = lines
                    .lines()
                    .filter(|line| !each.iter().any(|key| line.starts_with(&format!("{key} = "))))
                    .map(|line| format!("{line}\n"))
                    .collect();
                found.push((name, kept + &set));
            }
        }
        found
    }
}

/// Returns the settings of a point as a file, one key a line. Two things differ from the settings of its digest: these
/// leave former defaults out and have former names, in the transport and in `port.host.order`, which are taken from the
/// canonical form; and where all tiers of switches have one value, it is that of `port.switch`, so that a candidate may
/// change it.
pub fn settings(point: &Point) -> String {
    let canonical: toml::Table = toml::from_str(&point.canonical()).unwrap_or_default();
    let ports = canonical.get("port").and_then(toml::Value::as_table);
    let by_digest = |key: &str| key.starts_with("transport.") || key == "port.host.order";
    let mut text = String::new();
    let mut known = BTreeSet::new();
    for line in point.settings().lines() {
        let table =
            line.strip_prefix('[').and_then(|line| line.strip_suffix(']')).filter(|key| !key.contains('='));
        // A tier without any key says nothing.
        let table = table.filter(|key| !(key.starts_with("port.") && key.matches('.').count() == 1));
        let Some((key, value)) = table.map(|key| (key, "{}")).or(line.split_once(" = ")) else { continue };
        let key = ports.map_or_else(|| key.to_owned(), |ports| of_all_switches(ports, key));
        if !by_digest(&key) && known.insert(key.clone()) {
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    if let Some(toml::Value::Table(transport)) = canonical.get("transport") {
        flatten(&mut text, &mut vec!["transport".to_owned()], transport);
    }
    let order = ports.and_then(|ports| ports.get("host")?.get("order"));
    text.extend(order.map(|order| format!("port.host.order = {order}\n")));
    text
}

/// Returns the key of `port.switch` for a key of one tier, if all tiers of switches have the same value.
fn of_all_switches(ports: &toml::Table, key: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let ["port", tier, rest @ ..] = &parts[..] else { return key.to_owned() };
    let at = |tier: &str| rest.iter().try_fold(ports.get(tier)?, |value, part| value.get(*part));
    let mut tiers = ports.keys().filter(|tier| *tier != "host");
    let is_of_all = *tier != "host" && tiers.all(|other| at(other).is_some() && at(other) == at(tier));
    if is_of_all { format!("port.switch.{}", rest.join(".")) } else { key.to_owned() }
}

/// Returns the value of a key in settings, as TOML.
pub fn value(settings: &str, key: &str) -> Option<String> {
    let start = format!("{key} = ");
    settings.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
}

/// Multiplies a quantity, such as `"20 packets"` or `0.5`; `None` for anything else.
fn times(value: &str, factor: f64) -> Option<String> {
    let text = value.trim_matches('"');
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scaled = number.parse::<f64>().ok()? * factor;
    if unit.is_empty() {
        return Some(format!("{scaled}"));
    }
    Some(format!("\"{}{unit}\"", scaled.round().max(1.0)))
}

/// Returns a length of a queue in bytes: `30 packets`, or `16KB`.
pub fn bytes(text: &str) -> Option<u64> {
    let packets = text.strip_suffix(" packets").and_then(|count| count.parse::<u64>().ok());
    packets.map_or_else(|| text.parse::<Bytes>().ok().map(Bytes::get), |count| count.checked_mul(FRAME))
}

/// Writes the values of a table as dotted keys.
fn flatten(text: &mut String, path: &mut Vec<String>, table: &toml::Table) {
    for (key, value) in table {
        path.push(key.clone());
        match value {
            toml::Value::Table(table) if !table.is_empty() => flatten(text, path, table),
            value => text.push_str(&format!(
                "{} = {value}\n",
                path.iter().map(|key| dotted(key)).collect::<Vec<_>>().join(".")
            )),
        }
        path.pop();
    }
}

/// Writes a key of TOML, in quotes where it needs them.
fn dotted(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if is_bare { key.to_owned() } else { quoted(key) }
}

/// Writes a word as a string of TOML.
fn quoted(word: &str) -> String {
    toml::Value::String(word.to_owned()).to_string()
}

/// Returns the files that a self-contained scenario has in its table `files`.
fn files(text: &str) -> BTreeMap<String, String> {
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    let files = table.get("files").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let text = |(name, file): (String, toml::Value)| Some((name, file.get("text")?.as_str()?.to_owned()));
    files.into_iter().filter_map(text).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_multiplied_with_their_unit() {
        assert_eq!(times("\"20 packets\"", 0.5).as_deref(), Some("\"10 packets\""));
        assert_eq!(times("\"16KB\"", 2.0).as_deref(), Some("\"32KB\""));
        assert_eq!(times("0.5", 0.5).as_deref(), Some("0.25"));
        assert_eq!(times("\"unlimited\"", 2.0), None);
        assert_eq!((bytes("20 packets"), bytes("16KB"), bytes("many")), (Some(30_000), Some(16_000), None));
    }

    #[test]
    fn a_variant_has_the_keys_of_its_candidate_over_the_base() {
        let text = plimsoll_shipped::text("quickstart").unwrap();
        let scenario = Scenario::parse("quickstart", &text, Path::new(".")).unwrap();
        let slos = [Slo::parse("p99(small) < 1ms").unwrap()];
        let base = AdviseBase::of(&Registry::default(), &scenario, &scenario.points()[0], &slos);
        for candidate in crate::candidates::candidates() {
            let lines = base.lines(&candidate);
            let made = base.scenario(None, &[(candidate.name.clone(), lines.clone())]);
            // The quickstart has its buffers in packets, which pauses cannot share out.
            let Ok(made) = made else {
                assert_eq!(candidate.name, "detail");
                continue;
            };
            // The base is the first variant of the file, and nothing else.
            let (ours, theirs) = (&made.points()[0].model, &scenario.points()[0].model);
            assert_eq!(
                (&ours.transport, &ours.port, &ours.host),
                (&theirs.transport, &theirs.port, &theirs.host)
            );
            assert_eq!((&ours.workload, &ours.topology), (&theirs.workload, &theirs.topology));
            assert_eq!(made.points().len(), 2);
            // A level of QJump may hold no packet of this scenario, which its search leaves out.
            let tuned = base.tuned(&candidate, &lines, &made.points()[1]);
            let valid =
                tuned.iter().filter(|one| base.scenario(None, std::slice::from_ref(one)).is_ok()).count();
            assert!(valid + 1 >= tuned.len(), "{}: {tuned:?}", candidate.name);
            let alone = base.alone(&candidate.name, &lines);
            assert_eq!(Scenario::parse("best.toml", &alone, Path::new(".")).unwrap().points().len(), 1);
        }
        let ecn =
            crate::candidates::candidates().into_iter().find(|one| one.name == "small buffers").unwrap();
        assert_eq!(base.lines(&ecn), "port.switch.buffer = \"125 packets\"\n");
    }
}
