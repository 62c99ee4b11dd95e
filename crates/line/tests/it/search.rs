//! The search against made-up networks whose line is known.
#![allow(clippy::unwrap_used, reason = "tests")]

use plimsoll_line::Slo;
use plimsoll_line::measure::{Run, SloSample};
use plimsoll_line::search::{Found, Line, SearchRange, SearchState, Slos, VariantSearch};
use plimsoll_stats::search::{SearchAxis, SearchValues, Side};
use proptest::prelude::*;

const RANGE: SearchRange = SearchRange {
    low: 0.004,
    start: 0.4,
    high: 0.99,
    expected: None,
    precision: 0.05,
    replicates_max: 32,
    axis: SearchAxis::LOAD,
};

/// A key that is not a load: the side of its knee that meets the objectives is unknown.
const KEY: SearchRange = SearchRange { axis: SearchAxis { side: None, values: SearchValues::Any }, ..RANGE };

/// SplitMix64, so that a network is a function of its seed.
fn uniform(seed: u64) -> f64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// A skewed factor with mean 1, the same for a replicate at every load, as common random numbers make it.
fn noise(seed: u64, replicate: u32, size: f64) -> f64 {
    let exponential = -(1.0 - uniform(seed.wrapping_mul(1_000_003) + u64::from(replicate))).ln();
    1.0 + size * (exponential - 1.0)
}

fn run_of(share: f64) -> Run {
    let messages = 40_000;
    let over = (share.clamp(0.0, 1.0) * messages as f64).round() as u64;
    Run {
        samples: vec![SloSample { messages, over, parts_us: vec![share, 1.0], ..SloSample::default() }],
        parts: vec!["tor queue".to_owned(), "propagation".to_owned()],
        ..Run::default()
    }
}

/// Searches a network in which `share(load, replicate)` of the messages are over the limit.
fn search(range: SearchRange, share: impl Fn(f64, u32) -> f64) -> (Line, usize, Vec<(f64, SearchState)>) {
    let slos = [Slo::parse("p99(w) < 1ms").unwrap()];
    let mut search = VariantSearch::new(Slos(&slos), range);
    let mut runs = 0;
    loop {
        let asks = search.asks();
        if asks.is_empty() {
            break;
        }
        for ask in asks {
            assert!(ask.load >= range.low * 0.999 && ask.load <= range.high * 1.001, "{ask:?}");
            assert!(ask.replicate < range.replicates_max);
            runs += 1;
            search.take(ask, run_of(share(ask.load, ask.replicate)));
        }
        assert!(runs < 5_000, "no end");
    }
    let loads = search.loads().map(|(load, state, _)| (load, state)).collect();
    (search.line(), runs, loads)
}

/// A share that meets 1 % at `line` and grows by this power of the load.
fn knee(load: f64, line: f64, power: f64) -> f64 {
    0.01 * (load / line).powf(power)
}

#[test]
fn never_and_always() {
    let (line, runs, _) = search(RANGE, |_, _| 0.5);
    assert_eq!(
        (line.found(), line.load(), line.high(), line.binding()),
        (Found::Never, None, Some(0.004), Some(0))
    );
    assert_eq!(runs, 8, "the lowest load and today's");
    let (line, _, loads) = search(RANGE, |_, _| 0.0001);
    assert_eq!(
        (line.found(), line.load(), line.low(), line.binding()),
        (Found::Always, None, Some(0.99), None)
    );
    assert_eq!(loads.iter().map(|(load, _)| *load).collect::<Vec<_>>(), [0.004, 0.4, 0.99]);
    let (line, _, loads) = search(RANGE, |_, _| 0.005);
    assert_eq!(line.found(), Found::Always);
    assert_eq!(loads.iter().map(|(load, _)| *load).collect::<Vec<_>>(), [0.004, 0.4, 0.6, 0.9, 0.99]);
}

