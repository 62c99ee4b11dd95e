//! Bars along the time, one row each sender: the circuits with their times, and how far each was filled.

use super::canvas::{Anchor, Canvas, FAINT, GRID, INK, LEADING, PlotFrame, at, text_width, wrapped};
use super::scale::Scale;
use super::tips::TipEntry;
use crate::chart::{Axis, Format, TimetableChart};
use crate::figures;

const ROW: f64 = 24.0;
const BAR: f64 = 18.0;
/// The least room of a bar of mean length, and of a week. Weeks that have less are left out at the end.
const BAR_ROOM: f64 = 4.5;
const WEEK_ROOM: f64 = 24.0;
/// This many weeks are drawn even without room for them.
const WEEKS_LEAST: u64 = 3;
/// The least width of a mark.
const HAIR: f64 = 0.7;

pub(super) fn timetable(canvas: &mut Canvas<'_>, body: &TimetableChart) {
    let widest = body.rows.iter().map(|row| text_width(row)).fold(20.0, f64::max);
    let mut frame = PlotFrame {
        left: canvas.pad + widest + 8.0,
        top: canvas.top + 2.0,
        right: canvas.width - canvas.pad - 4.0,
        bottom: 0.0,
    };
    frame.bottom = frame.top + ROW * body.rows.len() as f64;
    let weeks = weeks_shown(body, frame.width());
    let (first, last) = (body.first as f64, (body.first + weeks) as f64);
    let axis = Axis { min: Some(first), max: Some(last), ..Axis::default() };
    let x = Scale::fit(&axis, std::iter::empty(), frame.left, frame.right);
    draw_weeks(canvas, body, frame, &x, weeks);

    let mut path = String::new();
    for &(from, until) in body.nights.iter().filter(|(from, _)| *from < last) {
        let (left, right) = (x.place(from), x.place(until));
        push_bar(&mut path, left, right, frame.top, frame.bottom - frame.top);
    }
    canvas.open(body.night.color, &body.night.name);
    canvas.raw(&format!("<path d=\"{path}\" fill=\"currentColor\" fill-opacity=\"0.75\"/>"));
    canvas.raw("</g>");

    for (number, key) in body.keys.iter().enumerate() {
        let (mut whole, mut filled) = (String::new(), String::new());
        for bar in body.bars.iter().filter(|bar| bar.key == number && bar.from < last) {
            let (left, right) = (x.place(bar.from), x.place(bar.until));
            let top = frame.top + ROW * bar.row as f64 + (ROW - BAR) / 2.0;
            push_bar(&mut whole, left, right, top, BAR);
            let height = BAR * bar.filled.clamp(0.0, 1.0);
            if height >= 0.05 {
                push_bar(&mut filled, left, right, top + BAR - height, height);
            }
        }
        if whole.is_empty() {
            continue;
        }
        canvas.open(key.color, &key.name);
        canvas.raw(&format!("<path d=\"{whole}\" fill=\"currentColor\" fill-opacity=\"0.28\"/>"));
        canvas.raw(&format!("<path d=\"{filled}\" fill=\"currentColor\"/>"));
        canvas.raw("</g>");
    }
    targets(canvas, body, frame, &x, weeks);
}

/// The number of weeks that have room.
fn weeks_shown(body: &TimetableChart, width: f64) -> u64 {
    let cells = (body.rows.len() as u64 * body.weeks).max(1);
    let bars = body.bars.len() as f64 / cells as f64;
    let fits = (width / (bars * BAR_ROOM).max(WEEK_ROOM)) as u64;
    fits.clamp(WEEKS_LEAST, body.weeks.max(WEEKS_LEAST)).min(body.weeks)
}

/// Draws the names of the rows, the lines between weeks, and the numbers of the weeks in their middles.
fn draw_weeks(canvas: &mut Canvas<'_>, body: &TimetableChart, frame: PlotFrame, x: &Scale, weeks: u64) {
    for (number, row) in body.rows.iter().enumerate() {
        let middle = frame.top + ROW * (number as f64 + 0.5);
        canvas.text(frame.left - 8.0, middle + 4.0, Anchor::End, row, "", &INK);
    }
    let mut grid = String::new();
    for week in body.first..=body.first + weeks {
        grid.push_str(&format!("M{} {}V{}", at(x.place(week as f64)), at(frame.top), at(frame.bottom)));
    }
    canvas.lines(&grid, &GRID);
    let mut free = f64::NEG_INFINITY;
    for week in body.first..body.first + weeks {
        let (label, middle) = (week.to_string(), x.place(week as f64 + 0.5));
        let half = text_width(&label) / 2.0;
        if middle - half >= free {
            free = middle + half + 6.0;
            canvas.centred(middle, frame.bottom + 16.0, &label, &FAINT);
        }
    }
    let mut down = frame.bottom + 18.0;
    for line in wrapped(&body.label, canvas.inside()) {
        down += LEADING;
        canvas.centred((frame.left + frame.right) / 2.0, down, &line, &FAINT);
    }
    canvas.height = down + 6.0 + canvas.pad * 0.5;
}

fn push_bar(path: &mut String, left: f64, right: f64, top: f64, height: f64) {
    let width = at((right - left).max(HAIR));
    path.push_str(&format!("M{} {}h{width}v{}h-{width}z", at(left), at(top), at(height)));
}

/// One target for each row and week, with an entry for each bar in it.
fn targets(canvas: &mut Canvas<'_>, body: &TimetableChart, frame: PlotFrame, x: &Scale, weeks: u64) {
    for (number, row) in body.rows.iter().enumerate() {
        let top = frame.top + ROW * number as f64;
        for week in body.first..body.first + weeks {
            let bars = body.bars.iter().filter(|bar| bar.row == number && bar.week == week);
            let mut entries: Vec<TipEntry<'_>> = bars
                .map(|bar| {
                    let (bytes, share) =
                        (Format::Size.written(bar.bytes), figures::fixed(100.0 * bar.filled, 1));
                    let color = body.keys.get(bar.key).map_or(body.night.color, |key| key.color);
                    TipEntry { color, name: &bar.name, value: format!("{bytes}, {share} % filled") }
                })
                .collect();
            if entries.is_empty() {
                let value = String::new();
                entries.push(TipEntry { color: body.night.color, name: "no circuit", value });
            }
            let (left, right) = (x.place(week as f64), x.place((week + 1) as f64));
            let target = PlotFrame { left, right, top, bottom: top + ROW };
            canvas.target(target, &format!("{row}, week {week}"), &entries);
        }
    }
}
