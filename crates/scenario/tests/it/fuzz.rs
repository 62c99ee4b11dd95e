//! Mutates the shipped scenarios and the fixtures with a seeded generator: no input may panic, and
//! every error has a place.
//!
//! `FUZZ_SECONDS=60 cargo test -p plimsoll-scenario --test it fuzz` runs for a minute, `FUZZ_SEED=7`
//! with other mutations. A failure prints the seed and the input. fuzz/fuzz_targets/scenario.rs does the same with a
//! fuzzer's guidance.
#![allow(clippy::print_stdout, reason = "a test; its runner shows it where it fails")]
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "fuzz/judge.rs"]
mod judge;
#[path = "fuzz/mutate.rs"]
mod mutate;

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use judge::{FILE, judge_errors};
use mutate::{below, mutate};
use plimsoll_scenario::{Overrides, Scenario};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// Runs without FUZZ_SECONDS.
const ITERATIONS: u64 = 3_000;

fn toml_files(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            toml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml" || extension == "graph") {
            found.push(path);
        }
    }
}

/// What must hold for any text.
fn judge(text: &str, set: Vec<String>) {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/bad");
    match Scenario::parse_with(FILE, text, &base, &Overrides { set, ..Overrides::default() }) {
        Err(errors) => judge_errors(&errors),
        Ok(scenario) => {
            assert!(!scenario.points().is_empty());
            for point in scenario.points().iter().take(3) {
                let again = Scenario::parse("shown.toml", &point.show(), &base)
                    .unwrap_or_else(|errors| panic!("{}\n{}", errors[0], point.show()));
                assert_eq!(again.points()[0].digest, point.digest, "{}", point.show());
            }
        }
    }
}

#[test]
fn no_text_panics_and_every_error_has_a_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    toml_files(&root.join("../../scenarios"), &mut files);
    toml_files(&root.join("tests"), &mut files);
    let texts: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let limit = number("FUZZ_SECONDS").map(Duration::from_secs);
    let first = number("FUZZ_SEED").unwrap_or(1);
    let (start, next) = (Instant::now(), AtomicU64::new(first));
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let done = match limit {
                Some(limit) => start.elapsed() > limit,
                None => seed - first >= ITERATIONS,
            };
            if done {
                break;
            }
            judge_mutated(seed, &texts);
        }
    };
    // A panic of one is a panic of the test.
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    println!("{} inputs", next.into_inner() - first - threads as u64);
}

fn judge_mutated(seed: u64, texts: &[String]) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let text = mutate(&texts[below(&mut rng, texts.len())], texts, &mut rng);
    let line = text.lines().nth(below(&mut rng, text.lines().count())).unwrap_or("").to_owned();
    let set = if below(&mut rng, 4) == 0 { vec![line] } else { Vec::new() };
    if catch_unwind(AssertUnwindSafe(|| judge(&text, set.clone()))).is_err() {
        panic!(
            "FUZZ_SEED={seed} cargo test -p plimsoll-scenario --test it fuzz; --set {set:?}; the input:\n{text}"
        );
    }
}

/// Deeper than any stack.
#[test]
fn depth_is_an_error() {
    let deep = 200_000;
    let (keys, lists, tables) = (".x".repeat(deep), "[".repeat(deep), "{a=".repeat(deep));
    for text in [
        format!("x{keys} = 1"),
        format!("[x{keys}]"),
        format!("x = {lists}"),
        format!("x = {tables}"),
        format!("[sweep]\n\"x{keys}\" = [1]"),
    ] {
        judge(&text, Vec::new());
        judge("version = 1", vec![text]);
    }
}