#[test]
fn runs_with_nothing_over_the_limit_are_certain_from_sixteen_on() {
    let (line, runs, loads) = search(RANGE, |_, _| 0.0);
    assert_eq!((line.found(), line.low()), (Found::Always, Some(0.99)));
    assert_eq!(
        (runs, loads.len()),
        (4 + 4 + 16, 3),
        "the highest load gets more, and the others no more than four"
    );
    let (line, ..) = search(SearchRange { replicates_max: 8, ..RANGE }, |_, _| 0.0);
    assert_eq!((line.found(), line.load(), line.low(), line.high()), (Found::Undecided, None, None, None));
}

#[test]
fn a_lowest_load_that_stays_open_below_violated_ones_is_no_line() {
    // The lowest load is within the noise of the limit, and no seeds decide it; all others violate it.
    let share = |load: f64, replicate: u32| {
        let noise = if replicate.is_multiple_of(2) { 0.5 } else { 1.5 };
        if load <= RANGE.low { 0.01 * noise } else { 0.3 }
    };
    let (line, _, loads) = search(RANGE, share);
    assert_eq!(loads[0], (RANGE.low, SearchState::Open));
    assert!(loads[1..].iter().all(|(_, state)| *state == SearchState::Sinks), "{loads:?}");
    assert_eq!((line.found(), line.load(), line.low()), (Found::Undecided, None, None));
    assert!(line.high().is_some_and(|high| high > RANGE.low) && !line.is_met(), "{line:?}");
}

#[test]
fn what_no_load_can_meet_is_not_run() {
    let slos = [Slo::parse("p99(w) < 1ms").unwrap()];
    let mut search = VariantSearch::new(Slos(&slos), RANGE);
    search.rule_out();
    assert!(search.asks().is_empty());
    let line = search.line();
    assert_eq!((line.found(), line.load(), line.low(), line.high()), (Found::Never, None, None, Some(0.004)));
}

/// One run in four is far over the limit: that the first seeds are good ones does not make a load a lower end.
#[test]
fn rare_bad_runs_seldom_lift_the_lower_end_over_the_line() {
    let (line, searches) = (0.1, 300);
    let lifted = (0..searches).filter(|&seed| {
        let share = |load: f64, replicate: u32| {
            let is_bad = uniform(seed * 1_000 + u64::from(replicate)) < 0.25;
            if is_bad { 0.04 * (load / line).powi(2) } else { 0.0 }
        };
        let (found, ..) = search(RANGE, share);
        found.low().is_some_and(|low| low > line)
    });
    let lifted = lifted.count();
    assert!(lifted * 20 <= searches as usize, "{lifted} of {searches}");
}

#[test]
fn a_run_that_does_not_drain_is_sunk() {
    let slos = [Slo::parse("p99(w) < 1ms").unwrap()];
    let mut search = VariantSearch::new(Slos(&slos), RANGE);
    for _ in 0..100 {
        for ask in search.asks() {
            let undrained = (ask.load > 0.7).then(|| "bulk".to_owned());
            search.take(ask, Run { undrained, ..run_of(0.0001) });
        }
    }
    let line = search.line();
    assert_eq!((line.found(), line.binding()), (Found::Line, None));
    let load = line.load().unwrap();
    assert!(
        line.low().unwrap() <= 0.7 && load <= line.high().unwrap() && (load / 0.7 - 1.0).abs() < 0.05,
        "{line:?}"
    );
}

#[test]
fn a_metric_that_falls_again_is_told() {
    // Bad only between 0.3 and 0.5.
    let bad = |load: f64| if (0.3..0.5).contains(&load) { 0.05 } else { 0.001 };
    let start = SearchRange { start: 0.4, ..RANGE };
    let (line, ..) = search(start, |load, _| bad(load));
    assert!(line.high().unwrap() >= 0.3 && line.high().unwrap() < 0.32, "{line:?}");
    assert!(!line.is_not_monotone(), "nothing above 0.4 was run");
    // Begun above it, the search comes down on the far side only if a load there sinks.
    let bad = |load: f64| if (0.3..0.5).contains(&load) || load > 0.9 { 0.05 } else { 0.001 };
    let (line, _, loads) = search(SearchRange { start: 0.8, ..RANGE }, |load, _| bad(load));
    assert!(!line.is_not_monotone() && line.low().unwrap() > 0.8, "{loads:?}");
    // Between a kept and a sunk load it meets a sunk one with a kept one above.
    let bad = |load: f64| if (0.05..0.07).contains(&load) || load > 0.9 { 0.05 } else { 0.001 };
    let wide = SearchRange { low: 0.004, start: 0.95, ..RANGE };
    let (line, _, loads) = search(wide, |load, _| if load == 0.2 { 0.001 } else { bad(load) });
    let kept_above =
        loads.iter().any(|(load, state)| *state == SearchState::Keeps && *load > line.high().unwrap());
    assert_eq!(line.is_not_monotone(), kept_above, "{loads:?}");
}

