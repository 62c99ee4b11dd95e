//! The scenarios of the repository, which are part of every program: `plimsoll run quickstart` needs no checkout.
//!
//! A shipped scenario is named by its path below `scenarios/` without `.toml`: `quickstart`, `hull/dynamic`. Its text
//! carries the files that it names in its table `files`, so that it can be run, recorded and edited anywhere.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_scenario::{Overrides, Registry, Scenario, ScenarioError, did_you_mean, with_files};

/// A folder with the texts of its files.
#[derive(Clone, Copy, Debug)]
pub struct ShippedFolder {
    /// The name of the folder below `scenarios/`; empty for `scenarios/` itself.
    pub name: &'static str,
    /// The names and the texts of its TOML and CSV files, sorted by name.
    pub files: &'static [(&'static str, &'static str)],
}

/// The folders of `scenarios/`, itself first, the others sorted by name.
pub static FOLDERS: &[ShippedFolder] = include!(concat!(env!("OUT_DIR"), "/folders.rs"));

/// Returns the names of all TOML files. Some are only there to be included by others, or are graphs, so not all of them
/// can be run.
pub fn names() -> impl Iterator<Item = String> {
    FOLDERS.iter().flat_map(|folder| {
        let stems = folder.files.iter().filter_map(|(file, _)| file.strip_suffix(".toml"));
        stems.map(|stem| match folder.name {
            "" => stem.to_owned(),
            name => format!("{name}/{stem}"),
        })
    })
}

/// Returns the text of a shipped scenario, with the files that it names; `None` for an unknown name. The ending `.toml`
/// may be there or not.
pub fn text(name: &str) -> Option<String> {
    let (folder, stem) = name.rsplit_once('/').unwrap_or(("", name));
    let file = format!("{}.toml", stem.strip_suffix(".toml").unwrap_or(stem));
    let folder = FOLDERS.iter().find(|known| known.name == folder)?;
    let (_, text) = folder.files.iter().find(|(known, _)| *known == file)?;
    Some(with_files(text, &named_by(text, folder)))
}

/// Returns the files of a folder that a text names, by the names that it has for them (`w5.csv`, `./w5.csv`), and the
/// files that they name in turn.
fn named_by(text: &str, folder: &ShippedFolder) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut unread = vec![text];
    while let Some(text) = unread.pop() {
        for &(file, content) in folder.files {
            for name in [file.to_owned(), format!("./{file}")] {
                if text.contains(&format!("\"{name}\"")) && !found.contains_key(&name) {
                    found.insert(name, content.to_owned());
                    unread.push(content);
                }
            }
        }
    }
    found
}

/// Reads and checks the scenario at `path`, or the shipped one of that name if the file does not exist.
///
/// # Errors
/// Returns all errors of the scenario; for a name that is neither, the nearest name.
pub fn load(registry: &Registry, path: &Path, overrides: &Overrides) -> Result<Scenario, Vec<ScenarioError>> {
    let is_file = path.exists() && !path.is_dir();
    let name = path.to_string_lossy();
    if let Some(text) = text(&name).filter(|_| !is_file) {
        return Scenario::parse_from(registry, &name, &text, Path::new("."), overrides);
    }
    Scenario::load_from(registry, path, overrides).map_err(|mut errors| {
        if let [error] = &mut errors[..]
            && !path.exists()
        {
            let names: Vec<String> = names().collect();
            let nearest = did_you_mean(&name, names.iter().map(String::as_str));
            let nearest = nearest.map_or_else(String::new, |nearest| format!("{nearest} "));
            error.0.help = Some(format!(
                "{nearest}`plimsoll scenario list` prints the scenarios that are built in, and `plimsoll scenario new \
                 NAME` writes one to start from"
            ));
        }
        errors
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
    }

    /// Scenarios that name other files, such as `detail/degraded`, which includes a file that includes another.
    #[test]
    fn a_scenario_carries_the_files_that_it_names() {
        let empty = tempfile::tempdir().expect("a temporary folder");
        let mut carried = 0;
        for name in names() {
            let text = text(&name).expect("it has been named");
            let path = root().join(format!("{name}.toml"));
            let Ok(from_disk) = Scenario::load(&path) else { continue };
            carried += usize::from(text.contains("\n[files."));
            let shipped = Scenario::parse(&name, &text, empty.path()).map_err(|errors| errors[0].to_string());
            let digests =
                |scenario: &Scenario| scenario.points().iter().map(|p| p.digest).collect::<Vec<_>>();
            assert_eq!(shipped.as_ref().map(digests), Ok(digests(&from_disk)), "{name}");
        }
        assert!(carried >= 20, "only {carried} scenarios name files");
    }

    #[test]
    fn a_file_comes_before_a_shipped_scenario() {
        let load = |name: &Path| load(&Registry::new(), name, &Overrides::default());
        assert_eq!(load(Path::new("quickstart")).expect("it is shipped").name(), "quickstart");
        assert_eq!(load(Path::new("hull/dynamic.toml")).expect("it is shipped").name(), "hull/dynamic.toml");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("quickstart");
        std::fs::write(&file, "version = 2\n").expect("it can be written");
        assert_eq!(load(&file).expect_err("there is no version 2")[0].file, file.display().to_string());
    }

    #[test]
    fn a_name_that_is_neither_gets_the_nearest() {
        let errors = load(&Registry::new(), Path::new("quikstart"), &Overrides::default());
        let help = errors.expect_err("there is none")[0].help.clone().unwrap_or_default();
        assert!(help.starts_with("did you mean `quickstart`? `plimsoll scenario list`"), "{help}");
        let errors = load(&Registry::new(), Path::new("./quickstart/"), &Overrides::default());
        assert!(errors.is_err(), "a path is no name");
    }
}
