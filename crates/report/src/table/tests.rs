//! The tables as they are printed.

use plimsoll_results::outcome::{ExtraLoad, Observation, ProcessorTotals};
use plimsoll_results::summary::Options;
use plimsoll_results::synthetic::{self, Shape};
use plimsoll_units::Time;

use super::*;

fn summary(loads: &[f64], replicates: u32) -> Summary {
    let points = synthetic::experiment(&Shape::default(), &["TCP", "DCTCP", "HULL"], loads, replicates, 1);
    Summary::of(&points, &Options::default())
}

#[test]
fn one_point() {
    insta::assert_snapshot!(render(
        &summary(&[], 1),
        Format::Table,
        &TableStyle { color: false, width: 120, details: true, ..TableStyle::default() }
    ));
}

#[test]
fn a_sweep() {
    let style = TableStyle { color: false, width: 120, details: true, ..TableStyle::default() };
    insta::assert_snapshot!(render(&summary(&[0.2, 0.4, 0.6], 3), Format::Table, &style));
}

#[test]
fn without_details_a_table_has_the_percentiles_of_every_workload() {
    let brief = TableStyle { color: false, width: 120, details: false, ..TableStyle::default() };
    let text = render(&summary(&[], 3), Format::Table, &brief);
    let tables = text.split("(low .. high)").next().unwrap_or_default();
    assert!(tables.starts_with("Completion times, 3 replicates\n"), "{text}");
    for words in ["small: rpc", "background: transfer", "search: fan-out", "p50", "p99", "in time"] {
        assert!(tables.contains(words), "no {words}: {text}");
    }
    for words in ["mean", "goodput", "queue", "drops", "slowest"] {
        assert!(!tables.contains(words), "{words}: {text}");
    }
    let swept = render(&summary(&[0.2, 0.4], 1), Format::Md, &brief);
    assert!(swept.contains("Completion time of small") && !swept.contains("Delay in"), "{swept}");
    // A workload whose flows have no end has only its goodput.
    let mut points = synthetic::experiment(&Shape::default(), &["TCP"], &[], 1, 1);
    points[0].outcome.messages.retain(|message| message.workload != 1);
    let text = render(&Summary::of(&points, &Options::default()), Format::Table, &brief);
    assert!(text.contains("goodput Mb/s"), "{text}");
}

