//! Figures: the same bytes every time, no number that is none, and every label inside the figure.

use plimsoll_results::curves::{Curves, Detail};
use plimsoll_results::summary::{Options, Summary};
use plimsoll_results::synthetic::{self, Shape};

use plimsoll_units::Span;

use super::canvas::{at, text_width};
use super::*;
use crate::chart::{Axis, ChartLine, DotRow, Dots, Format, Lines, Read, Schemes, Stroke, Whisker};
use crate::circuits::{self, Receivers};
use crate::jobs;
use crate::plots;
use crate::queues::QueueName;

fn charts() -> Vec<Chart> {
    let shape = Shape::default();
    let points = synthetic::experiment(&shape, &["TCP", "DCTCP", "HULL"], &[0.2, 0.4], 3, 1);
    let summary = Summary::of(&points, &Options::default());
    let curves = Curves::of(&points, Detail::FULL);
    let point = points[0].key.sweep.as_slice();
    let mut hybrid = points[0].clone();
    hybrid.outcome.warmup = Span::ZERO;
    synthetic::with_circuits(&mut hybrid.outcome, 4, 30);
    let circuits = Curves::of(&[hybrid], Detail::FULL);
    let receivers = Receivers::of(&circuits);
    let mut trained = points[0].clone();
    synthetic::with_job(&mut trained.outcome, 60);
    let trained = Curves::of(&[trained], Detail::FULL);
    let queue = QueueName { name: "client", port: "tor -> h0" };
    vec![
        plots::distribution(&summary, &curves, "small", point),
        plots::time_split(&summary, "small", point).unwrap(),
        plots::timeline(&summary, &curves, queue, point),
        plots::over_time(&summary, &curves, "small", point),
        plots::who_pays(&summary, point).unwrap(),
        plots::over_sweep(&summary, &plots::panels(&summary)[0], "small", "p99", |d| d.p99),
        circuits::timetable(&circuits.circuits[0], &receivers),
        circuits::bytes_by_week(&circuits.circuits[0], &receivers),
        jobs::ranks(&trained.jobs[0]),
        Chart {
            title: "Measured beside published".into(),
            note: "Names <with> \"quotes\" & a logarithmic axis.".into(),
            body: Body::Lines(Lines {
                x: Axis {
                    label: "variant".into(),
                    categories: ["TCP", "DCTCP with a long name, 30 KB", "HULL"].map(str::to_owned).to_vec(),
                    ..Axis::default()
                },
                y: Axis::log("p99 of the completion time of all requests that completed", Format::Time),
                series: vec![
                    ChartLine::new(
                        "measured",
                        Color::Scheme(0),
                        vec![0.0, 1.0, 2.0],
                        vec![3300.0, 900.0, 60.0],
                    ),
                    ChartLine {
                        stroke: Stroke::Dotted,
                        ..ChartLine::new("published", Color::Scheme(0), vec![0.0, 1.0], vec![3560.0, 829.0])
                    },
                ],
                read: Read::AtX,
                tail_view: false,
            }),
        },
    ]
}

#[test]
fn every_kind_is_drawn_and_is_the_same_every_time() {
    for (chart, again) in charts().iter().zip(charts()) {
        let text = render(chart, Size::default());
        assert_eq!(text, render(&again, Size::default()));
        assert!(!text.contains("NaN") && !text.contains("inf\""), "{}", chart.title);
        assert_eq!(text.matches("<text").count(), text.matches("</text>").count());
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        assert!(text.len() < 200_000, "{} takes {} bytes", chart.title, text.len());
    }
}

#[test]
fn texts_are_escaped() {
    let chart = charts().pop().unwrap();
    let text = render(&chart, Size::default());
    assert!(text.contains("Names &lt;with&gt; &quot;quotes&quot; &amp; a"));
    assert!(
        inline(&chart, Size::default(), "wide", &[])
            .contains("Names &lt;with&gt; &quot;quotes&quot; &amp; a")
    );
}

#[test]
fn a_small_figure() {
    let chart = Chart {
        title: "Queue delay".into(),
        note: String::new(),
        body: Body::Lines(Lines {
            x: Axis { label: "load".into(), ..Axis::default() },
            y: Axis::from_zero("delay", Format::Time),
            series: vec![
                ChartLine::new("TCP", Color::Scheme(0), vec![0.2, 0.4, 0.6], vec![120.0, 340.0, 900.0]),
                ChartLine {
                    stroke: Stroke::Dashed,
                    ..ChartLine::new("M/D/1", Color::Scheme(7), vec![0.2, 0.6], vec![100.0, 800.0])
                },
            ],
            read: Read::AtX,
            tail_view: false,
        }),
    };
    insta::assert_snapshot!(render(&chart, Size { width: 420, plot_height: 160 }));
}

