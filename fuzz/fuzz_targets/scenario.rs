//! Any text as a scenario file: no panic, every error has a place, the displayed text of a run parses to the same run,
//! and a valid file is built and runs for a moment, simulated and as a live fabric.
//!
//! `make fuzz TARGET=scenario`, which begins with the shipped scenarios and the parser's fixtures. Half of the
//! mutations are from crates/scenario/tests/it/fuzz.rs, which know TOML.

use std::path::Path;
use std::sync::LazyLock;

use judge::{FILE, judge_errors};
use libfuzzer_sys::fuzzer_mutate;
use mutate::mutate;
use plimsoll_linux::live::LiveFabric;
use plimsoll_scenario::{Overrides, Point, Scenario, ScenarioError};
use plimsoll_sim::RunError;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

#[path = "../../crates/scenario/tests/it/fuzz/judge.rs"]
mod judge;
#[path = "../../crates/scenario/tests/it/fuzz/mutate.rs"]
mod mutate;

/// The folder of the files that a scenario names.
const BASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");
/// A short run, whatever the file has.
const SHORT: [&str; 3] = ["run.warmup = '0s'", "run.duration = '20us'", "run.drain = '20us'"];
/// Larger networks take too long to build for each input.
const HOSTS_MAX: u32 = 64;
/// The most points of a file that are run.
const POINTS_MAX: usize = 2;
/// The most combinations of lists; a file with more is left alone: a sweep may have 100,000 points, which takes
/// seconds.
const COMBINATIONS_MAX: usize = 2000;

fn judge_point(point: &Point) {
    let text = point.show();
    let again = Scenario::parse("shown.toml", &text, Path::new(BASE))
        .unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
    assert_eq!(again.points()[0].digest, point.digest, "{text}");
}

/// A valid scenario can be built. A deadlock, or a part that a live fabric does not have, is an allowed result.
fn run(point: &Point) {
    if point.model.topology.host_count() <= HOSTS_MAX {
        let _ = LiveFabric::new(&point.model);
        // Runs longer than a million events end there.
        if let Err(RunError::Build { key, problem }) = plimsoll_sim::run(&point.model, &mut |_| false) {
            panic!("{key}: {problem}");
        }
    }
}

/// Returns the most points that `text` can have, by the commas of its lines and its variants.
fn combinations(text: &str) -> usize {
    let lists = text.lines().map(|line| 1 + line.matches(',').count());
    lists.fold(1 + text.matches("variant").count(), usize::saturating_mul)
}

fn parse(text: &str, set: &[&str]) -> Result<Scenario, Vec<ScenarioError>> {
    let set = set.iter().map(|&line| line.to_owned()).collect();
    let overrides = Overrides { set, replicates: 1, ..Overrides::default() };
    Scenario::parse_with(FILE, text, Path::new(BASE), &overrides)
}

/// Checks that the parser accepts one input or reports errors, and runs an accepted one.
pub fn check(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if text.contains("sweep") && combinations(text) > COMBINATIONS_MAX {
        return;
    }
    let scenario = match parse(text, &[]) {
        Ok(scenario) => scenario,
        Err(errors) => return judge_errors(&errors),
    };
    scenario.points().iter().take(POINTS_MAX).for_each(judge_point);
    // One of its lines, as an override from the command line.
    if let Some(line) = text.lines().nth(text.len() % 64) {
        match parse(text, &[line]) {
            Ok(set) => set.points().iter().take(1).for_each(judge_point),
            Err(errors) => judge_errors(&errors),
        }
    }
    match parse(text, &SHORT) {
        Ok(short) => short.points().iter().take(POINTS_MAX).for_each(run),
        Err(errors) => judge_errors(&errors),
    }
}

/// Texts from which lines are taken.
static OTHERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut folders =
        vec![Path::new(BASE).to_owned(), Path::new(BASE).join("../crates/scenario/tests/it/bad")];
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of scenarios").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                texts.extend(std::fs::read_to_string(&path));
            }
        }
    }
    texts.sort();
    texts
});

/// Mutates a scenario: an input of `size` bytes in a buffer of `max_size`. Returns its new size.
pub fn mutated(bytes: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let text = str::from_utf8(&bytes[..size]);
    let (Ok(text), 0) = (text, seed % 2) else { return fuzzer_mutate(bytes, size, max_size) };
    let text = mutate(text, &OTHERS, &mut Pcg64Mcg::seed_from_u64(u64::from(seed)));
    let length = text.len().min(max_size);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    length
}
