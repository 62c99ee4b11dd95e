//! The figures of bursts.

use std::collections::BTreeMap;

use super::tables::name;
use crate::chart::{Axis, Body, Chart, ChartLine, Color, Format, Lines, Read};
use crate::html::Figure;
use plimsoll_bursts::{Distribution, Report, cdf};

/// The most lines of a figure that have different colours.
const LINES: usize = 8;

/// Makes the figures of the page. The one of burst lengths has a line for each of the `pairs` pairs of hosts
/// with the most bytes.
pub fn figures(report: &Report, pairs: usize) -> Vec<Figure> {
    let charts = [
        ("packets", Some(of_packets(report, pairs))),
        ("bytes", Some(of_bytes(report))),
        ("times", Some(of_times(report))),
        ("losses", of_losses(report)),
    ];
    let figure = |(id, chart): (&str, Option<Chart>)| Some(Figure::new(id.to_owned(), chart?, Vec::new()));
    charts.into_iter().filter_map(figure).collect()
}

/// Charts the distribution of burst lengths in packets: of all bursts, and of the pairs with the most bytes.
pub fn of_packets(report: &Report, pairs: usize) -> Chart {
    let mut series = vec![line("all pairs", 0, &cdf(&report.lengths_packets))];
    if report.pairs.len() > 1 {
        let shown = report.pairs.iter().filter(|pair| pair.bursts > 0).take(pairs.min(LINES - 1));
        let lines = shown
            .enumerate()
            .map(|(number, pair)| line(&name(report, pair), number + 1, &cdf(&pair.lengths_packets)));
        series.extend(lines);
    }
    chart("Burst length in packets", Axis::log("packets", Format::Count), series)
}

/// Charts the distribution of burst lengths in bytes.
fn of_bytes(report: &Report) -> Chart {
    let bursts = line("bursts", 0, &cdf(&report.lengths_bytes));
    let trains = line("trains", 1, &report.trains.bytes.cdf);
    chart("Bytes of bursts and trains", Axis::log("bytes", Format::Size), vec![bursts, trains])
}

/// Charts the distributions of times.
fn of_times(report: &Report) -> Chart {
    let of = |name, number, distribution: &Distribution| {
        // Microseconds; a logarithmic axis has no zero.
        let points: Vec<(f64, f64)> =
            distribution.cdf.iter().map(|(ns, share)| ((ns / 1e3).max(1e-3), *share)).collect();
        line(name, number, &points)
    };
    let series = vec![
        of("burst (on)", 0, &report.on_ns),
        of("between bursts (off)", 1, &report.off_ns),
        of("inter-car", 2, &report.trains.inter_car_ns),
        of("inter-train", 3, &report.trains.inter_train_ns),
    ];
    chart("On and off periods", Axis::log("time", Format::Time), series)
}

/// Charts the share of bursts of which a segment was retransmitted, by length; `None` where none was.
fn of_losses(report: &Report) -> Option<Chart> {
    if report.losses.seen.retransmitted == 0 {
        return None;
    }
    let points = |of: fn(&plimsoll_bursts::LossBin) -> (u64, u64)| {
        let points = report.losses.by_length.iter().map(|bin| {
            let (part, whole) = of(bin);
            (bin.from as f64, part as f64 / whole.max(1) as f64)
        });
        points.collect::<Vec<_>>()
    };
    let lines = [
        ("bursts with a loss", points(|bin| (bin.bursts_with_loss, bin.bursts))),
        ("segments lost", points(|bin| (bin.retransmitted, bin.segments))),
    ];
    let lines = (0..).zip(&lines).map(|(number, (name, points))| line(name, number, points));
    let series = lines.map(|line| ChartLine { steps: false, ..line }).collect();
    Some(Chart::lines(
        "Loss by burst length",
        "A segment counts as lost if its bytes were captured again; its burst is that of the first time.",
        Axis::log("packets in the burst, at least", Format::Count),
        Axis::from_zero("share", Format::Percent),
        series,
    ))
}

fn chart(title: &str, x: Axis, series: Vec<ChartLine>) -> Chart {
    let series: Vec<ChartLine> = series.into_iter().filter(|line| !line.x.is_empty()).collect();
    Chart {
        title: title.to_owned(),
        note: "The share that is not larger.".to_owned(),
        body: Body::Lines(Lines {
            x,
            y: Axis { max: Some(1.0), ..Axis::from_zero("share", Format::Percent) },
            series,
            read: Read::AtY,
            tail_view: false,
        }),
    }
}

/// Makes a line of steps. Equal positions are one point, since an axis has ascending ones.
fn line(name: &str, number: usize, points: &[(f64, f64)]) -> ChartLine {
    let mut unique: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for (x, y) in points.iter().filter(|(x, _)| *x > 0.0) {
        // The bits of positive numbers are in the numbers' order.
        unique.insert(x.to_bits(), (*x, *y));
    }
    let (x, y) = unique.into_values().unzip();
    ChartLine { steps: true, ..ChartLine::new(name, Color::Scheme(number), x, y) }
}