/// Two weeks of three hosts, as a file.
#[test]
fn a_small_timetable() {
    insta::assert_snapshot!(render(&timetable(3, 2), Size { width: 420, plot_height: 160 }));
}

fn timetable(hosts: u32, weeks: u64) -> Chart {
    let mut points = synthetic::experiment(&Shape::default(), &["TCP"], &[], 1, 1);
    points[0].outcome.warmup = Span::ZERO;
    synthetic::with_circuits(&mut points[0].outcome, hosts, weeks);
    let curves = Curves::of(&points, Detail::FULL);
    circuits::timetable(&curves.circuits[0], &Receivers::of(&curves))
}

#[test]
fn a_narrow_figure_shows_fewer_weeks_with_bars_that_can_be_seen() {
    let chart = timetable(8, 30);
    let weeks = |width| {
        let svg = inline(&chart, Size { width, plot_height: 0 }, "", &[]);
        // One target a week and row.
        svg.matches("class=\"target\"").count() / 8
    };
    assert_eq!((weeks(980), weeks(320), weeks(200), weeks(60)), (20, 11, 6, 3));
    let tip = "h0, week 1\nreceiver1\tto h1\t885 KB, 98.3 % filled\nreceiver2\tto h2\t450 KB, 50.0 % filled";
    let svg = inline(&chart, Size::default(), "", &[]);
    assert!(svg.contains(tip), "{svg}");
}

#[test]
fn a_receiver_has_one_color_in_the_timetable_and_in_the_lines() {
    let mut points = synthetic::experiment(&Shape::default(), &["TCP"], &[], 1, 1);
    synthetic::with_circuits(&mut points[0].outcome, 30, 40);
    let curves = Curves::of(&points, Detail::FULL);
    let receivers = Receivers::of(&curves);
    let Body::Timetable(bars) = circuits::timetable(&curves.circuits[0], &receivers).body else { panic!() };
    let Body::Lines(lines) = circuits::bytes_by_week(&curves.circuits[0], &receivers).body else { panic!() };
    // Eight of thirty have colours, and one is for all others.
    assert_eq!(bars.keys.len(), 9);
    assert_eq!(bars.keys[8].color, Color::Reference);
    assert!(lines.series.len() >= 3);
    for line in lines.series.iter().filter(|line| line.stroke == Stroke::Solid) {
        let receiver = line.name.split_once(" to ").unwrap().1;
        let key = bars.keys.iter().find(|key| key.name == format!("to {receiver}")).unwrap();
        assert_eq!(key.color.class(), line.color.class(), "{}", line.name);
    }
}

/// The width of a text is an estimate, so a text at an edge is anchored there.
#[test]
fn the_words_beside_a_reference_are_not_cut_off_where_all_is_on_one_side() {
    let drawn = |value: f64| {
        let row = DotRow {
            group: "small".to_owned(),
            label: "TCP (b) p99".to_owned(),
            color: Color::Scheme(0),
            at: Whisker { value, low: None, high: None },
            hollow: false,
        };
        let body = Dots {
            x: Axis::log("completion time relative to the first run", Format::Ratio),
            reference: 1.0,
            sides: ["faster than the first run".to_owned(), "slower".to_owned()],
            rows: vec![row],
        };
        let chart = Chart { title: String::new(), note: String::new(), body: Body::Dots(body) };
        inline(&chart, Size { width: 980, plot_height: 300 }, "", &[])
    };
    let (slower, faster) = (drawn(40.0), drawn(0.02));
    assert!(slower.contains("<text x=\"2\" y=\"15\" class=\"faint\">← faster"), "{slower}");
    assert!(
        faster.contains("<text x=\"978\" y=\"15\" text-anchor=\"end\" class=\"faint\">slower →"),
        "{faster}"
    );
}

#[test]
fn points_apart_are_not_joined() {
    let line = ChartLine::new("TCP", Color::Scheme(0), vec![0.1, 0.2, 0.9], vec![100.0, 150.0, 900.0]);
    let drawn = |line: ChartLine| {
        let body = Lines {
            x: Axis::default(),
            y: Axis::from_zero("delay", Format::Time),
            series: vec![line],
            read: Read::AtX,
            tail_view: false,
        };
        let svg = render(
            &Chart { title: String::new(), note: String::new(), body: Body::Lines(body) },
            Size::default(),
        );
        (svg.matches("a3.6 3.6 0 1 0 -7.2 0z").count(), svg.matches("stroke-width=\"2\"").count())
    };
    // Markers, including the legend's, and lines.
    assert_eq!(drawn(line.clone()), (4, 2));
    assert_eq!(drawn(ChartLine { apart: true, ..line }), (4, 0));
}

#[test]
fn nothing_to_draw_is_no_panic() {
    let empty = Lines {
        x: Axis::default(),
        y: Axis::log("", Format::Time),
        series: vec![],
        read: Read::AtX,
        tail_view: false,
    };
    let chart = Chart { title: String::new(), note: String::new(), body: Body::Lines(empty) };
    assert!(!render(&chart, Size::default()).contains("NaN"));
}

