//! Any frame at a fabric's edge: no panic, and marking it changes its traffic class and checksum only.
//!
//! `cargo +nightly fuzz run frames`. The same runs on stable, with mutations that know Ethernet and through a whole
//! fabric, in crates/linux/tests/frames.rs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_linux::frame::{Header, answer, mark};

const HOSTS: u32 = 4;

fuzz_target!(|bytes: &[u8]| {
    let header = Header::parse(bytes, HOSTS);
    let reply = answer(bytes, HOSTS);
    assert!(reply.is_none_or(|reply| reply.len() >= 42));
    let mut marked = bytes.to_vec();
    mark(&mut marked);
    let changed = bytes.iter().zip(&marked).filter(|(before, after)| before != after).count();
    assert!(marked.len() == bytes.len() && changed <= 3);
    if let Some(header) = header {
        let again = Header::parse(&marked, HOSTS).expect("a marked frame is still one");
        assert_eq!((header.to, header.flow), (again.to, again.flow));
    }
});
