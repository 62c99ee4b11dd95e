//! A recording is of the run: the observer changes nothing, misses no packet, and is done when its window is.

use std::collections::BTreeMap;

use plimsoll_results::Digest;
use plimsoll_results::replay::{Fate, Recording, ReplayWindow};
use plimsoll_scenario::model::Model;
use plimsoll_sim::{Extent, RecordError, record};
use plimsoll_units::{Span, Time};

use super::chaos::draw::Case;
use super::lab::model;

/// Random scenarios, some with losses, marks, pauses, faults, pacers and circuits.
const CASES: u64 = 40;

fn whole(model: &Model, window: ReplayWindow) -> Option<(Recording, plimsoll_results::Outcome)> {
    match record(model, window, Extent::Whole, &mut |_| true) {
        Ok((recording, outcome)) => Some((recording, outcome.unwrap())),
        // Switches that pause each other in a circle end a run with an error; others have too many packets.
        Err(
            RecordError::Run(_)
            | RecordError::TooMany { .. }
            | RecordError::TooLate { .. }
            | RecordError::Trims
            | RecordError::Approximate
            | RecordError::Stamps,
        ) => None,
    }
}

fn of_fate(recording: &Recording, fates: &[Fate]) -> u64 {
    let fates: Vec<u8> = fates.iter().map(|fate| *fate as u8).collect();
    recording.hops.fate.iter().filter(|fate| fates.contains(fate)).count() as u64
}

#[test]
fn a_whole_recording_has_every_packet_and_changes_no_digest() {
    let mut checked = 0;
    let mut lost = 0;
    for seed in 1..=CASES {
        let case = Case::draw(seed);
        let model = model(&case.text, None, None);
        let all = ReplayWindow { from: Time::ZERO, length: Span::from_secs(3_600) };
        let Some((recording, outcome)) = whole(&model, all) else { continue };
        let plain = plimsoll_sim::run(&model, &mut |_| true).unwrap();
        assert_eq!(Digest::of(&outcome), Digest::of(&plain), "seed {seed}\n{}", case.text);
        let counters = plain.counters;
        let arrived = of_fate(&recording, &[Fate::Arrives, Fate::Marked]);
        assert_eq!(
            arrived,
            counters.packet_hops - counters.no_route_drops,
            "hops of seed {seed}\n{}",
            case.text
        );
        let gone = of_fate(&recording, &[Fate::Dropped, Fate::LostOnLink, Fate::LostByHost]);
        assert_eq!(gone, counters.packets_lost(), "losses of seed {seed}\n{}", case.text);
        assert_paths(&recording, seed);
        checked += 1;
        lost += gone;
    }
    assert!(
        checked > CASES / 2 && lost > 0,
        "{checked} cases with {lost} losses are enough to tell something"
    );
}

/// Asserts that every packet goes from link to link, and nowhere before it has left where it was. Which of several
/// alike packets is which cannot always be known where they take different paths.
fn assert_paths(recording: &Recording, seed: u64) {
    let packets = &recording.packets;
    let likeness = |packet: usize| {
        (packets.flow[packet], packets.seq[packet], packets.size[packet], packets.kind[packet])
    };
    let mut alike: BTreeMap<_, u32> = BTreeMap::new();
    for packet in 0..packets.size.len() {
        *alike.entry(likeness(packet)).or_default() += 1;
    }
    let mut last: BTreeMap<u32, (u32, i64)> = BTreeMap::new();
    let mut entered = 0;
    for (hop, &packet) in recording.hops.packet.iter().enumerate() {
        entered += recording.hops.entered[hop];
        let link = &recording.links[recording.hops.link[hop] as usize];
        if let Some((node, earliest)) = last.get(&packet) {
            let is_later = entered >= *earliest || alike[&likeness(packet as usize)] > 1;
            assert_eq!((link.from, is_later), (*node, true), "packet {packet} of seed {seed}");
        }
        let starts = entered + recording.hops.wait[hop] as i64;
        last.insert(packet, (link.to, starts + link.delay as i64));
    }
}

#[test]
fn a_run_that_stops_behind_its_window_has_the_same_packets() {
    let mut checked = 0;
    for seed in 1..=CASES / 2 {
        let case = Case::draw(seed);
        let model = model(&case.text, None, None);
        let window = ReplayWindow { from: Time::ZERO + Span::from_us(700), length: Span::from_us(400) };
        let Some((recording, outcome)) = whole(&model, window) else { continue };
        if outcome.end < window.until() + Span::from_ms(1) || recording.hops.packet.is_empty() {
            continue;
        }
        let stopped = record(&model, window, Extent::Window, &mut |_| true).unwrap();
        assert_eq!((stopped.0, stopped.1.is_none()), (recording, true), "seed {seed}\n{}", case.text);
        checked += 1;
    }
    assert!(checked > 5, "{checked}");
}

#[test]
fn too_many_packets_and_a_late_window_are_errors() {
    let busy = model(
        "version = 1\ntitle = 'busy'\n[run]\nduration = '20ms'\n[topology]\nkind = 'rack'\nhosts = 9\n\
         rate = '100Gbps'\ndelay = '1us'\n[workload.w]\nkind = 'flows'\nfrom = 'h1..h8'\nto = 'h0'\n",
        None,
        None,
    );
    let window =
        |from, length| ReplayWindow { from: Time::ZERO + Span::from_ms(from), length: Span::from_ms(length) };
    let error = |window| record(&busy, window, Extent::Window, &mut |_| true).unwrap_err();
    let RecordError::TooMany { fits, .. } = error(window(0, 20)) else { panic!("a window of 20 ms fits") };
    let shorter = ReplayWindow { from: Time::ZERO, length: fits };
    let (recording, _) = record(&busy, shorter, Extent::Window, &mut |_| true).unwrap();
    assert!(recording.hops.packet.len() > 10_000, "{} hops in {fits}", recording.hops.packet.len());
    assert!(matches!(error(window(60_000, 1)), RecordError::TooLate { .. }));
}

/// A recording assumes that packets keep their size: the message names the table that changes it.
#[test]
fn packets_that_change_their_size_are_refused() {
    for (table, message) in [
        ("int = {}", "a replay does not follow packets that grow on their way: turn `int` off in `port`"),
        ("trim = {}", "a replay does not follow packets that switches trim: turn `trim` off in `port`"),
    ] {
        let text = format!(
            "version = 1\ntitle = 'sizes'\n[run]\nduration = '1ms'\n[topology]\nkind = 'rack'\nhosts = 3\n\
             rate = '10Gbps'\ndelay = '1us'\n[port.switch]\n{table}\n\
             [workload.w]\nkind = 'flows'\nfrom = 'h1'\nto = 'h0'\n"
        );
        let window = ReplayWindow { from: Time::ZERO, length: Span::from_us(10) };
        let refused = record(&model(&text, None, None), window, Extent::Window, &mut |_| true).unwrap_err();
        assert_eq!(refused.to_string(), message);
    }
}
