//! Lines over an axis across and one upwards.

use super::canvas::{
    Anchor, BASE, Canvas, FAINT, GRID, PlotFrame, at, dashes, marker_path, text_width, wrapped,
};
use super::scale::{Scale, Tick};
use super::tips;
use crate::chart::{Axis, ChartLine, Lines, Shape};

/// A line of at most this many points has a marker at each of them.
const MARKED_POINTS: usize = 30;
/// The distance between two markers of a line with more points.
const BETWEEN_MARKERS: f64 = 110.0;
const TICK_GAP: f64 = 8.0;
/// The slope of names that have no room beside each other.
const SLOPE: f64 = 40.0;

pub(super) fn lines(canvas: &mut Canvas<'_>, body: &Lines) {
    let y_data = body.series.iter().flat_map(|line| {
        let around = line.around.iter().flat_map(|a| a.low.iter().chain(&a.high)).flatten();
        line.y.iter().chain(around).copied()
    });
    let (mut frame, y) = frame_with_y(canvas, &body.y, y_data);
    let names = AxisNames::new(&body.x.categories, canvas.width, &mut frame);
    let axis = match body.x.categories.len() {
        0 => body.x.clone(),
        // Half a place of room on both sides.
        places => Axis { min: Some(-0.5), max: Some(places as f64 - 0.5), log: false, ..body.x.clone() },
    };
    let x_data = body.series.iter().flat_map(|line| line.x.iter().copied());
    let x = Scale::fit(&axis, x_data, frame.left, frame.right);
    draw_y(canvas, frame, &y);
    draw_x(canvas, frame, &x, &axis, &names);
    for (number, line) in body.series.iter().enumerate() {
        canvas.open(line.color, &line.name);
        // The points of a category are side by side, since error bars of equal height would hide each other.
        let is_beside = line.apart && !body.x.categories.is_empty();
        let aside = if is_beside { (number as f64 + 0.5) / body.series.len() as f64 - 0.5 } else { 0.0 };
        draw_line(canvas, line, BESIDE * aside, &x, &y);
        canvas.raw("</g>");
    }
    tips::of_lines(canvas, body, frame, &x, &y);
}

/// The share of a category's room that the points of all lines take.
const BESIDE: f64 = 0.6;

/// The direction in which the names of an axis without numbers are written.
enum AxisNames {
    /// Beside each other, each in as many lines as it needs.
    Wrapped(Vec<Vec<String>>),
    /// Sloping, with the first letter lowest.
    Sloping(Vec<String>),
}

impl AxisNames {
    /// Chooses the direction by the available room; sloping names may need more of it at the left of the frame.
    fn new(names: &[String], width: f64, frame: &mut PlotFrame) -> AxisNames {
        const LINES: usize = 3;
        let slot = frame.width() / names.len().max(1) as f64;
        let fits = |name: &String| {
            let widest_word = name.split_whitespace().map(text_width).fold(0.0, f64::max);
            widest_word + TICK_GAP <= slot && wrapped(name, slot - TICK_GAP).len() <= LINES
        };
        if names.iter().all(fits) {
            return AxisNames::Wrapped(names.iter().map(|name| wrapped(name, slot - TICK_GAP)).collect());
        }
        let cos = SLOPE.to_radians().cos();
        let needs = |(number, name): (usize, &String)| {
            text_width(name).min(width / 2.0) * cos - (number as f64 + 0.5) * slot
        };
        frame.left = frame.left.max(names.iter().enumerate().map(needs).fold(0.0, f64::max));
        AxisNames::Sloping(names.to_vec())
    }
}

/// The drawing area, with the label of `axis` above it and room at its left for the ticks.
fn frame_with_y(canvas: &mut Canvas<'_>, axis: &Axis, data: impl Iterator<Item = f64>) -> (PlotFrame, Scale) {
    let mut frame = PlotFrame {
        left: canvas.pad,
        top: canvas.top,
        right: canvas.width - canvas.pad - 6.0,
        bottom: canvas.top + canvas.plot_height,
    };
    let data: Vec<f64> = data.collect();
    let label = Scale::fit(axis, data.iter().copied(), 0.0, 1.0).label(&axis.label);
    canvas.paragraph(&label, &FAINT);
    frame.top = canvas.top + 12.0;
    frame.bottom = frame.top + canvas.plot_height;
    let y = Scale::fit(axis, data.into_iter(), frame.bottom, frame.top);
    let widest = y.ticks(6).iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
    frame.left += widest + TICK_GAP;
    (frame, y)
}

