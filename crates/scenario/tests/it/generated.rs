//! Generated files match the code. To make them again:
//! `UPDATE=1 cargo test -p plimsoll-scenario --test it generated`
#![allow(clippy::unwrap_used, reason = "a test")]

mod python;

use std::path::Path;

fn same(file: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "{file} has drifted; make it again: UPDATE=1 cargo test -p plimsoll-scenario --test it generated"
    );
}

#[test]
fn schema_is_up_to_date() {
    same("scenarios/schema.json", &format!("{:#}\n", plimsoll_scenario::schema()));
}

#[test]
fn reference_is_up_to_date() {
    same("docs/reference/scenario.md", &plimsoll_scenario::reference());
}

#[test]
fn pythons_types_are_up_to_date() {
    same("python/plimsoll/schema.py", &python::module(&plimsoll_scenario::schema()));
}
