//! All fuzz targets in one program: `PLIMSOLL_FUZZ_TARGET` names the one that runs.
#![no_main]

mod bursts;
mod frames;
mod imports;
mod memcached;
mod openflow;
mod scenario;
mod search;

use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

/// Changes the first `size` bytes of a buffer of `max_size` by `seed`, and returns the new size.
type Mutate = fn(&mut [u8], size: usize, max_size: usize, seed: u32) -> usize;

/// A target: its name, its function of an input, and its own mutations where mutations of bytes are not enough.
struct Target {
    name: &'static str,
    check: fn(&[u8]),
    mutate: Option<Mutate>,
}

const TARGETS: &[Target] = &[
    Target { name: "bursts", check: bursts::check, mutate: None },
    Target { name: "frames", check: frames::check, mutate: None },
    Target { name: "imports", check: imports::check, mutate: None },
    Target { name: "memcached", check: memcached::check, mutate: None },
    Target { name: "openflow", check: openflow::check, mutate: None },
    Target { name: "scenario", check: scenario::check, mutate: Some(scenario::mutated) },
    Target { name: "search", check: search::check, mutate: None },
];

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("PLIMSOLL_FUZZ_TARGET").unwrap_or_default();
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("PLIMSOLL_FUZZ_TARGET={name:?}: expected one of {}", names.join(", ")))
});

fuzz_target!(|input: &[u8]| (TARGET.check)(input));

fuzz_mutator!(|bytes: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match TARGET.mutate {
        Some(mutate) => mutate(bytes, size, max_size, seed),
        None => fuzzer_mutate(bytes, size, max_size),
    }
});
