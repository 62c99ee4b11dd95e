//! Tests of [`super`]: the rules, and a model link with the worst of luck.

use super::*;
use plimsoll_units::Time;
use proptest::prelude::*;

fn link() -> PausedLink {
    PausedLink {
        rate: Rate::from_gbps(10),
        back_rate: Rate::from_gbps(10),
        propagation: Span::from_us(1),
        mtu: Bytes::new(1_500),
        buffer: Bytes::new(128_000),
        priorities: 8,
    }
}

fn params(text: &str) -> PfcParams {
    toml::from_str(text).unwrap()
}

fn account(text: &str) -> IngressAccount {
    IngressAccount::new(&params(text).resolve(&link()).unwrap())
}

const PAUSE_3: Option<Signal> = Some(Signal::Pause(Priorities::one(3)));
const RESUME_3: Option<Signal> = Some(Signal::Resume(Priorities::one(3)));

#[test]
fn headroom_by_hand() {
    // 3000 + 84 + 10 Gb/s x 2 us.
    assert_eq!(headroom(&link(), Span::ZERO), Bytes::new(5_584));
    assert_eq!(headroom(&link(), Span::from_us(3)), Bytes::new(9_334));
    let odd = PausedLink { propagation: Span::from_ps(1), ..link() };
    assert_eq!(headroom(&odd, Span::ZERO), Bytes::new(3_085));
    // During a packet that takes ten times as long on the way back, ten packets arrive.
    let slow_back = PausedLink { back_rate: Rate::from_gbps(1), ..link() };
    assert_eq!(headroom(&slow_back, Span::ZERO), Bytes::new(5_584 + 9 * 1_500));
    let fast_back = PausedLink { back_rate: Rate::from_gbps(100), ..link() };
    assert_eq!(headroom(&fast_back, Span::ZERO), Bytes::new(5_584));
}

#[test]
fn thresholds_that_fit() {
    // 16000 a priority, less 1500 and 5584.
    let by_priority = params("").resolve(&link()).unwrap();
    assert_eq!((by_priority.xoff, by_priority.xon, by_priority.headroom), (8_916, 4_458, 5_584));
    let by_link = params("scope = 'link'").resolve(&link()).unwrap();
    assert_eq!((by_link.xoff, by_link.xon), (120_916, 60_458));
    let given = params("xoff = '8KB'\nxon = '8KB'\nheadroom = '6KB'").resolve(&link()).unwrap();
    assert_eq!((given.xoff, given.xon, given.headroom), (8_000, 8_000, 6_000));
}

#[test]
fn errors_name_the_numbers() {
    let message = |text: &str, link: PausedLink| params(text).resolve(&link).unwrap_err().to_string();
    let small = message("xoff = '10KB'", link());
    assert_eq!(
        small,
        "flow control needs 136.672KB of buffer for a link, which has 128KB: for each of 8 class(es) \
         `xoff` 10KB, the packet that crosses it 1.5KB, and `headroom` 5.584KB"
    );
    let none = message("", PausedLink { buffer: Bytes::new(50_000), ..link() });
    assert!(none.contains("needs 56.68KB") && none.contains("has 50KB"), "{none}");
    assert!(message("xoff = '4KB'\nxon = '5KB'", link()).contains("`xon` is 5KB"));
    assert!(message("xoff = '0B'", link()).contains("more than 0"));
    assert!(message("response = '2ms'", link()).contains("at most 1ms"));
    assert!(message("", PausedLink { priorities: 9, ..link() }).contains("1 to 8"));
    assert!(toml::from_str::<PfcParams>("x_off = '1B'").is_err());
    let all = params("scope = 'link'\nxoff = '3KB'\nxon = '1KB'\nheadroom = '9KB'\nresponse = '1us'");
    assert_eq!(params(&toml::to_string(&all).unwrap()), all);
}