fn plain(text: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&#39;", "'"), ("&quot;", "\""), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (escaped, c)| text.replace(escaped, c))
}

/// The positions and the texts of all labels, with the width that each is taken to have.
fn labels(svg: &str) -> Vec<(f64, f64, String)> {
    let number = |tag: &str, name: &str| -> f64 {
        tag.split_once(name).unwrap().1.split_once('"').unwrap().0.parse().unwrap()
    };
    svg.split("<text ")
        .skip(1)
        .map(|element| {
            let (tag, rest) = element.split_once('>').unwrap();
            let text = rest.split_once('<').unwrap().0.to_owned();
            let (x, width) = (number(tag, "x=\""), text_width(&plain(&text)));
            let left = match tag {
                tag if tag.contains("rotate") => x - width * 0.77,
                tag if tag.contains("\"end\"") => x - width,
                tag if tag.contains("\"middle\"") => x - width / 2.0,
                _ => x,
            };
            let right = if tag.contains("rotate") { x } else { left + width };
            (left, right, text)
        })
        .collect()
}

#[test]
fn every_label_is_inside_the_figure_on_a_phone_too() {
    for chart in charts() {
        let views = chart.views();
        for (_, view) in &views {
            for width in [300, 320, 464, 980] {
                let size = Size { width, plot_height: 230 };
                for svg in [inline(view, size, "", &[]), render(view, size)] {
                    for (left, right, text) in labels(&svg) {
                        assert!(
                            left >= 0.0 && right <= f64::from(width),
                            "{width}: {text}: {left} to {right}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_file_has_no_targets_and_a_report_has_a_tooltip_for_every_place() {
    for chart in charts() {
        assert!(!render(&chart, Size::default()).contains("data-tip"));
        for (_, view) in chart.views() {
            let svg = inline(&view, Size::default(), "wide", &[]);
            let tips: Vec<&str> =
                svg.split("data-tip=\"").skip(1).map(|tip| tip.split('"').next().unwrap()).collect();
            assert!(tips.len() >= 2, "{}", chart.title);
            for tip in tips {
                let entries: Vec<&str> = tip.split('\n').skip(1).collect();
                assert!(
                    !entries.is_empty() && entries.iter().all(|entry| entry.matches('\t').count() == 2),
                    "{tip}"
                );
            }
        }
    }
}

#[test]
fn a_variant_has_the_same_color_and_marker_in_every_figure() {
    let schemes = Schemes::of([["TCP", "DCTCP", "HULL"]]);
    for chart in &charts()[..5] {
        let colors: Vec<(&str, Color)> = match &chart.body {
            Body::Lines(body) => body.series.iter().map(|line| (line.name.as_str(), line.color)).collect(),
            Body::Stacked(body) => {
                body.rows.iter().map(|row| (row.label.as_str(), row.scheme.unwrap())).collect()
            }
            Body::Dots(body) => body.rows.iter().map(|row| (row.label.as_str(), row.color)).collect(),
            Body::Gantt(_) | Body::Timetable(_) | Body::Tracks(_) => {
                panic!("no variant has a bar of its own")
            }
        };
        assert!(colors.len() >= 2);
        for (name, color) in colors {
            let variant = name.split(' ').next().unwrap();
            assert_eq!(Some(color), schemes.find(variant), "{}: {name}", chart.title);
        }
    }
}

#[test]
fn positions_have_the_digits_of_the_formatter() {
    let by_formatter = |value: f64| {
        let text = format!("{value:.1}");
        let text = text.strip_suffix(".0").unwrap_or(&text);
        if text == "-0" { "0".to_owned() } else { text.to_owned() }
    };
    // Ties, and their neighbours; numbers that round to zero; and a drawing's positions.
    let ties =
        (-4_000..4_000).map(|n| f64::from(n) / 20.0).flat_map(|tie| [tie.next_down(), tie, tie.next_up()]);
    let others = (-5_000..5_000).map(|n| f64::from(n) * 0.137_31);
    for value in ties.chain(others).chain([0.0, -0.0, 1e-300, -1e-300, 1e15, f64::NAN, f64::INFINITY]) {
        assert_eq!(at(value), by_formatter(value), "{value:e}");
    }
}

/// Writes the figures to the folder named by `PLIMSOLL_FIGURES`, to be looked at.
#[test]
#[ignore = "nothing is tested: it draws what is to be looked at"]
fn figures_to_look_at() {
    let folder = std::env::var("PLIMSOLL_FIGURES").expect("PLIMSOLL_FIGURES names a folder");
    for (number, chart) in charts().iter().enumerate() {
        let path = std::path::Path::new(&folder).join(format!("figure{number}.svg"));
        std::fs::write(path, render(chart, Size::default())).unwrap();
    }
}
