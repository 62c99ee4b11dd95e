//! Figures with one row an item: bars of components, and points with intervals.

use super::canvas::{
    Anchor, BASE, Canvas, FAINT, GRID, INK, LEADING, ON_MARK, PlotFrame, at, glyph_marks, text_width, wrapped,
};
use super::scale::{Scale, Tick};
use super::tips::TipEntry;
use crate::chart::{Axis, Color, Dots, Format, Gantt, Stacked};
use crate::svg::Glyph;

const ROW: f64 = 26.0;
const GROUP: f64 = 24.0;
/// The room of a scheme's marker before its name.
const MARKER: f64 = 16.0;
/// The room between the words at the two sides of a reference.
const GAP: f64 = 20.0;

pub(super) fn stacked(canvas: &mut Canvas<'_>, body: &Stacked) {
    let labels: Vec<Label<'_>> = body
        .rows
        .iter()
        .map(|row| Label { group: &row.group, name: &row.label, scheme: row.scheme })
        .collect();
    let wholes: Vec<f64> = body.rows.iter().map(|row| row.values.iter().sum()).collect();
    let axis = match body.shares {
        true => Axis { max: Some(1.0), ..Axis::from_zero("share of the time", Format::Percent) },
        false => body.x.clone(),
    };
    let written: Vec<String> = wholes.iter().map(|whole| body.x.format.written(*whole)).collect();
    let right = written.iter().map(|text| text_width(text)).fold(0.0, f64::max) + 8.0;
    let (rows, x) = FigureRows::draw(canvas, &labels, &axis, wholes.iter().copied(), right);
    for (number, part) in body.parts.iter().enumerate() {
        canvas.open(part.color, &part.name);
        for ((row, &top), &whole) in body.rows.iter().zip(&rows.tops).zip(&wholes) {
            let scaled = |value: f64| if body.shares && whole > 0.0 { value / whole } else { value };
            let before: f64 = row.values.iter().take(number).sum();
            let value = row.values.get(number).copied().unwrap_or(0.0);
            let (left, right) = (x.place(scaled(before)), x.place(scaled(before + value)));
            if right - left > 0.05 {
                // A hair of the background is left between neighbours of like brightness.
                let width = if right - left > 2.0 { right - left - 0.8 } else { right - left };
                let (left, width, top) = (at(left), at(width), at(top + 4.0));
                canvas.raw(&format!(
                    "<path d=\"M{left} {top}h{width}v{}h-{width}z\" fill=\"currentColor\"/>",
                    at(ROW - 8.0)
                ));
            }
        }
        canvas.raw("</g>");
    }
    for (((row, &top), &whole), text) in body.rows.iter().zip(&rows.tops).zip(&wholes).zip(&written) {
        let end = if body.shares { 1.0 } else { whole };
        canvas.text(x.place(end) + 6.0, top + ROW / 2.0 + 4.0, Anchor::Start, text, "", &FAINT);
        let parts = body.parts.iter().zip(&row.values).filter(|(_, value)| **value > 0.0);
        let entries: Vec<TipEntry<'_>> = parts
            .map(|(part, &value)| {
                let share = Format::Percent.written(value / whole);
                let value = format!("{}, {share}", body.x.format.written(value));
                TipEntry { color: part.color, name: &part.name, value }
            })
            .collect();
        canvas.target(rows.target(top), &format!("{}, {}: {text}", row.label, row.group), &entries);
    }
}

