//! Tooltips: transparent targets over a figure, each with a text in `data-tip` and in the order of the arrow keys.
//!
//! The text has one line an entry: first the heading, then `class TAB name TAB value`.

use plimsoll_text::printable;

use super::canvas::{Canvas, PlotFrame, at};
use crate::chart::{ChartLine, Color, Lines, Read};
use crate::svg::scale::Scale;

/// The least height of a target in pixels.
const TARGET: f64 = 9.0;
/// The greatest number of targets beside each other.
const ACROSS: f64 = 64.0;
/// Points further than this from the target's position are shown with their own.
const ELSEWHERE: f64 = 12.0;

/// One entry of a tooltip.
pub(super) struct TipEntry<'a> {
    pub(super) color: Color,
    pub(super) name: &'a str,
    pub(super) value: String,
}

impl Canvas<'_> {
    /// Adds a target with its tooltip; a file has none.
    pub(super) fn target(&mut self, frame: PlotFrame, head: &str, entries: &[TipEntry<'_>]) {
        if self.names.is_none() {
            return;
        }
        let mut tip = printable(head).into_owned();
        for TipEntry { color, name, value } in entries {
            tip.push_str(&format!("\n{}\t{}\t{}", color.class(), printable(name), printable(value)));
        }
        let tip = crate::escape::escape(&tip);
        let [x, y, width, height] = [frame.left, frame.top, frame.width(), frame.bottom - frame.top].map(at);
        self.targets.push_str(&format!(
            "<path class=\"target\" d=\"M{x} {y}h{width}v{height}h-{width}z\" data-tip=\"{tip}\"/>\n"
        ));
    }
}

/// The targets of lines: columns where a reader compares at the same x, rows where at the same y.
pub(super) fn of_lines(canvas: &mut Canvas<'_>, body: &Lines, frame: PlotFrame, x: &Scale, y: &Scale) {
    if canvas.names.is_none() {
        return;
    }
    match body.read {
        Read::AtX => at_x(canvas, body, frame, x),
        Read::AtY | Read::AtTail => at_y(canvas, body, frame, y),
    }
}

fn at_x<'b>(canvas: &mut Canvas<'_>, body: &'b Lines, frame: PlotFrame, x: &Scale) {
    // A dashed line is a reference: its positions are no measurements.
    let known: Vec<&'b ChartLine> =
        body.series.iter().filter(|line| line.stroke.is_solid() && !line.x.is_empty()).collect();
    let mut all: Vec<f64> = known.iter().flat_map(|line| line.x.iter().copied()).collect();
    all.sort_unstable_by(f64::total_cmp);
    let least = TARGET.max(frame.width() / ACROSS);
    let mut shown: Vec<f64> = Vec::new();
    for value in all {
        if shown.last().is_none_or(|&last| x.place(value) - x.place(last) >= least) {
            shown.push(value);
        }
    }
    let centers: Vec<f64> = shown.iter().map(|&value| x.place(value)).collect();
    for (number, &value) in shown.iter().enumerate() {
        let [left, right] = between(&centers, number, frame.left, frame.right);
        let entry = |line: &'b ChartLine| {
            let off = |i: &usize| (line.x[*i] - value).abs();
            let nearest = (0..line.x.len()).min_by(|a, b| off(a).total_cmp(&off(b)))?;
            let mut text = body.y.format.written(*line.y.get(nearest)?);
            let around = line.around.as_ref();
            let end = |ends: &[Option<f64>]| ends.get(nearest).copied().flatten();
            if let (Some(low), Some(high)) =
                (around.and_then(|a| end(&a.low)), around.and_then(|a| end(&a.high)))
            {
                text.push_str(&format!(
                    " ({} .. {})",
                    body.y.format.written(low),
                    body.y.format.written(high)
                ));
            }
            if (x.place(line.x[nearest]) - x.place(value)).abs() > ELSEWHERE {
                text.push_str(&format!(" at {}", body.x.format.written(line.x[nearest])));
            }
            Some(TipEntry { color: line.color, name: &line.name, value: text })
        };
        let entries: Vec<TipEntry<'_>> = known.iter().copied().filter_map(entry).collect();
        let head = match body.x.categories.get(value as usize) {
            Some(name) => name.clone(),
            None => format!("{}: {}", body.x.label, body.x.format.written(value)),
        };
        canvas.target(PlotFrame { left, right, ..frame }, &head, &entries);
    }
}

fn at_y(canvas: &mut Canvas<'_>, body: &Lines, frame: PlotFrame, y: &Scale) {
    // From the top down, in the order of the arrow keys.
    let mut levels: Vec<f64> = Vec::new();
    for level in y.levels() {
        if levels.last().is_none_or(|&last| y.place(level) - y.place(last) >= TARGET) {
            levels.push(level);
        }
    }
    let centers: Vec<f64> = levels.iter().map(|&level| y.place(level)).collect();
    for (number, &level) in levels.iter().enumerate() {
        let [top, bottom] = between(&centers, number, frame.top, frame.bottom);
        let reached = |value: &f64| match body.read {
            Read::AtTail => *value <= level + 1e-12,
            _ => *value >= level - 1e-12,
        };
        let entry = |line: &ChartLine| {
            let x = line.y.iter().position(reached).map(|i| line.x[i]).or(line.x.last().copied())?;
            Some((line.color, line.name.clone(), body.x.format.written(x)))
        };
        let found: Vec<_> = body.series.iter().filter_map(entry).collect();
        let entries: Vec<TipEntry<'_>> = found
            .iter()
            .map(|(color, name, value)| TipEntry { color: *color, name, value: value.clone() })
            .collect();
        let share = if body.read == Read::AtTail { 1.0 - level } else { level };
        let head = format!("{} took at most", body.y.format.written(share));
        canvas.target(PlotFrame { top, bottom, ..frame }, &head, &entries);
    }
}

/// The ends of the n-th target: halfway to its neighbours, or the ends of the frame.
fn between(centers: &[f64], number: usize, first: f64, last: f64) -> [f64; 2] {
    let half = |a: usize, b: usize| (centers[a] + centers[b]) / 2.0;
    [
        if number == 0 { first } else { half(number - 1, number) },
        if number + 1 == centers.len() { last } else { half(number, number + 1) },
    ]
}
