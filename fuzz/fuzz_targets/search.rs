//! Any bytes from a client of the index: no panic, and partitions answer as snapshots do.
//!
//! `cargo +nightly fuzz run search`. The same property runs on stable, with mutations that know both protocols, in
//! crates/chronos-search/tests/hostile.rs.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plimsoll_chronos::{Direct, Now, Served, Service, Transport};
use plimsoll_chronos_search::{Search, Sets, Settings};

const NOW: Now = Now { since_start: Duration::ZERO, unix_seconds: 0 };

fuzz_target!(|bytes: &[u8]| {
    let (&choice, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let sets = if choice & 1 == 0 { Sets::Documents } else { Sets::Postings };
    let serve = |snapshots| -> (Served, Vec<u8>) {
        let service = Search::new(Settings { sets, document_bytes_max: 64, snapshots }, 3, 7);
        let mut session = service.open(Transport::Tcp);
        let mut reply = Vec::new();
        (Direct::new(service, 3).serve(&mut session, NOW, bytes, &mut reply), reply)
    };
    assert_eq!(serve(false), serve(true));
});
