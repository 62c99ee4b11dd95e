//! Tests of the table and of the division of the memory.

use plimsoll_units::{Bytes, Rate, Span};

use super::*;
use crate::pfc::{self, PausedLink};

fn link() -> PausedLink {
    PausedLink {
        rate: Rate::from_gbps(10),
        back_rate: Rate::from_gbps(10),
        propagation: Span::from_us(1),
        mtu: Bytes::new(1_500),
        buffer: Bytes::ZERO,
        priorities: 1,
    }
}

fn params(text: &str) -> LosslessParams {
    toml::from_str(text).unwrap()
}

fn set(priorities: &[u8]) -> Priorities {
    priorities.iter().fold(Priorities::default(), |set, priority| set.with(*priority))
}

#[test]
fn the_memory_is_divided() {
    let plan = params("memory = '1MB'\npriorities = '3'").resolve(&[link(); 4], set(&[0, 3])).unwrap();
    // 3 x 1500 + 84 + 10 Gb/s x 2 us, once a link; 4 KB for two priorities of each link.
    assert_eq!(plan.headroom, [7_084; 4]);
    assert_eq!(plan.shared, 1_000_000 - 4 * 7_084 - 4 * 2 * 4_000);
    assert_eq!(plan.threshold(0).get(), plan.shared / 8);
    assert_eq!(plan.too_small(), None);
    assert_eq!(
        plan.needed[0].to_string(),
        "7.084KB: 1.5KB that cross the threshold, 1.584KB while the pause frame waits and is sent, 2.5KB during a \
         round trip and the response, 1.5KB of the packet that the sender has begun"
    );
}

/// The headroom is `pfc`'s and the crossing packet, also where links differ and senders take their time.
#[test]
fn headroom_terms() {
    for (rate, response) in [(10, 0), (100, 3), (25, 1)] {
        let rate = Rate::from_gbps(rate);
        let link = PausedLink { rate, back_rate: rate, ..link() };
        let response = Span::from_us(response);
        let terms = HeadroomTerms::of(&link, response);
        assert_eq!(terms.total(), link.mtu + pfc::headroom(&link, response));
    }
    // While one packet and one frame take ten times as long on the way back, ten times as much arrives.
    let slow_back = PausedLink { back_rate: Rate::from_gbps(1), ..link() };
    assert_eq!(HeadroomTerms::of(&slow_back, Span::ZERO).ahead, Bytes::new(15_840));
    let no_delay = PausedLink { propagation: Span::ZERO, ..link() };
    assert_eq!(HeadroomTerms::of(&no_delay, Span::ZERO).total(), Bytes::new(4_584));
}

#[test]
fn errors_name_the_numbers() {
    let used = set(&[0, 3]);
    let error = |text: &str| params(text).resolve(&[link(); 4], used).unwrap_err().to_string();
    // Where headroom and reserve exceed the memory, an unsigned threshold would wrap, and never pause.
    assert_eq!(
        error("memory = '60KB'\npriorities = '3'"),
        "`memory` 60KB has no shared part: 4 link(s) with 32KB of `reserve` and 28.336KB of `headroom` in all need \
         more than 60.336KB"
    );
    assert_eq!(
        error("priorities = '8'"),
        "`priorities` cannot be `8`; allowed: one of 0 to 7, a range such as `3..4`, or several with commas, each \
         priority once"
    );
    assert!(error("memory = '0B'").contains("`memory` cannot be 0B"));
    assert!(error("alpha = 0.0").contains("`alpha` cannot be 0"));
    assert!(error("egress_alpha = 2000.0").contains("`egress_alpha` cannot be 2000"));
    assert!(error("response = '2ms'").contains("at most 1ms"));
    assert!(error("threshold = '0B'").contains("more than 0B"));
    let small = params("headroom = '7083B'").resolve(&[link(); 4], used).unwrap().too_small().unwrap();
    let (0, message) = small else { panic!("{small:?}") };
    assert!(
        message.starts_with("`headroom` 7.083KB is 1B less than the link needs, 7.084KB: 1.5KB"),
        "{message}"
    );
    let all = params("priorities = '3, 6..7'\nthreshold = '9KB'\nheadroom = '9KB'\nmay_drop = true");
    assert_eq!(params(&toml::to_string(&all).unwrap()), all);
}

#[test]
fn sets_of_priorities() {
    for (text, priorities) in [("3", &[3][..]), ("3..4", &[3, 4]), ("0, 6..7", &[0, 6, 7])] {
        assert_eq!(params(&format!("priorities = '{text}'")).lossless().unwrap(), set(priorities), "{text}");
    }
    assert_eq!(params("").lossless().unwrap(), Priorities::ALL);
    for text in ["", "9", "3..", "4..3", "3, 2..4", "3,3", "3..4, 3..4"] {
        assert!(params(&format!("priorities = '{text}'")).lossless().is_err(), "{text}");
    }
}

/// An offset above every threshold resumes a sender only when it holds no shared bytes.
#[test]
fn a_resume_offset_of_any_size_does_not_wrap() {
    let text = "memory = '1MB'\nresume_offset = '18446744073709551615B'";
    let plan = params(text).resolve(&[link()], set(&[0])).unwrap();
    for (held, is_paused) in [(plan.reserve, false), (plan.reserve + 1, true)] {
        assert_eq!(plan.keeps_paused(0, 0, &[[held, 0, 0, 0, 0, 0, 0, 0]]), is_paused, "{held}");
    }
}

/// DCQCN's worked values: 12 MB, 32 ports, 8 priorities, 22.4 KB after a pause.
#[test]
fn dcqcn_formulas() {
    let (memory, ports, flight) = (12_000_000.0f64, 32.0, 22_400.0);
    let text = "memory = '12MB'\nreserve = '0B'\nheadroom = '22400B'\nmay_drop = true\nalpha = 1.0";
    let plan = params(text).resolve(&[link(); 32], Priorities::ALL).unwrap();
    let shared = memory - 8.0 * ports * flight;
    assert_eq!(plan.shared, shared as u64);
    assert_eq!(plan.even_share().get(), 24_475, "24.47 KB");
    // beta = 8 is alpha = 1.
    let beta = 8.0;
    for used in [0.0, 1_000_000.0, 5_000_000.0] {
        assert_eq!(plan.threshold(used as u64).get(), (beta * (shared - used) / 8.0) as u64);
    }
    let ecn = beta * shared / (8.0 * ports * (beta + 1.0));
    assert_eq!(plan.ecn_first_below().get(), ecn as u64, "21.76 KB");
    let all = 32.0 * 8.0;
    assert_eq!(plan.together().get(), (shared / (1.0 + all)) as u64);
    // With the fixed threshold it is below one packet, and no ECN threshold marks first.
    let fixed = format!("{text}\nthreshold = '24475B'");
    let fixed = params(&fixed).resolve(&[link(); 32], Priorities::ALL).unwrap();
    assert_eq!(fixed.ecn_first_below().get(), 764);
    assert_eq!(fixed.threshold(5_000_000).get(), 24_475);
    assert_eq!(fixed.together().get(), 24_475);
    // A threshold above the shared memory is never reached: no more than that memory is used.
    let high = params(&format!("{text}\nthreshold = '64MB'")).resolve(&[link(); 4], set(&[0])).unwrap();
    assert_eq!((high.together().get(), high.ecn_first_below().get()), (high.shared / 4, high.shared / 4));
    assert_eq!(fixed.fixed_threshold(), Some(Bytes::new(24_475)));
}
