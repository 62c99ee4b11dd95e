//! The search against made-up servers whose line is known.

use plimsoll_stats::search::SearchAxis;
use plimsoll_units::{Span, Time};

use super::*;
use crate::arrivals::LoadArrivals;
use crate::book::Counts;
use crate::setup::{LoadPhase, Pace};

const RANGE: SearchRange = SearchRange {
    low: 1_000.0,
    start: 20_000.0,
    high: 100_000.0,
    expected: None,
    precision: 0.05,
    replicates_max: 16,
    axis: SearchAxis::LOAD,
};

/// A round of 10,000 operations, `over` of which take 2 ms and the others 100 us; `lag_us` is the generator's own.
fn measured(rate: f64, over: u64, completed: u64, lag_us: u64) -> MeasuredPhase {
    let mut book = Book::default();
    for operation in 0..10_000 {
        let latency = if operation < over { Span::from_ms(2) } else { Span::from_us(100) };
        Book::record(&mut book.latency, latency);
        Book::record(&mut book.lag, Span::from_us(lag_us));
    }
    book.counts = Counts { due: 10_000, completed, ..Counts::default() };
    let phase = LoadPhase {
        index: 1,
        pace: Pace::Open(LoadArrivals::Poisson, rate),
        from: Time::ZERO,
        to: Time::ZERO + Span::from_secs(1),
    };
    let report = Report::new(&book, &phase, 1, SuspectLimits::default());
    MeasuredPhase::new(book, report, SuspectLimits::default())
}

/// The number of slow operations of 10,000 at `rate`, where 1 % is reached at `line`; rounds differ by a tenth.
fn slow(rate: f64, line: f64, index: u8) -> u64 {
    let noise = 1.0 + 0.1 * (f64::from(index % 4) - 1.5) / 1.5;
    (100.0 * (rate / line).powi(4) * noise).min(10_000.0) as u64
}

fn objectives(text: &str) -> Vec<Objective> {
    vec![text.parse().unwrap()]
}

fn line(measure: impl FnMut(u8, f64) -> anyhow::Result<MeasuredPhase>) -> ServerLine {
    search(&objectives("p99 < 1ms"), RANGE, measure, |_| ()).unwrap()
}

#[test]
fn the_line_of_a_known_server_is_in_the_interval() {
    for truth in [2_500.0, 20_000.0, 61_000.0] {
        let found = line(|index, rate| Ok(measured(rate, slow(rate, truth, index), 10_000, 1)));
        let (low, high) = (found.line.low().unwrap(), found.line.high().unwrap());
        assert!(low <= truth && truth <= high && found.is_met(), "{found}");
        assert!(high / low < 1.35, "{found}");
        assert!(found.sentence.starts_with("p99 < 1ms is met up to "), "{found}");
    }
}

#[test]
fn a_line_beyond_the_range_is_told() {
    let never = line(|_, rate| Ok(measured(rate, 1_000, 10_000, 1)));
    assert_eq!(never.sentence, "p99 < 1ms is violated already at 1000 operations/s, the lowest rate");
    assert!(!never.is_met());
    let always = line(|_, rate| Ok(measured(rate, 1, 10_000, 1)));
    assert_eq!(always.sentence, "p99 < 1ms is met up to 100000 operations/s, the highest rate");
    assert!(always.is_met());
}

#[test]
fn rounds_in_which_the_generator_was_too_slow_decide_nothing() {
    // Every third round is suspect, and would violate the objective.
    let mut count = 0;
    let found = line(|index, rate| {
        count += 1;
        let is_suspect = count % 3 == 0;
        let over = if is_suspect { 10_000 } else { slow(rate, 20_000.0, index) };
        Ok(measured(rate, over, 10_000, if is_suspect { 1_900 } else { 1 }))
    });
    assert!(found.line.low().unwrap() <= 20_000.0 && 20_000.0 <= found.line.high().unwrap(), "{found}");
    assert!(found.rates.iter().any(|at| at.suspect_rounds > 0), "{found}");
    // Above 30,000 a second the generator cannot follow.
    let found = line(|_, rate| Ok(measured(rate, 1, 10_000, if rate > 30_000.0 { 90 } else { 1 })));
    let low = found.line.low().unwrap();
    assert!((28_000.0..=30_000.0).contains(&low) && found.line.high().is_none(), "{found}");
    assert!(found.sentence.contains("no rate is known to violate it; the generator was too slow"), "{found}");
    assert!(found.to_string().contains("SUSPECT: "), "{found}");
    // It cannot follow at all.
    let found = line(|_, rate| Ok(measured(rate, 1, 10_000, 90)));
    assert!(!found.is_met() && found.sentence.contains("undecided already at 1000"), "{found}");
}

#[test]
fn a_server_that_does_not_keep_up_violates_any_objective() {
    let found = search(
        &objectives("p50 < 1s"),
        RANGE,
        |_, rate| {
            let completed = if rate > 40_000.0 { 9_000 } else { 10_000 };
            // Requests leave late, since the server does not read them; the generator has time left.
            let mut measured = measured(rate, 0, completed, if completed < 10_000 { 90 } else { 1 });
            measured.report.generator_busy = 0.5;
            measured.generator = generator_faults(&measured.report, SuspectLimits::default());
            Ok(measured)
        },
        |_| (),
    );
    let found = found.unwrap();
    let (low, high) = (found.line.low().unwrap(), found.line.high().unwrap());
    assert!(low <= 40_000.0 && 40_000.0 < high && high / low < 1.06, "{found}");
}

#[test]
fn wrong_values_end_the_search() {
    let wrong = |_, rate| {
        let mut measured = measured(rate, 0, 10_000, 1);
        measured.report.counts.wrong = 2;
        Ok(measured)
    };
    let error = search(&objectives("p99 < 1ms"), RANGE, wrong, |_| ()).unwrap_err().to_string();
    assert!(error.contains("at 1000 operations/s, 2 values are wrong"), "{error}");
}
