//! [`HpccConfig`]: the settings of a run, a key and its values a line.
//!
//! ```text
//! CC_MODE 1                                         # comments, and {remarks} as in config_doc.txt
//! RATE_AI 20Mb/s
//! KMAX_MAP 2 100000000000 1600 400000000000 6400    entries, then a link's rate and its value for each
//! ```
//!
//! The last line of a key counts, and a key without a line has the simulator's default.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_units::Rate;

use super::keys::{Fate, KEYS, Words};
use super::words::ns3_rate;
use crate::error::{ScenarioError, did_you_mean};
use crate::import::Lines;

/// The settings of a run of HPCC's simulator.
#[derive(Debug)]
pub struct HpccConfig<'a> {
    pub(super) lines: Lines<'a>,
    /// The words that follow each key, with their number of entries where there is one.
    values: BTreeMap<&'static str, Vec<&'a str>>,
    /// Keys that the simulator does not have.
    pub(super) unknown: Vec<&'a str>,
    /// Keys that the scenario has taken.
    used: BTreeSet<&'static str>,
}

impl<'a> HpccConfig<'a> {
    /// Reads the settings in `text`, whose file is `name`.
    ///
    /// # Errors
    /// At the first key without enough values, and at an unknown key that is spelled nearly like a known one.
    pub fn read(name: &str, text: &'a str) -> Result<HpccConfig<'a>, Box<ScenarioError>> {
        let mut config = HpccConfig {
            lines: Lines::new(name, text),
            values: BTreeMap::new(),
            unknown: Vec::new(),
            used: BTreeSet::new(),
        };
        while let Some(words) = config.lines.next() {
            let end = words.iter().position(|word| word.starts_with('{')).unwrap_or(words.len());
            let Some((&word, values)) = words[..end].split_first() else { continue };
            let Some(key) = KEYS.iter().find(|key| key.name == word) else {
                if let Some(meant) = did_you_mean(word, KEYS.iter().map(|key| key.name)) {
                    let message = format!("`{word}` is not known; {meant}");
                    return Err(config.lines.error(word, message, "a key of HPCC's config.txt"));
                }
                config.unknown.push(word);
                continue;
            };
            let (needed, form) = match key.words {
                Words::Count(1) => (1, "a value".to_owned()),
                Words::Count(count) => (count, format!("{count} values")),
                Words::Map => {
                    let word = values.first().copied().unwrap_or(word);
                    let entries: usize = config.lines.number(word, "number of entries")?;
                    (1 + entries.saturating_mul(2), format!("{entries} entries, each a rate and a value"))
                }
            };
            let Some(values) = values.get(..needed) else {
                let message =
                    format!("{} after `{word}`", plimsoll_text::counted(values.len() as u64, "word"));
                return Err(config.lines.error(word, message, form));
            };
            config.values.insert(key.name, values.to_vec());
        }
        Ok(config)
    }

    /// Returns the file that `TOPOLOGY_FILE` names, relative to the folder in which the simulator is run.
    pub fn topology_file(&self) -> Option<&'a str> {
        self.values.get("TOPOLOGY_FILE").map(|words| words[0])
    }

    /// Returns the file that `FLOW_FILE` names, relative to the folder in which the simulator is run.
    pub fn flow_file(&self) -> Option<&'a str> {
        self.values.get("FLOW_FILE").map(|words| words[0])
    }

    /// Returns the words of `key` if a line has it, and takes it for the scenario.
    pub(super) fn words(&mut self, key: &'static str) -> Option<Vec<&'a str>> {
        self.used.insert(key);
        self.values.get(key).cloned()
    }

    /// Returns the value of `key`, or the simulator's default, and takes it for the scenario; `None` where neither is.
    pub(super) fn word(&mut self, key: &'static str) -> Option<&'a str> {
        let default = KEYS.iter().find(|known| known.name == key).and_then(|known| match known.fate {
            Fate::Mapped(default) if !default.is_empty() => Some(default),
            _ => None,
        });
        self.words(key).map(|words| words[0]).or(default)
    }

    /// Returns the value of `key` as a number; `what` names it in an error.
    pub(super) fn number<T: std::str::FromStr>(
        &mut self,
        key: &'static str,
        what: &str,
    ) -> Result<Option<T>, Box<ScenarioError>> {
        self.word(key).map(|word| self.lines.number(word, what)).transpose()
    }

    /// Returns whether `key` is on: any number but 0.
    pub(super) fn is_on(&mut self, key: &'static str) -> Result<bool, Box<ScenarioError>> {
        Ok(self.number::<u32>(key, "switch, 0 or 1")?.is_some_and(|value| value != 0))
    }

    /// Returns the value of `key` as a rate.
    pub(super) fn rate(&mut self, key: &'static str) -> Result<Option<Rate>, Box<ScenarioError>> {
        let Some(word) = self.word(key) else { return Ok(None) };
        let rate = ns3_rate(word);
        let error = || self.lines.error(word, format!("`{word}` is no rate above 0"), "such as 50Mb/s");
        rate.map(Some).ok_or_else(error)
    }

    /// Returns the value of `key` for links of `rate`, which its map must have.
    pub(super) fn at_rate(&mut self, key: &'static str, rate: Rate) -> Result<f64, Box<ScenarioError>> {
        let words = self.words(key).unwrap_or_default();
        let entries = words.get(1..).unwrap_or_default().chunks_exact(2);
        let mut found = None;
        for entry in entries {
            if self.lines.number::<u64>(entry[0], "rate in bits a second")? == rate.as_bps() {
                found = Some((entry[1], self.lines.number::<f64>(entry[1], "number")?));
            }
        }
        let (word, value) = found.ok_or_else(|| {
            let message = format!("`{key}` has no entry for links of {rate}, which the topology has");
            self.lines.error(
                words.first().copied().unwrap_or(""),
                message,
                format!("an entry for {}", rate.as_bps()),
            )
        })?;
        if (0.0..1e9).contains(&value) {
            Ok(value)
        } else {
            Err(self.lines.error(word, format!("`{word}` is outside its range"), "0 to 1000000000"))
        }
    }

    /// Returns the line of `key` as a comment, or its default.
    pub(super) fn comment(&self, key: &'static str) -> String {
        match self.values.get(key) {
            Some(words) => format!("{key} {}", words.join(" ")),
            None => match KEYS.iter().find(|known| known.name == key).map(|known| known.fate) {
                Some(Fate::Mapped(default)) if !default.is_empty() => format!("{key} {default}, the default"),
                _ => format!("no {key}"),
            },
        }
    }

    /// Returns the keys of the file that the scenario has not taken, with their words, in the order of the simulator.
    pub(super) fn unused(&self) -> impl Iterator<Item = (&'static super::keys::Key, String)> {
        KEYS.iter().filter(|key| !self.used.contains(key.name)).filter_map(|key| {
            let words = self.values.get(key.name)?;
            Some((key, words.join(" ")))
        })
    }
}
