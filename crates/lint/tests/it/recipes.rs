//! The recipes of CONTRIBUTING.md name files that exist, and no more of them than each allows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The tasks by the beginnings of their headings, and the most files that a recipe may have.
const TASKS: [(&str, usize); 11] = [
    ("A congestion controller", 5),
    ("A queue discipline", 3),
    ("A marking mechanism", 3),
    ("A host mechanism", 6),
    ("A counter of the network", 2),
    ("A topology", 2),
    ("A workload", 3),
    ("A figure of a study", 3),
    ("A subcommand", 2),
    ("An eBPF mechanism", 6),
    ("A memcached command", 3),
];

/// The names by which an example of a task is followed through the tree: no other file has one of them, except tests,
/// attacks from outside, and the studies, which use everything.
const FOLLOWED: [(&str, &[&str]); 6] = [
    ("A congestion controller", &["CUBIC", "CubicParams"]),
    ("A marking mechanism", &["wred", "Wred", "WredParams"]),
    (
        "A host mechanism",
        &["reorder_buffer", "reorder_buffers", "ReorderBuffer", "ReorderBuffers", "ReorderBufferParams"],
    ),
    ("A counter of the network", &["no_route_drops"]),
    ("A topology", &["fat_tree", "FatTree"]),
    (
        "A memcached command",
        &[
            "touch",
            "touched",
            "TOUCH",
            "TOUCHED",
            "Touch",
            "GetTouch",
            "get_touch",
            "cmd_touch",
            "touch_commands",
            "touch_hits",
            "touch_misses",
        ],
    ),
];

#[test]
fn recipes_name_every_file_that_has_the_name() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let crates = std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let product = crates.filter(|path| !["reproduce", "torture"].iter().any(|name| path.ends_with(name)));
    let files: Vec<PathBuf> = product.flat_map(|folder| sources(&folder.join("src"))).collect();
    for (task, names) in FOLLOWED {
        let has_name = |file: &&PathBuf| {
            let text = std::fs::read_to_string(file).unwrap();
            // Modules of tests are at the end of a file, and comments may name anything.
            let code = text.split("#[cfg(test)]").next().unwrap();
            code.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
                line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| names.contains(&word))
            })
        };
        let is_test = |file: &&PathBuf| file.to_string_lossy().ends_with("tests.rs");
        let found: BTreeSet<String> = files
            .iter()
            .filter(|file| !is_test(file))
            .filter(has_name)
            .map(|file| file.strip_prefix(root).unwrap().to_string_lossy().into_owned())
            .collect();
        let recipe: BTreeSet<String> = recipe(root, task).into_iter().collect();
        assert!(
            !found.is_empty() && found.is_subset(&recipe),
            "{task}: {:?} has the name, too",
            found.difference(&recipe)
        );
    }
}

/// Returns the files of a recipe.
fn recipe(root: &Path, task: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let (_, recipes) = text.split_once("\n## Recipes\n").unwrap();
    let recipe =
        recipes.split("\n## ").next().unwrap().split("\n### ").find(|recipe| recipe.starts_with(task));
    let steps = recipe.unwrap().lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    steps.map(|step| step.split('`').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn recipes_name_files_that_exist() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let text = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let (_, recipes) = text.split_once("\n## Recipes\n").unwrap();
    let recipes = recipes.split("\n## ").next().unwrap();
    for (task, most) in TASKS {
        let recipe = recipes.split("\n### ").find(|recipe| recipe.starts_with(task));
        let recipe = recipe.unwrap_or_else(|| panic!("CONTRIBUTING.md has no recipe for {task:?}"));
        assert!(
            recipe.starts_with(&format!("{task} ({most} files)")),
            "{task}: the heading says how many files"
        );
        let steps = recipe.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
        let files: Vec<&str> = steps.map(|step| step.split('`').nth(1).unwrap()).collect();
        assert_eq!(files.len(), most, "{task}: {files:?}");
        for file in files {
            assert!(root.join(file).is_file(), "{task}: there is no {file}");
        }
    }
}

/// The documents that list the crates in which `unsafe` is allowed have them all, and no others.
#[test]
fn the_crates_with_unsafe_code_are_listed() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let allows = |file: &Path| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        // Written in two parts, so that this file does not contain it.
        ["allow", "expect"].iter().any(|word| text.contains(&format!("{word}(unsafe_{}", "code")))
    };
    let crates = std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let with_unsafe: BTreeSet<String> = crates
        .filter(|folder| sources(&folder.join("src")).iter().any(|file| allows(file)))
        .map(|folder| folder.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(with_unsafe.contains("chronos-xdp"), "{with_unsafe:?}");
    for document in ["SECURITY.md", "docs/internals/fuzzing.md"] {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        let (_, list) =
            text.split_once("in single files of").unwrap_or_else(|| panic!("{document} has no list"));
        // Names alternate with the text between them.
        let end = list.find(", each").into_iter().chain(list.find(", and the")).min().unwrap();
        let listed: BTreeSet<String> = list[..end].split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert_eq!(listed, with_unsafe, "{document}");
    }
}

/// Returns all Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
