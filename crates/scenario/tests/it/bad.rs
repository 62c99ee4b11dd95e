//! Every kind of error and warning, word for word: tests/it/bad/NAME.toml gives tests/it/bad/NAME.txt,
//! tests/it/warn/NAME.toml gives tests/it/warn/NAME.txt. To write the texts again:
//! `UPDATE=1 cargo test -p plimsoll-scenario --test it bad`
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};

use plimsoll_scenario::{Overrides, Scenario};

fn fixtures(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(directory);
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

/// Lines `# set: key=value` at the head of a fixture are its `--set`.
fn load(path: &Path, text: &str) -> Result<Scenario, Vec<plimsoll_scenario::ScenarioError>> {
    let set = text.lines().map_while(|line| line.strip_prefix("# set: ")).map(str::to_owned).collect();
    let name = path.file_name().unwrap().to_str().unwrap();
    Scenario::parse_with(name, text, path.parent().unwrap(), &Overrides { set, ..Overrides::default() })
}

/// Compares the messages about each fixture with the text beside it.
fn compare(directory: &str, said: impl Fn(&Path, &str) -> Vec<String>) {
    let mut different = Vec::new();
    let files = fixtures(directory);
    assert!(!files.is_empty());
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let now = said(&path, &text).join("\n\n") + "\n";
        let expected = path.with_extension("txt");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&expected, &now).unwrap();
        }
        let before = std::fs::read_to_string(&expected).unwrap_or_default();
        if now != before {
            different.push(format!("{}:\n{now}\n--- expected:\n{before}", path.display()));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn errors_read_as_they_should() {
    compare("bad", |path, text| match load(path, text) {
        Ok(_) => panic!("{} has no error", path.display()),
        Err(errors) => {
            for error in &errors {
                assert!(
                    error.line > 0 && error.column > 0 && !error.file.is_empty(),
                    "{error:?} has no place"
                );
            }
            errors.iter().map(ToString::to_string).collect()
        }
    });
}

#[test]
fn warnings_read_as_they_should() {
    compare("warn", |path, text| match load(path, text) {
        Err(errors) => panic!("{}: {}", path.display(), errors[0]),
        Ok(scenario) => {
            assert!(!scenario.warnings().is_empty(), "{} has no warning", path.display());
            scenario.warnings().iter().map(ToString::to_string).collect()
        }
    });
}

/// The text at the place of an error is the wrong key or value; of a missing key there is none.
#[test]
fn an_error_points_at_what_is_wrong() {
    let base = "version = 1\ntitle = \"t\"\n[run]\nduration = \"1s\"\n[workload.small]\nkind = \"transfer\"\n\
                size = \"9KB\"\nload = 0.1\n";
    let rack = format!("{base}[topology]\nkind = \"rack\"\nhosts = 4\nrate = \"1Gbps\"\ndelay = \"5us\"\n");
    let sizeless = rack.replace("size = \"9KB\"\n", "");
    for (text, set, expected) in [
        (rack.as_str(), "wrkload.small.load=0.5", "wrkload"),
        (&rack, "workload.smal.load=0.5", "smal"),
        (&rack, "workload.small.laod=0.5", "laod"),
        (&rack, "port.swich.buffer='9KB'", "swich"),
        (&rack, "port.switch.bufer='9KB'", "bufer"),
        (&rack, "transport.knd.more=1", "knd"),
        (&rack, "topology.hosts=\"x\"", "\"x\""),
        (&rack, "observe.queue.q={port='client'}", ""),
        (base, "run.seed=1", ""),
        (&sizeless, "run.seed=1", ""),
    ] {
        let overrides = Overrides { set: vec![set.to_owned()], ..Overrides::default() };
        let errors = Scenario::parse_with("t.toml", text, Path::new("."), &overrides).unwrap_err();
        let error = &errors[0];
        let found: String = error.source_line.chars().skip(error.column - 1).take(error.width).collect();
        assert_eq!(found, expected, "{error}");
        assert!(error.underlined > 0, "{error}");
    }
}
