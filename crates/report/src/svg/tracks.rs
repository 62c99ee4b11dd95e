//! Bars along the time, one row a track, and the path that led through them: what the ranks of a job did.

use super::canvas::{Anchor, Canvas, FAINT, GRID, INK, LEADING, PlotFrame, at, text_width, wrapped};
use super::scale::{Scale, Tick};
use super::tips::TipEntry;
use crate::chart::{Color, Track, TrackKey, Tracks};

/// The height of all rows together, and the bounds of one.
const ROWS: f64 = 560.0;
const ROW_LEAST: f64 = 11.0;
const ROW_MOST: f64 = 26.0;
/// The least height of a row whose name has room beside those of its neighbours.
const NAMED: f64 = 14.0;
/// The least width of a bar.
const HAIR: f64 = 0.7;
/// The number of targets of a figure.
const TARGETS: usize = 384;

pub(super) fn tracks(canvas: &mut Canvas<'_>, body: &Tracks) {
    let row = (ROWS / body.rows.len().max(1) as f64).clamp(ROW_LEAST, ROW_MOST);
    let widest = body.rows.iter().map(|row| text_width(&row.label)).fold(20.0, f64::max);
    let mut frame = PlotFrame {
        left: canvas.pad + widest + 10.0,
        top: canvas.top + 2.0,
        right: canvas.width - canvas.pad - 14.0,
        bottom: 0.0,
    };
    frame.bottom = frame.top + row * body.rows.len() as f64 + 4.0;
    let ends = body.bars.iter().map(|bar| bar.until).chain(body.path.iter().map(|(_, x)| *x));
    let x = Scale::fit(&body.x, ends.chain([0.0]), frame.left, frame.right);
    draw_axis(canvas, body, frame, &x, row);
    for (number, key) in body.keys.iter().enumerate() {
        let mut path = String::new();
        let (inset, opacity) = if key.is_faint { (0.3 * row, 0.55) } else { (0.12 * row, 1.0) };
        for bar in body.bars.iter().filter(|bar| bar.key == number) {
            let (left, right) = (x.place(bar.from), x.place(bar.until));
            let (top, width) = (frame.top + row * bar.row as f64 + inset, at((right - left).max(HAIR)));
            let height = at(row - 2.0 * inset);
            path.push_str(&format!("M{} {}h{width}v{height}h-{width}z", at(left), at(top)));
        }
        canvas.open(key.color, &key.name);
        canvas.raw(&format!("<path d=\"{path}\" fill=\"currentColor\" fill-opacity=\"{opacity}\"/>"));
        canvas.raw("</g>");
    }
    if let Some(key) = &body.path_key {
        let points = body.path.iter().map(|&(track, time)| {
            format!("{} {}", at(x.place(time)), at(frame.top + row * (track as f64 + 0.5)))
        });
        let points: Vec<String> = points.collect();
        canvas.open(key.color, &key.name);
        canvas.raw(&format!(
            "<path d=\"M{}\" stroke=\"currentColor\" stroke-width=\"1.6\" stroke-linejoin=\"round\"/>",
            points.join("L")
        ));
        canvas.raw("</g>");
    }
    targets(canvas, body, frame, &x, row);
}

/// Draws the names of the rows, the grid of times and their numbers.
fn draw_axis(canvas: &mut Canvas<'_>, body: &Tracks, frame: PlotFrame, x: &Scale, row: f64) {
    let every = if row < NAMED { 2 } else { 1 };
    for (number, Track { label }) in body.rows.iter().enumerate().step_by(every) {
        let middle = frame.top + row * (number as f64 + 0.5);
        canvas.text(frame.left - 8.0, middle + 4.0, Anchor::End, label, "", &INK);
    }
    let mut grid = String::new();
    let mut free = f64::NEG_INFINITY;
    for Tick { value, label } in x.ticks_across() {
        let (place, half) = (x.place(value), text_width(&label) / 2.0);
        if label.is_empty() || place - half < free {
            continue;
        }
        free = place + half + 8.0;
        grid.push_str(&format!("M{} {}V{}", at(place), at(frame.top), at(frame.bottom)));
        canvas.centred(place, frame.bottom + 16.0, &label, &FAINT);
    }
    canvas.lines(&grid, &GRID);
    let mut down = frame.bottom + 18.0;
    for line in wrapped(&x.label(&body.x.label), canvas.inside()) {
        down += LEADING;
        canvas.centred((frame.left + frame.right) / 2.0, down, &line, &FAINT);
    }
    canvas.height = down + 6.0 + canvas.pad * 0.5;
}

/// Targets for equal parts of each row, with the time of each kind of bar in it.
fn targets(canvas: &mut Canvas<'_>, body: &Tracks, frame: PlotFrame, x: &Scale, row: f64) {
    let end = body.bars.iter().map(|bar| bar.until).fold(0.0, f64::max);
    let parts = (TARGETS / body.rows.len().max(1)).clamp(4, 24);
    for (number, Track { label }) in body.rows.iter().enumerate() {
        let top = frame.top + row * number as f64;
        for part in 0..parts {
            let [from, until] = [part, part + 1].map(|part| end * part as f64 / parts as f64);
            let time = |key: usize| -> f64 {
                let bars = body.bars.iter().filter(|bar| (bar.row, bar.key) == (number, key));
                bars.map(|bar| (bar.until.min(until) - bar.from.max(from)).max(0.0)).sum()
            };
            let entry = |(key, part): (usize, &TrackKey)| {
                let time = time(key);
                (time > 0.0).then(|| (part.color, part.name.clone(), body.x.format.written(time)))
            };
            let found: Vec<_> = body.keys.iter().enumerate().filter_map(entry).collect();
            let mut entries: Vec<TipEntry<'_>> = found
                .iter()
                .map(|(color, name, value)| TipEntry { color: *color, name, value: value.clone() })
                .collect();
            if entries.is_empty() {
                entries.push(TipEntry { color: Color::Reference, name: "nothing", value: String::new() });
            }
            let [left, right] = [from, until].map(|time| x.place(time));
            let target = PlotFrame { left, right, top, bottom: top + row };
            let head =
                format!("{label}, {} to {}", body.x.format.written(from), body.x.format.written(until));
            canvas.target(target, &head, &entries);
        }
    }
}