/// The share over the limit rises through 1 % at a knee, or falls through it.
#[test]
fn the_ends_show_on_which_side_of_a_knee_objectives_are_met() {
    for (knee_at, side) in [(0.02, Side::Below), (0.3, Side::Below), (0.3, Side::Above), (0.02, Side::Above)]
    {
        let share = |load: f64, _| match side {
            Side::Below => knee(load, knee_at, 2.0),
            Side::Above => knee(knee_at, load, 2.0),
        };
        let (line, runs, loads) = search(KEY, share);
        assert_eq!((line.found(), line.side()), (Found::Line, side), "{loads:?}");
        let (low, load, high) = (line.low().unwrap(), line.load().unwrap(), line.high().unwrap());
        assert!(low < load && load < high && low <= knee_at && knee_at <= high, "{line:?}");
        assert!((load / knee_at - 1.0).abs() < 0.03 && high / low < 1.12, "{line:?}");
        assert_eq!(
            (line.met(), line.violated()),
            if side == Side::Below { (Some(low), Some(high)) } else { (Some(high), Some(low)) }
        );
        assert!(runs < 300, "{runs}");
    }
}

#[test]
fn ends_that_agree_or_do_not_decide_end_the_search() {
    let at = |states: &[(f64, SearchState)]| states.iter().map(|(load, _)| *load).collect::<Vec<_>>();
    // Geometric between 0.004 and 0.99, with today's 0.4; then in equal steps.
    let inside = vec![0.004, 0.01204, 0.03627, 0.1092, 0.3288, 0.4, 0.99];
    let (line, runs, loads) = search(KEY, |_, _| 0.001);
    assert_eq!((line.found(), line.load(), at(&loads)), (Found::Always, None, inside.clone()));
    assert!(!line.is_not_monotone() && runs < 60, "{runs}");
    let (line, _, loads) = search(KEY, |_, _| 0.5);
    assert_eq!((line.found(), line.load(), at(&loads)), (Found::Never, None, inside));
    let narrow = SearchRange { low: 2.0, start: 3.0, high: 7.0, ..KEY };
    let (line, _, loads) = search(narrow, |_, _| 0.5);
    assert_eq!((line.found(), at(&loads)), (Found::Never, vec![2.0, 3.0, 4.0, 5.0, 6.0, 7.0]));
    let axis = SearchAxis { side: None, values: SearchValues::Whole };
    let (_, _, loads) = search(SearchRange { low: 1.0, start: 1.0, high: 2.0, axis, ..KEY }, |_, _| 0.5);
    assert_eq!(at(&loads), [1.0, 2.0], "no whole number is between them");
    let open = |replicate: u32| 0.01 + if replicate.is_multiple_of(2) { 0.005 } else { -0.005 };
    let (line, _, loads) = search(KEY, |load, replicate| if load > 0.5 { open(replicate) } else { 0.001 });
    assert_eq!(
        (line.found(), line.low(), line.high(), at(&loads)),
        (Found::Undecided, None, None, vec![0.004, 0.99])
    );
}

/// A valley violates the objective from 0.05 to 0.5, a peak meets it there: the change next to the lower end is found.
#[test]
fn a_change_between_ends_that_agree_is_found() {
    for (outside, within, side) in [(0.001, 0.5, Side::Below), (0.5, 0.001, Side::Above)] {
        let share = |load: f64, _| if (0.05..0.5).contains(&load) { within } else { outside };
        let (line, _, loads) = search(KEY, share);
        assert_eq!((line.found(), line.side()), (Found::Line, side), "{loads:?}");
        let (low, high) = (line.low().unwrap(), line.high().unwrap());
        assert!(low < 0.05 && 0.05 <= high && high / low < 1.06, "{line:?}");
        assert!(line.is_not_monotone(), "the other change is there: {line:?}");
        let ends = [loads[0].1, loads[loads.len() - 1].1];
        assert_eq!(ends, if side == Side::Below { [SearchState::Keeps; 2] } else { [SearchState::Sinks; 2] });
    }
}

