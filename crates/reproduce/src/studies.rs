//! The studies that the program holds: their folders under `studies/`, which `build.rs` lists, and under `scenarios/`.

use std::sync::LazyLock;

use plimsoll_shipped::{FOLDERS as SCENARIOS, Folder};

use crate::study::Study;
use crate::study_file::{self, Files};

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Returns every study, in the order of the ledger.
pub fn every() -> [&'static Study; 14] {
    [
        &HULL,
        &HULL_KERNEL,
        &QJUMP,
        &QJUMP_KERNEL,
        &DETAIL,
        &DETAIL_KERNEL,
        &CHRONOS,
        &CHRONOS_KERNEL,
        &BREAKDOWN_KERNEL,
        &BULLETTRAINS,
        &BULLETTRAINS_KERNEL,
        &SOLSTICE,
        &REACTOR,
        &REACTOR_KERNEL,
    ]
}

/// Table 5.1 of Chronos's dissertation, and its locks, on this machine.
pub static BREAKDOWN_KERNEL: LazyLock<Study> = LazyLock::new(|| shipped("breakdown-kernel"));
/// Finds a study by the name of its folder.
pub(crate) fn find(id: &str) -> Option<&'static Study> {
    every().into_iter().find(|study| study.id == id)
}

/// BulletTrains in the simulator.
pub static BULLETTRAINS: LazyLock<Study> = LazyLock::new(|| shipped("bullettrains"));
/// BulletTrains on this machine's kernel.
pub static BULLETTRAINS_KERNEL: LazyLock<Study> = LazyLock::new(|| shipped("bullettrains-kernel"));
/// Chronos by a model of its server.
pub static CHRONOS: LazyLock<Study> = LazyLock::new(|| shipped("chronos"));
/// Chronos's servers on this machine.
pub static CHRONOS_KERNEL: LazyLock<Study> = LazyLock::new(|| shipped("chronos-kernel"));
/// DeTail in the simulator.
pub static DETAIL: LazyLock<Study> = LazyLock::new(|| shipped("detail"));
/// DeTail on this machine's kernel.
pub static DETAIL_KERNEL: LazyLock<Study> = LazyLock::new(|| shipped("detail-kernel"));
/// HULL in the simulator.
pub static HULL: LazyLock<Study> = LazyLock::new(|| shipped("hull"));
/// HULL on this machine's kernel.
pub static HULL_KERNEL: LazyLock<Study> = LazyLock::new(|| shipped("hull-kernel"));
/// QJump in the simulator.
pub static QJUMP: LazyLock<Study> = LazyLock::new(|| shipped("qjump"));
/// QJump on this machine's kernel.
pub static QJUMP_KERNEL: LazyLock<Study> = LazyLock::new(|| shipped("qjump-kernel"));
/// REACToR in the simulator.
pub static REACTOR: LazyLock<Study> = LazyLock::new(|| shipped("reactor"));
/// REACToR's control loop on this machine's kernel.
pub static REACTOR_KERNEL: LazyLock<Study> = LazyLock::new(|| shipped("reactor-kernel"));
/// Solstice and its rivals as schedulers.
pub static SOLSTICE: LazyLock<Study> = LazyLock::new(|| shipped("solstice"));

/// Reads a study whose files are part of the program; a test reads every one.
fn shipped(id: &str) -> Study {
    let files = |folders: &[Folder], name: &str| {
        folders.iter().find(|folder| folder.name == name).map_or::<Files, _>(&[], |folder| folder.files)
    };
    let study = study_file::load(id, files(STUDIES, id), files(SCENARIOS, id), files(SCENARIOS, "cdf"));
    study.unwrap_or_else(|error| panic!("{error}"))
}

/// Reads every study that has a folder.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = Study> {
    STUDIES.iter().map(|folder| shipped(folder.name))
}
