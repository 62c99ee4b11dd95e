//! Tests of [`super`]: the rules by hand, the equilibrium, conservation, and a model link with the worst of luck.

use std::collections::VecDeque;

use plimsoll_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

use super::*;
use crate::lossless::LosslessParams;
use crate::pfc::{PAUSE_FRAME, PauseState, PausedLink};

fn link(rate: Rate, propagation: Span, mtu: u64) -> PausedLink {
    let mtu = Bytes::new(mtu);
    PausedLink { rate, back_rate: rate, propagation, mtu, buffer: Bytes::ZERO, priorities: 1 }
}

fn buffers(text: &str, links: usize) -> IngressBuffers {
    let links = vec![link(Rate::from_gbps(10), Span::from_us(1), 1_000); links];
    let params: LosslessParams = toml::from_str(text).unwrap();
    let used = Priorities::one(0).with(3);
    IngressBuffers::new(params.resolve(&links, used).unwrap(), 4)
}

impl IngressBuffers {
    /// Offers a packet; returns the signal, if it was admitted.
    fn offer(&mut self, ingress: u16, priority: u8, bytes: u64) -> Result<Option<Signal>, Refusal> {
        self.admit(ingress, 0, priority, bytes)?;
        Ok(self.on_arrival(ingress, 0, priority, bytes))
    }

    fn depart(&mut self, ingress: u16, priority: u8, bytes: u64) -> Vec<(u16, Signal)> {
        let mut signals = Vec::new();
        self.on_departure(ingress, 0, priority, bytes, |ingress, signal| signals.push((ingress, signal)));
        signals
    }

    fn shared_of(&self, ingress: u16) -> u64 {
        self.plan.shared_part(self.accounts[usize::from(ingress)][3].held)
    }
}

const PAUSE_3: Option<Signal> = Some(Signal::Pause(Priorities::one(3)));
const RESUME_3: Signal = Signal::Resume(Priorities::one(3));

/// One link: reserve 2 KB of two priorities, headroom 5.584 KB, and 100 KB shared with alpha 1.
const BY_HAND: &str =
    "memory = '109584B'\npriorities = '3'\nreserve = '2KB'\nalpha = 1.0\nresume_offset = '3KB'";

#[test]
fn a_packet_takes_reserve_then_shared_then_headroom() {
    let mut buffers = buffers(BY_HAND, 1);
    assert_eq!((buffers.plan.shared, buffers.plan.headroom[0]), (100_000, 5_584));
    assert_eq!(buffers.offer(0, 3, 2_000), Ok(None));
    assert_eq!(buffers.shared_used, 0);
    // Half of the memory is the threshold of one link with alpha 1.
    assert_eq!(buffers.offer(0, 3, 49_999), Ok(None));
    assert_eq!(buffers.offer(0, 3, 1), Ok(PAUSE_3));
    assert_eq!((buffers.shared_used, buffers.plan.threshold_bytes(50_000)), (50_000, 50_000));
    assert_eq!(buffers.offer(0, 3, 5_584), Ok(None));
    assert_eq!(buffers.offer(0, 3, 1), Err(Refusal::Headroom { missing: 1 }));
    let full = BufferPeaks { shared: 55_584, threshold: 50_000, headroom: 5_584, headroom_size: 5_584 };
    assert_eq!(buffers.peaks(), full);
    // More bytes in a larger headroom are further from filling it.
    let mut merged = BufferPeaks { headroom: 9_000, headroom_size: 20_000, ..full };
    merged.merge(full);
    assert_eq!((merged.headroom, merged.headroom_size), (5_584, 5_584));
    for (one, other, most) in [((0, 0), (0, 9), (0, 9)), ((0, 9), (0, 7), (0, 7)), ((1, 9), (2, 20), (1, 9))]
    {
        assert_eq!((fuller(one, other), fuller(other, one)), (most, most));
    }
    // Headroom is given back first, then shared memory.
    assert!(buffers.depart(0, 3, 5_584).is_empty());
    assert_eq!(buffers.shared_used, 50_000);
    assert!(buffers.depart(0, 3, 1_499).is_empty());
    // 48 500 are 3000 below the threshold, which has risen to 51 500.
    assert_eq!(buffers.depart(0, 3, 1), [(0, RESUME_3)]);
    assert!(buffers.paused(0).is_empty());
}

