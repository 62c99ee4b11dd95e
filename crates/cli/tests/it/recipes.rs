//! The recipes of CONTRIBUTING.md name files that exist, and no more of them than each allows.

use std::path::Path;

/// The tasks by the beginnings of their headings, and the most files that a recipe may have.
const TASKS: [(&str, usize); 8] = [
    ("A congestion controller", 4),
    ("A queue discipline", 3),
    ("A topology", 2),
    ("A workload", 3),
    ("A figure of a study", 3),
    ("A subcommand", 2),
    ("An eBPF mechanism", 6),
    ("A memcached command", 4),
];

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
