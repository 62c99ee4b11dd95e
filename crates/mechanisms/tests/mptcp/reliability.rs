//! With any loss, everything written is delivered once and in order. The check against a second receiver is in [`Net`].

use plimsoll_mechanisms::mptcp::{Coupling, MptcpParams, PathState, SubflowScheduler};
use plimsoll_mechanisms::tcp::{Kind, Recovery, TransportParams};
use plimsoll_units::{Span, Time};
use proptest::prelude::*;

use crate::net::{Net, config, tcp};

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    delays_us: Vec<u64>,
    /// In percent; 100 for a path that is dead from the first millisecond on.
    losses: Vec<u32>,
    writes: Vec<(usize, u64)>,
    coupling: Coupling,
    scheduler: SubflowScheduler,
    kind: Kind,
    recovery: Recovery,
    handshake: bool,
    max_window: u32,
    ack_every: u32,
}

fn case() -> impl Strategy<Value = Case> {
    (1usize..=4).prop_flat_map(|subflows| {
        let paths = (
            any::<u64>(),
            prop::collection::vec(10u64..2_000, subflows),
            prop::collection::vec(prop_oneof![Just(0u32), 1u32..30, Just(100)], subflows),
            prop::collection::vec((0usize..2, 1u64..60_000), 1..6),
        );
        let keys = (
            prop_oneof![Just(Coupling::Lia), Just(Coupling::Uncoupled)],
            prop_oneof![Just(SubflowScheduler::Default), Just(SubflowScheduler::RoundRobin)],
            prop_oneof![Just(Kind::Tcp), Just(Kind::Cubic), Just(Kind::Dctcp), Just(Kind::Swift)],
            prop_oneof![Just(Recovery::Reno), Just(Recovery::NewReno), Just(Recovery::Sack)],
            any::<bool>(),
            10u32..60,
            1u32..3,
        );
        (paths, keys).prop_map(|(paths, keys)| {
            let (seed, delays_us, mut losses, writes) = paths;
            let (coupling, scheduler, kind, recovery, handshake, max_window, ack_every) = keys;
            // One path at least can carry everything; the first opens the connection.
            losses[0] = losses[0].min(30);
            let kind = if coupling == Coupling::Lia { Kind::Tcp } else { kind };
            let mut case = Case {
                seed,
                delays_us,
                losses,
                writes,
                coupling,
                scheduler,
                kind,
                recovery,
                handshake,
                max_window,
                ack_every,
            };
            if handshake {
                // The client opens.
                case.writes[0].0 = 0;
            }
            case
        })
    })
}

/// The next number of SplitMix64.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

proptest! {
    #[test]
    fn everything_is_delivered_once_and_in_order(case in case()) {
        let tcp = TransportParams {
            kind: case.kind,
            recovery: case.recovery,
            handshake: case.handshake,
            max_window: case.max_window,
            ack_every: case.ack_every,
            ack_delay: Span::from_ms(1),
            max_rto: Span::from_ms(100),
            ..tcp()
        };
        let mptcp = MptcpParams {
            subflows: case.delays_us.len() as u32,
            coupling: case.coupling,
            scheduler: case.scheduler,
            ..MptcpParams::default()
        };
        let mut net = Net::new(config(&tcp, &mptcp), &case.delays_us);
        let mut state = case.seed;
        let losses = case.losses.clone();
        net.loses = Box::new(move |now, sent| {
            let percent = losses[sent.subflow];
            let is_dead = percent == 100 && now > Time::ZERO + Span::from_ms(1);
            is_dead || (percent < 100 && draw(&mut state) % 100 < u64::from(percent))
        });
        let mut written = [0, 0];
        for (round, &(end, bytes)) in case.writes.iter().enumerate() {
            written[end] += bytes;
            net.write(end, bytes);
            // A path without room for a while.
            net.paths[round % case.delays_us.len()].state = PathState::Full;
            net.run(net.now + Span::from_us(300));
            net.paths.iter_mut().for_each(|path| path.state = PathState::Open);
            (0..2).for_each(|end| net.send(end));
            net.run(net.now + Span::from_us(700));
        }
        // Swift sends a segment in a second where the path is longer than its target.
        let end = net.now + Span::from_secs(3_600);
        let all = |net: &Net| net.ends[1].received() == written[0] && net.ends[0].received() == written[1];
        while !all(&net) && net.step(end) {}
        prop_assert_eq!((net.ends[1].received(), net.ends[0].received()), (written[0], written[1]));
        prop_assert!(net.ends[0].sent() == written[0] && net.ends[1].sent() == written[1]);
        let acknowledged = |net: &Net| (0..2).all(|end| net.ends[end].acknowledged() == written[end]);
        while !acknowledged(&net) && net.step(end) {}
        prop_assert!(acknowledged(&net), "data ACKs come back");
    }
}