#[test]
fn a_priority_is_paused_and_resumed_once() {
    let mut account = account("xoff = '3KB'\nxon = '1KB'");
    for (arrives, bytes, signal, held) in [
        (true, 1_500, None, 1_500),
        (true, 1_499, None, 2_999),
        (true, 1, PAUSE_3, 3_000),
        (true, 1_500, None, 4_500),
        (false, 3_000, None, 1_500),
        (true, 1_500, None, 3_000), // still paused
        (false, 1_999, None, 1_001),
        (false, 1, RESUME_3, 1_000),
        (false, 1_000, None, 0),
        (true, 3_000, PAUSE_3, 3_000),
    ] {
        let said = if arrives { account.on_arrival(3, bytes) } else { account.on_departure(3, bytes) };
        assert_eq!((said, account.held_bytes(3)), (signal, held));
    }
    assert!(account.paused().has(3) && !account.paused().has(2));
    assert_eq!((account.on_arrival(2, 2_999), account.held_bytes(2)), (None, 2_999));
}

#[test]
fn a_link_is_paused_as_one() {
    let mut account = account("scope = 'link'\nxoff = '3KB'\nxon = '1KB'");
    assert_eq!(account.on_arrival(0, 1_500), None);
    assert_eq!(account.on_arrival(7, 1_500), Some(Signal::Pause(Priorities::ALL)));
    assert_eq!(account.on_arrival(5, 1_500), None);
    assert_eq!((account.on_departure(7, 1_500), account.held_bytes(1)), (None, 3_000));
    assert_eq!(account.on_departure(0, 1_500), None);
    assert_eq!(account.on_departure(5, 1_000), Some(Signal::Resume(Priorities::ALL)));
    assert!(account.paused().is_empty());
}

#[test]
fn a_sender_obeys() {
    let mut sender = PauseState::default();
    assert!((0..8).all(|priority| sender.may(priority)));
    assert!(!sender.on_signal(Signal::Pause(Priorities::one(3))));
    assert!(!sender.may(3) && sender.may(2) && sender.may(4));
    assert!(!sender.on_signal(Signal::Pause(Priorities::ALL)));
    assert!((0..8).all(|priority| !sender.may(priority)));
    assert!(sender.on_signal(Signal::Resume(Priorities::one(3))));
    assert!(sender.may(3) && !sender.may(0) && sender.paused().has(0));
    assert!(!sender.on_signal(Signal::Resume(Priorities::one(3))));
}

#[test]
#[should_panic(expected = "more leaves than is held")]
fn bytes_are_not_made_up() {
    account("").on_departure(0, 1);
}

