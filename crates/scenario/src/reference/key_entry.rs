//! [`KeyEntry`]: one key of the reference, and how a key is found by its name.

/// A key of a scenario file, or of one kind of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyEntry {
    /// The dotted path, with `*` and `NAME` for user-defined parts.
    pub path: String,
    /// The `kind` of the table that contains the key.
    pub kind: Option<String>,
    /// The type of the key's values, or the list of allowed ones.
    pub values: String,
    /// The default; `required` where there is none, empty where the key may be missing.
    pub default: String,
    /// The explanation of the key, from its doc comment.
    pub meaning: String,
    /// The values that have an explanation of their own, such as the kinds of a topology: value and explanation.
    pub choices: Vec<(String, String)>,
}

/// The placeholder table for a distribution of sizes.
pub(super) const SIZE: &str = "SIZE";
/// The placeholder table for a distribution of times.
pub(super) const TIME: &str = "TIME";

impl KeyEntry {
    /// Returns the entry of a table's `kind`, which is made where the table has none yet.
    pub(super) fn of_kinds<'a>(entries: &'a mut Vec<KeyEntry>, table: &str) -> &'a mut KeyEntry {
        let path = joined(table, "kind");
        let place = entries.iter().position(|entry| entry.path == path).unwrap_or_else(|| {
            entries.push(KeyEntry {
                path,
                kind: None,
                values: "one of these".to_owned(),
                default: "required".to_owned(),
                meaning: "The kind, which decides the other keys of the table.".to_owned(),
                choices: Vec::new(),
            });
            entries.len() - 1
        });
        &mut entries[place]
    }

    pub(super) fn add_choice(&mut self, value: &str, meaning: &str) {
        self.choices.push((value.to_owned(), plain(meaning)));
    }

    /// Returns whether a key, as it is written in a scenario, is this one.
    pub fn is_called(&self, key: &str) -> bool {
        let (mine, theirs): (Vec<&str>, Vec<&str>) =
            (self.path.split('.').collect(), key.split('.').collect());
        if let [table @ (SIZE | TIME), key] = mine[..] {
            let holders: &[&str] =
                if table == SIZE { &["size", "request", "response"] } else { &["service"] };
            return matches!(theirs[..], [.., holder, last] if last == key && holders.contains(&holder));
        }
        mine.len() == theirs.len()
            && mine.iter().zip(&theirs).all(|(mine, theirs)| mine == theirs || ["*", "NAME"].contains(mine))
    }

    /// Returns the last part of the path.
    pub fn last(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }
}

/// Returns the entry of the whole key, or else all keys with this last part.
pub fn find_keys<'a>(entries: &'a [KeyEntry], key: &str) -> Vec<&'a KeyEntry> {
    // A variant has the keys of the file.
    let key = match key.strip_prefix("variant.").and_then(|rest| rest.split_once('.')) {
        Some((_, rest)) => rest,
        None => key,
    };
    let exact: Vec<&KeyEntry> = entries.iter().filter(|entry| entry.is_called(key)).collect();
    if exact.is_empty() { entries.iter().filter(|entry| entry.last() == key).collect() } else { exact }
}

/// Returns up to three similar keys: first those with the same last part, of which tables are missing or misspelt.
pub fn nearest_keys(entries: &[KeyEntry], key: &str) -> Vec<String> {
    let key = key.to_lowercase();
    let mut near: Vec<(bool, usize, &str)> = Vec::new();
    let last = key.rsplit('.').next().unwrap_or_default();
    for entry in entries {
        // `NAME` and `*` match the user's words, which are not compared.
        let words: Vec<&str> = key.split('.').collect();
        let path: Vec<&str> = entry
            .path
            .split('.')
            .enumerate()
            .map(|(place, word)| match word {
                "*" | "NAME" => words.get(place).copied().unwrap_or(word),
                word => word,
            })
            .collect();
        let is_elsewhere = entry.last() != last;
        for candidate in [path.join("."), entry.last().to_owned()] {
            let distance = strsim::damerau_levenshtein(&key, &candidate.to_lowercase());
            if (!is_elsewhere || distance <= 1 + candidate.len().min(key.len()) / 4)
                && !near.iter().any(|(_, _, p)| *p == entry.path)
            {
                near.push((is_elsewhere, distance, &entry.path));
            }
        }
    }
    near.sort_by_key(|(is_elsewhere, distance, _)| (*is_elsewhere, *distance));
    near.iter().take(3).map(|(_, _, path)| format!("`{path}`")).collect()
}

