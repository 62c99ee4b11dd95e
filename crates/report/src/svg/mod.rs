//! A [`Chart`] as a static SVG file: for documentation, where no script runs.
//!
//! The figure brings its own light card, so it reads on a dark page too. The same chart gives the
//! same bytes. Places are written to a tenth of a pixel.

mod lines;
mod rows;
mod scale;

use std::fmt::Write;

use crate::chart::{Body, Chart, Color, Stroke};

/// How large a figure is, in pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Across.
    pub width: u32,
    /// Down; figures with one row an item take what they need instead.
    pub height: u32,
}

impl Default for Size {
    fn default() -> Size {
        Size { width: 720, height: 400 }
    }
}

/// Draws a chart.
pub fn render(chart: &Chart, size: Size) -> String {
    let mut canvas = Canvas::new(f64::from(size.width), f64::from(size.height));
    canvas.head(chart);
    match &chart.body {
        Body::Lines(body) => lines::lines(&mut canvas, body),
        Body::Bars(body) => lines::bars(&mut canvas, body),
        Body::Stacked(body) => rows::stacked(&mut canvas, body),
        Body::Dots(body) => rows::dots(&mut canvas, body),
    }
    canvas.finish(chart)
}

const INK: &str = "#1d2430";
const FAINT: &str = "#5b6472";
const GRID: &str = "#e3e6eb";
const CARD: &str = "#ffffff";
const EDGE: &str = "#d5d9e0";
const PAD: f64 = 18.0;
const TEXT: f64 = 12.0;

/// The figure while it is drawn.
struct Canvas {
    width: f64,
    height: f64,
    /// Where the next block begins.
    top: f64,
    marks: String,
}

/// Where a text stands in relation to its place.
#[derive(Clone, Copy, PartialEq)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle on the page.
#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

/// What of a figure an entry of its legend stands for.
#[derive(Clone, Copy, Debug)]
enum Key {
    /// A line, and the number of its markers' shape if it has any.
    Line(Stroke, Option<usize>),
    /// A marker of this shape without a line.
    Point(usize),
    /// Bars, parts or dots of a colour.
    Area,
}

/// The attribute of a path that is drawn like this.
fn dashes(stroke: Stroke) -> String {
    stroke.dashes().map_or_else(String::new, |dashes| format!(" stroke-dasharray=\"{dashes}\""))
}

impl Canvas {
    fn new(width: f64, height: f64) -> Canvas {
        Canvas { width, height, top: PAD, marks: String::new() }
    }

    fn head(&mut self, chart: &Chart) {
        self.top += 14.0;
        self.text(PAD, self.top, Anchor::Start, &chart.title, "font-size=\"15\" font-weight=\"600\"", INK);
        if !chart.note.is_empty() {
            for line in wrapped(&chart.note, self.width - 2.0 * PAD) {
                self.top += 17.0;
                self.text(PAD, self.top, Anchor::Start, &line, "", FAINT);
            }
        }
        self.top += 12.0;
    }

    /// Names with their colours, in as many lines as needed. `Some(n)` gets the n-th marker.
    fn legend<'a>(&mut self, entries: impl Iterator<Item = (&'a str, Color, Key)>) {
        let mut left = PAD;
        self.top += 8.0;
        for (name, color, key) in entries {
            let width = 16.0 + text_width(name) + 18.0;
            if left > PAD && left + width > self.width - PAD {
                left = PAD;
                self.top += 18.0;
            }
            match key {
                Key::Line(stroke, marker) => {
                    let (y, hex, dashes) = (self.top - 1.0, color.hex(), dashes(stroke));
                    self.raw(&format!(
                        "<path d=\"M{} {}h13\" stroke=\"{hex}\" stroke-width=\"2\"{dashes}/>",
                        at(left),
                        at(y)
                    ));
                    if let Some(marker) = marker {
                        self.marker(left + 6.0, y, marker, color, false);
                    }
                }
                Key::Point(marker) => self.marker(left + 6.0, self.top - 1.0, marker, color, false),
                Key::Area => self.rect(left, self.top - 6.0, 11.0, 11.0, color.hex(), 2.0),
            }
            self.text(left + 17.0, self.top + 4.0, Anchor::Start, name, "", INK);
            left += width;
        }
        self.top += 16.0;
    }

    fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str, style: &str, fill: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let space = if style.is_empty() { "" } else { " " };
        let (x, y, text) = (at(x), at(y), crate::html::escape(text));
        self.raw(&format!("<text x=\"{x}\" y=\"{y}\"{anchor}{space}{style} fill=\"{fill}\">{text}</text>"));
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: &str, width: f64) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(at);
        self.raw(&format!("<path d=\"M{x1} {y1}L{x2} {y2}\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>"));
    }

    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str, radius: f64) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(at);
        self.raw(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\" fill=\"{fill}\"/>"
        ));
    }

    /// A point of the n-th kind: shapes differ as colours do, for those who see no colours.
    fn marker(&mut self, x: f64, y: f64, kind: usize, color: Color, hollow: bool) {
        let shape = match kind % 4 {
            0 => format!("<circle cx=\"{}\" cy=\"{}\" r=\"3.6\"", at(x), at(y)),
            1 => format!("<path d=\"M{} {}h6.4v6.4h-6.4z\"", at(x - 3.2), at(y - 3.2)),
            2 => format!("<path d=\"M{} {}l4 7h-8z\"", at(x), at(y - 4.4)),
            _ => format!("<path d=\"M{} {}l4.4 4.4l-4.4 4.4l-4.4 -4.4z\"", at(x), at(y - 4.4)),
        };
        let (fill, stroke) = (if hollow { CARD } else { color.hex() }, color.hex());
        self.raw(&format!("{shape} fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.2\"/>"));
    }

    fn raw(&mut self, mark: &str) {
        self.marks.push_str(mark);
        self.marks.push('\n');
    }

    fn finish(self, chart: &Chart) -> String {
        let Canvas { width, height, marks, .. } = self;
        let mut out = String::new();
        let title = crate::html::escape(&chart.title);
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" fill=\"none\" font-size=\"{TEXT}\" \
             font-family=\"system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif\">\n\
             <title>{title}</title>\n<desc>{}</desc>\n\
             <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"{CARD}\" stroke=\"{EDGE}\"/>\n\
             {marks}</svg>\n",
            crate::html::escape(&chart.note),
            width - 1.0,
            height - 1.0,
        );
        out
    }
}

/// A place, to a tenth of a pixel.
fn at(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// About how wide a text is, in pixels.
fn text_width(text: &str) -> f64 {
    let width = |c: char| match c {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ' ' | '(' | ')' | 't' | 'f' | 'r' | '\'' => 4.3,
        'm' | 'w' | 'M' | 'W' | '%' => 10.2,
        c if c.is_uppercase() => 8.2,
        _ => 7.1,
    };
    text.chars().map(width).sum()
}

fn wrapped(text: &str, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut() {
            if line.is_empty() {
                line.push_str(word);
                continue;
            }
            if text_width(line) + text_width(word) + 4.0 <= limit {
                line.push(' ');
                line.push_str(word);
                continue;
            }
        }
        lines.push(word.to_owned());
    }
    lines
}

#[cfg(test)]
mod tests;
