//! The numbers of a summary, on outcomes small enough to work out by hand.

use plimsoll_units::{Bytes, Rate, Span, Time};

use super::*;
use crate::outcome::{
    GoodputInterval, MessageRecord, Outcome, QueryRecord, QueueObservation, Split, Supply, WorkloadInfo,
};
use crate::point::{PointKey, PointOutcome};
use crate::stats::paired::ChangeDirection;
use crate::synthetic::{self, Shape};

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// A message of workload 0 that took `took_us`, all of it in the ToR's queue except 10 us on the wire.
fn message(index: u64, created_us: u64, took_us: Option<u64>) -> MessageRecord {
    let queue = Span::from_us(took_us.unwrap_or(10) - 10);
    MessageRecord {
        workload: 0,
        index,
        query: None,
        source: 0,
        destination: 1,
        bytes: 1_000,
        created: at(created_us),
        completed: took_us.map(|took| at(created_us + took)),
        ideal: Span::from_us(10),
        split: Split {
            tier: [queue, Span::ZERO, Span::ZERO],
            propagation: Span::from_us(10),
            ..Split::default()
        },
    }
}

fn outcome_of(messages: Vec<MessageRecord>) -> Outcome {
    Outcome {
        workloads: vec![WorkloadInfo {
            name: "w".into(),
            kind: "rpc".into(),
            deadline: None,
            observed: None,
            supply: Supply::Duration,
            groups: Vec::new(),
        }],
        tiers: vec!["tor".into()],
        end: at(1_000_000),
        messages,
        ..Outcome::default()
    }
}

fn point(variant: &str, replicate: u32, outcome: Outcome) -> PointOutcome {
    PointOutcome::new(PointKey { variant: variant.into(), sweep: vec![], replicate }, 1, outcome)
}

fn summary_of(outcome: Outcome) -> Summary {
    Summary::of(&[point("A", 0, outcome)], &Options::default())
}

#[test]
fn messages_before_the_warmup_and_unfinished_ones() {
    let mut outcome = outcome_of(vec![
        message(0, 5, Some(10_000)),
        message(1, 100, Some(20)),
        message(2, 200, Some(40)),
        message(3, 300, None),
    ]);
    outcome.warmup = Span::from_us(100);
    let summary = summary_of(outcome);
    let workload = &summary.cells[0].workloads[0];
    assert_eq!((workload.messages, workload.unfinished), (3, 1));
    let completion = workload.completion_us.unwrap();
    assert_eq!((completion.mean.value, completion.min, completion.max), (30.0, 20.0, 40.0));
    assert_eq!(workload.slowdown.unwrap().mean.value, 3.0);
    // 2,000 bytes between the first creation at 100 us and the last completion at 240 us.
    assert!((workload.goodput_mbps.unwrap().value - 16_000.0 / 140.0).abs() < 1e-9);
    assert!(matches!(summary.warnings[0], Warning::Unfinished { unfinished: 1, messages: 3, .. }));
}

#[test]
fn the_parts_of_the_time_sum_to_the_completion_time() {
    let messages: Vec<_> = (0..200).map(|i| message(i, i * 10, Some(20 + i))).collect();
    let workload = summary_of(outcome_of(messages)).cells[0].workloads[0].clone();
    let time = workload.time.unwrap();
    assert_eq!(time.parts[4], "tor queue");
    assert_eq!(time.parts.len(), time.mean_us.len());
    let mean: f64 = time.mean_us.iter().sum();
    assert!((mean - workload.completion_us.unwrap().mean.value).abs() < 1e-9);
    // The slowest two of 200 took 218 and 219 us.
    assert_eq!(time.slowest_count, 2);
    assert!((time.slowest_us.iter().sum::<f64>() - 218.5).abs() < 1e-9);
}

#[test]
fn goodput_from_intervals_leaves_the_idle_ends_out() {
    let mut outcome = outcome_of(vec![message(0, 0, Some(10))]);
    let sent = [0u64, 125_000, 0, 250_000, 0, 0];
    outcome.goodput = (0..6)
        .map(|i| GoodputInterval {
            time: at(i * 1_000),
            length: Span::from_ms(1),
            workload: 0,
            sent: Bytes::new(sent[i as usize]),
            delivered: Bytes::new(sent[i as usize] / 2),
        })
        .collect();
    let workload = summary_of(outcome).cells[0].workloads[0].clone();
    // 1, 0 and 2 Gb/s over the three intervals that count.
    assert!((workload.sent_mbps.unwrap().value - 1_000.0).abs() < 1e-9);
    assert!((workload.goodput_mbps.unwrap().value - 500.0).abs() < 1e-9);
}

