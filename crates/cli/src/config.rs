//! Implements `plimsoll config`, which explains a key of a scenario by the generated reference.

use std::process::ExitCode;

use anyhow::bail;
use plimsoll_scenario::{KeyEntry, Registry, find_keys, keys, nearest_keys};

use crate::output::{self, Done};

/// Explain a key of scenario files, or list all keys by their tables.
#[derive(clap::Args)]
pub struct Args {
    /// The key: `run.seed`, `port.switch.ecn.threshold`, `workload.small.load`, or its last part alone. A `kind`, such
    /// as `topology.kind`, lists the kinds.
    key: Option<String>,
}

pub fn run(args: &Args, _: &Registry) -> Done {
    let all = keys();
    let Some(key) = &args.key else {
        output::print(&grouped(&all))?;
        return Ok(ExitCode::SUCCESS);
    };
    let found = find_keys(&all, key);
    if found.is_empty() {
        match nearest_keys(&all, key).as_slice() {
            [] => bail!("no key is called `{key}`; `plimsoll config` lists all keys"),
            near => bail!("no key is called `{key}`; did you mean {}?", near.join(" or ")),
        }
    }
    let texts: Vec<String> = found.iter().map(|key| explained(key, &all)).collect();
    output::print(&texts.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Explains a key, with the keys of its table if it is one.
fn explained(key: &KeyEntry, all: &[KeyEntry]) -> String {
    let mut text = key.path.clone();
    if let Some(kind) = &key.kind {
        text.push_str(&format!("   (kind = \"{kind}\")"));
    }
    text.push_str(&format!("\n  {}\n  value:   {}\n", key.meaning, key.values));
    if !key.default.is_empty() {
        text.push_str(&format!("  default: {}\n", key.default));
    }
    let below =
        |entry: &&KeyEntry| entry.path.rsplit_once('.').is_some_and(|(table, _)| key.is_called(table));
    let mut keys: Vec<&str> = all.iter().filter(below).map(KeyEntry::last).collect();
    keys.sort_unstable();
    keys.dedup();
    if !keys.is_empty() {
        text.push_str(&output::folded(&keys.join(", "), "  keys:    ", "           "));
    }
    let width = key.choices.iter().map(|(value, _)| value.len()).max().unwrap_or(0);
    for (value, meaning) in &key.choices {
        text.push_str(&output::folded(meaning, &format!("    {value:width$}  "), &" ".repeat(width + 6)));
    }
    text
}

/// Lists all keys under the table that contains them, and the keys of one kind of the table under that kind.
fn grouped(entries: &[KeyEntry]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_grouped_by_table_and_kind_within_the_columns() {
        let entries = keys();
        let text = grouped(&entries);
        assert!(text.contains("\nrun\n  seed, "), "{text}");
        assert!(text.contains("\n  kind = \"rack\": hosts, rate, delay\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= output::COLUMNS), "{text}");
        let keys = entries.iter().filter(|entry| !text.contains(entry.last())).count();
        assert_eq!(keys, 0);
    }
}
