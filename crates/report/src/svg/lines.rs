//! Figures with an axis across and one upwards: lines and grouped bars.

use super::scale::{Scale, Tick};
use super::{Anchor, Canvas, FAINT, Frame, GRID, INK, Key, PAD, at, dashes, text_width};
use crate::chart::{Axis, Bars, Line, Lines, Shape, Whisker};

/// Up to how many points a line shows each of them.
const MARKED_POINTS: usize = 30;

pub(super) fn lines(canvas: &mut Canvas, body: &Lines) {
    canvas.legend(body.series.iter().enumerate().map(|(number, line)| {
        let key = match line.apart {
            true => Key::Point(number),
            false => Key::Line(line.stroke, line.stroke.is_solid().then_some(number)),
        };
        (line.name.as_str(), line.color, key)
    }));
    let y_data = body.series.iter().flat_map(|line| {
        let around = line.around.iter().flat_map(|a| a.low.iter().chain(&a.high)).flatten();
        line.y.iter().chain(around).copied()
    });
    let (mut frame, y) = frame_with_y(canvas, &body.y, y_data);
    let x_data = body.series.iter().flat_map(|line| line.x.iter().copied());
    let places = body.x.categories.len();
    let axis = if places > 0 {
        // Half a place of room on both sides.
        Axis { min: Some(-0.5), max: Some(places as f64 - 0.5), log: false, ..body.x.clone() }
    } else {
        body.x.clone()
    };
    frame.right -= 6.0;
    let x = Scale::fit(&axis, x_data, frame.left, frame.right);
    draw_y(canvas, frame, &y, &body.y.label);
    draw_x(canvas, frame, &x, &axis);
    for (number, line) in body.series.iter().enumerate() {
        draw_line(canvas, line, number, &x, &y);
    }
}

pub(super) fn bars(canvas: &mut Canvas, body: &Bars) {
    canvas.legend(body.series.iter().map(|series| (series.name.as_str(), series.color, Key::Area)));
    let whiskers = body.series.iter().flat_map(|series| series.values.iter().flatten());
    let data = whiskers.flat_map(|w| [Some(w.value), w.low, w.high]).flatten();
    let (frame, y) = frame_with_y(canvas, &with_foot(&body.y, data.clone()), data);
    let places = body.groups.len().max(1) as f64;
    let axis =
        Axis { min: Some(-0.5), max: Some(places - 0.5), categories: body.groups.clone(), ..Axis::default() };
    let x = Scale::fit(&axis, std::iter::empty(), frame.left, frame.right);
    draw_y(canvas, frame, &y, &body.y.label);
    draw_x(canvas, frame, &x, &axis);
    let width = (0.8 * (frame.right - frame.left) / places / body.series.len().max(1) as f64).min(46.0);
    for (number, series) in body.series.iter().enumerate() {
        let shift = (number as f64 - body.series.len() as f64 / 2.0) * width;
        for (group, value) in series.values.iter().enumerate() {
            let Some(whisker) = value else { continue };
            let left = x.place(group as f64) + shift;
            let (top, base) = (y.place(whisker.value), y.base());
            canvas.rect(left + 1.0, top.min(base), width - 2.0, (base - top).abs(), series.color.hex(), 1.5);
            error_bar(canvas, left + width / 2.0, whisker, &y, INK);
        }
    }
}

/// A bar needs a foot: on a logarithmic axis the decade below the least.
fn with_foot(axis: &Axis, data: impl Iterator<Item = f64>) -> Axis {
    let least = data.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let foot = (axis.log && least.is_finite()).then(|| 10f64.powf((least / 1.3).log10().floor()));
    Axis { min: axis.min.or(foot), ..axis.clone() }
}

/// The drawing area, with room at its left for the labels of `axis`.
fn frame_with_y(canvas: &Canvas, axis: &Axis, data: impl Iterator<Item = f64>) -> (Frame, Scale) {
    let mut frame = Frame {
        left: PAD,
        top: canvas.top + 4.0,
        right: canvas.width - PAD,
        bottom: canvas.height - PAD - 34.0,
    };
    let y = Scale::fit(axis, data, frame.bottom, frame.top);
    let widest = y.ticks(6).iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
    frame.left += widest + 8.0 + 18.0;
    (frame, y)
}