/// Returns the path of a key in a table, or at the top level.
pub(super) fn joined(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

/// Returns a text without its Markdown marks.
pub(super) fn plain(text: &str) -> String {
    text.replace("<br>", "\n  ").replace('`', "").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{keys, reference};

    #[test]
    fn keys_are_found_as_one_writes_them() {
        let entries = keys();
        for (key, path) in [
            ("run.seed", "run.seed"),
            ("seed", "run.seed"),
            ("port.switch.ecn.threshold", "port.*.ecn.threshold"),
            ("port.leaf.buffer", "port.*.buffer"),
            ("variant.HULL.host.pacer", "host.pacer"),
            ("min_rto", "transport.min_rto"),
            ("title", "title"),
            ("workload.small.response.sigma", "SIZE.sigma"),
            ("workload.small.service.mean", "TIME.mean"),
            ("observe.queue.client.every", "observe.queue.NAME.every"),
        ] {
            let found = find_keys(&entries, key);
            assert!(found.iter().any(|entry| entry.path == path), "{key}: {found:?}");
        }
        let loads = find_keys(&entries, "workload.small.load");
        assert!(loads.len() > 1 && loads.iter().all(|entry| entry.kind.is_some()), "{loads:?}");
    }

    #[test]
    fn a_kind_lists_the_kinds_with_a_line_each() {
        let entries = keys();
        for (key, value, meaning) in [
            ("topology.kind", "leaf-spine", "Leaves with hosts, each connected to every spine."),
            ("workload.small.kind", "rpc", "Open-loop requests of one client to many servers"),
            ("transport.kind", "dctcp", "DCTCP, which cuts the window"),
            ("workload.small.service.kind", "lognormal", ""),
        ] {
            let found = find_keys(&entries, key);
            let [entry] = found[..] else { panic!("{key}: {found:?}") };
            let choice = entry.choices.iter().find(|choice| choice.0 == value);
            assert!(choice.is_some_and(|choice| choice.1.contains(meaning)), "{key}: {entry:?}");
            assert!(entry.choices.iter().all(|(_, meaning)| !meaning.trim().is_empty()), "{entry:?}");
        }
        let headings = reference().matches("### `workload.NAME`, kind = ").count();
        assert_eq!(find_keys(&entries, "workload.small.kind")[0].choices.len(), headings);
    }

    #[test]
    fn misspelt_keys_have_a_nearest() {
        let entries = keys();
        for (key, path) in [
            ("run.sed", "`run.seed`"),
            ("port.switch.ecn.treshold", "`port.*.ecn.threshold`"),
            ("min_rtto", "`transport.min_rto`"),
            ("port.lossless", "`port.*.lossless`"),
            ("prot.switch.trim.service", "`port.*.trim.service`"),
        ] {
            assert!(
                nearest_keys(&entries, key).contains(&path.to_owned()),
                "{key}: {:?}",
                nearest_keys(&entries, key)
            );
        }
        assert_eq!(nearest_keys(&entries, "port.lossless")[0], "`port.*.lossless`");
        assert!(nearest_keys(&entries, "colour_of_the_cables").is_empty());
    }

    /// A text with a pattern is no table, and has no section.
    #[test]
    fn a_text_is_no_table() {
        let entries = keys();
        let [service] = find_keys(&entries, "port.switch.trim.service")[..] else { panic!("one key") };
        assert_eq!(service.values, "text");
        let text = reference();
        let sections: Vec<&str> = text.split("\n## ").collect();
        let empty = sections.iter().filter(|section| section.trim().lines().count() < 2);
        assert_eq!(empty.collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn every_entry_says_something() {
        for entry in keys() {
            assert!(!entry.meaning.is_empty() && !entry.values.is_empty(), "{entry:?}");
        }
    }
}