#[test]
fn memory_that_another_link_gives_back_resumes_a_sender() {
    let mut buffers = buffers("memory = '200KB'\npriorities = '3'\nreserve = '0B'\nalpha = 0.5", 2);
    // Link 1 fills its part; then link 0 has less, and all that follows leaves from link 1.
    for ingress in [1, 0] {
        while buffers.paused(ingress).is_empty() {
            buffers.offer(ingress, 3, 1_000).unwrap();
        }
    }
    let (first, second) = (buffers.shared_of(0), buffers.shared_of(1));
    assert!(first < second, "{first} {second}");
    let mut resumed = Vec::new();
    while !resumed.contains(&(0, RESUME_3)) {
        resumed.extend(buffers.depart(1, 3, 1_000));
    }
    assert_eq!(buffers.shared_of(0), first);
    assert!(
        first + 3_000 <= buffers.plan.threshold_bytes(buffers.shared_used) && buffers.paused(0).is_empty()
    );
}

#[test]
fn lossy_packets_are_dropped_at_either_threshold() {
    let mut buffers = buffers(&format!("{BY_HAND}\negress_alpha = 0.25"), 1);
    assert_eq!(buffers.offer(0, 0, 2_000), Ok(None), "the reserve is its own");
    // q <= (100 000 - used) / 4, where used is q less the reserve.
    while buffers.offer(0, 0, 100) == Ok(None) {}
    assert_eq!(buffers.egress[0][0], 20_400);
    assert_eq!(buffers.offer(0, 0, 100), Err(Refusal::Egress));
    // Lossless packets to the same port find room.
    assert_eq!(buffers.offer(0, 3, 30_000), Ok(None));
    let mut buffers = self::buffers(&format!("{BY_HAND}\negress_alpha = 16.0"), 1);
    while buffers.offer(0, 0, 100) == Ok(None) {}
    assert_eq!(buffers.offer(0, 0, 100), Err(Refusal::Ingress));
    assert_eq!(buffers.shared_used, 50_000);
    assert_eq!(buffers.peaks(), BufferPeaks::default(), "of lossless priorities");
}

#[test]
fn a_fixed_threshold_does_not_follow_the_memory() {
    let mut buffers = buffers("memory = '200KB'\nreserve = '0B'\nthreshold = '10KB'\npriorities = '3'", 2);
    for ingress in [0, 1] {
        for _ in 0..9 {
            assert_eq!(buffers.offer(ingress, 3, 1_000), Ok(None));
        }
        assert_eq!(buffers.offer(ingress, 3, 1_000), Ok(PAUSE_3));
    }
    assert!(buffers.depart(0, 3, 2_999).is_empty());
    assert_eq!(buffers.depart(0, 3, 1), [(0, RESUME_3)]);
}

#[test]
fn a_link_that_fails_forgets_its_pauses() {
    let mut buffers = buffers(BY_HAND, 1);
    assert_eq!(buffers.offer(0, 3, 52_000), Ok(PAUSE_3));
    buffers.forget_pauses(0);
    assert!(buffers.paused(0).is_empty());
    assert_eq!(buffers.offer(0, 3, 100), Ok(PAUSE_3));
}

#[test]
#[should_panic(expected = "more leaves than is held")]
fn bytes_are_not_made_up() {
    buffers(BY_HAND, 1).depart(0, 3, 1);
}

