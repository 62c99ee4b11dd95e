//! A [`Chart`] as SVG: [`render`] makes a file for documentation, [`inline`] the same drawing inside a report.
//!
//! A file has its title, its note, its legend and a light card of its own, so it reads on a dark page too. A report has
//! these in HTML; its style sheet sets dark colours by class and hides a line by its group, and `charts.js` shows the
//! tooltips in the `data-tip` attributes of transparent targets. The same chart gives the same bytes. Positions are
//! written to a tenth of a pixel.

mod canvas;
mod lines;
mod rows;
mod scale;
mod timetable;
mod tips;
mod tracks;

use canvas::{CARD, Canvas, EDGE, FONT, TEXT, glyph_marks};
pub use canvas::{Glyph, Key, Size};

use crate::chart::{Body, Chart, Color};
use crate::escape::escape;

/// Returns a chart as the text of an SVG file that needs no style sheet.
pub fn render(chart: &Chart, size: Size) -> String {
    let mut canvas = Canvas::new(size, None);
    canvas.head(chart);
    canvas.legend(&keys(chart));
    body(&mut canvas, chart);
    let (width, height) = (canvas.width, canvas.height.ceil());
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" fill=\"none\" font-size=\"{TEXT}\" font-family=\"{FONT}\">\n\
         <title>{}</title>\n<desc>{}</desc>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"{CARD}\" stroke=\"{EDGE}\"/>\n{}</svg>\n",
        escape(&chart.title),
        escape(&chart.note),
        width - 1.0,
        height - 1.0,
        canvas.marks,
    )
}

/// Draws a chart for a report. The element has the class `class`; `names` are the names in the figure's legend, and the
/// group of the n-th has the class `gN`.
pub fn inline(chart: &Chart, size: Size, class: &str, names: &[String]) -> String {
    let mut canvas = Canvas::new(size, Some(names));
    body(&mut canvas, chart);
    let (width, height) = (canvas.width, canvas.height.ceil());
    format!(
        "<svg role=\"img\" class=\"{class}\" tabindex=\"0\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" fill=\"none\" font-size=\"{TEXT}\" aria-label=\"{}\">\n\
         <desc>{}</desc>\n{}{}</svg>\n",
        escape(&chart.title),
        escape(&chart.note),
        canvas.marks,
        canvas.targets,
    )
}

fn body(canvas: &mut Canvas<'_>, chart: &Chart) {
    match &chart.body {
        Body::Lines(body) => lines::lines(canvas, body),
        Body::Stacked(body) => rows::stacked(canvas, body),
        Body::Dots(body) => rows::dots(canvas, body),
        Body::Gantt(body) => rows::gantt(canvas, body),
        Body::Timetable(body) => timetable::timetable(canvas, body),
        Body::Tracks(body) => tracks::tracks(canvas, body),
    }
}

/// The legend of a chart; empty where its rows have their names.
pub fn keys(chart: &Chart) -> Vec<Key> {
    match &chart.body {
        Body::Lines(body) => {
            let glyph = |apart: bool, stroke| if apart { Glyph::Marker } else { Glyph::Line(stroke) };
            let key = |line: &crate::chart::ChartLine| Key {
                name: line.name.clone(),
                color: line.color,
                glyph: glyph(line.apart, line.stroke),
            };
            body.series.iter().map(key).collect()
        }
        Body::Stacked(body) => {
            let key = |part: &crate::chart::StackPart| Key {
                name: part.name.clone(),
                color: part.color,
                glyph: Glyph::Square,
            };
            body.parts.iter().map(key).collect()
        }
        Body::Timetable(body) => {
            let key = |part: &crate::chart::StackPart| Key {
                name: part.name.clone(),
                color: part.color,
                glyph: Glyph::Square,
            };
            body.keys.iter().chain([&body.night]).map(key).collect()
        }
        Body::Tracks(body) => {
            let key = |part: &crate::chart::TrackKey| Key {
                name: part.name.clone(),
                color: part.color,
                glyph: Glyph::Square,
            };
            let path = body.path_key.as_ref().map(|part| Key {
                name: part.name.clone(),
                color: part.color,
                glyph: Glyph::Square,
            });
            body.keys.iter().map(key).chain(path).collect()
        }
        Body::Dots(_) | Body::Gantt(_) => Vec::new(),
    }
}

/// Returns the mark beside a name, as an element of HTML: in the legends and the tables of a report.
pub fn glyph(color: Color, glyph: Glyph) -> String {
    let width = if matches!(glyph, Glyph::Line(_)) { 20 } else { 12 };
    format!(
        "<svg class=\"glyph {}\" width=\"{width}\" height=\"12\" viewBox=\"0 0 {width} 12\" fill=\"none\" \
         color=\"{}\" aria-hidden=\"true\">{}</svg>",
        color.class(),
        color.hex(),
        glyph_marks(0.0, 6.0, color, glyph)
    )
}

#[cfg(test)]
mod tests;
