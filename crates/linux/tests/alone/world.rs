//! Models, runs one after the other, and the system state that a run must restore.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_linux::{Emulated, Options, Program, emulate, features};
use plimsoll_scenario::Scenario;
use plimsoll_scenario::model::Model;
use plimsoll_units::Span;

/// Runs share the namespaces of a process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Holds all other runs of this process back.
pub fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn model(text: &str) -> Model {
    let text = format!("version = 1\ntitle = 'live'\n{text}");
    let scenario =
        Scenario::parse("live", &text, Path::new(".")).unwrap_or_else(|errors| panic!("{errors:?}"));
    scenario.points()[0].model.clone()
}

pub fn lacks() -> Option<String> {
    let missing: Vec<&str> = features()
        .iter()
        .filter(|feature| feature.required && !feature.found)
        .map(|feature| feature.name)
        .collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// Returns the existing interfaces, with the settings that could be changed. Others may make and remove some meanwhile.
pub fn interfaces() -> BTreeMap<String, Vec<String>> {
    let of = |name: &str| {
        let read =
            |file: &str| fs::read_to_string(format!("/sys/class/net/{name}/{file}")).unwrap_or_default();
        ["address", "mtu", "flags", "tx_queue_len"].map(read).to_vec()
    };
    let names = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    names
        .filter_map(|name| name.file_name().into_string().ok())
        .map(|name| (name.clone(), of(&name)))
        .collect()
}

/// Namespaces of this process.
pub fn own_namespaces() -> usize {
    let own = format!("plimsoll-{}-", std::process::id());
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    names.filter(|name| name.file_name().to_string_lossy().starts_with(&own)).count()
}

pub fn run(text: &str, programs: &[(u32, &str)]) -> Option<Emulated> {
    let program = |(host, command): &(u32, &str)| Program {
        host: *host,
        level: None,
        command: (*command).to_owned(),
        start: Span::ZERO,
        stop: None,
        log: None,
    };
    let programs = programs.iter().map(program).collect();
    run_with(text, Options { programs, ..options() })
}

pub fn options() -> Options {
    Options {
        spin: Span::from_us(50),
        verify: true,
        programs: Vec::new(),
        congestion_control: None,
        mptcp: None,
        shell: None,
        capture: None,
    }
}

pub fn run_with(text: &str, options: Options) -> Option<Emulated> {
    if let Some(missing) = lacks() {
        plimsoll_testing::skipped!("this system lacks {missing}");
        return None;
    }
    let _alone = alone();
    let before = interfaces();
    let emulated = emulate(&model(text), &options, || false).unwrap();
    assert_eq!(own_namespaces(), 0, "nothing stays behind");
    let after = interfaces();
    let there = before.iter().filter(|(name, _)| name.as_str() == "lo" || after.contains_key(*name));
    there.for_each(|(name, settings)| assert_eq!(Some(settings), after.get(name), "{name} is as it was"));
    assert_eq!(emulated.verified, Some(true), "the replay of the log gives the same digest");
    let counters = &emulated.outcome.counters;
    assert_eq!(counters.packets_sent, counters.packets_accounted_for());
    // Trimmed headers reach their hosts in the fabric alone.
    let handed_over = counters.packets_delivered - counters.trimmed..=counters.packets_delivered;
    assert!(handed_over.contains(&emulated.lateness.count()), "{:?} {counters:?}", emulated.lateness);
    Some(emulated)
}

pub const RACK: &str = "[topology]\nkind = 'rack'\nhosts = 3\nrate = '100Mbps'\ndelay = '1ms'\n\
                    [transport]\nmin_rto = '200ms'\n";

/// A packet of a capture.
#[derive(Debug)]
pub struct CapturedPacket {
    pub is_sent: bool,
    /// The bytes that the capture has of it.
    pub kept: u32,
    /// The traffic class of IPv4; 0 of other packets, as the following fields.
    pub traffic_class: u8,
    /// The ports of source and destination of TCP.
    pub ports: [u16; 2],
    /// The bytes of payload of TCP.
    pub payload: u16,
}

/// Returns the packets of a file of pcapng, which consists of whole blocks.
pub fn captured(bytes: &[u8]) -> Vec<CapturedPacket> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut packets, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if word(at) == 6 {
            let kept = word(at + 20);
            assert!(kept <= word(at + 24), "{kept}");
            // The flags follow the frame and their own head.
            let direction = word(at + 28 + kept.next_multiple_of(4) as usize + 4);
            assert!(direction == 1 || direction == 2, "direction {direction}");
            let frame = &bytes[at + 28..at + 28 + kept as usize];
            let half = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
            let is_tcp = frame.len() >= 54 && half(12) == 0x0800 && frame[23] == 6;
            let of_tcp = |value: &dyn Fn() -> u16| if is_tcp { value() } else { 0 };
            packets.push(CapturedPacket {
                is_sent: direction == 2,
                kept,
                traffic_class: of_tcp(&|| frame[15].into()) as u8,
                ports: [34, 36].map(|at| of_tcp(&|| half(at))),
                payload: of_tcp(&|| half(16) - 20 - u16::from(frame[46] >> 4) * 4),
            });
        }
        at += word(at + 4) as usize;
    }
    assert_eq!(at, bytes.len());
    packets
}
