//! A stopped run loses no finished point, and a resumed one repeats none.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::SystemTime;

use crate::common::{Place, Ran, SWEEP, names, signal};

const RUN: [&str; 6] = ["run", "sweep.toml", "--threads", "1", "--out", "out"];

/// Starts a sweep and waits for its first two points.
fn begun(place: &Place) -> Child {
    place.write("sweep.toml", SWEEP);
    let mut command = place.command(&RUN);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    plimsoll_testing::eventually("a second finished point", || names(&place.path("out/points")).len() >= 2);
    child
}

/// Returns when each finished point was written.
fn written(place: &Place) -> BTreeMap<String, SystemTime> {
    let points = names(&place.path("out/points"));
    let at =
        |point: &str| place.path("out/points").join(point).join("point.json").metadata().unwrap().modified();
    points.into_iter().map(|point| (point.clone(), at(&point).unwrap())).collect()
}

/// Resumes the run, and compares it with an undisturbed one.
fn goes_on(place: &Place) {
    let kept = written(place);
    assert!((2..8).contains(&kept.len()), "the sweep is too short to be stopped: {kept:?}");
    place
        .plimsoll(&RUN)
        .ends_with(0)
        .says(&format!("{} of 8 points are finished already", kept.len()))
        .says(&format!("[{0}/{0}]", 8 - kept.len()));
    let now = written(place);
    assert_eq!(now.len(), 8);
    for (point, when) in kept {
        assert_eq!(now[&point], when, "{point} was run again");
    }
    place.plimsoll(&["run", "sweep.toml", "--threads", "2", "--out", "whole"]).ends_with(0);
    assert_eq!(place.read("out/summary.json"), place.read("whole/summary.json"));
    assert_eq!(place.read("out/manifest.json"), place.read("whole/manifest.json"));
    assert_eq!(place.read("out/report.html"), place.read("whole/report.html"));
}

#[test]
fn killed() {
    let place = Place::new();
    let mut child = begun(&place);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None);
    goes_on(&place);
}

#[test]
fn cancelled() {
    let place = Place::new();
    let child = begun(&place);
    signal(&child, signal_hook::consts::SIGINT);
    Ran::of(&RUN, child.wait_with_output().unwrap())
        .ends_with(130)
        .says("cancelled:")
        .says("of 8 points are complete and kept in out:\n  TCP, workload.transfers.load = 0.5\n")
        .says("To resume, run the same command.")
        .prints_nothing();
    goes_on(&place);
}

#[test]
fn two_at_once() {
    let place = Place::new();
    let mut child = begun(&place);
    // Stopped, it holds its run directory however long the other takes to start.
    signal(&child, signal_hook::consts::SIGSTOP);
    place.plimsoll(&RUN).ends_with(2).says("another plimsoll is writing to out");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_damaged_point_runs_again() {
    let place = Place::new();
    place.write("sweep.toml", SWEEP);
    let run = [&RUN[..], &["--set", "run.duration=0.1s"]].concat();
    place.plimsoll(&run).ends_with(0);
    let summary = place.read("out/summary.json");
    let point = names(&place.path("out/points")).remove(0);
    let messages = place.path("out/points").join(point).join("messages.csv");
    let whole = std::fs::read(&messages).unwrap();
    std::fs::write(&messages, &whole[..whole.len() / 2]).unwrap();
    place.plimsoll(&run).ends_with(0).says("it runs again").says("7 of 8 points are finished already");
    assert_eq!(place.read("out/summary.json"), summary);
}

/// A small file system of its own, if the system allows it; it is unmounted when dropped.
struct Disk(std::path::PathBuf);

impl Disk {
    fn mount(path: std::path::PathBuf, size: &str) -> Option<Disk> {
        std::fs::create_dir(&path).unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&path);
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then_some(Disk(path))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_fills_up() {
    let place = Place::new();
    let Some(_disk) = Disk::mount(place.path("disk"), "80m") else {
        plimsoll_testing::skipped!("only root may mount a small disk");
        return;
    };
    place.write("sweep.toml", SWEEP);
    // Each point writes some 10 MB, and eight of them exceed the disk.
    let run =
        ["run", "sweep.toml", "--threads", "1", "--set", "observe.flow_series=40us", "--out", "disk/out"];
    place
        .plimsoll(&run)
        .ends_with(2)
        .prints_nothing()
        .says("no room on the disk of")
        .says(" of 8 points are complete and kept in disk/out")
        .says("To resume, run the same command.");
    let points = place.path("disk/out/points");
    let kept = names(&points);
    assert!((1..8).contains(&kept.len()), "{kept:?}");
    let all: Vec<_> = std::fs::read_dir(&points).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(all.len(), kept.len(), "nothing half-written is left: {all:?}");

    // Without space, the error comes before any run. With space, the run resumes.
    place.plimsoll(&run).ends_with(2).says("no room on the disk of");
    let larger = std::process::Command::new("mount")
        .args(["-o", "remount,size=400m"])
        .arg(place.path("disk"))
        .status()
        .unwrap();
    assert!(larger.success());
    place.plimsoll(&run).ends_with(0).says(&format!("{} of 8 points are finished already", kept.len()));
}