fn draw_y(canvas: &mut Canvas, frame: Frame, y: &Scale, label: &str) {
    for Tick { value, label } in y.ticks(6) {
        let place = y.place(value);
        if label.is_empty() {
            continue;
        }
        canvas.line((frame.left, place), (frame.right, place), GRID, 1.0);
        canvas.text(frame.left - 8.0, place + 4.0, Anchor::End, &label, "", FAINT);
    }
    let (x, middle) = (PAD + 10.0, (frame.top + frame.bottom) / 2.0);
    let turned = format!("transform=\"rotate(-90 {} {})\"", at(x), at(middle));
    canvas.text(x, middle, Anchor::Middle, &y.label(label), &turned, FAINT);
}

fn draw_x(canvas: &mut Canvas, frame: Frame, x: &Scale, axis: &Axis) {
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), FAINT, 1.0);
    if axis.categories.is_empty() {
        for Tick { value, label } in x.ticks(7) {
            let place = x.place(value);
            let length = if label.is_empty() { 3.0 } else { 6.0 };
            canvas.line((place, frame.bottom), (place, frame.bottom + length), FAINT, 1.0);
            canvas.text(place, frame.bottom + 18.0, Anchor::Middle, &label, "", FAINT);
        }
    } else {
        for (place, name) in axis.categories.iter().enumerate() {
            canvas.text(x.place(place as f64), frame.bottom + 18.0, Anchor::Middle, name, "", FAINT);
        }
    }
    let middle = (frame.left + frame.right) / 2.0;
    canvas.text(middle, frame.bottom + 36.0, Anchor::Middle, &x.label(&axis.label), "", FAINT);
}

fn draw_line(canvas: &mut Canvas, line: &Line, number: usize, x: &Scale, y: &Scale) {
    let color = line.color.hex();
    let places: Vec<(f64, f64)> =
        line.x.iter().zip(&line.y).map(|(&vx, &vy)| (x.place(vx), y.place(vy))).collect();
    if let Some(around) = &line.around {
        match around.shape {
            Shape::Band => {
                let upper = line.x.iter().zip(&around.high).filter_map(|(&vx, &vy)| Some((vx, vy?)));
                let lower = line.x.iter().zip(&around.low).filter_map(|(&vx, &vy)| Some((vx, vy?)));
                let mut outline: Vec<(f64, f64)> = upper.map(|(vx, vy)| (x.place(vx), y.place(vy))).collect();
                let below: Vec<(f64, f64)> = lower.map(|(vx, vy)| (x.place(vx), y.place(vy))).collect();
                outline.extend(below.iter().rev());
                let path = joined(&outline, false);
                canvas.raw(&format!("<path d=\"{path}z\" fill=\"{color}\" fill-opacity=\"0.18\"/>"));
            }
            Shape::ErrorBars => {
                for (position, &(place, _)) in places.iter().enumerate() {
                    let whisker = Whisker {
                        value: line.y[position],
                        low: around.low.get(position).copied().flatten(),
                        high: around.high.get(position).copied().flatten(),
                    };
                    error_bar(canvas, place, &whisker, y, color);
                }
            }
        }
    }
    if !line.apart {
        let path = joined(&places, line.steps);
        let dashes = dashes(line.stroke);
        canvas.raw(&format!(
            "<path d=\"{path}\" stroke=\"{color}\" stroke-width=\"2\" stroke-linejoin=\"round\"{dashes}/>"
        ));
    }
    if line.apart || places.len() <= MARKED_POINTS && line.stroke.is_solid() {
        places.iter().for_each(|&(px, py)| canvas.marker(px, py, number, line.color, false));
    }
}

fn joined(places: &[(f64, f64)], steps: bool) -> String {
    let mut path = String::new();
    for (position, &(px, py)) in places.iter().enumerate() {
        match (position, steps) {
            (0, _) => path.push_str(&format!("M{} {}", at(px), at(py))),
            (_, true) => path.push_str(&format!("H{}V{}", at(px), at(py))),
            (_, false) => path.push_str(&format!("L{} {}", at(px), at(py))),
        }
    }
    path
}

fn error_bar(canvas: &mut Canvas, place: f64, whisker: &Whisker, y: &Scale, stroke: &str) {
    let (Some(low), Some(high)) = (whisker.low, whisker.high) else { return };
    let (bottom, top) = (y.place(low), y.place(high));
    canvas.line((place, bottom), (place, top), stroke, 1.4);
    canvas.line((place - 4.0, bottom), (place + 4.0, bottom), stroke, 1.4);
    canvas.line((place - 4.0, top), (place + 4.0, top), stroke, 1.4);
}
