//! Any text as a scenario file: no panic, and every error has a place.
//!
//! `cargo +nightly fuzz run scenario scenarios`. The same property runs on stable, with mutations
//! that know TOML, in crates/scenario/tests/fuzz.rs.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use plimsoll_scenario::Scenario;

fuzz_target!(|text: &str| {
    if let Err(errors) = Scenario::parse("fuzz.toml", text, Path::new("/nonexistent")) {
        assert!(!errors.is_empty());
        for error in errors {
            assert!(error.line > 0 && error.column > 0);
        }
    }
});
