//! Implements `plimsoll config`, which explains a key of a scenario by the generated reference.

use std::process::ExitCode;

use anyhow::bail;
use plimsoll_scenario::Registry;

use crate::output::{self, Done};

/// Explain a key of scenario files, or list all keys by their tables.
#[derive(clap::Args)]
pub struct Args {
    /// The key: `run.seed`, `port.switch.ecn.threshold`, `workload.small.load`, or its last part alone. A `kind`, such
    /// as `topology.kind`, lists the kinds.
    key: Option<String>,
}

/// A row of the reference, which describes one key.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Entry {
    /// The dotted path, with `*` and `NAME` for user-defined parts.
    path: String,
    /// The `kind` of the table that contains the key.
    kind: Option<String>,
    values: String,
    default: String,
    meaning: String,
    /// The values that have an explanation of their own, such as the kinds of a topology: value and explanation.
    choices: Vec<(String, String)>,
}

/// The placeholder table for a distribution of sizes or times.
const SIZE: &str = "SIZE";
const TIME: &str = "TIME";

pub fn run(args: &Args, _: &Registry) -> Done {
    let entries = entries(&plimsoll_scenario::reference());
    let Some(key) = &args.key else {
        output::print(&grouped(&entries))?;
        return Ok(ExitCode::SUCCESS);
    };
    let found = find(&entries, key);
    if found.is_empty() {
        match nearest(&entries, key).as_slice() {
            [] => bail!("no key is called `{key}`; `plimsoll config` lists all keys"),
            near => bail!("no key is called `{key}`; did you mean {}?", near.join(" or ")),
        }
    }
    let texts: Vec<String> = found.iter().map(|entry| entry.text(&entries)).collect();
    output::print(&texts.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

impl Entry {
    fn text(&self, all: &[Entry]) -> String {
        let mut text = self.path.clone();
        if let Some(kind) = &self.kind {
            text.push_str(&format!("   (kind = \"{kind}\")"));
        }
        text.push_str(&format!("\n  {}\n  value:   {}\n", self.meaning, self.values));
        if !self.default.is_empty() {
            text.push_str(&format!("  default: {}\n", self.default));
        }
        let below =
            |entry: &&Entry| entry.path.rsplit_once('.').is_some_and(|(table, _)| self.is_called(table));
        let mut keys: Vec<&str> = all.iter().filter(below).map(Entry::last).collect();
        keys.sort_unstable();
        keys.dedup();
        if !keys.is_empty() {
            text.push_str(&output::folded(&keys.join(", "), "  keys:    ", "           "));
        }
        let width = self.choices.iter().map(|(value, _)| value.len()).max().unwrap_or(0);
        for (value, meaning) in &self.choices {
            text.push_str(&output::folded(meaning, &format!("    {value:width$}  "), &" ".repeat(width + 6)));
        }
        text
    }

    /// Returns whether a key, as it is written in a scenario, is this one.
    fn is_called(&self, key: &str) -> bool {
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

    fn last(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }
}

/// Lists all keys under the table that contains them, and those of one kind of the table under that kind.
fn grouped(entries: &[Entry]) -> String {
    let mut groups: Vec<(&str, Option<&str>, Vec<&str>)> = Vec::new();
    for entry in entries {
        let table = entry.path.rsplit_once('.').map_or("", |(table, _)| table);
        let kind = entry.kind.as_deref();
        match groups.iter_mut().find(|group| (group.0, group.1) == (table, kind)) {
            Some((_, _, keys)) => keys.push(entry.last()),
            None => groups.push((table, kind, vec![entry.last()])),
        }
    }
    // The kinds of a table follow its common keys.
    let tables: Vec<&str> = groups.iter().map(|group| group.0).collect();
    groups.sort_by_key(|group| (tables.iter().position(|table| *table == group.0), group.1.is_some()));
    let mut text = "Keys of a scenario by table; `plimsoll config TABLE.KEY` explains one.\n".to_owned();
    for (table, kind, keys) in groups {
        let keys = keys.join(", ");
        match kind {
            Some(kind) => text.push_str(&output::folded(&keys, &format!("  kind = \"{kind}\": "), "    ")),
            None if table.is_empty() => {
                text.push_str(&format!("\ntop level\n{}", output::folded(&keys, "  ", "  ")))
            }
            None => text.push_str(&format!("\n{table}\n{}", output::folded(&keys, "  ", "  "))),
        }
    }
    text
}

/// Returns the entry of the whole key, or else all keys with this last part.
fn find<'a>(entries: &'a [Entry], key: &str) -> Vec<&'a Entry> {
    // The keys of a variant are those of the file.
    let key = match key.strip_prefix("variant.").and_then(|rest| rest.split_once('.')) {
        Some((_, rest)) => rest,
        None => key,
    };
    let exact: Vec<&Entry> = entries.iter().filter(|entry| entry.is_called(key)).collect();
    if exact.is_empty() { entries.iter().filter(|entry| entry.last() == key).collect() } else { exact }
}

/// Returns up to three similar keys.
fn nearest(entries: &[Entry], key: &str) -> Vec<String> {
    let key = key.to_lowercase();
    let mut near: Vec<(usize, &str)> = Vec::new();
    for entry in entries {
        // `NAME` and `*` stand for the user's words, which are not compared.
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
        for candidate in [path.join("."), entry.last().to_owned()] {
            let distance = strsim::damerau_levenshtein(&key, &candidate.to_lowercase());
            if distance <= 1 + candidate.len().min(key.len()) / 4
                && !near.iter().any(|(_, p)| *p == entry.path)
            {
                near.push((distance, &entry.path));
            }
        }
    }
    near.sort_by_key(|(distance, _)| *distance);
    near.iter().take(3).map(|(_, path)| format!("`{path}`")).collect()
}

/// Parses the reference: a heading names a table, the rows below it its keys, and a list below `Values of` explains the
/// values of one of them. The kinds of a table are the values of its `kind`.
fn entries(reference: &str) -> Vec<Entry> {
    let (mut table, mut kind) = (String::new(), None);
    let mut entries: Vec<Entry> = Vec::new();
    // The entry whose values the lines explain, and whether the next line of text explains the last of them.
    let (mut explained, mut continues) = (None, false);
    for line in reference.lines() {
        if let Some(heading) = line.strip_prefix("##") {
            let heading = heading.trim_start_matches('#').trim();
            let (name, of_kind) = match heading.split_once(", kind = ") {
                Some((name, kind)) => (name, Some(kind.trim_matches('"').to_owned())),
                None => (heading, None),
            };
            table = match name {
                "The file" => String::new(),
                "Distribution of sizes" => SIZE.to_owned(),
                "Distribution of times" => TIME.to_owned(),
                name => name.trim_matches('`').to_owned(),
            };
            (explained, continues) = (None, of_kind.is_some());
            if let Some(kind) = &of_kind {
                let place = kinds_of(&mut entries, &table);
                entries[place].choices.push((kind.clone(), String::new()));
                explained = Some(place);
            }
            kind = of_kind;
        } else if let Some(row) = line.strip_prefix("| `") {
            (explained, continues) = (None, false);
            let cells: Vec<String> = row.split(" | ").map(plain).collect();
            if let [key, values, default, meaning] = cells.as_slice() {
                let path = if table.is_empty() { key.clone() } else { format!("{table}.{key}") };
                entries.push(Entry {
                    path,
                    kind: kind.clone(),
                    values: values.clone(),
                    default: default.clone(),
                    meaning: meaning.clone(),
                    choices: Vec::new(),
                });
            }
        } else if let Some(key) = line.strip_prefix("Values of `") {
            let path = format!("{table}.{}", key.trim_end_matches(":").trim_end_matches('`'));
            explained = entries.iter().position(|entry| entry.path == path && entry.kind == kind);
            continues = false;
        } else if let (Some(place), Some((value, meaning))) =
            (explained, line.strip_prefix("* `").and_then(|rest| rest.split_once("`: ")))
        {
            entries[place].choices.push((value.trim_matches('"').to_owned(), plain(meaning)));
            continues = true;
        } else if let (Some(place), true, false) = (explained, continues, line.starts_with('|')) {
            let (_, meaning) = entries[place].choices.last_mut().expect("a value precedes its explanation");
            meaning.push_str(&format!(" {}", plain(line)));
        }
    }
    entries
}

/// Returns the place of the entry of a table's `kind`, which is made where the table has none yet.
fn kinds_of(entries: &mut Vec<Entry>, table: &str) -> usize {
    let path = format!("{table}.kind");
    entries.iter().position(|entry| entry.path == path).unwrap_or_else(|| {
        entries.push(Entry {
            path,
            kind: None,
            values: "one of these".to_owned(),
            default: "required".to_owned(),
            meaning: "The kind, which decides the other keys of the table.".to_owned(),
            choices: Vec::new(),
        });
        entries.len() - 1
    })
}

/// Returns a cell without its Markdown marks.
fn plain(cell: &str) -> String {
    cell.trim_end_matches(" |").replace("<br>", "\n  ").replace('`', "").replace("\\|", "|").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_as_one_writes_them() {
        let entries = entries(&plimsoll_scenario::reference());
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
            let found = find(&entries, key);
            assert!(found.iter().any(|entry| entry.path == path), "{key}: {found:?}");
        }
        let loads = find(&entries, "workload.small.load");
        assert!(loads.len() > 1 && loads.iter().all(|entry| entry.kind.is_some()), "{loads:?}");
    }

    #[test]
    fn a_kind_lists_the_kinds_with_a_line_each() {
        let entries = entries(&plimsoll_scenario::reference());
        for (key, value, meaning) in [
            ("topology.kind", "leaf-spine", "Leaves with hosts, each connected to every spine."),
            ("workload.small.kind", "rpc", "Open-loop requests of one client to many servers"),
            ("transport.kind", "dctcp", "DCTCP, which cuts the window"),
            ("workload.small.service.kind", "lognormal", ""),
        ] {
            let found = find(&entries, key);
            let [entry] = found[..] else { panic!("{key}: {found:?}") };
            let choice = entry.choices.iter().find(|choice| choice.0 == value);
            assert!(choice.is_some_and(|choice| choice.1.contains(meaning)), "{key}: {entry:?}");
            assert!(entry.choices.iter().all(|(_, meaning)| !meaning.trim().is_empty()), "{entry:?}");
        }
        let headings = plimsoll_scenario::reference().matches("### `workload.NAME`, kind = ").count();
        assert_eq!(find(&entries, "workload.small.kind")[0].choices.len(), headings);
    }

    #[test]
    fn keys_are_grouped_by_table_and_kind_within_the_columns() {
        let entries = entries(&plimsoll_scenario::reference());
        let text = grouped(&entries);
        assert!(text.contains("\nrun\n  seed, "), "{text}");
        assert!(text.contains("\n  kind = \"rack\": hosts, rate, delay\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= output::COLUMNS), "{text}");
        let keys = entries.iter().filter(|entry| !text.contains(entry.last())).count();
        assert_eq!(keys, 0);
    }

    #[test]
    fn misspelt_keys_have_a_nearest() {
        let entries = entries(&plimsoll_scenario::reference());
        for (key, path) in [
            ("run.sed", "`run.seed`"),
            ("port.switch.ecn.treshold", "`port.*.ecn.threshold`"),
            ("min_rtto", "`transport.min_rto`"),
        ] {
            assert!(nearest(&entries, key).contains(&path.to_owned()), "{key}: {:?}", nearest(&entries, key));
        }
        assert!(nearest(&entries, "colour_of_the_cables").is_empty());
    }

    #[test]
    fn every_entry_says_something() {
        for entry in entries(&plimsoll_scenario::reference()) {
            assert!(!entry.meaning.is_empty() && !entry.values.is_empty(), "{entry:?}");
        }
    }
}
