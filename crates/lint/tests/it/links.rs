//! The links of the documentation lead somewhere: every relative link of a page names a file that exists and, after a
//! `#`, a heading of it; and the table of contents of the book has every page.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use plimsoll_lint::links;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the documentation: the pages at the root and those below `docs`, by their paths from the root.
fn pages() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new(), PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            if root().join(&path).is_dir() && folder.starts_with("docs") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(root().join(&path)).unwrap();
                found.insert(path.to_str().unwrap().to_owned(), text);
            }
        }
    }
    found
}

/// Returns the ids that a page's headings have on GitHub and in the book.
fn headings(text: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        let Some(title) = line.strip_prefix('#').filter(|_| !in_block) else { continue };
        let title = title.trim_start_matches('#').trim().to_lowercase();
        // A link in a heading counts by its text.
        let (first, rest) = title.split_once("](").unwrap_or((&title, ""));
        let after = rest.split("](").map(|part| part.split_once(')').map_or(part, |(_, after)| after));
        let title = first.to_owned() + &after.collect::<String>();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let id: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let numbered = (1..).map(|number| format!("{id}-{number}"));
        let free = std::iter::once(id.clone()).chain(numbered).find(|id| !ids.contains(id));
        ids.insert(free.unwrap());
    }
    ids
}

/// Returns a path without `.` and `..`; `None` where it leaves the repository.
fn tidied(path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// Returns the error in a link of a page, if there is one.
fn wrong(pages: &BTreeMap<String, String>, page: &str, to: &str) -> Option<String> {
    if to.contains("://") || to.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = to.split_once('#').map_or((to, None), |(path, heading)| (path, Some(heading)));
    let folder = Path::new(page).parent().unwrap();
    let file = if path.is_empty() { Some(page.to_owned()) } else { tidied(&folder.join(path)) };
    let Some(file) = file.filter(|file| root().join(file).exists()) else {
        return Some(format!("{page}: {to}: there is no such file"));
    };
    let heading = heading?;
    let text = pages.get(&file).cloned().unwrap_or_default();
    if headings(&text).contains(heading) {
        return None;
    }
    Some(format!("{page}: {to}: {file} has no such heading"))
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let all = pages.iter().flat_map(|(page, text)| links(text).into_iter().map(move |to| (page, to)));
    let all: Vec<(&String, String)> = all.collect();
    assert!(all.len() > 300, "only {} links are found", all.len());
    let wrong: Vec<String> = all.iter().filter_map(|(page, to)| wrong(&pages, page, to)).collect();
    assert!(wrong.is_empty(), "{} links lead nowhere:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_book_has_every_page_once() {
    let pages = pages();
    let contents = links(&pages["docs/SUMMARY.md"]);
    let listed: BTreeSet<String> = contents.iter().map(|to| format!("docs/{to}")).collect();
    assert_eq!(listed.len(), contents.len(), "docs/SUMMARY.md names a page twice");
    let written: BTreeSet<String> =
        pages.into_keys().filter(|page| page.starts_with("docs/") && page != "docs/SUMMARY.md").collect();
    let missing: Vec<&String> = written.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
}

#[test]
fn links_and_headings_are_found() {
    let text = "# One `two`: three\n[a](b.md#c) ![p](p.svg)\n```sh\n# no\n[x](y)\n```\n`[z](w)` <img src=\"i.svg\">\n\
                ## One `two`: three\n## [Four](f.md) five\n";
    assert_eq!(links(text), ["b.md#c", "p.svg", "f.md", "i.svg"]);
    let found: Vec<String> = headings(text).into_iter().collect();
    assert_eq!(found, ["four-five", "one-two-three", "one-two-three-1"]);
    let pages = BTreeMap::from([("README.md".to_owned(), text.to_owned())]);
    for (to, is_wrong) in [
        ("https://example.org/none", false),
        ("#one-two-three-1", false),
        ("docs/start.md", false),
        ("#six", true),
        ("docs/none.md", true),
        ("../outside.md", true),
    ] {
        assert_eq!(wrong(&pages, "README.md", to).is_some(), is_wrong, "{to}");
    }
}