#[test]
fn queue_delay_is_that_of_interval_means() {
    let mut outcome = outcome_of(vec![]);
    outcome.queues = vec![QueueObservation {
        name: "client".into(),
        port: "tor -> h0".into(),
        rate: Rate::from_gbps(1),
        every: Span::from_ms(1),
        from: Time::ZERO,
        mean_bytes: vec![0.0, 1_250.0, 0.0, 2_500.0, 0.0, 0.0],
        max_bytes: vec![0, 5_000, 0, 12_500, 0, 0],
        // 90 % of the time below 1 KB, 9 % at 3 KB, 1 % in the open last bin.
        time_at: vec![900, 0, 0, 90, 10],
        drops: 1,
        marks: 2,
        packets: 3,
        bytes: 12_500_000,
    }];
    let queue = |trim_idle_ends| {
        let options = Options { trim_idle_ends };
        Summary::of(&[point("A", 0, outcome.clone())], &options).cells[0].queues[0].clone()
    };
    let trimmed = queue(true);
    // 10, 0 and 20 us; numpy's p99 of these three is 19.8.
    assert!((trimmed.mean_us.unwrap().value - 10.0).abs() < 1e-9);
    assert!((trimmed.p99_us.unwrap().value - 19.8).abs() < 1e-9);
    assert!((queue(false).mean_us.unwrap().value - 5.0).abs() < 1e-9);
    assert_eq!(trimmed.max_us, 100.0);
    assert_eq!(trimmed.nearly_empty, Some(0.9));
    let instant = trimmed.instant_us.unwrap();
    assert_eq!((instant.p50, instant.p99, instant.p999), (0.0, 24.0, 32.0));
    assert!(instant.beyond_scale);
    // 12.5 MB in one second of a 1 Gb/s link.
    assert!((trimmed.utilisation.unwrap() - 0.1).abs() < 1e-12);
}

#[test]
fn queries_and_their_deadlines() {
    let mut outcome = outcome_of(vec![]);
    outcome.queries = (0..200)
        .map(|index| QueryRecord {
            workload: 0,
            index,
            created: at(index * 100),
            completed: (index < 199).then(|| at(index * 100 + 50)),
            servers: 10,
            in_deadline: if index == 0 { 4 } else { 10 },
            response_mean: Span::from_us(30),
            response_min: Span::from_us(20),
        })
        .collect();
    let workload = summary_of(outcome).cells[0].workloads[0].clone();
    let queries = workload.queries.unwrap();
    assert_eq!((queries.queries, queries.unfinished), (200, 1));
    assert_eq!(queries.completion_us.unwrap().p50.value, 50.0);
    assert_eq!(queries.response_us.unwrap().mean.value, 30.0);
    assert_eq!(queries.fastest_us.unwrap().max, 20.0);
    assert!((queries.in_deadline.unwrap().value - (198.0 + 0.4) / 199.0).abs() < 1e-12);
    // The worst hundredth of 199 queries is two of them.
    assert!((queries.in_deadline_worst.unwrap() - 0.7).abs() < 1e-12);
    assert_eq!(workload.waited_us().unwrap().p50.value, 50.0);
}

#[test]
fn pairs_are_of_the_same_index() {
    let base: Vec<_> = (0..2_000).map(|i| message(i, i * 100, Some(50 + i % 37))).collect();
    // The other variant is 5 us slower and lost message 7.
    let other = base
        .iter()
        .filter(|m| m.index != 7)
        .map(|m| message(m.index, m.index * 100, Some(55 + m.index % 37)))
        .collect();
    let points = [point("A", 0, outcome_of(base)), point("B", 0, outcome_of(other))];
    let summary = Summary::of(&points, &Options::default());
    assert_eq!(summary.comparisons.len(), 1);
    let change = &summary.comparison("B", &[]).unwrap().workloads[0];
    assert_eq!(change.pairs, 1_999);
    assert!((change.mean.difference.value - 5.0).abs() < 1e-9);
    assert_eq!(change.mean.direction(), ChangeDirection::Higher);
}

#[test]
fn warnings_name_the_flag() {
    let points = synthetic::experiment(&Shape::default(), &["TCP", "HULL"], &[0.2, 0.4], 1, 1);
    let summary = Summary::of(&points, &Options::default());
    let texts: Vec<String> = summary.warnings.iter().map(Warning::to_string).collect();
    assert_eq!(
        texts,
        [
            "p99.9 of `small` needs at least 10,000 samples (has 1,194). Make the run longer with \
             `--set run.duration=...` or repeat it with `--replicates N`",
            "p99 of `background` needs at least 1,000 samples (has 150). Make the run longer with \
             `--set run.duration=...` or repeat it with `--replicates N`",
            "p99 of `search` needs at least 1,000 samples (has 117). Make the run longer with \
             `--set run.duration=...` or repeat it with `--replicates N`",
        ]
    );
}

