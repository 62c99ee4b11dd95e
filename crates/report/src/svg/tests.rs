//! Static figures: the same bytes every time, no number that is none.

use plimsoll_results::curves::{Curves, Detail};
use plimsoll_results::summary::{Options, Summary};
use plimsoll_results::synthetic::{self, Shape};

use super::*;
use crate::chart::{Axis, BarSeries, Bars, Format, Line, Lines, Read, Stroke, Whisker};
use crate::plots;

fn charts() -> Vec<Chart> {
    let shape = Shape::default();
    let points = synthetic::experiment(&shape, &["TCP", "DCTCP", "HULL"], &[0.2, 0.4], 3, 1);
    let summary = Summary::of(&points, &Options::default());
    let curves = Curves::of(&points, Detail::FULL);
    let point = points[0].key.sweep.as_slice();
    let queue = ("client".to_owned(), "tor -> h0".to_owned());
    let bar = |name: &str, number, values: [f64; 3]| BarSeries {
        name: name.to_owned(),
        color: Color::Series(number),
        values: values
            .iter()
            .map(|&v| Some(Whisker { value: v, low: Some(0.9 * v), high: Some(1.2 * v) }))
            .collect(),
    };
    vec![
        plots::distribution(&summary, &curves, "small", point),
        plots::time_split(&summary, "small", point).unwrap(),
        plots::timeline(&summary, &curves, &queue, point),
        plots::who_pays(&summary, point).unwrap(),
        plots::over_sweep(&summary, "small", "p99", |d| d.p99),
        Chart {
            title: "Measured beside published".into(),
            note: "Bars <with> \"intervals\" & a logarithmic axis.".into(),
            body: Body::Bars(Bars {
                y: Axis::log("p99", Format::Time),
                groups: ["TCP", "DCTCP", "HULL"].map(str::to_owned).to_vec(),
                series: vec![
                    bar("measured", 0, [3300.0, 900.0, 60.0]),
                    bar("published", 1, [3560.0, 829.0, 56.0]),
                ],
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
    let bars = charts().pop().unwrap();
    let text = render(&bars, Size::default());
    assert!(text.contains("Bars &lt;with&gt; &quot;intervals&quot; &amp; a"));
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
                Line::new("TCP", Color::Series(0), vec![0.2, 0.4, 0.6], vec![120.0, 340.0, 900.0]),
                Line {
                    stroke: Stroke::Dashed,
                    ..Line::new("M/D/1", Color::Series(7), vec![0.2, 0.6], vec![100.0, 800.0])
                },
            ],
            read: Read::AtX,
            tail_view: false,
        }),
    };
    insta::assert_snapshot!(render(&chart, Size { width: 420, height: 260 }));
}

#[test]
fn points_apart_are_not_joined() {
    let line = Line::new("TCP", Color::Series(0), vec![0.1, 0.2, 0.9], vec![100.0, 150.0, 900.0]);
    let drawn = |line: Line| {
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
        (svg.matches("<circle").count(), svg.matches("stroke-width=\"2\"").count())
    };
    // Markers, that of the legend among them, and lines.
    assert_eq!(drawn(line.clone()), (4, 2));
    assert_eq!(drawn(Line { apart: true, ..line }), (4, 0));
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
