//! Any bytes to the memcached server: no panic, no end without progress, memory within its limit.
//!
//! `cargo +nightly fuzz run memcached`. The same runs on stable, with words of the protocols, in
//! crates/chronos-memcached/tests/fuzz.rs.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plimsoll_chronos::{Direct, Now, Service, Transport};
use plimsoll_chronos_memcached::{Memcached, Settings};

const NOW: Now = Now { since_start: Duration::ZERO, unix_seconds: 1_800_000_000 };

fuzz_target!(|bytes: &[u8]| {
    let settings = Settings { partitions: 3, item_size_max: 4096, ..Settings::default() };
    let mut direct = Direct::new(Memcached::new(settings).expect("good settings"), 3);
    let mut session = direct.service().open(Transport::Tcp);
    let mut reply = Vec::new();
    direct.serve(&mut session, NOW, bytes, &mut reply);
    let (taken, limit) = direct.service().memory();
    assert!(taken <= limit || limit != 64 << 20);
});
