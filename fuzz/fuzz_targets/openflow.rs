//! Any bytes from a switch, after a handshake or without: no panic, and whole messages in reply.
//!
//! `cargo +nightly fuzz run openflow`. The same property runs on stable, with mutations that know OpenFlow, in
//! crates/chronos-openflow/tests/hostile.rs.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plimsoll_chronos::{Direct, Now, Service, Transport};
use plimsoll_chronos_openflow::{Header, OpenFlow, Settings};

const NOW: Now = Now { since_start: Duration::ZERO, unix_seconds: 0 };

fuzz_target!(|bytes: &[u8]| {
    let (&choice, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let service = OpenFlow::new(Settings { message_bytes_max: 512, ..Settings::default() }, 4, 7);
    let mut session = service.open(Transport::Tcp);
    let mut direct = Direct::new(service, 4);
    let mut reply = Vec::new();
    if let Some(version) = [None, Some(1), Some(4)][usize::from(choice % 3)] {
        let hello = [version, 0, 0, 8, 0, 0, 0, 0];
        let mut features = [0; 32];
        features[..4].copy_from_slice(&[version, 6, 0, 32]);
        direct.serve(&mut session, NOW, &[&hello[..], &features].concat(), &mut reply);
    }
    direct.serve(&mut session, NOW, bytes, &mut reply);
    let mut rest = &reply[..];
    while !rest.is_empty() {
        let header = Header::read(rest).expect("a header");
        rest = rest.get(usize::from(header.length)..).expect("a whole message");
    }
});
