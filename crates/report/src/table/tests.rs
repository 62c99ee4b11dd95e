//! The tables as they are printed.

use plimsoll_results::summary::Options;
use plimsoll_results::synthetic::{self, Shape};

use super::*;

fn summary(loads: &[f64], replicates: u32) -> Summary {
    let points = synthetic::experiment(&Shape::default(), &["TCP", "DCTCP", "HULL"], loads, replicates, 1);
    Summary::of(&points, &Options::default())
}

#[test]
fn one_point() {
    insta::assert_snapshot!(render(&summary(&[], 1), Format::Table, &Style { color: false, width: 120 }));
}

#[test]
fn a_sweep() {
    let style = Style { color: false, width: 120 };
    insta::assert_snapshot!(render(&summary(&[0.2, 0.4, 0.6], 3), Format::Table, &style));
}

#[test]
fn markdown_form() {
    insta::assert_snapshot!(render(&summary(&[], 1), Format::Md, &Style::default()));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80, 100, 160, 250] {
        for loads in [&[][..], &[0.2, 0.4][..]] {
            let text = render(&summary(loads, 1), Format::Table, &Style { color: false, width });
            for line in text.lines().take_while(|line| !line.starts_with('±')) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn colour_only_when_asked_for() {
    let summary = summary(&[], 1);
    let plain = render(&summary, Format::Table, &Style { color: false, width: 120 });
    let coloured = render(&summary, Format::Table, &Style { color: true, width: 120 });
    assert!(!plain.contains('\u{1b}'));
    let mut stripped = coloured.clone();
    for code in ["1", "2", "1;32", "1;33", "0"] {
        stripped = stripped.replace(&format!("\u{1b}[{code}m"), "");
    }
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&stripped), trimmed(&plain));
}

#[test]
fn csv_has_one_number_a_row_and_json_the_verdicts() {
    let summary = summary(&[0.2, 0.4], 1);
    let csv = render(&summary, Format::Csv, &Style::default());
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("variant,workload.background.load,subject,metric,value,low,high,samples"));
    assert!(lines.all(|line| line.split(',').count() == 8));
    assert!(csv.contains("TCP,0.2,small,completion_us.p99,"));
    let json: serde_json::Value =
        serde_json::from_str(&render(&summary, Format::Json, &Style::default())).unwrap();
    assert_eq!(json["verdicts"].as_array().unwrap().len(), 2);
    assert_eq!(json["format"], 1);
    assert_eq!(json["cells"].as_array().unwrap().len(), 6);
}

#[test]
fn equal_variants_get_no_verdict() {
    let points = synthetic::experiment(&Shape::default(), &["A", "B"], &[], 1, 1);
    let sentences = verdict::sentences(&Summary::of(&points, &Options::default()));
    assert_eq!(sentences, ["B: no difference from A seen in p99(small), mean(background), mean(search)"]);
}