/// Returns the most that an ingress holds when nothing leaves it. The sender is never short of packets; their sizes
/// come from `next_bytes`, whose argument is the moment before which a packet may be begun, once that is known. The
/// receiver's end has begun its longest packet as the pause is decided.
fn most_held(
    link: &PausedLink,
    thresholds: &Thresholds,
    response: Span,
    mut next_bytes: impl FnMut(Time, Option<Time>) -> u64,
) -> u64 {
    let byte_time = link.rate.byte_time();
    let mut account = IngressAccount::new(thresholds);
    let mut sender = PauseState::default();
    // Packets on the wire: when they have arrived whole, and their bytes.
    let mut wire = std::collections::VecDeque::<(Time, u64)>::new();
    let (mut now, mut stop) = (Time::ZERO, None);
    loop {
        // All that has arrived before the sender's next packet can begin. Should it begin in the same
        // instant as one arrives, it does so first.
        while let Some(&(at, bytes)) = wire.front()
            && (at < now || !sender.may(0))
        {
            wire.pop_front();
            if account.on_arrival(0, bytes).is_some() {
                let frame = byte_time.span(link.mtu.get()) + byte_time.span(PAUSE_FRAME.get());
                stop = Some(at + frame + link.propagation + response);
            }
        }
        if stop.is_some_and(|stop| now >= stop) {
            sender.on_signal(Signal::Pause(Priorities::one(0)));
            if wire.is_empty() {
                return account.held_bytes(0);
            }
            continue;
        }
        let bytes = next_bytes(now, stop);
        now += byte_time.span(bytes);
        wire.push_back((now + link.propagation, bytes));
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    link: PausedLink,
    response: Span,
}

fn case() -> impl Strategy<Value = Case> {
    let rate = prop_oneof![Just(1), Just(10), Just(40), Just(100)].prop_map(Rate::from_gbps);
    (rate, 100u64..20_000, 0u64..5_000, 200u64..9_200).prop_map(|(rate, delay, response, mtu)| Case {
        link: PausedLink {
            rate,
            back_rate: rate,
            propagation: Span::from_ns(delay),
            mtu: Bytes::new(mtu),
            buffer: Bytes::new(100_000_000),
            priorities: 1,
        },
        response: Span::from_ns(response),
    })
}

/// Sizes that fill the time to `stop` to the last byte, and then the largest packet: no luck is worse.
fn worst(link: PausedLink) -> impl FnMut(Time, Option<Time>) -> u64 {
    let byte_time = link.rate.byte_time();
    let mtu = link.mtu.get();
    move |now, stop| match stop {
        // A byte at a time, until one more would be too many.
        Some(stop) if now + byte_time.span(1) < stop => {
            let left = stop.saturating_since(now).as_ps() - 1;
            (left / byte_time.span(1).as_ps()).clamp(1, mtu)
        }
        Some(_) => mtu,
        None => 1,
    }
}

proptest! {
    #[test]
    fn the_headroom_suffices(case in case(), sizes in prop::collection::vec(1u64..=1_000_000, 1..50)) {
        let params = PfcParams { xoff: Some(Bytes::new(20_000)), response: case.response, ..Default::default() };
        let thresholds = params.resolve(&case.link).unwrap();
        let limit = thresholds.xoff + case.link.mtu.get() + thresholds.headroom;
        let mut sizes = sizes.iter().cycle();
        let random = |_, _| sizes.next().map_or(1, |size| 1 + size % case.link.mtu.get());
        let full = |_, _| case.link.mtu.get();
        for held in [
            most_held(&case.link, &thresholds, case.response, random),
            most_held(&case.link, &thresholds, case.response, full),
            most_held(&case.link, &thresholds, case.response, worst(case.link)),
        ] {
            prop_assert!(held <= limit, "{} B held, {} B of buffer", held, limit);
        }
    }

    /// Every term is needed: with worst luck no more than a few bytes of the headroom are left over.
    #[test]
    fn no_term_can_be_left_out(case in case()) {
        let PausedLink { rate, propagation, mtu, .. } = case.link;
        let params = PfcParams { xoff: Some(Bytes::new(20_000)), response: case.response, ..Default::default() };
        let thresholds = params.resolve(&case.link).unwrap();
        let held = most_held(&case.link, &thresholds, case.response, worst(case.link));
        // The crossing packet has one byte here: xoff is reached exactly.
        let used = held - thresholds.xoff;
        let bytes_in = |span: Span| span.as_ps() as u128 * u128::from(rate.as_bps()) / 8_000_000_000_000;
        let terms = [
            ("the sender's packet", u128::from(mtu.get())),
            ("the receiver's packet", u128::from(mtu.get())),
            ("the pause frame", u128::from(PAUSE_FRAME.get())),
            ("propagation, one way", bytes_in(propagation)),
            ("the response", bytes_in(case.response)),
        ];
        for (name, bytes) in terms {
            let without = thresholds.headroom - bytes as u64;
            prop_assert!(used > without || bytes <= 4, "{}: {} B used, {} B kept", name, used, without);
        }
    }
}

#[test]
fn the_highest_of_a_set_is_that_of_its_members() {
    for bits in 0..=u8::MAX {
        let of = |bits: u8| {
            let members = (0..8).filter(move |priority| bits >> priority & 1 == 1);
            members.fold(Priorities::default(), Priorities::with)
        };
        let highest = (0..8).rev().find(|priority| of(bits).has(*priority));
        assert_eq!(of(bits).highest(), highest);
        for others in [0, 1, 0x80, 0x55, u8::MAX] {
            assert_eq!(of(bits).without(of(others)), of(bits & !others));
        }
    }
}