fn draw_y(canvas: &mut Canvas<'_>, frame: PlotFrame, y: &Scale) {
    let mut grid = String::new();
    for Tick { value, label } in y.ticks(6) {
        let place = y.place(value);
        if !label.is_empty() {
            grid.push_str(&format!("M{} {}H{}", at(frame.left), at(place), at(frame.right)));
            canvas.text(frame.left - TICK_GAP, place + 4.0, Anchor::End, &label, "", &FAINT);
        }
    }
    canvas.lines(&grid, &GRID);
}

fn draw_x(canvas: &mut Canvas<'_>, frame: PlotFrame, x: &Scale, axis: &Axis, names: &AxisNames) {
    canvas.lines(&format!("M{} {}H{}", at(frame.left), at(frame.bottom), at(frame.right)), &BASE);
    let below = match names {
        _ if axis.categories.is_empty() => {
            draw_ticks(canvas, frame, x);
            20.0
        }
        AxisNames::Wrapped(names) => {
            for (place, lines) in names.iter().enumerate() {
                for (number, line) in lines.iter().enumerate() {
                    let down = frame.bottom + 18.0 + 14.0 * number as f64;
                    canvas.text(x.place(place as f64), down, Anchor::Middle, line, "", &FAINT);
                }
            }
            6.0 + 14.0 * names.iter().map(Vec::len).max().unwrap_or(0) as f64
        }
        AxisNames::Sloping(names) => {
            for (place, name) in names.iter().enumerate() {
                let (across, down) = (x.place(place as f64) + 4.0, frame.bottom + 14.0);
                let turned = format!("transform=\"rotate(-{SLOPE} {} {})\"", at(across), at(down));
                canvas.text(across, down, Anchor::End, name, &turned, &FAINT);
            }
            let widest = names.iter().map(|name| text_width(name)).fold(0.0, f64::max);
            18.0 + widest * SLOPE.to_radians().sin()
        }
    };
    let middle = (frame.left + frame.right) / 2.0;
    let mut down = frame.bottom + below;
    for line in wrapped(&x.label(&axis.label), canvas.inside()) {
        down += LEADING_OF_LABEL;
        canvas.centred(middle, down, &line, &FAINT);
    }
    canvas.height = down + 4.0 + canvas.pad * 0.7;
}

const LEADING_OF_LABEL: f64 = 16.0;

/// Draws ticks, and the labels that have room between their neighbours.
fn draw_ticks(canvas: &mut Canvas<'_>, frame: PlotFrame, x: &Scale) {
    let (mut free, mut path) = (f64::NEG_INFINITY, String::new());
    for Tick { value, label } in x.ticks_across() {
        let (place, half) = (x.place(value), text_width(&label) / 2.0);
        let has_room = !label.is_empty() && place - half >= free;
        let length = if has_room { 6.0 } else { 3.0 };
        path.push_str(&format!("M{} {}v{length}", at(place), at(frame.bottom)));
        if has_room {
            free = place + half + TICK_GAP;
            canvas.centred(place, frame.bottom + 18.0, &label, &FAINT);
        }
    }
    canvas.lines(&path, &BASE);
}

/// Draws a line whose positions are all shifted by `aside`.
fn draw_line(canvas: &mut Canvas<'_>, line: &ChartLine, aside: f64, x: &Scale, y: &Scale) {
    let places: Vec<(f64, f64)> =
        line.x.iter().zip(&line.y).map(|(&vx, &vy)| (x.place(vx + aside), y.place(vy))).collect();
    if let Some(around) = &line.around {
        let end = |ends: &[Option<f64>], i: usize| ends.get(i).copied().flatten().map(|value| y.place(value));
        let ends: Vec<(f64, f64, f64)> = places
            .iter()
            .enumerate()
            .filter_map(|(i, &(across, _))| Some((across, end(&around.low, i)?, end(&around.high, i)?)))
            .collect();
        match around.shape {
            Shape::Band => {
                let all: Vec<(f64, f64)> = ends.iter().map(|&(across, low, _)| (across, low)).collect();
                let drawn: Vec<(f64, f64, f64)> = match columns(&all) {
                    None => ends,
                    Some(ranges) => {
                        let outermost = |range: std::ops::Range<usize>| {
                            let (across, low, high) = ends[range.start];
                            let of = &ends[range];
                            let lowest = of.iter().map(|end| end.1).fold(low, f64::max);
                            (across, lowest, of.iter().map(|end| end.2).fold(high, f64::min))
                        };
                        ranges.into_iter().map(outermost).collect()
                    }
                };
                let upper = drawn.iter().map(|&(across, _, high)| (across, high));
                let lower = drawn.iter().rev().map(|&(across, low, _)| (across, low));
                let path = joined(&upper.chain(lower).collect::<Vec<_>>(), false);
                canvas.raw(&format!("<path d=\"{path}z\" fill=\"currentColor\" fill-opacity=\"0.17\"/>"));
            }
            Shape::ErrorBars => {
                let bar = |&(across, low, high): &(f64, f64, f64)| {
                    let left = at(across - 4.0);
                    let (across, low, high) = (at(across), at(low), at(high));
                    format!("M{across} {low}V{high}M{left} {low}h8M{left} {high}h8")
                };
                stroked(canvas, &ends.iter().map(bar).collect::<String>(), "stroke-width=\"1.4\"");
            }
        }
    }
    let drawn = match columns(&places).filter(|_| line.around.is_some()) {
        // The band shows the values that the mean of several points hides.
        Some(ranges) => {
            let mean = |range: std::ops::Range<usize>| {
                let of = &places[range];
                (of[0].0, of.iter().map(|place| place.1).sum::<f64>() / of.len() as f64)
            };
            ranges.into_iter().map(mean).collect()
        }
        None if line.steps => apart_by_a_pixel(&places),
        None => places,
    };
    if !line.apart {
        let style = format!("stroke-width=\"2\" stroke-linejoin=\"round\"{}", dashes(line.stroke));
        stroked(canvas, &joined(&drawn, line.steps), &style);
    }
    let marker = |&(across, up): &(f64, f64)| marker_path(across, up, line.color.marker());
    let path: String = if line.apart {
        drawn.iter().map(marker).collect()
    } else if line.stroke.is_solid() {
        marked(&drawn, line.steps).iter().map(marker).collect()
    } else {
        String::new()
    };
    if !path.is_empty() {
        canvas.raw(&format!("<path d=\"{path}\" fill=\"currentColor\"/>"));
    }
}