pub(super) fn dots(canvas: &mut Canvas<'_>, body: &Dots) {
    let labels: Vec<Label<'_>> =
        body.rows.iter().map(|row| Label { group: &row.group, name: &row.label, scheme: None }).collect();
    let ends = body.rows.iter().flat_map(|row| [Some(row.at.value), row.at.low, row.at.high]);
    let data = ends.flatten().chain([body.reference]);
    let sides = [format!("← {}", body.sides[0]), format!("{} →", body.sides[1])];
    canvas.top += LEADING;
    let above = canvas.top - 4.0;
    let (rows, x) = FigureRows::draw(canvas, &labels, &body.x, data, 14.0);
    let zero = x.place(body.reference);
    let (top, bottom) = (at(rows.frame.top), at(rows.frame.bottom));
    canvas.lines(&format!("M{} {top}V{bottom}", at(zero)), &BASE);
    // The words are at the two sides of the reference as far as the figure has room there. At an edge they begin or end
    // with the edge, since their width is an estimate.
    let [least, most] = [canvas.pad, canvas.width - canvas.pad];
    let left = (zero - 8.0).max(least + text_width(&sides[0]));
    let right = (zero + 8.0).max(left + GAP).min(most - text_width(&sides[1]));
    let left = left.min(right - GAP);
    match left - text_width(&sides[0]) > least {
        true => canvas.text(left, above, Anchor::End, &sides[0], "", &FAINT),
        false => canvas.text(least, above, Anchor::Start, &sides[0], "", &FAINT),
    }
    match right + text_width(&sides[1]) < most {
        true => canvas.text(right, above, Anchor::Start, &sides[1], "", &FAINT),
        false => canvas.text(most, above, Anchor::End, &sides[1], "", &FAINT),
    }
    for (row, &top) in body.rows.iter().zip(&rows.tops) {
        let middle = top + ROW / 2.0;
        canvas.open(row.color, &row.label);
        let mut value = body.x.format.written(row.at.value);
        if let (Some(low), Some(high)) = (row.at.low, row.at.high) {
            let (left, right, middle) = (at(x.place(low)), at(x.place(high)), at(middle));
            canvas.raw(&format!(
                "<path d=\"M{left} {middle}H{right}\" stroke=\"currentColor\" stroke-width=\"2\"/>"
            ));
            value.push_str(&format!(" ({} .. {})", body.x.format.written(low), body.x.format.written(high)));
        }
        canvas.marker(x.place(row.at.value), middle, row.color, row.hollow);
        canvas.raw("</g>");
        let verdict = if row.hollow { "not significant" } else { "" };
        let entries = [
            TipEntry { color: row.color, name: &row.label, value },
            TipEntry { color: row.color, name: verdict, value: String::new() },
        ];
        let shown = if row.hollow { &entries[..] } else { &entries[..1] };
        canvas.target(rows.target(top), &row.group, shown);
    }
}

pub(super) fn gantt(canvas: &mut Canvas<'_>, body: &Gantt) {
    let labels: Vec<Label<'_>> =
        body.rows.iter().map(|row| Label { group: "", name: &row.label, scheme: None }).collect();
    let spans = || body.rows.iter().flat_map(|row| &row.spans);
    let ends = spans().map(|span| span.from + span.length).chain([0.0]);
    let (rows, x) = FigureRows::draw(canvas, &labels, &body.x, ends, 14.0);
    for (row, &top) in body.rows.iter().zip(&rows.tops) {
        for span in &row.spans {
            let (left, right) = (x.place(span.from), x.place(span.from + span.length));
            canvas.open(span.color, &span.text);
            let (from, width) = (at(left), at(right - left));
            canvas.raw(&format!(
                "<path d=\"M{from} {}h{width}v{}h-{width}z\" fill=\"currentColor\"/>",
                at(top + 3.0),
                at(ROW - 6.0)
            ));
            canvas.raw("</g>");
            if text_width(&span.text) + 4.0 < right - left {
                let middle = (left + right) / 2.0;
                canvas.text(middle, top + ROW / 2.0 + 4.0, Anchor::Middle, &span.text, "", &ON_MARK);
            }
        }
        let entries: Vec<TipEntry<'_>> = row
            .spans
            .iter()
            .map(|span| TipEntry {
                color: span.color,
                name: &span.text,
                value: format!(
                    "{} from {}",
                    body.x.format.written(span.length),
                    body.x.format.written(span.from)
                ),
            })
            .collect();
        canvas.target(rows.target(top), &row.label, &entries);
    }
}