#[test]
fn circuits_have_a_table_of_their_own() {
    let mut points = synthetic::experiment(&Shape::default(), &["TCP", "HULL"], &[], 1, 1);
    points.iter_mut().zip([4, 6]).for_each(|(point, hosts)| {
        synthetic::with_circuits(&mut point.outcome, hosts, 40);
    });
    points[1].outcome.circuit_weeks[20].lost_dark = 7;
    let summary = Summary::of(&points, &Options::default());
    let text = render(
        &summary,
        Format::Table,
        &TableStyle { color: false, width: 120, details: true, ..TableStyle::default() },
    );
    let from = text.find("Circuits").expect("the table has a title");
    insta::assert_snapshot!(text[from..].split("\n\n").next().unwrap_or_default());
    let csv = render(&summary, Format::Csv, &TableStyle::default());
    for row in
        ["TCP,circuits,filled,", "HULL,circuits,lost_dark,7.0,,,1", "TCP,circuits,packet_switch_bytes,"]
    {
        assert!(csv.contains(row), "{row}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&render(&summary, Format::Json, &TableStyle::default())).unwrap();
    assert_eq!(json["cells"][1]["circuits"]["lost_dark"], 7);
    assert!(render(&summary, Format::Md, &TableStyle::default()).contains("configurations a week"));
}

#[test]
fn processors_have_a_table_of_their_own() {
    let mut points = synthetic::experiment(&Shape::default(), &["TCP", "HULL"], &[], 1, 1);
    let outcome = &mut points[1].outcome;
    let time = outcome.end.saturating_since(Time::ZERO + outcome.warmup);
    let totals = |host, first, last| ProcessorTotals {
        host,
        busy: vec![time / first, time / last],
        frames_received: 1_000,
        frames_sent: 700,
        ring_drops: 3,
    };
    outcome.processors = vec![totals(0, 2, 10), totals(1, 4, 5)];
    let summary = Summary::of(&points, &Options::default());
    let text = render(
        &summary,
        Format::Table,
        &TableStyle { color: false, width: 120, details: true, ..TableStyle::default() },
    );
    let from = text.find("Processors").expect("the table has a title");
    let table: Vec<Vec<&str>> =
        text[from..].lines().take(4).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(table[3], ["HULL", "37.5", "15.0", "50.0", "2000", "1400", "6"], "{text}");
    let csv = render(&summary, Format::Csv, &TableStyle::default());
    assert!(csv.contains("HULL,processors,busiest_core_busy,0.5,,,1"), "{csv}");
    assert!(!csv.contains("TCP,processors"), "{csv}");
}

#[test]
fn markdown_form() {
    insta::assert_snapshot!(render(&summary(&[], 1), Format::Md, &TableStyle::default()));
}

#[test]
fn an_observation_is_named_for_what_it_is() {
    let mut points = synthetic::experiment(&Shape::default(), &["TCP", "HULL"], &[0.2, 0.4], 1, 1);
    for point in &mut points {
        let outcome = &mut point.outcome;
        outcome.workloads[0].observed = Some("clock offset".to_owned());
        let messages = outcome.messages.iter().filter(|message| message.workload == 0);
        outcome.observations = messages
            .map(|message| Observation {
                workload: 0,
                index: message.index,
                host: 1,
                begun: message.created,
                value: message.split.tier[0],
            })
            .collect();
        outcome.messages.retain(|message| message.workload != 0);
        outcome.extra = vec![ExtraLoad { workload: 1, retries: 5, replicas: 7, bytes: 9 }];
    }
    let summary = Summary::of(&points, &Options::default());
    let table = render(&summary, Format::Table, &TableStyle::default());
    assert!(
        table.contains("Clock offset of small") && !table.contains("Completion time of small"),
        "{table}"
    );
    assert!(!table.contains("no message of `small`"), "{table}");
    let csv = render(&summary, Format::Csv, &TableStyle::default());
    let metrics = ["small,clock_offset_us.p99,", "background,retries,5.0", "background,replicas,7.0"];
    for metric in metrics {
        assert!(csv.contains(metric), "{metric}");
    }
    let one = Summary::of(&points[..1], &Options::default());
    let table = render(
        &one,
        Format::Table,
        &TableStyle { color: false, width: 160, details: true, ..TableStyle::default() },
    );
    assert!(table.contains("clock offsets"), "{table}");
    assert!(table.contains("retries") && table.contains("replicas"), "{table}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80, 100, 160, 250] {
        for loads in [&[][..], &[0.2, 0.4][..]] {
            let style = TableStyle { width, folds: true, ..TableStyle::default() };
            let text = render(&summary(loads, 1), Format::Table, &style);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn colour_only_when_asked_for() {
    let summary = summary(&[], 1);
    let plain = render(
        &summary,
        Format::Table,
        &TableStyle { color: false, width: 120, details: true, ..TableStyle::default() },
    );
    let coloured = render(
        &summary,
        Format::Table,
        &TableStyle { color: true, width: 120, details: true, ..TableStyle::default() },
    );
    assert!(!plain.contains('\u{1b}'));
    // Bold type is explained where there is any.
    assert!(coloured.contains(BEST) && !plain.contains(BEST));
    let mut stripped = coloured.clone();
    for code in ["1", "2", "1;32", "1;33", "0"] {
        stripped = stripped.replace(&format!("\u{1b}[{code}m"), "");
    }
    let stripped = stripped.replace(&format!("{BEST}\n"), "");
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&stripped), trimmed(&plain));
}

#[test]
fn csv_has_one_number_a_row_and_json_the_verdicts() {
    let summary = summary(&[0.2, 0.4], 1);
    let csv = render(&summary, Format::Csv, &TableStyle::default());
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("variant,workload.background.load,subject,metric,value,low,high,samples,warnings")
    );
    assert!(lines.all(|line| line.split(',').count() == 9));
    assert!(csv.contains("TCP,0.2,small,completion_us.p99,"));
    let json: serde_json::Value =
        serde_json::from_str(&render(&summary, Format::Json, &TableStyle::default())).unwrap();
    assert_eq!(json["verdicts"].as_array().unwrap().len(), 2);
    assert_eq!(json["format"], 1);
    assert_eq!(json["cells"].as_array().unwrap().len(), 6);
}

#[test]
fn equal_variants_get_no_verdict() {
    let points = synthetic::experiment(&Shape::default(), &["A", "B"], &[], 1, 1);
    let summary = Summary::of(&points, &Options::default());
    let sentences = verdict::sentences(&summary);
    assert_eq!(
        sentences,
        ["B: no difference from A seen in p99(small) (0 us .. 0 us), mean(background) (0 us .. 0 us), \
          mean(search) (0 us .. 0 us)"]
    );
    let compared = render_compared(&summary, Format::Table, &TableStyle::default());
    assert!(compared.contains("Differences from A"), "{compared}");
    assert_eq!(compared.matches("no difference seen").count(), 7, "{compared}");
}

#[test]
fn a_comparison_has_every_difference_with_its_interval() {
    let summary = summary(&[], 1);
    let table = render_compared(
        &summary,
        Format::Table,
        &TableStyle { color: false, width: 120, details: true, ..TableStyle::default() },
    );
    let row = table.lines().find(|line| line.starts_with("HULL: p99 of small")).unwrap();
    assert!(row.ends_with("lower") && row.matches(" -").count() == 3 && row.contains(" .. "), "{row}");
    let csv = render_compared(&summary, Format::Csv, &TableStyle::default());
    assert!(csv.starts_with(&render(&summary, Format::Csv, &TableStyle::default())));
    assert!(csv.contains("\nHULL,small,difference_us.p99,-"), "{csv}");
}

/// A warning is printed beside the numbers that it concerns, and beside no others.
#[test]
fn rows_of_csv_name_their_warnings() {
    let mut points = synthetic::experiment(&Shape::default(), &["TCP", "DCTCP"], &[0.2, 0.4], 1, 1);
    let suspect = "suspect: frames were handed over late".to_owned();
    let is_dctcp = |point: &&mut plimsoll_results::PointOutcome| point.key.variant == "DCTCP";
    points.iter_mut().rfind(is_dctcp).unwrap().outcome.warnings.push(suspect);
    points[0].outcome.messages.iter_mut().filter(|m| m.workload == 1).for_each(|m| m.completed = None);
    let summary = Summary::of(&points, &Options::default());
    let csv = render(&summary, Format::Csv, &TableStyle::default());
    let words = |start: &str| {
        let row = csv.lines().find(|row| row.starts_with(start)).unwrap_or_else(|| panic!("{start}: {csv}"));
        row.rsplit(',').next().unwrap()
    };
    assert_eq!(words("DCTCP,0.4,small,completion_us.p50,"), "suspect");
    assert_eq!(words("DCTCP,0.4,small,completion_us.p99.9,"), "too-few-samples suspect");
    assert_eq!(words("DCTCP,0.4,network,drops,"), "suspect");
    assert_eq!(words("DCTCP,0.2,small,completion_us.p50,"), "");
    assert_eq!(words("TCP,0.4,small,completion_us.p50,"), "");
    assert_eq!(words("TCP,0.2,background,messages,"), "nothing-completed");
    assert_eq!(words("TCP,0.2,small,messages,"), "");
}
