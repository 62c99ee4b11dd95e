//! The studies that the program holds: their folders under `studies/`, which `build.rs` lists, and under `scenarios/`.

use std::sync::LazyLock;

use plimsoll_shipped::{FOLDERS as SCENARIOS, ShippedFolder};

use crate::study::Study;
use crate::study_file::{self, StudyFiles};

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The folders of the studies, in the order of the ledger: a new study is one line here.
const ORDER: &[&str] = &[
    "queues",
    "hull",
    "hull-kernel",
    "hpcc",
    "dcqcn",
    "timely",
    "uet",
    "ndp",
    "homa",
    "collectives",
    "qjump",
    "qjump-kernel",
    "detail",
    "detail-kernel",
    "chronos",
    "chronos-kernel",
    "breakdown-kernel",
    "bullettrains",
    "bullettrains-kernel",
    "solstice",
    "reactor",
    "reactor-kernel",
];

static ALL: LazyLock<Vec<Study>> = LazyLock::new(|| ORDER.iter().map(|id| shipped(id)).collect());

/// Returns every study, in the order of the ledger.
pub fn every() -> &'static [Study] {
    &ALL
}

/// Finds a study by the name of its folder.
pub fn find(id: &str) -> Option<&'static Study> {
    every().iter().find(|study| study.id == id)
}

/// Returns the study of this folder.
///
/// # Panics
/// Panics if there is none.
pub fn study(id: &str) -> &'static Study {
    find(id).unwrap_or_else(|| panic!("there is no study `{id}`"))
}

/// Reads a study whose files are part of the program; a test reads every one.
fn shipped(id: &str) -> Study {
    let files = |folders: &[ShippedFolder], name: &str| {
        folders.iter().find(|folder| folder.name == name).map_or::<StudyFiles, _>(&[], |folder| folder.files)
    };
    let study = study_file::load(id, files(STUDIES, id), files(SCENARIOS, id), files(SCENARIOS, "cdf"));
    study.unwrap_or_else(|error| panic!("{error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_folder_has_its_line() {
        let folders: BTreeSet<&str> = STUDIES.iter().map(|folder| folder.name).collect();
        assert_eq!(ORDER.iter().copied().collect::<BTreeSet<&str>>(), folders);
    }
}