#[test]
fn the_best_is_named_only_where_the_paired_difference_is_significant() {
    let same = synthetic::experiment(&Shape::default(), &["A", "B"], &[], 1, 1);
    assert_eq!(Summary::of(&same, &Options::default()).best, []);
    let points = synthetic::experiment(&Shape::default(), &["TCP", "DCTCP", "HULL"], &[0.2, 0.6], 3, 9);
    let summary = Summary::of(&points, &Options::default());
    for sweep in summary.sweep_points() {
        // The second best of the short requests is not the first variant, that of the transfers is.
        for statistic in ["mean", "p99"] {
            assert_eq!(summary.best("small", statistic, sweep), Some("HULL"), "{statistic}");
        }
        assert_eq!(summary.best("background", "mean", sweep), Some("TCP"));
        assert_eq!(summary.best("background", "p99.9", sweep), None);
    }
    for best in &summary.best {
        let value = |variant: &str| {
            let waited = summary.cell(variant, &best.sweep)?.workload(&best.workload)?.waited_us()?;
            Some(match best.statistic.as_str() {
                "mean" => waited.mean.value,
                "p50" => waited.p50.value,
                _ => waited.p99.value,
            })
        };
        let others = summary.variants.iter().filter(|variant| **variant != best.variant);
        for other in others {
            assert!(value(&best.variant) < value(other), "{best:?}");
        }
    }
}

#[test]
fn a_summary_reads_back_and_is_the_same_whatever_the_order_of_replicates() {
    let mut points = synthetic::experiment(&Shape::default(), &["TCP", "DCTCP", "HULL"], &[0.2, 0.6], 3, 9);
    let summary = Summary::of(&points, &Options::default());
    let json = serde_json::to_string(&summary).unwrap();
    assert!(serde_json::from_str::<Summary>(&json).unwrap() == summary);
    points.sort_by_key(|point| std::cmp::Reverse(point.key.replicate));
    assert_eq!(serde_json::to_string(&Summary::of(&points, &Options::default())).unwrap(), json);
    assert_eq!(summary.cells.len(), 6);
    assert_eq!(summary.comparisons.len(), 4);
    assert_eq!(summary.sweep_points().len(), 2);
    assert_eq!(summary.workloads(), ["small", "background", "search"]);
}

#[test]
fn advice_fits_what_bounds_the_messages() {
    let with = |supply: Supply, warmup_us: u64, messages: Vec<MessageRecord>| {
        let mut outcome = outcome_of(messages);
        outcome.workloads[0].supply = supply;
        outcome.warmup = Span::from_us(warmup_us);
        outcome
    };
    let done = || vec![message(0, 5, Some(20))];
    let open = || vec![message(0, 5, None)];
    let half = || vec![message(0, 5, Some(20)), message(1, 6, None)];
    let beside_endless = |mut outcome: Outcome| {
        let mut info = outcome.workloads[0].clone();
        info.name = "bulk".into();
        info.supply = Endless;
        outcome.workloads.push(info);
        outcome
    };
    let flags = ["run.duration", "--replicates", "run.drain", "run.warmup"];
    use Supply::*;
    for (what, outcome, expected) in [
        ("few, while it runs", with(Duration, 0, done()), &flags[..2]),
        ("few, of a list", with(Fixed, 0, done()), &flags[1..2]),
        ("few, of an old run", with(Unknown, 0, done()), &flags[1..2]),
        ("endless", with(Endless, 0, open()), &[]),
        ("open", with(Duration, 0, open()), &flags[2..3]),
        ("open, of a list", with(Fixed, 0, open()), &flags[2..3]),
        ("open, where the run ends with its duration", beside_endless(with(Fixed, 0, open())), &flags[..1]),
        ("some open, likewise", beside_endless(with(Fixed, 0, half())), &flags[..2]),
        ("early", with(Duration, 100, done()), &[flags[0], flags[3]]),
        ("early, of a list", with(Fixed, 100, done()), &flags[3..]),
        ("none yet", with(Fixed, 0, vec![]), &flags[..1]),
        ("none in an old run", with(Unknown, 0, vec![]), &[]),
    ] {
        let said: String = summary_of(outcome).warnings.iter().map(Warning::to_string).collect();
        let found: Vec<&str> = flags.into_iter().filter(|flag| said.contains(flag)).collect();
        assert_eq!(found, expected, "{what}: {said}");
    }
}