#[test]
fn whole_numbers_alone_are_tried_where_the_key_is_one() {
    let axis = SearchAxis { side: None, values: SearchValues::Whole };
    let range = SearchRange { low: 1.0, start: 3.0, high: 40.0, axis, ..RANGE };
    let (line, _, loads) = search(range, |load, _| knee(6.5, load, 3.0));
    assert!(loads.iter().all(|(load, _)| load.fract() == 0.0), "{loads:?}");
    assert_eq!((line.violated(), line.met(), line.side()), (Some(6.0), Some(7.0), Side::Above));
    let axis = SearchAxis { side: None, values: SearchValues::PowersOfTwo };
    let range = SearchRange { low: 1.0, start: 48.0, high: 256.0, axis, ..RANGE };
    let (line, _, loads) = search(range, |load, _| knee(6.5, load, 3.0));
    assert!(loads.iter().all(|(load, _)| load.log2().fract() == 0.0), "{loads:?}");
    assert_eq!((line.violated(), line.met()), (Some(4.0), Some(8.0)));
}

#[test]
fn without_noise_the_line_is_met() {
    for line in [0.005, 0.0134, 0.1, 0.39, 0.41, 0.7, 0.95] {
        for power in [1.0, 3.0, 12.0] {
            let (found, runs, _) = search(RANGE, |load, _| knee(load, line, power));
            assert_eq!(found.found(), Found::Line);
            let (low, load, high) = (found.low().unwrap(), found.load().unwrap(), found.high().unwrap());
            assert!(low <= line * 1.001 && line <= high * 1.001, "{line}, power {power}: {found:?}");
            assert!((load / line - 1.0).abs() < 0.03, "{line}, power {power}: {found:?}");
            assert!(runs < 300, "{runs} runs for {line}, power {power}");
        }
    }
}

/// How often the interval holds the line, over networks with skewed noise that differ in their seed.
#[test]
fn the_interval_holds_the_line_as_often_as_it_says() {
    let (mut held, mut total, mut off) = (0, 0, 0.0);
    for seed in 0..400 {
        let line = 0.02 + 0.6 * uniform(seed + 77);
        let (found, ..) =
            search(RANGE, |load, replicate| knee(load, line, 1.5) * noise(seed, replicate, 0.6));
        total += 1;
        let inside =
            found.low().is_none_or(|low| low <= line) && found.high().is_none_or(|high| line <= high);
        held += u32::from(inside);
        off += (found.load().unwrap_or(line) / line - 1.0).abs();
    }
    assert!(f64::from(held) >= 0.95 * f64::from(total), "{held} of {total}");
    assert!(off / f64::from(total) < 0.12, "off by {:.3} on average", off / f64::from(total));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever the network: the search ends, its interval is in order, and the same network gives the
    /// same line.
    #[test]
    fn a_search_ends_and_is_repeatable(
        line in 0.001f64..2.0, power in 0.2f64..20.0, size in 0.0f64..1.0, seed in any::<u64>(),
        max in 2u32..80, precision in 0.005f64..0.5,
    ) {
        let range = SearchRange { replicates_max: max, precision, ..RANGE };
        let go = || search(range, |load, replicate| knee(load, line, power) * noise(seed >> 20, replicate, size));
        let (found, runs, loads) = go();
        prop_assert!(found.low().unwrap_or(0.0) < found.high().unwrap_or(f64::INFINITY));
        if let Some(load) = found.load() {
            prop_assert!(load >= found.low().unwrap_or(load) && load <= found.high().unwrap_or(load));
        }
        prop_assert!(loads.iter().all(|(_, state)| *state != SearchState::Running));
        prop_assert_eq!((found, runs), { let (again, runs, _) = go(); (again, runs) });
    }
}