/// The names of a row and of its group.
struct Label<'a> {
    group: &'a str,
    name: &'a str,
    scheme: Option<Color>,
}

impl Label<'_> {
    fn width(&self) -> f64 {
        text_width(self.name) + if self.scheme.is_some() { MARKER } else { 0.0 }
    }
}

/// The rows of a figure: where the marks of each are.
struct FigureRows {
    frame: PlotFrame,
    /// The top of the marks of each row.
    tops: Vec<f64>,
    /// Names are above the marks of their row, as they do not fit at their left.
    names_above: bool,
}

impl FigureRows {
    /// Draws the names and the axis, with `right` pixels of room beside the marks; the canvas takes the height that the
    /// rows need.
    fn draw(
        canvas: &mut Canvas<'_>,
        labels: &[Label<'_>],
        axis: &Axis,
        data: impl Iterator<Item = f64>,
        right: f64,
    ) -> (FigureRows, Scale) {
        let widest = labels.iter().map(Label::width).fold(40.0, f64::max);
        let names_above = widest > 0.38 * canvas.inside();
        let mut frame = PlotFrame {
            left: canvas.pad + if names_above { 0.0 } else { widest + 10.0 },
            top: canvas.top + 2.0,
            right: canvas.width - canvas.pad - right,
            bottom: 0.0,
        };
        let mut top = frame.top;
        let mut current = "";
        let mut tops = Vec::with_capacity(labels.len());
        for label in labels {
            if label.group != current {
                for line in wrapped(label.group, canvas.inside()) {
                    canvas.text(canvas.pad, top + 16.0, Anchor::Start, &line, "font-weight=\"600\"", &INK);
                    top += GROUP;
                }
                current = label.group;
            }
            let marker_room = if label.scheme.is_some() { MARKER } else { 0.0 };
            if names_above {
                for (number, line) in wrapped(label.name, canvas.inside() - marker_room).iter().enumerate() {
                    if let (0, Some(color)) = (number, label.scheme) {
                        scheme_marker(canvas, canvas.pad, top + 9.0, color);
                    }
                    canvas.text(canvas.pad + marker_room, top + 13.0, Anchor::Start, line, "", &INK);
                    top += LEADING;
                }
            } else {
                if let Some(color) = label.scheme {
                    let left = frame.left - 8.0 - text_width(label.name) - MARKER;
                    scheme_marker(canvas, left.max(canvas.pad), top + ROW / 2.0, color);
                }
                canvas.text(frame.left - 8.0, top + ROW / 2.0 + 4.0, Anchor::End, label.name, "", &INK);
            }
            tops.push(top);
            top += ROW;
        }
        frame.bottom = top + 4.0;
        let x = Scale::fit(axis, data, frame.left, frame.right);
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
        // The grid lies below all marks.
        canvas.lines(&grid, &GRID);
        let middle = (frame.left + frame.right) / 2.0;
        let mut down = frame.bottom + 18.0;
        for line in wrapped(&x.label(&axis.label), canvas.inside()) {
            down += LEADING;
            canvas.centred(middle, down, &line, &FAINT);
        }
        canvas.height = down + 6.0 + canvas.pad * 0.5;
        (FigureRows { frame, tops, names_above }, x)
    }

    /// The target of the row whose marks begin at `top`.
    fn target(&self, top: f64) -> PlotFrame {
        let above = if self.names_above { LEADING } else { 0.0 };
        PlotFrame { top: top - above, bottom: top + ROW, ..self.frame }
    }
}

fn scheme_marker(canvas: &mut Canvas<'_>, left: f64, middle: f64, color: Color) {
    canvas.open(color, "");
    canvas.raw(&glyph_marks(left, middle, color, Glyph::Marker));
    canvas.raw("</g>");
}