/// `n` links that are all full get `alpha / (1 + n alpha)` of the shared memory each.
#[test]
fn equilibrium() {
    for (alpha, hot) in [(0.125, 1), (0.125, 8), (1.0, 1), (1.0, 3), (0.5, 7)] {
        let text = format!("memory = '40MB'\nreserve = '1KB'\nalpha = {alpha}\npriorities = '3'");
        let mut buffers = buffers(&text, 8);
        // In turn, each until it is paused.
        while (0..hot).any(|ingress| buffers.paused(ingress).is_empty()) {
            for ingress in 0..hot {
                if buffers.paused(ingress).is_empty() {
                    buffers.offer(ingress, 3, 100).unwrap();
                }
            }
        }
        let expected = alpha * buffers.plan.shared as f64 / (1.0 + alpha * f64::from(hot));
        for ingress in 0..hot {
            let shared = buffers.shared_of(ingress) as f64;
            assert!(
                (shared - expected).abs() < 1_000.0,
                "alpha {alpha}, {hot} links: {shared} for {expected}"
            );
        }
    }
}

/// Returns the bytes that did not find room in a headroom of `headroom` bytes, with the worst of luck: the switch has
/// begun its longest packet towards the sender as the pause is decided, the sender sends without a gap, and begins its
/// longest packet at the instant at which it obeys.
fn missing(link: &PausedLink, response: Span, headroom: u64, mut next: impl FnMut(u64) -> u64) -> u64 {
    let params = LosslessParams {
        alpha: 1.0,
        reserve: Bytes::ZERO,
        headroom: Some(Bytes::new(headroom)),
        response,
        ..LosslessParams::default()
    };
    let mut buffers = IngressBuffers::new(params.resolve(&[*link; 2], Priorities::one(0)).unwrap(), 1);
    let byte_time = link.rate.byte_time();
    // Another link takes memory, so that the next packet of this one is in the headroom as a whole.
    assert_eq!(buffers.offer(0, 0, 10_000), Ok(None));
    buffers.offer(1, 0, buffers.plan.shared - 10_001).unwrap();
    assert_eq!((buffers.plan.threshold_bytes(buffers.shared_used), buffers.paused(0).is_empty()), (1, true));
    let mut sender = PauseState::default();
    let mut wire = VecDeque::<(Time, u64)>::new();
    let (mut now, mut stop, mut missing) = (Time::ZERO, None, 0);
    loop {
        while let Some(&(at, bytes)) = wire.front()
            && (at <= now || !sender.may(0))
        {
            wire.pop_front();
            match buffers.offer(0, 0, bytes) {
                Ok(Some(_)) => {
                    let frame = byte_time.span((link.mtu + PAUSE_FRAME).get());
                    stop = Some(at + frame + link.propagation + response);
                }
                Ok(None) => {}
                Err(Refusal::Headroom { missing: bytes }) => missing += bytes,
                Err(other) => panic!("{other:?}"),
            }
        }
        if stop.is_some_and(|stop| now > stop) {
            sender.on_signal(Signal::Pause(Priorities::one(0)));
            if wire.is_empty() {
                return missing;
            }
            continue;
        }
        // The bytes that may be begun before the sender obeys; unknown as long as the pause is not decided.
        let left = stop.map_or(0, |stop| (stop - now).as_ps() / byte_time.span(1).as_ps());
        let bytes = match (now == Time::ZERO, stop) {
            (true, _) => link.mtu.get(),
            (false, None) => next(1),
            (false, Some(_)) => next(if left == 0 { link.mtu.get() } else { left.min(link.mtu.get()) }),
        };
        now += byte_time.span(bytes);
        wire.push_back((now + link.propagation, bytes));
    }
}

fn any_link() -> impl Strategy<Value = (PausedLink, Span)> {
    let rate = prop_oneof![Just(1), Just(10), Just(40), Just(100)].prop_map(Rate::from_gbps);
    // Whole bytes of each rate.
    let span = |most: u64| (0..most).prop_map(|units| Span::from_ns(8 * units));
    (rate, span(1_000), span(300), 200u64..9_200)
        .prop_map(|(rate, delay, response, mtu)| (link(rate, delay, mtu), response))
}