fn stroked(canvas: &mut Canvas<'_>, path: &str, style: &str) {
    if !path.is_empty() {
        canvas.raw(&format!("<path d=\"{path}\" stroke=\"currentColor\" {style}/>"));
    }
}

/// The points that have a marker: all of a few, and some of many.
fn marked(places: &[(f64, f64)], steps: bool) -> Vec<(f64, f64)> {
    if places.len() <= MARKED_POINTS {
        return places.to_vec();
    }
    let mut marked = Vec::new();
    let (mut last, mut way) = (places[0], BETWEEN_MARKERS / 2.0);
    for &(across, up) in places {
        way += (across - last.0).abs() + if steps { (up - last.1).abs() } else { 0.0 };
        last = (across, up);
        if way >= BETWEEN_MARKERS {
            marked.push(last);
            way = 0.0;
        }
    }
    marked
}

/// The path through these positions, each relative to the one before.
fn joined(places: &[(f64, f64)], steps: bool) -> String {
    let mut path = String::new();
    // Values are in tenths of a pixel, so that rounding errors do not add up.
    let tenths = |value: f64| (value * 10.0).round();
    let mut last: Option<(f64, f64)> = None;
    for &(across, up) in places {
        let (across, up) = (tenths(across), tenths(up));
        let Some((x, y)) = last.replace((across, up)) else {
            path.push_str(&format!("M{} {}", at(across / 10.0), at(up / 10.0)));
            continue;
        };
        let (dx, dy) = (at((across - x) / 10.0), at((up - y) / 10.0));
        match steps {
            true => path.push_str(&format!("h{dx}v{dy}")),
            false if dy.starts_with('-') => path.push_str(&format!("l{dx}{dy}")),
            false => path.push_str(&format!("l{dx} {dy}")),
        }
    }
    path
}

/// A line with a band that has more points than this is reduced to about this many.
const RESOLUTION: f64 = 250.0;

/// The ranges of successive points that are drawn as one; none where every point is drawn.
fn columns(places: &[(f64, f64)]) -> Option<Vec<std::ops::Range<usize>>> {
    let (first, last) = (places.first()?, places.last()?);
    if places.len() as f64 <= RESOLUTION {
        return None;
    }
    let width = ((last.0 - first.0) / RESOLUTION).max(2.0);
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for (i, (across, _)) in places.iter().enumerate() {
        match ranges.last_mut() {
            Some(range) if across - places[range.start].0 < width => range.end = i + 1,
            _ => ranges.push(i..i + 1),
        }
    }
    Some(ranges)
}

/// The points that differ by a pixel from the one drawn before, and the last.
fn apart_by_a_pixel(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::with_capacity(places.len());
    for &(across, up) in places {
        match kept.last() {
            Some(last) if (across - last.0).abs() < 1.0 && (up - last.1).abs() < 1.0 => {}
            _ => kept.push((across, up)),
        }
    }
    match (kept.last(), places.last()) {
        (Some(drawn), Some(last)) if drawn != last => kept.push(*last),
        _ => {}
    }
    kept
}
