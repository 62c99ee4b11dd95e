//! Figures with one row an item: bars of parts, and points with intervals.

use super::scale::{Scale, Tick};
use super::{Anchor, CARD, Canvas, FAINT, Frame, GRID, INK, Key, PAD, text_width};
use crate::chart::{Axis, Color, Dots, Format, Stacked};

const ROW: f64 = 26.0;
const GROUP: f64 = 24.0;

pub(super) fn stacked(canvas: &mut Canvas, body: &Stacked) {
    canvas.legend(body.parts.iter().map(|part| (part.name.as_str(), part.color, Key::Area)));
    let labels: Vec<(&str, &str)> =
        body.rows.iter().map(|row| (row.group.as_str(), row.label.as_str())).collect();
    let totals = body.rows.iter().map(|row| row.values.iter().sum::<f64>());
    let (frame, x) = frame_of_rows(canvas, &labels, &body.x, totals, 70.0);
    let places = draw_labels(canvas, &labels, frame);
    for (row, top) in body.rows.iter().zip(places) {
        let mut sum = 0.0;
        for (part, &value) in body.parts.iter().zip(&row.values) {
            let (left, right) = (x.place(sum), x.place(sum + value));
            sum += value;
            if right - left > 0.05 {
                canvas.rect(left, top + 4.0, right - left, ROW - 8.0, part.color.hex(), 0.0);
                // A hair of the card tells neighbours of like brightness apart.
                canvas.line((right, top + 4.0), (right, top + ROW - 4.0), CARD, 1.0);
            }
        }
        if body.x.format == Format::Time {
            let total = crate::figures::time(sum);
            canvas.text(x.place(sum) + 6.0, top + ROW / 2.0 + 4.0, Anchor::Start, &total, "", FAINT);
        }
    }
}

pub(super) fn dots(canvas: &mut Canvas, body: &Dots) {
    let labels: Vec<(&str, &str)> =
        body.rows.iter().map(|row| (row.group.as_str(), row.label.as_str())).collect();
    let data = body
        .rows
        .iter()
        .flat_map(|row| [Some(row.at.value), row.at.low, row.at.high])
        .flatten()
        .chain([body.reference]);
    canvas.top += 14.0;
    let (frame, x) = frame_of_rows(canvas, &labels, &body.x, data, 14.0);
    let zero = x.place(body.reference);
    canvas.text(zero - 8.0, frame.top - 6.0, Anchor::End, &format!("← {}", body.sides[0]), "", FAINT);
    canvas.text(zero + 8.0, frame.top - 6.0, Anchor::Start, &format!("{} →", body.sides[1]), "", FAINT);
    canvas.line((zero, frame.top), (zero, frame.bottom), INK, 1.2);
    let places = draw_labels(canvas, &labels, frame);
    for (row, top) in body.rows.iter().zip(places) {
        let middle = top + ROW / 2.0;
        if let (Some(low), Some(high)) = (row.at.low, row.at.high) {
            canvas.line((x.place(low), middle), (x.place(high), middle), row.color.hex(), 2.0);
        }
        let kind = if let Color::Series(number) = row.color { number } else { 0 };
        canvas.marker(x.place(row.at.value), middle, kind, row.color, row.hollow);
    }
}

/// The drawing area for so many rows, with some room at the right; the canvas takes the height that
/// they need.
fn frame_of_rows(
    canvas: &mut Canvas,
    labels: &[(&str, &str)],
    axis: &Axis,
    data: impl Iterator<Item = f64>,
    right: f64,
) -> (Frame, Scale) {
    let widest = labels
        .iter()
        .map(|(group, label)| text_width(label).max(text_width(group) - 20.0))
        .fold(40.0, f64::max);
    let groups = labels.chunk_by(|a, b| a.0 == b.0).filter(|group| !group[0].0.is_empty()).count();
    let top = canvas.top + 2.0;
    let frame = Frame {
        left: PAD + widest + 12.0,
        top,
        right: canvas.width - PAD - right,
        bottom: top + labels.len() as f64 * ROW + groups as f64 * GROUP + 4.0,
    };
    canvas.height = frame.bottom + 44.0 + PAD * 0.5;
    let x = Scale::fit(axis, data, frame.left, frame.right);
    for Tick { value, label } in x.ticks(6) {
        let place = x.place(value);
        if !label.is_empty() {
            canvas.line((place, frame.top), (place, frame.bottom), GRID, 1.0);
            canvas.text(place, frame.bottom + 16.0, Anchor::Middle, &label, "", FAINT);
        }
    }
    let middle = (frame.left + frame.right) / 2.0;
    canvas.text(middle, frame.bottom + 36.0, Anchor::Middle, &x.label(&axis.label), "", FAINT);
    (frame, x)
}

/// Draws the names of groups and rows; gives the top of each row.
fn draw_labels(canvas: &mut Canvas, labels: &[(&str, &str)], frame: Frame) -> Vec<f64> {
    let mut top = frame.top;
    let mut current = "";
    let mut places = Vec::with_capacity(labels.len());
    for &(group, label) in labels {
        if group != current {
            canvas.text(PAD, top + 16.0, Anchor::Start, group, "font-weight=\"600\"", INK);
            top += GROUP;
            current = group;
        }
        canvas.text(frame.left - 8.0, top + ROW / 2.0 + 4.0, Anchor::End, label, "", INK);
        places.push(top);
        top += ROW;
    }
    places
}