proptest! {
    #[test]
    fn one_byte_less_drops((link, response) in any_link()) {
        let needed = crate::lossless::HeadroomTerms::of(&link, response).total().get();
        prop_assert_eq!(missing(&link, response, needed, |worst| worst), 0);
        prop_assert_eq!(missing(&link, response, needed - 1, |worst| worst), 1);
    }

    #[test]
    fn the_headroom_suffices((link, response) in any_link(), sizes in prop::collection::vec(1u64..=9_200, 1..50)) {
        let needed = crate::lossless::HeadroomTerms::of(&link, response).total().get();
        let mut sizes = sizes.iter().cycle();
        let random = |_| sizes.next().map_or(1, |size| 1 + size % link.mtu.get());
        prop_assert_eq!(missing(&link, response, needed, random), 0);
        prop_assert_eq!(missing(&link, response, needed, |_| link.mtu.get()), 0);
    }

    #[test]
    fn bytes_are_conserved(
        alpha in 0.01f64..16.0,
        fixed in prop::option::of(1u64..200_000),
        reserve in 0u64..5_000,
        packets in prop::collection::vec((0u16..4, 0usize..4, any::<bool>(), 40u64..9_000, any::<bool>()), 1..500),
    ) {
        let mut text = format!("memory = '250KB'\npriorities = '3'\nreserve = '{reserve}B'\nalpha = {alpha}");
        if let Some(fixed) = fixed {
            text.push_str(&format!("\nthreshold = '{fixed}B'"));
        }
        let mut buffers = buffers(&text, 4);
        let mut queue = VecDeque::new();
        let (mut paused, mut held) = ([false; 4], 0);
        for (ingress, egress, is_lossless, bytes, leaves) in packets {
            let priority = if is_lossless { 3 } else { 0 };
            if buffers.admit(ingress, egress, priority, bytes).is_ok() {
                let (mut passing, mut both) = (buffers.clone(), buffers.clone());
                let (mut of_passing, mut of_both) = (Vec::new(), Vec::new());
                passing.on_passing(ingress, egress, priority, bytes, |link, signal| of_passing.push((link, signal)));
                of_both.extend(both.on_arrival(ingress, egress, priority, bytes).map(|signal| (ingress, signal)));
                both.on_departure(ingress, egress, priority, bytes, |link, signal| of_both.push((link, signal)));
                prop_assert_eq!((passing, of_passing), (both, of_both), "a packet that passes arrives and departs");
                let signal = buffers.on_arrival(ingress, egress, priority, bytes);
                prop_assert!(signal.is_none() || !paused[usize::from(ingress)], "paused once");
                paused[usize::from(ingress)] |= signal.is_some();
                queue.push_back((ingress, egress, priority, bytes));
                held += bytes;
            }
            if leaves && let Some((ingress, egress, priority, bytes)) = queue.pop_front() {
                buffers.on_departure(ingress, egress, priority, bytes, |ingress, signal| {
                    assert_eq!(signal, RESUME_3);
                    assert!(std::mem::take(&mut paused[usize::from(ingress)]), "resumed once");
                });
                held -= bytes;
            }
            let accounts = || buffers.accounts.iter().flatten();
            prop_assert_eq!(accounts().map(|account| account.held + account.headroom).sum::<u64>(), held);
            let shared: u64 = accounts().map(|account| buffers.plan.shared_part(account.held)).sum();
            prop_assert_eq!(buffers.shared_used, shared);
            prop_assert!(held <= 250_000);
            for ingress in 0..4 {
                let account = buffers.accounts[usize::from(ingress)][3];
                prop_assert!(account.headroom <= buffers.plan.headroom[usize::from(ingress)]);
                prop_assert_eq!(buffers.paused(ingress).has(3), paused[usize::from(ingress)]);
                prop_assert!(account.headroom == 0 || account.is_paused);
            }
            if queue.is_empty() {
                prop_assert!(!paused.contains(&true), "an empty switch pauses nobody");
            }
        }
    }
}
